//! What a run on a network tells: how its rows were split, how well it predicts those held back.

use std::io::Write;

use steinflow::run::{Outcome, Samples};
use steinflow::{Matrix, Real};
use steinflow_io::plot::CalibrationPlot;
use steinflow_io::record::{
    Check, Network, PREDICTIONS, PREDICTIONS_PICTURE, STANDARDISATION, Spread,
};
use steinflow_io::{RunFolder, write_json};
use steinflow_models::Describe as _;
use steinflow_models::network::{Architecture, NetworkFit, Precision, TestRows};
use steinflow_models::prediction;

use super::{LEVELS, Predictions, Record, thinned};
use crate::classes;
use crate::error::Result;
use crate::fit;
use crate::progress;
use crate::scores::print_scores;
use crate::summary::short;
use steinflow_config::Config;

/// The files of a network's run.
pub struct Report {
    pub summary: Network,
    /// Why there are no predictions.
    pub trouble: Option<String>,
    record: Record,
    csv: Option<String>,
    picture: Option<Result<Vec<u8>>>,
}

impl Report {
    pub fn new<T: Real>(
        config: &Config,
        fit: &NetworkFit<T>,
        outcome: &Outcome<T>,
        samples: Option<&Samples<T>>,
        quiet: bool,
    ) -> Self {
        let data = &fit.data;
        let (theta, predicted_with) = predictors(outcome, samples);
        let checks = checks(fit, &theta);
        if !data.standardisation().classes().is_empty() {
            return Self::of_classes(fit, &theta, predicted_with).with_checks(checks);
        }
        let is_test = !data.test_rows().is_empty();
        let (inputs, targets) = if is_test {
            (data.test_inputs(), data.test_targets_in_units())
        } else {
            (data.train_inputs(), data.train_targets_in_units())
        };
        let bar = progress::bar("predicting", quiet);
        let predictions = Predictions::new(
            &fit.network,
            theta.as_ref(),
            inputs,
            Some(targets),
            data.target_scaling(),
            &LEVELS,
            &bar,
        );
        let mut summary = summary(fit, &theta, predicted_with);
        let record = Record::new(data.standardisation(), &fit.spec);
        match predictions {
            Ok(predictions) => {
                let title = if is_test {
                    format!("Predictions on {} rows that were held back", targets.len())
                } else {
                    format!("Predictions on the {} rows of the TRAINING data", targets.len())
                };
                let picture =
                    picture(config, &summary, outcome.steps, &predictions, targets, &title);
                let csv = is_test.then(|| predictions.to_csv(data.test_rows(), Some(targets)));
                summary.test = predictions.scores.filter(|_| is_test).map(Into::into);
                let report = Self { summary, trouble: None, record, csv, picture: Some(picture) };
                report.with_checks(checks)
            }
            // Particles that took a while to get are worth keeping though they cannot predict.
            Err(error) => {
                let trouble = Some(format!("there are no predictions: {error}"));
                Self { summary, trouble, record, csv: None, picture: None }
            }
        }
    }

    /// The same for a target of classes.
    fn of_classes<T: Real>(fit: &NetworkFit<T>, theta: &Matrix<T>, predicted_with: String) -> Self {
        let (data, own) = (&fit.data, fit.data.standardisation());
        let mut summary = summary(fit, theta, predicted_with);
        summary.classes = own.classes().to_vec();
        let record = Record::new(own, &fit.spec);
        let mut report = Self { summary, trouble: None, record, csv: None, picture: None };
        if data.test_rows().is_empty() {
            return report;
        }
        match fit.network.predict_classes(theta.as_ref(), data.test_inputs()) {
            Ok(predictive) => {
                let targets = data.test_targets_in_units();
                let rows: Vec<Vec<f64>> =
                    (0..predictive.rows()).map(|row| predictive.probabilities(row)).collect();
                report.summary.class_test = Some(classes::score(&rows, targets));
                let numbers = data.test_rows();
                report.csv = Some(classes::to_csv(own.classes(), numbers, Some(targets), &rows));
            }
            Err(error) => report.trouble = Some(format!("there are no predictions: {error}")),
        }
        report
    }

    fn with_checks(mut self, checks: Result<Vec<Check>>) -> Self {
        match checks {
            Ok(checks) => self.summary.checks = checks,
            Err(error) => {
                let trouble = || format!("there are no predictive checks: {error}");
                self.trouble.get_or_insert_with(trouble);
            }
        }
        self
    }

