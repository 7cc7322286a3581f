//! Particles on a device: what integrators move there.

use std::cell::{OnceCell, RefCell};

use steinflow::dynamics::Structure;
use steinflow::flow::{Flow, Particles, Parts, Request, Vitals};
use steinflow::integrator::{Averages, Rescaling};
use steinflow::run::Saved;
use steinflow::{Error, MatMut, Matrix, Real, Result};

use crate::core::Core;
use crate::device::{Buffer, Device};
use crate::rules::Field;

/// Copies on the host, until the particles move.
struct Seen<T> {
    state: Matrix<T>,
    log_density: Vec<T>,
    score: Matrix<T>,
}

/// A run's particles on a device. Work is gathered, and started when somebody looks or the step is over.
pub(crate) struct CudaFlow<'a, T: Real> {
    structure: Structure,
    core: RefCell<Core<'a, T>>,
    seen: OnceCell<Seen<T>>,
}

impl<'a, T: Real> CudaFlow<'a, T> {
    pub(crate) fn new(
        device: Device,
        parts: Parts<'a, T>,
        request: &Request,
        field: Field,
        locals: Option<String>,
    ) -> Result<Self> {
        let core = Core::new(device, parts, request, field, locals)?;
        let structure = core.rules.structure.clone();
        Ok(Self { structure, core: RefCell::new(core), seen: OnceCell::new() })
    }

    /// The particles on the host.
    fn look(&self) -> Result<&Seen<T>> {
        if let Some(seen) = self.seen.get() {
            return Ok(seen);
        }
        let mut core = self.core.borrow_mut();
        core.start_due()?;
        core.look_for_fault()?;
        let (count, dim) = (core.rules.count, self.structure.dim());
        let size = self.structure.blocks() * dim;
        let matrix = |buffer: &Buffer, columns: usize| {
            let values = core.device.get(buffer, count * columns)?;
            Ok::<_, Error>(
                Matrix::from_vec(values, count, columns).expect("as many as were asked for"),
            )
        };
        let seen = Seen {
            state: matrix(&core.state, size)?,
            log_density: core.device.get(&core.log_density, count)?,
            score: matrix(&core.score, dim)?,
        };
        Ok(self.seen.get_or_init(|| seen))
    }
}

