//! Target, dynamics, field and particles put together: what an integrator moves.
//!
//! The system computes only what is out of date, by one rule: every block of the state has a version,
//! and what is computed is kept with the versions it was computed from. So a step of symmetric
//! splitting costs one gradient.

mod draws;
mod motion;
mod part;
mod rollback;
mod strips;
mod volume;

pub(crate) use draws::check_batch_size;
pub use rollback::Saved;

use std::sync::Arc;

use rayon::prelude::*;

use crate::dynamics::{Dynamics, Evaluated, Operator, Point, Structure, THETA};
use crate::engine::{Scratch, all_finite, rows_per_task, vectorised};
use crate::field::{Draw, Field};
use crate::precondition::{Preconditioner, RootMeanSquare};
use crate::team::{Alone, Team};
use crate::{Error, LogDensity, MatMut, MatRef, Matrix, Minibatch, Real, Result};

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
    versions: Versions,
    /// What θ and minibatch the score is of.
    score_of: Option<ScoreKey>,
    /// θ as the target gets it, of a version of the block.
    theta: Cached<u64, Matrix<T>>,
    /// The state in the preconditioner's coordinates, if there is one, of versions of the blocks in those.
    scaled: Option<Cached<Vec<u64>, Matrix<T>>>,
    locals: Cached<(Vec<u64>, Option<ScoreKey>), Locals<T>>,

    scratch: Scratch<T>,
    team: Arc<dyn Team<T>>,
    displacement: Vec<T>,
    frozen: Vec<bool>,
    squared_speeds: Vec<f64>,
    gradients: u64,
    noises: u64,
    step: u64,
    step_size: f64,
    log_volume: f64,
    exact_volume: usize,
    /// The part of a step that is made, where not all of it is.
    part: Option<part::Part>,
}

/// Where the particles are and what the target says there: all that a step can spoil.
struct Configuration<T> {
    /// Written to by [`own`]: somebody else may hold it.
    state: Arc<Matrix<T>>,
    log_density: Vec<T>,
    score: Matrix<T>,
    batches: u64,
    preconditioner: Option<Preconditioner<T>>,
}

/// When the blocks of the state and the preconditioner's scale last changed: numbers that grow. Never 0.
struct Versions {
    blocks: Vec<u64>,
    scale: u64,
    last: u64,
}

impl Versions {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn changed(&mut self, blocks: &[usize]) {
        let version = self.next();
        for &block in blocks {
            self.blocks[block] = version;
        }
    }

    fn changed_everywhere(&mut self) {
        let version = self.next();
        self.blocks.fill(version);
    }

    /// Those of the blocks in the preconditioner's coordinates.
    fn scaled(&self) -> impl Iterator<Item = u64> {
        let of = |(block, &version)| if block == THETA { self.scale.max(version) } else { version };
        self.blocks.iter().enumerate().map(of)
    }
}

/// The version of θ, and the number of the minibatch where there is one.
type ScoreKey = (u64, Option<u64>);

/// Something computed, and the versions of what it was computed from.
struct Cached<K, V> {
    of: Option<K>,
    value: V,
}

