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
//!
//! On N particles at once this is the drift of a dynamics with M̃ᵢⱼ = kᵢⱼ M(zⱼ)/N, for which π⊗…⊗π is
//! invariant if C̃ is skew and the divergence is complete. Three things are to be had for that:
//!
//! - **[An affine part](Kernel::affine)** of the kernel, k + c(1 + x·y), depends on where a particle is, so
//!   that its diagonal has a divergence too: c M(zᵢ)xᵢ, one more than the N of the sum.
//! - **[`CurlForm::Symmetrised`]**: where C varies, kᵢⱼ C(zⱼ) is not skew, and kᵢⱼ (C(zᵢ) + C(zⱼ))/2 is.
//! - **[`TimeUnit::Eigenvalue`]**: kernel and unit of time are held, as they must not follow the particles;
//!   and time runs 1/λ times as fast, λ being the largest eigenvalue of K/N. As the eigenvalues of K/N sum
//!   to 1, a typical direction moves at the speed 1/N otherwise.

use rayon::prelude::*;

use super::{ByCoordinate, Field, at_least_two};
use crate::dynamics::{Evaluated, Repulsion, Terms};
use crate::engine::{Borrowed, rows_per_task, strip_width, write_centred};
use crate::kernel::{Bandwidth, Interactions, Kernel, Resolved, Standing, View};
use crate::{Error, Matrix, Real, Result};

/// What C is between two particles, where it varies from particle to particle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CurlForm {
    /// kᵢⱼ C(zⱼ), as the paper has it.
    #[default]
    Paper,
    /// kᵢⱼ (C(zᵢ) + C(zⱼ))/2: skew, so that π⊗…⊗π stays invariant.
    Symmetrised,
}

/// What the sum over particles is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TimeUnit {
    /// N, as in the paper.
    #[default]
    Particles,
    /// Nλ, with λ the largest eigenvalue of K/N at the start. λ and the bandwidth are held from then on.
    Eigenvalue,
}

/// The GSVGD field over any dynamics.
#[derive(Clone, Debug)]
pub struct Stein {
    kernel: Kernel,
    repulsion: Terms,
    curl: CurlForm,
    time: TimeUnit,
    interactions: Option<Interactions>,
    bandwidths: Vec<f64>,
    /// λ and the bandwidths at the start, where they are held.
    held: Option<(f64, Vec<f64>)>,
}

impl Stein {
    /// The paper's field.
    pub fn new(kernel: Kernel) -> Self {
        Self {
            kernel,
            repulsion: Terms::All,
            curl: CurlForm::default(),
            time: TimeUnit::default(),
            interactions: None,
            bandwidths: Vec::new(),
            held: None,
        }
    }

    /// The starred variant: repulsion by A alone. Its particles never stop; their law does.
    pub fn starred(kernel: Kernel) -> Self {
        Self { repulsion: Terms::Diffusion, ..Self::new(kernel) }
    }

    /// What C is between two particles.
    pub fn curl(self, curl: CurlForm) -> Self {
        Self { curl, ..self }
    }

    /// The unit of time.
    pub fn time_unit(self, time: TimeUnit) -> Self {
        Self { time, ..self }
    }

    /// Lets every particle meet `others` others in a step, or a few more, drawn by address, instead of all: O(N·P)
    /// instead of O(N²). The velocity has the expectation of that over all pairs.
    pub fn interactions(self, others: usize) -> Self {
        self.meeting(others, Standing::Sampled)
    }

    /// As [`Stein::interactions`], for batches that may stand for themselves.
    pub(super) fn meeting(self, others: usize, standing: Standing) -> Self {
        Self { interactions: Some(Interactions { others, standing }), ..self }
    }

