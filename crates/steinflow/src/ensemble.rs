//! The default sampler, which needs no settings: an ensemble that learns its scales from itself, then draws
//! exactly until a stop rule is content.
//!
//! | stage | what happens | where |
//! |---|---|---|
//! | start | uniform starts, redrawn at walls | `start.rs` |
//! | climb | every particle ascends by its own L-BFGS, or by the signs of its score | `climb.rs`, `signs.rs` |
//! | walk | short Hamiltonian moves, every particle with its own step size | `walk.rs` |
//! | learn | [coordinates](crate::coordinates), bends, modes, step size, lengths | `learn.rs`, `turn.rs` |
//! | produce | all of that frozen: moves and jumps with an accept step | `produce.rs`, `judge.rs` |
//! | search | modes without particles are looked for, and visited | `search.rs` |
//!
//! In the recipe, production is C alone: Hamiltonian dynamics whose momenta are drawn afresh, corrected by
//! an accept step. [`Moves`] names the other adjusted methods: A alone, and both.
//!
//! ```
//! use std::ops::ControlFlow;
//! use steinflow::ensemble::{Ensemble, Options};
//! use steinflow::target::PerParticle;
//! // N(10⁴, 10⁻⁶): nothing is known of it beforehand.
//! let target = PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
//!     score[0] = -(theta[0] - 1e4) * 1e6;
//!     -0.5e6 * (theta[0] - 1e4).powi(2)
//! });
//! let mut draws: Vec<f64> = Vec::new();
//! let mut ensemble = Ensemble::new(1, Options::default())?;
//! while !ensemble.is_done() {
//!     ensemble.advance(&target, &mut |at| {
//!         if let Some(k) = at.draw {
//!             draws.truncate(k * at.theta.rows());
//!             draws.extend(at.theta.as_slice());
//!         }
//!         ControlFlow::Continue(())
//!     })?;
//! }
//! let mean = draws.iter().sum::<f64>() / draws.len() as f64;
//! assert!((mean - 1e4).abs() < 1e-4 && ensemble.report().done);
//! # Ok::<(), steinflow::Error>(())
//! ```

mod climb;
mod cloud;
mod dice;
mod flight;
mod judge;
mod jump;
mod learn;
mod moves;
mod options;
mod produce;
mod regions;
mod report;
mod search;
mod signs;
mod start;
mod state;
mod track;
mod turn;
mod walk;
mod warm_up;
mod weed;
mod widened;

pub use judge::Verdict;
pub use moves::Moves;
pub use options::Options;
pub use report::{Reason, Report};
pub use warm_up::{WarmUp, warm_up};
pub use widened::Widened;

use std::ops::ControlFlow;

use crate::arrays::Arrays;
use crate::coordinates::Coordinates;
use crate::{Error, LogDensity, MatRef, Result};
use climb::Climb;
use cloud::Cloud;
use dice::Dice;
use flight::{Flight, Route};
use learn::Learning;
use moves::Stride;
use produce::Production;
use regions::Regions;
use search::Search;
use signs::Signs;
use track::Track;
use walk::Walk;

/// Batched evaluations or moves of a unit of work.
const UNIT: usize = 25;
/// The share of the budget that the warm-up may use.
const WARM_UP_SHARE: f64 = 0.9;
/// What the budget may be exceeded by.
const GRACE: f64 = 1.1;

/// What the ensemble is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Places particles.
    Start,
    /// Ascends.
    Climb,
    /// Moves with own step sizes, towards where the mass is.
    Walk,
    /// Learns coordinates, step size and lengths.
    Learn,
    /// Draws.
    Produce,
    /// Looks for modes that no particle visits.
    Search,
    /// Nothing is left to do.
    Done,
}

impl Stage {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Climb => "climb",
            Self::Walk => "walk",
            Self::Learn => "learn",
            Self::Produce => "draw",
            Self::Search => "search",
            Self::Done => "done",
        }
    }
}

/// What [`Ensemble::advance`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is more to do.
    Working,
    /// The watcher asked to stop; the next call goes on from there.
    Interrupted,
    /// The report is final.
    Done,
}

