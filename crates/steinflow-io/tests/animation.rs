//! Animations: every frame is in the file, and the page stands alone.

use steinflow::Matrix;
use steinflow_io::animation::{Animation, Frame};
use steinflow_io::plot::Panels;

const FIGURE: Panels<'_> = Panels {
    title: "a </script> & \"title\"",
    caption: "caption",
    names: ["x", "y"],
    x: (-1.0, 1.0),
    y: (-1.0, 1.0),
    density: None,
    columns: 1,
    panels: &[],
    legend: &[],
};

fn frames(count: usize) -> Vec<Frame> {
    let place = |k: usize, i: usize, j: usize| ((k + i) as f64 * (0.4 + 0.3 * j as f64)).sin();
    let points = |k| Matrix::from_fn(5, 2, |i, j| place(k, i, j));
    (0..count).map(|k| Frame { label: format!("step <{k}>"), points: points(k) }).collect()
}

fn animation(frames: &[Frame]) -> Animation<'_> {
    Animation { figure: FIGURE, frames, trail: 2, rate: 10, colors: [0, 5] }
}

/// The frames of an animated PNG as a browser would show them: each over the ones before.
fn played(png: &[u8]) -> Vec<Vec<[u8; 3]>> {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().unwrap();
    let count = reader.info().animation_control().unwrap().num_frames;
    let mut screen: Vec<[u8; 3]> = Vec::new();
    let mut shown = Vec::new();
    for _ in 0..count {
        let mut buffer = vec![0; reader.output_buffer_size().unwrap()];
        let size = reader.next_frame(&mut buffer).unwrap().buffer_size();
        let pixels = buffer[..size].chunks_exact(4);
        screen.resize(pixels.len(), [0; 3]);
        for (on_screen, pixel) in screen.iter_mut().zip(pixels) {
            if pixel[3] == 255 {
                on_screen.copy_from_slice(&pixel[..3]);
            }
        }
        shown.push(screen.clone());
    }
    shown
}

#[test]
fn every_frame_is_played_and_the_last_is_what_a_still_would_show() {
    let frames = frames(4);
    let whole = played(&animation(&frames).png().unwrap());
    assert_eq!(whole.len(), 4);
    assert!(whole.windows(2).all(|pair| pair[0] != pair[1]), "the dots move");
    // Nothing of earlier frames is left: the last frame alone gives the same, but for the palette.
    let longer = Animation { trail: 0, ..animation(&frames) }.png().unwrap();
    let alone = Animation { trail: 0, ..animation(&frames[3..]) }.png().unwrap();
    let (last, alone) = (&played(&longer)[3], &played(&alone)[0]);
    assert_eq!(last.len(), alone.len());
    let differs = |(a, b): &(&[u8; 3], &[u8; 3])| (0..3).any(|k| a[k].abs_diff(b[k]) > 64);
    assert_eq!(last.iter().zip(alone).filter(differs).count(), 0);
}

#[test]
fn the_page_stands_alone_and_escapes_its_texts() {
    let frames = frames(3);
    let page = animation(&frames).html().unwrap();
    // The name of the SVG language is no address that anything is loaded from.
    let rest = page.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http", "src=", "href=", "@import", "url("] {
        assert!(!rest.contains(outside), "{outside}");
    }
    assert!(page.contains("<title>a &lt;/script&gt; &amp; &quot;title&quot;</title>"));
    assert_eq!(page.matches("</script>").count(), 2, "only our own scripts end");
    assert!(!page.contains("{{"), "every mark is filled");
    // Without a script: the last frame's dots and label.
    assert_eq!(page.matches("<circle").count(), 5);
    assert!(page.contains(">step &lt;2&gt;</text>"));
    let from = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let data = &page[from..from + page[from..].find("</script>").unwrap()];
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["labels"][1], "step <1>");
    assert_eq!(data["positions"].as_array().unwrap().len(), 3);
    assert_eq!(data["positions"][0].as_array().unwrap().len(), 10);
}

#[test]
fn places_that_are_not_finite_do_no_harm() {
    let points = Matrix::from_fn(3, 2, |i, _| [f64::NAN, f64::INFINITY, 1e300][i]);
    let frames = [Frame { label: String::new(), points }];
    assert!(animation(&frames).png().is_ok());
    let page = animation(&frames).html().unwrap();
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    assert!(!page.contains("NaN") && !data.contains("null"), "{data}");
}

#[test]
fn frames_that_do_not_fit_are_refused() {
    let mut uneven = frames(2);
    uneven[1].points = Matrix::zeros(4, 2);
    let good = frames(1);
    for (animation, word) in [
        (animation(&[]), "1 or more"),
        (animation(&uneven), "5 × 2"),
        (Animation { rate: 0, ..animation(&good) }, "in a second"),
    ] {
        let error = animation.html().unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(word), "{error}");
        assert!(animation.png().is_err());
    }
}
