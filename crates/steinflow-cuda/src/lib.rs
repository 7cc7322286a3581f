//! Steinflow on NVIDIA GPUs: particles, momenta, scores and kernel sums stay on the device for the whole run.
//!
//! [`Cuda`] is an [`Engine`](steinflow::flow::Engine): hand it to [`Sampler::on`](steinflow::Sampler::on). Its
//! kernels are CUDA C++ in `kernels/`, compiled by NVRTC for the shapes of a run when it starts; driver and
//! compiler are loaded then, so that the same binary runs where there are none.
//!
//! | module | what it holds |
//! |---|---|
//! | `device` | a GPU: kernels, memory |
//! | `sums`, `matrix` | Σⱼ kᵢⱼ (Rⱼ, 1), without K in memory and with it |
//! | `bandwidth`, `affine` | median rules, the affine part of a kernel |
//! | `rules`, `dynamics` | what particles move by, (A, C) as text |
//! | `motion`, `midpoint` | one move of some blocks, and steps made of two or more |
//! | `held` | λ, where time is in units of it |
//! | `precondition`, `batches` | scales that are learnt, rows that are taken |
//! | `target` | log π and its score, on the device or by the host |
//! | `flow`, `core`, `work` | particles under way, all that they have on a device, and what is done there |
//! | `engine` | what runs, and what is refused |
//! | `launch` | all that is `unsafe` |
//!
//! Sums have a fixed order and noise comes from counters, so that the same GPU gives the same bits, run after
//! run and after a resume. They are not the bits of the host.

#![allow(
    clippy::cast_possible_wrap,
    reason = "numbers of rows and columns are checked when a run is asked for"
)]

mod affine;
mod bandwidth;
mod batches;
mod core;
mod device;
mod dynamics;
mod engine;
mod flow;
mod held;
mod launch;
mod matrix;
mod midpoint;
mod motion;
mod precondition;
mod rules;
mod sums;
mod target;
#[cfg(test)]
mod tests;
mod work;

pub use device::{Device, DeviceInfo, devices};
pub use engine::Cuda;
