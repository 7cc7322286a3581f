//! Scores against central differences of the log density, in both precisions.

use steinflow_models::Model;
use steinflow_models::regression::{LinearRegression, LogisticRegression};
use steinflow_models::toy::{
    Banana, Crescent, Funnel, Gaussian, GaussianMixture, Isotropic, Ring, TriCrescent,
};

use crate::support::{at, random_points, table};

/// Its name, how far from 0 to look at it, and the model in both precisions.
type Example = (&'static str, f64, Box<dyn Model<f64>>, Box<dyn Model<f32>>);

fn models() -> Vec<Example> {
    macro_rules! both {
        ($name:literal, $spread:expr, $model:expr) => {
            ($name, $spread, Box::new($model) as _, Box::new($model) as _)
        };
    }
    let (linear, logistic) = (table(80, false), table(80, true));
    vec![
        both!("correlated gaussian", 2.0, Gaussian::correlated()),
        both!("standard gaussian", 2.0, Gaussian::standard(1).unwrap()),
        both!("autoregressive gaussian", 2.0, Gaussian::autoregressive(7, -0.6).unwrap()),
        both!("mixture", 3.0, GaussianMixture::default()),
        both!("tri-crescent", 1.5, TriCrescent),
        both!("crescent", 1.5, Crescent),
        both!("banana", 2.0, Banana::default()),
        both!("long banana", 2.0, Banana::new(10.0, 0.03).unwrap()),
        both!("plane funnel", 1.5, Funnel::default()),
        both!("funnel", 1.5, Funnel::new(6).unwrap()),
        both!("ring", 1.5, Ring::default()),
        both!("standard normal", 1.5, Isotropic::new(3).unwrap()),
        both!("wide ring", 1.5, Ring::new(1.0, 0.8).unwrap()),
        both!("linear", 1.0, LinearRegression::new(&linear, None, 2.5, Some(0.7)).unwrap()),
        both!("logistic", 1.0, LogisticRegression::new(&logistic, None, 0.5).unwrap()),
    ]
}

#[test]
fn scores_are_the_gradients_of_the_log_densities() {
    for (seed, (name, spread, in_f64, in_f32)) in models().into_iter().enumerate() {
        let points = random_points(40, in_f64.dim(), spread, seed as u64);
        for i in 0..points.rows() {
            // Points that both precisions can hold.
            let rounded: Vec<f32> = points.row(i).iter().map(|&x| x as f32).collect();
            let mut point: Vec<f64> = rounded.iter().map(|&x| f64::from(x)).collect();
            let (value, score) = at(&*in_f64, &point, None);
            let (value_f32, score_f32) = at(&*in_f32, &rounded, None);
            let difference = f64::from(value_f32) - value;
            assert!(
                difference.abs() < 1e-4 * value.abs().max(1.0),
                "{name}: log density {value} is off by {difference:e} in f32 at {point:?}"
            );
            for j in 0..point.len() {
                let (centre, step) = (point[j], 1e-5);
                point[j] = centre + step;
                let above = at(&*in_f64, &point, None).0;
                point[j] = centre - step;
                let below = at(&*in_f64, &point, None).0;
                point[j] = centre;
                let slope = (above - below) / (2.0 * step);
                let scale = score.iter().fold(1.0_f64, |scale, s| scale.max(s.abs()));
                assert!(
                    (slope - score[j]).abs() < 1e-6 * scale,
                    "{name}: score {j} is {}, the slope {slope} at {point:?}",
                    score[j]
                );
                assert!(
                    (slope - f64::from(score_f32[j])).abs() < 1e-3 * scale,
                    "{name}: score {j} is {} in f32, the slope {slope} at {point:?}",
                    score_f32[j]
                );
            }
        }
    }
}

#[test]
fn far_away_points_have_finite_scores() {
    for (name, _, in_f64, in_f32) in models() {
        let far = vec![30.0; in_f64.dim()];
        let (value, score) = at(&*in_f64, &far, None);
        assert!(value.is_finite() && score.iter().all(|s| s.is_finite()), "{name} in f64");
        let (value, score) = at(&*in_f32, &vec![30.0; far.len()], None);
        assert!(value.is_finite() && score.iter().all(|s| s.is_finite()), "{name} in f32");
    }
}

#[test]
fn buffers_of_the_wrong_shape_are_rejected() {
    use steinflow::{Error, Matrix};
    for (name, _, model, _) in models() {
        let dim = model.dim();
        let evaluate = |theta: (usize, usize), values: usize, score: (usize, usize)| {
            let (theta, mut score) =
                (Matrix::zeros(theta.0, theta.1), Matrix::zeros(score.0, score.1));
            model.evaluate(theta.as_ref(), None, &mut vec![0.0; values], score.as_mut())
        };
        assert!(evaluate((3, dim), 3, (3, dim)).is_ok(), "{name}");
        for (what, result) in [
            ("theta", evaluate((3, dim + 1), 3, (3, dim + 1))),
            ("log_density", evaluate((3, dim), 2, (3, dim))),
            ("score", evaluate((3, dim), 3, (2, dim))),
        ] {
            let Err(Error::Shape { what: found, .. }) = result else { panic!("{name}: {what}") };
            assert_eq!(found, what, "{name}");
        }
        assert!(evaluate((0, dim), 0, (0, dim)).is_ok(), "{name} without particles");
    }
}

/// What a target says of a particle does not depend on which others are asked about: ranks of a run cut between every
/// 16 of them.
#[test]
fn answers_do_not_depend_on_company() {
    use steinflow::{LogDensity, MatMut, MatRef, Matrix, Real};
    fn check<T: Real>(name: &str, model: &dyn Model<T>, points: &Matrix<f64>) {
        let (theta, dim): (Matrix<T>, usize) = (points.cast(), model.dim());
        let ask = |from: usize, to: usize| {
            let some =
                MatRef::new(&theta.as_slice()[from * dim..to * dim], to - from, dim).unwrap();
            let (mut values, mut score) =
                (vec![T::zero(); to - from], vec![T::zero(); (to - from) * dim]);
            let slopes = MatMut::new(&mut score, to - from, dim).unwrap();
            LogDensity::<T>::evaluate(&model, some, None, &mut values, slopes).unwrap();
            (values, score)
        };
        let (values, score) = ask(0, theta.rows());
        for (from, to) in [(0, 16), (16, 80), (80, 208), (208, 640), (640, 647)] {
            let (own, slopes) = ask(from, to);
            assert_eq!(own, values[from..to], "{name}, {}: {from} to {to}", T::NAME);
            assert_eq!(slopes, score[from * dim..to * dim], "{name}, {}: {from} to {to}", T::NAME);
        }
    }
    for (name, spread, in_f64, in_f32) in models() {
        let points = random_points(647, in_f64.dim(), spread, 1);
        check(name, &*in_f64, &points);
        check(name, &*in_f32, &points);
    }
}
