//! A window cut into equal cells: where particles leave their mass, and where φ lives.
//!
//! ```text
//! corners   low + i·h         where π and M are evaluated
//! centres   low + (i + ½)·h   where φ and the mass of particles live
//! ```
//!
//! A line is treated as a plane one cell high, so one code serves d = 1 and d = 2.

/// One side of the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub low: f64,
    pub high: f64,
    pub cells: usize,
}

impl Axis {
    /// The side that a line does not have.
    pub const FLAT: Self = Self { low: 0.0, high: 1.0, cells: 1 };

    /// h.
    pub fn spacing(&self) -> f64 {
        (self.high - self.low) / self.cells as f64
    }

    pub fn corner(&self, i: usize) -> f64 {
        self.low + (self.high - self.low) * (i as f64 / self.cells as f64)
    }

    /// The two centres around x and their linear weights; beyond the outermost centres, those.
    fn neighbours(&self, x: f64) -> [(usize, f64); 2] {
        let last = self.cells - 1;
        let position = ((x - self.low) / self.spacing() - 0.5).clamp(0.0, last as f64);
        let below = position as usize;
        let weight = position - below as f64;
        [(below, 1.0 - weight), ((below + 1).min(last), weight)]
    }
}

/// The cells of a window, numbered along the second axis first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub axes: [Axis; 2],
}

impl Grid {
    pub fn cells(&self) -> usize {
        self.axes[0].cells * self.axes[1].cells
    }

    pub fn cell(&self, i: usize, j: usize) -> usize {
        i * self.axes[1].cells + j
    }

    pub fn corners(&self) -> usize {
        (self.axes[0].cells + 1) * (self.axes[1].cells + 1)
    }

    pub fn corner(&self, i: usize, j: usize) -> usize {
        i * (self.axes[1].cells + 1) + j
    }

    /// The coordinates of a corner, in the order of [`Grid::corner`].
    pub fn corner_at(&self, corner: usize) -> [f64; 2] {
        let per_row = self.axes[1].cells + 1;
        [self.axes[0].corner(corner / per_row), self.axes[1].corner(corner % per_row)]
    }

    /// The point of the window nearest to `point`.
    pub fn nearest_inside(&self, point: [f64; 2]) -> [f64; 2] {
        std::array::from_fn(|k| point[k].clamp(self.axes[k].low, self.axes[k].high))
    }

    /// Adds `mass` at `point` to the four cells around it.
    pub fn deposit(&self, point: [f64; 2], mass: f64, cells: &mut [f64]) {
        for (i, x_weight) in self.axes[0].neighbours(point[0]) {
            for (j, y_weight) in self.axes[1].neighbours(point[1]) {
                cells[self.cell(i, j)] += mass * x_weight * y_weight;
            }
        }
    }

    /// ∇φ at `point`: central differences at the four centres around it, weighted as in
    /// [`Grid::deposit`]. With equal weights for giving and taking, a particle exerts no force on
    /// itself where πM is constant.
    pub fn gradient(&self, potential: &[f64], point: [f64; 2]) -> [f64; 2] {
        let [x, y] = &self.axes;
        let mut gradient = [0.0; 2];
        for (i, x_weight) in x.neighbours(point[0]) {
            for (j, y_weight) in y.neighbours(point[1]) {
                // No flux passes the window: outside, φ is as in the outermost cell.
                let right = potential[self.cell((i + 1).min(x.cells - 1), j)];
                let left = potential[self.cell(i.saturating_sub(1), j)];
                let above = potential[self.cell(i, (j + 1).min(y.cells - 1))];
                let below = potential[self.cell(i, j.saturating_sub(1))];
                let weight = 0.5 * x_weight * y_weight;
                gradient[0] += weight * (right - left) / x.spacing();
                gradient[1] += weight * (above - below) / y.spacing();
            }
        }
        gradient
    }
}
