//! Particles on a device: what integrators move there.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaGraph};
use steinflow::dynamics::{Structure, THETA};
use steinflow::flow::{Flow, Particles, Parts, Request, Vitals, refuse};
use steinflow::integrator::{Averages, Away, Rescaling};
use steinflow::random::{Purpose, fill_standard_normal, stream};
use steinflow::run::Saved;
use steinflow::{Error, MatMut, Matrix, Real, Result};

use crate::device::{Buffer, Device, NOTHING, Source, failed};
use crate::dynamics::Varying;
use crate::launch::Argument;
use crate::motion::{Field, Motion, Rules, World};
use crate::precondition::Preconditioner;
use crate::target::{Places, Target};

/// Evaluations of the target between two looks at whether all is finite.
const LOOK_EVERY: u64 = 50;
/// What a fault holds while there is none.
const NO_FAULT: u64 = u64::MAX;
/// Pieces of work that are started together, at most: as many as `kernels/steps.cu` is told of.
const MOST_TASKS: usize = 8;
/// Bytes of a `Move` of `kernels/prelude.cu`.
const MOVE: usize = 32;

/// Copies on the host, until the particles move.
struct Seen<T> {
    state: Matrix<T>,
    log_density: Vec<T>,
    score: Matrix<T>,
}

/// A piece of work that can be recorded: the same one does the same with other numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Task {
    /// The target at the particles, on a minibatch if there are some.
    Evaluate,
    /// What the preconditioner learns from that.
    Learn,
    /// A move of some blocks, with squared distances in the first or in the second place and not known of some; by a rule with averages, whose numbers are given as bits, or for a time.
    Move { moving: Vec<usize>, is_second: bool, stale: u32, rule: Option<[u64; 3]> },
}

/// A piece of work with its numbers: how long, or of what weight, and the place of its minibatch.
struct Due {
    task: Task,
    amount: f64,
    /// What a rule multiplies squares by.
    second: f64,
    batch: usize,
}

impl Due {
    fn of(task: Task, amount: f64) -> Self {
        Self { task, amount, second: 0.0, batch: 0 }
    }
}

/// What was recorded of some work that came before.
#[derive(Default)]
struct Recording {
    runs: u64,
    graph: Option<CudaGraph>,
}

/// Squared distances that are kept from move to move: see [`World::squares`].
struct Squares {
    places: Vec<Buffer>,
    is_second: bool,
    /// Blocks of which they are not known, as bits.
    stale: u32,
}

impl Squares {
    fn new(device: &Device, rules: &Rules) -> Result<Self> {
        let (places, bytes) = if rules.are_few() {
            (2, rules.parts_of_few().1)
        } else if rules.store_kernel() {
            (rules.structure.blocks(), rules.count * rules.count * rules.size)
        } else {
            (0, 0)
        };
        let places = (0..places).map(|_| device.zeros(bytes)).collect::<Result<_>>()?;
        Ok(Self { places, is_second: false, stale: rules.seen() })
    }

    /// What the next move finds, after which these blocks have moved.
    fn next(&mut self, rules: &Rules, moving: &[usize]) -> (bool, u32) {
        let found = (self.is_second, self.stale);
        if rules.are_few() {
            (self.is_second, self.stale) = (!self.is_second, 0);
        } else {
            self.stale = moving.iter().fold(0, |bits, block| bits | 1 << block) & rules.seen();
        }
        if self.places.is_empty() { (false, 0) } else { found }
    }
}

/// Averages of a rule that rescales velocities: first of them, then of their squares.
struct OnDevice {
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
struct Core<'a, T: Real> {
    device: Device,
    rules: Rules,
    target: Target<'a, T>,
    seed: u64,
    batches: u64,

    state: Buffer,
    score: Buffer,
    log_density: Buffer,
    moves: Buffer,
    fault: Buffer,
    preconditioner: Option<Preconditioner>,
    squares: Squares,
    averages: Option<Arc<OnDevice>>,
    motions: HashMap<Vec<usize>, Motion>,
    set_moves: CudaFunction,
    /// Work of the step that has not been started.
    due: Vec<Due>,
    recordings: HashMap<Vec<Task>, Recording>,
    /// What went wrong when nobody could be told.
    trouble: Option<Error>,
    /// For every block: the move that it last was in, and its place there.
    movers: Vec<Option<(Vec<usize>, usize)>>,
    squared_speeds: Vec<f64>,
    score_is_current: bool,
    score_is_full: bool,

    step: u64,
    step_size: f64,
    draws: usize,
    gradients: u64,
    looked: u64,
}

/// A run's particles on a device. Work is gathered, and started when somebody looks or the step is over.
pub(crate) struct CudaFlow<'a, T: Real> {
    structure: Structure,
    core: RefCell<Core<'a, T>>,
    seen: OnceCell<Seen<T>>,
}

