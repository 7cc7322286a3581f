//! Samplers for a density known up to a constant, with deterministic interacting particles.
//!
//! One recipe: pick a [target] π, pick MCMC [dynamics] (A, C), and run them as a
//! [diffusion](field::Diffusion) or [de-randomised](field::Stein). The modules stand in that order.
//!
//! | module | what it holds |
//! |---|---|
//! | [`target`] | log π and its score, for a batch of particles |
//! | [`dynamics`] | (A, C): structure, coefficients, divergence; auxiliary variables |
//! | [`kernel`] | radial kernels, what they see, bandwidth rules |
//! | [`field`] | the velocity of every particle, or drift and noise |
//! | [`flow`](mod@flow) | the seam between what moves particles and where they live |
//! | [`team`] | who does the work: this process alone, or others with it |
//! | [`integrator`] | Euler, symmetric splitting, Adagrad/RMSprop/Adam, step sizes |
//! | [`run`] | the loop: builder, observers, stop rules, checkpoints |
//! | [`coordinates`] | learnt coordinates in which a target is near N(0, I) |
//! | [`ensemble`] | the default sampler: warm-up, exact draws, a verdict |
//! | [`method`] | the catalogue of samplers that have a name |
//! | [`settings`](mod@settings) | named settings: what a flag, a config and a keyword have in common |
//! | [`diagnostics`] | how far particles are from what they should be |
//! | [`testing`] | laws that any dynamics, kernel or target can be checked with |
//!
//! After Shen, Heinonen and Kaski, [De-randomizing MCMC dynamics with the diffusion Stein
//! operator](https://arxiv.org/abs/2110.03768) (2021).

mod arrays;
pub mod coordinates;
pub mod diagnostics;
pub mod dynamics;
pub mod engine;
pub mod ensemble;
mod error;
pub mod field;
pub mod flow;
pub mod integrator;
pub mod kernel;
mod linalg;
mod matrix;
pub mod method;
pub mod precondition;
mod quantiles;
pub mod random;
mod real;
pub mod run;
pub mod settings;
mod system;
pub mod target;
pub mod team;
pub mod testing;

pub use arrays::Arrays;
pub use error::{Error, Result};
pub use matrix::{MatMut, MatRef, Matrix};
pub use real::Real;
pub use run::{Outcome, Sampler};
pub use system::System;
pub use target::{LogDensity, Minibatch};
