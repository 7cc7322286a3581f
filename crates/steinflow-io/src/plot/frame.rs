//! One panel: a box with ticks around it, and the map from data to the canvas.

use super::canvas::{Anchor, Canvas, INK, shortened, text_width};
use super::ticks::Ticks;
use super::window::Window;

pub const TICK_SIZE: u32 = 12;
pub const LABEL_SIZE: u32 = 14;
const TICK_LENGTH: f64 = 4.0;
/// The least space between tick labels: wider than one inside a label.
const LABEL_GAP: f64 = 7.0;
const LINE_WIDTH: f64 = 0.8;

/// Room below a panel for tick labels and the axis label.
pub const BELOW: f64 = 44.0;

/// Two ends.
pub type Line = ((f64, f64), (f64, f64));

/// Where a panel is, and what it shows.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    pub x: Window,
    pub y: Window,
    /// How far tick labels may reach beyond the edges.
    pub overhang: f64,
}

impl Frame {
    pub fn x_at(&self, value: f64) -> f64 {
        self.left + (value - self.x.low) / self.x.width() * self.width
    }

    pub fn y_at(&self, value: f64) -> f64 {
        self.top + (self.y.high - value) / self.y.width() * self.height
    }

    /// Where a point (x, y) of the data is on the canvas.
    pub fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x_at(x), self.y_at(y))
    }

    /// Whether a point of the data is shown.
    pub fn contains(&self, (x, y): (f64, f64)) -> bool {
        self.x.contains(x) && self.y.contains(y)
    }

    /// The part of a line on the canvas that lies inside the panel, by Liang and Barsky; ends that
    /// are inside stay as they are, to the bit. None where nothing is, or an end is not finite.
    pub fn clipped(&self, from: (f64, f64), to: (f64, f64)) -> Option<Line> {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        // Each edge as (how fast the line nears it, how far the start is inside of it).
        let edges = [
            (-dx, from.0 - self.left),
            (dx, self.left + self.width - from.0),
            (-dy, from.1 - self.top),
            (dy, self.top + self.height - from.1),
        ];
        let (mut first, mut last) = (0.0_f64, 1.0_f64);
        for (speed, room) in edges {
            if !(speed.is_finite() && room.is_finite()) || (speed == 0.0 && room < 0.0) {
                return None;
            }
            if speed < 0.0 {
                first = first.max(room / speed);
            } else if speed > 0.0 {
                last = last.min(room / speed);
            }
        }
        let along = |share: f64| (from.0 + share * dx, from.1 + share * dy);
        let start = if first == 0.0 { from } else { along(first) };
        let end = if last == 1.0 { to } else { along(last) };
        (first <= last).then_some((start, end))
    }

    /// The outline, drawn last so that nothing covers it.
    pub fn draw_box(&self, canvas: &mut Canvas) {
        let (left, top) = (self.left, self.top);
        let (right, bottom) = (left + self.width, top + self.height);
        let corners = vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        canvas.line(corners, INK, LINE_WIDTH);
    }

    /// About `wanted` ticks below, as many of them labelled as there is room for, and a label.
    pub fn draw_x_axis(&self, canvas: &mut Canvas, wanted: usize, label: &str) {
        let bottom = self.top + self.height;
        let ticks = self.x_ticks(wanted);
        for (&position, text) in ticks.positions.iter().zip(&ticks.labels) {
            let x = self.x_at(position);
            canvas.line(vec![(x, bottom), (x, bottom + TICK_LENGTH)], INK, LINE_WIDTH);
            if !text.is_empty() {
                let at = (self.label_centre(x, text), bottom + TICK_LENGTH + f64::from(TICK_SIZE));
                canvas.text(at, TICK_SIZE, INK, Anchor::Middle, text);
            }
        }
        let at = (self.left + self.width / 2.0, bottom + BELOW - 6.0);
        let label = shortened(label, LABEL_SIZE, self.width);
        canvas.text(at, LABEL_SIZE, INK, Anchor::Middle, &label);
    }

    /// Ticks whose labels do not touch, near their ticks if that can be.
    fn x_ticks(&self, wanted: usize) -> Ticks {
        let ticks = Ticks::new(self.x, wanted);
        let step = match ticks.positions[..] {
            [first, second, ..] => self.x_at(second) - self.x_at(first),
            _ => self.width,
        };
        // Farther off, a label could be taken for the next tick's.
        ticks
            .thinned(|ticks| self.have_room(ticks, 0.25 * step))
            .or_else(|| ticks.thinned(|ticks| self.have_room(ticks, step)))
            .unwrap_or_else(|| ticks.with_one_label())
    }

    /// The middle of a label below `x`, moved as far as keeps the label within the panel.
    fn label_centre(&self, x: f64, text: &str) -> f64 {
        let margin = 0.5 * text_width(text, TICK_SIZE) - self.overhang;
        x.min(self.left + self.width - margin).max(self.left + margin)
    }

    /// Whether no label of an x axis comes close to the next, nor is moved by more than `shift`.
    fn have_room(&self, ticks: &Ticks, shift: f64) -> bool {
        let mut free_from = f64::NEG_INFINITY;
        let mut labels = ticks.positions.iter().zip(&ticks.labels);
        labels.all(|(&position, text)| {
            if text.is_empty() {
                return true;
            }
            let x = self.x_at(position);
            let centre = self.label_centre(x, text);
            let half = 0.5 * text_width(text, TICK_SIZE);
            let is_free = centre - half >= free_from;
            free_from = centre + half + LABEL_GAP;
            is_free && (centre - x).abs() <= shift
        })
    }

    /// Ticks and a label to the left; `room` is what [`room_left`] said.
    pub fn draw_y_axis(&self, canvas: &mut Canvas, ticks: &Ticks, label: &str, room: f64) {
        for (&position, text) in ticks.positions.iter().zip(&ticks.labels) {
            let y = self.y_at(position);
            canvas.line(vec![(self.left - TICK_LENGTH, y), (self.left, y)], INK, LINE_WIDTH);
            // Digits are about 0.7 of the size high; half of that centres them on the tick.
            let half = 0.36 * f64::from(TICK_SIZE);
            let margin = half - self.overhang;
            let centre = y.clamp(self.top + margin, self.top + self.height - margin);
            let at = (self.left - TICK_LENGTH - 3.0, centre + half);
            canvas.text(at, TICK_SIZE, INK, Anchor::End, text);
        }
        let at = (self.left - room + f64::from(LABEL_SIZE) + 4.0, self.top + self.height / 2.0);
        let label = shortened(label, LABEL_SIZE, self.height);
        canvas.text_upwards(at, LABEL_SIZE, &label);
    }
}

/// Room to the left of a panel for tick labels and the axis label.
pub fn room_left<'a>(ticks: impl IntoIterator<Item = &'a Ticks>) -> f64 {
    let widest = ticks
        .into_iter()
        .flat_map(|ticks| &ticks.labels)
        .map(|label| text_width(label, TICK_SIZE))
        .fold(0.0, f64::max);
    widest + TICK_LENGTH + 3.0 + f64::from(LABEL_SIZE) + 14.0
}
