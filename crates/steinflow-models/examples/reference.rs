//! Reference runs on the posteriors of [`steinflow_models::posteriors`], by a sampler that shares
//! nothing with the library's: Hamiltonian Monte Carlo with random lengths and a dense metric from
//! many chains. And a server, so that samplers in other languages meet the same densities.
//!
//! ```text
//! reference list                                    name, half, description, parameters; by tabs
//! reference serve NAME            f64 in: θ; out: log density, score; until the input ends
//! reference sample NAME CHAINS DRAWS THIN ACCEPTANCE CALM SEED
//!                                 f64 out: chains × draws × dimension, one of THIN moves a draw
//! ```
//!
//! Chains climb first, until the density gains less than CALM in a step: little, unless there is a
//! funnel, whose top is no place to start from.

use std::io::{self, Read, Write};

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal, StandardUniform};
use steinflow::random::{Purpose, stream};
use steinflow::{LogDensity, Matrix};
use steinflow_models::{
    Describe,
    posteriors::{Posterior, all, find},
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let posterior = |name| find(name).map(|info| Target(info.build())).ok_or("no such posterior");
    // Inside a pool of one thread: evaluations are then plain calls.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    match arguments[..] {
        ["list"] => list(),
        ["serve", name] => {
            let target = posterior(name)?;
            pool.install(|| serve(&target))?;
        }
        ["sample", name, chains, draws, thin, acceptance, calm, seed] => {
            let target = posterior(name)?;
            let plan = Plan {
                chains: chains.parse()?,
                draws: draws.parse()?,
                thin: thin.parse()?,
                acceptance: acceptance.parse()?,
                calm: calm.parse()?,
                seed: seed.parse()?,
            };
            pool.install(|| sample(&target, &plan))?;
        }
        _ => {
            return Err("give list, serve or sample, as the head of this file says".into());
        }
    }
    Ok(())
}

fn list() {
    for info in all() {
        let parameters = info.build().parameter_names().join("\t");
        println!("{}\t{:?}\t{}\t{parameters}", info.name, info.half, info.description);
    }
}

/// A point, its log density and its score.
#[derive(Clone)]
struct Place {
    theta: Vec<f64>,
    value: f64,
    score: Vec<f64>,
}

struct Target(Posterior);

impl Target {
    fn dim(&self) -> usize {
        LogDensity::<f64>::dim(&self.0)
    }

    /// Where the density or its score is not finite, the log density is −∞ and the score 0.
    fn at(&self, theta: Vec<f64>) -> Place {
        let dim = theta.len();
        let point = Matrix::from_vec(theta, 1, dim).expect("one row");
        let (mut value, mut score) = ([0.0], Matrix::zeros(1, dim));
        self.0
            .evaluate(point.as_ref(), None, &mut value, score.as_mut())
            .expect("the shapes are the posterior's");
        let (theta, mut score) = (point.into_vec(), score.into_vec());
        if !(value[0].is_finite() && score.iter().all(|s| s.is_finite())) {
            value[0] = f64::NEG_INFINITY;
            score.fill(0.0);
        }
        Place { theta, value: value[0], score }
    }
}

fn serve(target: &Target) -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut bytes = vec![0; 8 * target.dim()];
    while input.read_exact(&mut bytes).is_ok() {
        let place = target.at(from_bytes(&bytes));
        output.write_all(&to_bytes(&[place.value]))?;
        output.write_all(&to_bytes(&place.score))?;
        output.flush()?;
    }
    Ok(())
}

fn from_bytes(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks().0.iter().map(|&eight| f64::from_le_bytes(eight)).collect()
}

fn to_bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The settings of a run.
struct Plan {
    chains: usize,
    draws: usize,
    thin: usize,
    acceptance: f64,
    calm: f64,
    seed: u64,
}

