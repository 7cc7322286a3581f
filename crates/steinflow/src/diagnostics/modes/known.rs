//! Modes that have been found, and which of them particles climb to.

use super::climb::{Ends, climb};
use super::{View, distance, path};
use crate::{Matrix, Result};

/// Modes, and particles, next to a top that are asked whether a valley lies between.
const NEIGHBOURS: usize = 5;
/// Points on the way to each of those.
const POINTS: usize = 9;
/// A valley is this deep below the lower of two tops, in nats.
const VALLEY: f64 = 1.0;
/// The first step uphill of particles, which are to stay in their modes.
const SHORT: f64 = 0.2;
/// Ends that are this near, in standard deviations, are one.
const SAME: f64 = 0.2;
/// So many modes without particles are looked at, the highest first.
const MOST_UNVISITED: usize = 16;

/// A top that particles or probes climb to, and all that no valley separates from it.
pub(super) struct Mode {
    pub(super) top: Vec<f64>,
    pub(super) log_density: f64,
    /// How many particles climb there, …
    pub(super) climbers: usize,
    /// … and how many probes do.
    pub(super) probes: usize,
}

/// Modes, and the particles that have climbed.
#[derive(Default)]
pub(super) struct Known {
    pub(super) modes: Vec<Mode>,
    /// Which particles have climbed, as rows of the view, …
    pub(super) climbed: Vec<usize>,
    /// … the log density where they were, …
    pub(super) own_density: Vec<f64>,
    /// … and the mode that each of them climbs to.
    pub(super) leads_to: Vec<usize>,
}

impl Known {
    /// The modes of some more of the particles; returns how high they have climbed.
    pub(super) fn add_particles(&mut self, view: &View<'_>, rows: &[usize]) -> Result<Ends> {
        let own = Matrix::from_fn(rows.len(), view.own.cols(), |i, j| view.own.row(rows[i])[j]);
        let tops = climb(view, own, SHORT)?;
        let mut leads_to = vec![None; rows.len()];
        for k in tops.highest_first() {
            let mode = self.add(view, tops.points.row(k), tops.log_density[k], false)?;
            self.modes[mode].climbers += 1;
            leads_to[k] = Some(mode);
        }
        // Those that are nowhere have no mode.
        for (k, mode) in leads_to.into_iter().enumerate().filter_map(|(k, m)| Some((k, m?))) {
            self.climbed.push(rows[k]);
            self.own_density.push(tops.begun_at[k]);
            self.leads_to.push(mode);
        }
        Ok(tops)
    }

    /// The mode of a probe that has climbed, unless there are too many.
    pub(super) fn add_end(&mut self, view: &View<'_>, end: &[f64], log_density: f64) -> Result<()> {
        let visited = self.modes.iter().filter(|mode| mode.climbers > 0).count();
        if self.modes.len() < visited + MOST_UNVISITED {
            let mode = self.add(view, end, log_density, true)?;
            self.modes[mode].probes += 1;
        }
        Ok(())
    }

    /// Of the particles, how many climb to a mode.
    pub(super) fn share(&self, mode: &Mode) -> f64 {
        mode.climbers as f64 / self.climbed.len().max(1) as f64
    }

    /// The mode of a top: one that is near, or that a straight way leads to without a valley, or a new one. The
    /// way may also lead to a particle, from where it goes up without a valley.
    fn add(
        &mut self,
        view: &View<'_>,
        top: &[f64],
        log_density: f64,
        through_particles: bool,
    ) -> Result<usize> {
        let distance_to = |mode: &Mode| distance(&mode.top, top);
        if let Some(near) = self.modes.iter().position(|mode| distance_to(mode) < SAME) {
            return Ok(near);
        }
        let own = |i: usize| view.own.row(self.climbed[i]);
        let near_modes = nearest(self.modes.len(), |m| distance_to(&self.modes[m]));
        let asked = if through_particles { self.climbed.len() } else { 0 };
        let near_own = nearest(asked, |i| distance(own(i), top));
        let from_mode = |&m: &usize| (&*self.modes[m].top, self.modes[m].log_density, m);
        let from_own = |&i: &usize| (own(i), self.own_density[i], self.leads_to[i]);
        // Mostly the nearest will do.
        let (modes, particles) = (near_modes.iter(), near_own.iter());
        let first = modes.clone().take(1).map(from_mode);
        let first: Vec<_> = first.chain(particles.clone().take(1).map(from_own)).collect();
        let others = modes.skip(1).map(from_mode);
        let others: Vec<_> = others.chain(particles.skip(1).map(from_own)).collect();
        for from in [first, others] {
            let on_the_way = Matrix::from_fn(from.len() * POINTS, top.len(), |row, j| {
                let (start, part) = (from[row / POINTS].0[j], (row % POINTS + 1) as f64);
                start + (top[j] - start) * part / (POINTS + 1) as f64
            });
            let (between, _) = view.at(&on_the_way)?;
            let joined =
                from.iter().zip(between.chunks_exact(POINTS)).find(|&(&(_, first, m), way)| {
                    let lowest = way.iter().copied().fold(first, f64::min);
                    lowest > self.modes[m].log_density.min(log_density) - VALLEY
                });
            if let Some((&(_, _, mode), _)) = joined {
                return Ok(mode);
            }
        }
        self.modes.push(Mode { top: top.to_vec(), log_density, climbers: 0, probes: 0 });
        Ok(self.modes.len() - 1)
    }

    /// The nearest of the first so many modes with particles, if a way that bends leads from there to mode `m`: ends
    /// of a curved ridge are no modes.
    pub(super) fn joined_by_a_bend(
        &self,
        view: &View<'_>,
        among: usize,
        m: usize,
    ) -> Result<Option<usize>> {
        let (others, mode) = (&self.modes[..among], &self.modes[m]);
        let to = |m: &usize| distance(&others[*m].top, &mode.top);
        let visited = (0..among).filter(|&m| others[m].climbers > 0 && to(&m) > 0.0);
        let Some(next) = visited.min_by(|a, b| to(a).total_cmp(&to(b))) else { return Ok(None) };
        let level = others[next].log_density.min(mode.log_density) - VALLEY;
        Ok(path::stays_above(view, &others[next].top, &mode.top, level)?.then_some(next))
    }
}

/// The nearest few of so many, nearest first.
fn nearest(count: usize, distance: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
    order.truncate(NEIGHBOURS);
    order
}
