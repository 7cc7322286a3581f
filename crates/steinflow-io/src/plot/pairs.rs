//! Three coordinates or more: every pair of the first four, with histograms on the diagonal.

use super::ParticlePlot;
use super::canvas::Canvas;
use super::frame::{BELOW, Frame, room_left};
use super::header::{Header, notes_on_missing};
use super::histogram::Bars;
use super::plane::{draw_particles, thinned};
use super::ticks::Ticks;
use super::window::Window;

/// More panels than this would be too small to read.
const MOST_COORDINATES: usize = 4;
/// More dots than this fill a small panel.
const MOST_DOTS: usize = 2000;
const WIDTH: f64 = 560.0;
const RIGHT: f64 = 14.0;
const GAP: f64 = 9.0;

pub fn draw(plot: &ParticlePlot<'_>) -> Canvas {
    let dim = plot.points.cols();
    let shown = dim.min(MOST_COORDINATES);
    let rows = plot.finite_rows();
    let coordinates: Vec<Vec<f64>> = (0..shown).map(|k| plot.coordinate(&rows, k)).collect();
    let windows: Vec<Window> =
        coordinates.iter().map(|values| Window::around(values, None)).collect();
    // The histogram of the first coordinate has no y axis.
    let y_ticks: Vec<Ticks> = windows[1..].iter().map(|&window| Ticks::new(window, 3)).collect();
    let left = room_left(&y_ticks);

    let outside = (0..rows.len())
        .filter(|&i| (0..shown).any(|k| !windows[k].contains(coordinates[k][i])))
        .count();
    let mut notes = notes_on_missing(plot.points.rows() - rows.len(), outside);
    let (dots, note) = thinned(&rows, MOST_DOTS);
    notes.extend(note);
    if shown < dim {
        notes.insert(0, format!("first {shown} of {dim} coordinates"));
    }
    let header =
        Header::new(plot.title, plot.caption, &notes, (left, WIDTH - RIGHT)).with_groups(plot);
    let top = header.height();
    let side = (WIDTH - left - RIGHT - GAP * (shown - 1) as f64) / shown as f64;
    let height = top + shown as f64 * side + (shown - 1) as f64 * GAP + BELOW;

    let mut canvas = Canvas::new(WIDTH, height);
    header.draw(&mut canvas);
    for row in 0..shown {
        for col in 0..=row {
            let bars = (row == col).then(|| Bars::new(&coordinates[row], windows[row]));
            let frame = Frame {
                left: left + col as f64 * (side + GAP),
                top: top + row as f64 * (side + GAP),
                width: side,
                height: side,
                x: windows[col],
                y: bars.as_ref().map_or(windows[row], Bars::window),
                // What reaches out of one panel would meet the labels of the next.
                overhang: 0.0,
            };
            match bars {
                Some(bars) => bars.draw(&mut canvas, &frame),
                None => draw_particles(plot, &dots, (col, row), &mut canvas, &frame, 0.75),
            }
            frame.draw_box(&mut canvas);
            if row + 1 == shown {
                frame.draw_x_axis(&mut canvas, 3, &plot.names[col]);
            }
            // The heights of a histogram on the diagonal are of no use, so its axis stays bare.
            if col == 0 && row > 0 {
                frame.draw_y_axis(&mut canvas, &y_ticks[row - 1], &plot.names[row], left);
            }
        }
    }
    canvas
}