/// Warm-up in windows, each with the covariance of all chains in the one before; then draws of every
/// chain with metric and step frozen, to the standard output.
fn sample(target: &Target, plan: &Plan) -> io::Result<()> {
    let (mut places, metric) = start(target, plan);
    let mut dynamics = Dynamics { metric, log_step: -1.0, seed: plan.seed, clock: 0 };
    for window in [50, 50, 100, 200, 400, 800] {
        let mut cloud = Vec::new();
        for t in 0..window {
            let accepted = dynamics.move_all(target, &mut places);
            dynamics.learn_step(accepted - plan.acceptance, t);
            if t >= window / 3 {
                cloud.extend(places.iter().map(|place| place.theta.clone()));
            }
        }
        dynamics.metric = Metric::of_covariance(&covariance(&cloud), target.dim());
    }
    // The last metric has its own best step.
    for t in 0..200 {
        let accepted = dynamics.move_all(target, &mut places);
        dynamics.learn_step(accepted - plan.acceptance, t);
    }
    let mut output = vec![Vec::with_capacity(plan.draws * target.dim()); plan.chains];
    let mut accepted = 0.0;
    for _ in 0..plan.draws {
        for _ in 0..plan.thin {
            accepted += dynamics.move_all(target, &mut places);
        }
        for (chain, place) in output.iter_mut().zip(&places) {
            chain.extend_from_slice(&place.theta);
        }
    }
    let rate = accepted / (plan.draws * plan.thin) as f64;
    eprintln!("step {:.4}, accepted {rate:.4}", dynamics.log_step.exp());
    let mut standard = io::stdout().lock();
    output.iter().try_for_each(|chain| standard.write_all(&to_bytes(chain)))
}

/// A lower triangular L: coordinates θ = L u in which the posterior is nearly white.
struct Metric {
    factor: Vec<f64>,
    dim: usize,
}

impl Metric {
    fn of_covariance(covariance: &[f64], dim: usize) -> Self {
        let mut factor = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in 0..=i {
                let (before, row) = factor.split_at(i * dim);
                let other = if i == j { row } else { &before[j * dim..] };
                let rest = covariance[i * dim + j] - dot(&row[..j], &other[..j]);
                factor[i * dim + j] = if i == j {
                    rest.max(1e-12 * covariance[i * dim + i]).sqrt()
                } else {
                    rest / factor[j * dim + j]
                };
            }
        }
        Self { factor, dim }
    }

    /// L u.
    fn up(&self, u: &[f64]) -> Vec<f64> {
        (0..self.dim).map(|i| dot(&self.factor[i * self.dim..=i * self.dim + i], u)).collect()
    }

    /// Lᵀ g.
    fn down(&self, g: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.dim];
        for (row, g) in self.factor.chunks_exact(self.dim).zip(g) {
            sum.iter_mut().zip(row).for_each(|(sum, l)| *sum += l * g);
        }
        sum
    }
}

fn covariance(points: &[Vec<f64>]) -> Vec<f64> {
    let (count, dim) = (points.len() as f64, points[0].len());
    let mean: Vec<f64> =
        (0..dim).map(|j| points.iter().map(|point| point[j]).sum::<f64>() / count).collect();
    let mut sums = vec![0.0; dim * dim];
    for point in points {
        let centred: Vec<f64> = point.iter().zip(&mean).map(|(x, m)| x - m).collect();
        for (row, x) in sums.chunks_exact_mut(dim).zip(&centred) {
            row.iter_mut().zip(&centred).for_each(|(sum, y)| *sum += x * y / count);
        }
    }
    sums
}

/// Hamiltonian trajectories with an accept step.
struct Dynamics {
    metric: Metric,
    log_step: f64,
    seed: u64,
    clock: u64,
}

impl Dynamics {
    /// Robbins and Monro's rule; `excess` is of the acceptance over what is wanted.
    fn learn_step(&mut self, excess: f64, t: usize) {
        self.log_step += excess * 2.0 / (1.0 + t as f64).powf(0.6);
    }

    /// One trajectory of every chain; returns the mean probability of acceptance.
    fn move_all(&mut self, target: &Target, places: &mut [Place]) -> f64 {
        self.clock += 1;
        let mut total = 0.0;
        for (chain, place) in places.iter_mut().enumerate() {
            let mut random = stream(self.seed, Purpose::Noise, self.clock, chain as u64);
            let step = self.log_step.exp() * (0.8 + 0.4 * uniform(&mut random));
            // Up to a half-turn of a white Gaussian.
            let length = (uniform(&mut random) * 3.2 / step).ceil().clamp(1.0, 2_000.0) as usize;
            let mut p: Vec<f64> =
                (0..target.dim()).map(|_| StandardNormal.sample(&mut random)).collect();
            let mut proposal = place.clone();
            let before = place.value - 0.5 * dot(&p, &p);
            self.kick(&mut p, &proposal, 0.5 * step);
            for leap in 1..=length {
                let velocity = self.metric.up(&p);
                let theta = proposal.theta.iter().zip(velocity).map(|(x, v)| x + step * v);
                proposal = target.at(theta.collect());
                if proposal.value == f64::NEG_INFINITY {
                    break;
                }
                self.kick(&mut p, &proposal, if leap < length { step } else { 0.5 * step });
            }
            let log_ratio = proposal.value - 0.5 * dot(&p, &p) - before;
            let probability = if log_ratio.is_nan() { 0.0 } else { log_ratio.exp().min(1.0) };
            if uniform(&mut random) < probability {
                *place = proposal;
            }
            total += probability;
        }
        total / places.len() as f64
    }

