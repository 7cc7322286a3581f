//! Every picture can be drawn from any numbers, and says what it leaves out.

use steinflow::{MatRef, Matrix};
use steinflow_io::plot::{Density, Figure, Groups, ParticlePlot, limits_of};

/// Spread-out points without a random generator.
fn cloud(rows: usize, cols: usize) -> Matrix<f64> {
    Matrix::from_fn(rows, cols, |i, j| {
        ((i + 1) as f64 * 0.618_034 * (j + 1) as f64).fract() * 4.0 - 2.0
    })
}

fn names(dim: usize) -> Vec<String> {
    (0..dim).map(|k| format!("theta[{k}]")).collect()
}

fn draw(points: MatRef<'_, f64>) -> Figure {
    let names = names(points.cols());
    ParticlePlot {
        points,
        names: &names,
        title: "Title",
        caption: "caption",
        density: None,
        groups: None,
    }
    .draw()
    .unwrap()
}

/// Width and height from a PNG's first chunk.
fn png_size(png: &[u8]) -> (u32, u32) {
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

/// The texts of a picture that are numbers: its tick labels.
fn numbers(svg: &str) -> Vec<f64> {
    let texts = svg.split('>').filter_map(|part| part.split('<').next());
    texts.filter_map(|text| text.trim().replace('−', "-").parse().ok()).collect()
}

#[test]
fn every_dimension_gives_a_readable_png() {
    for dim in [1, 2, 3, 5] {
        let figure = draw(cloud(100, dim).as_ref());
        let (width, height) = png_size(&figure.png().unwrap());
        assert!(
            (900..=1300).contains(&width) && (600..=1500).contains(&height),
            "{width} {height}"
        );
        let svg = figure.svg();
        for text in ["Title", "caption", "theta[0]"] {
            assert!(svg.contains(text), "{dim}: {text}");
        }
    }
}

#[test]
fn every_particle_is_a_dot() {
    for rows in [1, 20, 5000] {
        assert_eq!(count(&draw(cloud(rows, 2).as_ref()).svg(), "<circle"), rows);
    }
    // Three pairs of three coordinates, six of the first four.
    assert_eq!(count(&draw(cloud(10, 3).as_ref()).svg(), "<circle"), 30);
    let five = draw(cloud(10, 5).as_ref()).svg();
    assert_eq!(count(&five, "<circle"), 60);
    assert!(five.contains("first 4 of 5 coordinates") && !five.contains("theta[4]"));
}

#[test]
fn one_particle_and_equal_particles_are_drawn() {
    for dim in [1, 2, 3, 5] {
        for rows in [1, 50] {
            for value in [0.0, -3.5, 1e-200, 1e200, f64::MAX] {
                let points = Matrix::from_fn(rows, dim, |_, _| value);
                let figure = draw(points.as_ref());
                png_size(&figure.png().unwrap());
                assert!(!figure.svg().contains("NaN"), "{dim} {rows} {value}");
            }
        }
    }
}

#[test]
fn particles_that_are_not_finite_are_counted() {
    for dim in [1, 2, 3, 5] {
        let mut points = cloud(40, dim);
        points.row_mut(3)[0] = f64::NAN;
        points.row_mut(7)[dim - 1] = f64::INFINITY;
        let figure = draw(points.as_ref());
        png_size(&figure.png().unwrap());
        assert!(figure.svg().contains("2 particles not finite"), "{dim}");
        if dim == 2 {
            assert_eq!(count(&figure.svg(), "<circle"), 38);
        }
    }
}

#[test]
fn pictures_of_nothing_are_drawn() {
    for dim in [1, 2, 3] {
        png_size(&draw(Matrix::zeros(0, dim).as_ref()).png().unwrap());
        let points = Matrix::from_fn(4, dim, |_, _| f64::NAN);
        let figure = draw(points.as_ref());
        png_size(&figure.png().unwrap());
        assert!(figure.svg().contains("4 particles not finite"));
    }
}

#[test]
fn a_far_outlier_is_left_out_and_counted() {
    for dim in [1, 2, 3, 5] {
        for far in [1e6, -1e6, 1e300] {
            let mut points = cloud(40, dim);
            points.row_mut(11)[0] = far;
            let figure = draw(points.as_ref());
            png_size(&figure.png().unwrap());
            let svg = figure.svg();
            assert!(svg.contains("1 particle outside the picture"), "{dim} {far}");
            let ticks = numbers(&svg);
            assert!(ticks.len() >= 4, "{dim} {far}: {ticks:?}");
            assert!(ticks.iter().all(|tick| tick.abs() <= 2.0), "{dim} {far}: {ticks:?}");
        }
    }
}

/// Start, end and baseline of every tick label, by the font's widest digit.
fn label_extents(svg: &str) -> Vec<(f64, f64, f64)> {
    let number = |tag: &str, name: &str| -> f64 {
        let from = tag.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
        tag[from..].split('"').next().unwrap().parse().unwrap()
    };
    let texts = svg.split("<text").skip(1).map(|part| part.split("</text>").next().unwrap());
    texts
        .filter_map(|text| {
            let (tag, label) = text.split_once('>').unwrap();
            label.replace('−', "-").parse::<f64>().ok()?;
            tag.contains("text-anchor=\"middle\"").then(|| {
                let wide = label.chars().map(|c| {
                    if c == '−' {
                        0.84
                    } else if c == '.' {
                        0.32
                    } else {
                        0.64
                    }
                });
                let half = 6.0 * wide.sum::<f64>();
                (number(tag, "x") - half, number(tag, "x") + half, number(tag, "y"))
            })
        })
        .collect()
}

#[test]
fn tick_labels_of_pairs_neither_touch_nor_leave_their_panel() {
    let scales = [
        (-1.0, 0.2),
        (1e-5, 1e-7),
        (12_345.6, 0.2),
        (-0.5, 0.01),
        (0.0, 3.0),
        (1e9, 1e4),
        (-123.4, 1e-3),
        (1.0, 1e-6),
    ];
    for dim in [3, 4] {
        for shift in 0..scales.len() {
            let mut points = cloud(50, dim);
            for i in 0..50 {
                for (j, x) in points.row_mut(i).iter_mut().enumerate() {
                    let (centre, spread) = scales[(shift + j) % scales.len()];
                    *x = centre + spread * *x;
                }
            }
            let mut labels = label_extents(&draw(points.as_ref()).svg());
            assert!(labels.len() >= dim, "{dim} {shift}: {labels:?}");
            labels.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(labels.iter().all(|label| label.2 == labels[0].2), "one line: {labels:?}");
            for pair in labels.windows(2) {
                assert!(pair[1].0 - pair[0].1 > 4.0, "{dim} {shift}: {pair:?}");
            }
            assert!(labels.last().unwrap().1 <= 560.0 - 14.0 + 2.0, "{labels:?}");
        }
    }
}

/// Width and height of the largest outline of a picture.
fn panel(svg: &str) -> (f64, f64) {
    let outlines = svg.split("<path d=\"").skip(1).map(|part| {
        let path = part.split('"').next().unwrap();
        let numbers: Vec<f64> =
            path.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let range = |axis: usize| {
            let along = numbers.iter().skip(axis).step_by(2).copied();
            along.clone().fold(f64::MIN, f64::max) - along.fold(f64::MAX, f64::min)
        };
        (range(0), range(1))
    });
    outlines.max_by(|a, b| (a.0 * a.1).total_cmp(&(b.0 * b.1))).unwrap()
}

#[test]
fn one_unit_is_as_long_on_both_axes_where_their_ranges_are_alike() {
    let side = 4.0;
    for (stretch, equal) in
        [(1.0, true), (1.5, true), (1.0 / 1.5, true), (1.7, false), (0.01, false)]
    {
        // The extremes of both coordinates are at the corners.
        let points = Matrix::from_fn(9, 2, |i, j| {
            if j == 0 { (i % 3) as f64 * side / 2.0 } else { (i / 3) as f64 * stretch * side / 2.0 }
        });
        let svg = draw(points.as_ref()).svg();
        let (width, height) = panel(&svg);
        let is_equal = (height / (width * stretch) - 1.0).abs() < 1e-3;
        assert_eq!(is_equal, equal, "{stretch}: {width} × {height}");
        assert!((250.0..=550.0).contains(&height) && width >= 300.0, "{width} × {height}");
        assert_eq!(count(&svg, "<circle"), 9);
    }
}

#[test]
fn of_very_many_particles_an_even_part_is_drawn() {
    let rows = 7001;
    for (dim, panels, kept) in [(2, 1, 5000), (3, 3, 2000)] {
        let svg = draw(cloud(rows, dim).as_ref()).svg();
        assert_eq!(count(&svg, "<circle"), kept * panels, "{dim}");
        assert!(svg.contains(&format!("{kept} of 7001 shown")), "{dim}");
        assert!(!draw(cloud(kept, dim).as_ref()).svg().contains(" shown"), "{dim}");
    }
    // The last third of the rows is to the right, and so is a third of the dots.
    let points = Matrix::from_fn(rows, 2, |i, j| f64::from(u8::from(j == 0 && 3 * i >= 2 * rows)));
    let svg = draw(points.as_ref()).svg();
    let centres: Vec<f64> = svg
        .split("cx=\"")
        .skip(1)
        .map(|part| part.split('"').next().unwrap().parse().unwrap())
        .collect();
    let right = centres.iter().filter(|&&x| x > 250.0).count();
    assert!((1665..=1668).contains(&right), "{right}");
}

/// A standard Gaussian on a grid of 41 × 31 points.
fn gaussian_grid() -> Matrix<f64> {
    Matrix::from_fn(31, 41, |i, j| {
        let (x, y) = (j as f64 * 0.15 - 3.0, i as f64 * 0.2 - 3.0);
        700.0 - 0.5 * (x * x + y * y)
    })
}

#[test]
fn the_density_is_behind_the_particles_and_within_bounds() {
    let (points, grid) = (cloud(30, 2), gaussian_grid());
    let names = names(2);
    let density = Density::Plane { x: (-3.0, 3.0), y: (-3.0, 3.0), log_density: grid.as_ref() };
    let svg = ParticlePlot {
        points: points.as_ref(),
        names: &names,
        title: "",
        caption: "",
        density: Some(density),
        groups: None,
    }
    .draw()
    .unwrap()
    .svg();
    let filled = count(&svg, "<path") - count(&svg, "fill=\"none\"");
    assert_eq!(filled, 6, "one for every region of a density with one peak");
    let last_region = svg.rfind("fill=\"#4d93c3\"").expect("the innermost region");
    assert!(last_region < svg.find("<circle").unwrap());
    assert!(svg.len() < 200_000, "{}", svg.len());
}

#[test]
fn damaged_densities_are_drawn() {
    let (line, plane) = (cloud(30, 1), cloud(30, 2));
    for value in [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, 0.0, f64::MAX, f64::MIN] {
        let mut grid = gaussian_grid();
        for k in (0..grid.as_slice().len()).step_by(3) {
            grid.as_mut_slice()[k] = value;
        }
        let uniform = vec![value; 20];
        let plane_density =
            Density::Plane { x: (-3.0, 3.0), y: (-3.0, 3.0), log_density: grid.as_ref() };
        let line_density = Density::Line { limits: (-3.0, 3.0), log_density: &uniform };
        for (points, density) in [(&line, line_density), (&plane, plane_density)] {
            let names = names(points.cols());
            let figure = ParticlePlot {
                points: points.as_ref(),
                names: &names,
                title: "t",
                caption: "c",
                density: Some(density),
                groups: None,
            }
            .draw()
            .unwrap();
            png_size(&figure.png().unwrap());
            assert!(!figure.svg().contains("NaN") && !figure.svg().contains("inf"), "{value}");
        }
    }
}

#[test]
fn groups_have_colours_and_a_legend() {
    let points = cloud(30, 2);
    let index: Vec<usize> = (0..30).map(|i| i % 3).collect();
    let group_names: Vec<String> = ["red", "black", "unused"].map(String::from).to_vec();
    let names = names(2);
    let mut plot = ParticlePlot {
        points: points.as_ref(),
        names: &names,
        title: "",
        caption: "",
        density: None,
        groups: Some(Groups { index: &index, names: &group_names }),
    };
    let svg = plot.draw().unwrap().svg();
    assert!(svg.contains("unused"));
    assert_eq!(count(&svg, "<circle"), 30 + 3);
    assert_eq!(count(&svg, "fill=\"#d55e00\""), 10 + 1);

    plot.groups = Some(Groups { index: &index, names: &group_names[..2] });
    assert!(plot.draw().unwrap_err().to_string().contains("a group index is 2"));
    plot.groups = Some(Groups { index: &index[1..], names: &group_names });
    assert!(plot.draw().unwrap_err().to_string().contains("29"));
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let (points, grid, one, two) = (cloud(5, 2), gaussian_grid(), names(1), names(2));
    let plot = ParticlePlot {
        points: points.as_ref(),
        names: &two,
        title: "",
        caption: "",
        density: None,
        groups: None,
    };
    let message = |plot: ParticlePlot<'_>| plot.draw().unwrap_err().to_string();
    assert!(message(ParticlePlot { names: &one, ..plot }).contains("expected 2"));
    let line = Density::Line { limits: (0.0, 1.0), log_density: &[0.0, 0.0] };
    assert!(message(ParticlePlot { density: Some(line), ..plot }).contains("on a plane"));
    for (low, high) in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
        let plane = Density::Plane { x: (low, high), y: (0.0, 1.0), log_density: grid.as_ref() };
        assert!(message(ParticlePlot { density: Some(plane), ..plot }).contains("increasing"));
    }
    let narrow = Matrix::from_fn(1, 5, |_, _| 0.0);
    let plane = Density::Plane { x: (0.0, 1.0), y: (0.0, 1.0), log_density: narrow.as_ref() };
    assert!(message(ParticlePlot { density: Some(plane), ..plot }).contains("2 or more"));
    let none = Matrix::zeros(3, 0);
    assert!(
        message(ParticlePlot { points: none.as_ref(), names: &[], ..plot }).contains("1 or more")
    );
}

