//! A warm-up before the first step, and what is kept of it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::auto::show;
use super::representative::{MOST, thinned};
use super::same_target::check_ensemble;
use super::{Checkpoint, Observer, Sampler};
use crate::arrays::Arrays;
use crate::coordinates::Coordinates;
use crate::diagnostics::{Counted, StopRule};
use crate::ensemble::{Ensemble, Options, WarmUp};
use crate::{Error, LogDensity, MatRef, Matrix, Real, Result};

/// Moments of exact draws that a warm-up has made, to compare with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WarmMoments {
    /// How many draws, of all particles together.
    pub draws: usize,
    /// Of every coordinate of θ.
    pub mean: Vec<f64>,
    /// Of every coordinate of θ.
    pub sd: Vec<f64>,
    /// What the sampler that made them holds of them.
    pub standing: Standing,
}

/// What a sampler with an accept step holds of its draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// There were as many as were wanted, too few for its stop rule.
    #[default]
    Early,
    /// They are enough.
    Settled,
    /// They are, but for tails that are too heavy for standard deviations.
    HeavyTails,
    /// It went on for as long as it may, and they are not.
    Unsettled,
}

impl Standing {
    const ALL: [Self; 4] = [Self::Early, Self::Settled, Self::HeavyTails, Self::Unsettled];

    /// Of an ensemble's draws.
    pub(crate) fn of(ensemble: &Ensemble) -> Self {
        let rule = StopRule::from(&ensemble.report());
        match (rule.is_settled(), rule.has_heavy_tails()) {
            (true, false) => Self::Settled,
            _ if !ensemble.is_done() => Self::Early,
            (true, true) => Self::HeavyTails,
            (false, _) => Self::Unsettled,
        }
    }

    /// The word for it in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Settled => "settled",
            Self::HeavyTails => "heavy tails",
            Self::Unsettled => "unsettled",
        }
    }

    /// What the word says; a word that nobody has written vouches for nothing.
    pub fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|standing| standing.name() == name).unwrap_or_default()
    }
}

/// Draws of each particle that moments are made of.
const DRAWS: usize = 25;
/// Particles of the ensemble that warms up, at the least.
const LEAST_WARM: usize = 32;
/// Effective draws that chosen particles stand for, in terms of those that are enough by themselves.
const TWICE: f64 = 2.0;

/// The particles that a warm-up is to leave.
#[derive(Clone, Copy)]
struct Wanted {
    count: usize,
    /// Whether they are chosen to stand for all draws, of which there are then as many as [`Auto`](super::Auto)
    /// would make. Otherwise they are draws themselves.
    is_chosen: bool,
}

impl Wanted {
    /// How many draws it takes, of an ensemble of so many particles; none where that is the ensemble's to say.
    fn draws(self, particles: usize) -> Option<usize> {
        (!self.is_chosen).then(|| self.count.max(DRAWS * particles))
    }
}

/// Draws that particles are taken from: every so many, the more there are.
struct Kept {
    /// θ, draw after draw.
    values: Vec<f64>,
    /// One of so many is kept.
    stride: usize,
    /// How many there were.
    seen: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self { values: Vec::new(), stride: 1, seen: 0 }
    }
}

impl Kept {
    /// A draw of all particles. Where there are more than twice as many rows as are wanted, every second draw goes.
    fn add(&mut self, theta: MatRef<'_, f64>, wanted: usize) {
        let each = theta.as_slice().len();
        if self.seen.is_multiple_of(self.stride) {
            self.values.extend_from_slice(theta.as_slice());
        }
        self.seen += 1;
        if self.values.len() > 2 * wanted * theta.cols() {
            let halved = self.values.chunks(each).step_by(2).flatten().copied().collect();
            self.values = halved;
            self.stride *= 2;
        }
    }

    fn save(&self, into: &mut Arrays) {
        into.put(KEPT, &*self.values);
        into.put(KEPT_OF, [self.stride as f64, self.seen as f64]);
    }

    fn restore(from: &Arrays) -> Result<Self> {
        let of = from.get_exactly(KEPT_OF, 2)?;
        Ok(Self {
            values: from.get(KEPT)?.to_vec(),
            stride: (of[0] as usize).max(1),
            seen: of[1] as usize,
        })
    }

    /// The particles to go on with. Where no draw was made, the last ones.
    fn particles(
        &self,
        wanted: Wanted,
        learnt: &WarmUp,
        target: &dyn LogDensity<f64>,
    ) -> Result<Matrix<f64>> {
        let dim = learnt.theta.cols();
        let rows = self.values.len() / dim;
        if wanted.is_chosen
            && rows > wanted.count
            && let Some(all) = MatRef::new(&self.values, rows, dim)
        {
            return thinned(all, wanted.count, &learnt.coordinates, &target);
        }
        Ok(self.spread(wanted.count, &learnt.theta))
    }

