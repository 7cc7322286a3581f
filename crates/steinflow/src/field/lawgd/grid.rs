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
    fn centres_around(&self, x: f64) -> [(usize, f64); 2] {
        around((x - self.low) / self.spacing() - 0.5, self.cells - 1)
    }

    fn corners_around(&self, x: f64) -> [(usize, f64); 2] {
        around((x - self.low) / self.spacing(), self.cells)
    }
}

/// The two integers from 0 to `last` around `position`, with linear weights.
fn around(position: f64, last: usize) -> [(usize, f64); 2] {
    let position = position.clamp(0.0, last as f64);
    let below = position as usize;
    let weight = position - below as f64;
    [(below, 1.0 - weight), ((below + 1).min(last), weight)]
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

    /// The four cells around `point` as (i, j, weight), the weights linear along each axis.
    pub fn cells_around(&self, point: [f64; 2]) -> [(usize, usize, f64); 4] {
        let [x, y] = &self.axes;
        cross(x.centres_around(point[0]), y.centres_around(point[1]))
    }

    /// The four corners around `point`, as in [`Grid::cells_around`].
    pub fn corners_around(&self, point: [f64; 2]) -> [(usize, usize, f64); 4] {
        let [x, y] = &self.axes;
        cross(x.corners_around(point[0]), y.corners_around(point[1]))
    }
}

fn cross(x: [(usize, f64); 2], y: [(usize, f64); 2]) -> [(usize, usize, f64); 4] {
    std::array::from_fn(|k| {
        let ((i, x_weight), (j, y_weight)) = (x[k / 2], y[k % 2]);
        (i, j, x_weight * y_weight)
    })
}
