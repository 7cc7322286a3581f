//! What stands above the panels: title, caption, notes on what is not shown, legend.

use super::ParticlePlot;
use super::canvas::{Anchor, Canvas, Color, GREY, INK, PARTICLES, text_width, wrapped};

const TITLE_SIZE: u32 = 16;
const CAPTION_SIZE: u32 = 12;
const LEGEND_SIZE: u32 = 12;
const MARK_WIDTH: f64 = 16.0;
const ENTRY_GAP: f64 = 18.0;

/// How a legend shows an entry.
#[derive(Clone, Copy, Debug)]
pub enum Mark {
    /// A dot.
    Dot,
    /// A filled rectangle.
    Bar,
    /// A stroke.
    Line,
    /// An open circle.
    Ring,
    /// An arrow.
    Arrow,
}

struct Entry {
    mark: Mark,
    color: Color,
    name: String,
}

/// The lines above the panels, already broken to the width.
pub struct Header {
    left: f64,
    right: f64,
    title: Vec<String>,
    caption: Vec<String>,
    legend: Vec<Entry>,
}

impl Header {
    /// Lines for the strip between `left` and `right`; notes follow the caption.
    pub fn new(title: &str, caption: &str, notes: &[String], (left, right): (f64, f64)) -> Self {
        let width = right - left;
        let mut caption = wrapped(caption, CAPTION_SIZE, width);
        caption.extend(wrapped(&notes.join("; "), CAPTION_SIZE, width));
        Self { left, right, title: wrapped(title, TITLE_SIZE, width), caption, legend: Vec::new() }
    }

    /// Adds a legend entry.
    pub fn with_entry(mut self, mark: Mark, color: Color, name: &str) -> Self {
        self.legend.push(Entry { mark, color, name: name.to_string() });
        self
    }

    /// Adds an entry for every group, if there are groups.
    pub fn with_groups(mut self, plot: &ParticlePlot<'_>) -> Self {
        for (index, name) in plot.groups.iter().flat_map(|groups| groups.names.iter().enumerate()) {
            self = self.with_entry(Mark::Dot, PARTICLES[index % PARTICLES.len()], name);
        }
        self
    }

    pub fn height(&self) -> f64 {
        self.lay_out(&mut |_, _, _, _, _| {}, &mut |_, _| {})
    }

    pub fn draw(&self, canvas: &mut Canvas) {
        let mut texts = Vec::new();
        let mut marks = Vec::new();
        self.lay_out(
            &mut |x, y, size, color, text| texts.push((x, y, size, color, text.to_string())),
            &mut |at, entry| marks.push((at, entry.mark, entry.color)),
        );
        for (x, y, size, color, text) in texts {
            canvas.text((x, y), size, color, Anchor::Start, &text);
        }
        for ((x, y), mark, color) in marks {
            match mark {
                Mark::Dot => canvas.dot((x + 6.0, y), 4.0, color, 1.0, false),
                Mark::Bar => canvas.bar((x, y - 4.5), (12.0, 9.0), color, color),
                Mark::Line => canvas.line(vec![(x, y), (x + 12.0, y)], color, 2.0),
                Mark::Ring => canvas.ring((x + 6.0, y), 3.6, color),
                Mark::Arrow => canvas.arrow((x, y), (x + 13.0, y), color, 1.2),
            }
        }
    }

    /// Places every line and legend entry, and returns the height of all.
    fn lay_out(
        &self,
        text: &mut dyn FnMut(f64, f64, u32, Color, &str),
        mark: &mut dyn FnMut((f64, f64), &Entry),
    ) -> f64 {
        let mut y = 8.0;
        for line in &self.title {
            y += 1.3 * f64::from(TITLE_SIZE);
            text(self.left, y, TITLE_SIZE, INK, line);
        }
        for line in &self.caption {
            y += 1.45 * f64::from(CAPTION_SIZE);
            text(self.left, y, CAPTION_SIZE, GREY, line);
        }
        let mut x = self.left;
        for (index, entry) in self.legend.iter().enumerate() {
            let width = MARK_WIDTH + text_width(&entry.name, LEGEND_SIZE);
            if index == 0 || x + width > self.right {
                x = self.left;
                y += 1.7 * f64::from(LEGEND_SIZE);
            }
            mark((x, y - 0.36 * f64::from(LEGEND_SIZE)), entry);
            text(x + MARK_WIDTH, y, LEGEND_SIZE, INK, &entry.name);
            x += width + ENTRY_GAP;
        }
        y + 10.0
    }
}

/// Notes on particles that the picture does not show.
pub fn notes_on_missing(not_finite: usize, outside: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if outside > 0 {
        notes.push(format!("{} outside the picture", counted(outside)));
    }
    if not_finite > 0 {
        notes.push(format!("{} not finite", counted(not_finite)));
    }
    notes
}

fn counted(particles: usize) -> String {
    if particles == 1 { "1 particle".into() } else { format!("{particles} particles") }
}
