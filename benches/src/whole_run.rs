//! Whole runs: the paper's network experiment beside the paper's own time, and what watching costs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steinflow::dynamics::Sghmc;
use steinflow::field::Stein;
use steinflow::integrator::{StepSize, SymmetricSplitting};
use steinflow::kernel::Kernel;
use steinflow::run::{Observer, Snapshot, Trace};
use steinflow::{Matrix, Sampler};
use steinflow_models::Describe;
use steinflow_models::network::{Architecture, Bnn, Precisions};

use crate::{Result, inputs};

const ITERATIONS: u64 = 5000;
/// The paper's supplement: SGHMC-Stein, boston, 20 particles, on a V100.
const PAPER_SECONDS: f64 = 89.0;

/// Times the run, and inside it the observer that records every step; returns numbers and a paragraph.
pub fn measure(rounds: usize) -> Result<(Value, String)> {
    let rows = inputs::normal(455, 13, 1.0, 7).cast::<f64>();
    let targets: Vec<f64> = (0..455).map(|i| rows.row(i)[0].sin() + 0.3 * rows.row(i)[1]).collect();
    let model = Bnn::<f32>::new(&Architecture::default(), &rows, &targets, Precisions::default())?;
    let start: Matrix<f32> = model.start_sample(20, 1).ok_or("networks have a start")?.cast();
    let run = || -> Result<[f64; 2]> {
        let mut trace = Trace::new(1);
        let mut observer = trace.observer();
        let mut watching = Duration::ZERO;
        let dynamics = Sghmc { friction: 10.0, variance: 1.0 };
        let sampler = Sampler::new(&model, dynamics, Stein::new(Kernel::default()))
            .start_at(start.clone())
            .batch_size(100)
            .phase(SymmetricSplitting, ITERATIONS, StepSize::Constant(1e-3))
            .observe(|at: &Snapshot<'_, f32>| {
                let begun = Instant::now();
                let answer = observer.observe(at);
                watching += begun.elapsed();
                answer
            });
        let begun = Instant::now();
        sampler.run()?;
        Ok([begun.elapsed().as_secs_f64(), watching.as_secs_f64()])
    };
    let runs = (0..rounds).map(|_| run()).collect::<Result<Vec<_>>>()?;
    let sorted = |value: fn(&[f64; 2]) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (seconds, shares) = (sorted(|run| run[0]), sorted(|run| 100.0 * run[1] / run[0]));
    let text = format!(
        "### The paper's run\n\nSGHMC-Stein on a network of boston's shape, 20 particles, {ITERATIONS} \
         iterations: {:.2} s on {} threads (median of {rounds}). The paper: {PAPER_SECONDS} s on a V100. \
         Of this the trace, with a row at every step, takes {:.2} % ({:.2} to {:.2} %).\n",
        seconds[rounds / 2],
        rayon::current_num_threads(),
        shares[rounds / 2],
        shares[0],
        shares[rounds - 1],
    );
    let (seconds, watching): (Vec<f64>, Vec<f64>) = runs.iter().map(|run| (run[0], run[1])).unzip();
    let numbers =
        json!({ "paper_seconds": PAPER_SECONDS, "seconds": seconds, "of_which_trace": watching });
    Ok((numbers, text))
}