    /// The kernel, with the bandwidth held where it is.
    fn resolve<'a, T: Real>(&mut self, at: &Evaluated<'a, T>) -> Resolved<'a, T> {
        if self.time == TimeUnit::Particles {
            return self.kernel.resolve(at);
        }
        if let Some((_, bandwidths)) = &self.held {
            let bandwidth = Bandwidth::Fixed(bandwidths.clone());
            return Kernel { bandwidth, ..self.kernel.clone() }.resolve(at);
        }
        let resolved = self.kernel.resolve(at);
        self.held = Some((resolved.largest_eigenvalue(), resolved.bandwidths.clone()));
        resolved
    }

    /// What the sum over particles is multiplied by. The kernel must have been resolved.
    fn share<T: Real>(&self, at: &Evaluated<'_, T>) -> T {
        let eigenvalue = self.held.as_ref().map_or(1.0, |(eigenvalue, _)| *eigenvalue);
        T::of(1.0 / (at.state.rows() as f64 * eigenvalue))
    }
}

/// The field where K is known as a matrix, and repels as it is.
struct KnownKernel<T> {
    kernel: Vec<T>,
    /// How fast it repels in each block.
    rates: Vec<T>,
    terms: Terms,
    share: T,
}

impl<T: Real> ByCoordinate<T> for KnownKernel<T> {
    fn velocity(&self, at: &Evaluated<'_, T>, moving: &[usize], velocity: &mut Matrix<T>) {
        let (count, moved) = (at.state.rows(), velocity.cols());
        let width = moved + at.operator.width();
        let mut points = at.scratch.matrix(count, at.state.cols());
        // What M does not read is not looked at.
        for block in at.operator.blocks_read(moving, Terms::All) {
            let columns = block * at.operator.dim()..(block + 1) * at.operator.dim();
            write_centred(|i| at.state.row(i), columns, &mut points);
        }
        let parts = [Part { drifts: true, rates: &self.rates }];
        let acting = Acting { moving, terms: self.terms, curl: T::one(), pulled: Vec::new() };
        let (mut rhs, mut sums) =
            (at.scratch.matrix(count, width), at.scratch.matrix(count, width));
        acting.write_rhs(at, &points, &parts[0], &mut rhs);
        T::product(&self.kernel, rhs.as_slice(), sums.as_mut_slice(), count, width, count);
        acting.write_velocity(at, &points, &parts, &[sums], self.share, velocity);
    }
}

/// What k and every slope that differs from it multiply: [force | c | pull] of every particle.
struct Part<'a, T> {
    /// Whether the drift is in the force.
    drifts: bool,
    /// How fast the slope repels in each block.
    rates: &'a [T],
}

/// How M acts on what repels: `moving` rows of `terms`, with C taken `curl` times.
struct Acting<'a, T> {
    moving: &'a [usize],
    terms: Terms,
    curl: T,
    /// The blocks that C(zᵢ) acts on outside the sum, for its other half: there Σⱼ kᵢⱼ∇log π(zⱼ) + ∇₂kᵢⱼ is
    /// the *pull*.
    pulled: Vec<usize>,
}

