//! Log density and gradient of every regression with a linear predictor: 100 particles, 10⁴ rows, 20 features.

use std::fmt::Write as _;
use std::path::Path;

use rayon::prelude::*;
use serde_json::json;
use steinflow::engine::{Arithmetic, Gemm};
use steinflow::{MatRef, Matrix};
use steinflow_models::{Model, ModelSpec, build};

use super::{FLOOR, Make, Ours, goals};
use crate::{Result, inputs};

const PARTICLES: usize = 100;
const ROWS: usize = 10_000;
const FEATURES: usize = 20;

const TARGETS: [&str; 5] = ["number", "answer", "class", "count", "time"];

/// A regression, and what of it cannot be done without.
#[derive(Clone, Copy)]
struct Case {
    model: &'static str,
    target: &'static str,
    predictors: usize,
    /// Exponentials and logarithms of a predictor. A sum of logarithms is none: it is that of a product.
    powers: usize,
}

const fn case(model: &'static str, target: &'static str, predictors: usize, powers: usize) -> Case {
    Case { model, target, predictors, powers }
}

const CASES: [Case; 9] = [
    case("linear-regression", "number", 1, 0),
    case("student-t-regression", "number", 1, 0),
    // Of two components: how much is from the second.
    case("mixture-regression", "number", 1, 1),
    case("logistic-regression", "answer", 1, 1),
    case("multinomial-regression", "class", 2, 1),
    // Both cutpoints around a class have e^η in common.
    case("ordinal-regression", "class", 1, 1),
    case("poisson-regression", "count", 1, 1),
    // Logarithms that are weighted by counts.
    case("negative-binomial-regression", "count", 1, 2),
    case("weibull-regression", "time", 1, 1),
];

pub fn all() -> Vec<Make> {
    let make = |case: Case| {
        let lines = (PARTICLES * case.predictors) as f64;
        Make {
            name: format!("Gradient of regressions: {}", case.model),
            kind: "regressions",
            given: json!({ "model": case.model, "target": case.target, "rows": ROWS, "particles": PARTICLES }),
            goals: goals(&[("JAX, jit", 3.0), (FLOOR, 0.5)]),
            flops: Some(4.0 * lines * ROWS as f64 * (FEATURES + 1) as f64),
            tolerance: 1e-3,
            is_long: false,
            ours: Box::new(move |folder| Ok(Box::new(Gradient::new(case, folder)?))),
        }
    };
    CASES.map(make).into()
}

struct Gradient {
    model: Box<dyn Model<f32>>,
    theta: Matrix<f32>,
    values: Vec<f32>,
    score: Matrix<f32>,
    floor: Floor,
}

impl Gradient {
    fn new(case: Case, folder: &Path) -> Result<Self> {
        let features = inputs::normal(ROWS, FEATURES, 1.0, 1);
        let targets = targets(&features);
        let names = (0..FEATURES).map(|j| format!("x{j}"));
        let mut csv = names.chain(TARGETS.map(str::to_owned)).collect::<Vec<_>>().join(",");
        for i in 0..ROWS {
            csv.push('\n');
            let cells = features.row(i).iter().chain(targets.row(i));
            for (j, x) in cells.enumerate() {
                write!(csv, "{}{x}", if j > 0 { "," } else { "" })?;
            }
        }
        let data = folder.join("table.csv");
        std::fs::write(&data, csv)?;
        let others = TARGETS.into_iter().filter(|name| *name != case.target).map(str::to_owned);
        let spec = ModelSpec {
            data: Some(data),
            target: Some(case.target.to_owned()),
            drop: Some(others.collect()),
            ..ModelSpec::named(case.model)
        };
        let model = build::<f32>(&spec)?;
        let place = TARGETS.iter().position(|name| *name == case.target).ok_or("no such target")?;
        let own = Matrix::from_fn(ROWS, 1, |i, _| targets.row(i)[place]);
        let theta = inputs::normal(PARTICLES, model.dim(), 0.2, 4);
        inputs::write(folder, "rows", &features)?;
        inputs::write(folder, "target", &own)?;
        inputs::write(folder, "theta", &theta)?;
        let (values, score) = (vec![0.0; PARTICLES], Matrix::zeros(PARTICLES, model.dim()));
        let floor = Floor::new(case, features.as_ref());
        Ok(Self { model, theta, values, score, floor })
    }
}

