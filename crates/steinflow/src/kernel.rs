//! Kernels: how particles see each other.
//!
//! ```text
//! squared exponential     k = exp(−|z − z′|²/h)         ∇₂k = (2/h)(z − z′) k
//! inverse multiquadric    k = (1 + |z − z′|²/h)^(−1/2)  ∇₂k = (1/h)(z − z′) k³
//! affine part, added      c(1 + z·z′)                   ∇₂k = c z
//! ```

mod affine;
mod bandwidth;
mod meetings;
mod select;

pub(crate) use affine::Affine;
pub use bandwidth::{Bandwidth, EXACT_PAIRS, SAMPLED_PAIRS};
pub(crate) use meetings::{Interactions, Meetings, Standing};

use std::ops::Range;
use std::sync::OnceLock;

use crate::dynamics::Evaluated;
use crate::engine::{
    Borrowed, BorrowedCloud, Factor, KernelSums, Scratch, centre, kernel_matrix, known_kernel,
    vectorised,
};
use crate::team::Team;
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
    /// All profiles.
    pub const ALL: [Self; 2] = [Self::SquaredExponential, Self::InverseMultiquadric];

    /// The names of the profiles.
    pub const NAMES: [&str; 2] = ["se", "imq"];

    /// Reads a profile's name.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "se" => Ok(Self::SquaredExponential),
            "imq" => Ok(Self::InverseMultiquadric),
            other => Err(Error::unknown("kernel", other, Self::NAMES)),
        }
    }

    /// φ(q).
    pub fn value(self, q: f64) -> f64 {
        match self {
            Self::SquaredExponential => (-q).exp(),
            Self::InverseMultiquadric => (1.0 + q).sqrt().recip(),
        }
    }

    /// −2φ′(q)/φ(q), so that ∇₂k = k · ratio/h · (z − z′).
    pub fn slope_ratio(self, q: f64) -> f64 {
        match self {
            Self::SquaredExponential => 2.0,
            Self::InverseMultiquadric => (1.0 + q).recip(),
        }
    }

    /// Whether the ratio is the same for all q: then sums with ∇k are sums with k itself.
    pub(crate) fn slope_is_value(self) -> bool {
        match self {
            Self::SquaredExponential => true,
            Self::InverseMultiquadric => false,
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

impl View {
    /// The names of the views.
    pub const NAMES: [&str; 3] = ["joint", "product", "theta"];

    /// Reads a view's name.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "joint" => Ok(Self::Joint),
            "product" => Ok(Self::Product),
            "theta" => Ok(Self::Theta),
            other => Err(Error::unknown("kernel view", other, Self::NAMES)),
        }
    }
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
    /// c of the affine part c(1 + x·y) over the coordinates that it sees; 0 for none. Made for coordinates
    /// in which the target has mean 0 and unit covariance, roughly.
    pub affine: f64,
}

/// A kernel at one instant: centred particles and the bandwidths chosen for them.
#[derive(Debug)]
pub(crate) struct Resolved<'a, T: Real> {
    radial: Radial,
    affine: Option<Affine<'a, T>>,
    /// The bandwidth of every factor.
    pub bandwidths: Vec<f64>,
    state: MatRef<'a, T>,
    cloud: BorrowedCloud<'a, T>,
    /// The centred particles, once somebody asks, where the cloud does not keep them.
    centred: OnceLock<Borrowed<'a, T>>,
    scratch: &'a Scratch<T>,
    /// ∇₂k(zᵢ, zⱼ) = slopeᵢⱼ · rate · (zᵢ − zⱼ) in each block; 0 where the kernel is blind.
    slope_rates: Vec<T>,
    /// The factor of the kernel that sees a block, if one does.
    group_of_block: Vec<Option<usize>>,
    /// The columns that every factor sees, and the squared distances where they are kept.
    groups: Vec<(Range<usize>, Option<Borrowed<'a, T>>)>,
    /// Who meets whom, where particles do not all meet.
    meetings: Option<Meetings>,
    team: &'a dyn Team<T>,
}

