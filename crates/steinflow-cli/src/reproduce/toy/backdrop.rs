//! What stands behind the particles of every toy figure: the target, on the same axes.

use steinflow::Matrix;
use steinflow_io::plot::{Density, Key, Panel, Panels};
use steinflow_models::toy::TriCrescent;

use crate::error::Result;
use crate::grid::log_density_grid;

/// Points of the grid along an axis.
const POINTS: usize = 200;

pub struct Backdrop {
    x: (f64, f64),
    y: (f64, f64),
    log_density: Matrix<f64>,
}

impl Backdrop {
    /// The target between these limits.
    pub fn new(x: (f64, f64), y: (f64, f64)) -> Result<Self> {
        Ok(Self { x, y, log_density: log_density_grid::<f64>(&TriCrescent, &[x, y], POINTS)? })
    }

    /// A figure over the target.
    pub fn figure<'a>(
        &'a self,
        title: &'a str,
        caption: &'a str,
        columns: usize,
        panels: &'a [Panel<'a>],
        legend: &'a [Key<'a>],
    ) -> Panels<'a> {
        let density =
            Density::Plane { x: self.x, y: self.y, log_density: self.log_density.as_ref() };
        Panels {
            title,
            caption,
            names: ["x", "y"],
            x: self.x,
            y: self.y,
            density: Some(density),
            columns,
            panels,
            legend,
        }
    }
}
