//! Metrics G⁻¹(θ) for the Riemannian dynamics: scalar, diagonal or full.

mod energy;

pub use energy::{EnergyMetric, EnergySign};

use super::{Block, Point};
use crate::Real;
use crate::linalg::{spectral, symmetric_eigen};

/// The inverse metric G⁻¹(θ): symmetric and, for dynamics that take its square root, positive
/// definite.
pub trait Metric<T: Real = f64>: Send + Sync {
    /// Whether G⁻¹ is g·I, a diagonal, or a full matrix.
    fn shape(&self) -> Shape;

    /// Writes G⁻¹ into `values` and its derivatives into `derivatives`, which is empty when they
    /// are not wanted.
    ///
    /// | shape | `values` | `derivatives` |
    /// |---|---|---|
    /// | scalar | g | ∂g/∂θₖ for every k |
    /// | diagonal | gᵢ | ∂gᵢ/∂θᵢ: only these enter a divergence |
    /// | full | the matrix in row order | ∂G⁻¹/∂θₖ, matrix after matrix |
    fn evaluate(&self, at: &Point<'_, T>, values: &mut [T], derivatives: &mut [T]);

    /// The same as text, where g at a coordinate is known from θ there, log π(θ) and the score there: then a device
    /// needs no help from the host. A function of CUDA C++,
    ///
    /// ```text
    /// __device__ real metric(real theta, real log_density, real score, real *slope)
    /// ```
    ///
    /// returns gᵢ, of a scalar metric g, and sets its derivative with respect to the coordinate.
    fn device_source(&self) -> Option<String> {
        None
    }
}

/// The shape of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// g(θ)·I.
    Scalar,
    /// diag(g(θ)).
    Diagonal,
    /// A full matrix; for small dimensions.
    Full,
}

impl Shape {
    /// How many numbers make G⁻¹.
    pub fn values(self, dim: usize) -> usize {
        match self {
            Self::Scalar => 1,
            Self::Diagonal => dim,
            Self::Full => dim * dim,
        }
    }

    /// How many numbers make its derivatives.
    pub fn derivatives(self, dim: usize) -> usize {
        match self {
            Self::Scalar | Self::Diagonal => dim,
            Self::Full => dim * dim * dim,
        }
    }

    /// The block whose coefficients begin at `first`.
    pub fn block(self, first: usize) -> Block {
        match self {
            Self::Scalar => Block::ScalarCoefficient(first),
            Self::Diagonal => Block::DiagonalCoefficients(first),
            Self::Full => Block::FullCoefficients(first),
        }
    }

    /// Adds the divergence by rows, Σⱼ ∂Gᵢⱼ/∂θⱼ, to the first `dim` entries of `out`.
    pub(super) fn divergence<T: Real>(self, derivatives: &[T], out: &mut [T]) {
        if self == Self::Full {
            let dim = (derivatives.len() as f64).cbrt().round() as usize;
            for i in 0..dim {
                for j in 0..dim {
                    out[i] += derivatives[(j * dim + i) * dim + j];
                }
            }
        } else {
            for (out, &slope) in out.iter_mut().zip(derivatives) {
                *out += slope;
            }
        }
    }
}

/// The square root of a metric and, where `slopes` is not empty, its derivatives.
pub(super) fn square_root<T: Real>(
    shape: Shape,
    dim: usize,
    values: &[T],
    slopes: &[T],
    root: &mut [T],
    root_slopes: &mut [T],
) {
    match shape {
        Shape::Scalar | Shape::Diagonal => {
            for (root, value) in root.iter_mut().zip(values) {
                *root = value.sqrt();
            }
            for (k, (out, &slope)) in root_slopes.iter_mut().zip(slopes).enumerate() {
                let root = if shape == Shape::Scalar { root[0] } else { root[k] };
                *out = slope / (root + root);
            }
        }
        Shape::Full => full_square_root(dim, values, slopes, root, root_slopes),
    }
}

/// With P = VΛVᵀ and S = √P, differentiating S² = P gives (VᵀS′V)ₐᵦ = (VᵀP′V)ₐᵦ/(√λₐ + √λᵦ).
fn full_square_root<T: Real>(
    dim: usize,
    values: &[T],
    slopes: &[T],
    root: &mut [T],
    root_slopes: &mut [T],
) {
    let matrix: Vec<f64> = values.iter().map(|x| x.as_f64()).collect();
    let (eigenvalues, v) = symmetric_eigen(&matrix, dim);
    for (out, x) in root.iter_mut().zip(spectral(&eigenvalues, &v, |x| x.max(0.0).sqrt())) {
        *out = T::of(x);
    }
    let roots: Vec<f64> = eigenvalues.iter().map(|x| x.max(0.0).sqrt()).collect();
    let square = dim * dim;
    for (slope, out) in slopes.chunks_exact(square).zip(root_slopes.chunks_exact_mut(square)) {
        let mut rotated = vec![0.0; square];
        for a in 0..dim {
            for b in 0..dim {
                let mut sum = 0.0;
                for i in 0..dim {
                    for j in 0..dim {
                        sum += v[i * dim + a] * slope[i * dim + j].as_f64() * v[j * dim + b];
                    }
                }
                rotated[a * dim + b] = sum / (roots[a] + roots[b]);
            }
        }
        for i in 0..dim {
            for j in 0..dim {
                let mut sum = 0.0;
                for a in 0..dim {
                    for b in 0..dim {
                        sum += v[i * dim + a] * rotated[a * dim + b] * v[j * dim + b];
                    }
                }
                out[i * dim + j] = T::of(sum);
            }
        }
    }
}