    /// `count` rows from draws that are as far apart as can be, the last among them. Rows come again where
    /// there are too few.
    fn spread(&self, count: usize, last: &Matrix<f64>) -> Matrix<f64> {
        let (particles, dim) = (last.rows(), last.cols());
        let draws = self.values.len() / (particles * dim);
        if draws == 0 {
            return Matrix::from_fn(count, dim, |i, j| last.row(i % particles)[j]);
        }
        let taken = count.div_ceil(particles).min(draws);
        Matrix::from_fn(count, dim, |i, j| {
            let draw = draws - 1 - (i / particles % taken) * (draws / taken);
            self.values[(draw * particles + i % particles) * dim + j]
        })
    }
}

/// Running sums of draws, about the first of them.
#[derive(Default)]
struct Sums {
    centre: Vec<f64>,
    count: usize,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Sums {
    fn add(&mut self, theta: MatRef<'_, f64>) {
        if self.count == 0 {
            self.centre = theta.row(0).to_vec();
            (self.first, self.second) = (vec![0.0; theta.cols()], vec![0.0; theta.cols()]);
        }
        for i in 0..theta.rows() {
            for (j, x) in theta.row(i).iter().enumerate() {
                let away = x - self.centre[j];
                self.first[j] += away;
                self.second[j] += away * away;
            }
        }
        self.count += theta.rows();
    }

    fn moments(&self) -> WarmMoments {
        let count = self.count.max(1) as f64;
        let mean = |j: usize| self.first[j] / count;
        let all = 0..self.first.len();
        WarmMoments {
            draws: self.count,
            mean: all.clone().map(|j| self.centre[j] + mean(j)).collect(),
            sd: all.map(|j| (self.second[j] / count - mean(j).powi(2)).max(0.0).sqrt()).collect(),
            standing: Standing::default(),
        }
    }

    fn save(&self, into: &mut Arrays) {
        into.put(UNDER_WAY, [self.count as f64]);
        let fields = [("centre", &self.centre), ("first", &self.first), ("second", &self.second)];
        for (name, values) in fields {
            into.put(format!("sums.{name}"), &**values);
        }
    }

    fn restore(dim: usize, from: &Arrays) -> Result<Self> {
        let count = from.get_count(UNDER_WAY)? as usize;
        let field =
            |name| from.get_exactly(&format!("sums.{name}"), if count == 0 { 0 } else { dim });
        Ok(Self {
            count,
            centre: field("centre")?,
            first: field("first")?,
            second: field("second")?,
        })
    }
}

/// Draws so far, where they are kept.
const KEPT: &str = "kept";
const KEPT_OF: &str = "kept.of";

/// What a checkpoint has learnt, where its warm-up was under way.
const UNDER_WAY: &str = "sums.count";

/// Whether these were saved before the first step, while the warm-up was under way.
pub(super) fn is_under_way(learnt: &Arrays) -> bool {
    learnt.get(UNDER_WAY).is_ok()
}

/// What a warm-up leaves to the steps that follow.
pub(super) struct Warmth {
    pub(super) moments: WarmMoments,
    pub(super) coordinates: Coordinates,
    /// Evaluations of the target that it took, for each particle that it left.
    pub(super) gradients: u64,
    /// θ of every particle; none in a run that goes on from a checkpoint.
    theta: Matrix<f64>,
}

/// When a warm-up is to be given up.
struct Stop {
    budget: Option<Duration>,
    interrupt: Option<Arc<AtomicBool>>,
}

impl Stop {
    fn is_due(&self, elapsed: Duration) -> bool {
        self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
            || self.budget.is_some_and(|budget| elapsed >= budget)
    }
}

impl Warmth {
    pub(super) fn restore(dim: usize, arrays: &Arrays) -> Result<Self> {
        Ok(Self {
            moments: WarmMoments {
                draws: arrays.get_count("draws")? as usize,
                mean: arrays.get_exactly("mean", dim)?,
                sd: arrays.get_exactly("sd", dim)?,
                // A checkpoint that does not say has nothing to vouch for.
                standing: arrays
                    .get_count("standing")
                    .ok()
                    .and_then(|code| Standing::ALL.get(code as usize).copied())
                    .unwrap_or_default(),
            },
            coordinates: Coordinates::restore(dim, arrays)?,
            gradients: arrays.get_count("gradients")?,
            theta: Matrix::zeros(0, dim),
        })
    }

    pub(super) fn save(&self) -> Arrays {
        let mut arrays = self.coordinates.save();
        arrays.put("gradients", [self.gradients as f64]);
        arrays.put("draws", [self.moments.draws as f64]);
        arrays.put("mean", &*self.moments.mean);
        arrays.put("sd", &*self.moments.sd);
        arrays.put("standing", [f64::from(self.moments.standing as u8)]);
        arrays
    }

    /// The particles where the warm-up left them, in its coordinates.
    pub(super) fn white<T: Real>(&self) -> Matrix<T> {
        self.coordinates.from_theta(self.theta.as_ref()).cast()
    }

