//! Steinflow over MPI: several processes, on one machine or many, that share the work of one run or the jobs of an
//! experiment.
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
//! Jobs are handed out one at a time ([`jobs`]). Without the feature `mpi` all of this is here too, and nobody else ever is.

mod helper;
pub mod jobs;
mod leader;
mod sums;
#[cfg(not(feature = "mpi"))]
#[path = "nobody.rs"]
mod wire;
#[cfg(feature = "mpi")]
mod wire;
mod words;
mod world;

pub use helper::{Call, await_call, report, serve};
pub use leader::{OverRanks, Ranks, Session, dismiss};
pub use words::Number;
pub use world::{OnSilence, World, is_helper};