impl<T: Real> Field<T> for Stein {
    fn validate(&self, blocks: usize, particles: usize) -> Result<()> {
        at_least_two(particles)?;
        if let Some(interactions) = self.interactions {
            interactions.validate()?;
            if self.time == TimeUnit::Eigenvalue {
                let remedy = "λ needs all pairs: take the time unit n, or leave interactions out";
                return Err(Error::setting("time unit", "lambda", remedy));
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
        let mut resolved = self.resolve(at);
        let drawn = self.interactions.and_then(|some| some.draw(at.state.rows(), at.address));
        resolved.meet(drawn);
        let (operator, terms) = (at.operator, self.repulsion);
        let halved = self.curl == CurlForm::Symmetrised && operator.curl_varies();
        let (curl, pulled) = if halved {
            (T::of(0.5), operator.blocks_read(moving, Terms::Curl))
        } else {
            (T::one(), Vec::new())
        };
        let acting = Acting { moving, terms, curl, pulled };
        let share = self.share(at);
        let mut pull = acting.write_sums(at, &resolved, share, velocity);
        acting.add_affine(at, &resolved, share, velocity, &mut pull);
        acting.add_other_half(at, &resolved, share, velocity, &pull);
        self.bandwidths.clone_from(&resolved.bandwidths);
        Ok(())
    }

    fn by_coordinate(&mut self, at: &Evaluated<'_, T>) -> Result<Option<Box<dyn ByCoordinate<T>>>> {
        let is_plain = self.kernel.radial.slope_is_value() && self.kernel.affine == 0.0;
        let operator = at.operator;
        let is_halved = self.curl == CurlForm::Symmetrised && operator.curl_varies();
        let is_wide = strip_width(at.state.rows(), operator.blocks(), operator.dim()).is_some();
        if !is_wide || !is_plain || is_halved || self.interactions.is_some() {
            return Ok(None);
        }
        let resolved = self.resolve(at);
        let Some((kernel, rates)) = resolved.known() else { return Ok(None) };
        self.bandwidths.clone_from(&resolved.bandwidths);
        let (rates, terms, share) = (rates.to_vec(), self.repulsion, self.share(at));
        Ok(Some(Box::new(KnownKernel { kernel, rates, terms, share })))
    }

    fn preserves_volume_of_auxiliaries(&self) -> bool {
        self.kernel.view == View::Theta
            && self.repulsion == Terms::All
            && self.time == TimeUnit::Eigenvalue
            && self.interactions.is_none()
    }

    fn bandwidths(&self) -> &[f64] {
        &self.bandwidths
    }

    fn memory(&self) -> Vec<f64> {
        let held = self.held.iter();
        held.flat_map(|(eigenvalue, h)| std::iter::once(eigenvalue).chain(h)).copied().collect()
    }

    fn recall(&mut self, memory: &[f64]) -> Result<()> {
        let fits = |memory: &[f64]| memory.iter().all(|x| *x > 0.0 && x.is_finite());
        self.held = match memory {
            [] => None,
            [eigenvalue, h @ ..]
                if self.time == TimeUnit::Eigenvalue && !h.is_empty() && fits(memory) =>
            {
                Some((*eigenvalue, h.to_vec()))
            }
            _ => return Err(Error::ForeignState { whose: "the field" }),
        };
        Ok(())
    }
}

impl<T: Real> Acting<'_, T> {
    /// The formula in the head of this file; returns the pull of the radial part.
    fn write_sums<'a>(
        &self,
        at: &Evaluated<'a, T>,
        resolved: &Resolved<'_, T>,
        share: T,
        velocity: &mut Matrix<T>,
    ) -> Borrowed<'a, T> {
        let (operator, count) = (at.operator, at.state.rows());
        let (dim, points, moving) = (operator.dim(), resolved.centred(), self.moving);
        let (moved, pulled) = (moving.len() * dim, self.pulled.len() * dim);
        let (forces, width) = (moved + operator.width(), moved + operator.width() + pulled);

        // A slope that is k itself repels along with the drift; others come after it.
        let (slopes, nowhere) = (resolved.slopes(), vec![T::zero(); operator.blocks()]);
        let shared = resolved.slope_is_value();
        let drift = (!shared).then_some(Part { drifts: true, rates: &nowhere });
        let slopes = slopes.iter().map(|rates| Part { drifts: shared, rates });
        let parts: Vec<Part<'_, T>> = drift.into_iter().chain(slopes).collect();

        let mut rhs: Vec<_> = parts.iter().map(|_| at.scratch.matrix(count, width)).collect();
        for (part, rhs) in parts.iter().zip(&mut rhs) {
            self.write_rhs(at, points, part, rhs);
        }
        let mut sums: Vec<_> = parts.iter().map(|_| at.scratch.matrix(count, width)).collect();
        resolved.sums_with_slopes(
            &rhs.iter().map(|rhs| rhs.as_ref()).collect::<Vec<_>>(),
            &mut sums.iter_mut().map(|sums| &mut **sums).collect::<Vec<_>>(),
        );

