//! Two coordinates: particles over the regions of highest density.

use super::canvas::{Canvas, PARTICLES};
use super::frame::{BELOW, Frame, room_left};
use super::header::{Header, notes_on_missing};
use super::shading::{self, Shading};
use super::ticks::Ticks;
use super::window::Window;
use super::{Density, ParticlePlot};

const WIDTH: f64 = 500.0;
/// The height of a panel whose axes have scales of their own.
const FREE_HEIGHT: f64 = 400.0;
/// The most that a panel with one scale for both axes may take.
const MOST_HEIGHT: f64 = 540.0;
/// Axes whose ranges differ by no more than this factor get one scale, so that a circle is round.
/// Beyond it they hardly share a unit, and one scale would leave the panel a strip.
const LARGEST_RATIO: f64 = 1.6;
/// More dots than this hide where they are densest, and the target below.
const MOST_DOTS: usize = 5000;
const RIGHT: f64 = 18.0;

pub fn draw(plot: &ParticlePlot<'_>) -> Canvas {
    let rows = plot.finite_rows();
    let (given_x, given_y) = match plot.density {
        Some(Density::Plane { x, y, .. }) => (Some(x), Some(y)),
        _ => (None, None),
    };
    let x = Window::around(&plot.coordinate(&rows, 0), given_x);
    let y = Window::around(&plot.coordinate(&rows, 1), given_y);
    let y_ticks = Ticks::new(y, 6);
    let room = room_left([&y_ticks]);
    let (width, height) = panel_size(x, y, WIDTH - room - RIGHT);
    // A panel narrower than the room stands in its middle.
    let left = room + 0.5 * (WIDTH - room - RIGHT - width);

    let outside = rows
        .iter()
        .filter(|&&i| !(x.contains(plot.points.row(i)[0]) && y.contains(plot.points.row(i)[1])))
        .count();
    let mut notes = notes_on_missing(plot.points.rows() - rows.len(), outside);
    let (dots, note) = thinned(&rows, MOST_DOTS);
    notes.extend(note);
    if plot.density.is_some() {
        notes.push(shading::note());
    }
    let header =
        Header::new(plot.title, plot.caption, &notes, (left, WIDTH - RIGHT)).with_groups(plot);
    let top = header.height();
    let frame = Frame { left, top, width, height, x, y, overhang: RIGHT - 4.0 };

    let mut canvas = Canvas::new(WIDTH, top + height + BELOW);
    header.draw(&mut canvas);
    if let Some(Density::Plane { x, y, log_density }) = plot.density {
        Shading::new(x, y, log_density).draw(&mut canvas, &frame);
    }
    draw_particles(plot, &dots, (0, 1), &mut canvas, &frame, 1.0);
    frame.draw_box(&mut canvas);
    frame.draw_x_axis(&mut canvas, 7, &plot.names[0]);
    frame.draw_y_axis(&mut canvas, &y_ticks, &plot.names[1], room);
    canvas
}

/// Width and height of a panel that shows `x` by `y` within the given width.
fn panel_size(x: Window, y: Window, width: f64) -> (f64, f64) {
    let ratio = y.width() / x.width();
    if !(1.0 / LARGEST_RATIO..=LARGEST_RATIO).contains(&ratio) {
        return (width, FREE_HEIGHT);
    }
    let height = (width * ratio).min(MOST_HEIGHT);
    (height / ratio, height)
}

/// At most `most` of the rows, evenly spaced, and a note if that is not all of them.
pub fn thinned(rows: &[usize], most: usize) -> (Vec<usize>, Option<String>) {
    let count = rows.len();
    if count <= most {
        return (rows.to_vec(), None);
    }
    let dots = (0..most).map(|i| rows[i * count / most]).collect();
    (dots, Some(format!("dots: {most} of {count} shown")))
}

/// Dots for two coordinates.
pub fn draw_particles(
    plot: &ParticlePlot<'_>,
    rows: &[usize],
    (across, up): (usize, usize),
    canvas: &mut Canvas,
    frame: &Frame,
    scale: f64,
) {
    let (radius, opacity) = dot_style(rows.len(), scale);
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

/// Radius and opacity of dots, smaller and more transparent the more of them there are.
pub fn dot_style(count: usize, scale: f64) -> (f64, f64) {
    let count = count.max(1) as f64;
    let radius = scale * (7.6 * count.powf(-0.2)).clamp(1.2, 4.2);
    (radius, (3.4 * count.powf(-0.28)).clamp(0.3, 0.95))
}
