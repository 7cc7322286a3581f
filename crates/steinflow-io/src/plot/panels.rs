//! Several panels with the same axes and the same density, to compare what happens in them.

use super::canvas::{Anchor, Canvas, INK, PARTICLES, WHITE, shortened, text_width};
use super::frame::{BELOW, Frame, TICK_SIZE, room_left};
use super::header::{Header, Mark, notes_on_missing};
use super::layers::Layer;
use super::shading::{self, Shading};
use super::ticks::Ticks;
use super::window::Window;
use super::{Density, Figure, check_axis};
use crate::{Error, Result};

const TITLE_SIZE: u32 = 13;
/// Room above a panel for its title.
const ABOVE: f64 = 20.0;
const GAP: f64 = 9.0;
const RIGHT: f64 = 14.0;
/// Marks are drawn in full size in a panel of this width.
const FULL_WIDTH: f64 = 260.0;
/// A panel is never higher than so many times its width.
const STEEPEST: f64 = 1.6;

/// A figure of panels.
///
/// ```
/// use steinflow::Matrix;
/// use steinflow_io::plot::{Key, Layer, Mark, Panel, Panels};
///
/// let spiral = Matrix::from_fn(60, 2, |i, j| {
///     let angle = i as f64 * 0.2;
///     0.1 * angle * if j == 0 { angle.cos() } else { angle.sin() }
/// });
/// let path = Layer::Path { points: spiral.as_ref(), color: 0, width: 1.0 };
/// let dots = Layer::Dots { points: spiral.as_ref(), color: 1 };
/// let panel = |title: &str, layers| Panel { title: title.into(), layers, corner: vec![] };
/// let figure = Panels {
///     title: "Spiral",
///     caption: "two views",
///     names: ["x", "y"],
///     x: (-1.5, 1.5),
///     y: (-1.5, 1.5),
///     density: None,
///     columns: 2,
///     panels: &[panel("a path", vec![path]), panel("dots", vec![dots])],
///     legend: &[Key { mark: Mark::Line, color: 0, name: "path" }],
/// }
/// .draw()?;
/// assert!(figure.svg().contains("a path"));
/// # Ok::<(), steinflow_io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Panels<'a> {
    /// First line.
    pub title: &'a str,
    /// Smaller lines below.
    pub caption: &'a str,
    /// Labels of the axes.
    pub names: [&'a str; 2],
    /// Limits of x in every panel.
    pub x: (f64, f64),
    /// Limits of y in every panel.
    pub y: (f64, f64),
    /// Shaded behind every panel; a [`Density::Plane`].
    pub density: Option<Density<'a>>,
    /// Panels side by side; the others follow below.
    pub columns: usize,
    /// From the left, row by row.
    pub panels: &'a [Panel<'a>],
    /// What the marks mean.
    pub legend: &'a [Key<'a>],
}

/// One panel.
#[derive(Clone, Debug)]
pub struct Panel<'a> {
    /// Stands above it.
    pub title: String,
    /// Drawn in this order.
    pub layers: Vec<Layer<'a>>,
    /// Lines in the lower left corner.
    pub corner: Vec<String>,
}

/// A legend entry.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// What it looks like.
    pub mark: Mark,
    /// A number of the palette, as in [`Layer`].
    pub color: usize,
    /// What it means.
    pub name: &'a str,
}

