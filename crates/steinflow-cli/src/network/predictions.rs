//! Predictions row by row, in the target's own units: mean, standard deviation, quantiles.

use std::fmt::Write as _;

use indicatif::ProgressBar;
use steinflow::{MatRef, Matrix, Real};
use steinflow_io::record::column;
use steinflow_models::data::Scaling;
use steinflow_models::network::Bnn;

use crate::error::Result;
use crate::scores::Scores;

/// The quantiles that are written unless others are asked for: median, 50 % and 90 % interval.
pub const LEVELS: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// Means of particles that are held at a time, in blocks of rows.
const BLOCK: usize = 1 << 20;

pub struct Predictions {
    pub means: Vec<f64>,
    pub sds: Vec<f64>,
    pub levels: Vec<f64>,
    /// For every level, a quantile a row.
    pub quantiles: Vec<Vec<f64>>,
    /// Where the targets are known.
    pub scores: Option<Scores>,
}

impl Predictions {
    /// What the particles `theta` predict for standardised `inputs`, judged by `targets` in their own
    /// units. The memory this takes does not grow with rows times particles.
    pub fn new<T: Real>(
        network: &Bnn<T>,
        theta: MatRef<'_, T>,
        inputs: &Matrix<f64>,
        targets: Option<&[f64]>,
        scaling: Scaling,
        levels: &[f64],
        bar: &ProgressBar,
    ) -> Result<Self> {
        let mut all = Self {
            means: Vec::with_capacity(inputs.rows()),
            sds: Vec::with_capacity(inputs.rows()),
            levels: levels.to_vec(),
            quantiles: vec![Vec::with_capacity(inputs.rows()); levels.len()],
            scores: None,
        };
        let mut parts = Vec::new();
        let block = (BLOCK / theta.rows().max(1)).max(1);
        bar.set_length(inputs.rows() as u64);
        for first in (0..inputs.rows()).step_by(block) {
            let rows = first..(first + block).min(inputs.rows());
            let part = Matrix::from_fn(rows.len(), inputs.cols(), |i, j| inputs.row(first + i)[j]);
            let predictive = network.predict(theta, &part)?.in_units(scaling)?;
            all.means.extend(predictive.means());
            all.sds.extend(predictive.sds());
            for (quantiles, &level) in all.quantiles.iter_mut().zip(levels) {
                quantiles.extend(predictive.quantiles(level)?);
            }
            if let Some(targets) = targets {
                parts.push(Scores::new(&predictive, &targets[rows.clone()], scaling.sd)?);
            }
            bar.set_position(rows.end as u64);
        }
        bar.finish_and_clear();
        all.scores = Scores::combined(&parts);
        Ok(all)
    }

    /// One row a line, under the numbers `rows`; every number in full.
    pub fn to_csv(&self, rows: &[usize], targets: Option<&[f64]>) -> String {
        let target = targets.map(|_| column::TARGET);
        let mut header: Vec<String> =
            [column::ROW].into_iter().chain(target).map(Into::into).collect();
        header.extend([column::MEAN, column::SD].map(Into::into));
        header.extend(self.levels.iter().copied().map(column::quantile));
        let mut text = header.join(",") + "\n";
        for (i, row) in rows.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{row}");
            let target = targets.map(|targets| targets[i]);
            let quantiles = self.quantiles.iter().map(|quantiles| quantiles[i]);
            for number in target.into_iter().chain([self.means[i], self.sds[i]]).chain(quantiles) {
                let _ = write!(text, ",{number}");
            }
            text.push('\n');
        }
        text
    }
}
