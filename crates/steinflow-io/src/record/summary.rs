//! `summary.json`: what a run has found, against what is known.

use serde::{Deserialize, Serialize};

use super::{Diagnosis, number};

/// `summary.json`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Summary {
    /// The version that ran it.
    pub steinflow_version: String,
    /// Its target.
    pub model: String,
    /// Its method.
    pub method: String,
    /// How many there were.
    pub particles: usize,
    /// Collected along the run; none where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<usize>,
    /// Steps taken.
    pub steps: u64,
    /// `finished`, `at rest`, `out of time`, `interrupted` or `not done`.
    pub ended: String,
    /// Evaluations of the target.
    pub gradients: u64,
    /// Wall-clock time.
    #[serde(deserialize_with = "number")]
    pub seconds: f64,
    /// Mean of log π over the last particles.
    #[serde(deserialize_with = "number")]
    pub mean_log_density: f64,
    /// Of the samples, or of the last particles; none of a network's weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moments: Vec<Moment>,
    /// How the ensemble of `auto` fared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ensemble: Option<Ensemble>,
    /// Moments of the draws of a warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// How a network predicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// How a regression fits its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regression: Option<Regression>,
    /// Shares of the target's parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Held still for a score that was not finite.
    pub frozen_particles: Vec<usize>,
    /// How often the step size was halved.
    pub step_size_halvings: u32,
    /// Signs that the particles are not what was asked for.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Whether the particles can be believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Diagnosis>,
}

/// How an ensemble fared.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Ensemble {
    /// Whether its stop rule was met.
    pub done: bool,
    /// What was not met.
    pub reasons: Vec<String>,
    /// Draws of every particle.
    pub draws: usize,
    /// Least effective draws of coordinates, their distances from the middle, and their squares.
    #[serde(deserialize_with = "number")]
    pub effective: f64,
    /// The largest R̂ over particles.
    #[serde(deserialize_with = "number")]
    pub rhat: f64,
    /// The largest drift of a mean, in standard errors.
    #[serde(deserialize_with = "number")]
    pub drift: f64,
    /// Mean acceptance of moves while drawing.
    #[serde(deserialize_with = "number")]
    pub acceptance: f64,
    /// Step size of moves, in units in which the target is near N(0, I).
    #[serde(deserialize_with = "number")]
    pub step_size: f64,
    /// Modes that moves jump between.
    pub modes: usize,
    /// Bends: the coordinate that others depend on, and how many do.
    pub bends: Vec<(usize, usize)>,
    /// Gradients of each particle before the first draw.
    #[serde(deserialize_with = "number")]
    pub warm_up: f64,
    /// Evaluations of the target, of all particles together.
    pub evaluations: u64,
}

/// Moments of the exact draws that a warm-up has made.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct WarmUp {
    /// How many.
    pub draws: usize,
    /// Of every coordinate.
    pub mean: Vec<f64>,
    /// Of every coordinate.
    pub sd: Vec<f64>,
    /// What the sampler that made them holds of them, in a word.
    #[serde(default)]
    pub standing: String,
}

/// Moments of one coordinate.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Moment {
    /// The coordinate.
    pub name: String,
    /// Its mean.
    #[serde(deserialize_with = "number")]
    pub mean: f64,
    /// Its standard deviation.
    #[serde(deserialize_with = "number")]
    pub sd: f64,
    /// The target's own, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact_mean: Option<f64>,
    /// The target's own, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact_sd: Option<f64>,
}

/// How much of the sample is in one part of the target.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Part {
    /// The part.
    pub name: String,
    /// What was found.
    #[serde(deserialize_with = "number")]
    pub share: f64,
    /// What is right.
    #[serde(deserialize_with = "number")]
    pub exact_share: f64,
}

/// How a regression fits its data.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Regression {
    /// Rows of the data.
    pub rows: usize,
    /// Σ log p of every row given all others.
    #[serde(deserialize_with = "number")]
    pub log_score: f64,
    /// Its standard error.
    #[serde(deserialize_with = "number")]
    pub standard_error: f64,
    /// Parameters in use.
    #[serde(deserialize_with = "number")]
    pub effective_parameters: f64,
    /// Rows whose score is not to be trusted.
    pub doubtful_rows: usize,
    /// The largest Pareto k of a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_shape: Option<f64>,
    /// The data beside data that the fit draws.
    pub checks: Vec<Check>,
    /// Scores of every row's prediction from all others, of a target that is a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Scores>,
    /// The same of a target of classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_classes: Option<ClassScores>,
    /// The same of times of which some were not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_times: Option<TimeScores>,
    /// What is predicted.
    #[serde(default)]
    pub target: String,
}