impl Kernel {
    /// Checks the bandwidth against the number of blocks, and the affine part.
    pub fn validate(&self, blocks: usize) -> Result<()> {
        if !(self.affine >= 0.0) || !self.affine.is_finite() {
            let remedy = "the affine part must be zero or positive, and finite";
            return Err(Error::setting("affine", self.affine, remedy));
        }
        if let Bandwidth::White { factor } = self.bandwidth
            && !(factor > 0.0 && factor.is_finite())
        {
            let remedy = "the factor of the rule `white` must be positive and finite";
            return Err(Error::setting("bandwidth", format!("white:{factor}"), remedy));
        }
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

    /// Centres the particles and chooses the bandwidths for them.
    pub(crate) fn resolve<'a, T: Real>(&self, at: &Evaluated<'a, T>) -> Resolved<'a, T> {
        let (state, dim, scratch) = (at.state, at.operator.dim(), at.scratch);
        let (count, blocks) = (state.rows(), state.cols() / dim);
        let group_of_block = self.group_of_block(blocks);
        let mut cloud = scratch.cloud(count, blocks, dim);
        cloud.centre(state, at.versions);

        let last = group_of_block.iter().flatten().max().copied();
        let mut groups = Vec::with_capacity(blocks);
        let mut bandwidths = Vec::with_capacity(blocks);
        for group in 0..last.map_or(0, |last| last + 1) {
            // The blocks of a factor are neighbours.
            let first = group_of_block.iter().position(|&g| g == Some(group)).unwrap_or(0);
            let seen = group_of_block.iter().filter(|&&g| g == Some(group)).count();
            let columns = first * dim..(first + seen) * dim;
            let squares = cloud.keeps_squares().then(|| {
                let mut squares = scratch.matrix(count, count);
                cloud.write_squares(state, first..first + seen, &mut squares);
                squares
            });
            // Where the cloud keeps no points it keeps distances, and points are only counted.
            let points = cloud.centred().map_or(state, Matrix::as_ref);
            let factor = Factor::new(points, T::one()).of(columns.clone());
            let known = squares.as_ref().map(|squares| squares.as_ref());
            let mut middle = cloud.middle(group);
            bandwidths.push(self.bandwidth.choose(&factor, known, group, &mut middle));
            cloud.keep_middle(group, middle);
            groups.push((columns, squares));
        }
        let slope_rate = |group: &Option<usize>| {
            group.map_or(T::zero(), |g| T::of(self.radial.slope_ratio(0.0) / bandwidths[g]))
        };
        let slope_rates = group_of_block.iter().map(slope_rate).collect();
        let seen = group_of_block.iter().flatten().count() * dim;
        let strength = T::of(self.affine);
        let affine = (self.affine > 0.0).then_some(Affine { strength, points: state, seen });
        Resolved {
            radial: self.radial,
            affine,
            bandwidths,
            state,
            cloud,
            centred: OnceLock::new(),
            scratch,
            slope_rates,
            group_of_block,
            groups,
            meetings: None,
            team: at.team,
        }
    }
}

