//! Particles in motion: one figure whose dots move, as an animated PNG or as a page with controls.

mod apng;
mod player;

use std::collections::VecDeque;

use steinflow::Matrix;

use crate::Result;
use crate::plot::{Layer, Panel, Panels};

/// Dots that move within the single panel of a figure, with a short trail behind each.
#[derive(Clone, Copy, Debug)]
pub struct Animation<'a> {
    /// The figure: title, caption, axes, density, legend. Its panels are replaced.
    pub figure: Panels<'a>,
    /// From the first to the last.
    pub frames: &'a [Frame],
    /// Over how many of the frames before it the trail of a dot reaches.
    pub trail: usize,
    /// Frames in a second.
    pub rate: u16,
    /// Colour of the dots and of their trails, as in [`Layer`].
    pub colors: [usize; 2],
}

/// One moment.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Stands above the panel, such as `step 12`.
    pub label: String,
    /// One dot a row, (x, y); row i is the same dot in every frame.
    pub points: Matrix<f64>,
}

impl Animation<'_> {
    /// The animation as a PNG file that browsers play and other programs show as its first frame.
    pub fn png(&self) -> Result<Vec<u8>> {
        apng::encode(self)
    }

    /// The animation as an HTML page with a play button and a slider, which needs no other file.
    pub fn html(&self) -> Result<String> {
        player::page(self)
    }

    /// Shows every frame in turn, drawn, to `see`.
    fn draw_each(&self, mut see: impl FnMut(&crate::plot::Figure) -> Result<()>) -> Result<()> {
        let mut recent: VecDeque<&Matrix<f64>> = VecDeque::new();
        for frame in self.frames {
            recent.push_back(&frame.points);
            if recent.len() > self.trail + 1 {
                recent.pop_front();
            }
            let trails: Vec<Matrix<f64>> = (0..frame.points.rows())
                .map(|dot| Matrix::from_fn(recent.len(), 2, |k, j| recent[k].row(dot)[j]))
                .collect();
            let [color, trail_color] = self.colors;
            let mut layers: Vec<Layer<'_>> = trails
                .iter()
                .map(|trail| Layer::Path { points: trail.as_ref(), color: trail_color, width: 0.8 })
                .collect();
            layers.push(Layer::Dots { points: frame.points.as_ref(), color });
            let panel = Panel { title: frame.label.clone(), layers, corner: Vec::new() };
            see(&Panels { panels: &[panel], columns: 1, ..self.figure }.draw()?)?;
        }
        Ok(())
    }

    /// Checks that there is something to show and that every frame has the same dots.
    fn check(&self) -> Result<()> {
        let wrong = |what, found: String, expected: String| {
            Err(crate::Error::Plot { what, found, expected })
        };
        let Some(first) = self.frames.first() else {
            return wrong("the number of frames", "0".into(), "1 or more".into());
        };
        if self.rate == 0 {
            return wrong("the number of frames in a second", "0".into(), "1 or more".into());
        }
        let shape = (first.points.rows(), 2);
        let differs = |frame: &&Frame| (frame.points.rows(), frame.points.cols()) != shape;
        match self.frames.iter().find(differs) {
            Some(Frame { points, .. }) => wrong(
                "the shape of a frame",
                format!("{} × {}", points.rows(), points.cols()),
                format!("{} × 2, as the first", shape.0),
            ),
            None => Ok(()),
        }
    }
}
