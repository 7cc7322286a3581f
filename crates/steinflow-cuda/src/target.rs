//! Targets on the device, and those that stay on the host.

use cudarc::driver::CudaFunction;
use steinflow::target::DeviceSource;
use steinflow::{Error, LogDensity, MatMut, Matrix, Minibatch, Real, Result};

use crate::device::{Buffer, Device, NOTHING, Source};
use crate::launch::Argument;

/// How a target is evaluated.
enum Way {
    /// A thread a particle.
    PerParticle { kernel: CudaFunction, data: Buffer },
    /// Targets with a linear predictor.
    Linear {
        kernel: CudaFunction,
        rows: Buffer,
        outcomes: Buffer,
        row_count: usize,
        precision: f64,
        shared: usize,
    },
    /// Particles travel to the host, and scores back.
    Host,
}

/// A target that is evaluated for particles on a device.
pub(crate) struct Target<'a, T: Real> {
    host: Box<dyn LogDensity<T> + 'a>,
    way: Way,
    batch: Option<(Minibatch, Buffer)>,
}

/// Where particles are, and where the answer goes.
pub(crate) struct Places<'b> {
    pub state: &'b Buffer,
    /// Numbers from particle to particle.
    pub row: usize,
    pub count: usize,
    pub score: &'b mut Buffer,
    pub log_density: &'b mut Buffer,
    pub moved: &'b Buffer,
    pub fault: &'b Buffer,
    /// The step under way, for errors.
    pub step: u64,
    pub step_size: f64,
}

/// The most coordinates of a target with a linear predictor that a block has room for.
const MOST_LINEAR: usize = 256;

/// The kernel's source for what a target says of itself.
pub(crate) fn source(own: &DeviceSource, dim: usize, size: usize) -> Source {
    let (code, kernel) = match own {
        DeviceSource::PerParticle { code, .. } => (code, include_str!("../kernels/target.cu")),
        DeviceSource::Linear { code, .. } => (code, include_str!("../kernels/linear.cu")),
    };
    Source::new(&format!("__device__ __forceinline__ {code}\n{kernel}"), size)
        .with("DIMENSION", dim)
}

impl<'a, T: Real> Target<'a, T> {
    pub(crate) fn new(device: &Device, host: Box<dyn LogDensity<T> + 'a>) -> Result<Self> {
        let (dim, size) = (host.dim(), size_of::<T>());
        let upload = |values: &[f64]| {
            let values: Vec<T> = values.iter().map(|&x| T::of(x)).collect();
            let mut buffer = device.zeros(values.len() * size)?;
            device.put(&values, &mut buffer)?;
            Ok::<Buffer, Error>(buffer)
        };
        let way = match host.device_source() {
            Some(own @ DeviceSource::PerParticle { .. }) => {
                let kernel = device.kernel(&source(&own, dim, size), "evaluate")?;
                let DeviceSource::PerParticle { data, .. } = own else {
                    unreachable!("matched above")
                };
                Way::PerParticle { kernel, data: upload(&data)? }
            }
            Some(own @ DeviceSource::Linear { .. }) if dim <= MOST_LINEAR => {
                let kernel = device.kernel(&source(&own, dim, size), "evaluate")?;
                let DeviceSource::Linear { rows, outcomes, precision, .. } = own else {
                    unreachable!("matched above")
                };
                let shared = (64 * (dim + 1) + 32 * 33 + 32) * size;
                Device::allow_shared(&kernel, shared)?;
                Way::Linear {
                    kernel,
                    row_count: rows.rows(),
                    rows: upload(rows.as_slice())?,
                    outcomes: upload(&outcomes)?,
                    precision,
                    shared,
                }
            }
            _ => Way::Host,
        };
        Ok(Self { host, way, batch: None })
    }

    pub(crate) fn data_rows(&self) -> usize {
        self.host.data_rows()
    }

    /// The rows that are taken from now on.
    pub(crate) fn take_rows(&mut self, device: &Device, batch: Minibatch) -> Result<()> {
        let bytes: Vec<u8> =
            batch.indices.iter().flat_map(|&index| (index as i32).to_ne_bytes()).collect();
        let mut buffer = match self.batch.take() {
            Some((_, buffer)) => buffer,
            None => device.zeros(bytes.len())?,
        };
        device.put_bytes(&bytes, &mut buffer)?;
        self.batch = Some((batch, buffer));
        Ok(())
    }

    /// What the target says on the host of θ, on the present minibatch.
    pub(crate) fn ask(
        &self,
        theta: &Matrix<T>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> Result<()> {
        let batch = self.batch.as_ref().map(|(batch, _)| batch);
        self.host.evaluate(theta.as_ref(), batch, log_density, score)
    }

    /// Evaluates all particles, on all of the data or the present minibatch.
    pub(crate) fn evaluate(
        &mut self,
        device: &Device,
        at: Places<'_>,
        on_all_rows: bool,
    ) -> Result<()> {
        let Places { state, row, count, score, log_density, moved, fault, step, step_size } = at;
        let batch = self.batch.as_ref().filter(|_| !on_all_rows);
        match &self.way {
            Way::PerParticle { kernel, data } => {
                let arguments = [
                    state.arg(),
                    count.into(),
                    row.into(),
                    data.arg(),
                    score.arg(),
                    log_density.arg(),
                    moved.arg(),
                    fault.arg(),
                ];
                device.launch(kernel, (count.div_ceil(128), 1), (128, 1), 0, &arguments)
            }
            Way::Linear { kernel, rows, outcomes, row_count, precision, shared } => {
                let (taken, indices, scale) = match batch {
                    Some((batch, buffer)) => (batch.indices.len(), buffer.arg(), batch.scale),
                    None => (*row_count, NOTHING, 1.0),
                };
                let arguments = [
                    state.arg(),
                    count.into(),
                    row.into(),
                    rows.arg(),
                    outcomes.arg(),
                    taken.into(),
                    indices,
                    Argument::Double(scale),
                    Argument::Double(*precision),
                    score.arg(),
                    log_density.arg(),
                    moved.arg(),
                    fault.arg(),
                ];
                device.launch(kernel, (count.div_ceil(32), 1), (256, 1), *shared, &arguments)
            }
            Way::Host => {
                let dim = self.host.dim();
                let state: Vec<T> = device.get(state, count * row)?;
                let theta = Matrix::from_fn(count, dim, |i, j| state[i * row + j]);
                let (mut values, mut scores) = (vec![T::zero(); count], Matrix::zeros(count, dim));
                let batch = batch.map(|(batch, _)| batch);
                self.host.evaluate(theta.as_ref(), batch, &mut values, scores.as_mut())?;
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
