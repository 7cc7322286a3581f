//! A step of SVGD with the median rule, on a logistic regression of 54 coefficients and 1000 rows.

use std::path::Path;

use serde_json::json;
use steinflow::Matrix;
use steinflow::System;
use steinflow::dynamics::{Langevin, THETA};
use steinflow::field::Stein;
use steinflow::kernel::Kernel;
use steinflow_models::data::Table;
use steinflow_models::regression::LogisticRegression;

use super::{Make, Ours, goals};
use crate::{Result, inputs};

const ROWS: usize = 1000;
const FEATURES: usize = 53;
const PRIOR_SD: f64 = 1.0;
const STEP: f64 = 1e-3;

pub fn all() -> Vec<Make> {
    [(160, 5.0), (1000, 100.0), (2000, 150.0)]
        .map(|(particles, goal)| {
            let (n, dim, rows) = (particles as f64, (FEATURES + 1) as f64, ROWS as f64);
            Make {
                name: format!("SVGD step, logistic regression, {particles} particles"),
                kind: "svgd",
                given: json!({ "prior_sd": PRIOR_SD, "step": STEP }),
                goals: goals(&[
                    ("BlackJAX", goal),
                    ("NumPyro", goal),
                    ("JAX, GEMM form, no median", 2.0),
                ]),
                // Predictors and their transposed product; distances and kernel sums.
                flops: Some(4.0 * n * rows * dim + 4.0 * n * n * dim),
                tolerance: 1e-4,
                is_long: false,
                ours: Box::new(move |folder| Ok(Box::new(Svgd::new(particles, folder)?))),
            }
        })
        .into()
}

struct Svgd {
    system: System<'static, f32>,
}

impl Svgd {
    fn new(particles: usize, folder: &Path) -> Result<Self> {
        let features = inputs::normal(ROWS, FEATURES, 1.0, 1);
        let truth = inputs::normal(FEATURES, 1, 0.3, 2);
        let chance = inputs::normal(ROWS, 1, 1.0, 3);
        let mut csv = (0..FEATURES).map(|j| format!("x{j},")).collect::<String>() + "y\n";
        for i in 0..ROWS {
            let score: f32 = features.row(i).iter().zip(truth.as_slice()).map(|(x, w)| x * w).sum();
            let label = u8::from(score + chance.row(i)[0] > 0.0);
            csv.extend(features.row(i).iter().map(|x| format!("{x},")));
            csv.push_str(&format!("{label}\n"));
        }
        let table = Table::from_reader(csv.as_bytes(), "bench.csv")?;
        let model = LogisticRegression::<f32>::new(&table, None, PRIOR_SD)?;
        let design = model.design();
        inputs::write(folder, "rows", &design.rows().cast())?;
        let target = Matrix::from_fn(ROWS, 1, |i, _| design.target()[i] as f32);
        inputs::write(folder, "target", &target)?;
        let theta = inputs::normal(particles, FEATURES + 1, 0.3, 4);
        inputs::write(folder, "theta", &theta)?;
        let field = Stein::new(Kernel::default());
        let system = System::new(model, Langevin::new(), field, &theta, 0)?;
        Ok(Self { system })
    }
}

impl Ours for Svgd {
    fn answer(&mut self) -> Result<Vec<f32>> {
        self.repeat()?;
        Ok(self.system.state().as_slice().to_vec())
    }

    fn repeat(&mut self) -> Result<()> {
        self.system.begin_step(0, STEP);
        Ok(self.system.advance(&[THETA], STEP)?)
    }
}
