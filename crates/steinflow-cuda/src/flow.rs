//! Particles on a device: what integrators move there.

use std::cell::OnceCell;
use std::collections::HashMap;

use steinflow::dynamics::{Structure, THETA};
use steinflow::flow::{Flow, Particles, Parts, Request, Vitals, refuse};
use steinflow::random::{Purpose, fill_standard_normal, stream};
use steinflow::run::Saved;
use steinflow::{Error, MatMut, Matrix, Minibatch, Real, Result};

use crate::device::{Buffer, Device};
use crate::dynamics::Varying;
use crate::motion::{Address, Field, Motion, World};
use crate::target::{Places, Target};

/// Evaluations of the target between two looks at whether all is finite.
const LOOK_EVERY: u64 = 16;
/// What a fault holds while there is none.
const NO_FAULT: u64 = u64::MAX;

/// Copies on the host, until the particles move.
struct Seen<T> {
    state: Matrix<T>,
    log_density: Vec<T>,
    score: Matrix<T>,
}

/// A run's particles on a device.
pub(crate) struct CudaFlow<'a, T: Real> {
    device: Device,
    structure: Structure,
    field: Field,
    varying: Option<Varying>,
    target: Target<'a, T>,
    seed: u64,
    count: usize,
    batch_size: Option<usize>,
    batches: u64,

    state: Buffer,
    score: Buffer,
    log_density: Buffer,
    moved: Buffer,
    fault: Buffer,
    motions: HashMap<Vec<usize>, Motion>,
    /// For every block: the move that it last was in, and its place there.
    movers: Vec<Option<(Vec<usize>, usize)>>,
    squared_speeds: Vec<f64>,
    score_is_current: bool,
    score_is_full: bool,
    seen: OnceCell<Seen<T>>,

    step: u64,
    step_size: f64,
    draws: usize,
    gradients: u64,
    looked: u64,
}

impl<'a, T: Real> CudaFlow<'a, T> {
    pub(crate) fn new(
        device: Device,
        parts: Parts<'a, T>,
        request: &Request,
        field: Field,
        varying: Option<Varying>,
    ) -> Result<Self> {
        let Parts { target, dynamics: _, field: _, theta, seed } = parts;
        let (structure, count) = (request.structure.clone(), theta.rows());
        let (dim, blocks, size) = (structure.dim(), structure.blocks(), size_of::<T>());
        let target = Target::new(&device, target)?;
        let mut flow = Self {
            state: device.zeros(count * blocks * dim * size)?,
            score: device.zeros(count * dim * size)?,
            log_density: device.zeros(count * size)?,
            moved: device.zeros(64)?,
            fault: device.zeros(8)?,
            device,
            field,
            varying,
            target,
            seed,
            count,
            batch_size: request.batch_size,
            batches: 0,
            motions: HashMap::new(),
            movers: vec![None; blocks],
            squared_speeds: vec![0.0; blocks],
            score_is_current: false,
            score_is_full: true,
            seen: OnceCell::new(),
            step: 0,
            step_size: 0.0,
            draws: 0,
            gradients: 0,
            looked: 0,
            structure,
        };
        let mut state = Matrix::zeros(count, blocks * dim);
        for i in 0..count {
            state.row_mut(i)[..dim].copy_from_slice(theta.row(i));
        }
        flow.draw_auxiliaries(&mut state, 0);
        flow.device.put(state.as_slice(), &mut flow.state)?;
        flow.forget_fault()?;
        flow.draw_minibatch()?;
        Ok(flow)
    }

    /// The library's draws, so that a run starts where it does on the host.
    fn draw_auxiliaries(&self, state: &mut Matrix<T>, index: u64) {
        let dim = self.structure.dim();
        for i in 0..state.rows() {
            let mut generator = stream(self.seed, Purpose::Auxiliary, index, i as u64);
            let blocks = state.row_mut(i)[dim..].chunks_exact_mut(dim);
            for (values, law) in blocks.zip(self.structure.auxiliaries()) {
                fill_standard_normal(&mut generator, values);
                for x in values {
                    *x = T::of(law.mean) + T::of(law.variance.sqrt()) * *x;
                }
            }
        }
    }

