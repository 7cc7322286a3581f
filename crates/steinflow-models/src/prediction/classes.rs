//! Predictions of classes and their scores: for every row the mean over particles of the probability of each class.

use rayon::prelude::*;
use steinflow::Error;
use steinflow::random::{Purpose, stream};

use super::{LeaveOneOut, mean, require_length};
use crate::Result;
use crate::regression::draw_class;

/// The classes of every row of test data, as each particle sees them.
///
/// ```
/// use steinflow_models::prediction::ClassPredictive;
///
/// // Two particles, one row, two classes.
/// let row = [0.8_f64, 0.2, 0.6, 0.4].map(f64::ln).to_vec();
/// let predictive = ClassPredictive::new(2, vec![row])?;
/// assert!((predictive.probabilities(0)[0] - 0.7).abs() < 1e-12);
/// assert_eq!(predictive.accuracy(&[0.0])?, 1.0);
/// assert!((predictive.log_likelihoods(&[1.0])?[0] - 0.3_f64.ln()).abs() < 1e-12);
/// # Ok::<(), steinflow_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ClassPredictive {
    classes: usize,
    /// log P of every class, particle after particle, of every row.
    rows: Vec<Vec<f64>>,
}

/// Rows to whose classes a probability between two limits was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reliability {
    /// How many, each class of a row counting by itself.
    pub count: usize,
    /// The mean of those probabilities.
    pub promised: f64,
    /// The share of those that were seen.
    pub seen: f64,
}

impl ClassPredictive {
    /// From log P of every class, particle after particle, of every row.
    pub fn new(classes: usize, rows: Vec<Vec<f64>>) -> Result<Self> {
        let is_whole = |row: &Vec<f64>| !row.is_empty() && row.len().is_multiple_of(classes.max(1));
        if classes < 2 || rows.is_empty() || !rows.iter().all(is_whole) {
            let remedy = "give at least 1 row, 1 particle and 2 classes";
            return Err(Error::setting("prediction", format!("{} rows", rows.len()), remedy).into());
        }
        if let Some(row) = rows.iter().position(|row| row.iter().any(|x| x.is_nan())) {
            let remedy = "leave this particle out, or take a smaller step size";
            let value = format!("NaN in row {row}");
            return Err(Error::setting("predicted probability", value, remedy).into());
        }
        Ok(Self { classes, rows })
    }

    /// Rows of test data.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The probability of every class of a row.
    pub fn probabilities(&self, row: usize) -> Vec<f64> {
        let (all, mut sums) = (&self.rows[row], vec![0.0; self.classes]);
        for particle in all.chunks_exact(self.classes) {
            sums.iter_mut().zip(particle).for_each(|(sum, x)| *sum += x.exp());
        }
        let particles = (all.len() / self.classes) as f64;
        for sum in &mut sums {
            *sum /= particles;
        }
        sums
    }

    /// Data sets of all rows, classes by their numbers, drawn from the particles in turn.
    pub fn draws(&self, count: usize, seed: u64) -> Vec<Vec<f64>> {
        let set = |set: usize| {
            let mut random = stream(seed, Purpose::Prediction, 0, set as u64);
            let row = |row: &Vec<f64>| {
                let particle = set % (row.len() / self.classes);
                let own = row[particle * self.classes..][..self.classes].iter();
                draw_class(&own.map(|log| log.exp()).collect::<Vec<_>>(), &mut random)
            };
            self.rows.iter().map(row).collect()
        };
        (0..count).into_par_iter().map(set).collect()
    }

    /// Every row's log P of the class that was seen.
    pub fn log_likelihoods(&self, targets: &[f64]) -> Result<Vec<f64>> {
        require_length("targets", targets.len(), self.rows())?;
        let of_row = |(row, y): (usize, &f64)| self.probabilities(row)[*y as usize].ln();
        Ok(targets.iter().enumerate().map(of_row).collect())
    }

    /// The share of rows whose most probable class was seen.
    pub fn accuracy(&self, targets: &[f64]) -> Result<f64> {
        require_length("targets", targets.len(), self.rows())?;
        let is_hit = |(row, y): (usize, &f64)| {
            let probabilities = self.probabilities(row);
            let best =
                (0..self.classes).max_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]));
            f64::from(u8::from(best == Some(*y as usize)))
        };
        Ok(mean(&targets.iter().enumerate().map(is_hit).collect::<Vec<_>>()))
    }

    /// How often what was given a probability was seen, by `bins` of equal width; those without any are left out.
    pub fn reliability(&self, targets: &[f64], bins: usize) -> Result<Vec<Reliability>> {
        require_length("targets", targets.len(), self.rows())?;
        let probabilities = (0..self.rows()).map(|row| self.probabilities(row));
        Ok(reliability(probabilities, targets, bins))
    }

    /// How well each row would be predicted by particles that have not seen it, for rows that they have seen.
    pub fn leave_one_out(&self, targets: &[f64]) -> Result<LeaveOneOut> {
        require_length("targets", targets.len(), self.rows())?;
        Ok(LeaveOneOut::new(self.rows(), |row| {
            let seen = targets[row] as usize;
            self.rows[row].chunks_exact(self.classes).map(|particle| particle[seen]).collect()
        }))
    }
}

/// How often what was given a probability was seen: the probabilities of every row's classes, and the class of each.
pub fn reliability(
    probabilities: impl Iterator<Item = Vec<f64>>,
    targets: &[f64],
    bins: usize,
) -> Vec<Reliability> {
    let mut sums = vec![(0, 0.0, 0.0); bins];
    for (row, y) in probabilities.zip(targets) {
        for (class, p) in row.into_iter().enumerate() {
            let (count, promised, seen) = &mut sums[((p * bins as f64) as usize).min(bins - 1)];
            *count += 1;
            *promised += p;
            *seen += f64::from(u8::from(class == *y as usize));
        }
    }
    let filled = sums.into_iter().filter(|(count, ..)| *count > 0);
    filled
        .map(|(count, promised, seen)| Reliability {
            count,
            promised: promised / count as f64,
            seen: seen / count as f64,
        })
        .collect()
}
