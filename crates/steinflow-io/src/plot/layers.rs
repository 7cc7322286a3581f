//! What a panel shows over the density: dots, rings, paths and arrows, cut off at the panel's edge.

use steinflow::MatRef;

use super::canvas::{Canvas, Color, PARTICLES};
use super::frame::Frame;
use super::plane::dot_style;

/// In how many shades a path goes from pale to full colour, at most.
const MOST_SHADES: usize = 12;
/// Shorter moves than this, in units of the canvas, are joined with the next.
const LEAST_MOVE: f64 = 0.1;
/// What is left of the colour at the start of a path.
const PALEST: f64 = 0.25;

/// One layer of a panel. Points are rows (x, y); colours are numbers of the palette of groups, which
/// the colour-blind can tell apart and which repeats after the eighth.
#[derive(Clone, Copy, Debug)]
pub enum Layer<'a> {
    /// A dot a row; smaller the more there are.
    Dots {
        /// Where.
        points: MatRef<'a, f64>,
        /// Which colour.
        color: usize,
    },
    /// An open circle a row: where something starts.
    Rings {
        /// Where.
        points: MatRef<'a, f64>,
        /// Which colour.
        color: usize,
    },
    /// A line through the rows, paler towards its start.
    Path {
        /// One place after the other.
        points: MatRef<'a, f64>,
        /// Which colour.
        color: usize,
        /// Width of the line; 1 is usual.
        width: f64,
    },
    /// A line through the rows, as dark everywhere: values of a function, at increasing x.
    Line {
        /// One place after the other.
        points: MatRef<'a, f64>,
        /// Which colour.
        color: usize,
        /// Width of the line; 1 is usual.
        width: f64,
    },
    /// An arrow from every row of `at`, by the same row of `by`.
    Arrows {
        /// Where arrows begin.
        at: MatRef<'a, f64>,
        /// How far they reach, in the units of the axes.
        by: MatRef<'a, f64>,
        /// Which colour.
        color: usize,
    },
}

impl Layer<'_> {
    /// The matrices of points, all of which must have two columns.
    pub(super) fn points(&self) -> impl Iterator<Item = MatRef<'_, f64>> {
        match *self {
            Self::Dots { points, .. }
            | Self::Rings { points, .. }
            | Self::Path { points, .. }
            | Self::Line { points, .. } => [Some(points), None],
            Self::Arrows { at, by, .. } => [Some(at), Some(by)],
        }
        .into_iter()
        .flatten()
    }

    /// How many dots are not finite, and how many others the panel does not show.
    pub(super) fn missing(&self, frame: &Frame) -> (usize, usize) {
        let Self::Dots { points, .. } = *self else { return (0, 0) };
        let is_finite = |&(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
        let finite = rows(points).filter(is_finite).count();
        let shown = rows(points).filter(|&at| frame.contains(at)).count();
        (points.rows() - finite, finite - shown)
    }

    /// Draws the layer; `scale` shrinks marks in small panels.
    pub(super) fn draw(&self, canvas: &mut Canvas, frame: &Frame, scale: f64) {
        match *self {
            Self::Dots { points, color } => {
                let (radius, opacity) = dot_style(points.rows(), scale);
                for at in rows(points).filter(|&at| frame.contains(at)) {
                    canvas.dot(frame.at(at), radius, palette(color), opacity, radius > 1.9);
                }
            }
            Self::Rings { points, color } => {
                for at in rows(points).filter(|&at| frame.contains(at)) {
                    canvas.ring(frame.at(at), 3.4 * scale, palette(color));
                }
            }
            Self::Path { points, color, width } => {
                draw_path(canvas, frame, points, palette(color), width);
            }
            Self::Line { points, color, width } => {
                let places: Vec<(f64, f64)> = rows(points).map(|at| frame.at(at)).collect();
                for pair in places.windows(2) {
                    if let Some((from, to)) = frame.clipped(pair[0], pair[1]) {
                        canvas.line(vec![from, to], palette(color), width);
                    }
                }
            }
            Self::Arrows { at, by, color } => {
                for (at, by) in rows(at).zip(rows(by)) {
                    let (tail, tip) = (frame.at(at), frame.at((at.0 + by.0, at.1 + by.1)));
                    // A head cut off at the edge would point nowhere.
                    if frame.contains(at) && frame.contains((at.0 + by.0, at.1 + by.1)) {
                        canvas.arrow(tail, tip, palette(color), 1.2 * scale);
                    } else if let Some((tail, tip)) = frame.clipped(tail, tip) {
                        canvas.line(vec![tail, tip], palette(color), 1.2 * scale);
                    }
                }
            }
        }
    }
}

fn palette(color: usize) -> Color {
    PARTICLES[color % PARTICLES.len()]
}

fn rows(points: MatRef<'_, f64>) -> impl Iterator<Item = (f64, f64)> {
    (0..points.rows()).map(move |i| (points.row(i)[0], points.row(i)[1]))
}

/// Joins what lies inside of the panel into as few lines as shades and edges allow.
fn draw_path(
    canvas: &mut Canvas,
    frame: &Frame,
    points: MatRef<'_, f64>,
    color: Color,
    width: f64,
) {
    let length = |from: (f64, f64), to: (f64, f64)| (to.0 - from.0).hypot(to.1 - from.1);
    let mut places: Vec<(f64, f64)> = Vec::new();
    for (i, at) in rows(points).map(|at| frame.at(at)).enumerate() {
        let is_end = i + 1 == points.rows();
        // Written so that a place that is not finite is kept, as a gap.
        if is_end || !places.last().is_some_and(|&last| length(last, at) < LEAST_MOVE) {
            places.push(at);
        }
    }
    // By length, not by time: a path that soon comes to rest would be pale all over.
    let covered = |pair: &[(f64, f64)]| {
        let length = length(pair[0], pair[1]);
        if length.is_finite() { length } else { 0.0 }
    };
    let total: f64 = places.windows(2).map(covered).sum();
    let shades = (places.len() / 3).clamp(2, MOST_SHADES);
    let mut so_far = 0.0;
    let mut line: Vec<(f64, f64)> = Vec::new();
    let mut shade = 0;
    let mut finish = |line: &mut Vec<(f64, f64)>, shade: usize| {
        let share = PALEST + (1.0 - PALEST) * shade as f64 / (shades - 1) as f64;
        if line.len() > 1 {
            canvas.line(std::mem::take(line), color.faded(share), width);
        } else {
            line.clear();
        }
    };
    for pair in places.windows(2) {
        so_far += covered(pair);
        let own_shade = ((so_far / total * shades as f64) as usize).min(shades - 1);
        let inside = frame.clipped(pair[0], pair[1]);
        let goes_on =
            own_shade == shade && inside.is_some_and(|(start, _)| line.last() == Some(&start));
        if !goes_on {
            finish(&mut line, shade);
            shade = own_shade;
        }
        if let Some((start, end)) = inside {
            if line.is_empty() {
                line.push(start);
            }
            line.push(end);
        }
    }
    finish(&mut line, shade);
}
