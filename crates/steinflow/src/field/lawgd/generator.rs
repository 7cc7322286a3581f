//! The generator 𝒜 on a grid, factored once: finite volumes in weak form.
//!
//! ```text
//! ∫ ∇ψ·πM∇φ = ∫ ψ(ρ − π)  for every ψ,   which is   −𝒜φ = ρ/π − 1
//!
//! L = Σ_faces (πA)_f ΔψΔφ + Σ_corners (πM₁₂)_c DxψDyφ + (πM₂₁)_c DyψDxφ
//! ```
//!
//! φ lives at the centres of cells, πM at their corners. A face takes the mean of πA over its two
//! ends, a corner sees the mean difference of its four cells. Three things hold exactly, whatever
//! π and M: L1 = 0 and 1ᵀL = 0 (nothing crosses the window), and C adds nothing to φᵀLφ. The
//! symmetric part is at least Σ_c π(Dφ)ᵀA(Dφ), so L is singular in constants only.

use faer::linalg::solvers::Solve as _;
use faer::sparse::linalg::solvers::Lu;
use faer::sparse::{SparseColMat, Triplet};

use super::corners::Corners;
use super::grid::Grid;
use crate::{Error, Result};

type Entry = Triplet<usize, usize, f64>;

/// 𝒜 and π on a grid.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    grid: Grid,
    /// π at the corners, normalised on the window.
    density: Vec<f64>,
    /// The mass of π in every cell; they sum to one.
    pub mass: Vec<f64>,
    /// L.
    matrix: SparseColMat<usize, f64>,
    /// Of L + s·eeᵀ with e a single cell.
    factor: Lu<usize, f64>,
    /// Of D + τL with D the masses, where ρ is smoothed.
    smoother: Option<Lu<usize, f64>>,
}

impl Generator {
    pub fn new(grid: Grid, corners: Corners) -> Result<Self> {
        let mass = corners.cell_masses(&grid);
        let matrix = assemble(&grid, &entries(&corners, &grid))?;
        // As 1ᵀL = 0, (L + s·eeᵀ)φ = b gives s·eᵀφ = 1ᵀb = 0 and with it Lφ = b: the shift only
        // picks the φ that vanishes in one cell. The cell with most mass is the best conditioned.
        let heaviest =
            (0..mass.len()).fold(0, |best, c| if mass[c] > mass[best] { c } else { best });
        let shift = matrix.get(heaviest, heaviest).copied().unwrap_or(1.0);
        let mut shifted: Vec<Entry> = matrix.triplet_iter().map(owned).collect();
        shifted.push(Triplet::new(heaviest, heaviest, shift));
        let factor = factor(&grid, &shifted)?;
        let density = corners.density;
        Ok(Self { grid, density, mass, matrix, factor, smoother: None })
    }

    /// Smooths ρ/π by (1 − τ𝒜)⁻¹ from now on; τ = 0 leaves it as it is.
    pub fn smooth(&mut self, time: f64) -> Result<()> {
        self.smoother = None;
        if time > 0.0 {
            let entries = self.matrix.triplet_iter().map(owned);
            let entries = entries.map(|e| Triplet::new(e.row, e.col, time * e.val));
            let masses = self.mass.iter().enumerate().map(|(c, &mass)| Triplet::new(c, c, mass));
            self.smoother = Some(factor(&self.grid, &entries.chain(masses).collect::<Vec<_>>())?);
        }
        Ok(())
    }

    /// φ up to a constant, from the mass of ρ in every cell.
    pub fn solve(&self, deposited: &[f64]) -> Vec<f64> {
        let cells = self.mass.len();
        let mut excess = faer::Col::from_fn(cells, |cell| deposited[cell] - self.mass[cell]);
        if let Some(smoother) = &self.smoother {
            let ratio = smoother.solve(&excess);
            excess = faer::Col::from_fn(cells, |cell| self.mass[cell] * ratio[cell]);
        }
        self.factor.solve(excess).iter().copied().collect()
    }

    /// ∇φ at a point of the window: π∇φ at the centres around it, divided by π there.
    ///
    /// In the tails ∇φ grows as 1/π while π∇φ stays smooth, so that is what is interpolated, and
    /// log π for the division. The weights are those with which particles give their mass: on a
    /// line a particle then exerts no force on itself.
    pub fn gradient(&self, potential: &[f64], point: [f64; 2]) -> [f64; 2] {
        let grid = &self.grid;
        let [x, y] = &grid.axes;
        let mut flux = [0.0; 2];
        for (i, j, weight) in grid.cells_around(point) {
            let at = |i, j| potential[grid.cell(i, j)];
            let here = at(i, j);
            // Nothing crosses the window: beyond it φ is as in the outermost cell.
            let left = self.face_x(i, j) * (here - at(i.saturating_sub(1), j));
            let right = self.face_x(i + 1, j) * (at((i + 1).min(x.cells - 1), j) - here);
            let below = self.face_y(i, j) * (here - at(i, j.saturating_sub(1)));
            let above = self.face_y(i, j + 1) * (at(i, (j + 1).min(y.cells - 1)) - here);
            flux[0] += 0.5 * weight * (left + right) / x.spacing();
            flux[1] += 0.5 * weight * (below + above) / y.spacing();
        }
        let corners = grid.corners_around(point);
        let log_density: f64 =
            corners.iter().map(|&(i, j, w)| w * self.density[grid.corner(i, j)].ln()).sum();
        flux.map(|flux| flux / log_density.exp())
    }

