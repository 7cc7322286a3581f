//! Times of single moves on a GPU, and of the same moves on the processor, as JSON lines: what `cargo xtask gpu`
//! puts into `benches/runs`.
//!
//! A move is a whole one: score, bandwidth, velocity of all particles, new positions. Times are the median over
//! rounds of many moves, with one wait at the end of a round, as in a run whose observers are not due.

use std::time::Instant;

use serde_json::json;
use steinflow::flow::{Engine, Flow, Host, Parts, Request};
use steinflow::integrator::{Integrator as _, SymmetricSplitting};
use steinflow::kernel::{Bandwidth, Kernel};
use steinflow::method::{Method, Parameters};
use steinflow::run::NonFinitePolicy;
use steinflow::testing::random_states;
use steinflow::{LogDensity, Real, Result};
use steinflow_cuda::{Cuda, devices};
use steinflow_models::Describe as _;
use steinflow_models::data::{Choices, read_table};
use steinflow_models::network::{Architecture, Bnn, Precisions};
use steinflow_models::regression::LogisticRegression;
use steinflow_models::toy::Isotropic;

/// One line of the table.
struct Work {
    name: &'static str,
    particles: usize,
    dim: usize,
    /// h, or the median.
    bandwidth: Option<f64>,
    method: &'static str,
    is_fast: bool,
    /// Moves of a round.
    moves: u32,
    /// Whether the processor is timed too.
    on_host: bool,
}

impl Work {
    const fn svgd(name: &'static str, particles: usize, dim: usize, moves: u32) -> Self {
        let (bandwidth, method) = (Some(1.0), "svgd");
        Self { name, particles, dim, bandwidth, method, is_fast: false, moves, on_host: false }
    }
}

const ROUNDS: usize = 7;

fn main() -> Result<()> {
    for device in devices()? {
        println!("{}", json!({ "device": device.name, "memory": device.memory.1 }));
    }
    let mut table = vec![
        Work::svgd("velocity", 16_384, 2, 200),
        Work::svgd("velocity", 65_536, 2, 30),
        Work::svgd("velocity", 262_144, 2, 3),
        Work::svgd("velocity", 1_000_000, 2, 1),
        Work::svgd("velocity", 16_384, 64, 100),
        Work { is_fast: true, ..Work::svgd("velocity", 16_384, 64, 100) },
        Work::svgd("velocity", 65_536, 64, 5),
        Work { is_fast: true, ..Work::svgd("velocity", 65_536, 64, 10) },
        Work::svgd("velocity", 1000, 4653, 20),
        Work { bandwidth: None, ..Work::svgd("step with its median", 16_384, 2, 200) },
        Work { bandwidth: None, ..Work::svgd("step with its median", 16_384, 64, 100) },
    ];
    // From which N on a GPU is faster.
    for particles in [32, 100, 316, 1000, 3162, 10_000] {
        for dim in [2, 50] {
            let moves = if particles > 2000 { 20 } else { 200 };
            let work = Work::svgd("break even", particles, dim, moves);
            table.push(Work { bandwidth: None, on_host: true, ..work });
        }
    }
    for work in &table {
        let target = Isotropic::new(work.dim).expect("at least one dimension");
        time::<f32>(work, &target)?;
    }
    let logistic = logistic();
    let work = Work {
        bandwidth: None,
        on_host: true,
        ..Work::svgd("logistic regression, step with its median", 10_000, 54, 50)
    };
    time::<f32>(&work, &logistic)?;
    for (particles, inputs, steps, on_host) in
        [(20, 13, 500, true), (20, 90, 500, true), (100, 13, 200, true), (1000, 90, 20, true)]
    {
        for is_fast in [false, true] {
            if !is_fast || particles == 1000 {
                time_network(particles, inputs, steps, is_fast, on_host && !is_fast)?;
            }
        }
    }
    let work = Work { bandwidth: None, ..Work::svgd("double precision", 16_384, 2, 50) };
    time::<f64>(&work, &Isotropic::new(2).expect("two dimensions"))
}

/// 1000 rows, 53 features and an intercept.
fn logistic() -> LogisticRegression<f32> {
    const ROWS: usize = 1000;
    const FEATURES: usize = 53;
    let x = random_states(ROWS, FEATURES, 4);
    let names: Vec<String> = (0..FEATURES).map(|j| format!("x{j}")).collect();
    let rows = (0..ROWS).map(|i| {
        let row: Vec<String> = x.row(i).iter().map(ToString::to_string).collect();
        format!("{},{}\n", row.join(","), u8::from(x.row(i)[0] + 0.5 * x.row(i)[1] > 0.0))
    });
    let text = format!("{},y\n{}", names.join(","), rows.collect::<String>());
    let path = std::env::temp_dir().join(format!("steinflow-gpu-{}.csv", std::process::id()));
    std::fs::write(&path, text).expect("a temporary file can be written");
    let (table, _) = read_table(&path, None, &Choices::default()).expect("it was just written");
    let _ = std::fs::remove_file(&path);
    LogisticRegression::new(&table, None, 2.5).expect("two classes")
}

