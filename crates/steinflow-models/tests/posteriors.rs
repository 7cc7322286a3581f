//! The posteriors: their scores, their data, and the references of `experiments/posteriors`.

use std::ops::ControlFlow;

use steinflow::ensemble::{Ensemble, Options};
use steinflow::testing::{check_score, random_states};
use steinflow::{LogDensity, MatMut, MatRef, Matrix, Minibatch};
use steinflow_models::posteriors::{Half, Posterior, all, find};
use steinflow_models::{Describe, Model};

/// Mean and standard deviation of every parameter, by name.
fn references(posterior: &str) -> Vec<(String, f64, f64)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/posteriors/references.csv");
    let mut reader = csv::Reader::from_path(path).unwrap();
    let rows = reader.records().map(Result::unwrap).filter(|row| &row[0] == posterior);
    rows.map(|row| (row[1].to_owned(), row[2].parse().unwrap(), row[3].parse().unwrap())).collect()
}

/// A posterior in units of its own standard deviations, where a finite difference is one.
struct White<'a> {
    posterior: &'a Posterior,
    references: &'a [(String, f64, f64)],
}

impl LogDensity<f64> for White<'_> {
    fn dim(&self) -> usize {
        self.references.len()
    }

    fn evaluate(
        &self,
        white: MatRef<'_, f64>,
        rows: Option<&Minibatch>,
        log_density: &mut [f64],
        mut score: MatMut<'_, f64>,
    ) -> steinflow::Result<()> {
        let theta = Matrix::from_fn(white.rows(), white.cols(), |i, j| {
            self.references[j].1 + self.references[j].2 * white.row(i)[j]
        });
        self.posterior.evaluate(
            theta.as_ref(),
            rows,
            log_density,
            MatMut::new(score.as_mut_slice(), white.rows(), white.cols()).unwrap(),
        )?;
        for i in 0..white.rows() {
            let row = score.row_mut(i).iter_mut();
            row.zip(self.references).for_each(|(score, (_, _, sd))| *score *= sd);
        }
        Ok(())
    }
}

#[test]
fn scores_are_slopes_of_log_densities_where_the_mass_is() {
    let mut checked = 0;
    for info in all() {
        let (posterior, references) = (info.build(), references(info.name));
        // One without a reference has no scale to be checked on.
        if references.is_empty() {
            continue;
        }
        checked += 1;
        let names: Vec<&String> = references.iter().map(|(name, ..)| name).collect();
        assert_eq!(names, posterior.parameter_names().iter().collect::<Vec<_>>(), "{}", info.name);
        let white = White { posterior: &posterior, references: &references };
        check_score(&white, random_states(3, white.dim(), 1).as_ref())
            .unwrap_or_else(|broken| panic!("{}: {broken}", info.name));
    }
    assert!(checked >= 37, "{checked}");
}

#[test]
fn names_are_sorted_and_halves_alternate() {
    assert!(all().len() >= 25);
    assert!(all().windows(2).all(|pair| pair[0].name < pair[1].name));
    for (i, info) in all().iter().enumerate() {
        assert_eq!(info.half, if i % 2 == 0 { Half::Open } else { Half::Apart }, "{}", info.name);
    }
    assert!(find("no-such-posterior").is_none());
}

#[test]
fn every_posterior_is_finite_at_zero_in_both_precisions() {
    fn at_zero<T: steinflow::Real>(model: &dyn Model<T>) -> (T, Vec<T>) {
        let (mut value, mut score) = ([T::zero()], Matrix::zeros(1, model.dim()));
        let zero = Matrix::zeros(1, model.dim());
        model.evaluate(zero.as_ref(), None, &mut value, score.as_mut()).unwrap();
        (value[0], score.into_vec())
    }
    for info in all() {
        let posterior = info.build();
        let (value, score) = at_zero::<f64>(&posterior);
        assert!(value.is_finite() && score.iter().all(|s| s.is_finite()), "{}", info.name);
        let (rounded, rounded_score) = at_zero::<f32>(&posterior);
        assert_eq!(rounded, value as f32);
        assert!(rounded_score.iter().zip(&score).all(|(&a, &b)| a == b as f32));
    }
}