impl<T: Real> Flow<T> for CudaFlow<'_, T> {
    fn structure(&self) -> &Structure {
        &self.structure
    }

    fn begin_step(&mut self, step: u64, step_size: f64) {
        let core = self.core.get_mut();
        // What is left of the last step has its number.
        core.trouble = core.start_due().err();
        (core.step, core.step_size, core.draws) = (step, step_size, 0);
    }

    fn step_size(&self) -> f64 {
        self.core.borrow().step_size
    }

    fn advance(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        self.seen.take();
        self.core.get_mut().advance(moving, dt)
    }

    fn advance_by_midpoint(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        self.seen.take();
        self.core.get_mut().advance_by_midpoint(moving, dt)
    }

    fn advance_implicitly(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        self.seen.take();
        self.core.get_mut().advance_implicitly(moving, dt)
    }

    fn advance_rescaled(
        &mut self,
        moving: &[usize],
        rescaling: &Rescaling,
        averages: &mut Averages<T>,
    ) -> Result<bool> {
        self.seen.take();
        self.core.get_mut().advance_rescaled(moving, rescaling, averages)?;
        Ok(true)
    }

    fn evaluate_target(&mut self) -> Result<()> {
        let core = self.core.get_mut();
        if !core.score_is_current {
            self.seen.take();
        }
        core.evaluate_if_needed()?;
        // The step is over: the device need not wait for the next.
        core.start_due()
    }

    fn evaluate_full_target(&mut self) -> Result<()> {
        let core = self.core.get_mut();
        if core.score_is_current && core.target.batches.is_none() {
            return Ok(());
        }
        self.seen.take();
        core.start_due()?;
        core.evaluate_at(core.moves.arg(), None)?;
        core.gradients += 1;
        core.score_is_full = true;
        core.score_is_current = core.target.batches.is_none();
        Ok(())
    }

    fn ask(&self, log_density: &mut [T], score: MatMut<'_, T>) -> Result<()> {
        let (state, dim) = (&self.look()?.state, self.structure.dim());
        let theta = Matrix::from_fn(state.rows(), dim, |i, j| state.row(i)[j]);
        let core = self.core.borrow();
        core.target.ask(&theta, core.batch(), log_density, score)
    }

    fn resample_auxiliaries(&mut self, index: u64) -> Result<()> {
        let state = self.look()?.state.clone();
        self.seen.take();
        self.core.get_mut().put_with_fresh_auxiliaries(state, index)
    }

    fn particles(&self) -> Result<Particles<'_, T>> {
        let Seen { state, log_density, score } = self.look()?;
        let is_full = self.core.borrow().score_is_full;
        Ok(Particles { state: state.as_ref(), log_density, score: score.as_ref(), is_full })
    }

    fn vitals(&self) -> Result<Vitals> {
        let mut core = self.core.borrow_mut();
        core.start_due()?;
        let mut vitals =
            Vitals { squared_speeds: core.squared_speeds.clone(), bandwidths: Vec::new() };
        for (speed, mover) in vitals.squared_speeds.iter_mut().zip(&core.movers) {
            let Some((moving, place)) = mover else { continue };
            let Some(motion) = core.motions.get(moving) else { continue };
            *speed = motion.squared_speed(&core.device, *place, core.rules.count)?;
            vitals.bandwidths = motion.bandwidths(&core.device)?;
        }
        Ok(vitals)
    }

    fn gradients(&self) -> u64 {
        self.core.borrow().gradients
    }

    fn save(&self) -> Result<Saved<T>> {
        let Seen { state, log_density, score } = self.look()?;
        let core = self.core.borrow();
        let learnt = core.preconditioner.as_ref().map(|own| own.learnt(&core.device));
        Ok(Saved {
            state: state.clone(),
            log_density: log_density.clone(),
            score: score.clone(),
            batches: core.batches,
            preconditioner: learnt.transpose()?,
            field: core.held.as_ref().map_or(Vec::new(), |held| held.memory.clone()),
        })
    }

    fn restore(&mut self, saved: &Saved<T>) -> Result<()> {
        let core = self.core.get_mut();
        saved.check(core.rules.count, self.structure.dim(), self.structure.blocks())?;
        core.recall_held(&saved.field)?;
        // What was due is not wanted any more.
        core.due.clear();
        match (&mut core.preconditioner, &saved.preconditioner) {
            (Some(own), Some(learnt)) => own.recall::<T>(&core.device, learnt)?,
            (None, None) => {}
            _ => return Err(Error::ForeignState { whose: "the preconditioner" }),
        }
        core.device.put(saved.state.as_slice(), &mut core.state)?;
        core.device.put(saved.score.as_slice(), &mut core.score)?;
        core.device.put(&saved.log_density, &mut core.log_density)?;
        core.forget_fault()?;
        core.forget_distances();
        core.batches = saved.batches;
        core.score_is_current = true;
        core.score_is_full = core.target.batches.is_none();
        self.seen.take();
        Ok(())
    }

    fn take_up(&mut self, gradients: u64, frozen: &[usize], squared_speeds: &[f64]) -> Result<()> {
        if !frozen.is_empty() {
            return Err(Error::ForeignState {
                whose: "a run on a GPU, which freezes no particles",
            });
        }
        let core = self.core.get_mut();
        if squared_speeds.len() != core.squared_speeds.len() {
            return Err(Error::ForeignState { whose: "the blocks of the state" });
        }
        core.gradients = gradients;
        core.squared_speeds.copy_from_slice(squared_speeds);
        core.movers.fill(None);
        Ok(())
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn log_volume(&self) -> f64 {
        self.core.borrow().log_volume
    }

    fn set_log_volume(&mut self, log_volume: f64) {
        self.core.get_mut().log_volume = log_volume;
    }
}