/// All particles after a move or an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// What the ensemble is at.
    pub stage: Stage,
    /// Moves of all particles so far.
    pub moves: u64,
    /// Evaluations of the target so far, of all particles together.
    pub evaluations: u64,
    /// The same for each particle: what the budget counts.
    pub gradients: f64,
    /// θ, N × d.
    pub theta: MatRef<'a, f64>,
    /// log π(θ) of every particle; −∞ at a wall.
    pub log_density: &'a [f64],
    /// ∇log π(θ), N × d; 0 at a wall.
    pub score: MatRef<'a, f64>,
    /// Of leapfrogs in u.
    pub step_size: f64,
    /// What draws were worth when they were last judged.
    pub verdict: Option<Verdict>,
    /// `Some(k)` when θ are draws number k of all chains. It restarts at 0 when the draws so far turn out
    /// to have been warm-up: whoever collects them cuts what they have to k.
    pub draw: Option<usize>,
    camera: Camera<'a>,
}

impl Moment<'_> {
    /// All that [`Ensemble::restore`] needs to go on from here to the same bits.
    pub fn save(&self) -> Arrays {
        self.camera.0.save()
    }

    /// Where the run stands.
    pub fn report(&self) -> Report {
        self.camera.0.report()
    }
}

/// The ensemble itself, for those who ask.
#[derive(Clone, Copy, Debug)]
struct Camera<'a>(&'a Ensemble);

/// Sees every move; `Break` interrupts.
pub type Watch<'a> = dyn FnMut(&Moment<'_>) -> ControlFlow<()> + 'a;

/// The sampler: all of its state, between any two moves.
#[derive(Clone, Debug)]
pub struct Ensemble {
    options: Options,
    dim: usize,
    count: usize,
    stage: Stage,
    dice: Dice,
    moves: u64,
    evaluations: u64,
    cloud: Cloud,
    flight: Flight,
    coordinates: Coordinates,
    regions: Regions,
    /// Kept until the walk has taken its curvature.
    climb: Option<Climb>,
    signs: Option<Signs>,
    tried_signs: bool,
    /// Every particle's own step size.
    steps: Vec<f64>,
    track: Track,
    walk: Walk,
    learning: Learning,
    production: Production,
    search: Search,
    weeded: usize,
    /// Gradients of each particle until the first draw.
    warm_up: Option<f64>,
}

/// What one step of the ensemble was.
enum Pace {
    /// Particles moved, and this is what the watcher said.
    Moved(ControlFlow<()>),
    /// Something was learnt or judged in between.
    Between,
}

impl Ensemble {
    /// An ensemble for targets of `dim` coordinates.
    pub fn new(dim: usize, options: Options) -> Result<Self> {
        let count = options.check(dim)?;
        Ok(Self {
            dim,
            count,
            stage: Stage::Start,
            dice: Dice { seed: options.seed, event: 0 },
            moves: 0,
            evaluations: 0,
            cloud: Cloud::new(count, dim),
            flight: Flight::new(count, dim),
            coordinates: Coordinates::identity(dim),
            regions: Regions::default(),
            climb: None,
            signs: None,
            tried_signs: false,
            steps: vec![0.5; count],
            track: Track::default(),
            walk: Walk::default(),
            learning: Learning::new(dim),
            production: Production::new(count, dim),
            search: Search::default(),
            weeded: 0,
            warm_up: None,
            options,
        })
    }

    /// Does some work: a part of the climb, a block of the walk, a part of a window of learning, a block of
    /// draws. Where work is cut into units changes nothing.
    pub fn advance(
        &mut self,
        target: &dyn LogDensity<f64>,
        watch: &mut Watch<'_>,
    ) -> Result<Status> {
        if target.dim() != self.dim {
            return Err(Error::Shape {
                what: "the target",
                found: format!("{} dimensions", target.dim()),
                expected: format!("{}, as the ensemble", self.dim),
            });
        }
        for _ in 0..UNIT {
            let pace = match self.stage {
                Stage::Start => self.start_step(target, watch)?,
                Stage::Climb => self.climb_step(target, watch)?,
                Stage::Walk => self.walk_step(target, watch)?,
                Stage::Learn => self.learn_step(target, watch)?,
                Stage::Produce => self.produce_step(target, watch)?,
                Stage::Search => self.search_step(target)?,
                Stage::Done => return Ok(Status::Done),
            };
            match pace {
                Pace::Moved(ControlFlow::Continue(())) => {}
                Pace::Moved(ControlFlow::Break(())) => return Ok(Status::Interrupted),
                Pace::Between => break,
            }
        }
        Ok(if self.is_done() { Status::Done } else { Status::Working })
    }

    fn start_step(&mut self, target: &dyn LogDensity<f64>, watch: &mut Watch<'_>) -> Result<Pace> {
        let given = self.options.start.as_ref();
        let is_warm = given.is_some() && self.options.is_warm;
        self.evaluations += start::start(&mut self.cloud, target, given, &mut self.dice)?;
        if is_warm {
            self.begin_warm();
        } else {
            self.climb = Some(Climb::new(&self.cloud));
            self.stage = Stage::Climb;
        }
        Ok(Pace::Moved(self.show(watch, None)))
    }

