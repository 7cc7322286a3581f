//! Learning: windows of moves with one step size for all; after each, coordinates, bends and modes are fitted
//! to where the particles were.

use super::cloud::Cloud;
use super::regions::{Regions, merge, split};
use super::weed::weed;
use super::{Ensemble, Moves, Pace, Watch};
use crate::arrays::Arrays;
use crate::coordinates::{Coordinates, Linear, Warp, straightened};
use crate::quantiles::median;
use crate::{LogDensity, Matrix, Result};

/// Acceptance that the step size is adapted to, easy targets first.
const ACCEPTANCE: [f64; 4] = [0.8, 0.9, 0.95, 0.98];
/// The share of hard failures that asks for the next one.
pub(super) const TOO_HARD: f64 = 0.003;
const LARGEST_STEP: f64 = 2.5;
/// Modes are looked for in windows longer than this: in the first, particles are still settling.
const SETTLING: usize = 8;
/// How often windows in which the log density still rises are repeated.
const MOST_REPEATS: usize = 8;

/// Moves, and what is done after them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    moves: usize,
    fits: bool,
    turns: bool,
}

const fn window(moves: usize, fits: bool, turns: bool) -> Window {
    Window { moves, fits, turns }
}

const FIRST: [Window; 3] =
    [window(8, true, false), window(12, true, true), window(20, false, true)];
/// What bends or jumps is worth a better fit.
const MORE: [Window; 2] = [window(30, true, true), window(20, false, true)];
const STIFF: [Window; 1] = [window(20, false, true)];
/// To find the step size of moves of one leapfrog.
const SINGLE: [Window; 1] = [window(40, false, false)];
/// When draws turn out to have been warm-up.
pub(super) const AGAIN: [Window; 2] = [window(40, true, true), window(20, false, true)];

/// What is being learnt.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Learning {
    log_step: f64,
    /// Of moves of one leapfrog, from their window on.
    log_single_step: Option<f64>,
    /// Leapfrogs until each particle turned; none before that was tried.
    pub(super) lengths: Vec<f64>,
    /// Which [`ACCEPTANCE`].
    level: usize,
    plan: Vec<Window>,
    turn_is_due: bool,
    /// Windows that were repeated.
    repeats: usize,
    /// The share of hard failures in the last window.
    hard: f64,
    /// Whether [`MORE`] was planned, or is no longer called for.
    extended: bool,
    /// Of θ in the last window, coordinate by coordinate.
    pub(super) middle: Vec<f64>,
    pub(super) spread: Vec<f64>,
}

impl Learning {
    pub(super) fn new(dim: usize) -> Self {
        Self {
            log_step: 0.0,
            log_single_step: None,
            lengths: Vec::new(),
            level: 0,
            plan: Vec::new(),
            turn_is_due: false,
            repeats: 0,
            hard: 0.0,
            extended: false,
            middle: vec![0.0; dim],
            spread: vec![1.0; dim],
        }
    }

    pub(super) fn step(&self) -> f64 {
        self.log_single_step.unwrap_or(self.log_step).exp()
    }

    /// Whether moves are of one leapfrog.
    pub(super) fn is_single(&self) -> bool {
        self.log_single_step.is_some()
    }

    /// From now on moves are of one leapfrog.
    pub(super) fn begin_single(&mut self) {
        if !self.is_single() {
            (self.log_single_step, self.level) = (Some(self.log_step), 0);
        }
    }

    /// How long a particle flies until it turns, on average; π on N(0, I).
    pub(super) fn turn_time(&self) -> f64 {
        match self.lengths.len() {
            0 => std::f64::consts::PI,
            count => self.lengths.iter().sum::<f64>() / count as f64 * self.log_step.exp(),
        }
    }

    fn adapt(&mut self, acceptance: f64, moves: Moves, taken: usize) {
        // A stiff target asks for more.
        let wanted = match moves.acceptance().filter(|_| self.is_single()) {
            Some(wanted) if self.level == 0 => wanted,
            _ => ACCEPTANCE[self.level],
        };
        let log_step = self.log_single_step.as_mut().unwrap_or(&mut self.log_step);
        *log_step += (acceptance - wanted) * 1.5 / (1.0 + taken as f64).powf(0.6);
        *log_step = log_step.min(LARGEST_STEP.ln());
    }

