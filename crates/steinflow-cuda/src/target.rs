//! Targets on the device, and those that stay on the host.

use cudarc::driver::CudaFunction;
use steinflow::target::DeviceSource;
use steinflow::{Error, LogDensity, MatMut, Matrix, Real, Result};

use crate::batches::Batches;
use crate::device::{Buffer, Device, NOTHING, Source};
use crate::launch::Argument;

/// How a target is evaluated.
enum Way {
    /// A thread or a warp a particle.
    PerParticle { kernel: CudaFunction, data: Buffer, lanes: usize },
    /// Targets with a linear predictor.
    Linear { kernel: CudaFunction, data: Data, precision: f64, shared: usize },
    /// Networks, a block a particle.
    Network { kernel: CudaFunction, data: Data, precisions: Buffer, shared: usize },
    /// Particles travel to the host, and scores back.
    Host,
}

/// Rows of data on the device.
struct Data {
    rows: Buffer,
    outcomes: Buffer,
    count: usize,
}

impl Data {
    /// How many rows are taken, their numbers in the ring of minibatches, and what the likelihood is multiplied by.
    fn taken(&self, batches: Option<&Batches>) -> [Argument; 3] {
        match batches {
            Some(own) => [own.size.into(), own.arg(), Argument::Double(own.scale())],
            None => [self.count.into(), NOTHING, Argument::Double(1.0)],
        }
    }
}

/// A target that is evaluated for particles on a device.
pub(crate) struct Target<'a, T: Real> {
    host: Box<dyn LogDensity<T> + 'a>,
    way: Way,
    pub(crate) batches: Option<Batches>,
}

/// Where particles are, and where the answer goes.
pub(crate) struct Places<'b> {
    pub state: &'b Buffer,
    /// Numbers from particle to particle.
    pub row: usize,
    pub count: usize,
    pub score: &'b mut Buffer,
    pub log_density: &'b mut Buffer,
    pub moved: Argument,
    pub fault: &'b Buffer,
    /// The step under way, for errors.
    pub step: u64,
    pub step_size: f64,
    /// The minibatch; none for all rows.
    pub batch: Option<u64>,
}

/// The most coordinates of a target with a linear predictor that a block has room for.
const MOST_LINEAR: usize = 256;

/// Shared memory of a block: what every GPU that is taken has.
const MOST_SHARED: usize = 160 << 10;

/// Shared memory of a block of which a multiprocessor has two at a time.
const HALF_SHARED: usize = 100 << 10;

/// How a block evaluates a network.
struct Fit {
    /// Rows of data that a lane has.
    per_lane: usize,
    /// Whether the weights are in shared memory, too.
    has_weights: bool,
    /// Bytes of shared memory.
    shared: usize,
}

impl Fit {
    fn new(layers: &[usize], dim: usize, size: usize) -> Option<Self> {
        let (outputs, units) = layers.split_last()?;
        let units: usize = units.iter().sum();
        let bytes = |rows: usize| (units * (32 * rows + 4) + (outputs + 1) * 32 * rows) * size;
        let per_lane = [4, 2, 1].into_iter().find(|&rows| bytes(rows) <= MOST_SHARED)?;
        let (own, weights) = (bytes(per_lane), dim * size);
        let has_weights = own + weights <= HALF_SHARED;
        Some(Self { per_lane, has_weights, shared: own + if has_weights { weights } else { 0 } })
    }
}

/// Threads that share a particle: a warp, where it has coordinates for most of them.
fn lanes(dim: usize) -> usize {
    if dim > 16 { 32 } else { 1 }
}

/// The kernel's source for what a target says of itself; none for what does not fit a block.
pub(crate) fn source(own: &DeviceSource, dim: usize, size: usize) -> Option<Source> {
    let text = |first: &str, second: &str| {
        Source::new(&format!("{first}\n{second}"), size).with("DIMENSION", dim)
    };
    Some(match own {
        DeviceSource::PerParticle { code, .. } => {
            let code = format!("__device__ __forceinline__ {code}");
            text(include_str!("../kernels/target.cu"), &code).with("LANES", lanes(dim))
        }
        DeviceSource::Linear { .. } if dim > MOST_LINEAR => return None,
        DeviceSource::Linear { code, .. } => {
            let code = format!("__device__ __forceinline__ {code}");
            text(&code, include_str!("../kernels/linear.cu"))
        }
        DeviceSource::Network { layers, code, largest_log_factor, .. } => {
            let fit = Fit::new(layers, dim, size)?;
            let widths: Vec<String> = layers.iter().map(ToString::to_string).collect();
            text(code, include_str!("../kernels/network.cu"))
                .with("WIDTH_LIST", widths.join(","))
                .with("PER_LANE", fit.per_lane)
                .with("WEIGHTS_FIT", u8::from(fit.has_weights))
                .with("LOG_FACTOR", format!("{largest_log_factor:?}"))
        }
    })
}

/// Bytes of the data that a target has on the device.
pub(crate) fn bytes<T: Real>(target: &dyn LogDensity<T>, batch_size: Option<usize>) -> u64 {
    let (dim, size) = (target.dim(), size_of::<T>());
    let own = target.device_source().filter(|own| source(own, dim, size).is_some());
    let numbers = match own {
        None => 0,
        Some(DeviceSource::PerParticle { data, .. }) => data.len(),
        Some(
            DeviceSource::Linear { rows, outcomes, .. }
            | DeviceSource::Network { rows, outcomes, .. },
        ) => rows.as_slice().len() + outcomes.len(),
    };
    (numbers * size + batch_size.map_or(0, Batches::bytes)) as u64
}

