//! Runs over MPI: several processes, on one machine or many, that share the work of one run.
//!
//! Rank 0 *leads*: it has the loop, the files and the terminal, and decides. The other ranks *help*: they have the target,
//! and answer requests: log π and its score of some particles (`OverRanks`), rows of kernel sums (`Ranks`). Rank 0
//! does its own share meanwhile. So budget, interrupts, errors and what to do with a NaN are decided in one place, and
//! checkpoints know nothing of ranks. Cuts stand between tiles ([`steinflow::team`]): the number of ranks changes no bit.
//!
//! ```text
//! per velocity, all pairs     broadcast of N·(coordinates + columns) numbers, N·columns back
//! per velocity, P partners    N·(coordinates + columns) numbers out, each to one rank, N·columns back
//! per evaluation              N·d numbers out, each to one rank, N·(d + 1) back
//! ```
//!
//! Numbers travel as `f64`, which holds every `f32`. Without the feature `mpi` there is nothing here.

#[cfg(feature = "mpi")]
mod helper;
#[cfg(feature = "mpi")]
mod leader;
#[cfg(feature = "mpi")]
mod wire;

#[cfg(feature = "mpi")]
pub use helper::{Call, await_call, report, serve};
#[cfg(feature = "mpi")]
pub use leader::{OverRanks, Ranks, Session, dismiss};
#[cfg(feature = "mpi")]
pub use wire::World;
