//! Regions of highest density on a grid, as closed curves by marching squares.

use steinflow::MatRef;

/// The shares of the mass (within the grid) that the regions hold, from the widest inwards.
pub const MASSES: [f64; 6] = [0.98, 0.9, 0.7, 0.5, 0.3, 0.1];

/// Log densities this far below the peak hold no mass that could be seen.
const DEPTH: f64 = 60.0;

/// A closed curve and how deep what it encloses lies.
pub struct Loop {
    /// Corners in units of the grid: column, row.
    pub corners: Vec<(f64, f64)>,
    /// How many of the regions of [`MASSES`] the area just inside belongs to.
    pub depth: usize,
}

/// The regions' outlines, ordered so that painting one over the other gives the right picture.
///
/// Curves of different levels never cross, so each lies inside another or apart from it, and
/// painting by decreasing area paints every enclosed curve after its enclosure, holes included.
pub fn loops(log_density: MatRef<'_, f64>) -> Vec<Loop> {
    let values = log_density.as_slice();
    let peak = values.iter().copied().filter(|value| value.is_finite()).fold(f64::NAN, f64::max);
    if peak.is_nan() {
        return Vec::new();
    }
    let relative: Vec<f64> = values
        .iter()
        .map(|&value| if value.is_finite() { (value - peak).max(-DEPTH) } else { -DEPTH })
        .collect();
    let grid = PaddedGrid::new(&relative, log_density.rows(), log_density.cols());

    let mut found: Vec<(f64, Loop)> = Vec::new();
    for (index, level) in levels(&relative).into_iter().enumerate() {
        for corners in grid.trace(level) {
            let area = signed_area(&corners);
            // Inside lies to the left of a curve, so a clockwise one encloses a hole.
            let depth = if area > 0.0 { index + 1 } else { index };
            found.push((area.abs(), Loop { corners, depth }));
        }
    }
    // A stable sort: of equal curves the inner level is painted last.
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, curve)| curve).collect()
}

/// The log densities above which each share of the mass lies.
fn levels(relative: &[f64]) -> Vec<f64> {
    let mut sorted = relative.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let total: f64 = sorted.iter().map(|value| value.exp()).sum();
    MASSES
        .iter()
        .map(|share| {
            let mut held = 0.0;
            let level = sorted.iter().find(|value| {
                held += value.exp();
                held >= share * total
            });
            level.or(sorted.last()).copied().unwrap_or(0.0)
        })
        .collect()
}

fn signed_area(corners: &[(f64, f64)]) -> f64 {
    let next = corners.iter().cycle().skip(1);
    corners.iter().zip(next).map(|(a, b)| 0.5 * (a.0 * b.1 - b.0 * a.1)).sum()
}

/// The grid with a rim of values below every level, so that all curves are closed.
struct PaddedGrid {
    values: Vec<f64>,
    rows: usize,
    cols: usize,
}

/// A grid edge that a curve crosses; `NONE` marks those that it does not.
const NONE: usize = usize::MAX;

impl PaddedGrid {
    fn new(values: &[f64], inner_rows: usize, inner_cols: usize) -> Self {
        let (rows, cols) = (inner_rows + 2, inner_cols + 2);
        let mut padded = vec![-2.0 * DEPTH; rows * cols];
        for (i, row) in values.chunks_exact(inner_cols).enumerate() {
            let start = (i + 1) * cols + 1;
            padded[start..start + inner_cols].copy_from_slice(row);
        }
        Self { values: padded, rows, cols }
    }

    /// The closed curves around all that is at least `level`, with the inside on their left.
    fn trace(&self, level: f64) -> Vec<Vec<(f64, f64)>> {
        let mut next = self.segments(level);
        let mut curves = Vec::new();
        for start in 0..next.len() {
            let mut edge = start;
            let mut corners = Vec::new();
            while next[edge] != NONE {
                corners.push(self.crossing(edge, level));
                edge = std::mem::replace(&mut next[edge], NONE);
            }
            if corners.len() >= 3 {
                curves.push(corners);
            }
        }
        curves
    }

