//! The generator 𝒜 on a grid, factored once: finite volumes in weak form.
//!
//! ```text
//! ∫ ∇ψ·πM∇φ = ∫ ψ(ρ − π)  for every ψ,   which is   −𝒜φ = ρ/π − 1
//!
//! L = Σ_faces (πA)_f ΔψΔφ + Σ_corners (π M₁₂)_c DxψDyφ + (π M₂₁)_c DyψDxφ
//! ```
//!
//! φ lives at the centres of cells; πM at their corners. A face takes the mean of πA over its two
//! ends, a corner sees the mean difference of its four cells. Three things hold exactly, whatever
//! π and M: L1 = 0 and 1ᵀL = 0 (nothing crosses the window), and C adds nothing to φᵀLφ. The
//! symmetric part is at least Σ_c π (Dφ)ᵀA(Dφ), so that L is singular in constants only.

use faer::linalg::solvers::Solve as _;
use faer::sparse::linalg::solvers::Lu;
use faer::sparse::{SparseColMat, Triplet};

use super::grid::Grid;
use crate::dynamics::{Dynamics, Operator, Point, THETA, Terms};
use crate::{Error, LogDensity, Matrix, Result};

/// Where π is below this share of its maximum on the grid, it is taken to be this share.
///
/// It keeps the cells of the far tails connected and L within the range of f64. The mass so added
/// is below 1e-14 of the maximum times the window's volume.
const LOWEST_DENSITY: f64 = 1e-14;

/// 𝒜 and π on a grid.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    /// The mass of π in every cell; they sum to one.
    pub mass: Vec<f64>,
    /// L + s·e eᵀ with e a single cell.
    factor: Lu<usize, f64>,
}

/// π and M = A + C at the corners of the cells.
struct Corners {
    /// Normalised on the window.
    density: Vec<f64>,
    /// M₁₁, M₁₂, M₂₁, M₂₂.
    matrices: Vec<[f64; 4]>,
}

impl Generator {
    pub fn new(
        grid: &Grid,
        target: &dyn LogDensity<f64>,
        dynamics: &dyn Dynamics<f64>,
    ) -> Result<Self> {
        let corners = Corners::evaluate(grid, target, dynamics)?;
        let mass = corners.cell_masses(grid);
        let mut entries = corners.entries(grid);
        // As 1ᵀL = 0, (L + s·eeᵀ)φ = b gives s·eᵀφ = 1ᵀb = 0 and with it Lφ = b: the shift only
        // picks the φ that vanishes in one cell. The cell with most mass is the best conditioned.
        let heaviest =
            (0..mass.len()).fold(0, |best, c| if mass[c] > mass[best] { c } else { best });
        let diagonal =
            entries.iter().filter(|entry| entry.row == heaviest && entry.col == heaviest);
        let shift = diagonal.map(|entry| entry.val).sum();
        entries.push(Triplet::new(heaviest, heaviest, shift));
        let factor = SparseColMat::try_new_from_triplets(grid.cells(), grid.cells(), &entries)
            .ok()
            .and_then(|matrix| matrix.sp_lu().ok())
            .ok_or_else(|| {
                Error::setting(
                    "cells",
                    grid.cells(),
                    "the grid's matrix could not be factored for want of memory: take fewer cells",
                )
            })?;
        Ok(Self { mass, factor })
    }

    /// φ up to a constant, from the mass of ρ in every cell.
    pub fn solve(&self, deposited: &[f64]) -> Vec<f64> {
        let excess = faer::Col::from_fn(self.mass.len(), |cell| deposited[cell] - self.mass[cell]);
        let potential = self.factor.solve(excess);
        potential.iter().copied().collect()
    }
}

