//! Kernels: how particles see each other.
//!
//! ```text
//! squared exponential     k = exp(−|z − z′|²/h)         ∇₂k = (2/h)(z − z′) k
//! inverse multiquadric    k = (1 + |z − z′|²/h)^(−1/2)  ∇₂k = (1/h)(z − z′) k³
//! ```

mod bandwidth;

pub use bandwidth::{Bandwidth, EXACT_PAIRS, SAMPLED_PAIRS};

use crate::engine::{KernelSums, kernel_sums};
use crate::{Error, MatRef, Matrix, Real, Result};

/// The radial profile k = φ(|z − z′|²/h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Radial {
    /// exp(−q).
    #[default]
    SquaredExponential,
    /// (1 + q)^(−1/2): heavier tails, so far particles still feel each other.
    InverseMultiquadric,
}

impl Radial {
    /// ∇₂k = factor/h · (z − z′) · slope, with this factor.
    pub(crate) fn slope_factor(self) -> f64 {
        match self {
            Self::SquaredExponential => 2.0,
            Self::InverseMultiquadric => 1.0,
        }
    }
}

/// Which coordinates of the state z = (θ, r, …) the kernel sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum View {
    /// The whole state, as in the paper.
    #[default]
    Joint,
    /// A product of one kernel per block, each with its own bandwidth.
    Product,
    /// θ alone; ∇k vanishes in the auxiliary blocks.
    Theta,
}

/// A kernel: profile, view and bandwidth rule. Data that any engine can interpret.
///
/// ```
/// use steinflow::kernel::{Bandwidth, Kernel, View};
/// let kernel = Kernel { view: View::Theta, bandwidth: Bandwidth::fixed(1.1), ..Kernel::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Kernel {
    /// The profile.
    pub radial: Radial,
    /// What it sees.
    pub view: View,
    /// How its width is chosen, anew at every velocity.
    pub bandwidth: Bandwidth,
}

/// A kernel at one instant: particles scaled so that every bandwidth is 1.
#[derive(Clone, Debug)]
pub(crate) struct Resolved<T> {
    /// The profile.
    radial: Radial,
    /// The bandwidth of every group of blocks.
    pub bandwidths: Vec<f64>,
    /// Centred particles divided by √h, one matrix per factor of the kernel.
    pub groups: Vec<Matrix<T>>,
    /// Y, shaped as the state, with ∇₂k(zᵢ, zⱼ) = slopeᵢⱼ (Yᵢ − Yⱼ); zero where the kernel is blind.
    pub gradient_points: Matrix<T>,
    /// The factor of the kernel that sees a block, if one does.
    pub group_of_block: Vec<Option<usize>>,
}

impl Kernel {
    /// Checks the bandwidth against the number of blocks.
    pub fn validate(&self, blocks: usize) -> Result<()> {
        if let Bandwidth::Fixed(values) = &self.bandwidth {
            let groups = self.group_of_block(blocks).into_iter().flatten().max().unwrap_or(0) + 1;
            if values.len() != 1 && values.len() != groups {
                let remedy = if groups == 1 {
                    "this kernel has one bandwidth; give one value".to_owned()
                } else {
                    format!("give one value, or {groups}: one for each block the kernel sees")
                };
                return Err(Error::setting("bandwidth", format!("{values:?}"), remedy));
            }
            if let Some(h) = values.iter().find(|h| !(**h > 0.0) || !h.is_finite()) {
                return Err(Error::setting("bandwidth", h, "it must be positive and finite"));
            }
        }
        Ok(())
    }

    fn group_of_block(&self, blocks: usize) -> Vec<Option<usize>> {
        (0..blocks)
            .map(|block| match self.view {
                View::Joint => Some(0),
                View::Product => Some(block),
                View::Theta => (block == 0).then_some(0),
            })
            .collect()
    }

