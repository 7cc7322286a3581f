//! LAWGD over dynamics (A, C): the velocity for which KL falls as fast as χ², for d ≤ 2.
//!
//! ```text
//! 𝒜g = (1/π) ∇·(π M∇g),  M = A + C,     −𝒜φ = ρ/π − 1,     v = −M∇φ
//! ```
//!
//! With the kernel k of (−𝒜)⁻¹ on functions of π-mean zero, φ = (1/N) Σⱼ k(·, θⱼ) and
//! vᵢ = −(1/N) Σⱼ M(θᵢ) ∇₁k(θᵢ, θⱼ). The kernel is never formed: a velocity is one sparse solve,
//! with the particles' mass on a grid as right-hand side. [Chewi et al.
//! 2020](https://arxiv.org/abs/2006.02509) have A = I, C = 0; the paper's section on LAWGD proposes
//! the general case.
//!
//! **Which transpose.** As ∫ρ v·∇log(ρ/π) = −∫π ∇(ρ/π)·M∇φ = ∫ρ 𝒜φ, the same M must stand in 𝒜
//! and in v: then dKL/dt = −∫ρ(ρ/π − 1) = −χ²(ρ‖π) for every skew C. With the adjoint of 𝒜, which
//! has A − C, this holds for v = −(A − C)∇φ only: the flow of the reversed curl.
//!
//! **Time.** Near π, ρ = π(1 + εh) gives ∂h/∂t = −h: every perturbation decays as e^(−t), whatever
//! the target and the dynamics. Steps of 0.05 to 0.3 suit most targets, best with a decay at the
//! end, and a time of 20 is long. On a line v = (F_ρ − F_π)/π with the distribution functions F,
//! whatever A: a step of 1 is a step of Newton's method towards the quantiles of π, and the
//! particles come to rest at those of (i − ½)/N.
//!
//! **Speed.** Far from the mass of π, v grows as 1/(Nπ) without bound. A particle's speed is cut at
//! [`Lawgd::speed_limit`], by default a quarter of the window's diameter per unit of time; where it
//! acts, the rate of KL is no longer χ².
//!
//! **The window.** π is that of the window, with no flux through its sides: choose it to hold all
//! but a negligible share of the mass ([`Lawgd::edge_mass`] tells) and all starting particles. A
//! particle outside counts as standing at the nearest point of the window; it has the velocity of
//! that point, and the distance to it is added, which brings it back at the flow's own rate.
//!
//! **The grid.** Particles share their mass linearly between neighbouring cells, so those closer
//! than a cell hardly repel each other. On a line that is harmless: k is continuous, with a kink,
//! and 1000 cells are a good start. In the plane k has a logarithm at θᵢ = θⱼ: few particles lock
//! into a lattice as they come, before the modes have their shares. [`Lawgd::smoothed`] replaces
//! ρ/π by (1 − τ𝒜)⁻¹(ρ/π), which keeps π at rest and KL falling, and takes the singularity away.
//! A √τ near the spacing of particles is right: for 100 particles on a target of width 2, τ = 0.1
//! with 64 to 128 cells per side.

mod corners;
mod generator;
mod grid;

use rayon::prelude::*;

use self::corners::Corners;
use self::generator::Generator;
use self::grid::{Axis, Grid};
use super::{Field, at_least_two};
use crate::dynamics::{Dynamics, Evaluated, Terms};
use crate::{Error, LogDensity, Matrix, Real, Result};

/// Fewer cells than this cannot show the shape of a density.
const FEWEST_CELLS: usize = 8;
/// The most cells per side, on a line and in a plane.
const MOST_CELLS: [usize; 2] = [100_000, 512];

