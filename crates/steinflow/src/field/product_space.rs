//! GSVGD with the noise that makes it exact for every number of particles.
//!
//! On N particles at once, GSVGD is the drift of a dynamics with M̃ᵢⱼ = kᵢⱼ M(zⱼ)/N (the paper's
//! supplement), where a C that varies is [symmetrised](super::CurlForm). What is missing is the noise √(2Ã)
//! of its symmetric part,
//!
//! ```text
//! Ãᵢⱼ = kᵢⱼ [A(zᵢ) + A(zⱼ)] / (2N),
//! ```
//!
//! and with it π⊗…⊗π is invariant **for every N**: no variance collapse. For a constant A the
//! noise is (L ⊗ √A) n with LLᵀ = K/N. A state-dependent A works where Ã is positive semidefinite, and the
//! run stops where it is not.
//!
//! Exactness needs a kernel that does not depend on the particles, so the bandwidth follows its
//! rule only for a number of velocities at the start, and is held from then on.
//!
//! Where particles meet only some others in a step ([`ProductSpace::interactions`]), every batch is the exact sampler
//! of its own few particles, so that π⊗…⊗π stays invariant whoever meets whom.
//!
//! [SPOS](https://arxiv.org/abs/1809.01293) adds σ²f to the velocity and *independent* noise
//! √(2σ²A), and is biased; with the correlated noise as well, Ã + σ²A, it is exact too.

use faer::Side;

use super::{CurlForm, Draw, Field, Stein, at_least_two};
use crate::dynamics::{Evaluated, Terms};
use crate::kernel::{Bandwidth, Interactions, Kernel, Standing};
use crate::random::{Purpose, fill_standard_normal, stream};
use crate::{Error, Matrix, Real, Result};

/// The product-space sampler, and SPOS in both forms.
#[derive(Clone, Debug)]
pub struct ProductSpace {
    adaptation: Adaptation,
    /// √(2Ã): the noise that GSVGD lacks.
    correlated: bool,
    /// σ²: strength of an independent diffusion beside it.
    independent: f64,
    /// Velocities before the bandwidth is held.
    adapt: u64,
    /// The bandwidth until then.
    rule: Bandwidth,
    interactions: Option<Interactions>,
}

/// The kernel, until its bandwidth is held and from then on.
#[derive(Clone, Debug)]
struct Adaptation {
    kernel: Kernel,
    stein: Stein,
    velocities: u64,
}

impl ProductSpace {
    /// The exact sampler. The bandwidth follows the kernel's rule for `adapt` velocities.
    pub fn new(kernel: Kernel, adapt: u64) -> Self {
        let rule = kernel.bandwidth.clone();
        let stein = symmetrised(kernel.clone(), None);
        let adaptation = Adaptation { stein, kernel, velocities: 0 };
        Self { adaptation, correlated: true, independent: 0.0, adapt, rule, interactions: None }
    }

    /// SPOS with σ²: independent noise only, biased for every N.
    pub fn spos(kernel: Kernel, strength: f64) -> Self {
        Self { correlated: false, independent: strength, adapt: u64::MAX, ..Self::new(kernel, 0) }
    }

    /// SPOS with both noises: exact.
    pub fn spos_exact(kernel: Kernel, strength: f64, adapt: u64) -> Self {
        Self { independent: strength, ..Self::new(kernel, adapt) }
    }

    /// Lets every particle meet `others` others in a step, or a few more, drawn by address, instead of all: O(N·P²)
    /// instead of O(N³). Exact samplers stay exact.
    pub fn interactions(mut self, others: usize) -> Self {
        // Only noise among all of whom the velocity is the drift makes it exact.
        let standing = if self.correlated { Standing::Alone } else { Standing::Sampled };
        self.interactions = Some(Interactions { others, standing });
        self.adaptation.stein = symmetrised(self.adaptation.kernel.clone(), self.interactions);
        self
    }
}