impl<'a, T: Real> Target<'a, T> {
    pub(crate) fn new(
        device: &Device,
        host: Box<dyn LogDensity<T> + 'a>,
        seed: u64,
        batch_size: Option<usize>,
    ) -> Result<Self> {
        let (dim, size) = (host.dim(), size_of::<T>());
        let upload = |values: &[f64]| {
            let values: Vec<T> = values.iter().map(|&x| T::of(x)).collect();
            let mut buffer = device.zeros(values.len() * size)?;
            device.put(&values, &mut buffer)?;
            Ok::<Buffer, Error>(buffer)
        };
        let data = |rows: &Matrix<f64>, outcomes: &[f64]| {
            let (count, outcomes) = (rows.rows(), upload(outcomes)?);
            Ok::<Data, Error>(Data { rows: upload(rows.as_slice())?, outcomes, count })
        };
        let own = host.device_source();
        let kernel = match own.as_ref().and_then(|own| source(own, dim, size)) {
            Some(source) => Some(device.kernel(&source, "evaluate")?),
            None => None,
        };
        let way = match own.zip(kernel) {
            None => Way::Host,
            Some((DeviceSource::PerParticle { data, .. }, kernel)) => {
                Way::PerParticle { kernel, data: upload(&data)?, lanes: lanes(dim) }
            }
            Some((DeviceSource::Linear { rows, outcomes, precision, .. }, kernel)) => {
                let shared = (64 * (dim + 1) + 32 * 33 + 32) * size;
                Device::allow_shared(&kernel, shared)?;
                Way::Linear { kernel, data: data(&rows, &outcomes)?, precision, shared }
            }
            Some((DeviceSource::Network { layers, rows, outcomes, precisions, .. }, kernel)) => {
                let shared = Fit::new(&layers, dim, size).map_or(0, |fit| fit.shared);
                Device::allow_shared(&kernel, shared)?;
                let numbers = precisions.iter().flat_map(|own| {
                    let is_learned = f64::from(u8::from(own.is_learned));
                    [is_learned, own.value, own.shape, own.rate, own.normaliser]
                });
                let numbers: Vec<f64> = numbers.collect();
                let mut precisions = device.zeros(numbers.len() * 8)?;
                device.put(&numbers, &mut precisions)?;
                Way::Network { kernel, data: data(&rows, &outcomes)?, precisions, shared }
            }
        };
        let batches = match batch_size {
            Some(batch) => Some(Batches::new(device, seed, host.data_rows(), batch)?),
            None => None,
        };
        Ok(Self { host, way, batches })
    }

    /// Whether it is evaluated on the device, so that it can be recorded.
    pub(crate) fn is_on_device(&self) -> bool {
        !matches!(self.way, Way::Host)
    }

    /// What the target says on the host of θ, on a minibatch or on all rows.
    pub(crate) fn ask(
        &self,
        theta: &Matrix<T>,
        batch: Option<u64>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> Result<()> {
        let batch = batch.zip(self.batches.as_ref()).map(|(number, own)| own.draw(number));
        self.host.evaluate(theta.as_ref(), batch.as_ref(), log_density, score)
    }

    /// Evaluates all particles, on all of the data or the minibatch that the move names.
    pub(crate) fn evaluate(&mut self, device: &Device, at: Places<'_>) -> Result<()> {
        let Places { state, row, count, score, log_density, moved, fault, .. } = at;
        let batches = self.batches.as_ref().filter(|_| at.batch.is_some());
        match &self.way {
            Way::PerParticle { kernel, data, lanes } => {
                let arguments = [
                    state.arg(),
                    count.into(),
                    row.into(),
                    data.arg(),
                    score.arg(),
                    log_density.arg(),
                    moved,
                    fault.arg(),
                ];
                device.launch(kernel, ((count * lanes).div_ceil(128), 1), (128, 1), 0, &arguments)
            }
            Way::Linear { kernel, data, precision, shared } => {
                let [taken, rows, scale] = data.taken(batches);
                let arguments = [
                    state.arg(),
                    count.into(),
                    row.into(),
                    data.rows.arg(),
                    data.outcomes.arg(),
                    taken,
                    rows,
                    scale,
                    Argument::Double(*precision),
                    score.arg(),
                    log_density.arg(),
                    moved,
                    fault.arg(),
                ];
                device.launch(kernel, (count.div_ceil(32), 1), (256, 1), *shared, &arguments)
            }
            Way::Network { kernel, data, precisions, shared } => {
                let [taken, rows, scale] = data.taken(batches);
                let arguments = [
                    state.arg(),
                    row.into(),
                    data.rows.arg(),
                    data.outcomes.arg(),
                    taken,
                    rows,
                    scale,
                    precisions.arg(),
                    score.arg(),
                    log_density.arg(),
                    moved,
                    fault.arg(),
                ];
                device.launch(kernel, (count, 1), (256, 1), *shared, &arguments)
            }
            Way::Host => {
                let dim = self.host.dim();
                let state: Vec<T> = device.get(state, count * row)?;
                let theta = Matrix::from_fn(count, dim, |i, j| state[i * row + j]);
                let (mut values, mut scores) = (vec![T::zero(); count], Matrix::zeros(count, dim));
                self.ask(&theta, at.batch, &mut values, scores.as_mut())?;
                let (step, step_size) = (at.step, at.step_size);
                for (particle, &value) in values.iter().enumerate() {
                    let bad = |x: &&T| !x.is_finite();
                    let (what, value) = match scores.row(particle).iter().find(bad) {
                        Some(&bad) => ("score", bad),
                        None if value.is_finite() => continue,
                        None => ("log density", value),
                    };
                    let value = value.as_f64();
                    return Err(Error::NonFinite { what, value, particle, step, step_size });
                }
                device.put(scores.as_slice(), score)?;
                device.put(&values, log_density)
            }
        }
    }
}
