//! The target itself, as far as it can be drawn behind particles: a surface in two dimensions, and
//! the density of single coordinates.

use steinflow::{Matrix, Real};
use steinflow_io::plot::limits_of;
use steinflow_io::report::{Grid, Line, Points};
use steinflow_models::{Model, NETWORK};

use crate::error::Result;
use crate::grid::log_density_grid;
use steinflow_config::Config;
use steinflow_config::Settings;

/// Places along a side of the surface.
const SIDE: usize = 120;
/// Exact draws that show the density of a coordinate, where it has no formula.
const DRAWS: usize = 20_000;
/// Numbers of such draws beyond which there are none.
const MOST_DRAWN: usize = 8_000_000;
const BINS: usize = 50;
const SMOOTHINGS: usize = 3;

#[derive(Default)]
pub struct Backdrop {
    pub density: Option<Grid>,
    pub marginals: Vec<Line>,
}

impl Backdrop {
    /// The target of a run's settings, around its particles.
    pub fn of(settings: Settings, points: &Points) -> Result<Self> {
        // Nobody asks for the density of a weight.
        if settings.spec.name() == NETWORK {
            return Ok(Self::default());
        }
        let config = Config::resolve(settings)?;
        let model = steinflow_models::build::<f64>(config.spec())?;
        Self::new(&*model, points)
    }

    pub fn new<T: Real>(model: &dyn Model<T>, points: &Points) -> Result<Self> {
        let (exact, units) = (model.shown_moments(), model.units());
        let limits = |j: usize| {
            let (low, high) = limits_of(&points.columns[j]);
            // The target as it is, not as the particles see it.
            exact.as_ref().map_or((low, high), |exact| {
                let (mean, sd) = (exact.mean[j], exact.covariance.row(j)[j].sqrt());
                (low.min(mean - 4.0 * sd), high.max(mean + 4.0 * sd))
            })
        };
        match (points.dim, points.columns.len()) {
            // The density is one of θ, and not of what is shown.
            (1, 1) if units.is_none() => {
                let limits = limits(0);
                let grid = log_density_grid(model, &[limits], 4 * SIDE)?;
                let heights = relative(grid.as_slice()).into_iter().map(f64::exp).collect();
                Ok(Self { density: None, marginals: vec![normalised(limits, heights)] })
            }
            (2, 2) if units.is_none() => {
                let [x, y] = match model.window() {
                    Some([x, y]) => [x.into(), y.into()],
                    None => [limits(0), limits(1)],
                };
                let grid = log_density_grid(model, &[x, y], SIDE)?;
                let values = relative(grid.as_slice());
                let at = |i: usize, j: usize| values[i * SIDE + j].exp();
                let along_x = (0..SIDE).map(|j| (0..SIDE).map(|i| at(i, j)).sum()).collect();
                let along_y = (0..SIDE).map(|i| (0..SIDE).map(|j| at(i, j)).sum()).collect();
                let marginals = vec![normalised(x, along_x), normalised(y, along_y)];
                Ok(Self { density: Some(Grid { x, y, side: SIDE, values }), marginals })
            }
            (dim, shown) if dim * DRAWS <= MOST_DRAWN => {
                let draws = model.exact_sample(DRAWS, 0);
                let draws = draws.map(|draws| match &units {
                    Some(units) => units.show(&draws),
                    None => draws,
                });
                let lines = draws.map(|draws| (0..shown).map(|j| histogram(&draws, j)).collect());
                Ok(Self { density: None, marginals: lines.unwrap_or_default() })
            }
            _ => Ok(Self::default()),
        }
    }
}

/// Below the highest finite value.
fn relative(log_density: &[f64]) -> Vec<f64> {
    let finite = log_density.iter().copied().filter(|x| x.is_finite());
    let top = finite.fold(f64::NEG_INFINITY, f64::max);
    let below = |&x: &f64| if x.is_nan() { f64::NEG_INFINITY } else { x - top };
    log_density.iter().map(below).collect()
}

/// Scaled to an area of one.
fn normalised((low, high): (f64, f64), mut values: Vec<f64>) -> Line {
    let area = values.iter().sum::<f64>() * (high - low) / (values.len() - 1) as f64;
    if area > 0.0 {
        for value in &mut values {
            *value /= area;
        }
    }
    Line { low, high, values }
}

/// The density of one coordinate by counts, smoothed a little against their noise.
fn histogram(draws: &Matrix<f64>, coordinate: usize) -> Line {
    let mut values: Vec<f64> = (0..draws.rows()).map(|i| draws.row(i)[coordinate]).collect();
    values.sort_unstable_by(f64::total_cmp);
    // Without the farthest of a heavy tail.
    let tail = values.len() / 500;
    let (low, high) = (values[tail], values[values.len() - 1 - tail]);
    let width = (high - low) / BINS as f64;
    let mut counts = vec![0.0; BINS];
    for value in &values {
        let bin = ((value - low) / width).floor();
        if (0.0..BINS as f64).contains(&bin) {
            counts[bin as usize] += 1.0 / (values.len() as f64 * width);
        }
    }
    for _ in 0..SMOOTHINGS {
        let at = |i: usize| counts[i.min(BINS - 1)];
        let smooth = |i: usize| (at(i.saturating_sub(1)) + 2.0 * at(i) + at(i + 1)) / 4.0;
        counts = (0..BINS).map(smooth).collect();
    }
    Line { low: low + width / 2.0, high: high - width / 2.0, values: counts }
}