    /// Chooses the bandwidths for these particles and scales them.
    ///
    /// Particles are centred first: velocities do not change, and in `f32` far-off particles keep
    /// their differences.
    pub(crate) fn resolve<T: Real>(&self, state: MatRef<'_, T>, dim: usize) -> Resolved<T> {
        let (count, blocks) = (state.rows(), state.cols() / dim);
        let group_of_block = self.group_of_block(blocks);
        let factors = group_of_block.iter().flatten().max().map_or(0, |last| last + 1);
        let mean = column_means(state);

        let columns_of = |group: usize| -> Vec<usize> {
            (0..state.cols()).filter(|column| group_of_block[column / dim] == Some(group)).collect()
        };
        let mut groups: Vec<Matrix<T>> = (0..factors)
            .map(|group| {
                let columns = columns_of(group);
                let mut points = Matrix::zeros(count, columns.len());
                for i in 0..count {
                    for (out, &column) in points.row_mut(i).iter_mut().zip(&columns) {
                        *out = state.row(i)[column] - mean[column];
                    }
                }
                points
            })
            .collect();
        let bandwidths: Vec<f64> = groups
            .iter()
            .enumerate()
            .map(|(group, points)| self.bandwidth.choose(points.as_ref(), group))
            .collect();

        let mut gradient_points = Matrix::zeros(count, state.cols());
        for (column, &mean) in mean.iter().enumerate() {
            if let Some(group) = group_of_block[column / dim] {
                let factor = T::of(self.radial.slope_factor() / bandwidths[group]);
                for i in 0..count {
                    gradient_points.row_mut(i)[column] = (state.row(i)[column] - mean) * factor;
                }
            }
        }
        for (points, h) in groups.iter_mut().zip(&bandwidths) {
            let scale = T::of(h.sqrt().recip());
            for x in points.as_mut_slice() {
                *x *= scale;
            }
        }
        // A product of squared exponentials is one squared exponential of all scaled coordinates.
        if self.radial == Radial::SquaredExponential && groups.len() > 1 {
            groups = vec![side_by_side(&groups)];
        }
        Resolved { radial: self.radial, bandwidths, groups, gradient_points, group_of_block }
    }
}

impl<T: Real> Resolved<T> {
    /// Σⱼ kᵢⱼ for every particle.
    pub(crate) fn sums_of_kernel(&self) -> Vec<T> {
        let ones = Matrix::from_fn(self.gradient_points.rows(), 1, |_, _| T::one());
        self.products(ones.as_ref(), &[]).0.as_slice().to_vec()
    }

    /// Σⱼ wⱼ ∇₂k(zᵢ, zⱼ) for every particle and several weights w, shaped as the state.
    ///
    /// As ∇₂kᵢⱼ = sᵢⱼ (Yᵢ − Yⱼ), each is (Σⱼ sᵢⱼ wⱼ) Yᵢ − Σⱼ sᵢⱼ wⱼ Yⱼ.
    pub(crate) fn sums_of_gradient<const W: usize>(&self, weights: [&[T]; W]) -> [Matrix<T>; W] {
        let points = &self.gradient_points;
        let (count, size) = (points.rows(), points.cols());
        let dim = size / self.group_of_block.len();
        // For every weight: the weight, then the weighted Y.
        let width = W * (1 + size);
        let rhs = Matrix::from_fn(count, width, |j, column| {
            let (w, rest) = (column / (1 + size), column % (1 + size));
            if rest == 0 { weights[w][j] } else { weights[w][j] * points.row(j)[rest - 1] }
        });
        let sums = match self.radial {
            Radial::SquaredExponential => vec![self.products(rhs.as_ref(), &[]).0],
            Radial::InverseMultiquadric => {
                let nothing = Matrix::zeros(count, 0);
                self.products(nothing.as_ref(), &vec![rhs; self.groups.len()]).1
            }
        };
        std::array::from_fn(|w| {
            Matrix::from_fn(count, size, |i, j| {
                let Some(group) = self.group_of_block[j / dim] else { return T::zero() };
                // One slope serves all factors of a squared exponential.
                let row = &sums[group.min(sums.len() - 1)].row(i)[w * (1 + size)..];
                row[0] * points.row(i)[j] - row[1 + j]
            })
        })
    }

    fn products(&self, values: MatRef<'_, T>, slopes: &[Matrix<T>]) -> (Matrix<T>, Vec<Matrix<T>>) {
        kernel_sums(&KernelSums { radial: self.radial, groups: &self.groups, values, slopes })
    }
}

fn column_means<T: Real>(state: MatRef<'_, T>) -> Vec<T> {
    let mut sums = vec![0.0; state.cols()];
    for i in 0..state.rows() {
        for (sum, x) in sums.iter_mut().zip(state.row(i)) {
            *sum += x.as_f64();
        }
    }
    sums.into_iter().map(|sum| T::of(sum / state.rows() as f64)).collect()
}

fn side_by_side<T: Real>(parts: &[Matrix<T>]) -> Matrix<T> {
    let rows = parts[0].rows();
    let data: Vec<T> =
        (0..rows).flat_map(|i| parts.iter().flat_map(move |part| part.row(i).to_vec())).collect();
    let cols = parts.iter().map(Matrix::cols).sum();
    Matrix::from_vec(data, rows, cols).expect("rows of all parts, side by side")
}
