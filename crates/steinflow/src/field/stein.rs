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
use crate::dynamics::{Evaluated, Multiple, Operator, Terms};
use crate::engine::{KernelSums, kernel_sums, rows_per_task, vectorised};
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
        let resolved = self.kernel.resolve(at);
        match (self.kernel.radial, at.operator.multiples(moving)) {
            (Radial::SquaredExponential, Some(multiples)) => {
                self.constant_multiples(at, &multiples, &resolved, velocity);
            }
            (Radial::SquaredExponential, None) => self.one_slope(at, moving, &resolved, velocity),
            (Radial::InverseMultiquadric, _) => {
                self.slope_per_factor(at, moving, &resolved, velocity);
            }
        }
        self.bandwidths.clone_from(&resolved.bandwidths);
        Ok(())
    }

    fn reads_locals(&self, operator: &Operator<T>, moving: &[usize]) -> bool {
        self.kernel.radial != Radial::SquaredExponential || operator.multiples(moving).is_none()
    }

    fn bandwidths(&self) -> &[f64] {
        &self.bandwidths
    }
}

impl Stein {
    /// As below for blocks a·I of a constant M, where f = M g with g = ∇log π(z):
    /// N vᵢ = Σ a (Σⱼ kᵢⱼ (gⱼ − Yⱼ) + Σⱼ kᵢⱼ Yᵢ), the outer sum over the blocks of a row of M.
    fn constant_multiples<T: Real>(
        &self,
        at: &Evaluated<'_, T>,
        multiples: &[Vec<Multiple<T>>],
        resolved: &Resolved<'_, T>,
        velocity: &mut Matrix<T>,
    ) {
        let (count, dim) = (at.state.rows(), at.operator.dim());
        let moved = multiples.len() * dim;
        let (points, rates) = (resolved.centred(), &resolved.slope_rates);
        let columns = |multiple: &Multiple<T>| multiple.column * dim..(multiple.column + 1) * dim;
        let rate = |multiple: &Multiple<T>| {
            let repels = self.repulsion == Terms::All || multiple.diffusion;
            if repels { rates[multiple.column] } else { T::zero() }
        };

        let mut rhs = at.scratch.matrix(count, moved + 1);
        let rows = rhs.as_mut_slice().par_chunks_mut(moved + 1).enumerate();
        rows.with_min_len(rows_per_task(moved)).for_each(|(j, row)| {
            row[moved] = T::one();
            for (row_of_m, force) in multiples.iter().zip(row.chunks_exact_mut(dim)) {
                for (place, multiple) in row_of_m.iter().enumerate() {
                    let (block, factor) = (multiple.column, multiple.factor);
                    let repulsion = (rate(multiple), &points.row(j)[columns(multiple)]);
                    if place == 0 {
                        at.force(
                            (j, block),
                            (factor, repulsion),
                            force,
                            #[inline(always)]
                            |force, x| *force = x,
                        );
                    } else {
                        at.force(
                            (j, block),
                            (factor, repulsion),
                            force,
                            #[inline(always)]
                            |force, x| *force += x,
                        );
                    }
                }
                if row_of_m.is_empty() {
                    force.fill(T::zero());
                }
            }
        });
        let mut sums = at.scratch.matrix(count, moved + 1);
        resolved.sums(rhs.as_ref(), &mut sums);
        let share = T::of(1.0 / count as f64);
        let rows = velocity.as_mut_slice().par_chunks_mut(moved).enumerate();
        rows.with_min_len(rows_per_task(moved)).for_each(|(i, out)| {
            let total = sums.row(i)[moved];
            let blocks = out.chunks_exact_mut(dim).zip(sums.row(i).chunks_exact(dim));
            for (row_of_m, (out, force)) in multiples.iter().zip(blocks) {
                for (place, multiple) in row_of_m.iter().enumerate() {
                    let x = &points.row(i)[columns(multiple)];
                    let (weight, rate) = (total * multiple.factor, rate(multiple));
                    // Shared out last, as in the general case: so both round alike.
                    let share = if place + 1 == row_of_m.len() { share } else { T::one() };
                    vectorised(
                        #[inline(always)]
                        || {
                            if place == 0 {
                                for ((out, &force), &x) in out.iter_mut().zip(force).zip(x) {
                                    *out = share * (force + weight * (rate * x));
                                }
                            } else {
                                for (out, &x) in out.iter_mut().zip(x) {
                                    *out = share * (*out + weight * (rate * x));
                                }
                            }
                        },
                    );
                }
                if row_of_m.is_empty() {
                    out.fill(T::zero());
                }
            }
        });
    }

