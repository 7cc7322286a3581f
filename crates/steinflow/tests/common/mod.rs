//! What several test files share: reference vectors, small targets, catalogue of dynamics.
#![allow(dead_code)]

use rand::Rng as _;
use rand_distr::{Distribution, Gamma, StandardNormal};
use serde_json::Value as Json;
use steinflow::dynamics::Dynamics;
use steinflow::dynamics::metric::{EnergyMetric, EnergySign};
use steinflow::method::{DynamicsKind, Kind, Parameter, Parameters, Value};
use steinflow::random::{Purpose, stream};
use steinflow::target::PerParticle;
use steinflow::{LogDensity, Matrix, Real};

pub fn golden() -> Json {
    serde_json::from_str(include_str!("../fixtures/golden.json")).unwrap()
}

pub fn number(value: &Json) -> f64 {
    value.as_f64().unwrap()
}

pub fn numbers(value: &Json) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

pub fn matrix(value: &Json) -> Matrix<f64> {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(numbers).collect();
    Matrix::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])
}

/// −(θ − m)ᵀP(θ − m)/2.
pub fn gaussian<T: Real>(mean: Vec<f64>, precision: Matrix<f64>) -> impl LogDensity<T> {
    let dim = mean.len();
    PerParticle::new(dim, move |theta: &[T], score: &mut [T]| {
        let offset: Vec<f64> = theta.iter().zip(&mean).map(|(x, m)| x.as_f64() - m).collect();
        let mut value = 0.0;
        for i in 0..dim {
            let row: f64 = precision.row(i).iter().zip(&offset).map(|(p, x)| p * x).sum();
            score[i] = T::of(-row);
            value -= 0.5 * offset[i] * row;
        }
        T::of(value)
    })
}

/// log ⅓ Σᵢ exp(−x⁴/10 − ½(4(y − zᵢ) − x²)²).
pub fn tri_crescent<T: Real>() -> impl LogDensity<T> {
    PerParticle::new(2, |theta: &[T], score: &mut [T]| {
        let (x, y) = (theta[0].as_f64(), theta[1].as_f64());
        let ridges = [-2.0, 0.0, 2.0].map(|z| 4.0 * (y - z) - x * x);
        let highest = ridges.iter().map(|e| -0.5 * e * e).fold(f64::NEG_INFINITY, f64::max);
        let weights = ridges.map(|e| (-0.5 * e * e - highest).exp());
        let total: f64 = weights.iter().sum();
        let mean: f64 = ridges.iter().zip(&weights).map(|(e, w)| e * w / total).sum();
        score[0] = T::of(-0.4 * x.powi(3) + 2.0 * x * mean);
        score[1] = T::of(-4.0 * mean);
        T::of(-x.powi(4) / 10.0 + highest + (total / 3.0).ln())
    })
}

/// The targets of the reference vectors, by their name there.
pub fn target<T: Real>(golden: &Json, name: &str) -> Box<dyn LogDensity<T>> {
    if name == "toy2" {
        return Box::new(tri_crescent());
    }
    let target = &golden[name]["target"];
    Box::new(gaussian(numbers(&target["mean"]), matrix(&target["precision"])))
}

/// What the reference vectors call a dynamics of the catalogue.
pub fn golden_name(kind: DynamicsKind) -> &'static str {
    match kind.name() {
        "ld" => "svgd",
        "sgrld" => "rsvgd",
        "third-order" => "third",
        other => other,
    }
}