fn symmetrised(kernel: Kernel, interactions: Option<Interactions>) -> Stein {
    let stein = Stein::new(kernel).curl(CurlForm::Symmetrised);
    match interactions {
        Some(Interactions { others, standing }) => stein.meeting(others, standing),
        None => stein,
    }
}

/// The correlated noise of one block whose A varies with the state, of particles that meet.
struct Own<'a, T> {
    /// The particles; K is theirs.
    members: &'a [usize],
    /// The block, and which of the moving ones it is.
    block: usize,
    slot: usize,
    dim: usize,
    /// Standard normals, a particle a row, the moving blocks one after the other.
    noise: &'a Matrix<T>,
    dt: f64,
}

impl<T: Real> Own<'_, T> {
    /// aᵢ of every particle, where A is aᵢ·I.
    fn scalars(&self, at: &Evaluated<'_, T>) -> Option<Vec<f64>> {
        self.members
            .iter()
            .map(|&i| at.operator.scalar_diffusion(self.block, at.coefficients.row(i)))
            .map(|a| a.map(Real::as_f64))
            .collect()
    }

    /// Ã = B ⊗ I with Bᵢⱼ = kᵢⱼ(aᵢ + aⱼ)/2N: one N×N factor for all coordinates.
    fn add_scalar(
        &self,
        scalars: &[f64],
        kernel: &Matrix<f64>,
        displacement: &mut Matrix<T>,
    ) -> Result<()> {
        let count = scalars.len();
        let matrix = Matrix::from_fn(count, count, |i, j| {
            kernel.row(i)[j] * (scalars[i] + scalars[j]) / (2.0 * count as f64)
        });
        let root = factor(&matrix).ok_or(Error::IndefiniteNoise)?;
        let columns = self.columns();
        for i in 0..count {
            let out = &mut displacement.row_mut(self.members[i])[columns.clone()];
            for (&j, weight) in self.members.iter().zip(&root.row(i)[..=i]) {
                let weight = T::of((2.0 * self.dt).sqrt() * weight);
                for (x, &n) in out.iter_mut().zip(&self.noise.row(j)[columns.clone()]) {
                    *x += weight * n;
                }
            }
        }
        Ok(())
    }

    /// Ã particle after particle as one dense matrix: small problems only.
    fn add_dense(
        &self,
        at: &Evaluated<'_, T>,
        kernel: &Matrix<f64>,
        displacement: &mut Matrix<T>,
    ) -> Result<()> {
        let (operator, count, dim) = (at.operator, self.members.len(), self.dim);
        // A of every particle by its action on unit vectors.
        let own: Vec<Matrix<f64>> = self
            .members
            .iter()
            .map(|&i| {
                let mut matrix = Matrix::zeros(dim, dim);
                let mut unit = vec![T::zero(); at.state.cols()];
                for column in 0..dim {
                    unit[self.block * dim + column] = T::one();
                    let mut out = vec![T::zero(); dim];
                    let (c, moving) = (at.coefficients.row(i), [self.block]);
                    operator.apply(c, &unit, &moving, Terms::Diffusion, T::one(), &mut out);
                    for (row, x) in out.into_iter().enumerate() {
                        matrix.row_mut(row)[column] = x.as_f64();
                    }
                    unit[self.block * dim + column] = T::zero();
                }
                matrix
            })
            .collect();
        let diffusion = Matrix::from_fn(count * dim, count * dim, |p, q| {
            let (i, j, row, column) = (p / dim, q / dim, p % dim, q % dim);
            let sum = own[i].row(row)[column] + own[j].row(row)[column];
            kernel.row(i)[j] * sum / (2.0 * count as f64)
        });
        let root = factor(&diffusion).ok_or(Error::IndefiniteNoise)?;
        let columns = self.columns();
        for p in 0..root.rows() {
            let noise =
                |q: usize| self.noise.row(self.members[q / dim])[columns.start + q % dim].as_f64();
            let sum: f64 = root.row(p)[..=p].iter().enumerate().map(|(q, x)| x * noise(q)).sum();
            displacement.row_mut(self.members[p / dim])[columns.start + p % dim] +=
                T::of((2.0 * self.dt).sqrt() * sum);
        }
        Ok(())
    }

    /// The block's columns among the moving ones.
    fn columns(&self) -> std::ops::Range<usize> {
        self.slot * self.dim..(self.slot + 1) * self.dim
    }
}