    fn kick(&self, p: &mut [f64], place: &Place, by: f64) {
        p.iter_mut().zip(self.metric.down(&place.score)).for_each(|(p, g)| *p += by * g);
    }
}

fn uniform(random: &mut ChaCha8Rng) -> f64 {
    StandardUniform.sample(random)
}

/// Many points climb from random places; chains start from those that end near the best.
fn start(target: &Target, plan: &Plan) -> (Vec<Place>, Metric) {
    let climbers = 4 * plan.chains;
    let climbed: Vec<(Place, Vec<f64>)> = (0..climbers)
        .map(|climber| {
            let mut random = stream(plan.seed, Purpose::Start, 0, climber as u64);
            let mut width = 2.0;
            loop {
                let theta = (0..target.dim()).map(|_| width * (2.0 * uniform(&mut random) - 1.0));
                let place = target.at(theta.collect());
                if place.value.is_finite() {
                    return climb(target, place, plan.calm);
                }
                width *= 0.8;
            }
        })
        .collect();
    let best = climbed.iter().max_by(|a, b| a.0.value.total_cmp(&b.0.value)).expect("some chains");
    let enough = best.0.value - 10.0 - plan.calm;
    let kept: Vec<&Place> =
        climbed.iter().map(|(place, _)| place).filter(|place| place.value > enough).collect();
    eprintln!("{} of {climbers} climbed from {enough:.1} to {:.1}", kept.len(), best.0.value);
    let places = (0..plan.chains).map(|chain| kept[chain % kept.len()].clone()).collect();
    (places, Metric::of_covariance(&best.1, target.dim()))
}

/// Quasi-Newton ascent (BFGS) until three steps in a row promise and gain less than `calm`;
/// returns the inverse curvature too.
fn climb(target: &Target, mut place: Place, calm: f64) -> (Place, Vec<f64>) {
    let dim = target.dim();
    let identity = |scale: f64| {
        let mut inverse = vec![0.0; dim * dim];
        inverse.iter_mut().step_by(dim + 1).for_each(|entry| *entry = scale);
        inverse
    };
    let norm = |x: &[f64]| dot(x, x).sqrt();
    let mut inverse = identity(1.0 / norm(&place.score).max(1.0));
    let (mut failures, mut small_steps) = (0, 0);
    for _ in 0..3_000 {
        let direction: Vec<f64> =
            inverse.chunks_exact(dim).map(|row| dot(row, &place.score)).collect();
        let promise = dot(&direction, &place.score);
        if small_steps == 3 {
            break;
        }
        let mut scale = 1.0;
        let next = loop {
            let theta = place.theta.iter().zip(&direction).map(|(x, d)| x + scale * d).collect();
            let next = target.at(theta);
            if next.value >= place.value + 1e-4 * scale * promise && promise > 0.0 {
                break Some(next);
            }
            scale *= 0.25;
            if scale < 1e-12 {
                break None;
            }
        };
        let Some(next) = next else {
            failures += 1;
            if failures > 3 {
                break;
            }
            inverse = identity(1e-3 / norm(&place.score).max(1.0));
            continue;
        };
        failures = 0;
        let small = promise.max(next.value - place.value) < calm;
        small_steps = if small { small_steps + 1 } else { 0 };
        let step: Vec<f64> = next.theta.iter().zip(&place.theta).map(|(a, b)| a - b).collect();
        let change: Vec<f64> = place.score.iter().zip(&next.score).map(|(a, b)| a - b).collect();
        let curvature = dot(&step, &change);
        if curvature > 1e-12 * norm(&step) * norm(&change) {
            let image: Vec<f64> = inverse.chunks_exact(dim).map(|row| dot(row, &change)).collect();
            let ratio = 1.0 + dot(&change, &image) / curvature;
            for i in 0..dim {
                for j in 0..dim {
                    inverse[i * dim + j] +=
                        (ratio * step[i] * step[j] - image[i] * step[j] - step[i] * image[j])
                            / curvature;
                }
            }
        } else {
            // Not concave here: longer steps along the way that was right.
            for entry in &mut inverse {
                *entry *= 4.0;
            }
        }
        place = next;
    }
    (place, inverse)
}