/// The LAWGD field of one target and one dynamics of θ alone.
///
/// It holds π and 𝒜 on a grid, so a sampler must be given the same target and dynamics again. The
/// score at the particles is not used, and minibatches change nothing.
///
/// ```
/// use steinflow::dynamics::Langevin;
/// use steinflow::field::Lawgd;
/// use steinflow::integrator::{Euler, StepSize};
/// use steinflow::target::PerParticle;
/// use steinflow::Sampler;
///
/// let gaussian = PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
///     score[0] = -theta[0];
///     -0.5 * theta[0].powi(2)
/// });
/// let field = Lawgd::new(&gaussian, &Langevin::new(), &[(-8.0, 8.0)], 1000)?;
/// let outcome = Sampler::new(gaussian, Langevin::new(), field)
///     .start_normal(20, &[2.0], 0.5)
///     .phase(Euler, 300, StepSize::Constant(0.1))
///     .run()?;
/// let mut theta = outcome.theta().as_slice().to_vec();
/// theta.sort_by(f64::total_cmp);
/// // The quantile of N(0, 1) at 0.5/20.
/// assert!((theta[0] + 1.96).abs() < 0.01);
/// # Ok::<(), steinflow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lawgd {
    dim: usize,
    grid: Grid,
    generator: Generator,
    speed_limit: f64,
}

impl Lawgd {
    /// Discretises 𝒜 on `cells` equal cells per side of the window, one (low, high) per coordinate
    /// of θ, and factors it.
    pub fn new(
        target: &dyn LogDensity<f64>,
        dynamics: &dyn Dynamics<f64>,
        window: &[(f64, f64)],
        cells: usize,
    ) -> Result<Self> {
        let dim = target.dim();
        if !(1..=2).contains(&dim) {
            return Err(Error::setting(
                "dimension of a target for LAWGD",
                dim,
                "it works on a grid over one or two coordinates; take SVGD (`Stein`) in others",
            ));
        }
        let structure = dynamics.structure(dim);
        structure.validate()?;
        check_blocks(structure.blocks())?;
        check_window(window, dim)?;
        check_cells(cells, dim)?;
        let axis =
            |k: usize| window.get(k).map_or(Axis::FLAT, |&(low, high)| Axis { low, high, cells });
        let grid = Grid { axes: [axis(0), axis(1)] };
        let generator = Generator::new(grid, Corners::evaluate(&grid, target, dynamics)?)?;
        let diameter = window.iter().map(|(low, high)| (high - low).powi(2)).sum::<f64>().sqrt();
        Ok(Self { dim, grid, generator, speed_limit: 0.25 * diameter })
    }

    /// Cuts the speed |v| of every particle at `limit`; infinity leaves it as it is.
    pub fn speed_limit(mut self, limit: f64) -> Self {
        self.speed_limit = limit;
        self
    }

    /// Smooths ρ/π by (1 − τ𝒜)⁻¹, over a length of about √τ: see the module's notes on the grid.
    /// Doubles memory and time; 0 undoes it.
    pub fn smoothed(mut self, time: f64) -> Result<Self> {
        if !(time >= 0.0) || !time.is_finite() {
            return Err(Error::setting("smoothing time", time, "it must be finite, zero or more"));
        }
        self.generator.smooth(time)?;
        Ok(self)
    }

    /// The share of π in the outermost cells: more than about 1e-6 says that the window is too
    /// small, unless π really ends there.
    pub fn edge_mass(&self) -> f64 {
        let [x, y] = self.grid.axes.map(|axis| axis.cells);
        let mut share = 0.0;
        for i in 0..x {
            for j in 0..y {
                let across = self.dim == 2 && (j == 0 || j == y - 1);
                if i == 0 || i == x - 1 || across {
                    share += self.generator.mass[self.grid.cell(i, j)];
                }
            }
        }
        share
    }

    /// The bytes that a field of `cells` per side takes, about: most of them fill-in of the factor,
    /// measured at 256 and 512 cells in the plane and 100,000 on a line. Smoothing doubles them.
    pub fn bytes(cells: usize, dim: usize) -> u64 {
        let cells = cells as u64;
        match dim {
            0 | 1 => cells.saturating_mul(500),
            _ => cells.saturating_pow(2).saturating_mul(4500),
        }
    }
}

