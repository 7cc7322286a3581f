//! What is timed.

mod kernel_sums;
mod network;
mod regressions;
mod svgd;

use std::path::Path;

use serde_json::Value;
use steinflow::{MatRef, Matrix};

use crate::Result;

/// Our side of a work, set up.
pub trait Ours: Send {
    /// Does it once from the common inputs; before any repetition.
    fn answer(&mut self) -> Result<Vec<f32>>;
    fn repeat(&mut self) -> Result<()>;
    /// Does only the arithmetic that nobody can do without; false where that is not known.
    fn floor(&mut self) -> Result<bool> {
        Ok(false)
    }
}

/// What [`Ours::floor`] is called among the contenders.
pub const FLOOR: &str = "the arithmetic alone";

/// A work before it is set up.
pub struct Make {
    pub name: String,
    /// What the peers know it as.
    pub kind: &'static str,
    pub given: Value,
    /// How many times faster than whom we want to be.
    pub goals: Vec<(String, f64)>,
    pub flops: Option<f64>,
    pub tolerance: f64,
    pub is_long: bool,
    /// Writes the inputs to a folder and sets up our side.
    pub ours: Setup,
}

type Setup = Box<dyn Fn(&Path) -> Result<Box<dyn Ours>>>;

pub fn all(quick: bool) -> Vec<Make> {
    let works = svgd::all().into_iter().chain(regressions::all());
    let works = works.chain(network::all()).chain(kernel_sums::all());
    works.filter(|make| !quick || !make.is_long).collect()
}

/// How far particles have moved: what answers are compared by, because it is all that a step computes.
fn moved(now: MatRef<'_, f32>, before: &Matrix<f32>) -> Vec<f32> {
    now.as_slice().iter().zip(before.as_slice()).map(|(now, before)| now - before).collect()
}

fn goals(goals: &[(&str, f64)]) -> Vec<(String, f64)> {
    goals.iter().map(|(name, goal)| ((*name).to_owned(), *goal)).collect()
}