#[test]
fn long_and_strange_texts_stay_inside() {
    let points = cloud(20, 3);
    let names: Vec<String> = ["<&>\"'", "", &"long".repeat(100)].map(String::from).to_vec();
    let title = "a title of many words ".repeat(20) + &"x".repeat(500);
    let figure = ParticlePlot {
        points: points.as_ref(),
        names: &names,
        title: &title,
        caption: "𝜃 ∈ ℝ³\n$x_1$",
        density: None,
        groups: None,
    }
    .draw()
    .unwrap();
    png_size(&figure.png().unwrap());
    assert!(figure.svg().contains("&lt;&amp;&gt;") && figure.svg().contains('…'));
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let points = cloud(200, 2);
    let (first, second) = (draw(points.as_ref()), draw(points.as_ref()));
    assert_eq!(first.svg(), second.svg());
    assert_eq!(first.png().unwrap(), second.png().unwrap());
    let mut other = cloud(200, 2);
    other.row_mut(0)[0] += 0.5;
    assert_ne!(first.png().unwrap(), draw(other.as_ref()).png().unwrap());
}

#[test]
fn limits_hold_the_values_but_not_an_outlier() {
    let mut values: Vec<f64> = (0..50).map(f64::from).collect();
    values[20] = 1e9;
    values[30] = f64::NAN;
    let (low, high) = limits_of(&values);
    assert!(low < 0.0 && high > 49.0 && high < 60.0, "{low} {high}");
}