    /// Every slope is k itself, so drift and repulsion share one right-hand side:
    /// N vᵢ = Σⱼ kᵢⱼ (f(zⱼ) − M(cⱼ)Yⱼ) + M(Σⱼ kᵢⱼ cⱼ) Yᵢ.
    fn one_slope<T: Real>(
        &self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        resolved: &Resolved<'_, T>,
        velocity: &mut Matrix<T>,
    ) {
        let (operator, count) = (at.operator, at.state.rows());
        let (dim, moved) = (operator.dim(), moving.len() * operator.dim());
        let width = moved + operator.width();
        let (points, rates) = (resolved.centred(), &resolved.slope_rates);

        let mut rhs = at.scratch.matrix(count, width);
        rhs.as_mut_slice()
            .par_chunks_mut(width)
            .enumerate()
            .with_min_len(rows_per_task(width))
            .for_each(|(j, row)| {
                let (force, sums) = row.split_at_mut(moved);
                let (c, x) = (at.coefficients.row(j), points.row(j));
                gather(at.drift.row(j), moving, dim, force);
                operator.apply_to_scaled(c, x, rates, moving, self.repulsion, -T::one(), force);
                sums.copy_from_slice(c);
            });
        let mut sums = at.scratch.matrix(count, width);
        resolved.sums(rhs.as_ref(), &mut sums);
        let share = T::of(1.0 / count as f64);
        velocity
            .as_mut_slice()
            .par_chunks_mut(moved)
            .enumerate()
            .with_min_len(rows_per_task(moved))
            .for_each(|(i, out)| {
                let (force, c) = sums.row(i).split_at(moved);
                out.copy_from_slice(force);
                let x = points.row(i);
                operator.apply_to_scaled(c, x, rates, moving, self.repulsion, T::one(), out);
                scale(share, out);
            });
    }

    /// The general case: k for the drift, and a slope of its own for every factor of the kernel.
    fn slope_per_factor<T: Real>(
        &self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        resolved: &Resolved<'_, T>,
        velocity: &mut Matrix<T>,
    ) {
        let (operator, count) = (at.operator, at.state.rows());
        let (dim, moved) = (operator.dim(), moving.len() * operator.dim());
        let width = moved + operator.width();
        let factors = resolved.factors();
        // The slope rates with those of all other factors set to zero: the gradient of one factor.
        let rates_of = |group: usize| -> Vec<T> {
            let blocks = resolved.group_of_block.iter().zip(&resolved.slope_rates);
            blocks.map(|(&own, &rate)| if own == Some(group) { rate } else { T::zero() }).collect()
        };
        let rates: Vec<Vec<T>> = (0..factors.len()).map(rates_of).collect();
        let mut drift = Matrix::zeros(count, moved);
        for j in 0..count {
            gather(at.drift.row(j), moving, dim, drift.row_mut(j));
        }
        let slopes: Vec<Matrix<T>> = rates
            .iter()
            .map(|rates| {
                let mut rhs = Matrix::zeros(count, width);
                for j in 0..count {
                    let (force, sums) = rhs.row_mut(j).split_at_mut(moved);
                    let (c, x) = (at.coefficients.row(j), resolved.centred().row(j));
                    operator.apply_to_scaled(c, x, rates, moving, self.repulsion, -T::one(), force);
                    sums.copy_from_slice(c);
                }
                rhs
            })
            .collect();
        let (values, slopes) = kernel_sums(&KernelSums {
            radial: self.kernel.radial,
            factors: &factors,
            values: drift.as_ref(),
            slopes: &slopes,
        });
        let share = T::of(1.0 / count as f64);
        for i in 0..count {
            let out = velocity.row_mut(i);
            out.copy_from_slice(values.row(i));
            for (rates, sums) in rates.iter().zip(&slopes) {
                let (force, c) = sums.row(i).split_at(moved);
                for (v, &force) in out.iter_mut().zip(force) {
                    *v += force;
                }
                let x = resolved.centred().row(i);
                operator.apply_to_scaled(c, x, rates, moving, self.repulsion, T::one(), out);
            }
            scale(share, out);
        }
    }
}

fn scale<T: Real>(factor: T, values: &mut [T]) {
    vectorised(
        #[inline(always)]
        || {
            for x in values {
                *x *= factor;
            }
        },
    );
}
