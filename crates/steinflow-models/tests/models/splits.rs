//! Train/test splits: the standard ones to the row, random ones by their laws, files with every fault.

use std::io::Write as _;

use steinflow_models::data::{Split, SplitError, data_set, data_sets, find};

/// The first and the last of yacht's standard splits, as published.
const YACHT: &str = include_str!("../fixtures/yacht-splits-0-and-19.txt");

fn sorted(line: &str) -> Vec<usize> {
    let mut rows: Vec<usize> = line.split_whitespace().map(|row| row.parse().unwrap()).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn standard_splits_are_the_published_ones() {
    let yacht = data_set("yacht").unwrap();
    for (index, line) in [0, 19].into_iter().zip(YACHT.lines()) {
        assert_eq!(yacht.split(index).unwrap().test(), sorted(line), "split {index}");
    }
}

/// Every split of every set, where the user's folder has the published files.
#[test]
fn all_standard_splits_are_those_of_the_data_folder() {
    let Some(folder) = std::env::var_os("STEINFLOW_DATA") else {
        let _ = writeln!(std::io::stderr(), "skipped: STEINFLOW_DATA is not set");
        return;
    };
    let mut compared = 0;
    for set in data_sets() {
        let file = std::path::Path::new(&folder).join(format!("splits/{}.txt.gz", set.name));
        if !file.exists() {
            continue;
        }
        for index in 0..set.split_count() {
            let published = Split::from_file(&file, set.rows, index).unwrap();
            assert_eq!(set.split(index).unwrap(), published, "{} {index}", set.name);
        }
        let error = Split::from_file(&file, set.rows, set.split_count()).unwrap_err();
        assert!(matches!(error, SplitError::NoSuchSplit { .. }), "{error}");
        let found = find(set.name, Some(folder.as_ref())).unwrap();
        assert_eq!(found.split_file().unwrap(), file);
        compared += 1;
    }
    assert!(compared > 0, "there are no splits in STEINFLOW_DATA");
}

#[test]
fn the_year_set_trains_on_its_first_rows() {
    let split = data_set("year").unwrap().split(0).unwrap();
    assert_eq!((split.train().len(), split.test().len()), (463_715, 51_630));
    assert_eq!(split.test()[0], 463_715);
    assert!(data_set("year").unwrap().split(1).is_err());
}

#[test]
fn a_random_split_has_the_share_asked_for_and_depends_on_the_seed_alone() {
    let split = Split::random(1000, 0.2, 7).unwrap();
    assert_eq!((split.train().len(), split.test().len()), (800, 200));
    assert_eq!(split, Split::random(1000, 0.2, 7).unwrap());
    assert_ne!(split, Split::random(1000, 0.2, 8).unwrap());
    // Rows of every tenth are drawn, none much more often than its share.
    for tenth in 0..10 {
        let drawn = split.test().iter().filter(|&&row| row / 100 == tenth).count();
        assert!((6..=36).contains(&drawn), "{drawn} of rows {tenth}00 …");
    }
    // However small the share, both parts hold a row.
    assert_eq!(Split::random(3, 0.01, 1).unwrap().test().len(), 1);
    assert_eq!(Split::random(3, 0.99, 1).unwrap().train().len(), 1);
}

#[test]
fn folds_share_out_the_training_rows_and_leave_the_test_rows_alone() {
    let split = Split::random(103, 0.2, 3).unwrap();
    let folds = split.folds(5, 11).unwrap();
    let mut validated: Vec<usize> = folds.iter().flat_map(Split::test).copied().collect();
    validated.sort_unstable();
    assert_eq!(validated, split.train());
    for fold in &folds {
        assert!((16..=17).contains(&fold.test().len()));
        let mut both = [fold.train(), fold.test()].concat();
        both.sort_unstable();
        assert_eq!(both, split.train());
    }
    let held_out = split.hold_out(0.25, 1).unwrap();
    assert_eq!(held_out.test().len(), 21);
    assert!(held_out.test().iter().chain(held_out.train()).all(|row| split.train().contains(row)));
}

#[test]
fn wrong_requests_say_what_to_do() {
    for fraction in [0.0, 1.0, -0.1, f64::NAN] {
        let message = Split::random(10, fraction, 1).unwrap_err().to_string();
        assert!(message.contains(&format!("test-fraction is {fraction}")), "{message}");
        assert!(message.contains("between 0 and 1"), "{message}");
    }
    for folds in [0, 1, 10] {
        let split = Split::new(10, vec![3]).unwrap();
        let message = split.folds(folds, 1).unwrap_err().to_string();
        assert!(message.contains("from 2 to 9"), "{message}");
    }
    assert!(Split::random(1, 0.5, 1).is_err());
    assert!(matches!(Split::new(3, vec![3]), Err(SplitError::OutOfRange { row: 3, rows: 3 })));
    assert!(matches!(Split::new(3, vec![1, 1]), Err(SplitError::Duplicate { row: 1 })));
    assert!(matches!(Split::new(2, vec![]), Err(SplitError::EmptyPart { train: 2, test: 0 })));
    assert!(matches!(Split::new(2, vec![0, 1]), Err(SplitError::EmptyPart { train: 0, test: 2 })));
}

#[test]
fn split_files_are_read_plain_and_compressed_and_their_faults_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("splits.txt");
    let write = |bytes: &[u8]| std::fs::write(&file, bytes).unwrap();
    let read = |index| Split::from_file(&file, 4, index);

    write(b"0 2\r\n3\n");
    assert_eq!(read(1).unwrap().test(), [3]);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"0 2\n3\n").unwrap();
    write(&encoder.finish().unwrap());
    assert_eq!(read(0).unwrap().test(), [0, 2]);

    for (text, index, words) in [
        ("0 2\n3\n", 2, "split 2 does not exist"),
        ("0 2\n-3\n", 0, "line 2: `-3` is not a row number"),
        ("0 2.0\n", 0, "line 1: `2.0` is not a row number"),
        ("0 4\n", 0, "row 4, but the table has 4 rows"),
        ("2 2\n", 0, "row 2 twice"),
        ("\n1\n", 0, "0 test rows"),
        ("", 0, "split 0 does not exist"),
    ] {
        write(text.as_bytes());
        let message = read(index).unwrap_err().to_string();
        assert!(message.contains(words), "`{words}` is not in: {message}");
    }
    let message = Split::from_file("no/such.txt", 4, 0).unwrap_err().to_string();
    assert!(message.contains("no/such.txt"), "{message}");
}
