//! How well a fitted network predicts rows it has not seen.

use serde::{Deserialize, Serialize};
use steinflow::{MatRef, Real};
use steinflow_models::network::NetworkFit;
use steinflow_models::prediction::Predictive;

use crate::error::Result;

/// Scores on test rows, in the target's own units unless they say otherwise.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Scores {
    pub rows: usize,
    /// Mean over rows of the log of the particles' mean density.
    pub log_likelihood: f64,
    pub rmse: f64,
    pub mse: f64,
    /// In units of the training targets' standard deviation.
    pub standardised_mse: f64,
    /// Continuous ranked probability score, mean over rows.
    pub crps: f64,
    /// Share of rows inside the central 50, 90 and 95 % intervals.
    pub coverage_50: f64,
    pub coverage_90: f64,
    pub coverage_95: f64,
    /// Rows by tenths of the predictive distribution function at their target: flat when calibrated.
    pub pit: Vec<usize>,
}

impl Scores {
    /// Judges predictions in the target's own units; `unit` is what one standard unit is in those.
    pub fn new(predictive: &Predictive, targets: &[f64], unit: f64) -> Result<Self> {
        let mse = predictive.mse(targets)?;
        Ok(Self {
            rows: targets.len(),
            log_likelihood: predictive.mean_log_likelihood(targets)?,
            rmse: mse.sqrt(),
            mse,
            standardised_mse: mse / (unit * unit),
            crps: predictive.mean_crps(targets)?,
            coverage_50: predictive.coverage(targets, 0.5)?,
            coverage_90: predictive.coverage(targets, 0.9)?,
            coverage_95: predictive.coverage(targets, 0.95)?,
            pit: predictive.pit_histogram(targets, 10)?,
        })
    }

    /// Judges particles by the test rows of a fit; none where no rows were held back.
    pub fn of_test_rows<T: Real>(
        fit: &NetworkFit<T>,
        theta: MatRef<'_, T>,
    ) -> Result<Option<Self>> {
        let data = &fit.data;
        if data.test_targets().is_empty() {
            return Ok(None);
        }
        let predictive = fit.network.predict(theta, data.test_inputs())?;
        let scaling = data.target_scaling();
        let in_units = predictive.in_units(scaling)?;
        Self::new(&in_units, data.test_targets_in_units(), scaling.sd).map(Some)
    }
}