/// A statistic of the data beside those of data that the fit draws.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Check {
    /// What it is.
    pub name: String,
    /// Of the data.
    #[serde(deserialize_with = "number")]
    pub seen: f64,
    /// Between these lie 90 % of those drawn.
    pub drawn: [f64; 2],
    /// The share of those drawn that are above.
    #[serde(deserialize_with = "number")]
    pub share_above: f64,
}

/// What there is on a network instead of moments of its weights.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Network {
    /// Units of every layer, from the inputs to the output.
    pub layers: Vec<usize>,
    /// Of the hidden units.
    pub activation: String,
    /// How many there are.
    pub weights: usize,
    /// What it predicts.
    pub target: String,
    /// 1/√γ in the target's own units.
    pub noise_sd: Spread,
    /// 1/√λ.
    pub weight_sd: Spread,
    /// Rows that it was fitted to.
    pub training_rows: usize,
    /// Rows that it has not seen.
    pub held_back_rows: usize,
    /// How these were chosen.
    pub held_back: String,
    /// Which particles or samples predict.
    pub predicted_with: String,
    /// Scores on the rows held back, of a target that is a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<Scores>,
    /// Scores on the rows held back, of a target of classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_test: Option<ClassScores>,
    /// The classes of such a target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// The training data beside data that the network draws.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
}

/// Over particles or samples.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Spread {
    /// Mean.
    #[serde(deserialize_with = "number")]
    pub mean: f64,
    /// Standard deviation.
    #[serde(deserialize_with = "number")]
    pub sd: f64,
}

/// Scores of predicted classes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ClassScores {
    /// How many rows.
    pub rows: usize,
    /// Mean over rows of the log of the probability of the class that was seen.
    #[serde(deserialize_with = "number")]
    pub log_likelihood: f64,
    /// Share of rows whose most probable class was seen.
    #[serde(deserialize_with = "number")]
    pub accuracy: f64,
    /// How often what was given a probability was seen, by tenths.
    pub reliability: Vec<Reliability>,
}

impl ClassScores {
    /// The mean of |seen − promised| over all classes of all rows.
    pub fn miscalibration(&self) -> f64 {
        let count: usize = self.reliability.iter().map(|bin| bin.count).sum();
        let error = |bin: &Reliability| bin.count as f64 * (bin.seen - bin.promised).abs();
        self.reliability.iter().map(error).sum::<f64>() / count as f64
    }
}

/// Classes of rows that were given about the same probability.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Reliability {
    /// How many.
    pub count: usize,
    /// The mean of the probabilities.
    pub promised: f64,
    /// The share that was seen.
    pub seen: f64,
}

/// Scores of times until an event, of which some are only known to be longer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TimeScores {
    /// How many rows.
    pub rows: usize,
    /// In how many of them the event was seen.
    pub events: usize,
    /// Mean over rows of the log of the density of the time, or of the probability of a longer one.
    #[serde(deserialize_with = "number")]
    pub log_likelihood: f64,
    /// Share of rows inside the central 50 % interval; one whose event was not seen counts by how probable that is then.
    #[serde(deserialize_with = "number")]
    pub coverage_50: f64,
    /// The same of the central 90 % interval.
    #[serde(deserialize_with = "number")]
    pub coverage_90: f64,
    /// The same of the central 95 % interval.
    #[serde(deserialize_with = "number")]
    pub coverage_95: f64,
}

/// Scores on test rows, in the target's own units unless they say otherwise.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Scores {
    /// How many rows.
    pub rows: usize,
    /// Mean over rows of the log of the particles' mean density.
    #[serde(deserialize_with = "number")]
    pub log_likelihood: f64,
    /// Root of `mse`.
    #[serde(deserialize_with = "number")]
    pub rmse: f64,
    /// Mean squared error of the predictive mean.
    #[serde(deserialize_with = "number")]
    pub mse: f64,
    /// In units of the training targets' standard deviation.
    #[serde(deserialize_with = "number")]
    pub standardised_mse: f64,
    /// Continuous ranked probability score, mean over rows.
    #[serde(deserialize_with = "number")]
    pub crps: f64,
    /// Share of rows inside the central 50 % interval.
    #[serde(deserialize_with = "number")]
    pub coverage_50: f64,
    /// Share of rows inside the central 90 % interval.
    #[serde(deserialize_with = "number")]
    pub coverage_90: f64,
    /// Share of rows inside the central 95 % interval.
    #[serde(deserialize_with = "number")]
    pub coverage_95: f64,
    /// Rows by tenths of the predictive distribution function at their target: flat when calibrated.
    pub pit: Vec<usize>,
}
