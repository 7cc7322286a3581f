//! The few shapes that plots are made of, in one place that knows the drawing crate.

use std::fmt::Write;

use kuva::PngBackend;
use kuva::backend::svg::SvgBackend;
use kuva::render::color::Color as Paint;
use kuva::render::render::{PathData, Primitive, Scene, TextAnchor};

/// Pixels of a PNG for one unit of the canvas.
const PIXELS_PER_UNIT: f32 = 2.0;

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Color(pub u8, pub u8, pub u8);

pub const INK: Color = Color(0x22, 0x22, 0x22);
const SOFT_INK: Color = Color(0x4c, 0x4c, 0x4c);
pub const GREY: Color = Color(0x66, 0x66, 0x66);
pub const WHITE: Color = Color(0xff, 0xff, 0xff);
/// Bars of a histogram: the particles' own colour, lightened because bars are large.
pub const BARS: Color = Color(0xea, 0x9c, 0x66);
/// Curves of the target density.
pub const DENSITY: Color = Color(0x00, 0x72, 0xb2);

/// Particles and groups of them: Okabe and Ito's colours, which the colour-blind can tell apart,
/// with those first that stand out from the blue of the density.
pub const PARTICLES: [Color; 8] = [
    Color(0xd5, 0x5e, 0x00),
    Color(0x00, 0x00, 0x00),
    Color(0x00, 0x9e, 0x73),
    Color(0xcc, 0x79, 0xa7),
    Color(0xe6, 0x9f, 0x00),
    Color(0x00, 0x72, 0xb2),
    Color(0x56, 0xb4, 0xe9),
    Color(0xf0, 0xe4, 0x42),
];

impl Color {
    /// This colour with white mixed in; all of it is left at a share of 1.
    pub fn faded(self, share: f64) -> Self {
        let mix = |part: u8| (255.0 - share * (255.0 - f64::from(part))).round() as u8;
        Self(mix(self.0), mix(self.1), mix(self.2))
    }
}

impl From<Color> for Paint {
    fn from(Color(red, green, blue): Color) -> Self {
        Self::Rgb(red, green, blue)
    }
}

/// Which point of a text its position is.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture under construction; y runs downwards.
#[derive(Debug)]
pub struct Canvas {
    scene: Scene,
}

impl Canvas {
    pub fn new(width: f64, height: f64) -> Self {
        let mut scene = Scene::new(width, height);
        scene.font_family = Some("DejaVu Sans, Verdana, Helvetica, Arial, sans-serif".into());
        Self { scene }
    }

    pub fn png(&self) -> Result<Vec<u8>, String> {
        self.png_at(PIXELS_PER_UNIT)
    }

    /// A PNG with so many pixels for one unit of the canvas.
    pub fn png_at(&self, scale: f32) -> Result<Vec<u8>, String> {
        PngBackend::new().with_scale(scale).render_scene(&self.scene)
    }

    pub fn svg(&self) -> String {
        SvgBackend::default().render_scene(&self.scene)
    }

    pub fn text(&mut self, at: (f64, f64), size: u32, color: Color, anchor: Anchor, text: &str) {
        self.add_text(at, size, color, anchor, text, None);
    }

    /// Text that runs upwards, centred on `at`.
    ///
    /// Turned glyphs come out heavier in a PNG; a lighter ink evens that out.
    pub fn text_upwards(&mut self, at: (f64, f64), size: u32, text: &str) {
        self.add_text(at, size, SOFT_INK, Anchor::Middle, text, Some(-90.0));
    }

    fn add_text(
        &mut self,
        (x, y): (f64, f64),
        size: u32,
        color: Color,
        anchor: Anchor,
        text: &str,
        rotate: Option<f64>,
    ) {
        let anchor = match anchor {
            Anchor::Start => TextAnchor::Start,
            Anchor::Middle => TextAnchor::Middle,
            Anchor::End => TextAnchor::End,
        };
        self.scene.add(Primitive::Text {
            x,
            y,
            content: text.to_string(),
            size,
            anchor,
            rotate,
            bold: false,
            color: Some(color.into()),
        });
    }