/// One of each kind, all of them from the same line.
fn targets(features: &Matrix<f32>) -> Matrix<f32> {
    let truth = inputs::normal(FEATURES, 1, 0.15, 2);
    let chance = inputs::normal(ROWS, 1, 0.7, 3);
    Matrix::from_fn(ROWS, TARGETS.len(), |i, j| {
        let line: f32 = features.row(i).iter().zip(truth.as_slice()).map(|(x, w)| x * w).sum();
        let number = line + chance.row(i)[0];
        match TARGETS[j] {
            "number" => number,
            "answer" => f32::from(number > 0.0),
            "class" => f32::from(number > -0.5) + f32::from(number > 0.5),
            "count" => (1.0 + number).exp().floor(),
            _ => (0.5 * number).exp(),
        }
    })
}

impl Ours for Gradient {
    fn answer(&mut self) -> Result<Vec<f32>> {
        self.repeat()?;
        Ok(self.score.as_slice().to_vec())
    }

    fn repeat(&mut self) -> Result<()> {
        let Self { model, theta, values, score, .. } = self;
        Ok(model.evaluate(theta.as_ref(), None, values, score.as_mut())?)
    }

    fn floor(&mut self) -> Result<bool> {
        self.floor.run();
        Ok(true)
    }
}

/// Particles and rows whose predictors stay in the second cache of a core: of what was tried, the fastest.
const TILE: (usize, usize) = (16, 1024);

/// η = Xβ, its powers, and ∂ℓ/∂β = Xᵀ∂ℓ/∂η, with the library's products and exponentials, shared between threads by
/// particles: nothing of what a likelihood makes of them.
struct Floor {
    powers: usize,
    /// X by rows, and by columns in every tile.
    rows: Vec<f32>,
    columns: Vec<f32>,
    coefficients: Matrix<f32>,
    slopes: Matrix<f32>,
}

impl Floor {
    fn new(case: Case, features: MatRef<'_, f32>) -> Self {
        let width = FEATURES + 1;
        let x = |i: usize, j: usize| if j == 0 { 1.0 } else { features.row(i)[j - 1] };
        let rows = Matrix::from_fn(ROWS, width, x).into_vec();
        let mut columns = Vec::with_capacity(rows.len());
        for tile in rows.chunks(TILE.1 * width) {
            for column in 0..width {
                columns.extend(tile.iter().skip(column).step_by(width));
            }
        }
        let lines = PARTICLES * case.predictors;
        let coefficients = inputs::normal(lines, width, 0.2, 4);
        let slopes = Matrix::zeros(lines, width);
        Self { powers: case.powers, rows, columns, coefficients, slopes }
    }

    fn run(&mut self) {
        const WIDTH: usize = FEATURES + 1;
        let Self { powers, rows, columns, coefficients, slopes } = self;
        let lines = slopes.as_mut_slice().par_chunks_mut(TILE.0 * WIDTH);
        let lines = lines.zip(coefficients.as_slice().par_chunks(TILE.0 * WIDTH)).with_max_len(1);
        lines.for_each_init(
            || vec![0.0; TILE.0 * TILE.1],
            |eta, (slopes, coefficients)| {
                let lines = slopes.len() / WIDTH;
                slopes.fill(0.0);
                let tiles = rows.chunks(TILE.1 * WIDTH).zip(columns.chunks(TILE.1 * WIDTH));
                for (rows, columns) in tiles {
                    let count = rows.len() / WIDTH;
                    let eta = &mut eta[..lines * count];
                    f32::product(coefficients, columns, eta, lines, count, WIDTH);
                    for _ in 0..*powers {
                        f32::exp_of_negated(eta, 1.0);
                    }
                    f32::accumulate_product(eta, rows, slopes, lines, WIDTH, count);
                }
            },
        );
    }
}
