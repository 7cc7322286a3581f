//! Every way a data file can be wrong, and that the message says where and what to do.

use steinflow_models::data::Table;
use steinflow_models::regression::{Design, LinearRegression, LogisticRegression};
use steinflow_models::{Error, TableError};

fn read(text: &str) -> TableError {
    Table::from_reader(text.as_bytes(), "data.csv").unwrap_err()
}

/// The error's message holds every one of `words`.
fn says(error: &(impl std::error::Error + ?Sized), words: &[&str]) {
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
}

#[test]
fn good_files_with_quotes_spaces_blank_lines_and_a_byte_order_mark_are_read() {
    let text = "\u{feff}\"a b\", y\r\n 1 ,\"2.5\"\r\n\r\n-3e-2,+4\r\n";
    let table = Table::from_reader(text.as_bytes(), "data.csv").unwrap();
    assert_eq!(table.columns(), ["a b", "y"]);
    assert_eq!(table.values().as_slice(), [1.0, 2.5, -0.03, 4.0]);
    assert_eq!((table.line(0), table.line(1)), (2, 4));
    // A line end inside quotes is a line of the file too.
    let table = Table::from_reader("\"a\nb\",y\n1,2\n".as_bytes(), "data.csv").unwrap();
    assert_eq!(table.line(0), 3);
    assert_eq!(table.position(None).unwrap(), 1);
}

#[test]
fn a_missing_file_is_named() {
    let error = Table::read("no/such/file.csv").unwrap_err();
    assert!(matches!(error, TableError::Open { .. }));
    says(&error, &["cannot open no/such/file.csv", "check the path"]);
}

#[test]
fn a_directory_is_called_one() {
    let error = Table::read(env!("CARGO_MANIFEST_DIR")).unwrap_err();
    assert!(matches!(error, TableError::Directory { .. }), "{error}");
    says(&error, &[env!("CARGO_MANIFEST_DIR"), "is a directory", "CSV or Parquet file"]);
}

#[test]
fn other_separators_are_recognised() {
    for text in ["a;y\n1,5;2\n", "\"a\";\"y\"\n1.5;2\n", "a\ty\n1.5\t2\n", "a|y\n1.5|2\n"] {
        let table = Table::from_reader(text.as_bytes(), "data.csv").unwrap();
        assert_eq!((table.columns().len(), table.values().row(0)), (2, &[1.5, 2.0][..]), "{text}");
    }
    assert!(matches!(read("1;2\n3;4\n"), TableError::NoHeader { .. }));
    // Beside commas they are part of a name.
    let table = Table::from_reader("a;b,y\n1,2\n".as_bytes(), "data.csv").unwrap();
    assert_eq!(table.columns(), ["a;b", "y"]);
}

#[test]
fn what_is_no_text_is_rejected() {
    // Nor are zeros of any text that a spreadsheet writes.
    let error = Table::from_reader(&b"a,y\n1,\xff\x00\n"[..], "data.csv").unwrap_err();
    assert!(matches!(error, TableError::Read { .. }));
    says(&error, &["data.csv", "UTF-8"]);
}

#[test]
fn a_header_is_required() {
    for text in ["", "\n\n"] {
        let error = read(text);
        assert!(matches!(error, TableError::NoHeader { .. }), "{error}");
        says(&error, &["data.csv", "an empty file"]);
    }
    let error = read("1,2\n3,4\n");
    assert!(matches!(error, TableError::NoHeader { .. }));
    says(&error, &["data.csv", "`1,2`", "line 1"]);
}

#[test]
fn names_must_be_there_and_differ() {
    assert!(matches!(read("a,,y\n1,2,3\n"), TableError::UnnamedColumn { position: 2, .. }));
    let error = read("a,b,a\n1,2,3\n");
    assert!(matches!(&error, TableError::DuplicateColumn { column, .. } if column == "a"));
    let table = Table::from_reader("intercept,y\n1,2\n3,4\n".as_bytes(), "data.csv").unwrap();
    let error = Design::new(&table, None).unwrap_err();
    assert!(matches!(&error, TableError::DuplicateColumn { column, .. } if column == "intercept"));
}

#[test]
fn rows_are_required() {
    let error = read("a,y\n");
    assert!(matches!(error, TableError::NoRows { .. }));
    says(&error, &["data.csv", "no rows"]);
}