impl Corners {
    fn evaluate(
        grid: &Grid,
        target: &dyn LogDensity<f64>,
        dynamics: &dyn Dynamics<f64>,
    ) -> Result<Self> {
        let (count, dim) = (grid.corners(), target.dim());
        let points = Matrix::from_fn(count, dim, |corner, k| grid.corner_at(corner)[k]);
        let (mut log_density, mut score) = (vec![0.0; count], Matrix::zeros(count, dim));
        target.evaluate(points.as_ref(), None, &mut log_density, score.as_mut())?;
        let place = |corner: usize| format!("θ = {:?}", points.row(corner));
        if let Some(corner) = log_density.iter().position(|l| l.is_nan() || *l == f64::INFINITY) {
            return Err(Error::setting(
                "log density in the window",
                format!("{} at {}", log_density[corner], place(corner)),
                "it must be a number, or −∞ where the density vanishes: choose another window",
            ));
        }
        let highest = log_density.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if highest == f64::NEG_INFINITY {
            return Err(Error::setting(
                "density in the window",
                0,
                "it vanishes at every grid point: choose a window around the target's mass",
            ));
        }
        let density = log_density.iter().map(|l| (l - highest).exp().max(LOWEST_DENSITY)).collect();

        let structure = dynamics.structure(dim);
        let operator = Operator::<f64>::new(&structure);
        let mut coefficients = vec![0.0; operator.width()];
        let mut matrices = Vec::with_capacity(count);
        for corner in 0..count {
            let at = Point {
                state: points.row(corner),
                dim,
                log_density: log_density[corner],
                score: score.row(corner),
            };
            coefficients.fill(0.0);
            coefficients[0] = 1.0;
            dynamics.coefficients(&at, &mut coefficients[1..]);
            let diffusion = dense(&operator, &coefficients, Terms::Diffusion);
            // The leading minors; on a line the second is the first.
            let minor = if dim == 2 {
                diffusion[0] * diffusion[3] - diffusion[1] * diffusion[2]
            } else {
                diffusion[0]
            };
            let matrix = dense(&operator, &coefficients, Terms::All);
            let finite = matrix.iter().all(|entry| entry.is_finite());
            if !(diffusion[0] > 0.0 && minor > 0.0 && finite) {
                return Err(Error::setting(
                    "diffusion matrix A",
                    format!("{:?} at {}", &diffusion[..dim * dim], place(corner)),
                    "LAWGD inverts the generator, so A must be finite and positive definite all \
                     over the window: take Langevin or Riemannian dynamics, or a smaller window",
                ));
            }
            matrices.push(matrix);
        }
        let mut corners = Self { density, matrices };
        let total: f64 = corners.cell_densities(grid).sum();
        let volume = grid.axes[0].spacing() * grid.axes[1].spacing();
        for density in &mut corners.density {
            *density /= total * volume;
        }
        Ok(corners)
    }

    /// The mean density of every cell over its four corners.
    fn cell_densities<'a>(&'a self, grid: &'a Grid) -> impl Iterator<Item = f64> + 'a {
        let [x, y] = &grid.axes;
        (0..x.cells).flat_map(move |i| {
            (0..y.cells).map(move |j| {
                let at = |i, j| self.density[grid.corner(i, j)];
                0.25 * (at(i, j) + at(i + 1, j) + at(i, j + 1) + at(i + 1, j + 1))
            })
        })
    }

    fn cell_masses(&self, grid: &Grid) -> Vec<f64> {
        let volume = grid.axes[0].spacing() * grid.axes[1].spacing();
        self.cell_densities(grid).map(|density| density * volume).collect()
    }

    /// L, entry by entry; entries at the same place add up.
    fn entries(&self, grid: &Grid) -> Vec<Triplet<usize, usize, f64>> {
        let [x, y] = &grid.axes;
        let (dx, dy) = (x.spacing(), y.spacing());
        let mut entries = Vec::with_capacity(24 * grid.cells());
        let mut join = |a: usize, b: usize, conductance: f64| {
            for (row, col, sign) in [(a, a, 1.0), (a, b, -1.0), (b, a, -1.0), (b, b, 1.0)] {
                entries.push(Triplet::new(row, col, sign * conductance));
            }
        };
        let weighted = |entry: usize, i, j| {
            let corner = grid.corner(i, j);
            self.density[corner] * self.matrices[corner][entry]
        };
        for i in 1..x.cells {
            for j in 0..y.cells {
                let mean = 0.5 * (weighted(0, i, j) + weighted(0, i, j + 1));
                join(grid.cell(i - 1, j), grid.cell(i, j), mean * dy / dx);
            }
        }
        for i in 0..x.cells {
            for j in 1..y.cells {
                let mean = 0.5 * (weighted(3, i, j) + weighted(3, i + 1, j));
                join(grid.cell(i, j - 1), grid.cell(i, j), mean * dx / dy);
            }
        }
        for i in 1..x.cells {
            for j in 1..y.cells {
                let (upper, lower) = (weighted(1, i, j), weighted(2, i, j));
                if upper == 0.0 && lower == 0.0 {
                    continue;
                }
                // Dx and Dy as signs; their factor 1/(2dx)·1/(2dy) times the volume is ¼.
                let around = [
                    (grid.cell(i - 1, j - 1), -1.0, -1.0),
                    (grid.cell(i - 1, j), -1.0, 1.0),
                    (grid.cell(i, j - 1), 1.0, -1.0),
                    (grid.cell(i, j), 1.0, 1.0),
                ];
                for (row, row_x, row_y) in around {
                    for (col, col_x, col_y) in around {
                        let value = upper * row_x * col_y + lower * row_y * col_x;
                        entries.push(Triplet::new(row, col, 0.25 * value));
                    }
                }
            }
        }
        entries
    }
}

/// The matrix of A or of M at one point, in a 2 × 2 frame.
fn dense(operator: &Operator<f64>, coefficients: &[f64], terms: Terms) -> [f64; 4] {
    let dim = operator.dim();
    let mut matrix = [0.0; 4];
    for column in 0..dim {
        let (mut unit, mut image) = ([0.0; 2], [0.0; 2]);
        unit[column] = 1.0;
        operator.apply(coefficients, &unit[..dim], &[THETA], terms, 1.0, &mut image[..dim]);
        for row in 0..dim {
            matrix[2 * row + column] = image[row];
        }
    }
    matrix
}
