//! How far particles are from the target by its score, and from other points.

use serde::Serialize;
use steinflow::diagnostics::{
    EnergyDistance, Statistic, SteinKernel, pooled_bandwidth, sliced_wasserstein,
    squared_mean_discrepancy,
};
use steinflow::kernel::{Bandwidth, Radial};
use steinflow::{LogDensity as _, Matrix};

use super::past_run::PastRun;
use crate::args::DiagnoseArguments;
use crate::error::Result;

/// More points than this are thinned: every number here takes their square.
const MOST_POINTS: usize = 1000;
/// Lines that a sliced distance projects on.
const DIRECTIONS: usize = 200;

/// A Stein discrepancy.
#[derive(Debug, Serialize)]
pub struct SteinRow {
    /// Of the Langevin operator, or of the run's own dynamics (A, C).
    pub operator: String,
    pub kernel: &'static str,
    pub bandwidth: f64,
    pub squared_u: f64,
    pub squared_v: f64,
    pub p_value: f64,
}

/// Distances to other points.
#[derive(Debug, Serialize)]
pub struct DistanceRow {
    pub to: String,
    pub energy: f64,
    pub squared_mmd: f64,
    pub sliced_wasserstein: f64,
}

fn thin(points: &Matrix<f64>) -> Matrix<f64> {
    let kept = points.rows().min(MOST_POINTS);
    Matrix::from_fn(kept, points.cols(), |i, j| points.row(i * points.rows() / kept)[j])
}

/// Both kernels, for the plain operator on the sample and, where the run has auxiliary variables or a
/// metric, for its own dynamics on the last particles.
pub fn stein(run: &PastRun, arguments: &DiagnoseArguments) -> Result<Vec<SteinRow>> {
    let theta = thin(&run.sample());
    let mut score = Matrix::zeros(theta.rows(), theta.cols());
    let mut log_density = vec![0.0; theta.rows()];
    run.model.evaluate(theta.as_ref(), None, &mut log_density, score.as_mut())?;
    let mut rows = Vec::new();
    let rule = Bandwidth::parse(&arguments.bandwidth)?;
    let kernels = [("se", Radial::SquaredExponential), ("imq", Radial::InverseMultiquadric)];
    let mut push =
        |operator: String, kernel: &'static str, bandwidth, u: &SteinKernel| -> Result<()> {
            let test = u.test(arguments.replicates, arguments.seed)?;
            rows.push(SteinRow {
                operator,
                kernel,
                bandwidth,
                squared_u: test.squared_discrepancy,
                squared_v: u.squared_discrepancy(Statistic::V)?,
                p_value: test.p_value,
            });
            Ok(())
        };
    for (name, radial) in kernels {
        let h = rule.of(theta.as_ref());
        let u = SteinKernel::new(theta.as_ref(), score.as_ref(), radial, h)?;
        push("Langevin".to_owned(), name, h, &u)?;
    }
    if run.structure.blocks() > 1 || run.structure.coefficients() > 0 {
        let states = thin(&run.state);
        for (name, radial) in kernels {
            let h = rule.of(states.as_ref());
            let u =
                SteinKernel::of_dynamics(&run.model, &*run.dynamics, states.clone(), radial, h)?;
            push(format!("(A, C) of {}", run.config.method), name, h, &u)?;
        }
    }
    Ok(rows)
}

/// The sample's distances to `reference`.
pub fn between(sample: &Matrix<f64>, reference: &Matrix<f64>, to: String) -> Result<DistanceRow> {
    let (x, y) = (thin(sample), thin(reference));
    let (x, y) = (x.as_ref(), y.as_ref());
    let h = pooled_bandwidth(x, y)?;
    Ok(DistanceRow {
        to,
        energy: EnergyDistance::to(y)?.of(x)?,
        squared_mmd: squared_mean_discrepancy(x, y, Radial::SquaredExponential, h, Statistic::U)?,
        sliced_wasserstein: sliced_wasserstein(x, y, DIRECTIONS, 0)?,
    })
}
