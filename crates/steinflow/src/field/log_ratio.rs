//! Fields along M ∇log(π/ρ), with the particles' own ∇log ρ estimated by a kernel.
//!
//! ```text
//! vᵢ = M(zᵢ) [∇log π(zᵢ) + uᵢ],   u ≈ −∇log ρ;    starred: M∇log π + ∇·C + A u
//!
//! Blob    uᵢ = Σⱼ ∇₂kᵢⱼ (1/κᵢ + 1/κⱼ),  κᵢ = Σₗ kᵢₗ      (Chen et al. 2018, Carrillo et al. 2019)
//! GFSD    uᵢ = Σⱼ ∇₂kᵢⱼ / κᵢ: a kernel density estimate  (Liu et al. 2019)
//! GFSF    u = K⁻¹B,  Bᵢ = Σⱼ ∇₂kᵢⱼ                        (Liu et al. 2019)
//! Stein gradient estimator  u = (K + ηI)⁻¹B              (Li and Turner 2018)
//! ```
//!
//! as ∇₁k = −∇₂k for a radial kernel. All but the last two are kernel sums; those solve one N×N
//! system per velocity.

use faer::linalg::solvers::Solve as _;
use rayon::prelude::*;

use super::{Field, at_least_two};
use crate::dynamics::{Evaluated, Terms};
use crate::engine::{kernel_matrix, rows_per_task};
use crate::kernel::Kernel;
use crate::{Error, Matrix, Real, Result};

/// How −∇log ρ is estimated at the particles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimator {
    /// Blob.
    Blob,
    /// Kernel density estimate (GFSD).
    KernelDensity,
    /// Stein gradient estimator with regulariser η; η = 0 is GFSF. Solves an N×N system, and
    /// refuses when its two matrices of f64 would take more than `memory_limit` bytes.
    SteinGradient {
        /// η.
        regulariser: f64,
        /// In bytes.
        memory_limit: u64,
    },
}

impl Estimator {
    /// What the N×N solve takes, in bytes; 0 where there is none.
    pub fn bytes(&self, particles: usize) -> u64 {
        match self {
            Self::Blob | Self::KernelDensity => 0,
            // K and its factor.
            Self::SteinGradient { .. } => 2 * 8 * (particles as u64).saturating_pow(2),
        }
    }
}

/// v = M(∇log π + u).
#[derive(Clone, Debug)]
pub struct LogRatio {
    kernel: Kernel,
    estimator: Estimator,
    repulsion: Terms,
    bandwidths: Vec<f64>,
}

impl LogRatio {
    /// The field with an estimator of −∇log ρ.
    pub fn new(kernel: Kernel, estimator: Estimator) -> Self {
        Self { kernel, estimator, repulsion: Terms::All, bandwidths: Vec::new() }
    }

    /// The starred variant: repulsion by A alone. Its particles never stop; their law does.
    pub fn starred(kernel: Kernel, estimator: Estimator) -> Self {
        Self { repulsion: Terms::Diffusion, ..Self::new(kernel, estimator) }
    }

    /// Adds u to the given blocks of `out`, which is shaped as the state.
    fn add_estimate<T: Real>(
        &mut self,
        at: &Evaluated<'_, T>,
        blocks: &[usize],
        out: &mut Matrix<T>,
    ) -> Result<()> {
        let scratch = at.scratch;
        let resolved = self.kernel.resolve(at);
        let shares =
            || -> Vec<T> { resolved.sums_of_kernel(scratch).into_iter().map(T::recip).collect() };
        match self.estimator {
            Estimator::Blob => {
                let shares = shares();
                resolved.add_sums_of_gradient(Some(&shares), Some(&shares), blocks, scratch, out);
            }
            Estimator::KernelDensity => {
                resolved.add_sums_of_gradient(Some(&shares()), None, blocks, scratch, out);
            }
            Estimator::SteinGradient { regulariser, .. } => {
                let count = at.state.rows();
                let mut sums = Matrix::zeros(count, at.state.cols());
                let ones = vec![T::one(); count];
                resolved.add_sums_of_gradient(Some(&ones), None, blocks, scratch, &mut sums);
                let mut matrix = kernel_matrix(self.kernel.radial, &resolved.factors());
                for i in 0..count {
                    matrix.row_mut(i)[i] += regulariser;
                }
                let estimate = solve(&matrix, &sums, regulariser)?;
                for (u, &more) in out.as_mut_slice().iter_mut().zip(estimate.as_slice()) {
                    *u += more;
                }
            }
        }
        self.bandwidths.clone_from(&resolved.bandwidths);
        Ok(())
    }
}