/// A lower factor of a positive semidefinite matrix, or none if it has a negative direction.
///
/// Kernel matrices of close particles are singular to working precision; a little is added to the
/// diagonal until the factorisation goes through, at most 1e-8 of its size.
fn factor(matrix: &Matrix<f64>) -> Option<Matrix<f64>> {
    let n = matrix.rows();
    let largest = (0..n).map(|i| matrix.row(i)[i]).fold(0.0, f64::max);
    for jitter in [0.0, 1e-12, 1e-10, 1e-8] {
        let shifted = faer::Mat::from_fn(n, n, |i, j| {
            matrix.row(i)[j] + if i == j { jitter * largest } else { 0.0 }
        });
        if let Ok(llt) = shifted.llt(Side::Lower) {
            return Some(Matrix::from_fn(n, n, |i, j| if j <= i { llt.L()[(i, j)] } else { 0.0 }));
        }
    }
    None
}

/// Adds √(2Ã dt) n of particles that meet, K being theirs.
fn add_correlated<T: Real>(
    at: &Evaluated<'_, T>,
    members: &[usize],
    matrix: &Matrix<f64>,
    (moving, dt, noise): (&[usize], f64, &Matrix<T>),
    displacement: &mut Matrix<T>,
) -> Result<()> {
    if at.operator.diffusion_varies() {
        for (slot, &block) in moving.iter().enumerate() {
            let own = Own { members, block, slot, dim: at.operator.dim(), noise, dt };
            match own.scalars(at) {
                // Nothing diffuses here.
                Some(scalars) if scalars.iter().all(|a| *a == 0.0) => {}
                Some(scalars) => own.add_scalar(&scalars, matrix, displacement)?,
                None => own.add_dense(at, matrix, displacement)?,
            }
        }
        return Ok(());
    }
    let root = factor(matrix).ok_or(Error::IndefiniteNoise)?;
    let scale = T::of((2.0 * dt / members.len() as f64).sqrt());
    let mut mixed = vec![T::zero(); displacement.cols()];
    for (row, &i) in members.iter().enumerate() {
        mixed.fill(T::zero());
        for (&j, &weight) in members.iter().zip(&root.row(row)[..=row]) {
            let weight = T::of(weight);
            for (m, &n) in mixed.iter_mut().zip(noise.row(j)) {
                *m += weight * n;
            }
        }
        let c = at.coefficients.row(i);
        at.operator.apply_diffusion_root(c, &mixed, moving, scale, displacement.row_mut(i));
    }
    Ok(())
}

impl<T: Real> Field<T> for ProductSpace {
    fn validate(&self, blocks: usize, particles: usize) -> Result<()> {
        at_least_two(particles)?;
        if !(self.independent >= 0.0) || !self.independent.is_finite() {
            let remedy = "it must be zero or positive, and finite";
            return Err(Error::setting("strength of independent noise", self.independent, remedy));
        }
        let affine = self.adaptation.kernel.affine;
        if self.interactions.is_some() && self.correlated && affine > 0.0 {
            let remedy = "an affine part lets all particles meet: leave it or the interactions out";
            return Err(Error::setting("affine", affine, remedy));
        }
        <Stein as Field<T>>::validate(&self.adaptation.stein, blocks, particles)?;
        self.adaptation.kernel.validate(blocks)
    }

