//! The page: the figure as SVG, every position as a number, and a script that moves the dots.
//!
//! Without a script, and on paper, it shows the frame at hand: the last, unless somebody moved on.

use std::fmt::Write as _;

use serde_json::json;

use super::Animation;
use crate::Result;
use crate::plot::canvas::{Color, PARTICLES};
use crate::plot::frame::Frame;
use crate::plot::{Panel, Panels};

/// The page around the figure and the numbers, with the script.
const TEMPLATE: &str = include_str!("player.html");

/// Positions are whole numbers, so many to a unit of the figure.
const PRECISION: f64 = 10.0;
/// Of a dot, in units of the figure.
const RADIUS: f64 = 2.8;
/// Farther out nothing can be seen; stands for positions that are not finite too.
const FAR: f64 = 1e5;

pub fn page(animation: &Animation<'_>) -> Result<String> {
    animation.check()?;
    let empty = Panel { title: String::new(), layers: Vec::new(), corner: Vec::new() };
    let figure = Panels { panels: &[empty], columns: 1, ..animation.figure }.draw()?;
    let frame = figure.frames[0];
    let positions: Vec<Vec<i64>> =
        animation.frames.iter().map(|moment| places(&frame, &moment.points)).collect();
    let labels: Vec<&str> = animation.frames.iter().map(|moment| moment.label.as_str()).collect();

    let svg = figure.svg();
    let drawing = svg.trim_end().strip_suffix("</svg>").unwrap_or(&svg);
    let moving = moving_part(animation, &frame, positions.last().map_or(&[], Vec::as_slice));
    let data = json!({
        "positions": positions,
        "labels": labels,
        "trail": animation.trail,
        "rate": animation.rate,
    });
    // The one sequence that could end the script element early begins with this character.
    let data = data.to_string().replace('<', "\\u003c");
    // In the order of the page, and numbers last: what was put in is not searched again.
    let (mut page, mut rest) = (String::new(), TEMPLATE);
    for (mark, text) in [
        ("{{title}}", escaped(animation.figure.title)),
        ("{{figure}}", format!("{drawing}{moving}</svg>")),
        ("{{last}}", (labels.len() - 1).to_string()),
        ("{{data}}", data),
    ] {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        page.push_str(before);
        page.push_str(&text);
        rest = after;
    }
    Ok(page + rest)
}

/// x and y of every dot, one after the other, from the panel's corner.
fn places(frame: &Frame, points: &steinflow::Matrix<f64>) -> Vec<i64> {
    let whole = |place: f64| {
        if place.is_finite() { (place * PRECISION).round().clamp(-FAR, FAR) } else { -FAR }
    };
    (0..points.rows())
        .flat_map(|i| {
            let (x, y) = frame.at((points.row(i)[0], points.row(i)[1]));
            [whole(x - frame.left) as i64, whole(y - frame.top) as i64]
        })
        .collect()
}

/// A drawing inside the panel, cut off at its edges, with the dots as they are at the end.
fn moving_part(animation: &Animation<'_>, frame: &Frame, places: &[i64]) -> String {
    let [color, trail_color] =
        animation.colors.map(|color| css(PARTICLES[color % PARTICLES.len()]));
    let label = animation.frames.last().map_or("", |moment| &moment.label);
    let (width, height) = (frame.width * PRECISION, frame.height * PRECISION);
    let mut text = format!(
        "<text id=\"label\" x=\"{:.1}\" y=\"{:.1}\" font-size=\"13\" fill=\"#222222\">{}</text>\
         <svg x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" overflow=\"hidden\" \
         viewBox=\"0 0 {width:.1} {height:.1}\">\
         <path id=\"trails\" fill=\"none\" stroke=\"{trail_color}\" stroke-opacity=\"0.45\" \
         stroke-width=\"{}\"/><g id=\"dots\" fill=\"{color}\" stroke=\"#ffffff\" stroke-width=\"{}\">",
        frame.left,
        frame.top - 6.0,
        escaped(label),
        frame.left,
        frame.top,
        frame.width,
        frame.height,
        0.8 * PRECISION,
        0.5 * PRECISION,
    );
    for at in places.chunks_exact(2) {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"/>",
            at[0],
            at[1],
            RADIUS * PRECISION
        );
    }
    text + "</g></svg>"
}

fn css(Color(red, green, blue): Color) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