#[test]
fn ragged_rows_are_located() {
    for (text, cells) in [("a,y\n1,2\n3\n", 1), ("a,y\n1,2\n3,4,5\n", 3)] {
        let error = read(text);
        assert!(
            matches!(error, TableError::RaggedRow { line: 3, found, expected: 2, .. } if found == cells),
            "{error}"
        );
        says(&error, &["data.csv, line 3", "separators"]);
    }
}

#[test]
fn bad_cells_are_located() {
    let error = read("a,y\n1,2\n ,4\n");
    assert!(matches!(error, TableError::MissingCell { line: 3, .. }));
    says(&error, &["data.csv, line 3, column `a`", "empty"]);

    // The blank line counts.
    let error = read("a,y\n1,2\n\n3,four\n");
    assert!(matches!(error, TableError::NotANumber { line: 4, .. }), "{error}");
    says(&error, &["data.csv, line 4, column `y`", "`four`", "not a number"]);

    for text in ["inf", "-Infinity", "1e999"] {
        let error = read(&format!("a,y\n{text},2\n"));
        assert!(matches!(error, TableError::NotFinite { line: 2, .. }), "{error}");
        says(&error, &["column `a`", &format!("`{text}`"), "not finite"]);
    }
}

#[test]
fn an_unknown_target_suggests_the_nearest() {
    let table = Table::from_reader("size,price\n1,2\n3,5\n".as_bytes(), "data.csv").unwrap();
    let error = LinearRegression::<f64>::new(&table, Some("prize"), 1.0, None).unwrap_err();
    assert!(matches!(error, Error::Table(TableError::UnknownColumn { .. })));
    says(&error, &["data.csv", "`prize`", "did you mean `price`?"]);
    assert!(error.is_usage());
    let error = LinearRegression::<f64>::new(&table, Some("outcome"), 1.0, None).unwrap_err();
    says(&error, &["data.csv", "`outcome`", "known: size, price"]);
}

#[test]
fn features_are_required() {
    let table = Table::from_reader("y\n1\n3\n".as_bytes(), "data.csv").unwrap();
    let error = Design::new(&table, None).unwrap_err();
    assert!(matches!(error, TableError::NoFeatures { .. }));
    says(&error, &["data.csv", "`y`", "at least 1 feature"]);
}

#[test]
fn constant_columns_are_named() {
    let table = Table::from_reader("a,b,y\n1,7,2\n3,7,5\n".as_bytes(), "data.csv").unwrap();
    let error = Design::new(&table, None).unwrap_err();
    assert!(matches!(error, TableError::ConstantColumn { value: 7.0, .. }));
    says(&error, &["data.csv, column `b`", "remove the column"]);

    let error = LinearRegression::<f64>::new(
        &Table::from_reader("a,y\n1,7\n3,7\n".as_bytes(), "data.csv").unwrap(),
        None,
        1.0,
        None,
    )
    .unwrap_err();
    says(&error, &["column `y`", "another target"]);
}

#[test]
fn columns_that_overflow_or_vanish_are_named() {
    for (text, sd) in [("a,y\n1e308,1\n-1e308,2\n", "inf"), ("a,y\n1e-320,1\n0,2\n", "0")] {
        let table = Table::from_reader(text.as_bytes(), "data.csv").unwrap();
        let error = Design::new(&table, None).unwrap_err();
        assert!(matches!(error, TableError::Unscalable { .. }), "{error}");
        says(&error, &["column `a`", &format!("comes out as {sd}"), "unit"]);
    }
}

#[test]
fn a_logistic_target_is_0_or_1() {
    let table = Table::from_reader("a,y\n1,0\n2,1\n\n3,2\n".as_bytes(), "data.csv").unwrap();
    let error = LogisticRegression::<f32>::new(&table, None, 1.0).unwrap_err();
    assert!(matches!(error, Error::Table(TableError::NotBinary { line: 5, .. })), "{error}");
    says(&error, &["data.csv, line 5, column `y`", "0 or 1", "found 2"]);
}

#[test]
fn a_logistic_target_has_both_classes() {
    for class in [0, 1] {
        let text = format!("a,y\n1,{class}\n2,{class}\n");
        let table = Table::from_reader(text.as_bytes(), "data.csv").unwrap();
        let error = LogisticRegression::<f64>::new(&table, None, 1.0).unwrap_err();
        assert!(matches!(error, Error::Table(TableError::OneClass { .. })), "{error}");
        assert!(error.is_usage());
        let found = format!("every row holds {class}");
        says(&error, &["data.csv, column `y`", &found, "nothing to learn", "another target"]);
    }
}