    pub fn line(&mut self, mut points: Vec<(f64, f64)>, color: Color, width: f64) {
        // More digits cannot be seen, and long paths would make large files.
        for (x, y) in &mut points {
            (*x, *y) = ((*x * 100.0).round() / 100.0, (*y * 100.0).round() / 100.0);
        }
        self.scene.add(Primitive::PolyLine {
            points,
            stroke: color.into(),
            stroke_width: width,
            stroke_dasharray: None,
        });
    }

    /// A filled rectangle with a thin edge of another colour.
    pub fn bar(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        fill: Color,
        edge: Color,
    ) {
        self.scene.add(Primitive::Rect {
            x,
            y,
            width,
            height,
            fill: fill.into(),
            stroke: Some(edge.into()),
            stroke_width: Some(0.6),
            opacity: None,
        });
    }

    /// A filled polygon, edged in its own colour to smooth the steps of nearly level edges.
    pub fn polygon(&mut self, points: &[(f64, f64)], fill: Color) {
        let mut path = String::with_capacity(points.len() * 14);
        for (i, (x, y)) in points.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(path, "{}{x:.2} {y:.2}", if i == 0 { 'M' } else { 'L' });
        }
        path.push('Z');
        self.scene.add(Primitive::Path(Box::new(PathData {
            d: path,
            fill: Some(fill.into()),
            stroke: fill.into(),
            stroke_width: 0.5,
            opacity: None,
            stroke_dasharray: None,
        })));
    }

    /// A dot, edged in white where it is large enough to need telling from its neighbours.
    pub fn dot(
        &mut self,
        (x, y): (f64, f64),
        radius: f64,
        color: Color,
        opacity: f64,
        edged: bool,
    ) {
        self.scene.add(Primitive::Circle {
            cx: x,
            cy: y,
            r: radius,
            fill: color.into(),
            fill_opacity: Some(opacity),
            stroke: edged.then(|| WHITE.into()),
            stroke_width: edged.then_some(0.6),
        });
    }
}

impl Canvas {
    /// A white dot with a coloured edge.
    pub fn ring(&mut self, (x, y): (f64, f64), radius: f64, color: Color) {
        self.scene.add(Primitive::Circle {
            cx: x,
            cy: y,
            r: radius,
            fill: WHITE.into(),
            fill_opacity: None,
            stroke: Some(color.into()),
            stroke_width: Some(1.4),
        });
    }

    /// A line from `tail` to `tip` that ends in a filled head.
    pub fn arrow(&mut self, tail: (f64, f64), tip: (f64, f64), color: Color, width: f64) {
        let (dx, dy) = (tip.0 - tail.0, tip.1 - tail.1);
        let length = dx.hypot(dy);
        // Too short to have a direction that could be seen.
        if !(length > 0.5) {
            return;
        }
        let head = (2.2 + 1.8 * width).min(length);
        let (ux, uy) = (dx / length, dy / length);
        let neck = (tip.0 - head * ux, tip.1 - head * uy);
        let half = 0.45 * head;
        self.line(vec![tail, neck], color, width);
        let corners = [
            tip,
            (neck.0 - half * uy, neck.1 + half * ux),
            (neck.0 + half * uy, neck.1 - half * ux),
        ];
        self.polygon(&corners, color);
    }
}

/// The width of a text in the built-in font, to within a few per cent.
pub fn text_width(text: &str, size: u32) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|letter| match letter {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' => 0.31,
            'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '-' => 0.39,
            'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.93,
            '−' | '=' | '+' => 0.84,
            'A'..='Z' => 0.70,
            _ => 0.62,
        })
        .sum();
    ems * f64::from(size)
}

/// The text, or as much of it as fits, with an ellipsis.
pub fn shortened(text: &str, size: u32, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_string();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        kept.push(letter);
        if text_width(&kept, size) + f64::from(size) > width {
            kept.pop();
            break;
        }
    }
    kept + "…"
}

/// The text in lines that fit.
pub fn wrapped(text: &str, size: u32, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines.iter().map(|line| shortened(line, size, width)).collect()
}
