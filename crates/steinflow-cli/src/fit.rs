//! How a regression fits its data: rows left out, and data drawn from the fit, for its summary.

use std::io::Write;

use steinflow::{Matrix, Real};
use steinflow_config::Config;
use steinflow_io::record::{Check, Regression};
use steinflow_models::Model;
use steinflow_models::data::read_fitted_rows;

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
    let (left_out_scores, left_out_classes) = match left_out.scores() {
        Some(AnyScores::Numbers(scores)) => (Some(scores), None),
        Some(AnyScores::Classes(scores)) => (None, Some(scores)),
        None => (None, None),
    };
    let checks = fitted.checks(&draws, &table)?.into_iter().map(|check| Check {
        name: check.name,
        seen: check.seen,
        drawn: check.drawn,
        share_above: check.share_above,
    });
    let regression = Regression {
        rows: scores.scores.len(),
        log_score: scores.total(),
        standard_error: scores.standard_error(),
        effective_parameters: scores.effective_parameters(),
        doubtful_rows: scores.doubtful(),
        largest_shape: scores.shapes.iter().copied().max_by(f64::total_cmp),
        checks: checks.collect(),
        left_out: left_out_scores,
        left_out_classes,
        target: fitted.target().to_owned(),
    };
    Ok(Some(Fit { regression, csv: left_out.to_csv(&LEVELS) }))
}

/// For people.
pub fn print(regression: &Regression, out: &mut impl Write) -> Result<()> {
    let Regression { rows, log_score, standard_error, effective_parameters, .. } = regression;
    let Regression { doubtful_rows, checks, .. } = regression;
    writeln!(
        out,
        "\neach of {rows} rows predicted from the others: log score {} ± {}, {} parameters in use, {doubtful_rows} \
         rows doubtful\n",
        short(*log_score),
        short(*standard_error),
        short(*effective_parameters),
    )?;
    let row = |check: &Check| {
        let [low, high] = check.drawn.map(short);
        let share = format!("{:.0} %", 100.0 * check.share_above);
        vec![check.name.clone(), short(check.seen), format!("{low} to {high}"), share]
    };
    let header = ["", "data", "drawn from the fit (90 %)", "above the data"];
    if checks.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", table(&header, checks.iter().map(row).collect()))?;
    Ok(())
}
