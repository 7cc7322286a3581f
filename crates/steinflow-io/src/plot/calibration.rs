//! Predictions beside the truth: predicted means and intervals against the targets, and a histogram
//! of where in its predictive distribution each target fell.

use super::Figure;
use super::canvas::{BARS, Canvas, DENSITY, GREY, PARTICLES, WHITE};
use super::frame::{BELOW, Frame, room_left};
use super::header::{Header, Mark};
use super::plane::thinned;
use super::ticks::Ticks;
use super::window::Window;
use crate::{Error, Result};

const PANEL: f64 = 330.0;
const RIGHT: f64 = 18.0;
/// More intervals than this run into one another.
const MOST_ROWS: usize = 400;

/// What to draw.
///
/// ```
/// use steinflow_io::plot::CalibrationPlot;
///
/// let figure = CalibrationPlot {
///     targets: &[1.0, 2.0, 3.0],
///     means: &[1.1, 1.9, 3.3],
///     intervals: &[(0.8, 1.4), (1.6, 2.2), (3.1, 3.5)],
///     interval_name: "90 % interval",
///     pit: &[1, 2],
///     target_name: "weight",
///     title: "Three rows",
///     caption: "nothing learnt from them",
/// }
/// .draw()?;
/// assert!(figure.svg().contains("predicted weight"));
/// # Ok::<(), steinflow_io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CalibrationPlot<'a> {
    /// What is true, a row an entry.
    pub targets: &'a [f64],
    /// What was predicted.
    pub means: &'a [f64],
    /// Between what limits it was predicted.
    pub intervals: &'a [(f64, f64)],
    /// For the legend.
    pub interval_name: &'a str,
    /// How many targets fell into each equal part of their predictive distribution; flat where the
    /// prediction is calibrated.
    pub pit: &'a [usize],
    /// For the axes.
    pub target_name: &'a str,
    /// First line.
    pub title: &'a str,
    /// Smaller line below.
    pub caption: &'a str,
}

impl CalibrationPlot<'_> {
    /// Draws the picture. Fails when the rows do not fit each other; never because of their values.
    pub fn draw(&self) -> Result<Figure> {
        let rows = self.targets.len();
        for found in [self.means.len(), self.intervals.len()] {
            if found != rows {
                let (what, expected) = ("the number of predictions", format!("{rows}, one a row"));
                return Err(Error::Plot { what, found: found.to_string(), expected });
            }
        }
        if self.pit.is_empty() {
            let (what, expected) = ("the number of bars", "1 or more".to_owned());
            return Err(Error::Plot { what, found: "0".to_owned(), expected });
        }
        Ok(Figure { canvas: self.canvas(), frames: Vec::new() })
    }

    fn canvas(&self) -> Canvas {
        // One scale for both axes, so that a perfect prediction is on the diagonal.
        let ends = self.intervals.iter().flat_map(|&(low, high)| [low, high]);
        let values = ends.chain(self.targets.iter().chain(self.means).copied());
        let window = Window::around(&values.collect::<Vec<_>>(), None);
        let y_ticks = Ticks::new(window, 6);
        let highest = self.pit.iter().copied().max().unwrap_or(0).max(1) as f64;
        let counts = Window { low: 0.0, high: 1.12 * highest };
        let count_ticks = whole(Ticks::new(counts, 5));
        let (room, count_room) = (room_left([&y_ticks]), room_left([&count_ticks]));
        let count_left = room + PANEL + RIGHT + count_room;
        let width = count_left + PANEL + RIGHT;

        let all: Vec<usize> = (0..self.targets.len()).collect();
        let (shown, note) = thinned(&all, MOST_ROWS);
        let notes: Vec<String> = note.into_iter().collect();
        let header = Header::new(self.title, self.caption, &notes, (room, width - RIGHT))
            .with_entry(Mark::Dot, PARTICLES[0], "predicted mean")
            .with_entry(Mark::Line, BARS, self.interval_name)
            .with_entry(Mark::Line, DENSITY, "a perfect prediction")
            .with_entry(Mark::Line, GREY, "calibrated");
        let top = header.height();
        let frame = |left, x, y| Frame {
            left,
            top,
            width: PANEL,
            height: PANEL,
            x,
            y,
            overhang: RIGHT - 4.0,
        };
        let mut canvas = Canvas::new(width, top + PANEL + BELOW);
        header.draw(&mut canvas);

        let against = frame(room, window, window);
        self.draw_predictions(&mut canvas, &against, &shown);
        against.draw_box(&mut canvas);
        against.draw_x_axis(&mut canvas, 5, self.target_name);
        let label = format!("predicted {}", self.target_name);
        against.draw_y_axis(&mut canvas, &y_ticks, &label, room);

        let ranks = frame(count_left, Window { low: 0.0, high: 1.0 }, counts);
        self.draw_pit(&mut canvas, &ranks);
        ranks.draw_box(&mut canvas);
        ranks.draw_x_axis(&mut canvas, 5, "predicted probability of less than the target");
        ranks.draw_y_axis(&mut canvas, &count_ticks, "rows", count_room);
        canvas
    }

    fn draw_predictions(&self, canvas: &mut Canvas, frame: &Frame, rows: &[usize]) {
        let inside = |row: &&usize| {
            frame.x.contains(self.targets[**row]) && frame.y.contains(self.means[**row])
        };
        for &row in rows.iter().filter(inside) {
            let x = frame.x_at(self.targets[row]);
            let (low, high) = self.intervals[row];
            let end = |value: f64| (x, frame.y_at(value.clamp(frame.y.low, frame.y.high)));
            canvas.line(vec![end(low), end(high)], BARS, 1.2);
        }
        let end = |value: f64| (frame.x_at(value), frame.y_at(value));
        canvas.line(vec![end(frame.x.low), end(frame.x.high)], DENSITY, 1.4);
        // Smaller the more there are, so that each can still be told.
        let radius = (9.0 * (rows.len().max(1) as f64).powf(-0.25)).clamp(1.6, 3.4);
        for &row in rows.iter().filter(inside) {
            let at = (frame.x_at(self.targets[row]), frame.y_at(self.means[row]));
            canvas.dot(at, radius, PARTICLES[0], 0.9, radius > 2.2);
        }
    }

    fn draw_pit(&self, canvas: &mut Canvas, frame: &Frame) {
        let bins = self.pit.len() as f64;
        let base = frame.y_at(0.0);
        for (i, &count) in self.pit.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (from, to) = (frame.x_at(i as f64 / bins), frame.x_at((i + 1) as f64 / bins));
            let top = frame.y_at(count as f64);
            canvas.bar((from, top), (to - from, base - top), BARS, WHITE);
        }
        let level = frame.y_at(self.pit.iter().sum::<usize>() as f64 / bins);
        canvas.line(vec![(frame.left, level), (frame.left + frame.width, level)], GREY, 1.4);
    }
}

/// The ticks at whole numbers: there is no half a row.
fn whole(mut ticks: Ticks) -> Ticks {
    let is_whole: Vec<bool> = ticks.positions.iter().map(|x| x.fract() == 0.0).collect();
    for (label, &is_whole) in ticks.labels.iter_mut().zip(&is_whole) {
        *label = if is_whole {
            label.split('.').next().unwrap_or_default().to_owned()
        } else {
            String::new()
        };
    }
    ticks
}
