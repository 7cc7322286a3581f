//! K·R for the squared exponential kernel, with as many right-hand sides as coordinates.

use std::path::Path;

use serde_json::json;
use steinflow::Matrix;
use steinflow::engine::{Factor, KernelSums, kernel_sums};
use steinflow::kernel::Radial;

use super::{Make, Ours, goals};
use crate::{Result, inputs};

pub fn all() -> Vec<Make> {
    [(10_000, 3), (10_000, 64), (100_000, 3), (100_000, 64)]
        .map(|(points, dim)| {
            let (n, d) = (points as f64, dim as f64);
            // Half of |x|² of a pair is 2d: typical kernel values are neither 0 nor 1.
            let bandwidth = 2.0 * d;
            Make {
                name: format!("Kernel sums, {points} points in {dim} dimensions"),
                kind: "kernel_sums",
                given: json!({ "bandwidth": bandwidth }),
                goals: goals(&[("KeOps", 2.0)]),
                flops: Some(4.0 * n * n * d),
                tolerance: 1e-4,
                is_long: points == 100_000,
                ours: Box::new(move |folder| {
                    Ok(Box::new(Sums::new(points, dim, bandwidth as f32, folder)?))
                }),
            }
        })
        .into()
}

struct Sums {
    points: Matrix<f32>,
    values: Matrix<f32>,
    rate: f32,
}

impl Sums {
    fn new(points: usize, dim: usize, bandwidth: f32, folder: &Path) -> Result<Self> {
        let (points, values) =
            (inputs::normal(points, dim, 1.0, 5), inputs::normal(points, dim, 1.0, 6));
        inputs::write(folder, "points", &points)?;
        inputs::write(folder, "values", &values)?;
        Ok(Self { points, values, rate: bandwidth.recip() })
    }

    fn sums(&self) -> Matrix<f32> {
        let factors = [Factor::new(self.points.as_ref(), self.rate)];
        let (radial, values) = (Radial::SquaredExponential, self.values.as_ref());
        kernel_sums(&KernelSums { radial, factors: &factors, values, slopes: &[] }).0
    }
}

impl Ours for Sums {
    fn answer(&mut self) -> Result<Vec<f32>> {
        Ok(self.sums().into_vec())
    }

    fn repeat(&mut self) -> Result<()> {
        std::hint::black_box(self.sums());
        Ok(())
    }
}
