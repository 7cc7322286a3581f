//! A step of SGHMC-Stein with symmetric splitting on a neural network of 50 units.

use std::path::Path;

use serde_json::json;
use steinflow::Matrix;
use steinflow::System;
use steinflow::dynamics::Sghmc;
use steinflow::field::Stein;
use steinflow::integrator::{Integrator, SymmetricSplitting};
use steinflow::kernel::Kernel;
use steinflow_models::Describe;
use steinflow_models::network::{Architecture, Bnn, Precisions};

use super::{Make, Ours, goals};
use crate::{Result, inputs};

const ROWS: usize = 455;
const BATCH: usize = 100;
const FRICTION: f64 = 10.0;
const STEP: f64 = 1e-4;

pub fn all() -> Vec<Make> {
    [(13, 20, 3.0), (13, 100, 6.0), (90, 20, 3.0), (90, 100, 6.0)]
        .map(|(features, particles, goal)| {
            let (n, dim) = (particles as f64, (52 * features + 3) as f64);
            let shape = if features == 13 { "boston" } else { "year" };
            let _ = (n, dim);
            Make {
                name: format!(
                    "SGHMC-Stein step, network of {shape}'s shape ({features} inputs), {particles} \
                     particles, batches of {BATCH}"
                ),
                kind: "network",
                given: json!({ "batch": BATCH, "friction": FRICTION, "step": STEP }),
                goals: goals(&[("JAX, jit and scan", goal)]),
                flops: None,
                tolerance: 1e-3,
                is_long: false,
                ours: Box::new(move |folder| {
                    Ok(Box::new(Network::new(features, particles, folder)?))
                }),
            }
        })
        .into()
}

struct Network {
    /// On the first rows alone, without minibatches: what answers are compared on.
    first_rows: System<'static, f32>,
    minibatches: System<'static, f32>,
    step: u64,
}

impl Network {
    fn new(features: usize, particles: usize, folder: &Path) -> Result<Self> {
        let rows = inputs::normal(ROWS, features, 1.0, 7);
        let targets = Matrix::from_fn(ROWS, 1, |i, _| rows.row(i)[0].sin() + 0.3 * rows.row(i)[1]);
        inputs::write(folder, "rows", &rows)?;
        inputs::write(folder, "targets", &targets)?;
        let model = |count: usize| {
            let rows = Matrix::from_fn(count, features, |i, j| f64::from(rows.row(i)[j]));
            let targets: Vec<f64> = targets.as_slice()[..count].iter().map(|&y| y.into()).collect();
            Bnn::<f32>::new(&Architecture::default(), &rows, &targets, Precisions::default())
        };
        let theta = model(BATCH)?.start_sample(particles, 1).ok_or("networks have a start")?.cast();
        let system = |model: Bnn<f32>| {
            let dynamics = Sghmc { friction: FRICTION, variance: 1.0 };
            System::new(model, dynamics, Stein::new(Kernel::default()), &theta, 0)
        };
        let first_rows = system(model(BATCH)?)?;
        let minibatches = system(model(ROWS)?)?.with_minibatches(BATCH)?;
        let state = first_rows.state();
        let state = Matrix::from_fn(state.rows(), state.cols(), |i, j| state.row(i)[j]);
        inputs::write(folder, "state", &state)?;
        Ok(Self { first_rows, minibatches, step: 0 })
    }
}

impl Ours for Network {
    fn answer(&mut self) -> Result<Vec<f32>> {
        self.first_rows.begin_step(0, STEP);
        SymmetricSplitting.step(&mut self.first_rows, STEP)?;
        Ok(self.first_rows.state().as_slice().to_vec())
    }

    fn repeat(&mut self) -> Result<()> {
        self.minibatches.begin_step(self.step, STEP);
        self.step += 1;
        Ok(SymmetricSplitting.step(&mut self.minibatches, STEP)?)
    }
}
