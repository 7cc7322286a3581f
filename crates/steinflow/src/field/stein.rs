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

use super::{Field, at_least_two, gather};
use crate::dynamics::{Evaluated, Terms};
use crate::engine::{KernelSums, kernel_sums};
use crate::kernel::{Kernel, Radial, Resolved};
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
        let resolved = self.kernel.resolve(at.state, at.operator.dim());
        match self.kernel.radial {
            Radial::SquaredExponential => self.one_slope(at, moving, &resolved, velocity),
            Radial::InverseMultiquadric => self.slope_per_factor(at, moving, &resolved, velocity),
        }
        self.bandwidths = resolved.bandwidths;
        Ok(())
    }

    fn bandwidths(&self) -> &[f64] {
        &self.bandwidths
    }
}

impl Stein {
    /// Every slope is k itself, so drift and repulsion share one right-hand side:
    /// N vᵢ = Σⱼ kᵢⱼ (f(zⱼ) − M(cⱼ)Yⱼ) + M(Σⱼ kᵢⱼ cⱼ) Yᵢ.
    fn one_slope<T: Real>(
        &self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        resolved: &Resolved<T>,
        velocity: &mut Matrix<T>,
    ) {
        let (operator, count) = (at.operator, at.state.rows());
        let (dim, moved) = (operator.dim(), moving.len() * operator.dim());
        let width = moved + operator.width();
        let points = &resolved.gradient_points;

        let mut rhs = Matrix::zeros(count, width);
        rhs.as_mut_slice().par_chunks_mut(width).enumerate().with_min_len(64).for_each(
            |(j, row)| {
                let (force, sums) = row.split_at_mut(moved);
                let c = at.coefficients.row(j);
                gather(at.drift.row(j), moving, dim, force);
                operator.apply(c, points.row(j), moving, self.repulsion, -T::one(), force);
                sums.copy_from_slice(c);
            },
        );
        let (sums, _) = kernel_sums(&KernelSums {
            radial: Radial::SquaredExponential,
            groups: &resolved.groups,
            values: rhs.as_ref(),
            slopes: &[],
        });
        let share = T::of(1.0 / count as f64);
        velocity.as_mut_slice().par_chunks_mut(moved).enumerate().with_min_len(64).for_each(
            |(i, out)| {
                let (force, c) = sums.row(i).split_at(moved);
                out.copy_from_slice(force);
                operator.apply(c, points.row(i), moving, self.repulsion, T::one(), out);
                for v in out {
                    *v *= share;
                }
            },
        );
    }

    /// The general case: k for the drift, and a slope of its own for every factor of the kernel.
    fn slope_per_factor<T: Real>(
        &self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        resolved: &Resolved<T>,
        velocity: &mut Matrix<T>,
    ) {
        let (operator, count) = (at.operator, at.state.rows());
        let (dim, moved) = (operator.dim(), moving.len() * operator.dim());
        let width = moved + operator.width();
        // Y with the columns of all other factors set to zero: the gradient of one factor.
        let masked = |group: usize, i: usize| -> Vec<T> {
            let mut y = resolved.gradient_points.row(i).to_vec();
            for (block, y) in y.chunks_exact_mut(dim).enumerate() {
                if resolved.group_of_block[block] != Some(group) {
                    y.fill(T::zero());
                }
            }
            y
        };
        let mut drift = Matrix::zeros(count, moved);
        for j in 0..count {
            gather(at.drift.row(j), moving, dim, drift.row_mut(j));
        }
        let slopes: Vec<Matrix<T>> = (0..resolved.groups.len())
            .map(|group| {
                let mut rhs = Matrix::zeros(count, width);
                for j in 0..count {
                    let (force, sums) = rhs.row_mut(j).split_at_mut(moved);
                    let (c, y) = (at.coefficients.row(j), masked(group, j));
                    operator.apply(c, &y, moving, self.repulsion, -T::one(), force);
                    sums.copy_from_slice(c);
                }
                rhs
            })
            .collect();
        let (values, slopes) = kernel_sums(&KernelSums {
            radial: self.kernel.radial,
            groups: &resolved.groups,
            values: drift.as_ref(),
            slopes: &slopes,
        });
        let share = T::of(1.0 / count as f64);
        for i in 0..count {
            let out = velocity.row_mut(i);
            out.copy_from_slice(values.row(i));
            for (group, sums) in slopes.iter().enumerate() {
                let (force, c) = sums.row(i).split_at(moved);
                for (v, &force) in out.iter_mut().zip(force) {
                    *v += force;
                }
                operator.apply(c, &masked(group, i), moving, self.repulsion, T::one(), out);
            }
            for v in out {
                *v *= share;
            }
        }
    }
}
