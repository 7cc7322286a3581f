//! Two coordinates: particles over the regions of highest density.

use super::canvas::{Canvas, Color, PARTICLES, WHITE};
use super::contour::{MASSES, loops};
use super::frame::{BELOW, Frame, room_left};
use super::header::{Header, notes_on_missing};
use super::ticks::Ticks;
use super::window::Window;
use super::{Density, ParticlePlot};

const WIDTH: f64 = 500.0;
const PANEL_HEIGHT: f64 = 400.0;
const RIGHT: f64 = 18.0;

/// One shade a region, from the widest inwards; light enough for dots to stand out.
const SHADES: [Color; MASSES.len()] = [
    Color(0xea, 0xf2, 0xfa),
    Color(0xd6, 0xe6, 0xf4),
    Color(0xb9, 0xd6, 0xea),
    Color(0x97, 0xc3, 0xdf),
    Color(0x70, 0xab, 0xd2),
    Color(0x4d, 0x93, 0xc3),
];

pub fn draw(plot: &ParticlePlot<'_>) -> Canvas {
    let rows = plot.finite_rows();
    let (given_x, given_y) = match plot.density {
        Some(Density::Plane { x, y, .. }) => (Some(x), Some(y)),
        _ => (None, None),
    };
    let x = Window::around(&plot.coordinate(&rows, 0), given_x);
    let y = Window::around(&plot.coordinate(&rows, 1), given_y);
    let x_ticks = Ticks::new(x, 7);
    let y_ticks = Ticks::new(y, 6);
    let left = room_left([&y_ticks]);

    let outside = rows
        .iter()
        .filter(|&&i| !(x.contains(plot.points.row(i)[0]) && y.contains(plot.points.row(i)[1])))
        .count();
    let mut notes = notes_on_missing(plot.points.rows() - rows.len(), outside);
    if plot.density.is_some() {
        let shares: Vec<String> =
            MASSES.iter().rev().map(|mass| format!("{:.0}", 100.0 * mass)).collect();
        notes.push(format!("shaded: {} % of the target", shares.join(", ")));
    }
    let header = Header::new(plot, &notes, (left, WIDTH - RIGHT)).with_groups(plot);
    let top = header.height();
    let frame = Frame { left, top, width: WIDTH - left - RIGHT, height: PANEL_HEIGHT, x, y };

    let mut canvas = Canvas::new(WIDTH, top + PANEL_HEIGHT + BELOW);
    header.draw(&mut canvas);
    shade(plot, &mut canvas, &frame);
    draw_particles(plot, &rows, (0, 1), &mut canvas, &frame, 1.0);
    frame.draw_box(&mut canvas);
    frame.draw_x_axis(&mut canvas, &x_ticks, &plot.names[0]);
    frame.draw_y_axis(&mut canvas, &y_ticks, &plot.names[1], left);
    canvas
}

fn shade(plot: &ParticlePlot<'_>, canvas: &mut Canvas, frame: &Frame) {
    let Some(Density::Plane { x, y, log_density }) = plot.density else { return };
    let step_x = (x.1 - x.0) / (log_density.cols() - 1) as f64;
    let step_y = (y.1 - y.0) / (log_density.rows() - 1) as f64;
    for curve in loops(log_density) {
        let corners: Vec<(f64, f64)> = curve
            .corners
            .iter()
            .map(|&(col, row)| (frame.x_at(x.0 + col * step_x), frame.y_at(y.0 + row * step_y)))
            .collect();
        let shade = if curve.depth == 0 { WHITE } else { SHADES[curve.depth - 1] };
        canvas.polygon(&corners, shade);
    }
}

/// Dots for two coordinates, smaller and more transparent the more of them there are.
pub fn draw_particles(
    plot: &ParticlePlot<'_>,
    rows: &[usize],
    (across, up): (usize, usize),
    canvas: &mut Canvas,
    frame: &Frame,
    scale: f64,
) {
    let count = rows.len().max(1) as f64;
    let radius = scale * (7.6 * count.powf(-0.2)).clamp(1.2, 4.2);
    let opacity = (2.4 * count.powf(-0.2)).clamp(0.4, 0.95);
    // A white edge around small dots would leave little of the dot.
    let edged = radius > 2.2;
    for &i in rows {
        let (x, y) = (plot.points.row(i)[across], plot.points.row(i)[up]);
        if frame.x.contains(x) && frame.y.contains(y) {
            let color = PARTICLES[plot.group_of(i) % PARTICLES.len()];
            canvas.dot((frame.x_at(x), frame.y_at(y)), radius, color, opacity, edged);
        }
    }
}