    /// For every crossed edge the edge at which its curve leaves the cell on its way.
    fn segments(&self, level: f64) -> Vec<usize> {
        let mut next = vec![NONE; 2 * self.values.len()];
        for row in 0..self.rows - 1 {
            for col in 0..self.cols - 1 {
                let at = row * self.cols + col;
                // Corners against the clock, and the edge that follows each of them.
                let corners = [at, at + 1, at + 1 + self.cols, at + self.cols];
                let edges = [2 * at, 2 * (at + 1) + 1, 2 * (at + self.cols), 2 * at + 1];
                let inside = corners.map(|corner| self.values[corner] >= level);
                let leaves = |k: usize| inside[k] && !inside[(k + 1) % 4];
                let enters = |k: usize| !inside[k] && inside[(k + 1) % 4];
                let is_saddle =
                    inside[0] == inside[2] && inside[1] == inside[3] && inside[0] != inside[1];
                let centre: f64 =
                    corners.iter().map(|&corner| self.values[corner]).sum::<f64>() / 4.0;
                for k in (0..4).filter(|&k| leaves(k)) {
                    let end = if is_saddle {
                        if centre >= level { (k + 1) % 4 } else { (k + 3) % 4 }
                    } else {
                        (0..4).find(|&end| enters(end)).unwrap_or(k)
                    };
                    next[edges[k]] = edges[end];
                }
            }
        }
        next
    }

    /// Where the level crosses an edge, in units of the grid without its rim.
    fn crossing(&self, edge: usize, level: f64) -> (f64, f64) {
        let from = edge / 2;
        let along_column = edge % 2 == 1;
        let to = if along_column { from + self.cols } else { from + 1 };
        let (a, b) = (self.values[from], self.values[to]);
        let share = ((level - a) / (b - a)).clamp(0.0, 1.0);
        let (col, row) = ((from % self.cols) as f64, (from / self.cols) as f64);
        let (x, y) = if along_column { (col, row + share) } else { (col + share, row) };
        // The rim lies on the border itself, not one step outside.
        ((x - 1.0).clamp(0.0, (self.cols - 3) as f64), (y - 1.0).clamp(0.0, (self.rows - 3) as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steinflow::Matrix;

    /// Log density on [-4, 4]² with a step of 0.05.
    fn on_grid(log_density: impl Fn(f64, f64) -> f64) -> Matrix<f64> {
        Matrix::from_fn(161, 161, |i, j| log_density(j as f64 * 0.05 - 4.0, i as f64 * 0.05 - 4.0))
    }

    #[test]
    fn regions_of_a_gaussian_are_discs_of_the_right_mass() {
        let grid = on_grid(|x, y| -0.5 * (x * x + y * y));
        let found = loops(grid.as_ref());
        assert_eq!(found.len(), MASSES.len());
        for (index, curve) in found.iter().enumerate() {
            assert_eq!(curve.depth, index + 1);
            // P(r² ≤ ρ²) = 1 − exp(−ρ²/2), so the area is −2π log(1 − mass).
            let expected = -std::f64::consts::TAU * (1.0 - MASSES[index]).ln();
            let area = signed_area(&curve.corners) * 0.05 * 0.05;
            assert!((area / expected - 1.0).abs() < 0.05, "{area} against {expected}");
        }
    }

    #[test]
    fn a_ring_has_holes_that_are_painted_after_their_surroundings() {
        let grid = on_grid(|x, y| -0.5 * ((x.hypot(y) - 2.5) / 0.5).powi(2));
        let found = loops(grid.as_ref());
        assert_eq!(found.len(), 2 * MASSES.len());
        assert_eq!(found.last().map(|curve| curve.depth), Some(0), "the middle is outside all");
        let areas: Vec<f64> = found.iter().map(|curve| signed_area(&curve.corners).abs()).collect();
        assert!(areas.windows(2).all(|pair| pair[0] >= pair[1]));
    }

    #[test]
    fn curves_close_along_the_border() {
        let grid = on_grid(|x, _| x);
        for curve in loops(grid.as_ref()) {
            assert!(signed_area(&curve.corners) > 0.0);
            assert!(
                curve
                    .corners
                    .iter()
                    .all(|&(x, y)| (0.0..=160.0).contains(&x) && (0.0..=160.0).contains(&y))
            );
        }
    }

    #[test]
    fn saddles_are_resolved_without_losing_a_curve() {
        // Two diagonal cells of a 2 × 2 grid, apart or joined by their centre.
        for (low, curves) in [(-50.0, 2), (-1e-3, 1)] {
            let values = [0.0, low, low, 0.0];
            let grid = PaddedGrid::new(&values, 2, 2);
            assert_eq!(grid.trace(-0.9e-3).len(), curves, "{low}");
        }
    }

    #[test]
    fn flat_and_empty_grids_do_no_harm() {
        assert_eq!(loops(Matrix::from_fn(3, 3, |_, _| f64::NAN).as_ref()).len(), 0);
        let flat = loops(Matrix::from_fn(3, 3, |_, _| 7.0).as_ref());
        assert!(flat.iter().all(|curve| signed_area(&curve.corners) == 4.0));
        assert!(!flat.is_empty());
    }
}
