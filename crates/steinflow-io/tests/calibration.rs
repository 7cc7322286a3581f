//! Pictures of predictions can be drawn from any numbers, and files are never half written.

use steinflow_io::WholeFile;
use steinflow_io::plot::CalibrationPlot;

fn svg(targets: &[f64], means: &[f64], half_width: f64, pit: &[usize]) -> String {
    let intervals: Vec<(f64, f64)> =
        means.iter().map(|mean| (mean - half_width, mean + half_width)).collect();
    let plot = CalibrationPlot {
        targets,
        means,
        intervals: &intervals,
        interval_name: "90 % interval",
        pit,
        target_name: "weight",
        title: "Title",
        caption: "caption",
    };
    let figure = plot.draw().unwrap();
    assert!(figure.png().unwrap().starts_with(b"\x89PNG"));
    figure.svg()
}

#[test]
fn every_row_is_a_dot_with_its_interval() {
    let targets: Vec<f64> = (0..30).map(f64::from).collect();
    let means: Vec<f64> = targets.iter().map(|y| y + (y * 3.0).sin()).collect();
    let svg = svg(&targets, &means, 2.0, &[10, 20]);
    // One more dot is in the legend.
    assert_eq!(svg.matches("<circle").count(), 31);
    for text in ["Title", "caption", "weight", "predicted weight", "90 % interval", "rows"] {
        assert!(svg.contains(text), "{text}");
    }
}

#[test]
fn many_rows_are_thinned_and_counted() {
    let targets: Vec<f64> = (0..5000).map(|i| f64::from(i).sin()).collect();
    let svg = svg(&targets, &targets, 1.0, &[2500, 2500]);
    assert_eq!(svg.matches("<circle").count(), 401);
    assert!(svg.contains("400 of 5000 shown"));
}

#[test]
fn odd_numbers_are_drawn() {
    for value in [0.0, 1e-200, 1e200, f64::MAX, f64::NAN, f64::INFINITY] {
        for rows in [0, 1, 3] {
            let values = vec![value; rows];
            let svg = svg(&values, &values, 1.0, &[rows, 0, 0]);
            assert!(!svg.contains("NaN"), "{value} {rows}");
        }
    }
}

#[test]
fn rows_that_do_not_fit_are_an_error() {
    let plot = CalibrationPlot {
        targets: &[1.0],
        means: &[1.0, 2.0],
        intervals: &[(0.0, 1.0)],
        interval_name: "",
        pit: &[1],
        target_name: "y",
        title: "",
        caption: "",
    };
    assert!(plot.draw().unwrap_err().to_string().contains("is 2, expected 1"));
    let no_bars = CalibrationPlot { means: &[1.0], pit: &[], ..plot };
    assert!(no_bars.draw().unwrap_err().to_string().contains("bars"));
}

#[test]
fn a_file_is_replaced_only_by_force_and_leaves_no_trace_of_failure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let early = WholeFile::create(&path, false).unwrap();
    WholeFile::create(&path, false).unwrap().write(b"first").unwrap();
    // Taken in the meantime.
    assert!(early.write(b"second").unwrap_err().to_string().contains("--force"));
    assert!(WholeFile::create(&path, false).unwrap_err().is_usage());
    assert_eq!(std::fs::read(&path).unwrap(), b"first");
    WholeFile::create(&path, true).unwrap().write(b"third").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"third");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    for wrong in [folder.path().to_path_buf(), folder.path().join("no/table.csv"), "..".into()] {
        assert!(WholeFile::create(&wrong, true).is_err(), "{}", wrong.display());
    }
}