    fn draw_minibatch(&mut self) -> Result<()> {
        let Some(size) = self.batch_size else { return Ok(()) };
        let batch = Minibatch::draw(self.seed, self.batches, self.target.data_rows(), size);
        self.target.take_rows(&self.device, batch)
    }

    fn forget_fault(&mut self) -> Result<()> {
        self.device.put_bytes(&NO_FAULT.to_ne_bytes(), &mut self.fault)
    }

    /// Whether all numbers were finite so far.
    fn look_for_fault(&self) -> Result<()> {
        let bytes = self.device.bytes(&self.fault, 8)?;
        let fault = bytes.try_into().map_or(NO_FAULT, u64::from_ne_bytes);
        if fault == NO_FAULT {
            return Ok(());
        }
        Err(Error::NonFinite {
            what: ["score", "log density", "position", "position"][(fault & 3) as usize],
            value: f64::NAN,
            particle: (fault >> 2 & 0x3fff_ffff) as usize,
            step: fault >> 32,
            step_size: self.step_size,
        })
    }

    fn evaluate(&mut self, on_all_rows: bool) -> Result<()> {
        self.score_is_current = false;
        self.seen.take();
        let places = Places {
            state: &self.state,
            row: self.structure.blocks() * self.structure.dim(),
            count: self.count,
            score: &mut self.score,
            log_density: &mut self.log_density,
            moved: &self.moved,
            fault: &self.fault,
            step: self.step,
            step_size: self.step_size,
        };
        self.target.evaluate(&self.device, places, on_all_rows)?;
        self.gradients += 1;
        self.score_is_full = on_all_rows || self.batch_size.is_none();
        self.score_is_current = on_all_rows == self.batch_size.is_none();
        self.looked += 1;
        if self.looked >= LOOK_EVERY {
            self.looked = 0;
            self.look_for_fault()?;
        }
        Ok(())
    }

    /// The particles on the host.
    fn look(&self) -> Result<&Seen<T>> {
        if let Some(seen) = self.seen.get() {
            return Ok(seen);
        }
        self.look_for_fault()?;
        let (count, dim) = (self.count, self.structure.dim());
        let size = self.structure.blocks() * dim;
        let matrix = |buffer: &Buffer, columns: usize| {
            let values = self.device.get(buffer, count * columns)?;
            Ok::<_, Error>(
                Matrix::from_vec(values, count, columns).expect("as many as were asked for"),
            )
        };
        let seen = Seen {
            state: matrix(&self.state, size)?,
            log_density: self.device.get(&self.log_density, count)?,
            score: matrix(&self.score, dim)?,
        };
        Ok(self.seen.get_or_init(|| seen))
    }
}

