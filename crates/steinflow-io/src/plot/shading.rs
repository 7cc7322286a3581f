//! The target behind particles: regions of highest density, filled, darker inwards.

use steinflow::MatRef;

use super::canvas::{Canvas, Color, WHITE};
use super::contour::{Loop, MASSES, loops};
use super::frame::Frame;

/// One shade a region, from the widest inwards; light enough for dots to stand out.
const SHADES: [Color; MASSES.len()] = [
    Color(0xea, 0xf2, 0xfa),
    Color(0xd6, 0xe6, 0xf4),
    Color(0xb9, 0xd6, 0xea),
    Color(0x97, 0xc3, 0xdf),
    Color(0x70, 0xab, 0xd2),
    Color(0x4d, 0x93, 0xc3),
];

/// How far an outline may be off, in units of the canvas: less than can be seen.
const TOLERANCE: f64 = 0.06;

/// Outlines of the regions, to be drawn in one panel or in many.
pub struct Shading {
    low: (f64, f64),
    step: (f64, f64),
    loops: Vec<Loop>,
}

impl Shading {
    /// Regions of a log density on the grid between the limits, as in [`super::Density::Plane`].
    pub fn new(x: (f64, f64), y: (f64, f64), log_density: MatRef<'_, f64>) -> Self {
        let step = |(low, high): (f64, f64), points: usize| (high - low) / (points - 1) as f64;
        Self {
            low: (x.0, y.0),
            step: (step(x, log_density.cols()), step(y, log_density.rows())),
            loops: loops(log_density),
        }
    }

    pub fn draw(&self, canvas: &mut Canvas, frame: &Frame) {
        for curve in &self.loops {
            let corners = curve.corners.iter().map(|&(col, row)| {
                let (x, y) = (self.low.0 + col * self.step.0, self.low.1 + row * self.step.1);
                (frame.x_at(x), frame.y_at(y))
            });
            let shade = if curve.depth == 0 { WHITE } else { SHADES[curve.depth - 1] };
            canvas.polygon(&simplified(corners.collect()), shade);
        }
    }
}

/// What the shades mean.
pub fn note() -> String {
    let shares: Vec<String> =
        MASSES.iter().rev().map(|mass| format!("{:.0}", 100.0 * mass)).collect();
    format!("shaded: {} % of the target", shares.join(", "))
}

/// The outline without corners that lie on the way from one kept corner to the next: a grid has
/// far more of them than a picture can show.
fn simplified(corners: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if corners.len() < 8 {
        return corners;
    }
    let mut kept = vec![corners[0]];
    let mut from = 0;
    for to in 2..corners.len() {
        let (a, b) = (corners[from], corners[to]);
        let length = (b.0 - a.0).hypot(b.1 - a.1);
        let off = |p: (f64, f64)| ((b.0 - a.0) * (p.1 - a.1) - (b.1 - a.1) * (p.0 - a.0)).abs();
        if corners[from + 1..to].iter().any(|&p| off(p) > TOLERANCE * length) {
            from = to - 1;
            kept.push(corners[from]);
        }
    }
    kept.push(corners[corners.len() - 1]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outlines_lose_corners_but_not_their_shape() {
        let circle: Vec<(f64, f64)> = (0..2000)
            .map(|i| f64::from(i) / 2000.0 * std::f64::consts::TAU)
            .map(|angle| (100.0 * angle.cos(), 100.0 * angle.sin()))
            .collect();
        let found = simplified(circle);
        assert!((20..200).contains(&found.len()), "{}", found.len());
        for pair in found.windows(2) {
            let middle = (0.5 * (pair[0].0 + pair[1].0), 0.5 * (pair[0].1 + pair[1].1));
            assert!((middle.0.hypot(middle.1) - 100.0).abs() < 2.0 * TOLERANCE, "{middle:?}");
        }
        let square = vec![(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)];
        assert_eq!(simplified(square.clone()), square);
    }
}