    /// What stands beside a verdict on weights, which hardly anybody wants to know: a network is judged by what it
    /// predicts.
    pub fn in_a_sentence(&self) -> String {
        if let Some(test) = &self.summary.class_test {
            return format!(
                " That is said of the weights. Predictions are judged by their scores: of the {} rows held back, {:.0} \
                 % have the class that was most probable.",
                test.rows,
                100.0 * test.accuracy
            );
        }
        match &self.summary.test {
            Some(test) => format!(
                " That is said of the weights. Predictions are judged by their scores: {:.0} % of the {} rows held \
                 back lie inside their 90 % intervals.",
                100.0 * test.coverage_90,
                test.rows
            ),
            None => {
                " That is said of the weights; hold rows back to judge the predictions.".to_owned()
            }
        }
    }

    pub fn write(&self, folder: &mut RunFolder) -> Result<()> {
        folder.write_with(STANDARDISATION, |file| write_json(&self.record, file))?;
        if let Some(csv) = &self.csv {
            folder.write(PREDICTIONS, csv.as_bytes())?;
        }
        match &self.picture {
            Some(Ok(png)) => folder.write(PREDICTIONS_PICTURE, png)?,
            Some(Err(error)) => tell!("warning: there is no picture: {error}"),
            None => {}
        }
        Ok(())
    }
}

/// The parameters that predict, collected samples where there are any, and what they are.
fn predictors<T: Real>(outcome: &Outcome<T>, samples: Option<&Samples<T>>) -> (Matrix<T>, String) {
    let Some(samples) = samples.filter(|samples| !samples.steps().is_empty()) else {
        let theta = outcome.theta();
        let last = format!("the {} last particles", theta.rows());
        return (theta, last);
    };
    let all = samples.theta();
    let count = all.rows();
    let theta = thinned(all, samples.chains());
    let kept = match theta.rows() {
        kept if kept < count => format!("{kept} of the {count} collected samples, evenly spaced"),
        _ => format!("the {count} collected samples"),
    };
    (theta, kept)
}

/// The training data beside data that the particles draw for its rows, some of them where there are many.
fn checks<T: Real>(fit: &NetworkFit<T>, theta: &Matrix<T>) -> Result<Vec<Check>> {
    const MOST_SETS: usize = 400;
    const MOST_NUMBERS: usize = 4_000_000;
    let data = &fit.data;
    let (inputs, targets) = (data.train_inputs(), data.train_targets_in_units());
    let sets = MOST_SETS.min(MOST_NUMBERS / targets.len().max(1)).max(1);
    let count = theta.rows().min(sets);
    let some = Matrix::from_fn(count, theta.cols(), |i, j| {
        theta.row((i + 1) * theta.rows() / count - 1)[j]
    });
    let seen = [targets.to_vec()];
    let classes = data.standardisation().classes();
    let found = if classes.is_empty() {
        let predictive = fit.network.predict(some.as_ref(), inputs)?;
        let drawn = predictive.in_units(data.target_scaling())?.draws(sets, 0);
        prediction::Check::of_numbers(&seen, &drawn)
    } else {
        let drawn = fit.network.predict_classes(some.as_ref(), inputs)?.draws(sets, 0);
        prediction::Check::of_classes(classes, &seen, &drawn)
    };
    Ok(fit::recorded(found))
}

fn summary<T: Real>(fit: &NetworkFit<T>, theta: &Matrix<T>, predicted_with: String) -> Network {
    let (data, spec, names) = (&fit.data, &fit.spec, fit.network.parameter_names());
    let sd_of = |precision: Precision, name: &str, unit: f64| {
        let learned = names.iter().position(|parameter| parameter == name);
        let sd = |i: usize| match (precision, learned) {
            (Precision::Learned { .. }, Some(j)) => (-0.5 * theta.row(i)[j].as_f64()).exp(),
            (Precision::Fixed(value), _) => value.sqrt().recip(),
            (Precision::Learned { .. }, None) => f64::NAN,
        };
        let count = theta.rows() as f64;
        let mean = (0..theta.rows()).map(sd).sum::<f64>() / count;
        let variance = (0..theta.rows()).map(|i| (sd(i) - mean).powi(2)).sum::<f64>() / count;
        Spread { mean: unit * mean, sd: unit * variance.sqrt() }
    };
    let Architecture { hidden, noise_by_input, .. } = &spec.architecture;
    let outputs = spec.architecture.outputs();
    let layers = [&[data.train_inputs().cols()], &hidden[..], &[outputs]].concat();
    let held_back = match &spec.test_rows {
        TestRows::None => "none".to_owned(),
        TestRows::Fraction { fraction, seed } => {
            format!("at random (--test-fraction {fraction}, --seed {seed})")
        }
        TestRows::Standard(index) => format!("by standard split {index} (--split {index})"),
        TestRows::File { path, index } => format!("by split {index} of {}", path.display()),
    };
    Network {
        activation: format!("{:?}", spec.architecture.activation).to_lowercase(),
        weights: layers.windows(2).map(|pair| (pair[0] + 1) * pair[1]).sum(),
        layers,
        target: data.standardisation().target_name.clone(),
        noise_sd: if *noise_by_input {
            noise_over_rows(fit, theta)
        } else {
            sd_of(spec.precisions.noise, "log_gamma", data.target_scaling().sd)
        },
        weight_sd: sd_of(spec.precisions.weights, "log_lambda", 1.0),
        training_rows: data.train_targets().len(),
        held_back_rows: data.test_rows().len(),
        held_back,
        predicted_with,
        test: None,
        class_test: None,
        classes: Vec::new(),
        checks: Vec::new(),
    }
}