    fn velocity(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        velocity: &mut Matrix<T>,
    ) -> Result<()> {
        let Adaptation { kernel, stein, velocities } = &mut self.adaptation;
        stein.velocity(at, moving, velocity)?;
        *velocities += 1;
        if *velocities == self.adapt.max(1) {
            let held = <Stein as Field<T>>::bandwidths(stein).to_vec();
            kernel.bandwidth = Bandwidth::Fixed(held);
            *stein = symmetrised(kernel.clone(), self.interactions);
        }
        if self.independent > 0.0 {
            let mut own = vec![T::zero(); velocity.cols()];
            for i in 0..velocity.rows() {
                at.write_drift(i, moving, &mut own);
                for (v, &f) in velocity.row_mut(i).iter_mut().zip(&own) {
                    *v += T::of(self.independent) * f;
                }
            }
        }
        Ok(())
    }

    fn is_random(&self) -> bool {
        true
    }

    fn add_noise(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        dt: f64,
        draw: Draw,
        displacement: &mut Matrix<T>,
    ) -> Result<()> {
        let (count, moved) = (displacement.rows(), displacement.cols());
        // Correlated noise first, then independent.
        let kinds = if self.independent > 0.0 { 2 } else { 1 };
        let mut noise = at.scratch.matrix(count, kinds * moved);
        for i in 0..count {
            let mut generator = stream(draw.seed, Purpose::Noise, draw.index, i as u64);
            fill_standard_normal(&mut generator, noise.row_mut(i));
        }
        if self.correlated {
            // The kernel of the velocity that this noise goes with.
            let mut kernel = self.adaptation.kernel.clone();
            let bandwidths = <Stein as Field<T>>::bandwidths(&self.adaptation.stein);
            if !bandwidths.is_empty() {
                kernel.bandwidth = Bandwidth::Fixed(bandwidths.to_vec());
            }
            let resolved = kernel.resolve(at);
            let meetings = self.interactions.and_then(|some| some.draw(count, at.address));
            let everybody: Vec<usize>;
            let batches: Vec<&[usize]> = if let Some(meetings) = &meetings {
                meetings.batches().collect()
            } else {
                everybody = (0..count).collect();
                vec![&everybody]
            };
            for members in batches {
                let matrix = resolved.matrix_of(members);
                add_correlated(at, members, &matrix, (moving, dt, &noise), displacement)?;
            }
        }
        if self.independent > 0.0 {
            let scale = T::of((2.0 * dt * self.independent).sqrt());
            for i in 0..count {
                let (c, n) = (at.coefficients.row(i), &noise.row(i)[moved..]);
                at.operator.apply_diffusion_root(c, n, moving, scale, displacement.row_mut(i));
            }
        }
        Ok(())
    }

    fn bandwidths(&self) -> &[f64] {
        <Stein as Field<T>>::bandwidths(&self.adaptation.stein)
    }

    fn memory(&self) -> Vec<f64> {
        let Adaptation { kernel, velocities, .. } = &self.adaptation;
        let held = match &kernel.bandwidth {
            Bandwidth::Fixed(held) => held.as_slice(),
            _ => &[],
        };
        // Counts up to 2⁵³ are exact.
        [*velocities as f64].into_iter().chain(held.iter().copied()).collect()
    }

    fn recall(&mut self, memory: &[f64]) -> Result<()> {
        let fits = |velocities: f64, held: &[f64]| {
            velocities >= 0.0 && held.iter().all(|h| *h > 0.0 && h.is_finite())
        };
        let Some((&velocities, held)) = memory.split_first().filter(|(v, held)| fits(**v, held))
        else {
            return Err(Error::ForeignState { whose: "the field" });
        };
        let kernel = &mut self.adaptation.kernel;
        kernel.bandwidth =
            if held.is_empty() { self.rule.clone() } else { Bandwidth::Fixed(held.to_vec()) };
        self.adaptation.stein = symmetrised(kernel.clone(), self.interactions);
        self.adaptation.velocities = velocities as u64;
        Ok(())
    }
}
