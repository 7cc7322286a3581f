//! Panels show what they are given, cut it off at their edges, and say what they leave out.

use steinflow::Matrix;
use steinflow_io::plot::{Density, Figure, Key, Layer, Mark, Panel, Panels};

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

fn pairs(values: &[[f64; 2]]) -> Matrix<f64> {
    Matrix::from_fn(values.len(), 2, |i, j| values[i][j])
}

fn panel(layers: Vec<Layer<'_>>) -> Panel<'_> {
    Panel { title: "panel".into(), layers, corner: Vec::new() }
}

fn figure<'a>(panels: &'a [Panel<'a>]) -> Panels<'a> {
    Panels {
        title: "Title",
        caption: "caption",
        names: ["across", "up"],
        x: (-1.0, 1.0),
        y: (-1.0, 1.0),
        density: None,
        columns: 2,
        panels,
        legend: &[],
    }
}

fn draw(layers: Vec<Layer<'_>>) -> Figure {
    figure(&[panel(layers)]).draw().unwrap()
}

#[test]
fn a_grid_of_panels_has_one_x_axis_a_column_and_one_y_axis_a_row() {
    for (panels, columns, x_axes, y_axes) in
        [(1, 1, 1, 1), (4, 2, 2, 2), (8, 4, 4, 2), (5, 2, 2, 3)]
    {
        let panels: Vec<Panel<'_>> = (0..panels).map(|_| panel(Vec::new())).collect();
        let drawn = Panels { columns, ..figure(&panels) }.draw().unwrap();
        let svg = drawn.svg();
        assert_eq!(count(&svg, ">panel<"), panels.len());
        assert_eq!((count(&svg, ">across<"), count(&svg, ">up<")), (x_axes, y_axes));
        assert!(drawn.png().unwrap().starts_with(b"\x89PNG"));
    }
}

#[test]
fn dots_that_are_not_shown_are_counted() {
    let points = pairs(&[[0.0, 0.0], [0.5, -0.5], [3.0, 0.0], [f64::NAN, 0.0]]);
    let svg = draw(vec![Layer::Dots { points: points.as_ref(), color: 0 }]).svg();
    assert_eq!(count(&svg, "<circle"), 2);
    assert!(svg.contains("1 particle outside the picture; 1 particle not finite"), "{svg}");
}

/// All coordinates of the drawn lines, in order.
fn line_coordinates(svg: &str, color: &str) -> Vec<f64> {
    let paths = svg.split("<path d=\"").skip(1).filter(|part| {
        part.split("/>").next().is_some_and(|tag| tag.contains(&format!("stroke=\"{color}\"")))
    });
    let numbers = paths.flat_map(|part| {
        let data = part.split('"').next().unwrap_or_default();
        data.split(|c: char| "MLZ ,".contains(c)).map(str::to_owned).collect::<Vec<_>>()
    });
    numbers.filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn paths_are_cut_off_at_the_edge_and_end_in_full_colour() {
    // Far out and back, with a place that is not finite on the way.
    let wild = pairs(&[
        [0.0, 0.0],
        [1e300, 0.3],
        [0.1, 0.1],
        [f64::INFINITY, 0.0],
        [0.2, 0.2],
        [-7.0, 9.0],
        [0.5, 0.5],
        [0.9, 0.9],
    ]);
    let figure = draw(vec![Layer::Path { points: wild.as_ref(), color: 0, width: 1.0 }]);
    let found = line_coordinates(&figure.svg(), "#d55e00");
    assert!(!found.is_empty(), "the end of the path has the full colour");
    assert!(found.iter().all(|&place| (0.0..=500.0).contains(&place)), "{found:?}");
    assert!(!figure.svg().contains("NaN") && !figure.svg().contains("inf"));
    assert!(figure.png().unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn a_path_at_rest_takes_few_points() {
    let resting = Matrix::from_fn(5000, 2, |i, _| 0.5 - 0.5 * (-0.1 * i as f64).exp());
    let svg = draw(vec![Layer::Path { points: resting.as_ref(), color: 0, width: 1.0 }]).svg();
    assert!(svg.len() < 20_000, "{}", svg.len());
}

#[test]
fn arrows_have_heads_where_their_tips_can_be_seen() {
    let at = pairs(&[[0.0, 0.0], [0.9, 0.0], [0.0, 0.0]]);
    let by = pairs(&[[0.5, 0.5], [5.0, 0.0], [0.0, 0.0]]);
    let arrows = Layer::Arrows { at: at.as_ref(), by: by.as_ref(), color: 2 };
    let svg = draw(vec![arrows]).svg();
    // One head: the second is beyond the edge, and the third has no length.
    assert_eq!(count(&svg, "fill=\"#009e73\""), 1, "{svg}");
}

#[test]
fn corners_legends_and_strange_texts_are_drawn() {
    let corner = vec!["29 / 41 / 30 %".to_owned(), "<&>".to_owned()];
    let panels = [Panel { title: "long ".repeat(60), layers: Vec::new(), corner }];
    let marks = [Mark::Dot, Mark::Ring, Mark::Line, Mark::Arrow, Mark::Bar];
    let legend = marks.map(|mark| Key { mark, color: 11, name: "a key" });
    let svg = Panels { legend: &legend, ..figure(&panels) }.draw().unwrap().svg();
    assert!(svg.contains("29 / 41 / 30 %") && svg.contains("&lt;&amp;&gt;") && svg.contains('…'));
    assert_eq!(count(&svg, ">a key<"), marks.len());
}

#[test]
fn the_density_is_behind_everything() {
    let grid = Matrix::from_fn(21, 21, |i, j| {
        let (x, y) = (j as f64 / 10.0 - 1.0, i as f64 / 10.0 - 1.0);
        -4.0 * (x * x + y * y)
    });
    let density = Density::Plane { x: (-1.0, 1.0), y: (-1.0, 1.0), log_density: grid.as_ref() };
    let points = pairs(&[[0.0, 0.0]]);
    let panels = [panel(vec![Layer::Dots { points: points.as_ref(), color: 0 }])];
    let svg = Panels { density: Some(density), ..figure(&panels) }.draw().unwrap().svg();
    assert!(svg.find("#4d93c3").unwrap() < svg.find("<circle").unwrap());
    assert!(svg.contains("% of the target"));
}

#[test]
fn what_does_not_fit_is_refused_with_a_reason() {
    let three = Matrix::<f64>::zeros(2, 3);
    let flat = [0.0; 4];
    let good = [panel(Vec::new())];
    let bad_points = [panel(vec![Layer::Dots { points: three.as_ref(), color: 0 }])];
    let line = Density::Line { limits: (0.0, 1.0), log_density: &flat };
    for (panels, word) in [
        (figure(&[]), "0 panels"),
        (Panels { columns: 0, ..figure(&good) }, "0 columns"),
        (Panels { x: (1.0, 1.0), ..figure(&good) }, "increasing"),
        (Panels { y: (f64::NAN, 1.0), ..figure(&good) }, "increasing"),
        (Panels { density: Some(line), ..figure(&good) }, "on a plane"),
        (figure(&bad_points), "2, x and y"),
    ] {
        let error = panels.draw().unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(word), "{error}");
    }
}