impl Panels<'_> {
    /// Draws the figure.
    ///
    /// Fails when limits are not increasing, when there is no panel or column, when points are not
    /// pairs, or when the density is not on a plane; never because of the points' values.
    pub fn draw(&self) -> Result<Figure> {
        self.check()?;
        let columns = self.columns.min(self.panels.len());
        // Narrow enough for text to be read when the figure is as wide as a page's text.
        let full_width = match columns {
            1 => 400.0,
            2 => 500.0,
            _ => 160.0 * columns as f64,
        };
        let (x, y) = (window(self.x), window(self.y));
        let y_ticks = Ticks::new(y, 5);
        let left = room_left([&y_ticks]);
        let width = (full_width - left - RIGHT - GAP * (columns - 1) as f64) / columns as f64;
        let height = width * (y.width() / x.width()).clamp(1.0 / STEEPEST, STEEPEST);
        let frame = |place: usize, top: f64| Frame {
            left: left + (place % columns) as f64 * (width + GAP),
            top: top + ABOVE + (place / columns) as f64 * (height + ABOVE + GAP),
            width,
            height,
            x,
            y,
            overhang: if columns == 1 { RIGHT - 4.0 } else { 0.0 },
        };

        let (mut not_finite, mut outside) = (0, 0);
        for layer in self.panels.iter().flat_map(|panel| &panel.layers) {
            let missing = layer.missing(&frame(0, 0.0));
            (not_finite, outside) = (not_finite + missing.0, outside + missing.1);
        }
        let mut notes = notes_on_missing(not_finite, outside);
        if self.density.is_some() {
            notes.push(shading::note());
        }
        let mut header = Header::new(self.title, self.caption, &notes, (left, full_width - RIGHT));
        for key in self.legend {
            header = header.with_entry(key.mark, PARTICLES[key.color % PARTICLES.len()], key.name);
        }
        let top = header.height();
        let rows = self.panels.len().div_ceil(columns) as f64;
        let full_height = top + rows * (height + ABOVE) + (rows - 1.0) * GAP + BELOW;

        let mut canvas = Canvas::new(full_width, full_height);
        header.draw(&mut canvas);
        let shading = match self.density {
            Some(Density::Plane { x, y, log_density }) => Some(Shading::new(x, y, log_density)),
            _ => None,
        };
        for (place, panel) in self.panels.iter().enumerate() {
            let frame = frame(place, top);
            if let Some(shading) = &shading {
                shading.draw(&mut canvas, &frame);
            }
            for layer in &panel.layers {
                layer.draw(&mut canvas, &frame, (width / FULL_WIDTH).clamp(0.6, 1.0));
            }
            draw_corner(&mut canvas, &frame, &panel.corner);
            frame.draw_box(&mut canvas);
            let title = shortened(&panel.title, TITLE_SIZE, width);
            let at = (frame.left, frame.top - 6.0);
            canvas.text(at, TITLE_SIZE, INK, Anchor::Start, &title);
            if place + columns >= self.panels.len() {
                frame.draw_x_axis(&mut canvas, 4, self.names[0]);
            }
            if place % columns == 0 {
                frame.draw_y_axis(&mut canvas, &y_ticks, self.names[1], left);
            }
        }
        let frames = (0..self.panels.len()).map(|place| frame(place, top)).collect();
        Ok(Figure { canvas, frames })
    }

    fn check(&self) -> Result<()> {
        let wrong = |what, found: String, expected: &str| {
            Err(Error::Plot { what, found, expected: expected.into() })
        };
        if self.panels.is_empty() || self.columns == 0 {
            let found = format!("{} panels in {} columns", self.panels.len(), self.columns);
            return wrong("the layout", found, "one or more of both");
        }
        check_axis(self.x, 2)?;
        check_axis(self.y, 2)?;
        match self.density {
            Some(Density::Line { .. }) => {
                return wrong("the density", "on a line".into(), "on a plane");
            }
            Some(Density::Plane { x, y, log_density }) => {
                check_axis(x, log_density.cols())?;
                check_axis(y, log_density.rows())?;
            }
            None => {}
        }
        let mut points = self.panels.iter().flat_map(|panel| &panel.layers).flat_map(Layer::points);
        match points.find(|points| points.cols() != 2) {
            Some(points) => {
                wrong("the number of coordinates", points.cols().to_string(), "2, x and y")
            }
            None => Ok(()),
        }
    }
}

fn window((low, high): (f64, f64)) -> Window {
    Window { low, high }
}

/// Lines over a white ground, so that whatever lies below does not make them hard to read.
fn draw_corner(canvas: &mut Canvas, frame: &Frame, lines: &[String]) {
    let line_height = 1.2 * f64::from(TICK_SIZE);
    let widest = lines.iter().map(|line| text_width(line, TICK_SIZE)).fold(0.0, f64::max);
    let (width, height) = (widest.min(frame.width) + 4.0, lines.len() as f64 * line_height + 3.0);
    let bottom = frame.top + frame.height;
    if !lines.is_empty() {
        canvas.bar((frame.left, bottom - height), (width, height), WHITE, WHITE);
    }
    for (i, line) in lines.iter().rev().enumerate() {
        let at = (frame.left + 4.0, bottom - 4.5 - i as f64 * line_height);
        let line = shortened(line, TICK_SIZE, frame.width - 6.0);
        canvas.text(at, TICK_SIZE, INK, Anchor::Start, &line);
    }
}
