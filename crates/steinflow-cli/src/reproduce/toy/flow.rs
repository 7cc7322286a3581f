//! A run with every step of every particle kept.

use std::ops::ControlFlow;

use steinflow::Matrix;
use steinflow::run::Snapshot;

use crate::error::Result;
use crate::progress::Progress;
use steinflow_config::Config;
use steinflow_config::Settings;

/// z = (θ, r, …) of all particles after every step; entry 0 is the start.
pub struct Flow {
    states: Vec<Matrix<f64>>,
    times: Vec<f64>,
}

impl Flow {
    /// Runs the settings, with a progress bar called `name`.
    pub fn record(name: &str, settings: Settings) -> Result<Self> {
        let config = Config::resolve(settings)?;
        let model = steinflow_models::build::<f64>(config.spec())?;
        let (mut states, mut times) = (Vec::new(), Vec::new());
        let keep = |at: &Snapshot<'_, f64>| {
            states
                .push(Matrix::from_fn(at.state.rows(), at.state.cols(), |i, j| at.state.row(i)[j]));
            times.push(at.time);
            steinflow::Result::Ok(ControlFlow::Continue(()))
        };
        config.sampler(&*model)?.observe(Progress::new(name)).observe(keep).run()?;
        Ok(Self { states, times })
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.states.len() - 1
    }

    /// The sum of the sizes of the first `step` steps.
    pub fn time(&self, step: usize) -> f64 {
        self.times[step]
    }

    pub fn particles(&self) -> usize {
        self.states[0].rows()
    }

    /// Where the particles are after a step.
    pub fn places(&self, step: usize) -> Matrix<f64> {
        Matrix::from_fn(self.particles(), 2, |i, j| self.states[step].row(i)[j])
    }

    /// (x, y) of a particle after a step.
    pub fn place(&self, step: usize, particle: usize) -> (f64, f64) {
        let state = self.states[step].row(particle);
        (state[0], state[1])
    }

    /// Momentum of a particle after a step; none for dynamics without.
    pub fn momentum(&self, step: usize, particle: usize) -> Option<(f64, f64)> {
        let state = self.states[step].row(particle);
        state.get(2).zip(state.get(3)).map(|(&x, &y)| (x, y))
    }

    /// The path of a particle from one step to another, one place a row.
    pub fn path(&self, particle: usize, from: usize, to: usize) -> Matrix<f64> {
        Matrix::from_fn(to - from + 1, 2, |k, j| self.states[from + k].row(particle)[j])
    }
}