    /// A state in these coordinates, with θ in the target's own.
    pub(super) fn in_theta<T: Real>(&self, state: MatRef<'_, T>, dim: usize) -> Matrix<T> {
        let white = Matrix::from_fn(state.rows(), dim, |i, j| state.row(i)[j].as_f64());
        let theta = self.coordinates.to_theta(white.as_ref());
        Matrix::from_fn(state.rows(), state.cols(), |i, j| {
            if j < dim { T::of(theta.row(i)[j]) } else { state.row(i)[j] }
        })
    }
}

impl<T: Real> Sampler<'_, T> {
    /// Warms up for as many particles as `theta` has; they are where the ensemble starts if they were given.
    pub(super) fn warm(
        &mut self,
        options: &Options,
        theta: &Matrix<T>,
        is_given: bool,
        earlier: Option<&Checkpoint<T>>,
        begun: Instant,
    ) -> Result<Warmth> {
        // Deterministic particles keep of their start whatever their kernel does not see.
        // Many stand for the target by their number, and there may be no more draws than of them.
        let count = theta.rows();
        let is_chosen = !self.field.is_random() && count <= MOST;
        let fewer = count.clamp(LEAST_WARM, Options::default_particles(theta.cols()));
        let options = Options {
            particles: Some(if is_given { count } else { fewer }),
            seed: self.seed,
            start: is_given.then(|| theta.cast()),
            // The error of all draws is what particles that stand for them begin with, and in part keep.
            // Otherwise it ends when there are draws enough to compare with.
            effective: if is_chosen { TWICE * options.effective } else { f64::MAX },
            ..options.clone()
        };
        let stop = Stop { budget: self.budget, interrupt: self.interrupt.clone() };
        let target = T::widen(Box::new(&*self.target));
        let wanted = Wanted { count, is_chosen };
        run(&*target, &options, wanted, earlier, &mut self.observers, &stop, begun)
    }
}

/// Runs an ensemble until it is warm and has made some draws, from `earlier` on where that is a checkpoint
/// of it, and leaves the particles that are wanted. Those may be more than the ensemble has: a warm-up costs no more for
/// many. Observers see it, at step 0.
fn run<T: Real>(
    target: &dyn LogDensity<f64>,
    options: &Options,
    wanted: Wanted,
    earlier: Option<&Checkpoint<T>>,
    observers: &mut [Box<dyn Observer<T> + '_>],
    stop: &Stop,
    begun: Instant,
) -> Result<Warmth> {
    let (mut ensemble, mut sums, mut kept) = match earlier {
        Some(checkpoint) => {
            let ensemble = Ensemble::restore(options.clone(), &checkpoint.learnt)?;
            check_ensemble::<T>(&ensemble, target)?;
            let sums = Sums::restore(target.dim(), &checkpoint.learnt)?;
            (ensemble, sums, Kept::restore(&checkpoint.learnt)?)
        }
        None => (Ensemble::new(target.dim(), options.clone())?, Sums::default(), Kept::default()),
    };
    let before = earlier.map_or(Duration::ZERO, |checkpoint| checkpoint.elapsed);
    let count = wanted.count;
    let enough = wanted.draws(ensemble.particles());
    let effective = enough.map_or(options.effective, |enough| enough as f64);
    let shown = Options { effective, ..options.clone() };
    let is_enough = |count: usize| enough.is_some_and(|enough| count >= enough);
    while !ensemble.is_done() && !is_enough(sums.count) {
        let mut stopped = None;
        ensemble.advance(target, &mut |at| {
            if let Some(draw) = at.draw {
                // Draws that turned out to be warm-up are forgotten.
                if draw == 0 {
                    (sums, kept) = (Sums::default(), Kept::default());
                }
                sums.add(at.theta);
                if wanted.is_chosen || count > at.theta.rows() {
                    kept.add(at.theta, count.max(MOST));
                }
            }
            let elapsed = before.saturating_add(begun.elapsed());
            let saved = || {
                let mut learnt = at.save();
                sums.save(&mut learnt);
                kept.save(&mut learnt);
                (0, learnt)
            };
            match show(at, count, 0, elapsed, &shown, observers, &saved) {
                Ok(ControlFlow::Continue(())) if !stop.is_due(elapsed) => {}
                Ok(_) => stopped = Some(Error::Interrupted { during: "the warm-up" }),
                Err(error) => stopped = Some(error),
            }
            let is_over = stopped.is_some() || is_enough(sums.count);
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if let Some(error) = stopped {
            return Err(error);
        }
    }
    let learnt = ensemble.learnt();
    if sums.count == 0 {
        sums.add(learnt.theta.as_ref());
    }
    let moments = WarmMoments { standing: Standing::of(&ensemble), ..sums.moments() };
    let counted = Counted::new(target);
    let theta = kept.particles(wanted, &learnt, &counted)?;
    let evaluations = ensemble.gradients() * ensemble.particles() as f64 + counted.points() as f64;
    let gradients = (evaluations / count as f64).ceil() as u64;
    Ok(Warmth { moments, coordinates: learnt.coordinates, gradients, theta })
}
