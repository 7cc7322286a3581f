//! Pictures of particles: a histogram, a scatter over the density, a grid of pairs, or [`Panels`].
//!
//! [`CalibrationPlot`] shows predictions instead: against their targets, and how often they are right.
//!
//! A [`ParticlePlot`] follows the number of coordinates d: a histogram for d = 1, particles over the
//! shaded density for d = 2, and pairs of the first four coordinates for d ≥ 3. Of very many
//! particles an evenly spaced part is drawn as dots, and the caption says so. Nothing depends on the
//! machine: fonts are inside the program, and the same input gives the same bytes.

mod calibration;
pub(crate) mod canvas;
mod contour;
pub(crate) mod frame;
mod header;
mod histogram;
mod layers;
mod pairs;
mod panels;
mod plane;
mod shading;
mod ticks;
mod window;

use steinflow::MatRef;

pub use calibration::CalibrationPlot;
pub use header::Mark;
pub use layers::Layer;
pub use panels::{Key, Panel, Panels};

use crate::{Error, Result};
use canvas::Canvas;
use frame::Frame;

/// What to draw.
///
/// ```
/// use steinflow::Matrix;
/// use steinflow_io::plot::ParticlePlot;
///
/// let points = Matrix::from_fn(50, 2, |i, j| (i as f64 * (0.7 + 0.4 * j as f64)).sin());
/// let names = ["x".to_string(), "y".to_string()];
/// let figure = ParticlePlot {
///     points: points.as_ref(),
///     names: &names,
///     title: "Lissajous",
///     caption: "50 particles",
///     density: None,
///     groups: None,
/// }
/// .draw()?;
/// assert!(figure.png()?.starts_with(b"\x89PNG"));
/// assert!(figure.svg().contains("Lissajous"));
/// # Ok::<(), steinflow_io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ParticlePlot<'a> {
    /// One particle a row. A row that is not finite is left out, and the caption counts it.
    pub points: MatRef<'a, f64>,
    /// One name a coordinate, for the axes.
    pub names: &'a [String],
    /// First line.
    pub title: &'a str,
    /// Smaller line below, such as `sgrhmc-stein, 100 particles, 600 steps`.
    pub caption: &'a str,
    /// The density behind the particles, for one or two coordinates.
    pub density: Option<Density<'a>>,
    /// Colours of particles; a histogram ignores them.
    pub groups: Option<Groups<'a>>,
}

/// The log density on a regular grid, up to a constant; an entry that is not finite counts as −∞.
///
/// The limits belong to the first and the last grid point. Particles beyond them widen the picture,
/// except for a few at most that lie far out: those are left out, and the caption counts them. To
/// choose limits, see [`limits_of`].
#[derive(Clone, Copy, Debug)]
pub enum Density<'a> {
    /// For one coordinate, drawn as a curve whose area is 1.
    Line {
        /// First and last grid point.
        limits: (f64, f64),
        /// The values, from the first to the last.
        log_density: &'a [f64],
    },
    /// For two coordinates, shaded by regions of highest density.
    Plane {
        /// First and last grid point of the first coordinate.
        x: (f64, f64),
        /// First and last grid point of the second coordinate.
        y: (f64, f64),
        /// Entry (i, j) belongs to the i-th grid point of y and the j-th of x.
        log_density: MatRef<'a, f64>,
    },
}

/// To which group each particle belongs.
#[derive(Clone, Copy, Debug)]
pub struct Groups<'a> {
    /// One index into `names` a particle.
    pub index: &'a [usize],
    /// Names for the legend. Colours repeat after the eighth.
    pub names: &'a [String],
}

/// A drawn picture.
#[derive(Debug)]
pub struct Figure {
    canvas: Canvas,
    /// Where the panels of [`Panels`] are.
    pub(crate) frames: Vec<Frame>,
}

impl Figure {
    /// The picture as a PNG file, about 1000 pixels wide.
    pub fn png(&self) -> Result<Vec<u8>> {
        self.canvas.png().map_err(Error::Png)
    }