impl<T: Real> Flow<T> for CudaFlow<'_, T> {
    fn structure(&self) -> &Structure {
        &self.structure
    }

    fn begin_step(&mut self, step: u64, step_size: f64) {
        (self.step, self.step_size, self.draws) = (step, step_size, 0);
    }

    fn step_size(&self) -> f64 {
        self.step_size
    }

    fn advance(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        if self.structure.needs_score(moving) {
            self.evaluate_target()?;
        }
        self.seen.take();
        if !self.motions.contains_key(moving) {
            let (size, varying) = (size_of::<T>(), self.varying.as_ref());
            let plan = Motion::new(
                &self.device,
                &self.field,
                &self.structure,
                varying,
                moving,
                self.count,
                size,
            )?;
            self.motions.insert(moving.to_vec(), plan);
        }
        let Some(motion) = self.motions.get_mut(moving) else { return Ok(()) };
        let world = World {
            state: &self.state,
            score: &self.score,
            moved: &self.moved,
            fault: &self.fault,
            count: self.count,
            seed: self.seed,
        };
        let at = Address { dt, step: self.step, draw: self.draws };
        motion.run(&self.device, &self.structure, &world, at)?;
        self.draws += 1;
        for (place, &block) in moving.iter().enumerate() {
            self.movers[block] = Some((moving.to_vec(), place));
        }
        if moving.contains(&THETA) {
            self.score_is_current = false;
            if self.batch_size.is_some() {
                self.batches += 1;
                self.draw_minibatch()?;
            }
        }
        Ok(())
    }

    fn advance_by_midpoint(&mut self, _moving: &[usize], _dt: f64) -> Result<()> {
        Err(refuse("integrator", "one with midpoint steps", "a GPU"))
    }

    fn advance_implicitly(&mut self, _moving: &[usize], _dt: f64) -> Result<()> {
        Err(refuse("integrator", "implicit-drift", "a GPU"))
    }

    fn advance_rescaled(
        &mut self,
        _moving: &[usize],
        _rescale: &mut dyn FnMut(&mut Matrix<T>),
    ) -> Result<()> {
        Err(refuse("integrator", "adagrad, rmsprop or adam", "a GPU"))
    }

    fn evaluate_target(&mut self) -> Result<()> {
        if self.score_is_current { Ok(()) } else { self.evaluate(self.batch_size.is_none()) }
    }

    fn evaluate_full_target(&mut self) -> Result<()> {
        if self.score_is_current && self.batch_size.is_none() {
            Ok(())
        } else {
            self.evaluate(true)
        }
    }

    fn ask(&self, log_density: &mut [T], score: MatMut<'_, T>) -> Result<()> {
        let (state, dim) = (&self.look()?.state, self.structure.dim());
        let theta = Matrix::from_fn(self.count, dim, |i, j| state.row(i)[j]);
        self.target.ask(&theta, log_density, score)
    }

    fn resample_auxiliaries(&mut self, index: u64) -> Result<()> {
        let mut state = self.look()?.state.clone();
        self.draw_auxiliaries(&mut state, index);
        self.seen.take();
        self.device.put(state.as_slice(), &mut self.state)
    }

    fn particles(&self) -> Result<Particles<'_, T>> {
        let Seen { state, log_density, score } = self.look()?;
        let is_full = self.score_is_full;
        Ok(Particles { state: state.as_ref(), log_density, score: score.as_ref(), is_full })
    }

    fn vitals(&self) -> Result<Vitals> {
        let mut vitals =
            Vitals { squared_speeds: self.squared_speeds.clone(), bandwidths: Vec::new() };
        for (speed, mover) in vitals.squared_speeds.iter_mut().zip(&self.movers) {
            let Some((moving, place)) = mover else { continue };
            let Some(motion) = self.motions.get(moving) else { continue };
            *speed = motion.squared_speed(&self.device, *place, self.count)?;
            vitals.bandwidths = motion.bandwidths(&self.device)?;
        }
        Ok(vitals)
    }

    fn gradients(&self) -> u64 {
        self.gradients
    }

    fn save(&self) -> Result<Saved<T>> {
        let Seen { state, log_density, score } = self.look()?;
        Ok(Saved {
            state: state.clone(),
            log_density: log_density.clone(),
            score: score.clone(),
            batches: self.batches,
            preconditioner: None,
            field: Vec::new(),
        })
    }

    fn restore(&mut self, saved: &Saved<T>) -> Result<()> {
        saved.check(self.count, self.structure.dim(), self.structure.blocks())?;
        if saved.preconditioner.is_some() || !saved.field.is_empty() {
            return Err(Error::ForeignState { whose: "a run on a GPU" });
        }
        self.device.put(saved.state.as_slice(), &mut self.state)?;
        self.device.put(saved.score.as_slice(), &mut self.score)?;
        self.device.put(&saved.log_density, &mut self.log_density)?;
        self.forget_fault()?;
        self.batches = saved.batches;
        self.draw_minibatch()?;
        self.seen.take();
        self.score_is_current = true;
        self.score_is_full = self.batch_size.is_none();
        Ok(())
    }

    fn take_up(&mut self, gradients: u64, frozen: &[usize], squared_speeds: &[f64]) -> Result<()> {
        if !frozen.is_empty() {
            return Err(Error::ForeignState {
                whose: "a run on a GPU, which freezes no particles",
            });
        }
        if squared_speeds.len() != self.squared_speeds.len() {
            return Err(Error::ForeignState { whose: "the blocks of the state" });
        }
        self.gradients = gradients;
        self.squared_speeds.copy_from_slice(squared_speeds);
        self.movers.fill(None);
        Ok(())
    }

    fn is_remote(&self) -> bool {
        true
    }
}