impl<T: Real> Resolved<'_, T> {
    /// The particles around their mean, shaped as the state.
    pub(crate) fn centred(&self) -> &Matrix<T> {
        let made = || {
            let (rows, cols) = (self.state.rows(), self.state.cols());
            let mut centred = self.scratch.matrix(rows, cols);
            centre(self.state, 0..cols, &mut centred);
            centred
        };
        self.cloud.centred().unwrap_or_else(|| self.centred.get_or_init(made))
    }

    /// K as a matrix and how it repels in each block, where distances are known and slopes are K itself.
    pub(crate) fn known(&self) -> Option<(Vec<T>, &[T])> {
        let squares = self.groups.iter().map(|(_, squares)| Some(squares.as_ref()?.as_ref()));
        let squares = squares.collect::<Option<Vec<_>>>()?;
        let rates: Vec<T> = self.bandwidths.iter().map(|h| T::of(h.recip())).collect();
        let is_plain = self.slope_is_value() && self.affine.is_none() && self.meetings.is_none();
        is_plain.then(|| (known_kernel(&rates, &squares, true), &self.slope_rates[..]))
    }

    /// From now on particles meet as drawn here; an affine part still sees all of them.
    pub(crate) fn meet(&mut self, meetings: Option<Meetings>) {
        self.meetings = meetings;
    }

    /// How often every particle meets itself, where that is not once.
    pub(crate) fn own_weights(&self) -> Option<Vec<T>> {
        self.meetings.as_ref().map(Meetings::own_weights)
    }

    /// The factors of the kernel, as the engine wants them.
    pub(crate) fn factors(&self) -> Vec<Factor<'_, T>> {
        let groups = self.groups.iter().zip(&self.bandwidths);
        groups
            .map(|((columns, squares), h)| {
                let rate = T::of(h.recip());
                let factor = Factor::new(self.centred().as_ref(), rate).of(columns.clone());
                match squares {
                    Some(squares) => factor.with_squares(squares.as_ref()),
                    None => factor,
                }
            })
            .collect()
    }

    /// Whether sums with ∇k are sums with k.
    pub(crate) fn slope_is_value(&self) -> bool {
        self.radial.slope_is_value()
    }

    /// Its affine part.
    pub(crate) fn affine(&self) -> Option<Affine<'_, T>> {
        self.affine
    }

    /// K of some particles, the affine part included: for the few fields that factor it.
    pub(crate) fn matrix_of(&self, members: &[usize]) -> Matrix<f64> {
        let factors = self.factors();
        let points: Vec<_> = factors.iter().map(|factor| factor.points_of(members)).collect();
        let factors = points.iter().zip(&factors);
        let factors: Vec<Factor<'_, T>> =
            factors.map(|(points, factor)| Factor::new(points.as_ref(), factor.rate())).collect();
        let mut matrix = kernel_matrix(self.radial, &factors);
        if let Some(affine) = self.affine {
            for (row, &i) in members.iter().enumerate() {
                for (entry, &j) in matrix.row_mut(row).iter_mut().zip(members) {
                    *entry += affine.value(i, j).as_f64();
                }
            }
        }
        matrix
    }

    /// λ, the largest eigenvalue of K/N, the affine part included.
    ///
    /// By power iteration from (1, …, 1), which K of close particles hardly turns. It is a unit of time, so
    /// a few digits are enough.
    pub(crate) fn largest_eigenvalue(&self) -> f64 {
        const MOST_ROUNDS: usize = 200;
        const TOLERANCE: f64 = 1e-6;
        let count = self.state.rows();
        let mut vector = Matrix::from_fn(count, 1, |_, _| T::of(1.0 / (count as f64).sqrt()));
        let (mut image, mut eigenvalue) = (Matrix::zeros(count, 1), 0.0);
        for _ in 0..MOST_ROUNDS {
            self.sums(vector.as_ref(), &mut image);
            if let Some(affine) = self.affine {
                affine.add_sums(vector.as_ref(), &mut image);
            }
            let norm = image.as_slice().iter().map(|x| x.as_f64().powi(2)).sum::<f64>().sqrt();
            for (v, &x) in vector.as_mut_slice().iter_mut().zip(image.as_slice()) {
                *v = T::of(x.as_f64() / norm);
            }
            let before = std::mem::replace(&mut eigenvalue, norm);
            if (eigenvalue - before).abs() <= TOLERANCE * eigenvalue {
                break;
            }
        }
        eigenvalue / count as f64
    }

    /// For every slope that differs from the others, its rate in each block: all of them where slopes are
    /// k itself, else those of one factor at a time.
    pub(crate) fn slopes(&self) -> Vec<Vec<T>> {
        if self.radial.slope_is_value() {
            return vec![self.slope_rates.clone()];
        }
        let of_group = |group: usize| {
            let blocks = self.group_of_block.iter().zip(&self.slope_rates);
            blocks.map(|(&own, &rate)| if own == Some(group) { rate } else { T::zero() }).collect()
        };
        (0..self.groups.len()).map(of_group).collect()
    }

    /// Writes K·R₀, and Sᵍ·Rᵍ of every further right-hand side.
    pub(crate) fn sums_with_slopes(&self, rhs: &[MatRef<'_, T>], out: &mut [&mut Matrix<T>]) {
        let Some((&values, slopes)) = rhs.split_first() else { return };
        let factors = self.factors();
        let sums = KernelSums { radial: self.radial, factors: &factors, values, slopes };
        match &self.meetings {
            Some(meetings) => meetings.write_sums(&sums, self.team, out),
            None => self.team.kernel_sums(&sums, out),
        }
    }

    /// Writes K·R.
    pub(crate) fn sums(&self, values: MatRef<'_, T>, out: &mut Matrix<T>) {
        self.sums_with_slopes(&[values], &mut [out]);
    }

    /// Σⱼ kᵢⱼ for every particle.
    pub(crate) fn sums_of_kernel(&self, scratch: &Scratch<T>) -> Vec<T> {
        let count = self.state.rows();
        let (mut ones, mut sums) = (scratch.matrix(count, 1), scratch.matrix(count, 1));
        ones.as_mut_slice().fill(T::one());
        self.sums(ones.as_ref(), &mut sums);
        sums.as_slice().to_vec()
    }

    /// Adds Σⱼ (aᵢ + bⱼ) ∇₂k(zᵢ, zⱼ) of every particle to the given blocks of `out`, which is shaped
    /// as the state; `own` is a and `other` b.
    ///
    /// As ∇₂kᵢⱼ = sᵢⱼ (Yᵢ − Yⱼ) with Y the scaled particles, the sum is
    /// (aᵢ Sᵢ + Bᵢ) Yᵢ − aᵢ Σⱼ sᵢⱼ Yⱼ − Σⱼ sᵢⱼ bⱼ Yⱼ with S = Σⱼ sᵢⱼ and B = Σⱼ sᵢⱼ bⱼ.
    pub(crate) fn add_sums_of_gradient(
        &self,
        own: Option<&[T]>,
        other: Option<&[T]>,
        blocks: &[usize],
        scratch: &Scratch<T>,
        out: &mut Matrix<T>,
    ) {
        let count = self.state.rows();
        let dim = self.state.cols() / self.group_of_block.len();
        for (group, _) in self.groups.iter().enumerate() {
            let seen: Vec<usize> = blocks
                .iter()
                .copied()
                .filter(|&block| self.group_of_block[block] == Some(group))
                .collect();
            if seen.is_empty() {
                continue;
            }
            // For every kind of weight: the weight, then the weighted particles.
            let part = 1 + seen.len() * dim;
            let kinds = [own.map(|_| None), other.map(Some)];
            let width = part * kinds.iter().flatten().count();
            let (mut rhs, mut sums) = (scratch.matrix(count, width), scratch.matrix(count, width));
            for j in 0..count {
                let point = self.centred().row(j);
                let parts = rhs.row_mut(j).chunks_exact_mut(part);
                for (weights, part) in kinds.iter().flatten().zip(parts) {
                    let weight = weights.map_or(T::one(), |weights| weights[j]);
                    part[0] = weight;
                    for (&block, to) in seen.iter().zip(part[1..].chunks_exact_mut(dim)) {
                        let from = &point[block * dim..(block + 1) * dim];
                        vectorised(
                            #[inline(always)]
                            || {
                                for (to, &from) in to.iter_mut().zip(from) {
                                    *to = weight * from;
                                }
                            },
                        );
                    }
                }
            }
            if self.radial.slope_is_value() {
                self.sums(rhs.as_ref(), &mut sums);
            } else {
                // The slope of this factor alone.
                let nothing = Matrix::zeros(count, 0);
                let mut right_hand_sides = vec![nothing.as_ref(); 1 + self.groups.len()];
                right_hand_sides[1 + group] = rhs.as_ref();
                let mut nothings = vec![nothing.clone(); self.groups.len()];
                let mut outs: Vec<&mut Matrix<T>> = nothings.iter_mut().collect();
                outs.insert(1 + group, &mut sums);
                self.sums_with_slopes(&right_hand_sides, &mut outs);
            }
            for i in 0..count {
                let point = self.centred().row(i);
                let parts = sums.row(i).chunks_exact(part);
                for (weights, part) in kinds.iter().flatten().zip(parts) {
                    // The own weight stands outside the sum.
                    let outside = match (weights, own) {
                        (None, Some(own)) => own[i],
                        _ => T::one(),
                    };
                    for (&block, sums) in seen.iter().zip(part[1..].chunks_exact(dim)) {
                        let scale = outside * self.slope_rates[block];
                        let columns = block * dim..(block + 1) * dim;
                        let out = &mut out.row_mut(i)[columns.clone()];
                        let (point, total) = (&point[columns], part[0]);
                        vectorised(
                            #[inline(always)]
                            || {
                                for ((u, &y), &sum) in out.iter_mut().zip(point).zip(sums) {
                                    *u += scale * (total * y - sum);
                                }
                            },
                        );
                    }
                }
            }
        }
    }
}
