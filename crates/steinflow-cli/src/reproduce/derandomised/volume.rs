//! What is wrong with the volume of a joint accept step where it is that of the divergence alone.
//!
//! Stretches of the flow without friction on N(0, I), from exact draws, as a run after a warm-up makes them, but for steps
//! of several sizes. Beside the change of the energy H stand log |det J| of the whole Jacobian, the error of ε ∇·v, and
//! the probability that the stretch is accepted with either.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use steinflow::dynamics::Sghmc;
use steinflow::field::{Stein, TimeUnit};
use steinflow::integrator::{ImplicitDrift, Integrator};
use steinflow::kernel::{Bandwidth, Kernel, View};
use steinflow::target::PerParticle;
use steinflow::testing::random_states;
use steinflow::{Matrix, System};

use crate::error::Result;
use crate::reproduce::study::Study;

/// N and d.
const SIZES: [(usize, usize); 3] = [(10, 2), (50, 2), (50, 5)];
const STEP_SIZES: [f64; 4] = [1.2, 0.6, 0.3, 0.15];
/// Length of a stretch.
const TIME: f64 = 10.0;
const STRETCHES: u64 = 10;

/// At the end of a stretch.
#[derive(Clone, Copy, Deserialize, Serialize)]
struct Found {
    /// H − H₀.
    energy: f64,
    log_volume: f64,
    /// By the divergence alone.
    by_divergence: f64,
    /// Probabilities that the stretch is accepted.
    acceptance: f64,
    acceptance_by_divergence: f64,
}

/// Every stretch, and a table.
pub fn run(study: &mut Study, quick: bool) -> Result<(String, String)> {
    let (sizes, stretches) = if quick { (1, 2) } else { (SIZES.len(), STRETCHES) };
    let mut jobs = Vec::new();
    for &(count, dim) in SIZES.iter().take(sizes).rev() {
        for dt in STEP_SIZES {
            jobs.extend((0..stretches).map(|seed| (count, dim, dt, seed)));
        }
    }
    let results: Vec<Result<Found, String>> = study.run(
        "volume",
        &jobs,
        |(count, dim, dt, seed)| format!("N = {count}, d = {dim}, step {dt}, seed {seed}"),
        |&(count, dim, dt, seed)| {
            let found = stretch(count, dim, dt, seed).map_err(|error| error.to_string())?;
            // As the accept step has it.
            let is_known = found.log_volume.is_finite() && found.by_divergence.is_finite();
            is_known.then_some(found).ok_or_else(|| "a step did not settle: refused".to_owned())
        },
    )?;
    let mut csv = String::from(
        "particles,d,step_size,seed,energy,log_volume,by_divergence,acceptance,acceptance_by_divergence,error\n",
    );
    for ((count, dim, dt, seed), result) in jobs.iter().zip(&results) {
        let _ = write!(csv, "{count},{dim},{dt},{seed},");
        let _ = match result {
            Ok(Found {
                energy,
                log_volume,
                by_divergence,
                acceptance,
                acceptance_by_divergence,
            }) => writeln!(
                csv,
                "{energy:.6},{log_volume:.6},{by_divergence:.6},{acceptance:.6},{acceptance_by_divergence:.6},"
            ),
            Err(error) => writeln!(csv, ",,,,,\"{}\"", error.replace('"', "'")),
        };
    }
    let mut table = String::from(
        "| N | d | ε | H − H₀ | log det J | error of ε ∇·v | accepted, log det J | accepted, ε ∇·v |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for &(count, dim) in SIZES.iter().take(sizes) {
        for dt in STEP_SIZES {
            let own: Vec<&Found> = jobs
                .iter()
                .zip(&results)
                .filter(|((n, d, step, _), _)| (*n, *d, *step) == (count, dim, dt))
                .filter_map(|(_, found)| found.as_ref().ok())
                .collect();
            let mean = |of: &dyn Fn(&Found) -> f64| {
                own.iter().map(|found| of(found)).sum::<f64>() / own.len() as f64
            };
            let root = |of: &dyn Fn(&Found) -> f64| mean(&|found| of(found).powi(2)).sqrt();
            let settled = own.len() as f64 / stretches as f64;
            let _ = writeln!(
                table,
                "| {count} | {dim} | {dt} | {:.3} | {:.3} | {:.4} | {:.3} | {:.3} |",
                root(&|found| found.energy),
                root(&|found| found.log_volume),
                root(&|found| found.by_divergence - found.log_volume),
                settled * mean(&|found| found.acceptance),
                settled * mean(&|found| found.acceptance_by_divergence),
            );
        }
    }
    Ok((csv, table))
}

fn stretch(count: usize, dim: usize, dt: f64, seed: u64) -> Result<Found> {
    let (energy, log_volume, acceptance) = followed(count, dim, dt, seed, usize::MAX)?;
    let (_, by_divergence, acceptance_by_divergence) = followed(count, dim, dt, seed, 0)?;
    Ok(Found { energy, log_volume, by_divergence, acceptance, acceptance_by_divergence })
}

/// H − H₀ and log |det J| at the end of a stretch, and the probability that it is accepted: that of a level above all
/// of H − H₀ − log |det J| on the way.
fn followed(
    count: usize,
    dim: usize,
    dt: f64,
    seed: u64,
    exact_up_to: usize,
) -> Result<(f64, f64, f64)> {
    let target = PerParticle::new(dim, |theta: &[f64], score: &mut [f64]| {
        score.iter_mut().zip(theta).for_each(|(s, x)| *s = -x);
        -0.5 * theta.iter().map(|x| x * x).sum::<f64>()
    });
    let kernel = Kernel {
        view: View::Theta,
        bandwidth: Bandwidth::White { factor: 4.0 },
        affine: 1.0,
        ..Kernel::default()
    };
    let field = Stein::new(kernel).time_unit(TimeUnit::Eigenvalue);
    let start = random_states(count, 2 * dim, seed);
    let theta = Matrix::from_fn(count, dim, |i, j| start.row(i)[j]);
    let dynamics = Sghmc { friction: 0.0, variance: 1.0 };
    let mut system = System::new(target, dynamics, field, &theta, seed)?;
    system.set_state(start)?;
    system.exact_volume_up_to(exact_up_to);
    let energy = |system: &mut System<'_, f64>| -> Result<f64> {
        system.evaluate_target()?;
        let state = system.state();
        let momenta = (0..count).flat_map(|i| &state.row(i)[dim..]).map(|r| 0.5 * r * r);
        Ok(momenta.sum::<f64>() - system.log_density().iter().sum::<f64>())
    };
    let before = energy(&mut system)?;
    let (mut gained, mut highest) = (0.0, 0.0_f64);
    for _ in 0..(TIME / dt).round() as u64 {
        ImplicitDrift.step(&mut system, dt)?;
        gained = energy(&mut system)? - before;
        highest = highest.max(gained - system.log_volume());
    }
    Ok((gained, system.log_volume(), (-highest).exp()))
}
