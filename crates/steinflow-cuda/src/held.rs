//! λ and the bandwidths, where time is in units of λ: found at the start by the library on the host, and held.

use steinflow::dynamics::THETA;
use steinflow::field::{Stein, TimeUnit};
use steinflow::kernel::{Bandwidth, Kernel};
use steinflow::target::PerParticle;
use steinflow::{Error, Matrix, Real, Result, System};

use crate::core::Core;
use crate::rules::Field;

/// What is held, as the library's own field keeps it: λ, then the bandwidths; nothing before the first move.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// With the rule that bandwidths are chosen by.
    kernel: Kernel,
    pub(crate) memory: Vec<f64>,
}

impl Held {
    /// For a field that holds them.
    pub(crate) fn of(field: &Field) -> Option<Self> {
        match field {
            Field::Stein { kernel, is_held: true, .. } => {
                Some(Self { kernel: kernel.clone(), memory: Vec::new() })
            }
            _ => None,
        }
    }
}

impl<T: Real> Core<'_, T> {
    /// Finds what is to be held, unless it is known: once a run.
    pub(crate) fn hold(&mut self) -> Result<()> {
        let Some(kernel) = self.held.as_ref().filter(|held| held.memory.is_empty()) else {
            return Ok(());
        };
        let field = Stein::new(kernel.kernel.clone()).time_unit(TimeUnit::Eigenvalue);
        self.start_due()?;
        let (count, dim) = (self.rules.count, self.rules.structure.dim());
        let columns = self.rules.structure.blocks() * dim;
        let mut state: Vec<T> = self.device.get(&self.state, count * columns)?;
        // The kernel sees θ in the preconditioner's coordinates.
        if let Some(own) = &self.preconditioner {
            let scale: Vec<T> = self.device.get(&own.scale, dim)?;
            for row in state.chunks_exact_mut(columns) {
                row.iter_mut().zip(&scale).for_each(|(x, &s)| *x /= s);
            }
        }
        let state = Matrix::from_vec(state, count, columns).expect("as many as were asked for");
        let theta = Matrix::from_fn(count, dim, |i, j| state.row(i)[j]);
        // Neither depends on the target.
        let flat = PerParticle::new(dim, |_: &[T], score: &mut [T]| {
            score.fill(T::zero());
            T::zero()
        });
        let mut system = System::new(flat, &*self.dynamics, field, &theta, 0)?;
        system.set_state(state)?;
        system.velocity(&[THETA])?;
        let memory = steinflow::flow::Flow::save(&system)?.field;
        drop(system);
        self.recall_held(&memory)
    }

    /// Takes up what was held when a run was saved.
    pub(crate) fn recall_held(&mut self, memory: &[f64]) -> Result<()> {
        let Some(held) = &mut self.held else {
            return match memory {
                [] => Ok(()),
                _ => Err(Error::ForeignState { whose: "a run on a GPU" }),
            };
        };
        if held.memory == memory {
            return Ok(());
        }
        let mut own = held.kernel.clone();
        let eigenvalue = match memory {
            [] => 1.0,
            [eigenvalue, h @ ..]
                if !h.is_empty() && memory.iter().all(|x| *x > 0.0 && x.is_finite()) =>
            {
                own.bandwidth = Bandwidth::Fixed(h.to_vec());
                *eigenvalue
            }
            _ => return Err(Error::ForeignState { whose: "the field" }),
        };
        held.memory = memory.to_vec();
        self.rules.eigenvalue = eigenvalue;
        if let Field::Stein { kernel, .. } = &mut self.rules.field {
            *kernel = own;
        }
        // Plans and recordings are of other bandwidths.
        self.motions.clear();
        self.recordings.clear();
        Ok(())
    }
}
