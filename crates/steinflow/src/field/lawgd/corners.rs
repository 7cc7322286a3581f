//! π and M = A + C at the corners of a grid's cells.

use super::grid::Grid;
use crate::dynamics::{Dynamics, Operator, Point, THETA, Terms};
use crate::{Error, LogDensity, Matrix, Result};

/// Where π is below this share of its maximum on the grid, it is taken to be this share.
///
/// It keeps the cells of the far tails connected and L within the range of f64. The mass so added
/// is below 1e-14 of the maximum times the window's volume.
const LOWEST_DENSITY: f64 = 1e-14;

/// What the generator is made of.
pub(super) struct Corners {
    /// π, normalised on the window.
    pub density: Vec<f64>,
    /// M₁₁, M₁₂, M₂₁, M₂₂.
    pub matrices: Vec<[f64; 4]>,
}

impl Corners {
    pub fn evaluate(
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

    /// The mass of every cell; they sum to one.
    pub fn cell_masses(&self, grid: &Grid) -> Vec<f64> {
        let volume = grid.axes[0].spacing() * grid.axes[1].spacing();
        self.cell_densities(grid).map(|density| density * volume).collect()
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