    pub(super) fn begin(&mut self, step: f64, cloud: &Cloud) {
        self.log_step = step.ln();
        self.plan = FIRST.to_vec();
        self.look_at(&cloud.theta);
    }

    pub(super) fn begin_again(&mut self) {
        self.plan = AGAIN.to_vec();
        self.extended = true;
        self.log_single_step = None;
    }

    /// Plans to learn a smaller step for a stiff target; false if it is as small as may be.
    pub(super) fn soften(&mut self) -> bool {
        let softer = self.level + 1 < ACCEPTANCE.len();
        if softer {
            self.level += 1;
            self.plan = if self.is_single() { SINGLE } else { STIFF }.to_vec();
        }
        softer
    }

    fn look_at(&mut self, theta: &Matrix<f64>) {
        let rows = theta.rows() as f64;
        for j in 0..theta.cols() {
            let values: Vec<f64> = (0..theta.rows()).map(|i| theta.row(i)[j]).collect();
            let mean = values.iter().sum::<f64>() / rows;
            let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / rows;
            self.middle[j] = median(values);
            self.spread[j] = variance.sqrt().max(1e-150);
        }
    }

    pub(super) fn save(&self, into: &mut Arrays) {
        let flags = [self.turn_is_due, self.extended].map(|flag| f64::from(u8::from(flag)));
        let counts = [self.level, self.repeats].map(|count| count as f64);
        let numbers = [self.log_step, counts[0], flags[0], self.hard, flags[1], counts[1]];
        into.put("learning", numbers);
        into.put("learning.single", self.log_single_step.into_iter().collect::<Vec<_>>());
        into.put("learning.lengths", &*self.lengths);
        let plan = self.plan.iter().flat_map(|window| {
            let flags = [window.fits, window.turns].map(|flag| f64::from(u8::from(flag)));
            [window.moves as f64, flags[0], flags[1]]
        });
        into.put("learning.plan", plan.collect::<Vec<_>>());
        into.put("learning.middle", &*self.middle);
        into.put("learning.spread", &*self.spread);
    }

    pub(super) fn restore(dim: usize, from: &Arrays) -> Result<Self> {
        let numbers = from.get_exactly("learning", 6)?;
        let plan = from.get("learning.plan")?.chunks_exact(3);
        Ok(Self {
            log_step: numbers[0],
            log_single_step: from.get("learning.single")?.first().copied(),
            lengths: from.get("learning.lengths")?.to_vec(),
            level: (numbers[1] as usize).min(ACCEPTANCE.len() - 1),
            plan: plan.map(|w| window(w[0] as usize, w[1] != 0.0, w[2] != 0.0)).collect(),
            turn_is_due: numbers[2] != 0.0,
            repeats: numbers[5] as usize,
            hard: numbers[3],
            extended: numbers[4] != 0.0,
            middle: from.get_exactly("learning.middle", dim)?,
            spread: from.get_exactly("learning.spread", dim)?,
        })
    }
}

impl Ensemble {
    pub(super) fn learn_step(
        &mut self,
        target: &dyn LogDensity<f64>,
        watch: &mut Watch<'_>,
    ) -> Result<Pace> {
        if self.warm_up_is_over() {
            self.learning.plan.clear();
            self.learning.turn_is_due = false;
        }
        if self.learning.turn_is_due {
            self.learn_lengths(target)?;
            self.learning.turn_is_due = false;
            return Ok(Pace::Between);
        }
        let Some(&window) = self.learning.plan.first() else {
            self.plan_more_or_draw();
            return Ok(Pace::Between);
        };
        let moves = self.track.moves();
        if moves == window.moves {
            self.finish_window(window);
            return Ok(Pace::Between);
        }
        self.stride(target)?;
        self.learning.adapt(self.flight.mean_acceptance(), self.options.moves, moves);
        self.track.push(&self.cloud, self.flight.hard());
        Ok(Pace::Moved(self.show(watch, None)))
    }

