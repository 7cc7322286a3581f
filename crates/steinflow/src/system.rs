//! Target, dynamics, field and particles put together: what an integrator moves.
//!
//! The system evaluates only what is out of date. The score is refreshed when θ or the minibatch
//! has changed and someone needs it, so a step of symmetric splitting costs one gradient.

mod draws;
mod motion;
mod rollback;

pub(crate) use draws::check_batch_size;
pub use rollback::Saved;

use rayon::prelude::*;

use crate::dynamics::{Dynamics, Evaluated, Operator, Point, Structure, THETA, Terms};
use crate::engine::{Scratch, all_finite, rows_per_task, vectorised};
use crate::field::Field;
use crate::precondition::{Preconditioner, RootMeanSquare};
use crate::{Error, LogDensity, MatRef, Matrix, Minibatch, Real, Result};

/// Particles under way. [`crate::Sampler`] drives one; take it yourself to write your own loop.
pub struct System<'a, T: Real> {
    target: Box<dyn LogDensity<T> + 'a>,
    dynamics: Box<dyn Dynamics<T> + 'a>,
    field: Box<dyn Field<T> + 'a>,
    structure: Structure,
    operator: Operator<T>,
    seed: u64,
    batch_size: Option<usize>,
    minibatch: Option<Minibatch>,

    at: Configuration<T>,
    /// θ as the target gets it, and the version of the block that it is a copy of.
    theta: Matrix<T>,
    theta_version: u64,
    /// The state in the preconditioner's coordinates, if there is one.
    scaled: Option<Scaled<T>>,
    gradient: Matrix<T>,
    coefficients: Matrix<T>,
    curl_divergence: Matrix<T>,
    drift: Matrix<T>,
    score_is_current: bool,
    locals_are_current: bool,
    /// The blocks whose drift is current when the locals are.
    drift_blocks: Vec<usize>,
    /// Whether a block's part of the gradient is current.
    gradient_is_current: Vec<bool>,
    /// See [`Evaluated::versions`].
    versions: Vec<u64>,
    changes: u64,

    scratch: Scratch<T>,
    displacement: Vec<T>,
    frozen: Vec<bool>,
    squared_speeds: Vec<f64>,
    gradients: u64,
    noises: u64,
    step: u64,
    step_size: f64,
}

/// Where the particles are and what the target says there: all that a step can spoil.
struct Configuration<T> {
    state: Matrix<T>,
    log_density: Vec<T>,
    score: Matrix<T>,
    batches: u64,
    preconditioner: Option<Preconditioner<T>>,
}

/// The particles in the coordinates that they move in, and the versions of the blocks that these are.
struct Scaled<T> {
    state: Matrix<T>,
    versions: Vec<u64>,
}

impl<'a, T: Real> System<'a, T> {
    /// Puts particles at `theta`, with auxiliary variables drawn from their Gaussians.
    pub fn new(
        target: impl LogDensity<T> + 'a,
        dynamics: impl Dynamics<T> + 'a,
        field: impl Field<T> + 'a,
        theta: &Matrix<T>,
        seed: u64,
    ) -> Result<Self> {
        let dim = target.dim();
        let structure = dynamics.structure(dim);
        structure.validate()?;
        if theta.cols() != dim {
            return Err(Error::Shape {
                what: "the starting particles",
                found: format!("shape {} × {}", theta.rows(), theta.cols()),
                expected: format!("particles × {dim}, the target's dimension"),
            });
        }
        let (count, blocks) = (theta.rows(), structure.blocks());
        if count == 0 {
            return Err(Error::setting("number of particles", 0, "take 2 or more"));
        }
        field.validate(blocks, count)?;
        let mut state = Matrix::zeros(count, blocks * dim);
        for i in 0..count {
            state.row_mut(i)[..dim].copy_from_slice(theta.row(i));
        }
        draws::auxiliaries(&mut state, &structure, seed, 0);
        let operator = Operator::new(&structure);
        let width = operator.width();
        Ok(Self {
            target: Box::new(target),
            dynamics: Box::new(dynamics),
            field: Box::new(field),
            operator,
            seed,
            batch_size: None,
            minibatch: None,
            at: Configuration {
                state,
                log_density: vec![T::zero(); count],
                score: Matrix::zeros(count, dim),
                batches: 0,
                preconditioner: None,
            },
            scaled: None,
            theta: Matrix::zeros(count, dim),
            theta_version: 0,
            gradient: Matrix::zeros(count, blocks * dim),
            coefficients: Matrix::from_fn(count, width, |_, k| T::of(f64::from(u8::from(k == 0)))),
            curl_divergence: Matrix::zeros(count, blocks * dim),
            drift: Matrix::zeros(count, blocks * dim),
            score_is_current: false,
            locals_are_current: false,
            drift_blocks: Vec::new(),
            gradient_is_current: vec![false; blocks],
            versions: vec![1; blocks],
            changes: 1,
            scratch: Scratch::default(),
            displacement: Vec::new(),
            frozen: vec![false; count],
            squared_speeds: vec![0.0; blocks],
            gradients: 0,
            noises: 0,
            step: 0,
            step_size: 0.0,
            structure,
        })
    }

