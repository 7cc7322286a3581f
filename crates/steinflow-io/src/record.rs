//! What the files of a run folder are called and what they hold: one description, which whoever writes
//! them and whoever reads them share.
//!
//! | file | |
//! |---|---|
//! | [`CONFIG`] | the settings, as text |
//! | [`SUMMARY`], [`DIAGNOSIS`] | JSON: [`Summary`], [`Diagnosis`] |
//! | [`PARTICLES`], [`SAMPLES`], [`POINTS`], [`TRACE`], [`FRAMES`] | Parquet: a [`Table`] with the columns of [`column`](mod@column) |
//! | [`PREDICTIONS`] | CSV, with the columns of [`column`](mod@column) |
//! | [`STANDARDISATION`] | what predicting takes beside the particles |
//! | [`CHECKPOINT`] | the run between two steps |
//!
//! A field that the first version had must be there, so that a file without it is an error and never
//! shown blank; one that came later has a default, so that older folders open.

mod diagnosis;
mod finished_run;
mod summary;
mod table;

pub use diagnosis::{Diagnosis, Evidence};
pub use finished_run::FinishedRun;
pub use summary::{
    Check, ClassScores, Ensemble, Moment, Network, Part, Regression, Reliability, Scores, Spread,
    Summary, TimeScores, WarmUp,
};
pub use table::{Table, column, state_columns};

use serde::{Deserialize, Deserializer};

/// The settings of the run: run it again with `steinflow sample --config`.
pub const CONFIG: &str = "config.toml";
/// A [`Summary`].
pub const SUMMARY: &str = "summary.json";
/// A [`Diagnosis`].
pub const DIAGNOSIS: &str = "diagnosis.json";
/// The last particles: θ, auxiliary variables as [`state_columns`] names them, log π.
pub const PARTICLES: &str = "particles.parquet";
/// Collected samples: chain, draw, step, θ.
pub const SAMPLES: &str = "samples.parquet";
/// Points at rest with equal weights: θ.
pub const POINTS: &str = "points.parquet";
/// The course of the run.
pub const TRACE: &str = "trace.parquet";
/// The particles at some steps: frame, step, particle, θ.
pub const FRAMES: &str = "frames.parquet";
/// Predictions for rows that were held back.
pub const PREDICTIONS: &str = "predictions.csv";
/// What predicting takes beside the particles.
pub const STANDARDISATION: &str = "standardisation.json";
/// Where the run has ended, to go on from.
pub const CHECKPOINT: &str = "checkpoint";
/// The particles, drawn.
pub const PICTURE: &str = "particles.png";
/// The predictions, drawn.
pub const PREDICTIONS_PICTURE: &str = "predictions.png";
/// The page about the run.
pub const REPORT: &str = "report.html";

/// A number; JSON writes one that is not finite as `null`.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}
