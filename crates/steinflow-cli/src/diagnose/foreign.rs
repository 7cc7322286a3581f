//! Draws that were made elsewhere: chains, or a single cloud of particles.

use std::io::Write as _;
use std::path::Path;

use steinflow::Matrix;
use steinflow::diagnostics::Judged;
use steinflow::dynamics::{Dynamics, Langevin};
use steinflow::run::{Samples, WarmMoments};
use steinflow_io::record::Diagnosis;
use steinflow_io::write_json;
use steinflow_models::ModelSpec;

use super::{PointFile, verdict};
use crate::args::DiagnoseArguments;
use crate::error::Result;

/// Columns that say which chain a draw is of, and which of its draws it is.
const CHAIN: &str = "chain";
const DRAW: &str = "draw";

/// Judges the draws of a file.
pub fn judge(path: &Path, model: &str, arguments: &DiagnoseArguments) -> Result<()> {
    let spec =
        ModelSpec { dim: arguments.dim, data: arguments.data.clone(), ..ModelSpec::named(model) };
    let model = steinflow_models::build::<f64>(&spec)?;
    let file = PointFile::open("draws", path)?;
    let mut theta = file.columns(&model.parameter_names())?;
    if let Some(units) = model.units() {
        theta = units.hide(&theta);
    }
    let chains = file.columns(&[CHAIN.to_owned(), DRAW.to_owned()]).ok();
    let (last, draws) = match chains {
        Some(labels) => in_chains(&theta, &labels)?,
        None => (theta, None),
    };
    let structure = Dynamics::<f64>::structure(&Langevin::new(), model.dim());
    let exact = model.exact_moments().map(WarmMoments::from);
    let judged = Judged {
        is_interacting: arguments.resting,
        is_random: !arguments.resting,
        draws: draws.as_ref(),
        exact_moments: exact.as_ref(),
        ..Judged::cloud(&model, &last, &structure)
    };
    let found: Diagnosis = judged.diagnose()?.into();
    let mut out = anstream::stdout().lock();
    if arguments.json {
        write_json(&found, &mut out)?;
        writeln!(out)?;
        return Ok(());
    }
    verdict::print(&found, &mut out)
}

/// The last draw of every chain, and all draws, one of all chains after the other.
fn in_chains(
    theta: &Matrix<f64>,
    labels: &Matrix<f64>,
) -> Result<(Matrix<f64>, Option<Samples<f64>>)> {
    let mut order: Vec<usize> = (0..theta.rows()).collect();
    let key = |i: usize| (labels.row(i)[1], labels.row(i)[0]);
    order.sort_by(|&a, &b| {
        let (a, b) = (key(a), key(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let chains = order.iter().take_while(|&&i| key(i).0 == key(order[0]).0).count();
    let sorted = Matrix::from_fn(theta.rows(), theta.cols(), |i, j| theta.row(order[i])[j]);
    let first = theta.rows().saturating_sub(chains);
    let last = Matrix::from_fn(chains, theta.cols(), |i, j| sorted.row(first + i)[j]);
    let steps = (0..(theta.rows() / chains.max(1)) as u64).collect();
    Ok((last, Some(Samples::resume(0, 1, chains, steps, sorted)?)))
}