    /// The picture as a PNG file with so many pixels for one unit of the SVG.
    pub(crate) fn png_at(&self, scale: f32) -> Result<Vec<u8>> {
        self.canvas.png_at(scale).map_err(Error::Png)
    }

    /// The picture as an SVG file. Its text asks for common fonts and falls back to the viewer's
    /// own; a PNG needs none.
    pub fn svg(&self) -> String {
        self.canvas.svg()
    }
}

impl ParticlePlot<'_> {
    /// Draws the picture.
    ///
    /// Fails when names, groups or the density do not fit the particles; never because of their
    /// values.
    pub fn draw(&self) -> Result<Figure> {
        self.check()?;
        let canvas = match self.points.cols() {
            1 => histogram::draw(self),
            2 => plane::draw(self),
            _ => pairs::draw(self),
        };
        Ok(Figure { canvas, frames: Vec::new() })
    }

    fn check(&self) -> Result<()> {
        let dim = self.points.cols();
        let wrong =
            |what, found: String, expected: String| Err(Error::Plot { what, found, expected });
        if dim == 0 {
            return wrong("the number of coordinates", "0".into(), "1 or more".into());
        }
        if self.names.len() != dim {
            return wrong(
                "the number of names",
                self.names.len().to_string(),
                format!("{dim}, one a coordinate"),
            );
        }
        if let Some(groups) = self.groups {
            if groups.index.len() != self.points.rows() {
                return wrong(
                    "the number of group indices",
                    groups.index.len().to_string(),
                    format!("{}, one a particle", self.points.rows()),
                );
            }
            if let Some(index) = groups.index.iter().find(|&&index| index >= groups.names.len()) {
                return wrong(
                    "a group index",
                    index.to_string(),
                    format!("below {}, the number of group names", groups.names.len()),
                );
            }
        }
        match self.density {
            None => Ok(()),
            Some(Density::Line { limits, log_density }) => {
                if dim != 1 {
                    return wrong("the density", "on a line".into(), expected_density(dim));
                }
                check_axis(limits, log_density.len())
            }
            Some(Density::Plane { x, y, log_density }) => {
                if dim != 2 {
                    return wrong("the density", "on a plane".into(), expected_density(dim));
                }
                check_axis(x, log_density.cols())?;
                check_axis(y, log_density.rows())
            }
        }
    }

    /// The rows whose coordinates are all finite.
    fn finite_rows(&self) -> Vec<usize> {
        (0..self.points.rows())
            .filter(|&i| self.points.row(i).iter().all(|value| value.is_finite()))
            .collect()
    }

    /// One coordinate of the given rows.
    fn coordinate(&self, rows: &[usize], coordinate: usize) -> Vec<f64> {
        rows.iter().map(|&i| self.points.row(i)[coordinate]).collect()
    }

    fn group_of(&self, row: usize) -> usize {
        self.groups.map_or(0, |groups| groups.index[row])
    }
}

fn expected_density(dim: usize) -> String {
    match dim {
        1 => "on a line, for one coordinate".into(),
        2 => "on a plane, for two coordinates".into(),
        _ => format!("none, for {dim} coordinates"),
    }
}

fn check_axis((low, high): (f64, f64), points: usize) -> Result<()> {
    // The bound keeps widths of windows, a few times the limits, away from overflow.
    let bound = window::LARGEST;
    if !(low < high && low >= -bound && high <= bound) {
        return Err(Error::Plot {
            what: "a limit of the density's grid",
            found: format!("{low} to {high}"),
            expected: "increasing and finite".into(),
        });
    }
    if points < 2 {
        return Err(Error::Plot {
            what: "the number of grid points of the density",
            found: points.to_string(),
            expected: "2 or more on every axis".into(),
        });
    }
    Ok(())
}

/// The limits that a plot without a density would give to a coordinate: where to evaluate one.
///
/// Values that are not finite are ignored, and so are a few far outliers.
///
/// ```
/// let (low, high) = steinflow_io::plot::limits_of(&[0.0, 1.0, 2.0]);
/// assert!(low < 0.0 && high > 2.0);
/// ```
pub fn limits_of(values: &[f64]) -> (f64, f64) {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let window = window::Window::around(&finite, None);
    (window.low, window.high)
}