/// Two builds of a posterior have the same simulated data.
#[test]
fn data_are_the_same_every_time() {
    for info in all() {
        let dim = info.build().parameter_names().len();
        let points = Matrix::from_fn(1, dim, |_, j| 0.01 * (j as f64).cos());
        let value = || {
            let mut value = [0.0];
            let mut score = Matrix::<f64>::zeros(1, dim);
            info.build().evaluate(points.as_ref(), None, &mut value, score.as_mut()).unwrap();
            value[0].to_bits()
        };
        assert_eq!(value(), value(), "{}", info.name);
    }
}

/// The residual sum of squares at the coefficients that NIST certifies for Longley's table, with
/// employment in millions.
#[test]
fn longleys_table_is_copied_right() {
    let certified = [
        -3_482.258_634_595_82,
        0.015_061_872_271_373_3,
        -0.035_819_179_292_591,
        -0.020_202_298_038_168_3,
        -0.010_332_268_671_735_9,
        -0.051_104_105_653_586_5,
        1.829_151_464_613_55,
    ];
    let value = |log_sd: f64| {
        let theta = Matrix::from_fn(1, 8, |_, j| if j < 7 { certified[j] } else { log_sd });
        let (mut value, mut score) = ([0.0], Matrix::zeros(1, 8));
        let posterior = find("longley-linear").unwrap().build();
        posterior.evaluate(theta.as_ref(), None, &mut value, score.as_mut()).unwrap();
        value[0]
    };
    // log π(s) = −½ S e^(−2s) − 16 s + s − ½ (e^s/5)², with s = log sd, and what does not depend on s.
    let own = |s: f64| -15.0 * s - 0.5 * (s.exp() / 5.0).powi(2);
    let (narrow, wide) = (-4.0, 0.0);
    let difference = (value(wide) - own(wide)) - (value(narrow) - own(narrow));
    let squares = 2.0 * difference / ((-2.0 * narrow).exp() - (-2.0 * wide).exp());
    assert!((squares - 0.836_424_055_505_915).abs() < 1e-9, "{squares}");
}

/// Coaching in the two parametrisations is one posterior: θ = μ + τz, dθ = τ⁸ dz.
#[test]
fn eight_schools_are_the_same_both_ways() {
    let value = |name: &str, theta: &Matrix<f64>| {
        let (mut value, mut score) = ([0.0], Matrix::zeros(1, 10));
        let posterior = find(name).unwrap().build();
        posterior.evaluate(theta.as_ref(), None, &mut value, score.as_mut()).unwrap();
        value[0]
    };
    let z = random_states(1, 10, 3);
    let (mu, log_tau) = (z.row(0)[0], z.row(0)[1]);
    let theta =
        Matrix::from_fn(
            1,
            10,
            |_, j| if j < 2 { z.row(0)[j] } else { mu + log_tau.exp() * z.row(0)[j] },
        );
    let centred = value("eight-schools-centred", &theta) + 8.0 * log_tau;
    assert!((centred - value("eight-schools-non-centred", &z)).abs() < 1e-12);
}

/// What bends that chance suggests, windows before the particles have settled, or a few hard failures would
/// spoil: collinear columns (the national accounts), errors in x, a near-unit root, shuttle flights.
#[test]
fn the_default_ends_by_itself_on_awkward_posteriors() {
    let cases = [
        ("longley-linear", 0),
        ("longley-linear", 1),
        ("measurement-error", 1),
        ("airline-seasonal", 0),
        ("challenger-logistic", 0),
        ("challenger-logistic", 1),
    ];
    for (name, seed) in cases {
        let posterior = find(name).unwrap().build();
        let options = Options { seed, ..Options::default() };
        let mut ensemble = Ensemble::new(references(name).len(), options).unwrap();
        while !ensemble.is_done() {
            ensemble.advance(&posterior, &mut |_| ControlFlow::Continue(())).unwrap();
        }
        let report = ensemble.report();
        assert!(report.done, "{name}, seed {seed}: {:?}", report.reasons);
        assert!(report.gradients < 1700.0, "{name}, seed {seed}: {} gradients", report.gradients);
    }
}
