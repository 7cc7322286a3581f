//! Midpoint steps of particles on a device.
//!
//! A move leaves z + a v(z). The midpoint rule wants v at another place than where the particles stand; what a move
//! from there has added is then added to where they stood.

use cudarc::driver::CudaFunction;
use steinflow::{Real, Result};

use crate::core::Core;
use crate::device::{Buffer, Device, Source};
use crate::launch::Argument;
use crate::work::{Due, Task};

/// Places of earlier particles.
pub(crate) struct Midpoint {
    keep: CudaFunction,
    rebase: CudaFunction,
    largest_changes: CudaFunction,
    /// Where the particles stood before the step, and before the last move.
    before: Buffer,
    from: Buffer,
    largest: Buffer,
    numbers: usize,
}

const THREADS: usize = 256;

impl Midpoint {
    pub(crate) fn new(
        device: &Device,
        source: &Source,
        numbers: usize,
        size: usize,
    ) -> Result<Self> {
        Ok(Self {
            keep: device.kernel(source, "keep")?,
            rebase: device.kernel(source, "rebase")?,
            largest_changes: device.kernel(source, "largest_changes")?,
            before: device.zeros(numbers * size)?,
            from: device.zeros(numbers * size)?,
            largest: device.zeros(16)?,
            numbers,
        })
    }

    /// Keeps the particles, as those before the step or before the next move.
    pub(crate) fn keep(&self, device: &Device, state: &Buffer, is_before: bool) -> Result<()> {
        let to = if is_before { &self.before } else { &self.from };
        let arguments = [state.arg(), to.arg(), Argument::Wide(self.numbers as u64)];
        let grid = (self.numbers.div_ceil(THREADS), 1);
        device.launch(&self.keep, grid, (THREADS as u32, 1), 0, &arguments)
    }

    /// Adds what was added since the last move to where the particles stood before the step; or, `doubled`, twice
    /// what was added since then.
    pub(crate) fn rebase(&self, device: &Device, state: &Buffer, doubled: bool) -> Result<()> {
        let (from, factor) = if doubled { (&self.before, 2.0) } else { (&self.from, 1.0) };
        let numbers = Argument::Wide(self.numbers as u64);
        let arguments = [state.arg(), self.before.arg(), from.arg(), factor.into(), numbers];
        let grid = (self.numbers.div_ceil(THREADS), 1);
        device.launch(&self.rebase, grid, (THREADS as u32, 1), 0, &arguments)
    }

    /// The largest change since the last move, and since before the step.
    fn largest_changes(&mut self, device: &Device, state: &Buffer) -> Result<[f64; 2]> {
        device.clear(&mut self.largest)?;
        let numbers = Argument::Wide(self.numbers as u64);
        let arguments =
            [state.arg(), self.before.arg(), self.from.arg(), numbers, self.largest.arg()];
        let grid = (self.numbers.div_ceil(THREADS).min(8 * device.processors), 1);
        device.launch(&self.largest_changes, grid, (THREADS as u32, 1), 0, &arguments)?;
        let found: Vec<f64> = device.get(&self.largest, 2)?;
        Ok([found[0], found[1]])
    }
}

impl<T: Real> Core<'_, T> {
    /// z + dt v(z + (dt/2) v(z)).
    pub(crate) fn advance_by_midpoint(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        self.keep(true)?;
        self.move_for(moving, 0.5 * dt)?;
        self.keep(false)?;
        self.move_for(moving, dt)?;
        self.rebase(false)?;
        self.finish_move(moving);
        Ok(())
    }

    /// z′ = z + dt v((z + z′)/2), with what that does to volumes where somebody asks.
    pub(crate) fn advance_implicitly(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        /// The map contracts by about dt/2 an iteration.
        const MOST: usize = 60;
        // As on the host: far below what steps get wrong, and above what rounding does.
        let rounding = T::epsilon().as_f64().powf(0.7);
        let half = 0.5 * dt;
        self.keep(true)?;
        self.move_for(moving, half)?;
        let mut settled = false;
        for _ in 0..MOST {
            self.keep(false)?;
            self.move_for(moving, half)?;
            self.rebase(false)?;
            self.start_due()?;
            let Some(midpoint) = &mut self.midpoint else { break };
            let [change, whole] = midpoint.largest_changes(&self.device, &self.state)?;
            if change <= rounding * whole {
                settled = true;
                break;
            }
        }
        if self.tracks_volume {
            self.log_volume += if settled { dt * self.divergence(moving, half)? } else { f64::NAN };
        }
        self.rebase(true)?;
        self.finish_move(moving);
        Ok(())
    }

    fn keep(&mut self, is_before: bool) -> Result<()> {
        if self.midpoint.is_none() {
            let (rules, size) = (&self.rules, size_of::<T>());
            let numbers = rules.count * rules.structure.blocks() * rules.structure.dim();
            let source = crate::core::source(size);
            self.midpoint = Some(Midpoint::new(&self.device, &source, numbers, size)?);
        }
        self.add(Due::of(Task::Keep { is_before }, 0.0))
    }

    fn rebase(&mut self, doubled: bool) -> Result<()> {
        self.forget_distances();
        self.add(Due::of(Task::Rebase { doubled }, 0.0))
    }

    /// ∇·v of the blocks in `moving` at the midpoint, as the library has it: v·∇H of all blocks, of which any
    /// score will do. The particles stand where a move for `time` from the midpoint was added to where they were.
    fn divergence(&mut self, moving: &[usize], time: f64) -> Result<f64> {
        let dim = self.rules.structure.dim();
        let blocks = self.rules.structure.blocks();
        let others: Vec<usize> = (0..blocks).filter(|block| !moving.contains(block)).collect();
        let numbers = self.rules.count * blocks * dim;
        let Some(own) = &self.midpoint else { return Ok(f64::NAN) };
        let get = |buffer: &Buffer| self.device.get::<T>(buffer, numbers);
        let [before, middle, after] = [get(&own.before)?, get(&own.from)?, get(&self.state)?];
        let score: Vec<T> = self.device.get(&self.score, self.rules.count * dim)?;
        // The blocks at rest would be pushed so.
        self.device.put(&middle, &mut self.state)?;
        self.forget_distances();
        self.add_move(&others, None, [time, 0.0])?;
        self.start_due()?;
        let pushed: Vec<T> = self.device.get(&self.state, numbers)?;
        self.device.put(&after, &mut self.state)?;
        self.forget_distances();
        let laws = self.rules.structure.auxiliaries();
        let mut sum = 0.0;
        for (at, &z) in middle.iter().enumerate() {
            let (i, block, c) = (at / (blocks * dim), at / dim % blocks, at % dim);
            let gradient = match block.checked_sub(1).map(|place| &laws[place]) {
                Some(law) => (law.mean - z.as_f64()) / law.variance,
                None => score[i * dim + c].as_f64(),
            };
            let moved =
                if moving.contains(&block) { after[at] - before[at] } else { pushed[at] - z };
            sum -= gradient * moved.as_f64() / time;
        }
        Ok(sum)
    }
}