    /// π on the face between cells (i − 1, j) and (i, j).
    fn face_x(&self, i: usize, j: usize) -> f64 {
        let grid = &self.grid;
        0.5 * (self.density[grid.corner(i, j)] + self.density[grid.corner(i, j + 1)])
    }

    /// π on the face between cells (i, j − 1) and (i, j).
    fn face_y(&self, i: usize, j: usize) -> f64 {
        let grid = &self.grid;
        0.5 * (self.density[grid.corner(i, j)] + self.density[grid.corner(i + 1, j)])
    }
}

fn owned(entry: Triplet<usize, usize, &f64>) -> Entry {
    Triplet::new(entry.row, entry.col, *entry.val)
}

/// Entries at the same place add up.
fn assemble(grid: &Grid, entries: &[Entry]) -> Result<SparseColMat<usize, f64>> {
    SparseColMat::try_new_from_triplets(grid.cells(), grid.cells(), entries)
        .map_err(|_| out_of_memory(grid))
}

fn factor(grid: &Grid, entries: &[Entry]) -> Result<Lu<usize, f64>> {
    assemble(grid, entries)?.sp_lu().map_err(|_| out_of_memory(grid))
}

/// The one way in which a matrix with a full diagonal fails to be factored.
fn out_of_memory(grid: &Grid) -> Error {
    let remedy = "there is not enough memory to factor the grid's matrix: take fewer";
    Error::setting("number of cells", grid.cells(), remedy)
}

/// L, entry by entry; entries at the same place add up.
fn entries(corners: &Corners, grid: &Grid) -> Vec<Entry> {
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
        corners.density[corner] * corners.matrices[corner][entry]
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

#[cfg(test)]
mod tests {
    use super::super::grid::Axis;
    use super::*;
    use crate::testing::random_states;

    const CELLS: usize = 12;

    /// Random π and M = A + curl·J on a small plane; A is positive definite.
    fn random(seed: u64, curl: f64) -> (Grid, Corners) {
        let axis = |high| Axis { low: -1.0, high, cells: CELLS };
        let grid = Grid { axes: [axis(1.0), axis(2.0)] };
        let draws = random_states(grid.corners(), 5, seed);
        let matrices = (0..grid.corners()).map(|corner| {
            let [a, b, c, skew, _] = draws.row(corner) else { unreachable!() };
            [a * a + 0.1 + b * b, b * c + curl * skew, b * c - curl * skew, c * c + 0.1]
        });
        let matrices = matrices.collect();
        let density = (0..grid.corners()).map(|corner| draws.row(corner)[4].exp()).collect();
        (grid, Corners { density, matrices })
    }

    fn product(generator: &Generator, potential: &[f64]) -> Vec<f64> {
        let mut image = vec![0.0; potential.len()];
        for entry in generator.matrix.triplet_iter() {
            image[entry.row] += entry.val * potential[entry.col];
        }
        image
    }

    #[test]
    fn nothing_crosses_the_window_and_the_curl_does_no_work() {
        for seed in 1..4 {
            let generator = |curl| {
                let (grid, corners) = random(seed, curl);
                Generator::new(grid, corners).unwrap()
            };
            let (with, without) = (generator(1.5), generator(0.0));
            let potential = random_states(CELLS * CELLS, 1, seed + 10).as_slice().to_vec();
            let of_constant = product(&with, &vec![1.0; CELLS * CELLS]);
            assert!(of_constant.iter().all(|x| x.abs() < 1e-12), "L1 = {of_constant:?}");
            let image = product(&with, &potential);
            assert!(
                image.iter().sum::<f64>().abs() < 1e-11,
                "1ᵀLφ = {}",
                image.iter().sum::<f64>()
            );
            let work = |image: &[f64]| -> f64 {
                image.iter().zip(&potential).map(|(image, potential)| image * potential).sum()
            };
            let (work, expected) = (work(&image), work(&product(&without, &potential)));
            assert!((work / expected - 1.0).abs() < 1e-12, "{work} {expected}");
            assert!(work > 0.0);
        }
    }

    #[test]
    fn the_solution_satisfies_the_discrete_equation() {
        for seed in 1..4 {
            let (grid, corners) = random(seed, 1.5);
            let mut generator = Generator::new(grid, corners).unwrap();
            let total: f64 = generator.mass.iter().sum();
            generator.mass.iter_mut().for_each(|mass| *mass /= total);
            let mut deposited = vec![0.0; grid.cells()];
            for (i, j, weight) in grid.cells_around([0.123, 1.456]) {
                deposited[grid.cell(i, j)] += weight;
            }
            let error = |found: &[f64], expected: &dyn Fn(usize) -> f64| {
                (0..found.len()).map(|c| (found[c] - expected(c)).abs()).fold(0.0, f64::max)
            };
            let image = product(&generator, &generator.solve(&deposited));
            let mass = generator.mass.clone();
            let excess = |c: usize| deposited[c] - mass[c];
            assert!(error(&image, &excess) < 1e-12, "{}", error(&image, &excess));

            // Smoothed: with q = Lφ, q + τLD⁻¹q is the excess.
            generator.smooth(0.3).unwrap();
            let image = product(&generator, &generator.solve(&deposited));
            let ratio: Vec<f64> = (0..image.len()).map(|c| image[c] / mass[c]).collect();
            let spread = product(&generator, &ratio);
            let whole: Vec<f64> = (0..image.len()).map(|c| image[c] + 0.3 * spread[c]).collect();
            assert!(error(&whole, &excess) < 1e-11, "{}", error(&whole, &excess));
            assert!(error(&image, &excess) > 0.1, "nothing was smoothed");
        }
    }
}