fn time<T: Real>(work: &Work, target: &dyn LogDensity<T>) -> Result<()> {
    let bandwidth = work.bandwidth.map_or(Bandwidth::MedianLog, |scale| {
        // Of N(0, I), about what the median would be.
        Bandwidth::White { factor: scale }
    });
    let kernel = Kernel { bandwidth, ..Kernel::default() };
    let (method, parameters) = (Method::named(work.method)?, Parameters::default());
    let dynamics = || method.build_dynamics::<T>(&parameters);
    let request = Request {
        structure: dynamics().structure(work.dim),
        particles: work.particles,
        batch_size: None,
        preconditioner: None,
        policy: NonFinitePolicy::Stop,
        joint_accept: false,
    };
    let parts = || {
        let field = method.build_field(kernel.clone(), &parameters, None)?;
        let theta = random_states(work.particles, work.dim, 1).cast();
        Ok::<_, steinflow::Error>(Parts {
            target: Box::new(target),
            dynamics: dynamics(),
            field,
            theta,
            seed: 1,
        })
    };
    let cuda = Cuda::new(0, &method, &parameters, kernel.clone())?;
    let cuda = if work.is_fast { cuda.fast() } else { cuda };
    Engine::<T>::check(&cuda, &request, target)?;
    let on_gpu = rounds(&mut *cuda.start(parts()?, &request)?, work.moves)?;
    let on_host = if work.on_host {
        Some(rounds(&mut *Host.start(parts()?, &request)?, work.moves.min(20))?)
    } else {
        None
    };
    println!(
        "{}",
        json!({
            "work": work.name,
            "method": work.method,
            "particles": work.particles,
            "dim": work.dim,
            "precision": if work.is_fast { "tf32" } else { T::NAME },
            "gpu_ms": on_gpu,
            "cpu_ms": on_host,
            "threads": rayon::current_num_threads(),
        })
    );
    Ok(())
}

/// A step of SGHMC-Stein by splitting on a network of 50 units, with batches of 100 rows: whole steps, as a run takes
/// them.
fn time_network(
    particles: usize,
    inputs: usize,
    steps: u32,
    is_fast: bool,
    on_host: bool,
) -> Result<()> {
    const ROWS: usize = 500;
    let rows = random_states(ROWS, inputs, 3);
    let targets: Vec<f64> = (0..ROWS).map(|i| rows.row(i)[0].sin()).collect();
    let precisions = Precisions::default();
    let model = Bnn::<f32>::new(&Architecture::default(), &rows, &targets, precisions)
        .expect("the data are finite");
    let (method, parameters) = (Method::named("sghmc-stein")?, Parameters::default());
    let kernel = Kernel::default();
    let request = Request {
        structure: method.build_dynamics::<f32>(&parameters).structure(model.dim()),
        particles,
        batch_size: Some(100),
        preconditioner: None,
        policy: NonFinitePolicy::Stop,
        joint_accept: false,
    };
    let parts = || {
        let theta = model.start_sample(particles, 1).expect("networks draw their start");
        Ok::<_, steinflow::Error>(Parts {
            target: Box::new(&model),
            dynamics: method.build_dynamics::<f32>(&parameters),
            field: method.build_field(kernel.clone(), &parameters, None)?,
            theta: theta.cast(),
            seed: 1,
        })
    };
    let splits = |flow: &mut dyn Flow<f32>| {
        SymmetricSplitting.step(flow, 1e-4)?;
        flow.evaluate_target()
    };
    let cuda = Cuda::new(0, &method, &parameters, kernel.clone())?;
    let cuda = if is_fast { cuda.fast() } else { cuda };
    Engine::<f32>::check(&cuda, &request, &model)?;
    let on_gpu = rounds_of(&mut *cuda.start(parts()?, &request)?, steps, splits)?;
    let on_host = if on_host {
        let steps = if particles > 500 { 2 } else { steps.min(50) };
        Some(rounds_of(&mut *Host.start(parts()?, &request)?, steps, splits)?)
    } else {
        None
    };
    println!(
        "{}",
        json!({
            "work": "network, step with splitting and its medians",
            "method": "sghmc-stein",
            "particles": particles,
            "inputs": inputs,
            "dim": model.dim(),
            "precision": if is_fast { "tf32" } else { "f32" },
            "gpu_ms": on_gpu,
            "cpu_ms": on_host,
            "threads": rayon::current_num_threads(),
        })
    );
    Ok(())
}

/// Milliseconds of a move: of every round, sorted.
fn rounds<T: Real>(flow: &mut dyn Flow<T>, moves: u32) -> Result<Vec<f64>> {
    rounds_of(flow, moves, |flow| {
        flow.advance(&[0], 1e-4)?;
        flow.evaluate_target()
    })
}

/// The same of any step.
fn rounds_of<T: Real>(
    flow: &mut dyn Flow<T>,
    moves: u32,
    take: impl Fn(&mut dyn Flow<T>) -> Result<()>,
) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let begun = Instant::now();
        for step in 0..moves {
            flow.begin_step(u64::from(step), 1e-4);
            take(flow)?;
        }
        // Waits for the device.
        flow.vitals()?;
        // The first round compiles and records.
        if round > 0 {
            times.push(begun.elapsed().as_secs_f64() * 1e3 / f64::from(moves));
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}