/// The source of what every step needs.
pub(crate) fn source(size: usize) -> Source {
    Source::new(include_str!("../kernels/steps.cu"), size)
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
        let source = source(size);
        let preconditioner = match request.preconditioner {
            Some(rule) => Some(Preconditioner::new::<T>(&device, &source, rule, dim)?),
            None => None,
        };
        let is_scaled = preconditioner.is_some();
        let rules = Rules { field, structure: structure.clone(), varying, is_scaled, count, size };
        let squares = Squares::new(&device, &rules)?;
        let mut core = Core {
            target: Target::new(&device, target, seed, request.batch_size)?,
            state: device.zeros(count * blocks * dim * size)?,
            score: device.zeros(count * dim * size)?,
            log_density: device.zeros(count * size)?,
            moves: device.zeros(MOST_TASKS * MOVE)?,
            fault: device.zeros(8)?,
            set_moves: device.kernel(&source, "set_moves")?,
            device,
            rules,
            seed,
            batches: 0,
            preconditioner,
            squares,
            averages: None,
            motions: HashMap::new(),
            due: Vec::new(),
            recordings: HashMap::new(),
            trouble: None,
            movers: vec![None; blocks],
            squared_speeds: vec![0.0; blocks],
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
        draw_auxiliaries(&mut state, &structure, seed, 0);
        core.device.put(state.as_slice(), &mut core.state)?;
        core.forget_fault()?;
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

/// The library's draws, so that a run starts where it does on the host.
fn draw_auxiliaries<T: Real>(state: &mut Matrix<T>, structure: &Structure, seed: u64, index: u64) {
    let dim = structure.dim();
    for i in 0..state.rows() {
        let mut generator = stream(seed, Purpose::Auxiliary, index, i as u64);
        let blocks = state.row_mut(i)[dim..].chunks_exact_mut(dim);
        for (values, law) in blocks.zip(structure.auxiliaries()) {
            fill_standard_normal(&mut generator, values);
            for x in values {
                *x = T::of(law.mean) + T::of(law.variance.sqrt()) * *x;
            }
        }
    }
}

impl<T: Real> Core<'_, T> {
    fn forget_fault(&mut self) -> Result<()> {
        self.device.put_bytes(&NO_FAULT.to_ne_bytes(), &mut self.fault)
    }

    /// Whether all numbers were finite so far.
    fn look_for_fault(&mut self) -> Result<()> {
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
    fn add(&mut self, due: Due) -> Result<()> {
        if self.due.len() == MOST_TASKS {
            self.start_due()?;
        }
        self.due.push(due);
        Ok(())
    }

    /// Starts what is due. The second time that the same is, it is recorded; from then on it is replayed as a whole.
    fn start_due(&mut self) -> Result<()> {
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

    fn record(&mut self, tasks: &[Task]) -> Result<Option<CudaGraph>> {
        self.device.begin_recording()?;
        let started = self.start(tasks);
        let graph = self.device.end_recording();
        started?;
        graph
    }

    fn start(&mut self, tasks: &[Task]) -> Result<()> {
        for (place, task) in tasks.iter().enumerate() {
            let moved = self.moves.at(place * MOVE);
            match task {
                Task::Evaluate => self.evaluate_at(moved, self.batch())?,
                Task::Learn => {
                    if let Some(own) = &self.preconditioner {
                        own.learn(&self.device, &self.score, self.rules.count, moved)?;
                    }
                }
                Task::Move { moving, is_second, stale, rule } => {
                    let Some(motion) = self.motions.get_mut(moving) else { continue };
                    let world = World {
                        state: &self.state,
                        score: &self.score,
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
    fn batch(&self) -> Option<u64> {
        self.target.batches.as_ref().map(|_| self.batches)
    }

    fn evaluate_at(&mut self, moved: Argument, batch: Option<u64>) -> Result<()> {
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
    fn evaluate(&mut self) -> Result<()> {
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

    fn evaluate_if_needed(&mut self) -> Result<()> {
        if self.score_is_current { Ok(()) } else { self.evaluate() }
    }

    fn advance(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        self.advance_by(moving, None, [dt, 0.0])
    }

    /// Moves by a rule with averages, or for a time.
    fn advance_by(
        &mut self,
        moving: &[usize],
        rule: Option<[u64; 3]>,
        [amount, second]: [f64; 2],
    ) -> Result<()> {
        if self.rules.structure.needs_score(moving) {
            self.evaluate_if_needed()?;
        }
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
            if self.target.batches.is_some() {
                self.batches += 1;
            }
        }
        Ok(())
    }

    fn advance_rescaled(
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
        self.advance_by(moving, Some(rule), [rate, square_scale])
    }

    /// The particles are others than those that moved last.
    fn forget_distances(&mut self) {
        self.squares.stale = self.rules.seen();
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

    fn advance_by_midpoint(&mut self, _moving: &[usize], _dt: f64) -> Result<()> {
        Err(refuse("integrator", "one with midpoint steps", "a GPU"))
    }

    fn advance_implicitly(&mut self, _moving: &[usize], _dt: f64) -> Result<()> {
        Err(refuse("integrator", "implicit-drift", "a GPU"))
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
        let mut state = self.look()?.state.clone();
        self.seen.take();
        let core = self.core.get_mut();
        draw_auxiliaries(&mut state, &self.structure, core.seed, index);
        core.forget_distances();
        core.device.put(state.as_slice(), &mut core.state)
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
            field: Vec::new(),
        })
    }

    fn restore(&mut self, saved: &Saved<T>) -> Result<()> {
        let core = self.core.get_mut();
        saved.check(core.rules.count, self.structure.dim(), self.structure.blocks())?;
        if !saved.field.is_empty() {
            return Err(Error::ForeignState { whose: "a run on a GPU" });
        }
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
}
