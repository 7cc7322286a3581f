//! A dynamics of your own, in one short file: check it by the laws, run it both ways.
//!
//! Langevin dynamics with a stir: A = I, and a curl within θ that grows outwards,
//!
//! ```text
//! C(θ) = ω (1 + |θ|²/2) J,  J = [0 1; −1 0],   ∇·C = ω Jθ
//! ```
//!
//! It leaves π invariant whatever ω is, mixes faster than plain Langevin, and is in no catalogue.
//!
//! Run it with `cargo run --release --example own_dynamics -p steinflow`.

use std::ops::ControlFlow;

use steinflow::dynamics::{Block, Dynamics, Point, Structure, THETA};
use steinflow::field::{Diffusion, Field, Stein};
use steinflow::integrator::{Euler, StepSize};
use steinflow::kernel::Kernel;
use steinflow::run::Snapshot;
use steinflow::target::{Autodiff, DualNum, GenericLogDensity};
use steinflow::testing::{check_diffusion, check_divergence, check_structure, random_states};
use steinflow::{Real, Sampler};

// --- the dynamics -------------------------------------------------------------------------------

struct StirredLangevin {
    rate: f64,
}

impl<T: Real> Dynamics<T> for StirredLangevin {
    fn structure(&self, dim: usize) -> Structure {
        Structure::new(dim)
            .diffusion(THETA, Block::Scalar(1.0))
            .curl(THETA, THETA, Block::FullCoefficients(0))
            .coefficients_ignore_density()
    }

    fn coefficients(&self, at: &Point<'_, T>, coefficients: &mut [T]) {
        let square: T = at.block(THETA).iter().map(|&x| x * x).sum();
        // Row-major [· c; · ·]: the part above the diagonal is mirrored to make C skew.
        coefficients[1] = T::of(self.rate) * (T::one() + square * T::of(0.5));
    }

    fn curl_divergence(&self, at: &Point<'_, T>, out: &mut [T]) {
        let theta = at.block(THETA);
        out[0] = T::of(self.rate) * theta[1];
        out[1] = T::of(-self.rate) * theta[0];
    }
}

// --- a target, written once and differentiated for us -------------------------------------------

/// A Gaussian with standard deviations 1 and ½ and correlation 0.8.
struct Correlated;

impl GenericLogDensity for Correlated {
    fn dim(&self) -> usize {
        2
    }

    fn log_density<D: DualNum<Primitive = f64> + Copy>(&self, theta: &[D]) -> D {
        let (x, y) = (theta[0], theta[1] * 2.0);
        -(x * x - x * y * 1.6 + y * y) / (2.0 * (1.0 - 0.64))
    }
}

/// Means and standard deviations of θ over the second half of the run.
fn run(field: impl Field, particles: usize, step_size: f64) -> steinflow::Result<[(f64, f64); 2]> {
    const STEPS: u64 = 4000;
    let (mut count, mut sums) = (0.0, [(0.0, 0.0); 2]);
    Sampler::new(Autodiff::new(Correlated), StirredLangevin { rate: 0.5 }, field)
        .start_normal(particles, &[0.0, 0.0], 1.0)
        .phase(Euler, STEPS, StepSize::Constant(step_size))
        .observe(|at: &Snapshot<'_, f64>| {
            if at.step > STEPS / 2 {
                for i in 0..at.state.rows() {
                    count += 1.0;
                    for (sum, x) in sums.iter_mut().zip(at.state.row(i)) {
                        *sum = (sum.0 + x, sum.1 + x * x);
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })
        .run()?;
    Ok(sums.map(|(sum, square)| {
        let mean = sum / count;
        (mean, (square / count - mean * mean).sqrt())
    }))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (target, dynamics) = (Autodiff::new(Correlated), StirredLangevin { rate: 0.5 });
    let states = random_states(20, 2, 0);
    check_structure(&target, &dynamics, states.as_ref())?;
    check_divergence(&target, &dynamics, states.as_ref())?;
    check_diffusion(&target, &dynamics, states.as_ref())?;
    println!("the laws hold: A ⪰ 0, C skew, ∇·(A + C), structured = dense");

    println!("{:<22} {:>16} {:>16}", "", "θ₀ mean, sd", "θ₁ mean, sd");
    let show = |name: &str, [a, b]: [(f64, f64); 2]| {
        println!("{name:<22} {:>8.3} {:>7.3} {:>8.3} {:>7.3}", a.0, a.1, b.0, b.1);
    };
    show("exact", [(0.0, 1.0), (0.0, 0.5)]);
    show("diffusion, 100 chains", run(Diffusion, 100, 0.005)?);
    show("Stein, 100 particles", run(Stein::new(Kernel::default()), 100, 0.05)?);
    Ok(())
}