/// What A and C are at every particle, where they vary.
struct Locals<T> {
    coefficients: Matrix<T>,
    /// ∇·(A + C), written where A varies.
    divergence: Matrix<T>,
    curl_divergence: Matrix<T>,
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
        // Where they vary, they are given room when somebody asks for them.
        let ones = Matrix::from_fn(count, usize::from(width == 1), |_, _| T::one());
        let nothing = || Matrix::zeros(count, 0);
        let locals =
            Locals { coefficients: ones, divergence: nothing(), curl_divergence: nothing() };
        Ok(Self {
            target: Box::new(target),
            dynamics: Box::new(dynamics),
            field: Box::new(field),
            operator,
            seed,
            batch_size: None,
            minibatch: None,
            at: Configuration {
                state: Arc::new(state),
                log_density: vec![T::zero(); count],
                score: Matrix::zeros(count, dim),
                batches: 0,
                preconditioner: None,
            },
            versions: Versions { blocks: vec![1; blocks], scale: 1, last: 1 },
            score_of: None,
            theta: Cached { of: None, value: Matrix::zeros(count, dim) },
            scaled: None,
            locals: Cached { of: None, value: locals },
            scratch: Scratch::default(),
            team: Arc::new(Alone),
            displacement: Vec::new(),
            frozen: vec![false; count],
            squared_speeds: vec![0.0; blocks],
            gradients: 0,
            noises: 0,
            step: 0,
            step_size: 0.0,
            log_volume: 0.0,
            exact_volume: volume::FEW,
            part: None,
            structure,
        })
    }

    /// Lets others share the work.
    pub fn with_team(mut self, team: Arc<dyn Team<T>>) -> Self {
        self.team = team;
        self
    }

    /// The particles z = (θ, r, …), `N × (blocks · dim)`.
    pub fn state(&self) -> MatRef<'_, T> {
        (*self.at.state).as_ref()
    }

    /// Replaces the particles, auxiliary variables included.
    pub fn set_state(&mut self, state: Matrix<T>) -> Result<()> {
        self.share_state(Arc::new(state))
    }

    /// As [`System::set_state`], of particles that somebody else keeps; they are copied when they are moved.
    pub(crate) fn share_state(&mut self, state: Arc<Matrix<T>>) -> Result<()> {
        if (state.rows(), state.cols()) != (self.at.state.rows(), self.at.state.cols()) {
            return Err(Error::Shape {
                what: "the new state",
                found: format!("shape {} × {}", state.rows(), state.cols()),
                expected: format!("{} × {}", self.at.state.rows(), self.at.state.cols()),
            });
        }
        self.at.state = state;
        self.versions.changed_everywhere();
        Ok(())
    }

    /// The particles as they now are, for somebody who keeps them.
    pub(crate) fn shared_state(&self) -> Arc<Matrix<T>> {
        Arc::clone(&self.at.state)
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

    /// log |det ∂z′/∂z| of the steps since it was last set to 0, for all particles together, where the
    /// integrator [keeps it](crate::integrator::Integrator::tracks_volume). NaN where it is not known.
    pub fn log_volume(&self) -> f64 {
        self.log_volume
    }

    pub(crate) fn set_log_volume(&mut self, log_volume: f64) {
        self.log_volume = log_volume;
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
        if self.score_of == Some(self.score_key()) {
            return Ok(());
        }
        let minibatch = self.minibatch.take();
        let result = self.evaluate_rows(minibatch.as_ref());
        self.minibatch = minibatch;
        result
    }

    /// What the score is to be of.
    fn score_key(&self) -> ScoreKey {
        (self.versions.blocks[THETA], self.minibatch.as_ref().map(|_| self.at.batches))
    }

    /// Brings log π and the score up to date with θ, on all of the data.
    pub(crate) fn evaluate_full_target(&mut self) -> Result<()> {
        if self.minibatch.is_none() { self.evaluate_target() } else { self.evaluate_rows(None) }
    }

    fn evaluate_rows(&mut self, batch: Option<&Minibatch>) -> Result<()> {
        let (dim, is_theta) = (self.structure.dim(), self.structure.blocks() == 1);
        let version = Some(self.versions.blocks[THETA]);
        let Configuration { state, log_density, score, .. } = &mut self.at;
        if self.theta.of != version && !is_theta {
            let rows = self.theta.value.as_mut_slice().par_chunks_mut(dim).enumerate();
            rows.with_min_len(rows_per_task(dim))
                .for_each(|(i, theta)| theta.copy_from_slice(&state.row(i)[..dim]));
            self.theta.of = version;
        }
        // Whatever goes wrong from here on, the score is that of nothing.
        self.score_of = None;
        let theta = if is_theta { (**state).as_ref() } else { self.theta.value.as_ref() };
        self.target.evaluate(theta, batch, log_density, score.as_mut())?;
        self.take_answer(batch.map(|_| self.at.batches))
    }

    /// Lets somebody write log π and the score who knows them already: the target is not asked.
    pub(crate) fn answer(
        &mut self,
        write: impl FnOnce(&mut [T], MatMut<'_, T>) -> Result<()>,
    ) -> Result<()> {
        self.score_of = None;
        write(&mut self.at.log_density, self.at.score.as_mut())?;
        self.take_answer(self.score_key().1)
    }

    /// Checks what log π and the score now are, and takes them for those of θ and this minibatch.
    fn take_answer(&mut self, batch: Option<u64>) -> Result<()> {
        let dim = self.structure.dim();
        self.gradients += 1;
        let is_bad = |particle: usize| {
            !self.at.log_density[particle].is_finite() || !all_finite(self.at.score.row(particle))
        };
        let particles = (0..self.frozen.len()).into_par_iter().with_min_len(rows_per_task(dim));
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
            self.versions.scale = self.versions.next();
        }
        self.score_of = Some((self.versions.blocks[THETA], batch));
        Ok(())
    }

    /// Lets the particles move in coordinates that are learnt from their gradients; velocities and
    /// what fields and dynamics see are then in those, the state is not.
    pub fn with_preconditioner(mut self, rule: RootMeanSquare) -> Result<Self> {
        rule.validate()?;
        self.at.preconditioner = Some(Preconditioner::new(rule, self.structure.dim()));
        self.scaled = Some(Cached { of: None, value: Matrix::clone(&self.at.state) });
        Ok(self)
    }

    /// Brings the preconditioned state up to date.
    fn scale_state(&mut self) {
        let (Some(scaled), Some(preconditioner)) = (&mut self.scaled, &self.at.preconditioner)
        else {
            return;
        };
        let versions: Vec<u64> = self.versions.scaled().collect();
        let known = scaled.of.take();
        let is_new = |block: usize| known.as_ref().is_none_or(|of| of[block] != versions[block]);
        let (dim, state, scale) = (self.structure.dim(), &self.at.state, preconditioner.scale());
        let size = state.cols();
        let rows = scaled.value.as_mut_slice().par_chunks_mut(size).enumerate();
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
        scaled.of = Some(versions);
    }

    /// Brings what A and C are at every particle up to date, where they vary.
    fn evaluate_locals(&mut self) -> Result<()> {
        let of = (self.versions.scaled().collect(), self.score_of);
        let (width, dim) = (self.operator.width(), self.structure.dim());
        if width == 1 || self.locals.of.as_ref() == Some(&of) {
            return Ok(());
        }
        self.locals.of = None;
        let size = self.structure.blocks() * dim;
        let state = self.scaled.as_ref().map_or(&*self.at.state, |scaled| &scaled.value);
        let scale = self.at.preconditioner.as_ref().map(Preconditioner::scale);
        let (at, dynamics, operator) = (&self.at, &*self.dynamics, &self.operator);
        let Locals { coefficients, divergence, curl_divergence } = &mut self.locals.value;
        if coefficients.cols() != width {
            *coefficients = Matrix::from_fn(at.state.rows(), width, |_, _| T::one());
            *divergence = Matrix::zeros(at.state.rows(), size);
            *curl_divergence = Matrix::zeros(at.state.rows(), size);
        }
        let first_bad = coefficients
            .as_mut_slice()
            .par_chunks_mut(width)
            .zip(divergence.as_mut_slice().par_chunks_mut(size))
            .zip(curl_divergence.as_mut_slice().par_chunks_mut(size))
            .enumerate()
            .with_min_len(rows_per_task(size))
            .filter_map(|(i, ((coefficients, divergence), curl_divergence))| {
                let (log_density, score) = (at.log_density[i], at.score.row(i));
                let point = Point { state: state.row(i), dim, log_density, score };
                let out = (coefficients, curl_divergence, divergence);
                let found = write_locals(dynamics, operator, (i, point, scale), out);
                found.err().map(|error| (i, error))
            })
            .min_by_key(|(i, _)| *i);
        if let Some((_, error)) = first_bad {
            return Err(error);
        }
        self.locals.of = Some(of);
        Ok(())
    }

    /// Brings up to date whatever the velocity of the blocks in `moving` depends on, but for A and C.
    fn refresh_particles(&mut self, moving: &[usize]) -> Result<()> {
        if self.structure.needs_score(moving) {
            self.evaluate_target()?;
        }
        self.scale_state();
        Ok(())
    }

    /// All that is known about the particles now, as a field gets it.
    pub fn evaluated(&mut self) -> Result<Evaluated<'_, T>> {
        self.evaluate_target()?;
        self.scale_state();
        self.evaluate_locals()?;
        Ok(self.view().0)
    }

    fn view(&mut self) -> (Evaluated<'_, T>, &mut (dyn Field<T> + 'a)) {
        let Locals { coefficients, divergence, curl_divergence } = &self.locals.value;
        let scaled = self.scaled.as_ref();
        let evaluated = Evaluated {
            operator: &self.operator,
            state: scaled.map_or(&*self.at.state, |scaled| &scaled.value).as_ref(),
            coefficients: coefficients.as_ref(),
            versions: scaled.and_then(|scaled| scaled.of.as_ref()).unwrap_or(&self.versions.blocks),
            address: Draw { seed: self.seed, index: self.step },
            scratch: &self.scratch,
            team: &*self.team,
            score: self.at.score.as_ref(),
            scale: self.at.preconditioner.as_ref().map(Preconditioner::scale),
            auxiliaries: self.structure.auxiliaries(),
            divergences: (self.operator.width() > 1).then(|| {
                let all =
                    if self.operator.diffusion_varies() { divergence } else { curl_divergence };
                (all.as_ref(), curl_divergence.as_ref())
            }),
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
        if let Some(field) = self.by_coordinate(moving)? {
            return self.write_velocity_by_strips(&*field, moving, velocity);
        }
        self.refresh_particles(moving)?;
        self.evaluate_locals()?;
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
}

/// The particles, to be written to: a copy of one's own where somebody else holds them.
fn own<T: Real>(state: &mut Arc<Matrix<T>>) -> &mut Matrix<T> {
    if Arc::get_mut(state).is_none() {
        // By all threads, into memory that nobody has to fill with zeros first.
        const SOME: usize = 64;
        let (parts, rest) = state.as_slice().as_chunks::<SOME>();
        let mut copy = Vec::with_capacity(parts.len() + 1);
        parts.par_iter().with_min_len(rows_per_task(SOME)).copied().collect_into_vec(&mut copy);
        let mut copy = copy.into_flattened();
        copy.extend_from_slice(rest);
        let copy = Matrix::from_vec(copy, state.rows(), state.cols());
        *state = Arc::new(copy.expect("as many numbers as there were"));
    }
    Arc::get_mut(state).expect("made just now")
}

/// Writes what A and C are at particle `i`: coefficients after a leading 1, ∇·C, and ∇·(A + C) where A varies. The
/// score is that of the target's own coordinates.
fn write_locals<T: Real>(
    dynamics: &dyn Dynamics<T>,
    operator: &Operator<T>,
    (i, point, scale): (usize, Point<'_, T>, Option<&[T]>),
    (coefficients, curl_divergence, divergence): (&mut [T], &mut [T], &mut [T]),
) -> Result<()> {
    let scaled: Option<Vec<T>> =
        scale.map(|scale| point.score.iter().zip(scale).map(|(&g, &s)| g * s).collect());
    let point = Point { score: scaled.as_deref().unwrap_or(point.score), ..point };
    dynamics.coefficients(&point, &mut coefficients[1..]);
    curl_divergence.fill(T::zero());
    dynamics.curl_divergence(&point, curl_divergence);
    if operator.diffusion_varies() {
        divergence.fill(T::zero());
        dynamics.diffusion_divergence(&point, divergence);
        divergence.iter_mut().zip(&*curl_divergence).for_each(|(sum, &more)| *sum += more);
    }
    operator.check_diffusion(coefficients, i)
}
