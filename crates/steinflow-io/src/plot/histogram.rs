//! One coordinate: a histogram of the particles under the curve of the density.

use super::canvas::{BARS, Canvas, DENSITY, WHITE};
use super::frame::{BELOW, Frame, room_left};
use super::header::{Header, Mark, notes_on_missing};
use super::ticks::Ticks;
use super::window::Window;
use super::{Density, ParticlePlot};

const WIDTH: f64 = 500.0;
const PANEL_HEIGHT: f64 = 300.0;
const RIGHT: f64 = 18.0;

pub fn draw(plot: &ParticlePlot<'_>) -> Canvas {
    let values = plot.coordinate(&plot.finite_rows(), 0);
    let curve = match plot.density {
        Some(Density::Line { limits, log_density }) => {
            Some((limits, normalised(limits, log_density)))
        }
        _ => None,
    };
    let window = Window::around(&values, curve.as_ref().map(|(limits, _)| *limits));
    let outside = values.iter().filter(|&&value| !window.contains(value)).count();
    let bars = Bars::new(&values, window);

    let highest_curve =
        curve.iter().flat_map(|(_, heights)| heights).copied().fold(0.0_f64, f64::max);
    let y = Window { low: 0.0, high: height_limit(bars.highest().max(highest_curve)) };
    let y_ticks = Ticks::new(y, 5);
    let left = room_left([&y_ticks]);

    let notes = notes_on_missing(plot.points.rows() - values.len(), outside);
    let mut header = Header::new(plot.title, plot.caption, &notes, (left, WIDTH - RIGHT));
    if curve.is_some() {
        header = header.with_entry(Mark::Bar, BARS, "particles").with_entry(
            Mark::Line,
            DENSITY,
            "target density",
        );
    }
    let top = header.height();
    let frame = Frame {
        left,
        top,
        width: WIDTH - left - RIGHT,
        height: PANEL_HEIGHT,
        x: window,
        y,
        overhang: RIGHT - 4.0,
    };

    let mut canvas = Canvas::new(WIDTH, top + PANEL_HEIGHT + BELOW);
    header.draw(&mut canvas);
    bars.draw(&mut canvas, &frame);
    if let Some((limits, heights)) = curve {
        let step = (limits.1 - limits.0) / (heights.len() - 1) as f64;
        let points = heights
            .iter()
            .enumerate()
            .map(|(i, &height)| (frame.x_at(limits.0 + i as f64 * step), frame.y_at(height)))
            .collect();
        canvas.line(points, DENSITY, 2.0);
    }
    frame.draw_box(&mut canvas);
    frame.draw_x_axis(&mut canvas, 7, &plot.names[0]);
    frame.draw_y_axis(&mut canvas, &y_ticks, "density", left);
    canvas
}

/// The top of an axis that starts at zero.
fn height_limit(highest: f64) -> f64 {
    if highest > 0.0 && highest.is_finite() { 1.08 * highest } else { 1.0 }
}

/// The density on its grid, with area 1 by the trapezoidal rule.
fn normalised(limits: (f64, f64), log_density: &[f64]) -> Vec<f64> {
    let peak = log_density.iter().copied().filter(|v| v.is_finite()).fold(f64::NAN, f64::max);
    let relative: Vec<f64> = log_density
        .iter()
        .map(|&value| if value.is_finite() { (value - peak).exp() } else { 0.0 })
        .collect();
    let step = (limits.1 - limits.0) / (relative.len() - 1) as f64;
    let area: f64 = relative.windows(2).map(|pair| 0.5 * step * (pair[0] + pair[1])).sum();
    let scale = if area > 0.0 { 1.0 / area } else { 0.0 };
    relative.into_iter().map(|value| value * scale).collect()
}

/// Bars of a histogram whose area is the share of particles that is shown.
pub struct Bars {
    start: f64,
    width: f64,
    heights: Vec<f64>,
}

impl Bars {
    /// Bins by Freedman and Diaconis's rule, 5 to 60 of them over the shown particles.
    pub fn new(values: &[f64], window: Window) -> Self {
        let mut shown: Vec<f64> =
            values.iter().copied().filter(|&value| window.contains(value)).collect();
        shown.sort_unstable_by(f64::total_cmp);
        let Some((&first, &last)) = shown.first().zip(shown.last()) else {
            return Self { start: window.low, width: window.width(), heights: vec![0.0] };
        };
        // One value, or nearly so, gets one narrow bar.
        if last - first <= 1e-6 * window.width() {
            let width = window.width() / 20.0;
            let height = shown.len() as f64 / (values.len() as f64 * width);
            return Self { start: first - 0.5 * width, width, heights: vec![height] };
        }
        let quartile = |share: f64| shown[((shown.len() - 1) as f64 * share).round() as usize];
        let advised = 2.0 * (quartile(0.75) - quartile(0.25)) / (shown.len() as f64).cbrt();
        let bins = ((last - first) / advised).ceil().clamp(5.0, 60.0) as usize;
        let width = (last - first) / bins as f64;
        let mut heights = vec![0.0; bins];
        for value in shown {
            let bin = (((value - first) / width) as usize).min(bins - 1);
            heights[bin] += 1.0 / (values.len() as f64 * width);
        }
        Self { start: first, width, heights }
    }

    pub fn highest(&self) -> f64 {
        self.heights.iter().copied().fold(0.0, f64::max)
    }

    /// The axis on which the bars fill a panel.
    pub fn window(&self) -> Window {
        Window { low: 0.0, high: height_limit(self.highest()) }
    }

    pub fn draw(&self, canvas: &mut Canvas, frame: &Frame) {
        let base = frame.y_at(0.0);
        for (i, &height) in self.heights.iter().enumerate().filter(|(_, height)| **height > 0.0) {
            let from = frame.x_at(self.start + i as f64 * self.width);
            let to = frame.x_at(self.start + (i + 1) as f64 * self.width);
            let top = frame.y_at(height);
            canvas.bar((from, top), (to - from, base - top), BARS, WHITE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_of_the_bars_is_the_share_that_is_shown() {
        let values: Vec<f64> = (0..1000).map(|i| (f64::from(i) * 0.618).fract() * 10.0).collect();
        let area = |window| {
            let bars = Bars::new(&values, window);
            bars.heights.iter().sum::<f64>() * bars.width
        };
        assert!((area(Window { low: -1.0, high: 11.0 }) - 1.0).abs() < 1e-12);
        assert!((area(Window { low: -1.0, high: 5.0 }) - 0.5).abs() < 1e-2);
    }

    #[test]
    fn the_curve_has_area_one_whatever_its_constant() {
        for constant in [0.0, 5000.0, -5000.0] {
            let log_density: Vec<f64> =
                (0..201).map(|i| constant - 0.5 * (f64::from(i) * 0.05 - 5.0).powi(2)).collect();
            let heights = normalised((-5.0, 5.0), &log_density);
            assert!((heights[100] - 1.0 / std::f64::consts::TAU.sqrt()).abs() < 1e-5);
        }
        assert_eq!(normalised((0.0, 1.0), &[f64::NAN, f64::NEG_INFINITY]), [0.0, 0.0]);
    }
}
