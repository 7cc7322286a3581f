//! How a regression fits its data: rows left out, and data drawn from the fit, for its summary.

use std::io::Write;

use steinflow::{Matrix, Real};
use steinflow_config::Config;
use steinflow_io::record::{Check, Regression};
use steinflow_models::Model;
use steinflow_models::data::read_fitted_rows;
use steinflow_models::prediction;

use crate::error::Result;
use crate::network::{LEVELS, thinned};
use crate::predict::{AnyScores, Rows};
use crate::summary::{short, table};

/// More densities than this, one for each row and draw, take longer than anybody wants to wait at the end of
/// a run: then fewer draws count, but no fewer than these. `steinflow compare` takes the time.
const MOST_DENSITIES: usize = 10_000_000;
const FEWEST_DRAWS: usize = 400;

/// What the summary says of a fit, and every row as all others predict it.
pub struct Fit {
    pub regression: Regression,
    pub csv: String,
}

/// Of draws of the parameters as they are shown, `chains` at a time; none for a model without data or with
/// too much of it.
pub fn judge<T: Real>(
    config: &Config,
    model: &dyn Model<T>,
    shown: &Matrix<T>,
    chains: usize,
) -> Result<Option<Fit>> {
    let (spec, fitted) = (config.spec(), model.fitted());
    let (Some(fitted), Some(data)) = (fitted, &spec.data) else { return Ok(None) };
    let most = MOST_DENSITIES / model.data_rows().max(1);
    if most < FEWEST_DRAWS {
        return Ok(None);
    }
    let all = thinned(shown.clone(), chains);
    let count = all.rows().min(most);
    let draws = Matrix::from_fn(count, all.cols(), |i, j| {
        all.row((i + 1) * all.rows() / count - 1)[j].as_f64()
    });
    let table = read_fitted_rows(data, spec.data_dir.as_deref(), fitted.recipe())?;
    let scores = fitted.leave_one_out(&draws, &table)?;
    let left_out = Rows::new(&fitted, fitted.predict_left_out(&draws, &table)?, &table)?;
    let (mut left_out_scores, mut left_out_classes, mut left_out_times) = (None, None, None);
    match left_out.scores() {
        Some(AnyScores::Numbers(scores)) => left_out_scores = Some(scores),
        Some(AnyScores::Classes(scores)) => left_out_classes = Some(scores),
        Some(AnyScores::Times(scores)) => left_out_times = Some(scores),
        None => {}
    }
    let regression = Regression {
        rows: scores.scores.len(),
        log_score: scores.total(),
        standard_error: scores.standard_error(),
        effective_parameters: scores.effective_parameters(),
        doubtful_rows: scores.doubtful(),
        largest_shape: scores.shapes.iter().copied().max_by(f64::total_cmp),
        checks: recorded(fitted.checks(&draws, &table)?),
        left_out: left_out_scores,
        left_out_classes,
        left_out_times,
        target: fitted.target().to_owned(),
    };
    Ok(Some(Fit { regression, csv: left_out.to_csv(&LEVELS) }))
}

/// Checks as a summary has them.
pub fn recorded(checks: Vec<prediction::Check>) -> Vec<Check> {
    let record = |prediction::Check { name, seen, drawn, share_above }| Check {
        name,
        seen,
        drawn,
        share_above,
    };
    checks.into_iter().map(record).collect()
}

/// For people.
pub fn print(regression: &Regression, out: &mut impl Write) -> Result<()> {
    let Regression { rows, log_score, standard_error, effective_parameters, .. } = regression;
    writeln!(
        out,
        "\neach of {rows} rows predicted from the others: log score {} ± {}, {} parameters in use, {} rows doubtful\n",
        short(*log_score),
        short(*standard_error),
        short(*effective_parameters),
        regression.doubtful_rows,
    )?;
    print_checks(&regression.checks, out)
}

/// The data beside data that the fit draws.
pub fn print_checks(checks: &[Check], out: &mut impl Write) -> Result<()> {
    let row = |check: &Check| {
        let [low, high] = check.drawn.map(short);
        let share = format!("{:.0} %", 100.0 * check.share_above);
        vec![check.name.clone(), short(check.seen), format!("{low} to {high}"), share]
    };
    let header = ["", "data", "drawn from the fit (90 %)", "above the data"];
    if !checks.is_empty() {
        writeln!(out, "{}", table(&header, checks.iter().map(row).collect()))?;
    }
    Ok(())
}
