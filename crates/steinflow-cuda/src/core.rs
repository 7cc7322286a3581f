//! All that a run has on a device, and the work that is to be done there.
//!
//! Work is gathered in `due`. What is the same twice in a row of steps is recorded as one CUDA graph and then replayed
//! with other numbers.

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaGraph};
use steinflow::dynamics::{Dynamics, THETA};
use steinflow::flow::{Parts, Request};
use steinflow::integrator::{Averages, Away, Rescaling};
use steinflow::random::{Purpose, fill_standard_normal, stream};
use steinflow::{Error, Matrix, Real, Result};

use crate::device::{Buffer, Device, NOTHING, Source, failed};
use crate::held::Held;
use crate::launch::Argument;
use crate::midpoint::Midpoint;
use crate::motion::{Motion, World};
use crate::precondition::Preconditioner;
use crate::rules::{Field, Rules};
use crate::target::{Places, Target};
use crate::work::{Due, Recording, Squares, Task};

/// Evaluations of the target between two looks at whether all is finite.
const LOOK_EVERY: u64 = 50;
/// What a fault holds while there is none.
const NO_FAULT: u64 = u64::MAX;
/// Pieces of work that are started together, at most: as many as `kernels/steps.cu` is told of.
const MOST_TASKS: usize = 8;
/// Bytes of a `Move` of `kernels/prelude.cu`.
const MOVE: usize = 32;

/// Averages of a rule that rescales velocities: first of them, then of their squares.
pub(crate) struct OnDevice {
    device: Device,
    buffer: Buffer,
    count: usize,
}

impl std::fmt::Debug for OnDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnDevice").field("count", &self.count).finish_non_exhaustive()
    }
}

impl<T: Real> Away<T> for OnDevice {
    fn fetch(&self) -> Result<[Vec<T>; 2]> {
        let mut mean: Vec<T> = self.device.get(&self.buffer, 2 * self.count)?;
        let square = mean.split_off(self.count);
        Ok([mean, square])
    }
}

/// All that is on the device.
pub(crate) struct Core<'a, T: Real> {
    pub(crate) device: Device,
    pub(crate) rules: Rules,
    pub(crate) dynamics: Box<dyn Dynamics<T> + 'a>,
    pub(crate) held: Option<Held>,
    pub(crate) target: Target<'a, T>,
    pub(crate) seed: u64,
    pub(crate) batches: u64,

    pub(crate) state: Buffer,
    pub(crate) score: Buffer,
    pub(crate) log_density: Buffer,
    pub(crate) moves: Buffer,
    pub(crate) fault: Buffer,
    pub(crate) preconditioner: Option<Preconditioner>,
    pub(crate) midpoint: Option<Midpoint>,
    pub(crate) squares: Squares,
    pub(crate) averages: Option<Arc<OnDevice>>,
    pub(crate) motions: HashMap<Vec<usize>, Motion>,
    pub(crate) set_moves: CudaFunction,
    /// Work of the step that has not been started.
    pub(crate) due: Vec<Due>,
    pub(crate) recordings: HashMap<Vec<Task>, Recording>,
    /// What went wrong when nobody could be told.
    pub(crate) trouble: Option<Error>,
    /// For every block: the move that it last was in, and its place there.
    pub(crate) movers: Vec<Option<(Vec<usize>, usize)>>,
    pub(crate) squared_speeds: Vec<f64>,
    /// log |det ∂z′/∂z|, where somebody asks.
    pub(crate) log_volume: f64,
    pub(crate) tracks_volume: bool,
    pub(crate) score_is_current: bool,
    pub(crate) score_is_full: bool,

    pub(crate) step: u64,
    pub(crate) step_size: f64,
    pub(crate) draws: usize,
    pub(crate) gradients: u64,
    pub(crate) looked: u64,
}

/// The source of what every step needs.
pub(crate) fn source(size: usize) -> Source {
    Source::new(include_str!("../kernels/steps.cu"), size)
}

