//! Parquet tables come back as they were, byte for byte the same each time.

use std::path::PathBuf;

use steinflow_io::{Column, Error, Values, parquet_memory, read_parquet, write_parquet};

fn columns() -> Vec<Column> {
    let column = |name: &str, values| Column { name: name.into(), values };
    let rows = 2500_u16;
    vec![
        column("theta[0]", Values::F64((0..rows).map(|i| (f64::from(i) * 0.37).sin()).collect())),
        column("a.b c/µ", Values::F32((0..rows).map(|i| f32::from(i).sqrt() - 3.0).collect())),
        column("particle", Values::U64((0..rows).map(|i| u64::MAX - u64::from(i % 7)).collect())),
    ]
}

fn bytes_of(columns: &[Column]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_parquet(columns, &mut bytes).unwrap();
    bytes
}

/// Writes bytes to a file of their own and reads them as a table.
fn read_back(name: &str, bytes: &[u8]) -> Result<Vec<Column>, Error> {
    let path: PathBuf =
        std::env::temp_dir().join(format!("steinflow-io-{}-{name}.parquet", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let result = read_parquet(&path);
    std::fs::remove_file(&path).unwrap();
    result
}

#[test]
fn every_type_comes_back() {
    assert_eq!(read_back("types", &bytes_of(&columns())).unwrap(), columns());
}

#[test]
fn special_floats_come_back() {
    let values = vec![f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MIN_POSITIVE, f64::NAN];
    let table = [Column { name: "x".into(), values: Values::F64(values.clone()) }];
    let read = read_back("special", &bytes_of(&table)).unwrap();
    let Values::F64(back) = &read[0].values else { panic!("{read:?}") };
    let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(back), bits(&values));
}

#[test]
fn a_table_without_rows_comes_back() {
    let table = [Column { name: "x".into(), values: Values::F32(vec![]) }];
    assert_eq!(read_back("empty", &bytes_of(&table)).unwrap(), table);
}

#[test]
fn more_rows_than_a_row_group_come_back() {
    let rows = (1 << 20) + 3;
    let table = [Column { name: "i".into(), values: Values::U64((0..rows).collect()) }];
    assert_eq!(read_back("groups", &bytes_of(&table)).unwrap(), table);
}

#[test]
fn the_same_table_gives_the_same_bytes() {
    assert_eq!(bytes_of(&columns()), bytes_of(&columns()));
    let mut other = columns();
    other[0].name.push('x');
    assert_ne!(bytes_of(&columns()), bytes_of(&other));
}

#[test]
fn columns_that_make_no_table_are_refused() {
    let mut unequal = columns();
    unequal[1].values = Values::F32(vec![1.0]);
    let mut twice = columns();
    twice[1].name = "theta[0]".into();
    for (table, word) in [(unequal, "1"), (twice, "theta[0]"), (vec![], "none")] {
        let error = write_parquet(&table, Vec::new()).unwrap_err();
        assert!(
            matches!(error, Error::Table { .. }) && error.to_string().contains(word),
            "{error}"
        );
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = read_parquet("no/such/file.parquet").unwrap_err();
    assert!(error.to_string().contains("no/such/file.parquet"), "{error}");
}

#[test]
fn a_file_that_is_not_parquet_is_an_error() {
    for bytes in [&b""[..], b"PAR1", b"x,y\n1,2\n", b"PAR1\x15\x15PAR1"] {
        let error = read_back("foreign", bytes).unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    }
}

#[test]
fn a_cut_file_is_an_error() {
    let bytes = bytes_of(&columns());
    for length in (0..bytes.len()).step_by(97) {
        assert!(read_back("cut", &bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn damaged_bytes_never_panic() {
    let small: Vec<Column> = columns()
        .into_iter()
        .map(|column| Column {
            values: match column.values {
                Values::F64(values) => Values::F64(values[..9].to_vec()),
                Values::F32(values) => Values::F32(values[..9].to_vec()),
                Values::U64(values) => Values::U64(values[..9].to_vec()),
            },
            ..column
        })
        .collect();
    let bytes = bytes_of(&small);
    let mut errors = 0;
    for position in 0..bytes.len() {
        for pattern in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[position] ^= pattern;
            errors += usize::from(read_back("damaged", &damaged).is_err());
        }
    }
    assert!(errors > bytes.len() / 4, "only {errors} of {} were noticed", 3 * bytes.len());
}

#[test]
fn the_memory_that_a_small_file_takes_is_known_before_it_is_read() {
    let rows = 2_000_000;
    let columns =
        ["x", "y"].map(|name| Column { name: name.into(), values: Values::F64(vec![0.0; rows]) });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros.parquet");
    std::fs::write(&path, bytes_of(&columns)).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < rows as u64);
    let needed = parquet_memory(&path).unwrap();
    // Two columns of eight bytes, and at most three times as much.
    assert!((16 * rows as u64..48 * rows as u64).contains(&needed), "{needed}");
    std::fs::write(&path, b"nonsense").unwrap();
    assert!(matches!(parquet_memory(&path), Err(Error::Unreadable { .. })));
}
