//! Log density and gradient of every regression: 100 particles, 10⁴ rows, 20 features.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use steinflow::Matrix;
use steinflow_models::{Model, ModelSpec, build};

use super::{Make, Ours, goals};
use crate::{Result, inputs};

const PARTICLES: usize = 100;
const ROWS: usize = 10_000;
const FEATURES: usize = 20;

/// A model, the target that it predicts, and how many predictors it has.
const MODELS: [(&str, &str, f64); 7] = [
    ("linear-regression", "number", 1.0),
    ("student-t-regression", "number", 1.0),
    ("logistic-regression", "answer", 1.0),
    ("multinomial-regression", "class", 2.0),
    ("ordinal-regression", "class", 1.0),
    ("poisson-regression", "count", 1.0),
    ("negative-binomial-regression", "count", 1.0),
];

pub fn all() -> Vec<Make> {
    MODELS
        .map(|(model, target, predictors)| {
            let (n, rows, columns) = (PARTICLES as f64, ROWS as f64, (FEATURES + 1) as f64);
            Make {
                name: format!("Gradient, {model}, {PARTICLES} particles, {ROWS} rows"),
                kind: "regressions",
                given: json!({ "model": model, "target": target }),
                goals: goals(&[("JAX, jit", 3.0)]),
                flops: Some(4.0 * n * rows * columns * predictors),
                tolerance: 1e-3,
                is_long: false,
                ours: Box::new(move |folder| Ok(Box::new(Gradient::new(model, target, folder)?))),
            }
        })
        .into()
}

struct Gradient {
    model: Box<dyn Model<f32>>,
    theta: Matrix<f32>,
    values: Vec<f32>,
    score: Matrix<f32>,
}

impl Gradient {
    fn new(model: &str, target: &str, folder: &Path) -> Result<Self> {
        const TARGETS: [&str; 4] = ["number", "answer", "class", "count"];
        let features = inputs::normal(ROWS, FEATURES, 1.0, 1);
        let truth = inputs::normal(FEATURES, 1, 0.15, 2);
        let chance = inputs::normal(ROWS, 1, 0.7, 3);
        let targets = Matrix::from_fn(ROWS, TARGETS.len(), |i, j| {
            let line: f32 = features.row(i).iter().zip(truth.as_slice()).map(|(x, w)| x * w).sum();
            let number = line + chance.row(i)[0];
            match TARGETS[j] {
                "number" => number,
                "answer" => f32::from(number > 0.0),
                "class" => f32::from(number > -0.5) + f32::from(number > 0.5),
                _ => (1.0 + number).exp().floor(),
            }
        });
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
        let others = TARGETS.into_iter().filter(|name| *name != target).map(str::to_owned);
        let spec = ModelSpec {
            data: Some(data),
            target: Some(target.to_owned()),
            drop: Some(others.collect()),
            ..ModelSpec::named(model)
        };
        let model = build::<f32>(&spec)?;
        let place = TARGETS.iter().position(|name| *name == target).ok_or("no such target")?;
        let own = Matrix::from_fn(ROWS, 1, |i, _| targets.row(i)[place]);
        let theta = inputs::normal(PARTICLES, model.dim(), 0.2, 4);
        inputs::write(folder, "rows", &features)?;
        inputs::write(folder, "target", &own)?;
        inputs::write(folder, "theta", &theta)?;
        let (values, score) = (vec![0.0; PARTICLES], Matrix::zeros(PARTICLES, model.dim()));
        Ok(Self { model, theta, values, score })
    }
}

impl Ours for Gradient {
    fn answer(&mut self) -> Result<Vec<f32>> {
        self.repeat()?;
        Ok(self.score.as_slice().to_vec())
    }

    fn repeat(&mut self) -> Result<()> {
        let Self { model, theta, values, score } = self;
        Ok(model.evaluate(theta.as_ref(), None, values, score.as_mut())?)
    }
}