impl<'a, T: Real> Core<'a, T> {
    pub(crate) fn new(
        device: Device,
        parts: Parts<'a, T>,
        request: &Request,
        field: Field,
        locals: Option<String>,
    ) -> Result<Self> {
        let Parts { target, dynamics, field: _, theta, seed } = parts;
        let (structure, count) = (request.structure.clone(), theta.rows());
        let (dim, blocks, size) = (structure.dim(), structure.blocks(), size_of::<T>());
        let source = source(size);
        let preconditioner = match request.preconditioner {
            Some(rule) => Some(Preconditioner::new::<T>(&device, &source, rule, dim)?),
            None => None,
        };
        let is_scaled = preconditioner.is_some();
        let held = Held::of(&field);
        let rules = Rules { field, structure, locals, is_scaled, count, size, eigenvalue: 1.0 };
        let squares = Squares::new(&device, &rules)?;
        let mut core = Self {
            target: Target::new(&device, target, seed, request.batch_size)?,
            state: device.zeros(count * blocks * dim * size)?,
            score: device.zeros(count * dim * size)?,
            log_density: device.zeros(count * size)?,
            moves: device.zeros(MOST_TASKS * MOVE)?,
            fault: device.zeros(8)?,
            set_moves: device.kernel(&source, "set_moves")?,
            device,
            rules,
            dynamics,
            held,
            seed,
            batches: 0,
            preconditioner,
            midpoint: None,
            squares,
            averages: None,
            motions: HashMap::new(),
            due: Vec::new(),
            recordings: HashMap::new(),
            trouble: None,
            movers: vec![None; blocks],
            squared_speeds: vec![0.0; blocks],
            log_volume: 0.0,
            tracks_volume: request.joint_accept,
            score_is_current: false,
            score_is_full: true,
            step: 0,
            step_size: 0.0,
            draws: 0,
            gradients: 0,
            looked: 0,
        };
        let mut state = Matrix::zeros(count, blocks * dim);
        for i in 0..count {
            state.row_mut(i)[..dim].copy_from_slice(theta.row(i));
        }
        core.put_with_fresh_auxiliaries(state, 0)?;
        core.forget_fault()?;
        Ok(core)
    }
}