/// Solves K x = rhs for a positive definite K.
///
/// Kernel matrices of distinct particles are positive definite, but soon singular to working
/// precision; then 1e-10 is added to the diagonal. Particles that coincide are an error: K has no
/// inverse at all.
fn solve<T: Real>(matrix: &Matrix<f64>, rhs: &Matrix<T>, regulariser: f64) -> Result<Matrix<T>> {
    const SMALLEST_PIVOT: f64 = 1e-6;
    const JITTER: f64 = 1e-10;
    let (n, cols) = (rhs.rows(), rhs.cols());
    let coincide = (0..n).any(|i| matrix.row(i)[..i].iter().any(|&k| k >= 1.0));
    if coincide && regulariser == 0.0 {
        return Err(Error::SingularKernel { particles: n, regulariser });
    }
    let factor = |jitter: f64| {
        let shifted = |i: usize, j: usize| matrix.row(i)[j] + if i == j { jitter } else { 0.0 };
        faer::Mat::from_fn(n, n, shifted).llt(faer::Side::Lower).ok()
    };
    let accurate = factor(0.0)
        .filter(|factor| (0..n).all(|i| factor.L()[(i, i)] > SMALLEST_PIVOT))
        .or_else(|| factor(JITTER));
    let factor = accurate.ok_or(Error::SingularKernel { particles: n, regulariser })?;
    let solution = factor.solve(faer::Mat::from_fn(n, cols, |i, j| rhs.row(i)[j].as_f64()));
    Ok(Matrix::from_fn(n, cols, |i, j| T::of(solution[(i, j)])))
}

impl<T: Real> Field<T> for LogRatio {
    fn validate(&self, blocks: usize, particles: usize) -> Result<()> {
        at_least_two(particles)?;
        if self.kernel.affine > 0.0 {
            let remedy = "a density is not estimated with an affine part; leave it out, or take a Stein field";
            return Err(Error::setting("affine", self.kernel.affine, remedy));
        }
        if let Estimator::SteinGradient { regulariser, memory_limit } = self.estimator {
            if !(regulariser >= 0.0) || !regulariser.is_finite() {
                let remedy = "it must be zero or positive, and finite";
                return Err(Error::setting("regulariser", regulariser, remedy));
            }
            let bytes = self.estimator.bytes(particles);
            if bytes > memory_limit {
                return Err(Error::TooMuchMemory { particles, bytes, limit: memory_limit });
            }
        }
        self.kernel.validate(blocks)
    }

    fn velocity(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        velocity: &mut Matrix<T>,
    ) -> Result<()> {
        let (operator, repulsion) = (at.operator, self.repulsion);
        let (dim, moved) = (operator.dim(), moving.len() * operator.dim());
        let size = at.state.cols();
        // What repels: with ∇log π where all of M acts on the sum of both.
        let mut force = at.scratch.matrix(at.state.rows(), size);
        let blocks = operator.blocks_read(moving, repulsion);
        force.as_mut_slice().fill(T::zero());
        if repulsion == Terms::All {
            let rows = force.as_mut_slice().par_chunks_mut(size).enumerate();
            rows.with_min_len(rows_per_task(size)).for_each(|(i, force)| {
                for &block in &blocks {
                    at.write_gradient(i, block, &mut force[block * dim..(block + 1) * dim]);
                }
            });
        }
        self.add_estimate(at, &blocks, &mut force)?;
        velocity
            .as_mut_slice()
            .par_chunks_mut(moved)
            .zip(force.as_slice().par_chunks(size))
            .enumerate()
            .with_min_len(rows_per_task(size))
            .for_each(|(i, (out, force))| {
                if repulsion == Terms::All {
                    out.fill(T::zero());
                } else {
                    at.write_flow(i, moving, out);
                }
                operator.apply(at.coefficients.row(i), force, moving, repulsion, T::one(), out);
            });
        Ok(())
    }

    fn bandwidths(&self) -> &[f64] {
        &self.bandwidths
    }
}