    /// The particles z = (θ, r, …), `N × (blocks · dim)`.
    pub fn state(&self) -> MatRef<'_, T> {
        self.at.state.as_ref()
    }

    /// Replaces the particles, auxiliary variables included.
    pub fn set_state(&mut self, state: Matrix<T>) -> Result<()> {
        if (state.rows(), state.cols()) != (self.at.state.rows(), self.at.state.cols()) {
            return Err(Error::Shape {
                what: "the new state",
                found: format!("shape {} × {}", state.rows(), state.cols()),
                expected: format!("{} × {}", self.at.state.rows(), self.at.state.cols()),
            });
        }
        self.at.state = state;
        self.score_is_current = false;
        self.changed_everywhere();
        Ok(())
    }

    /// Notes that the numbers of some blocks are new.
    fn changed(&mut self, blocks: &[usize]) {
        self.locals_are_current = false;
        self.changes += 1;
        for &block in blocks {
            self.versions[block] = self.changes;
            // That of θ changes with the score.
            self.gradient_is_current[block] &= block == THETA;
        }
    }

    fn changed_everywhere(&mut self) {
        self.locals_are_current = false;
        self.changes += 1;
        self.versions.fill(self.changes);
        self.gradient_is_current.fill(false);
    }

    /// The blocks of A and C.
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// log π(θ) of every particle, as of the last evaluation of the target.
    pub fn log_density(&self) -> &[T] {
        &self.at.log_density
    }

    /// ∇log π(θ) of every particle, as of the last evaluation; none where that was on a minibatch.
    pub fn full_score(&self) -> Option<MatRef<'_, T>> {
        self.minibatch.is_none().then(|| self.at.score.as_ref())
    }

    /// How often the target was evaluated, for all particles at once.
    pub fn gradients(&self) -> u64 {
        self.gradients
    }

    /// The bandwidths that the last velocity used.
    pub fn bandwidths(&self) -> &[f64] {
        self.field.bandwidths()
    }

    /// √(mean of |v|² over particles that are not frozen), every block as it last moved.
    pub fn velocity_norm(&self) -> f64 {
        self.squared_speeds.iter().sum::<f64>().sqrt()
    }

    /// Brings log π and the score up to date with θ and the minibatch.
    pub fn evaluate_target(&mut self) -> Result<()> {
        if self.score_is_current {
            return Ok(());
        }
        let minibatch = self.minibatch.take();
        let result = self.evaluate_rows(minibatch.as_ref());
        self.minibatch = minibatch;
        result
    }

    /// Brings log π and the score up to date with θ, on all of the data.
    pub(crate) fn evaluate_full_target(&mut self) -> Result<()> {
        if self.minibatch.is_none() { self.evaluate_target() } else { self.evaluate_rows(None) }
    }

    fn evaluate_rows(&mut self, batch: Option<&Minibatch>) -> Result<()> {
        let dim = self.structure.dim();
        let state = &self.at.state;
        if self.theta_version != self.versions[THETA] {
            let rows = self.theta.as_mut_slice().par_chunks_mut(dim).enumerate();
            rows.with_min_len(rows_per_task(dim))
                .for_each(|(i, theta)| theta.copy_from_slice(&state.row(i)[..dim]));
            self.theta_version = self.versions[THETA];
        }
        let (log_density, score) = (&mut self.at.log_density, &mut self.at.score);
        self.target.evaluate(self.theta.as_ref(), batch, log_density, score.as_mut())?;
        self.gradients += 1;
        let is_bad = |particle: usize| {
            !self.at.log_density[particle].is_finite() || !all_finite(self.at.score.row(particle))
        };
        let particles = (0..self.theta.rows()).into_par_iter().with_min_len(rows_per_task(dim));
        if let Some(particle) = particles.find_first(|&particle| is_bad(particle)) {
            let (score, value) = (self.at.score.row(particle), self.at.log_density[particle]);
            if !all_finite(score) {
                let bad = score.iter().find(|s| !s.is_finite()).map_or(f64::NAN, |s| s.as_f64());
                return Err(self.non_finite("score", particle, bad));
            }
            return Err(self.non_finite("log density", particle, value.as_f64()));
        }
        if let Some(preconditioner) = &mut self.at.preconditioner {
            preconditioner.learn(&self.at.score);
            self.changed(&[THETA]);
        }
        self.score_is_current = true;
        self.locals_are_current = false;
        self.gradient_is_current[THETA] = false;
        Ok(())
    }

    /// Lets the particles move in coordinates that are learnt from their gradients; velocities and
    /// what fields and dynamics see are then in those, the state is not.
    pub fn with_preconditioner(mut self, rule: RootMeanSquare) -> Result<Self> {
        rule.validate()?;
        self.at.preconditioner = Some(Preconditioner::new(rule, self.structure.dim()));
        let versions = vec![0; self.versions.len()];
        self.scaled = Some(Scaled { state: self.at.state.clone(), versions });
        self.changed_everywhere();
        Ok(self)
    }

    /// Brings the preconditioned state up to date.
    fn scale_state(&mut self) {
        let (Some(scaled), Some(preconditioner)) = (&mut self.scaled, &self.at.preconditioner)
        else {
            return;
        };
        let is_new = |block: usize| scaled.versions[block] != self.versions[block];
        let (dim, state, scale) = (self.structure.dim(), &self.at.state, preconditioner.scale());
        let size = state.cols();
        let rows = scaled.state.as_mut_slice().par_chunks_mut(size).enumerate();
        rows.with_min_len(rows_per_task(size)).for_each(|(i, scaled)| {
            let blocks = scaled.chunks_exact_mut(dim).zip(state.row(i).chunks_exact(dim));
            for (block, (u, x)) in blocks.enumerate().filter(|(block, _)| is_new(*block)) {
                if block != THETA {
                    u.copy_from_slice(x);
                    continue;
                }
                vectorised(
                    #[inline(always)]
                    || {
                        for ((u, &x), &s) in u.iter_mut().zip(x).zip(scale) {
                            *u = x / s;
                        }
                    },
                );
            }
        });
        scaled.versions.copy_from_slice(&self.versions);
    }

    /// Coefficients and ∇log π(z) of every particle, and the drift of some blocks, from what is current.
    fn evaluate_locals(&mut self, drifting: &[usize]) -> Result<()> {
        self.scale_state();
        let dim = self.structure.dim();
        let (width, size) = (self.operator.width(), self.structure.blocks() * dim);
        let state = self.scaled.as_ref().map_or(&self.at.state, |scaled| &scaled.state);
        let scale = self.at.preconditioner.as_ref().map(Preconditioner::scale);
        let (at, operator, structure) = (&self.at, &self.operator, &self.structure);
        let (dynamics, is_current) = (&*self.dynamics, &self.gradient_is_current);
        self.coefficients
            .as_mut_slice()
            .par_chunks_mut(width)
            .zip(self.gradient.as_mut_slice().par_chunks_mut(size))
            .zip(self.curl_divergence.as_mut_slice().par_chunks_mut(size))
            .zip(self.drift.as_mut_slice().par_chunks_mut(size))
            .enumerate()
            .with_min_len(rows_per_task(size))
            .for_each(|(i, (((coefficients, gradient), curl_divergence), drift))| {
                let (score, others) = gradient.split_at_mut(dim);
                if !is_current[THETA] {
                    score.copy_from_slice(at.score.row(i));
                    for (g, &s) in score.iter_mut().zip(scale.unwrap_or_default()) {
                        *g *= s;
                    }
                }
                let point =
                    Point { state: state.row(i), dim, log_density: at.log_density[i], score };
                let auxiliaries = (1..).zip(structure.auxiliaries());
                for ((block, law), out) in auxiliaries.zip(others.chunks_exact_mut(dim)) {
                    if is_current[block] {
                        continue;
                    }
                    let (mean, precision) = (T::of(law.mean), T::of(1.0 / law.variance));
                    let x = point.block(block);
                    vectorised(
                        #[inline(always)]
                        || {
                            for (g, &x) in out.iter_mut().zip(x) {
                                *g = (mean - x) * precision;
                            }
                        },
                    );
                }
                // A and C that do not vary have no divergence.
                if width > 1 {
                    dynamics.coefficients(&point, &mut coefficients[1..]);
                    curl_divergence.fill(T::zero());
                    dynamics.curl_divergence(&point, curl_divergence);
                    drift.fill(T::zero());
                    dynamics.diffusion_divergence(&point, drift);
                }
                for &block in drifting {
                    let columns = block * dim..(block + 1) * dim;
                    let out = &mut drift[columns.clone()];
                    if width > 1 {
                        for (f, &more) in out.iter_mut().zip(&curl_divergence[columns]) {
                            *f += more;
                        }
                    } else {
                        out.fill(T::zero());
                    }
                    operator.apply(coefficients, gradient, &[block], Terms::All, T::one(), out);
                }
            });
        if width > 1 {
            let coefficients = &self.coefficients;
            let first_bad = (0..coefficients.rows())
                .into_par_iter()
                .with_min_len(64)
                .filter_map(|i| operator.check_diffusion(coefficients.row(i), i).err())
                .find_first(|_| true);
            if let Some(error) = first_bad {
                return Err(error);
            }
        }
        self.locals_are_current = true;
        self.drift_blocks.clear();
        self.drift_blocks.extend_from_slice(drifting);
        self.gradient_is_current.fill(true);
        Ok(())
    }

    /// Brings up to date whatever the velocity of the blocks in `moving` depends on.
    fn refresh(&mut self, moving: &[usize]) -> Result<()> {
        if self.structure.needs_score(moving) {
            self.evaluate_target()?;
        }
        if !self.field.reads_locals(&self.operator, moving) {
            self.scale_state();
        } else if !self.locals_are_current || self.drift_blocks != moving {
            self.evaluate_locals(moving)?;
        }
        Ok(())
    }

    /// All that is known about the particles now, as a field gets it.
    pub fn evaluated(&mut self) -> Result<Evaluated<'_, T>> {
        self.evaluate_target()?;
        let all: Vec<usize> = (0..self.structure.blocks()).collect();
        self.evaluate_locals(&all)?;
        Ok(self.view().0)
    }

    fn view(&mut self) -> (Evaluated<'_, T>, &mut (dyn Field<T> + 'a)) {
        let evaluated = Evaluated {
            operator: &self.operator,
            state: self.scaled.as_ref().map_or(&self.at.state, |scaled| &scaled.state).as_ref(),
            score: self.at.score.as_ref(),
            scale: self.at.preconditioner.as_ref().map(Preconditioner::scale),
            auxiliaries: self.structure.auxiliaries(),
            gradient: self.gradient.as_ref(),
            coefficients: self.coefficients.as_ref(),
            curl_divergence: self.curl_divergence.as_ref(),
            drift: self.drift.as_ref(),
            versions: &self.versions,
            scratch: &self.scratch,
        };
        (evaluated, &mut *self.field)
    }

    fn check_moving(&self, moving: &[usize]) -> Result<()> {
        let blocks = self.structure.blocks();
        let once =
            |(place, block): (usize, &usize)| *block < blocks && !moving[..place].contains(block);
        if moving.is_empty() || !moving.iter().enumerate().all(once) {
            let remedy = format!("name one or more of the {blocks} blocks, each once");
            return Err(Error::setting("moving blocks", format!("{moving:?}"), remedy));
        }
        Ok(())
    }

    /// The field's velocity of the blocks in `moving`, one after the other.
    pub fn velocity(&mut self, moving: &[usize]) -> Result<Matrix<T>> {
        let mut velocity = Matrix::zeros(self.frozen.len(), moving.len() * self.structure.dim());
        self.write_velocity(moving, &mut velocity)?;
        self.measure_speeds(moving, &velocity);
        Ok(velocity)
    }

    fn write_velocity(&mut self, moving: &[usize], velocity: &mut Matrix<T>) -> Result<()> {
        self.check_moving(moving)?;
        self.refresh(moving)?;
        let (evaluated, field) = self.view();
        field.velocity(&evaluated, moving, velocity)
    }

    /// After a move of θ the next minibatch is due: the closing half step of a splitting and the
    /// opening one of the next step then share its gradient.
    pub fn finish_move(&mut self, moved: &[usize]) {
        if moved.contains(&THETA) && self.batch_size.is_some() {
            self.at.batches += 1;
            self.draw_minibatch();
        }
    }

    /// Tells the system which step it is in: the address of its noise, and what errors name.
    pub fn begin_step(&mut self, step: u64, step_size: f64) {
        // Room for the draws of a step, so that they depend on the step alone.
        const DRAWS_PER_STEP: u64 = 1 << 24;
        self.step = step;
        self.step_size = step_size;
        self.noises = step.wrapping_mul(DRAWS_PER_STEP);
    }

    /// The size of the step under way, or of the last one.
    pub fn step_size(&self) -> f64 {
        self.step_size
    }

    fn non_finite(&self, what: &'static str, particle: usize, value: f64) -> Error {
        let (step, step_size) = (self.step, self.step_size);
        Error::NonFinite { what, value, particle, step, step_size }
    }

    /// Gives up the particles.
    pub(crate) fn into_state(self) -> (Matrix<T>, Vec<T>, Structure) {
        (self.at.state, self.at.log_density, self.structure)
    }
}