        self.write_velocity(at, points, &parts, &sums, share, velocity);
        let mut pull = at.scratch.matrix(count, pulled);
        pull.as_mut_slice().fill(T::zero());
        for i in 0..if pulled > 0 { count } else { 0 } {
            for (part, sums) in parts.iter().zip(&sums) {
                let (total, sums) = (sums.row(i)[moved], &sums.row(i)[forces..]);
                let blocks = pull.row_mut(i).chunks_exact_mut(dim).zip(sums.chunks_exact(dim));
                for (&block, (out, sums)) in self.pulled.iter().zip(blocks) {
                    let (x, rate) = (&points.row(i)[block * dim..], self.rate(part.rates[block]));
                    for ((out, &sum), &x) in out.iter_mut().zip(sums).zip(x) {
                        *out += sum + total * (rate * x);
                    }
                }
            }
        }
        pull
    }

    /// Writes [force | c | pull] of every particle.
    fn write_rhs(
        &self,
        at: &Evaluated<'_, T>,
        points: &Matrix<T>,
        part: &Part<'_, T>,
        rhs: &mut Matrix<T>,
    ) {
        let (dim, width) = (at.operator.dim(), rhs.cols());
        let moved = self.moving.len() * dim;
        let forces = moved + at.operator.width();
        let repulsion = Repulsion { rates: part.rates, terms: self.terms, points };
        let rows = rhs.as_mut_slice().par_chunks_mut(width).enumerate();
        rows.with_min_len(rows_per_task(width)).for_each(|(j, row)| {
            let (row, pull) = row.split_at_mut(forces);
            let (force, c) = row.split_at_mut(moved);
            c.copy_from_slice(at.coefficients.row(j));
            at.write_force(j, self.moving, part.drifts, repulsion, self.curl, force);
            for (&block, out) in self.pulled.iter().zip(pull.chunks_exact_mut(dim)) {
                if part.drifts {
                    at.write_gradient(j, block, out);
                } else {
                    out.fill(T::zero());
                }
                let (x, rate) = (&points.row(j)[block * dim..], self.rate(part.rates[block]));
                out.iter_mut().zip(x).for_each(|(out, &x)| *out -= rate * x);
            }
        });
    }

    /// Writes the velocity from sums over all particles of what [`Acting::write_rhs`] has written.
    fn write_velocity(
        &self,
        at: &Evaluated<'_, T>,
        points: &Matrix<T>,
        parts: &[Part<'_, T>],
        sums: &[Borrowed<'_, T>],
        share: T,
        velocity: &mut Matrix<T>,
    ) {
        let acts = (self.moving, self.terms, self.curl);
        let moved = velocity.cols();
        let forces = moved + at.operator.width();
        let rows = velocity.as_mut_slice().par_chunks_mut(moved).enumerate();
        rows.with_min_len(rows_per_task(moved)).for_each(|(i, out)| {
            let x = points.row(i);
            for (place, (part, sums)) in parts.iter().zip(sums).enumerate() {
                let (force, c) = sums.row(i)[..forces].split_at(moved);
                let share = (place + 1 == parts.len()).then_some(share);
                let from = if place == 0 {
                    Some(force)
                } else {
                    out.iter_mut().zip(force).for_each(|(out, &force)| *out += force);
                    None
                };
                at.operator.write_sum((c, from), (x, part.rates), acts, share, out);
            }
        });
    }

    /// What C is repelled by: nothing in the starred form.
    fn rate(&self, rate: T) -> T {
        if self.terms == Terms::All { rate } else { T::zero() }
    }

    /// Adds what the affine part of the kernel does: with k = c(1 + x·y) and ∇₂k = c x,
    /// N vᵢ = Σⱼ kᵢⱼ f(zⱼ) + c M(Σⱼ cⱼ) xᵢ + c M(zᵢ) xᵢ, where the last is the diagonal's divergence.
    fn add_affine(
        &self,
        at: &Evaluated<'_, T>,
        resolved: &Resolved<'_, T>,
        share: T,
        velocity: &mut Matrix<T>,
        pull: &mut Matrix<T>,
    ) {
        let Some(affine) = resolved.affine() else { return };
        let (operator, count, dim) = (at.operator, at.state.rows(), at.operator.dim());
        let moved = self.moving.len() * dim;
        let width = moved + self.pulled.len() * dim;
        let mut rhs = at.scratch.matrix(count, width);
        let rows = rhs.as_mut_slice().par_chunks_mut(width).enumerate();
        rows.with_min_len(rows_per_task(width)).for_each(|(j, row)| {
            let (drift, gradient) = row.split_at_mut(moved);
            at.write_drift_with(j, self.moving, self.curl, drift);
            for (&block, out) in self.pulled.iter().zip(gradient.chunks_exact_mut(dim)) {
                at.write_gradient(j, block, out);
            }
        });
        let mut sums = at.scratch.matrix(count, width);
        sums.as_mut_slice().fill(T::zero());
        affine.add_sums(rhs.as_ref(), &mut sums);

        let mut total = vec![T::zero(); operator.width()];
        for j in 0..count {
            total.iter_mut().zip(at.coefficients.row(j)).for_each(|(sum, &c)| *sum += c);
        }
        let seen = |block: usize| block * dim < affine.seen;
        let rate = |block: usize| if seen(block) { affine.strength } else { T::zero() };
        let rates: Vec<T> = (0..operator.blocks()).map(rate).collect();
        let (halved, whole) =
            ((self.moving, self.terms, self.curl), (self.moving, self.terms, T::one()));
        let rows = velocity.as_mut_slice().par_chunks_mut(moved);
        let rows = rows.zip(sums.as_mut_slice().par_chunks_mut(width)).enumerate();
        rows.with_min_len(rows_per_task(width)).for_each(|(i, (out, sums))| {
            let (sums, x) = (&mut sums[..moved], at.state.row(i));
            operator.write_sum((&total, None), (x, &rates), halved, None, sums);
            operator.write_sum((at.coefficients.row(i), None), (x, &rates), whole, None, sums);
            out.iter_mut().zip(&*sums).for_each(|(out, &sum)| *out += share * sum);
        });
        let all = T::of(count as f64);
        for i in 0..if self.pulled.is_empty() { 0 } else { count } {
            let sums = sums.row(i)[moved..].chunks_exact(dim);
            let blocks = pull.row_mut(i).chunks_exact_mut(dim).zip(sums);
            for (&block, (out, sums)) in self.pulled.iter().zip(blocks) {
                let (x, rate) = (&at.state.row(i)[block * dim..], self.rate(rates[block]));
                for ((out, &sum), &x) in out.iter_mut().zip(sums).zip(x) {
                    *out += sum + all * (rate * x);
                }
            }
        }
    }

    /// Adds ½ C(zᵢ) applied to the pull, and the other half of the diagonal's ∇·C.
    fn add_other_half(
        &self,
        at: &Evaluated<'_, T>,
        resolved: &Resolved<'_, T>,
        share: T,
        velocity: &mut Matrix<T>,
        pull: &Matrix<T>,
    ) {
        if self.pulled.is_empty() {
            return;
        }
        let (dim, moved) = (at.operator.dim(), velocity.cols());
        let scale = share * (T::one() - self.curl);
        let weights = resolved.own_weights();
        let rows = velocity.as_mut_slice().par_chunks_mut(moved).enumerate();
        rows.with_min_len(rows_per_task(moved)).for_each(|(i, out)| {
            let mut input = vec![T::zero(); at.state.cols()];
            for (&block, from) in self.pulled.iter().zip(pull.row(i).chunks_exact(dim)) {
                input[block * dim..(block + 1) * dim].copy_from_slice(from);
            }
            let c = at.coefficients.row(i);
            at.operator.apply(c, &input, self.moving, Terms::Curl, scale, out);
            // A radial kernel is 1 where a particle meets itself.
            let own = weights.as_ref().map_or(T::one(), |weights| weights[i]);
            let more = resolved.affine().map_or(T::zero(), |affine| affine.value(i, i));
            at.add_curl_divergence(i, self.moving, scale * (own + more), out);
        });
    }
}
