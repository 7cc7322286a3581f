//! The engine: what of the library runs on a GPU, and what is refused by name.

use steinflow::Result;
use steinflow::field::{CurlForm, TimeUnit};
use steinflow::flow::{Engine, Flow, Parts, Request, refuse};
use steinflow::kernel::Kernel;
use steinflow::method::{FieldKind, Method, Parameters};
use steinflow::run::NonFinitePolicy;
use steinflow::{Error, LogDensity, Real};

use crate::device::Device;
use crate::dynamics::{Repulsion, is_known};
use crate::flow::CudaFlow;
use crate::rules::{Field, affine_bytes, shapes};
use crate::target;

/// A method of the catalogue on a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Cuda {
    ordinal: usize,
    field: Field,
    /// What varies from particle to particle, as text.
    locals: Option<String>,
}

/// What refusals call it.
const GPU: &str = "a GPU";

impl Cuda {
    /// A method with its parameters and kernel on the GPU of this number; refuses what does not run there.
    pub fn new(
        ordinal: usize,
        method: &Method,
        parameters: &Parameters,
        kernel: Kernel,
    ) -> Result<Self> {
        let dynamics = method.build_dynamics::<f64>(parameters);
        let (structure, locals) = (dynamics.structure(1), dynamics.device_source());
        let varies = structure.coefficients() > 0;
        let repulsion = match method.field {
            FieldKind::SteinStarred | FieldKind::BlobStarred => Repulsion::Diffusion,
            _ => Repulsion::All,
        };
        let field = match method.field {
            FieldKind::Diffusion => Field::Diffusion { is_random: true },
            FieldKind::Drift => Field::Diffusion { is_random: false },
            FieldKind::Stein | FieldKind::SteinStarred => {
                if let Some(others) = parameters.interactions {
                    return Err(refuse("interactions", others, GPU));
                }
                if kernel.affine > 0.0 && varies {
                    return Err(refuse("affine", kernel.affine, "a GPU with these dynamics"));
                }
                if structure.curl_varies() && parameters.curl == CurlForm::Symmetrised {
                    return Err(refuse("curl", "symmetrised", GPU));
                }
                let is_held = parameters.time_unit == TimeUnit::Eigenvalue;
                Field::Stein { kernel, repulsion, is_fast: false, is_held }
            }
            FieldKind::Blob | FieldKind::BlobStarred | FieldKind::Gfsd => {
                let is_blob = method.field != FieldKind::Gfsd;
                Field::Ratio { kernel, repulsion, is_blob, is_fast: false }
            }
            _ => return Err(refuse("method", &method.name, GPU)),
        };
        Ok(Self { ordinal, field, locals })
    }

    /// Takes products of kernel sums with 11 bits instead of 22: faster in more than a few dimensions.
    pub fn fast(mut self) -> Self {
        if let Field::Stein { is_fast, .. } | Field::Ratio { is_fast, .. } = &mut self.field {
            *is_fast = true;
        }
        self
    }

    #[cfg(test)]
    pub(crate) fn into_parts(self) -> (Field, Option<String>) {
        (self.field, self.locals)
    }

    /// Bytes that a run takes on the device, about, beside the target's data.
    fn bytes(&self, request: &Request, size: usize, processors: usize) -> u64 {
        let (structure, count) = (&request.structure, request.particles);
        let (dim, blocks) = (structure.dim(), structure.blocks());
        // The state, the score, and for midpoint steps two more states.
        let own = (count as u64) * ((3 * blocks + 1) * dim * size) as u64;
        // Splitting has a plan for every stage, Euler one for all blocks.
        let all: Vec<usize> = (0..blocks).collect();
        let stages = structure.stages().into_iter().chain([all]);
        let plans = stages.map(|moving| {
            let moving = moving.len();
            let shapes = shapes(&self.field, structure, moving, count, size);
            shapes.iter().map(|(shape, ..)| shape.bytes(processors)).sum::<u64>()
                + affine_bytes(&self.field, structure, moving, count, size)
        });
        own + plans.sum::<u64>()
    }
}

impl<T: Real> Engine<T> for Cuda {
    fn check(&self, request: &Request, target: &dyn LogDensity<T>) -> Result<()> {
        if request.policy == NonFinitePolicy::Freeze {
            return Err(refuse("non_finite", "freeze", GPU));
        }
        let structure = &request.structure;
        let diffusion = structure.diffusion_blocks().map(|(_, block)| block);
        let curl = structure.curl_blocks().map(|(_, _, block)| block);
        if let Some(block) =
            diffusion.chain(curl).find(|block| !is_known(block, self.locals.is_some()))
        {
            return Err(refuse("a block of A or C", format!("{block:?}"), GPU));
        }
        // Numbers of rows and columns are `int` on the device.
        let numbers = request.particles.saturating_mul(structure.dim() * (structure.blocks() + 1));
        if request.particles > 1 << 28 || numbers > 1 << 34 {
            let remedy = "a GPU takes at most 2^28 particles and 2^34 numbers";
            return Err(Error::setting("number of particles", request.particles, remedy));
        }
        let device = Device::open(self.ordinal)?;
        let data = target::bytes(target, request.batch_size);
        let needed = data + self.bytes(request, size_of::<T>(), device.processors);
        let free = device.free_memory()?;
        if data > free {
            let remedy = format!(
                "they need {} MiB on cuda:{}, and {} MiB are free; run with device cpu",
                data >> 20,
                self.ordinal,
                free >> 20
            );
            return Err(Error::setting("rows of data", target.data_rows(), remedy));
        }
        if needed > free {
            let remedy = format!(
                "with the data they need {} MiB on cuda:{}, and {} MiB are free; take fewer, or run with device cpu",
                needed >> 20,
                self.ordinal,
                free >> 20
            );
            return Err(Error::setting("number of particles", request.particles, remedy));
        }
        Ok(())
    }

    fn start<'a>(&self, parts: Parts<'a, T>, request: &Request) -> Result<Box<dyn Flow<T> + 'a>> {
        let device = Device::open(self.ordinal)?;
        let (field, locals) = (self.field.clone(), self.locals.clone());
        Ok(Box::new(CudaFlow::new(device, parts, request, field, locals)?))
    }
}