impl<T: Real> Core<'_, T> {
    /// Puts particles in place with auxiliary variables drawn by the library, so that a run starts where it does on the
    /// host; `index` names the draw.
    pub(crate) fn put_with_fresh_auxiliaries(
        &mut self,
        mut state: Matrix<T>,
        index: u64,
    ) -> Result<()> {
        let structure = &self.rules.structure;
        let dim = structure.dim();
        for i in 0..state.rows() {
            let mut generator = stream(self.seed, Purpose::Auxiliary, index, i as u64);
            let blocks = state.row_mut(i)[dim..].chunks_exact_mut(dim);
            for (values, law) in blocks.zip(structure.auxiliaries()) {
                fill_standard_normal(&mut generator, values);
                for x in values {
                    *x = T::of(law.mean) + T::of(law.variance.sqrt()) * *x;
                }
            }
        }
        self.forget_distances();
        self.device.put(state.as_slice(), &mut self.state)
    }

    pub(crate) fn forget_fault(&mut self) -> Result<()> {
        self.device.put_bytes(&NO_FAULT.to_ne_bytes(), &mut self.fault)
    }

    /// Whether all numbers were finite so far.
    pub(crate) fn look_for_fault(&mut self) -> Result<()> {
        self.looked = 0;
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

    /// Adds a piece of work to what is due.
    pub(crate) fn add(&mut self, due: Due) -> Result<()> {
        if self.due.len() == MOST_TASKS {
            self.start_due()?;
        }
        self.due.push(due);
        Ok(())
    }

    /// Starts what is due. The second time that the same is, it is recorded; from then on it is replayed as a whole.
    pub(crate) fn start_due(&mut self) -> Result<()> {
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        if self.due.is_empty() {
            return Ok(());
        }
        let due = std::mem::take(&mut self.due);
        let all = |of: &dyn Fn(&Due) -> Argument, none: Argument| {
            (0..MOST_TASKS).map(|place| due.get(place).map_or(none, of)).collect::<Vec<_>>()
        };
        let head = [self.moves.arg(), Argument::Wide(self.step), Argument::from(self.draws)];
        let arguments = [
            &head[..],
            &all(&|due| Argument::Double(due.amount), Argument::Double(0.0)),
            &all(&|due| Argument::Double(due.second), Argument::Double(0.0)),
            &all(&|due| due.batch.into(), 0.into()),
        ]
        .concat();
        self.device.launch(&self.set_moves, (1, 1), (MOST_TASKS as u32, 1), 0, &arguments)?;
        self.draws += due.len();
        let tasks: Vec<Task> = due.into_iter().map(|due| due.task).collect();
        let mut recording = self.recordings.remove(&tasks).unwrap_or_default();
        recording.runs += 1;
        if recording.runs == 2 {
            recording.graph = self.record(&tasks)?;
        }
        match &recording.graph {
            Some(graph) => graph.launch().map_err(failed)?,
            None => self.start(&tasks)?,
        }
        self.recordings.insert(tasks, recording);
        Ok(())
    }

    pub(crate) fn record(&mut self, tasks: &[Task]) -> Result<Option<CudaGraph>> {
        self.device.begin_recording()?;
        let started = self.start(tasks);
        let graph = self.device.end_recording();
        started?;
        graph
    }

    pub(crate) fn start(&mut self, tasks: &[Task]) -> Result<()> {
        for (place, task) in tasks.iter().enumerate() {
            let moved = self.moves.at(place * MOVE);
            match task {
                Task::Evaluate => self.evaluate_at(moved, self.batch())?,
                Task::Learn => {
                    if let Some(own) = &self.preconditioner {
                        own.learn(&self.device, &self.score, self.rules.count, moved)?;
                    }
                }
                Task::Keep { is_before } => {
                    if let Some(own) = &self.midpoint {
                        own.keep(&self.device, &self.state, *is_before)?;
                    }
                }
                Task::Rebase { doubled } => {
                    if let Some(own) = &self.midpoint {
                        own.rebase(&self.device, &self.state, *doubled)?;
                    }
                }
                Task::Move { moving, is_second, stale, rule } => {
                    let Some(motion) = self.motions.get_mut(moving) else { continue };
                    let world = World {
                        state: &self.state,
                        score: &self.score,
                        log_density: &self.log_density,
                        scale: self.preconditioner.as_ref().map(|own| &own.scale),
                        squares: &self.squares.places,
                        is_second: *is_second,
                        stale: *stale,
                        moved,
                        fault: &self.fault,
                        seed: self.seed,
                        rescaling: match (rule, &self.averages) {
                            (Some(numbers), Some(own)) => {
                                let [a, b, c] =
                                    numbers.map(|x| Argument::Double(f64::from_bits(x)));
                                [own.buffer.arg(), a, b, c]
                            }
                            _ => [NOTHING, 0.0.into(), 0.0.into(), 0.0.into()],
                        },
                    };
                    motion.run(&self.device, &self.rules, &world)?;
                }
            }
        }
        Ok(())
    }

    /// The number of the present minibatch, if there are some.
    pub(crate) fn batch(&self) -> Option<u64> {
        self.target.batches.as_ref().map(|_| self.batches)
    }

    pub(crate) fn evaluate_at(&mut self, moved: Argument, batch: Option<u64>) -> Result<()> {
        let structure = &self.rules.structure;
        let places = Places {
            state: &self.state,
            row: structure.blocks() * structure.dim(),
            count: self.rules.count,
            score: &mut self.score,
            log_density: &mut self.log_density,
            moved,
            fault: &self.fault,
            step: self.step,
            step_size: self.step_size,
            batch,
        };
        self.target.evaluate(&self.device, places)
    }

    /// Brings log π and the score up to date with θ, and lets the preconditioner learn from that.
    pub(crate) fn evaluate(&mut self) -> Result<()> {
        let place = match &mut self.target.batches {
            Some(own) => own.place(&self.device, self.batches)?,
            None => 0,
        };
        self.score_is_current = false;
        if self.target.is_on_device() {
            self.add(Due { batch: place, ..Due::of(Task::Evaluate, 0.0) })?;
        } else {
            self.start_due()?;
            self.evaluate_at(self.moves.arg(), self.batch())?;
        }
        self.gradients += 1;
        self.score_is_full = self.target.batches.is_none();
        self.score_is_current = true;
        if let Some(weight) = self.preconditioner.as_mut().and_then(Preconditioner::count) {
            self.add(Due::of(Task::Learn, weight))?;
            self.squares.stale |= 1 & self.rules.seen();
        }
        self.looked += 1;
        if self.looked >= LOOK_EVERY {
            self.start_due()?;
            self.look_for_fault()?;
        }
        Ok(())
    }

    pub(crate) fn evaluate_if_needed(&mut self) -> Result<()> {
        if self.score_is_current { Ok(()) } else { self.evaluate() }
    }

    pub(crate) fn advance(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        self.move_for(moving, dt)?;
        self.finish_move(moving);
        Ok(())
    }

    /// Moves for a time, as a whole step or as a part of one.
    pub(crate) fn move_for(&mut self, moving: &[usize], time: f64) -> Result<()> {
        if self.rules.structure.needs_score(moving) {
            self.evaluate_if_needed()?;
        }
        self.add_move(moving, None, [time, 0.0])
    }

    /// After a whole step of θ, the next minibatch is due.
    pub(crate) fn finish_move(&mut self, moving: &[usize]) {
        if moving.contains(&THETA) && self.target.batches.is_some() {
            self.batches += 1;
        }
    }

    /// Adds a move by a rule with averages, or for a time.
    pub(crate) fn add_move(
        &mut self,
        moving: &[usize],
        rule: Option<[u64; 3]>,
        [amount, second]: [f64; 2],
    ) -> Result<()> {
        self.hold()?;
        if !self.motions.contains_key(moving) {
            self.motions.insert(moving.to_vec(), Motion::new(&self.device, &self.rules, moving)?);
        }
        let (is_second, stale) = self.squares.next(&self.rules, moving);
        let task = Task::Move { moving: moving.to_vec(), is_second, stale, rule };
        self.add(Due { second, ..Due::of(task, amount) })?;
        for (place, &block) in moving.iter().enumerate() {
            self.movers[block] = Some((moving.to_vec(), place));
        }
        if moving.contains(&THETA) {
            self.score_is_current = false;
        }
        Ok(())
    }

    pub(crate) fn advance_rescaled(
        &mut self,
        moving: &[usize],
        rescaling: &Rescaling,
        averages: &mut Averages<T>,
    ) -> Result<()> {
        let is_own = match (&*averages, &self.averages) {
            (Averages::There(theirs), Some(own)) => {
                std::ptr::addr_eq(Arc::as_ptr(theirs), Arc::as_ptr(own))
            }
            _ => false,
        };
        if !is_own {
            // Recordings have the address of others.
            self.start_due()?;
            self.recordings.clear();
            let count = self.rules.count * moving.len() * self.rules.structure.dim();
            let [mean, square] = match averages {
                Averages::Here { mean, square } if mean.is_empty() => {
                    [vec![T::zero(); count], std::mem::take(square)]
                }
                Averages::Here { mean, square } => [std::mem::take(mean), std::mem::take(square)],
                Averages::There(theirs) => theirs.fetch()?,
            };
            if mean.len() != count {
                return Err(Error::ForeignState { whose: "the integrator" });
            }
            let mut numbers = [mean, square].concat();
            numbers.resize(2 * count, T::zero());
            let mut buffer = self.device.zeros(2 * count * size_of::<T>())?;
            self.device.put(&numbers, &mut buffer)?;
            let own = Arc::new(OnDevice { device: self.device.clone(), buffer, count });
            *averages = Averages::There(Arc::<OnDevice>::clone(&own));
            self.averages = Some(own);
        }
        let Rescaling { keep_mean, keep_square, add_square, rate, square_scale } = *rescaling;
        let rule = [keep_mean, keep_square, add_square].map(f64::to_bits);
        if self.rules.structure.needs_score(moving) {
            self.evaluate_if_needed()?;
        }
        self.add_move(moving, Some(rule), [rate, square_scale])?;
        self.finish_move(moving);
        Ok(())
    }

    /// The particles are others than those that moved last.
    pub(crate) fn forget_distances(&mut self) {
        self.squares.stale = self.rules.seen();
    }
}