fn check_blocks(blocks: usize) -> Result<()> {
    if blocks != 1 {
        return Err(Error::setting(
            "blocks of the state for LAWGD",
            blocks,
            "it moves θ alone: take dynamics without auxiliary variables, such as Langevin or \
             Riemannian, or de-randomise these with `Stein`",
        ));
    }
    Ok(())
}

fn check_window(window: &[(f64, f64)], dim: usize) -> Result<()> {
    if window.len() != dim {
        return Err(Error::Shape {
            what: "the window",
            found: format!("{} sides", window.len()),
            expected: format!("{dim}: one (low, high) per coordinate of θ"),
        });
    }
    for (low, high) in window {
        // A width that overflows is as useless as none.
        if !(low < high && (high - low).is_finite()) {
            return Err(Error::setting(
                "window",
                format!("({low}, {high})"),
                "give finite numbers low < high that enclose the target's mass",
            ));
        }
    }
    Ok(())
}

fn check_cells(cells: usize, dim: usize) -> Result<()> {
    let (most, good) = if dim == 1 { (MOST_CELLS[0], 1000) } else { (MOST_CELLS[1], 128) };
    if (FEWEST_CELLS..=most).contains(&cells) {
        return Ok(());
    }
    let megabytes = |cells| Lawgd::bytes(cells, dim).div_ceil(1 << 20);
    Err(Error::setting(
        "cells per side of the window",
        cells,
        format!(
            "it would take about {} MiB; with {dim} coordinates take {FEWEST_CELLS} ({good} is a \
             good start, {} MiB) to {most} ({} MiB)",
            megabytes(cells),
            megabytes(good),
            megabytes(most),
        ),
    ))
}

impl<T: Real> Field<T> for Lawgd {
    fn validate(&self, blocks: usize, particles: usize) -> Result<()> {
        if !(self.speed_limit > 0.0) {
            return Err(Error::setting("speed limit", self.speed_limit, "it must be positive"));
        }
        check_blocks(blocks)?;
        at_least_two(particles)
    }

    fn needs_own_coordinates(&self) -> bool {
        true
    }

    fn velocity(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        velocity: &mut Matrix<T>,
    ) -> Result<()> {
        let (count, dim) = (at.state.rows(), self.dim);
        if at.state.cols() != dim {
            return Err(Error::Shape {
                what: "the state for LAWGD",
                found: format!("{} coordinates", at.state.cols()),
                expected: format!("{dim}, those of the target that the field was made for"),
            });
        }
        // The second coordinate of a line is anywhere.
        let point = |i: usize| {
            let row = at.state.row(i);
            [row[0].as_f64(), row.get(1).map_or(0.0, |y| y.as_f64())]
        };
        let mut deposited = vec![0.0; self.grid.cells()];
        for i in 0..count {
            for (x, y, weight) in self.grid.cells_around(point(i)) {
                deposited[self.grid.cell(x, y)] += weight / count as f64;
            }
        }
        let potential = self.generator.solve(&deposited);
        velocity.as_mut_slice().par_chunks_mut(dim).enumerate().with_min_len(64).for_each(
            |(i, out)| {
                let place = point(i);
                let nearest = self.grid.nearest_inside(place);
                let gradient = self.generator.gradient(&potential, nearest).map(T::of);
                for (k, v) in out.iter_mut().enumerate() {
                    *v = T::of(nearest[k] - place[k]);
                }
                let c = at.coefficients.row(i);
                at.operator.apply(c, &gradient[..dim], moving, Terms::All, -T::one(), out);
                let speed = out.iter().map(|v| v.as_f64().powi(2)).sum::<f64>().sqrt();
                if speed > self.speed_limit {
                    for v in out {
                        *v = T::of(v.as_f64() * (self.speed_limit / speed));
                    }
                }
            },
        );
        Ok(())
    }
}