/// The dynamics of the reference vectors, by their name there, and their blocks.
pub fn dynamics<T: Real>(golden: &Json, name: &str) -> (Box<dyn Dynamics<T>>, Vec<&'static str>) {
    let parameter = |name: &str| number(&golden["params"][name]);
    let (plain, sign) = match name.strip_suffix("_logdensity") {
        Some(plain) => (plain, EnergySign::LogDensity),
        None => (name, EnergySign::Energy),
    };
    let parameters = Parameters {
        friction: parameter("A"),
        sigma: parameter("sigma2").sqrt(),
        mu: parameter("mu"),
        gamma: parameter("gamma"),
        sigma_u: parameter("tau2").sqrt(),
        metric: EnergyMetric { scale: parameter("metric_D"), offset: parameter("metric_C"), sign },
        ..Parameters::default()
    };
    let kind = DynamicsKind::ALL.iter().find(|&&kind| golden_name(kind) == plain);
    let kind = kind.unwrap_or_else(|| panic!("no dynamics {name}"));
    let dynamics = kind.build::<T>(&parameters);
    let blocks = dynamics.structure(1).block_names();
    // What the library calls u is s there.
    let blocks = blocks.into_iter().map(|block| if block == "u" { "s" } else { block }).collect();
    (dynamics, blocks)
}

/// The catalogue, every number of a dynamics different from the others and from 1, and every word.
pub fn catalogue() -> Vec<(String, Box<dyn Dynamics<f64>>)> {
    let mut all = Vec::new();
    for &kind in DynamicsKind::ALL {
        let words = |parameter: &Parameter| match parameter.kind() {
            Kind::Word(words) => words.len(),
            Kind::Number | Kind::WholeNumber => 1,
        };
        let turns = kind.parameters().iter().map(words).max().unwrap_or(1);
        for turn in 0..turns {
            let mut parameters = Parameters::default();
            for (place, &parameter) in kind.parameters().iter().enumerate() {
                let value = match parameter.kind() {
                    Kind::Number => Value::Number(0.6 + 0.23 * place as f64),
                    Kind::WholeNumber => Value::WholeNumber(3 + place as u64),
                    Kind::Word(words) => Value::Word(words[turn % words.len()].to_owned()),
                };
                parameters.set(parameter, &value).unwrap();
            }
            all.push((format!("{} {turn}", kind.name()), kind.build(&parameters)));
        }
    }
    all
}

/// The state z of the reference vectors, its blocks side by side.
pub fn state(case: &Json, blocks: &[&str]) -> Matrix<f64> {
    let parts: Vec<Matrix<f64>> = blocks.iter().map(|block| matrix(&case[block])).collect();
    let dim = parts[0].cols();
    Matrix::from_fn(parts[0].rows(), dim * parts.len(), |i, j| parts[j / dim].row(i)[j % dim])
}

/// max |a − b| / max |b|.
pub fn relative_error<T: Real>(found: &Matrix<T>, expected: &Matrix<f64>) -> f64 {
    assert_eq!((found.rows(), found.cols()), (expected.rows(), expected.cols()));
    let pairs = found.as_slice().iter().zip(expected.as_slice());
    let difference = pairs.map(|(a, b)| (a.as_f64() - b).abs()).fold(0.0, f64::max);
    difference / expected.as_slice().iter().map(|b| b.abs()).fold(0.0, f64::max)
}

/// Exact draws from the tri-crescent: x⁴/10 ~ Gamma(¼, 1), 4(y − zᵢ) − x² ~ N(0, 1).
pub fn exact_tri_crescent(count: usize, seed: u64) -> Matrix<f64> {
    let mut theta = Matrix::zeros(count, 2);
    for i in 0..count {
        let mut generator = stream(seed, Purpose::Exact, 0, i as u64);
        let quartic: f64 = Gamma::new(0.25, 1.0).unwrap().sample(&mut generator);
        let sign: f64 = StandardNormal.sample(&mut generator);
        let noise: f64 = StandardNormal.sample(&mut generator);
        let x = (10.0 * quartic).powf(0.25) * sign.signum();
        let z = [-2.0, 0.0, 2.0][(generator.next_u64() % 3) as usize];
        theta.row_mut(i).copy_from_slice(&[x, z + (x * x + noise) / 4.0]);
    }
    theta
}
