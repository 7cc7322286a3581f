//! Whole runs: the paper's network experiment beside the paper's own time, and what watching costs.

use std::time::Instant;

use serde_json::{Value, json};
use steinflow::dynamics::Sghmc;
use steinflow::field::Stein;
use steinflow::integrator::{StepSize, SymmetricSplitting};
use steinflow::kernel::Kernel;
use steinflow::run::Trace;
use steinflow::{Matrix, Sampler};
use steinflow_models::Describe;
use steinflow_models::network::{Architecture, Bnn, Precisions};

use crate::{Result, inputs};

const ITERATIONS: u64 = 5000;
/// The paper's supplement: SGHMC-Stein, boston, 20 particles, on a V100.
const PAPER_SECONDS: f64 = 89.0;

/// Times the run with and without a trace of every step, turn about; returns numbers and a paragraph.
pub fn measure(rounds: usize) -> Result<(Value, String)> {
    let rows = inputs::normal(455, 13, 1.0, 7).cast::<f64>();
    let targets: Vec<f64> = (0..455).map(|i| rows.row(i)[0].sin() + 0.3 * rows.row(i)[1]).collect();
    let model = Bnn::<f32>::new(&Architecture::default(), &rows, &targets, Precisions::default())?;
    let start: Matrix<f32> = model.start_sample(20, 1).ok_or("networks have a start")?.cast();
    let run = |traced: bool| -> Result<f64> {
        let mut trace = Trace::new(1);
        let dynamics = Sghmc { friction: 10.0, variance: 1.0 };
        let mut sampler = Sampler::new(&model, dynamics, Stein::new(Kernel::default()))
            .start_at(start.clone())
            .batch_size(100)
            .phase(SymmetricSplitting, ITERATIONS, StepSize::Constant(1e-3));
        if traced {
            sampler = sampler.observe(trace.observer());
        }
        let begun = Instant::now();
        sampler.run()?;
        Ok(begun.elapsed().as_secs_f64())
    };
    let (mut bare, mut traced) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        bare.push(run(false)?);
        traced.push(run(true)?);
    }
    let median = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    let ratios: Vec<f64> = traced.iter().zip(&bare).map(|(with, without)| with / without).collect();
    let text = format!(
        "### The paper's run\n\nSGHMC-Stein on a network of boston's shape, 20 particles, {ITERATIONS} \
         iterations: {:.2} s on {} threads (median of {rounds}). The paper: {PAPER_SECONDS} s on a V100. With a trace \
         row at every step instead of none: {:+.1} % (median of the ratios; {:+.1} to {:+.1} %).\n",
        median(&bare),
        rayon::current_num_threads(),
        100.0 * (median(&ratios) - 1.0),
        100.0 * (ratios.iter().copied().fold(f64::INFINITY, f64::min) - 1.0),
        100.0 * (ratios.iter().copied().fold(0.0, f64::max) - 1.0),
    );
    let numbers = json!({ "paper_seconds": PAPER_SECONDS, "bare": bare, "with_trace": traced });
    Ok((numbers, text))
}