    /// Fits to what the particles showed. A window in which their log density still rose was a walk: it
    /// teaches linear coordinates alone, and is repeated.
    fn finish_window(&mut self, window: Window) {
        let settled =
            self.track.rise() < self.fluctuation() + 1.0 || self.learning.repeats == MOST_REPEATS;
        self.track.drop_first(window.moves / 3);
        let masses = self.track.masses(&self.coordinates, self.count);
        let event = self.dice.throw();
        self.weeded += weed(&mut self.cloud, &mut self.steps, &masses, 0.5, late_slack, event);
        self.learning.look_at(&self.track.theta(self.dim));
        if !settled {
            self.coordinates = Coordinates::fit(
                self.track.theta(self.dim).as_ref(),
                self.track.score(self.dim).as_ref(),
                false,
            );
            self.regions = Regions::default();
            self.cloud.follow(&self.coordinates);
            self.learning.repeats += 1;
            self.track.clear();
            return;
        }
        if window.fits {
            self.refit(window.moves > SETTLING);
        }
        let hard = &self.track.hard;
        self.learning.hard = hard.iter().sum::<f64>() / hard.len() as f64;
        self.learning.turn_is_due = window.turns;
        self.learning.plan.remove(0);
        self.track.clear();
    }

    fn plan_more_or_draw(&mut self) {
        let over = self.warm_up_is_over();
        let learning = &mut self.learning;
        let bent = !self.coordinates.warp.bends().is_empty();
        if over {
            self.begin_production();
        } else if learning.hard > TOO_HARD && learning.soften() {
            // A smaller step is being learnt.
        } else if learning.is_single() {
            self.begin_production();
        } else if !learning.extended && (bent || self.regions.are_several()) {
            learning.extended = true;
            learning.plan = MORE.to_vec();
        } else if self.options.moves != Moves::Turning {
            learning.begin_single();
            learning.plan = SINGLE.to_vec();
        } else {
            self.begin_production();
        }
    }

    /// Coordinates, and regions where modes are separate, from the track.
    fn refit(&mut self, search: bool) {
        let dim = self.dim;
        let (theta, scores) = (self.track.theta(dim), self.track.score(dim));
        let mut labels = vec![0; theta.rows()];
        if self.regions.are_several() {
            let mut z = theta.clone();
            self.coordinates.warp.backward(z.as_mut_slice(), dim);
            labels = self.regions.labels(z.as_slice(), dim);
        }
        let warp = if self.options.bends {
            Warp::fit(theta.as_ref(), scores.as_ref())
        } else {
            Warp::default()
        };
        let (z, scores) = straightened(&warp, theta.as_ref(), scores.as_ref());
        let mut linear = Linear::fit(z.as_ref(), scores.as_ref());
        let mut white = Matrix::zeros(z.rows(), dim);
        linear.from_position(z.as_slice(), white.as_mut_slice());
        // In more dimensions than there are particles, some direction parts them whatever the target is.
        if self.options.jumps && search && dim <= self.count {
            labels = split(white.as_ref(), self.count, &labels);
        }
        self.regions = Regions::default();
        if labels.iter().any(|&label| label != labels[0]) {
            for _ in 0..3 {
                labels = Regions::fit(&z, &scores, &labels).labels(z.as_slice(), dim);
            }
            labels = merge(white.as_ref(), labels);
            self.regions = Regions::fit(&z, &scores, &labels);
            labels = self.regions.labels(z.as_slice(), dim);
            let centre = linear.centre().to_vec();
            let (z, scores) = (without_means(z, &labels), without_means(scores, &labels));
            linear = Linear::fit(z.as_ref(), scores.as_ref());
            linear.set_centre(centre);
        }
        self.coordinates = Coordinates { warp, linear };
        self.cloud.follow(&self.coordinates);
    }
}

/// What a particle's log mass may fall short of the median by, given how far the quartile is above it.
pub(super) fn late_slack(spread: f64) -> f64 {
    (10.0 * spread).max(10.0)
}

/// Rows less the mean of those with the same label.
fn without_means(mut rows: Matrix<f64>, labels: &[usize]) -> Matrix<f64> {
    let dim = rows.cols();
    let most = labels.iter().max().map_or(0, |most| most + 1);
    let (mut means, mut counts) = (Matrix::<f64>::zeros(most, dim), vec![0.0; most]);
    for (i, &label) in labels.iter().enumerate() {
        counts[label] += 1.0;
        means.row_mut(label).iter_mut().zip(rows.row(i)).for_each(|(m, x)| *m += x);
    }
    for (i, &label) in labels.iter().enumerate() {
        let mean = means.row(label);
        rows.row_mut(i).iter_mut().zip(mean).for_each(|(x, m)| *x -= m / counts[label]);
    }
    rows
}
