//! Parquet files, read as files of text are.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use csv::StringRecord;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;

use super::TableError;
use super::dialect::Dialect;
use super::frame::{Frame, MAX_CELLS, names, too_large};

/// How a Parquet file begins.
const MAGIC: [u8; 4] = *b"PAR1";

/// Whether a file is one; it is left at its beginning. A pipe is none: its end could not be read first.
pub(super) fn is_parquet(mut file: &File) -> io::Result<bool> {
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let mut magic = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut magic)?;
    file.rewind()?;
    Ok(magic == MAGIC)
}

impl Frame {
    /// Every cell as text; a number reads back as itself.
    pub(super) fn from_parquet(opened: File, path: &Path) -> Result<Self, TableError> {
        let unreadable = |message: String| TableError::Read {
            file: path.to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidData, message),
        };
        // The reader panics at some files that are damaged.
        let read = catch_unwind(AssertUnwindSafe(|| read_rows(opened, path)));
        match read {
            Ok(Ok(frame)) => frame?.with_rows(),
            Ok(Err(error)) => Err(unreadable(error.to_string())),
            Err(_) => Err(unreadable("the file is damaged".to_owned())),
        }
    }
}

type Rows = Result<Result<Frame, TableError>, parquet::errors::ParquetError>;

fn read_rows(opened: File, path: &Path) -> Rows {
    let reader = SerializedFileReader::new(opened)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields();
    let columns = match names(fields.iter().map(|field| field.name()), path) {
        Ok(columns) => columns,
        Err(error) => return Ok(Err(error)),
    };
    let mut rows = Vec::new();
    for row in reader.get_row_iter(None)? {
        let row = row?;
        rows.push(row.get_column_iter().map(|(_, field)| text(field)).collect::<StringRecord>());
        if rows.len() > MAX_CELLS / columns.len().max(1) {
            return Ok(Err(too_large(path, MAX_CELLS as u64, "cells")));
        }
    }
    // Counted as a file of text has them, the header's line first.
    let lines = (2..).take(rows.len()).collect();
    let (file, dialect) = (path.to_owned(), Dialect::PLAIN);
    Ok(Ok(Frame { file, columns, rows, lines, dialect, encoding: None }))
}

fn text(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.trim().to_owned(),
        Field::Float(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::data_type::{BoolType, ByteArrayType, DoubleType, Int32Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use crate::data::{Choices, read_table};

    fn write(path: &std::path::Path) {
        let schema = "message table { optional double area; required binary district (UTF8);
                      required boolean garden; required int32 built (DATE); required double price; }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let file = std::fs::File::create(path).unwrap();
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut next = |write: &dyn Fn(&mut parquet::file::writer::SerializedColumnWriter<'_>)| {
            let mut column = group.next_column().unwrap().unwrap();
            write(&mut column);
            column.close().unwrap();
        };
        next(&|column| {
            let area = column.typed::<DoubleType>();
            area.write_batch(&[0.1, 60.0], Some(&[1, 0, 1]), None).unwrap();
        });
        next(&|column| {
            let district = ["north", "south", "south"].map(Into::into);
            column.typed::<ByteArrayType>().write_batch(&district, None, None).unwrap();
        });
        next(&|column| {
            column.typed::<BoolType>().write_batch(&[true, false, false], None, None).unwrap();
        });
        next(&|column| {
            column.typed::<Int32Type>().write_batch(&[1, 2, 11_323], None, None).unwrap();
        });
        next(&|column| {
            let price = column.typed::<DoubleType>();
            price.write_batch(&[1.0, 2.0, f64::MIN_POSITIVE], None, None).unwrap();
        });
        group.close().unwrap();
        writer.close().unwrap();
    }

    #[test]
    fn a_parquet_file_is_read_as_text_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("homes");
        write(&path.with_extension("parquet"));
        let path = path.with_extension("parquet");
        let (table, _) = read_table(&path, None, &Choices::default()).unwrap();
        assert_eq!(table.columns(), ["area", "district[south]", "garden", "built", "price"]);
        assert_eq!(table.values().row(0), [0.1, 0.0, 1.0, 1.0, 1.0]);
        assert_eq!(table.values().row(1), [60.0, 1.0, 0.0, 11_323.0, f64::MIN_POSITIVE]);

        let mut bytes = std::fs::read(&path).unwrap();
        for cut in [5, bytes.len() / 2, bytes.len() - 3] {
            bytes.truncate(cut.max(5));
            std::fs::write(&path, &bytes).unwrap();
            assert!(read_table(&path, None, &Choices::default()).is_err());
        }
    }
}
