//! The animated PNG: 63 colours for all frames, and in every frame only what has changed.

use std::collections::BTreeMap;

use super::Animation;
use crate::{Error, Result};

/// Pixels for one unit of the figure: a large animation is slow to load.
const SCALE: f32 = 1.0;
/// The palette's last entry: as in the frame before. Few colours make small files.
const UNCHANGED: u8 = 63;
/// How long the last frame stays, in seconds, before the animation begins again.
const REST: u16 = 2;

type Rgb = [u8; 3];

/// A drawn frame.
struct Image {
    width: u32,
    height: u32,
    pixels: Vec<Rgb>,
}

pub fn encode(animation: &Animation<'_>) -> Result<Vec<u8>> {
    animation.check()?;
    let mut images = Vec::with_capacity(animation.frames.len());
    animation.draw_each(|figure| {
        images.push(decode(&figure.png_at(SCALE)?)?);
        Ok(())
    })?;
    // A note on dots outside the picture can take a line more in one frame than in another.
    let width = images.iter().map(|image| image.width).max().unwrap_or(1);
    let height = images.iter().map(|image| image.height).max().unwrap_or(1);
    let palette = Palette::of(&images);

    let mut bytes = Vec::new();
    let failed = |error: png::EncodingError| Error::Png(error.to_string());
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    // Neighbouring numbers of a palette are not neighbouring colours: filters would only hurt.
    encoder.set_filter(png::Filter::NoFilter);
    encoder.set_palette(palette.bytes());
    let mut opacity = vec![255; UNCHANGED.into()];
    opacity.push(0);
    encoder.set_trns(opacity);
    encoder.set_animated(images.len() as u32, 0).map_err(failed)?;
    encoder.set_frame_delay(1, animation.rate).map_err(failed)?;
    encoder.set_blend_op(png::BlendOp::Over).map_err(failed)?;
    let mut writer = encoder.write_header().map_err(failed)?;
    let mut before: Vec<u8> = Vec::new();
    for (number, image) in images.iter().enumerate() {
        let indices = palette.indices(image, width, height);
        let changes: Vec<u8> = if before.is_empty() {
            indices.clone()
        } else {
            let pairs = indices.iter().zip(&before);
            pairs.map(|(&new, &old)| if new == old { UNCHANGED } else { new }).collect()
        };
        if number + 1 == images.len() {
            writer.set_frame_delay(REST, 1).map_err(failed)?;
        }
        writer.write_image_data(&changes).map_err(failed)?;
        before = indices;
    }
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

fn decode(png: &[u8]) -> Result<Image> {
    let failed = |error: png::DecodingError| Error::Png(error.to_string());
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().map_err(failed)?;
    let size = reader.output_buffer_size();
    let mut buffer =
        vec![0; size.ok_or_else(|| Error::Png("a frame is too large for memory".into()))?];
    let info = reader.next_frame(&mut buffer).map_err(failed)?;
    let samples = info.color_type.samples();
    let pixels = buffer[..info.buffer_size()]
        .chunks_exact(samples)
        // Grey is written once; our canvas is opaque, so alpha says nothing.
        .map(|pixel| if samples < 3 { [pixel[0]; 3] } else { [pixel[0], pixel[1], pixel[2]] })
        .collect();
    Ok(Image { width: info.width, height: info.height, pixels })
}

/// The most frequent colours, and for every other colour the nearest of them.
struct Palette {
    colors: Vec<Rgb>,
    index: BTreeMap<Rgb, u8>,
}

impl Palette {
    fn of(images: &[Image]) -> Self {
        let mut counts: BTreeMap<Rgb, usize> = BTreeMap::new();
        // Most of a picture is long runs of one colour.
        for image in images {
            for run in image.pixels.chunk_by(|a, b| a == b) {
                *counts.entry(run[0]).or_default() += run.len();
            }
        }
        let mut colors: Vec<Rgb> = counts.keys().copied().collect();
        // A stable sort of sorted colours: ties do not depend on anything else.
        colors.sort_by_key(|color| std::cmp::Reverse(counts[color]));
        colors.truncate(UNCHANGED.into());
        let distance = |a: Rgb, b: Rgb| -> u32 {
            a.iter().zip(b).map(|(&a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
        };
        let nearest = |color: Rgb| {
            (0u8..)
                .zip(&colors)
                .min_by_key(|&(_, &known)| distance(color, known))
                .map_or(0, |x| x.0)
        };
        let index = counts.keys().map(|&color| (color, nearest(color))).collect();
        Self { colors, index }
    }

    /// As many entries for every animation, the last for what is unchanged.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.colors.concat();
        bytes.resize(3 * (usize::from(UNCHANGED) + 1), 0);
        bytes
    }

    /// The image's colours as numbers, on a ground of its first pixel where it is smaller.
    fn indices(&self, image: &Image, width: u32, height: u32) -> Vec<u8> {
        let ground = image.pixels.first().map_or(0, |pixel| self.index[pixel]);
        let mut indices = vec![ground; (width * height) as usize];
        let rows = indices.chunks_exact_mut(width as usize);
        for (row, pixels) in rows.zip(image.pixels.chunks_exact(image.width as usize)) {
            let mut from = 0;
            for run in pixels.chunk_by(|a, b| a == b) {
                row[from..from + run.len()].fill(self.index[&run[0]]);
                from += run.len();
            }
        }
        indices
    }
}