/// The noise at some rows of the training data, by some of the particles: enough for a mean and a spread.
fn noise_over_rows<T: Real>(fit: &NetworkFit<T>, theta: &Matrix<T>) -> Spread {
    const MOST: usize = 200;
    let (inputs, unit) = (fit.data.train_inputs(), fit.data.target_scaling().sd);
    let spaced = |place: usize, all: usize| place * all / MOST.min(all);
    let rows = Matrix::from_fn(MOST.min(inputs.rows()), inputs.cols(), |i, j| {
        inputs.row(spaced(i, inputs.rows()))[j]
    });
    let some = Matrix::from_fn(MOST.min(theta.rows()), theta.cols(), |i, j| {
        theta.row(spaced(i, theta.rows()))[j]
    });
    let noise = fit.network.predict(some.as_ref(), &rows).map(|predictive| predictive.noise());
    let (mean, sd) = noise.unwrap_or((f64::NAN, f64::NAN));
    Spread { mean: unit * mean, sd: unit * sd }
}

fn picture(
    config: &Config,
    summary: &Network,
    steps: u64,
    predictions: &Predictions,
    targets: &[f64],
    title: &str,
) -> Result<Vec<u8>> {
    let (low, high) = (&predictions.quantiles[0], &predictions.quantiles[LEVELS.len() - 1]);
    let intervals: Vec<(f64, f64)> = low.iter().copied().zip(high.iter().copied()).collect();
    let pit = predictions.scores.as_ref().map_or(&[][..], |scores| &scores.pit);
    let caption = format!("{}, {steps} steps, {}", config.method, summary.predicted_with);
    let plot = CalibrationPlot {
        targets,
        means: &predictions.means,
        intervals: &intervals,
        interval_name: "90 % interval",
        pit,
        target_name: &summary.target,
        title,
        caption: &caption,
    };
    Ok(plot.draw()?.png()?)
}

/// For people.
pub fn print(network: &Network, out: &mut impl Write) -> Result<()> {
    let layers: Vec<String> = network.layers.iter().map(ToString::to_string).collect();
    let (noise, weight) = (network.noise_sd, network.weight_sd);
    let noise = match network.classes.len() {
        0 => format!(
            "noise sd {} ± {} in units of {}",
            short(noise.mean),
            short(noise.sd),
            network.target
        ),
        count => format!("{} is one of {count} classes", network.target),
    };
    writeln!(
        out,
        "\n{} weights (layers {}, {}) of sd {:.3} ± {:.3}; {noise}",
        network.weights,
        layers.join("-"),
        network.activation,
        weight.mean,
        weight.sd,
    )?;
    if network.test.is_none() && network.class_test.is_none() {
        if network.held_back_rows == 0 {
            writeln!(
                out,
                "all {} rows trained: hold some back with --test-fraction 0.1, --split K or \
                 --split-file FILE to see how well it predicts",
                network.training_rows
            )?;
        }
        return fit::print_checks(&network.checks, out);
    }
    writeln!(
        out,
        "{} rows trained, {} were held back {}; predicted with {}\n",
        network.training_rows, network.held_back_rows, network.held_back, network.predicted_with
    )?;
    if let Some(test) = &network.test {
        print_scores(test, out, &network.target)?;
    }
    network.class_test.iter().try_for_each(|test| classes::print_scores(test, out))?;
    fit::print_checks(&network.checks, out)
}
