//! GSVGD, the de-randomised field: the diffusion Stein operator applied to a kernel.
//!
//! ```text
//! vᵢ = (1/N) Σⱼ [ k(zᵢ, zⱼ) f(zⱼ) + M(zⱼ) ∇₂k(zᵢ, zⱼ) ]            (the paper's eq. for GSVGD)
//! ```
//!
//! and, starred, with A in place of M = A + C. As ∇₂k = sᵢⱼ (Yᵢ − Yⱼ) for scaled particles Y, and
//! M(cⱼ) is linear in the coefficient row cⱼ,
//!
//! ```text
//! N vᵢ = Σⱼ kᵢⱼ f(zⱼ) − Σⱼ sᵢⱼ M(cⱼ)Yⱼ + M(Σⱼ sᵢⱼ cⱼ) Yᵢ
//! ```
//!
//! which is one pass of kernel sums. A = I, C = 0 is SVGD; A = G⁻¹ is Riemannian SVGD.

use rayon::prelude::*;

use super::{Field, at_least_two};
use crate::dynamics::{Evaluated, Repulsion, Terms};
use crate::engine::rows_per_task;
use crate::kernel::Kernel;
use crate::{Matrix, Real, Result};

/// The GSVGD field over any dynamics.
#[derive(Clone, Debug)]
pub struct Stein {
    kernel: Kernel,
    repulsion: Terms,
    bandwidths: Vec<f64>,
}

impl Stein {
    /// The paper's field.
    pub fn new(kernel: Kernel) -> Self {
        Self { kernel, repulsion: Terms::All, bandwidths: Vec::new() }
    }

    /// The starred variant: repulsion by A alone. Its particles never stop; their law does.
    pub fn starred(kernel: Kernel) -> Self {
        Self { repulsion: Terms::Diffusion, ..Self::new(kernel) }
    }
}

/// What k and every slope that differs from it multiply: [force | c] of every particle.
struct Part<'a, T> {
    /// Whether the drift is in the force.
    drifts: bool,
    /// How fast the slope repels in each block.
    rates: &'a [T],
}

impl<T: Real> Field<T> for Stein {
    fn validate(&self, blocks: usize, particles: usize) -> Result<()> {
        at_least_two(particles)?;
        self.kernel.validate(blocks)
    }

    fn velocity(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        velocity: &mut Matrix<T>,
    ) -> Result<()> {
        let resolved = self.kernel.resolve(at);
        let (operator, count) = (at.operator, at.state.rows());
        let (moved, points) = (moving.len() * operator.dim(), resolved.centred());
        let width = moved + operator.width();

        // A slope that is k itself repels along with the drift; others come after it.
        let (slopes, nowhere) = (resolved.slopes(), vec![T::zero(); operator.blocks()]);
        let shared = self.kernel.radial.slope_is_value();
        let drift = (!shared).then_some(Part { drifts: true, rates: &nowhere });
        let slopes = slopes.iter().map(|rates| Part { drifts: shared, rates });
        let parts: Vec<Part<'_, T>> = drift.into_iter().chain(slopes).collect();

        let mut rhs: Vec<_> = parts.iter().map(|_| at.scratch.matrix(count, width)).collect();
        for (part, rhs) in parts.iter().zip(&mut rhs) {
            let repulsion = Repulsion { rates: part.rates, terms: self.repulsion, points };
            let rows = rhs.as_mut_slice().par_chunks_mut(width).enumerate();
            rows.with_min_len(rows_per_task(width)).for_each(|(j, row)| {
                let (force, c) = row.split_at_mut(moved);
                c.copy_from_slice(at.coefficients.row(j));
                at.write_force(j, moving, part.drifts, Some(repulsion), force);
            });
        }
        let mut sums: Vec<_> = parts.iter().map(|_| at.scratch.matrix(count, width)).collect();
        resolved.sums_with_slopes(
            &rhs.iter().map(|rhs| rhs.as_ref()).collect::<Vec<_>>(),
            &mut sums.iter_mut().map(|sums| &mut **sums).collect::<Vec<_>>(),
        );

        let share = T::of(1.0 / count as f64);
        let rows = velocity.as_mut_slice().par_chunks_mut(moved).enumerate();
        rows.with_min_len(rows_per_task(moved)).for_each(|(i, out)| {
            let x = points.row(i);
            for (place, (part, sums)) in parts.iter().zip(&sums).enumerate() {
                let (force, c) = sums.row(i).split_at(moved);
                let share = (place + 1 == parts.len()).then_some(share);
                let from = if place == 0 {
                    Some(force)
                } else {
                    out.iter_mut().zip(force).for_each(|(out, &force)| *out += force);
                    None
                };
                operator.write_sum(
                    (c, from),
                    (x, part.rates),
                    (moving, self.repulsion),
                    share,
                    out,
                );
            }
        });
        self.bandwidths.clone_from(&resolved.bandwidths);
        Ok(())
    }

    fn bandwidths(&self) -> &[f64] {
        &self.bandwidths
    }
}
