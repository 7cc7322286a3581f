//! Times whole steps, Steinflow alone: `steps` prints the microseconds of each, `steps 512 boston` of those
//! whose name contains one of the words. On Linux a second number is the time that the thread was running:
//! with RAYON_NUM_THREADS=1, the one to look at on a machine that others use too.
//!
//! A change is judged by a copy of this binary from before it and one from after, run turn about.

use std::process::ExitCode;
use std::time::Instant;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use steinflow::dynamics::{Dynamics, Langevin, Sghmc};
use steinflow::field::Stein;
use steinflow::integrator::{Euler, Integrator, SymmetricSplitting};
use steinflow::kernel::Kernel;
use steinflow::target::PerParticle;
use steinflow::{LogDensity, Matrix, Real, System};
use steinflow_models::Describe;
use steinflow_models::data::Table;
use steinflow_models::network::{Architecture, Bnn, Precisions};
use steinflow_models::regression::LogisticRegression;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A turn lasts about this long.
const TURN_SECONDS: f64 = 0.2;
const TURNS: usize = 5;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match time_all(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the benchmark failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn time_all(words: &[String]) -> Result<()> {
    let chosen = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));
    for particles in [160, 1000, 2000] {
        let name = format!("svgd-logistic-{particles}");
        if chosen(&name) {
            time(&name, svgd(logistic()?, &normal(particles, 54, 0.3, 4))?, Euler)?;
        }
    }
    for (data, features) in [("boston", 13), ("year", 90)] {
        for particles in [20, 100] {
            let name = format!("network-{data}-{particles}");
            if chosen(&name) {
                let model = network(features)?;
                let theta = model.start_sample(particles, 1).ok_or("networks have a start")?.cast();
                let system = sghmc_stein(model, &theta)?.with_minibatches(100)?;
                time(&name, system, SymmetricSplitting)?;
            }
        }
    }
    if chosen("splitting-100-10-f32") {
        let system = sghmc_stein(gaussian::<f32>(10), &normal(100, 10, 1.0, 5))?;
        time("splitting-100-10-f32", system, SymmetricSplitting)?;
    }
    if chosen("splitting-100-10-f64") {
        let system = sghmc_stein(gaussian::<f64>(10), &normal(100, 10, 1.0, 5))?;
        time("splitting-100-10-f64", system, SymmetricSplitting)?;
    }
    for (particles, dim) in [(100, 2), (100, 10), (512, 2), (4096, 2), (512, 64), (4096, 64)] {
        let name = format!("svgd-gaussian-{particles}-{dim}");
        if chosen(&name) {
            time(&name, svgd(gaussian(dim), &normal::<f32>(particles, dim, 1.0, 6))?, Euler)?;
        }
    }
    Ok(())
}

fn time<T: Real>(
    name: &str,
    mut system: System<'_, T>,
    mut integrator: impl Integrator<T>,
) -> Result<()> {
    let mut number = 0;
    let mut seconds_of = |steps: u64| -> steinflow::Result<[f64; 2]> {
        // On a thread of the pool, as a run is.
        rayon::scope(|_| {
            let (begun, running) = (Instant::now(), running_seconds());
            for _ in 0..steps {
                system.begin_step(number, STEP);
                integrator.step(&mut system, STEP)?;
                number += 1;
            }
            Ok([begun.elapsed().as_secs_f64(), running_seconds() - running])
        })
    };
    seconds_of(3)?;
    let steps = (TURN_SECONDS / (seconds_of(5)?[0] / 5.0)).ceil();
    let mut turns = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (turns, seconds) in turns.iter_mut().zip(seconds_of(steps as u64)?) {
            turns.push(seconds / steps * 1e6);
        }
    }
    let [elapsed, running] = turns.map(|mut turns| {
        turns.sort_by(f64::total_cmp);
        turns[TURNS / 2]
    });
    println!("{name:<24}{elapsed:>10.1}{running:>10.1}");
    Ok(())
}

/// How long this thread has been running so far, where the system tells.
fn running_seconds() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = statistics.split(' ').next().and_then(|field| field.parse::<f64>().ok());
    nanoseconds.map_or(f64::NAN, |nanoseconds| nanoseconds / 1e9)
}

const STEP: f64 = 1e-4;

fn svgd<T: Real>(
    target: impl LogDensity<T> + 'static,
    theta: &Matrix<T>,
) -> steinflow::Result<System<'static, T>> {
    system(target, Langevin::new(), theta)
}

fn sghmc_stein<T: Real>(
    target: impl LogDensity<T> + 'static,
    theta: &Matrix<T>,
) -> steinflow::Result<System<'static, T>> {
    system(target, Sghmc { friction: 10.0, variance: 1.0 }, theta)
}

fn system<T: Real>(
    target: impl LogDensity<T> + 'static,
    dynamics: impl Dynamics<T> + 'static,
    theta: &Matrix<T>,
) -> steinflow::Result<System<'static, T>> {
    System::new(target, dynamics, Stein::new(Kernel::default()), theta, 0)
}

fn gaussian<T: Real>(dim: usize) -> impl LogDensity<T> {
    PerParticle::new(dim, |theta: &[T], score: &mut [T]| {
        for (s, &x) in score.iter_mut().zip(theta) {
            *s = -x;
        }
        T::zero()
    })
}

fn logistic() -> Result<LogisticRegression<f32>> {
    const FEATURES: usize = 53;
    let rows: Matrix<f64> = normal(1000, FEATURES + 1, 1.0, 1);
    let names: Vec<String> = (0..FEATURES).map(|j| format!("x{j},")).collect();
    let mut csv = names.concat();
    csv.push_str("y\n");
    for i in 0..rows.rows() {
        let (features, chance) = rows.row(i).split_at(FEATURES);
        csv.extend(features.iter().map(|x| format!("{x},")));
        csv.push_str(if features[0] + features[1] + chance[0] > 0.0 { "1\n" } else { "0\n" });
    }
    let table = Table::from_reader(csv.as_bytes(), "bench.csv")?;
    Ok(LogisticRegression::new(&table, None, 1.0)?)
}

fn network(features: usize) -> Result<Bnn<f32>> {
    let rows: Matrix<f64> = normal(455, features, 1.0, 7);
    let targets: Vec<f64> = (0..455).map(|i| rows.row(i)[0].sin() + 0.3 * rows.row(i)[1]).collect();
    Ok(Bnn::new(&Architecture::default(), &rows, &targets, Precisions::default())?)
}

fn normal<T: Real>(rows: usize, cols: usize, scale: f64, seed: u64) -> Matrix<T> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    Matrix::from_fn(rows, cols, |_, _| {
        let draw: f64 = StandardNormal.sample(&mut generator);
        T::of(scale * draw)
    })
}