    fn climb_step(&mut self, target: &dyn LogDensity<f64>, watch: &mut Watch<'_>) -> Result<Pace> {
        let over = self.warm_up_is_over();
        if let Some(signs) = &mut self.signs {
            if signs.is_over() || over {
                self.signs = None;
                self.climb = Some(Climb::new(&self.cloud));
                return Ok(Pace::Between);
            }
            self.evaluations += signs.advance(&mut self.cloud, target)?;
            return Ok(Pace::Moved(self.show(watch, None)));
        }
        let climb = self.climb.as_mut().expect("the start and the signs leave a climb");
        if over || climb.is_over() {
            if over || self.tried_signs || climb.succeeded() {
                self.stage = Stage::Walk;
            } else {
                self.tried_signs = true;
                self.signs = Some(Signs::new(&self.cloud));
            }
            return Ok(Pace::Between);
        }
        self.evaluations += climb.advance(&mut self.cloud, target)?;
        Ok(Pace::Moved(self.show(watch, None)))
    }

    /// A Hamiltonian move of all particles, and a jump where there are several modes.
    fn transition(&mut self, target: &dyn LogDensity<f64>, route: &Route<'_>) -> Result<()> {
        let (event, length) = (self.dice.throw(), self.affordable(route.length));
        let route = Route { length, ..*route };
        let Self { flight, cloud, coordinates, .. } = self;
        flight.launch(cloud, target, coordinates, &route, event, |_, _, _| false)?;
        flight.accept(cloud);
        self.evaluations += (length * self.count) as u64;
        if self.regions.are_several() {
            let event = self.dice.throw();
            let Self { flight, cloud, coordinates, regions, .. } = self;
            let jumped = jump::jump(cloud, flight, regions, target, coordinates, event)?;
            self.production.jumped(jumped);
            self.evaluations += self.count as u64;
        }
        self.moves += 1;
        Ok(())
    }

    /// The next move, with one step size for all.
    fn stride(&mut self, target: &dyn LogDensity<f64>) -> Result<()> {
        let Stride { step, length, persistence } = self.next_move();
        let steps = vec![step; self.count];
        self.transition(target, &Route { steps: &steps, length, persistence })
    }

    /// As many leapfrogs as the budget and its grace leave, at least one.
    fn affordable(&self, length: usize) -> usize {
        let left = GRACE * self.options.gradients as f64 - self.gradients();
        length.min(left.max(1.0) as usize)
    }

    /// The standard deviation of the log density on a Gaussian.
    fn fluctuation(&self) -> f64 {
        (self.dim as f64 / 2.0).sqrt()
    }

    fn warm_up_is_over(&self) -> bool {
        self.gradients() >= WARM_UP_SHARE * self.options.gradients as f64
    }

    fn budget_is_spent(&self) -> bool {
        self.gradients() >= self.options.gradients as f64
    }

    fn show(&self, watch: &mut Watch<'_>, draw: Option<usize>) -> ControlFlow<()> {
        watch(&Moment {
            stage: self.stage,
            moves: self.moves,
            evaluations: self.evaluations,
            gradients: self.gradients(),
            theta: self.cloud.theta.as_ref(),
            log_density: &self.cloud.log_density,
            score: self.cloud.score.as_ref(),
            step_size: self.learning.step(),
            verdict: self.production.verdict,
            draw,
            camera: Camera(self),
        })
    }

    /// Evaluations of the target so far, for each particle.
    pub fn gradients(&self) -> f64 {
        self.evaluations as f64 / self.count as f64
    }

    /// What the ensemble is at.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether draws have begun.
    pub fn is_warm(&self) -> bool {
        self.warm_up.is_some()
    }

    /// Whether nothing is left to do.
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// N.
    pub fn particles(&self) -> usize {
        self.count
    }

    /// θ of every particle.
    pub fn theta(&self) -> MatRef<'_, f64> {
        self.cloud.theta.as_ref()
    }

    /// log π(θ) of every particle; −∞ at a wall.
    pub fn log_density(&self) -> &[f64] {
        &self.cloud.log_density
    }

    /// ∇log π(θ) of every particle; 0 at a wall.
    pub fn score(&self) -> MatRef<'_, f64> {
        self.cloud.score.as_ref()
    }

    /// The coordinates that are in use.
    pub fn coordinates(&self) -> &Coordinates {
        &self.coordinates
    }
}
