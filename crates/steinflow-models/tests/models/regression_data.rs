//! Standardisation by the training rows alone, and of files that come later.

use std::io::Write as _;

use steinflow_models::data::{RegressionData, Split, Table};

use crate::support::{csv_text, table};

fn read(text: &str) -> Table {
    Table::from_reader(text.as_bytes(), "data.csv").unwrap()
}

#[test]
fn training_rows_have_mean_0_and_sd_1_whatever_the_test_rows_are() {
    let split = Split::random(60, 0.25, 5).unwrap();
    let data = RegressionData::new(&table(60, false), Some("outcome"), &split).unwrap();
    assert_eq!(data.standardisation().feature_names, ["height", "weight", "offset"]);
    let column = |j: usize| (0..45).map(move |i| (i, j));
    for j in 0..3 {
        let entries = || column(j).map(|(i, j)| data.train_inputs().row(i)[j]);
        let mean = entries().sum::<f64>() / 45.0;
        let variance = entries().map(|x| x * x).sum::<f64>() / 45.0;
        assert!(mean.abs() < 1e-12 && (variance - 1.0).abs() < 1e-12, "{mean} {variance}");
    }
    assert_eq!(data.test_rows(), split.test());
    for (standard, own) in data.test_targets().iter().zip(data.test_targets_in_units()) {
        assert!((data.target_scaling().restore(*standard) - own).abs() < 1e-12);
    }

    // A test row moved to the ends of the earth changes no scaling.
    let mut lines: Vec<String> = csv_text(60, false).lines().map(str::to_owned).collect();
    lines[split.test()[0] + 1] = "1e9,1e9,1e9,1e9".to_owned();
    let moved = RegressionData::new(&read(&lines.join("\n")), None, &split).unwrap();
    assert_eq!(moved.standardisation(), data.standardisation());
    assert_eq!(moved.train_inputs(), data.train_inputs());
}

#[test]
fn a_feature_that_is_constant_in_training_is_named() {
    let table = read("rare,x,y\n0,1,1\n0,2,3\n1,3,2\n");
    let split = Split::new(3, vec![2]).unwrap();
    let message = RegressionData::new(&table, None, &split).unwrap_err().to_string();
    for words in ["column `rare`", "all 2 training rows hold 0", "remove the column"] {
        assert!(message.contains(words), "`{words}` is not in: {message}");
    }
    assert!(RegressionData::train_only(&table, None).is_ok());
    let other = Split::new(4, vec![2]).unwrap();
    let message = RegressionData::new(&table, None, &other).unwrap_err().to_string();
    assert!(message.contains("4 rows, but the table has 3"), "{message}");
}

#[test]
fn new_rows_are_matched_by_name() {
    let data = RegressionData::train_only(&read("a,b,y\n1,10,0\n3,30,4\n"), Some("y")).unwrap();
    assert_eq!(data.test_inputs().rows(), 0);
    let standardisation = data.standardisation();
    let new = standardisation.standardise_new(&read("b,a\n50,1\n")).unwrap();
    assert_eq!((new.inputs.row(0), new.targets_in_units), (&[-1.0, 3.0][..], None));
    let new = standardisation.standardise_new(&read("y,b,a\n9,20,2\n")).unwrap();
    assert_eq!((new.inputs.row(0), new.targets_in_units), (&[0.0, 0.0][..], Some(vec![9.0])));

    let message = standardisation.standardise_new(&read("a,y\n1,2\n")).unwrap_err().to_string();
    assert!(message.contains("no column `b`"), "{message}");
    let wider = standardisation.standardise_new(&read("a,b,c\n2,20,3\n")).unwrap();
    assert_eq!(wider.inputs.as_slice(), [0.0, 0.0], "what is not asked for is not read");
}

#[test]
fn a_compressed_table_is_the_same_table_whatever_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(csv_text(20, false).as_bytes()).unwrap();
    let file = folder.path().join("table.csv");
    std::fs::write(&file, encoder.finish().unwrap()).unwrap();
    let compressed = Table::read(&file).unwrap();
    assert_eq!(compressed.values(), table(20, false).values());
    assert_eq!(compressed.line(3), 5);
}
