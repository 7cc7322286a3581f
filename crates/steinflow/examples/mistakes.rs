//! What the library says to mistakes that people make, one a line: the mistake, a tab, the answer.
//!
//! `experiments/durability/mistakes.py` makes the same ones in other libraries.

use steinflow::dynamics::{Langevin, Sghmc};
use steinflow::field::Stein;
use steinflow::integrator::{Euler, StepSize, SymmetricSplitting};
use steinflow::kernel::{Bandwidth, Kernel};
use steinflow::target::PerParticle;
use steinflow::{LogDensity, Matrix, Sampler};

/// A standard normal in the plane that has no score beyond |x| = `wall`.
fn normal(wall: f64) -> impl LogDensity<f64> {
    PerParticle::new(2, move |theta: &[f64], score: &mut [f64]| {
        // A root of a negative number, as it happens.
        let edge = if wall.is_finite() { 1e-9 } else { 0.0 };
        let root = |x: f64| if edge > 0.0 { (wall * wall - x * x).sqrt() } else { 1.0 };
        for (score, x) in score.iter_mut().zip(theta) {
            *score = -x - edge * x / root(*x);
        }
        theta.iter().map(|x| -0.5 * x * x + edge * root(*x)).sum()
    })
}

fn svgd(kernel: Kernel, particles: usize, wall: f64, step_size: f64) -> Sampler<'static, f64> {
    Sampler::new(normal(wall), Langevin::new(), Stein::new(kernel))
        .start_normal(particles, &[0.5, 0.5], 0.1)
        .phase(Euler, 200, StepSize::Constant(step_size))
}

fn tell(mistake: &str, sampler: Sampler<'_, f64>) {
    let answer = match sampler.run() {
        Ok(outcome) => {
            let finite = outcome.state.as_slice().iter().all(|x| x.is_finite());
            format!("no error; {}", if finite { "finite particles" } else { "NaN" })
        }
        Err(error) => error.to_string(),
    };
    println!("{mistake}\t{answer}");
}

fn main() {
    let kernel = Kernel::default;
    let narrow = Kernel { bandwidth: Bandwidth::fixed(0.0), ..kernel() };
    let far = f64::INFINITY;
    tell("none", svgd(kernel(), 10, far, 0.1));
    tell("step size -0.1", svgd(kernel(), 10, far, -0.1));
    tell("step size NaN", svgd(kernel(), 10, far, f64::NAN));
    tell("step size 1e10", svgd(kernel(), 10, far, 1e10));
    tell("no particles", svgd(kernel(), 0, far, 0.1));
    let start = |x: f64| Matrix::from_fn(10, 2, |i, j| if i + j == 0 { x } else { 0.1 * i as f64 });
    tell("a start with a NaN", svgd(kernel(), 10, far, 0.1).start_at(start(f64::NAN)));
    let wide = Matrix::from_fn(10, 3, |i, j| 0.1 * (i + j) as f64);
    tell("a start of 3 coordinates for 2", svgd(kernel(), 10, far, 0.1).start_at(wide));
    tell("bandwidth 0", svgd(narrow, 10, far, 0.1));
    tell("log density NaN beyond 1", svgd(kernel(), 10, 1.0, 0.1));
    let dynamics = Sghmc { friction: 1.0, variance: 1.0 };
    let hmc = |step_size| {
        Sampler::new(normal(far), dynamics, Stein::new(kernel()))
            .start_normal(10, &[0.5, 0.5], 0.1)
            .phase(SymmetricSplitting, 200, StepSize::Constant(step_size))
    };
    tell("HMC: step size 0", hmc(0.0));
    let light = Sghmc { friction: 1.0, variance: -1.0 };
    let light = Sampler::new(normal(far), light, Stein::new(kernel()));
    tell("HMC: mass -1", light.phase(SymmetricSplitting, 200, StepSize::Constant(0.1)));
}
