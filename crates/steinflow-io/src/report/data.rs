//! What a page shows of a run: parts of its files, thinned to what an eye can see.

use serde::{Serialize, Serializer};

use crate::record::{Diagnosis, Summary};

/// One run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// What it is called: the name of its folder.
    pub name: String,
    /// Its `summary.json`.
    #[serde(skip)]
    pub summary: Summary,
    /// Its `diagnosis.json`, if there is one.
    #[serde(skip)]
    pub diagnosis: Option<Diagnosis>,
    /// Its `config.toml`.
    #[serde(skip)]
    pub config: String,
    /// What is not shown, or not all of it, and why.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// Its particles, or the samples it has collected.
    pub points: Points,
    /// Marginal densities of the target, for the first coordinates or all.
    pub marginals: Vec<Line>,
    /// Its course.
    pub trace: Trace,
    /// log π behind the particles, in two dimensions.
    pub density: Option<Grid>,
    /// The particles as they moved.
    pub frames: Option<Frames>,
    /// What it predicts for rows that were held back.
    pub predictions: Option<Predictions>,
}

/// θ, a coordinate a column.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Points {
    /// `particles` or `samples`.
    pub kind: String,
    /// How many there are in the run.
    pub count: usize,
    /// Coordinates of the run.
    pub dim: usize,
    /// Names of the coordinates that are here.
    pub names: Vec<String>,
    /// Their values.
    #[serde(serialize_with = "short_columns")]
    pub columns: Vec<Vec<f64>>,
}

/// A curve over evenly spaced places.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Line {
    /// The first place.
    pub low: f64,
    /// The last place.
    pub high: f64,
    /// The curve's height at each.
    #[serde(serialize_with = "short")]
    pub values: Vec<f64>,
}

/// A surface over a rectangle: row after row in y, and within a row along x.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Grid {
    /// Limits of the first coordinate.
    pub x: (f64, f64),
    /// Limits of the second coordinate.
    pub y: (f64, f64),
    /// Places along each side.
    pub side: usize,
    /// log π minus its maximum.
    #[serde(serialize_with = "rough")]
    pub values: Vec<f64>,
}

/// The course of a run, a row a recorded step.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Trace {
    /// Rows in the run's own table, where this one has fewer.
    pub rows: usize,
    /// The columns that a page draws against.
    pub step: Vec<u64>,
    /// Evaluations of the target.
    pub gradients: Vec<u64>,
    /// Wall-clock seconds.
    #[serde(serialize_with = "short")]
    pub seconds: Vec<f64>,
    /// Name and values of every other column.
    #[serde(serialize_with = "named_columns")]
    pub columns: Vec<(String, Vec<f64>)>,
    /// Step, gradients and kernel Stein discrepancy, where it was computed.
    pub ksd: Vec<(u64, u64, f64)>,
}

/// Particles at some steps.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Frames {
    /// The step of every frame.
    pub steps: Vec<u64>,
    /// The coordinates (one or two) of every frame, each a value a particle.
    #[serde(serialize_with = "short_frames")]
    pub values: Vec<Vec<Vec<f64>>>,
}

/// Predictions for rows that were held back, or left out one by one, with a 90 % interval.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Predictions {
    /// Which rows these are.
    #[serde(skip)]
    pub title: String,
    /// Rows in the run's own table.
    pub rows: usize,
    /// What was predicted.
    pub target: String,
    /// What was observed.
    #[serde(serialize_with = "short")]
    pub observed: Vec<f64>,
    /// What was expected.
    #[serde(serialize_with = "short")]
    pub mean: Vec<f64>,
    /// The 5 % quantile.
    #[serde(serialize_with = "short")]
    pub low: Vec<f64>,
    /// The 95 % quantile.
    #[serde(serialize_with = "short")]
    pub high: Vec<f64>,
    /// Rows by tenths of the predictive distribution.
    pub pit: Vec<usize>,
    /// Promised and found shares of rows inside central intervals.
    pub coverage: Vec<(f64, f64)>,
    /// Promised and found shares of classes, where the target has those.
    pub reliability: Vec<(f64, f64)>,
}

/// At most `most` of `count` rows, evenly spaced, the first and the last among them.
pub fn evenly(count: usize, most: usize) -> Vec<usize> {
    if count <= most || most < 2 {
        return (0..count.min(most)).collect();
    }
    // In 128 bits the product cannot overflow.
    let place = |k: usize| (k as u128 * (count - 1) as u128 / (most - 1) as u128) as usize;
    (0..most).map(place).collect()
}

/// As many digits as a plot can show.
fn rounded(x: f64, digits: usize) -> Option<f64> {
    x.is_finite().then(|| format!("{x:.0$e}", digits - 1).parse().unwrap_or(x))
}

fn short<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(|&x| rounded(x, 5)))
}

fn rough<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(|&x| rounded(x, 3)))
}

fn list(values: &[f64], digits: usize) -> Vec<Option<f64>> {
    values.iter().map(|&x| rounded(x, digits)).collect()
}

fn short_columns<S: Serializer>(columns: &[Vec<f64>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(columns.iter().map(|column| list(column, 5)))
}

fn short_frames<S: Serializer>(frames: &[Vec<Vec<f64>>], serializer: S) -> Result<S::Ok, S::Error> {
    let frame = |frame: &Vec<Vec<f64>>| frame.iter().map(|column| list(column, 4)).collect();
    serializer.collect_seq(frames.iter().map(frame).map(|frame: Vec<_>| frame))
}

fn named_columns<S: Serializer>(
    columns: &[(String, Vec<f64>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(columns.iter().map(|(name, values)| (name, list(values, 6))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_is_even_and_keeps_both_ends() {
        assert_eq!(evenly(3, 5), [0, 1, 2]);
        assert_eq!(evenly(5, 3), [0, 2, 4]);
        let few = evenly(1_000_000, 2000);
        assert_eq!((few.len(), few[0], few[1999]), (2000, 0, 999_999));
        assert!(few.windows(2).all(|pair| (500..=501).contains(&(pair[1] - pair[0]))));
        assert!(evenly(10, 0).is_empty());
    }

    #[test]
    fn what_is_not_finite_is_null() {
        let points = Points {
            columns: vec![vec![1.234_567_8, f64::NAN, f64::NEG_INFINITY, -0.0]],
            ..Points::default()
        };
        let json = serde_json::to_value(points).unwrap();
        assert_eq!(json["columns"].to_string(), "[[1.2346,null,null,-0.0]]");
    }
}
