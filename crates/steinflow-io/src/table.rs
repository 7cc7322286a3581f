//! Tables of numbers in Parquet files whose bytes depend on their content alone.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType as Converted, LogicalType, Repetition, Type as PhysicalType,
};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{DataType, DoubleType, FloatType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type, TypePtr};

use crate::{Error, Result};

/// Rows of a row group: what a reader holds in memory at once.
const GROUP_ROWS: usize = 1 << 20;

/// One named column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, unique in the table.
    pub name: String,
    /// Its entries.
    pub values: Values,
}

/// The entries of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Double precision.
    F64(Vec<f64>),
    /// Single precision.
    F32(Vec<f32>),
    /// Counts and indices.
    U64(Vec<u64>),
}

impl Values {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::F64(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::U64(values) => values.len(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An entry, in double precision.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn number(&self, index: usize) -> f64 {
        match self {
            Self::F64(values) => values[index],
            Self::F32(values) => f64::from(values[index]),
            Self::U64(values) => values[index] as f64,
        }
    }

    /// All entries, in double precision.
    pub fn numbers(&self) -> Vec<f64> {
        (0..self.len()).map(|index| self.number(index)).collect()
    }

    /// All entries, as counts.
    pub fn counts(&self) -> Vec<u64> {
        match self {
            Self::U64(values) => values.clone(),
            other => other.numbers().into_iter().map(|x| x as u64).collect(),
        }
    }
}

/// Writes a table; all columns must have the same length and different names.
///
/// The same columns give the same bytes: the file holds no date, host or path.
pub fn write_parquet(columns: &[Column], writer: impl Write + Send) -> Result<()> {
    let rows = check_table(columns)?;
    let mut file = SerializedFileWriter::new(writer, schema(columns)?, properties(columns))?;
    let mut start = 0;
    while start < rows {
        let range = start..(start + GROUP_ROWS).min(rows);
        start = range.end;
        let mut group = file.next_row_group()?;
        for column in columns {
            if let Some(mut writer) = group.next_column()? {
                write_values(&mut writer, &column.values, range.clone())?;
                writer.close()?;
            }
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

/// The common length of the columns.
fn check_table(columns: &[Column]) -> Result<usize> {
    let table = |reason: String| Error::Table { reason };
    let Some(first) = columns.first() else {
        return Err(table("there are none, give at least one".into()));
    };
    let mut names = BTreeSet::new();
    for column in columns {
        if column.values.len() != first.values.len() {
            return Err(table(format!(
                "`{}` has {} rows and `{}` has {}, give both the same number",
                first.name,
                first.values.len(),
                column.name,
                column.values.len()
            )));
        }
        if !names.insert(column.name.as_str()) {
            return Err(table(format!("two are named `{}`, rename one", column.name)));
        }
    }
    Ok(first.values.len())
}

fn schema(columns: &[Column]) -> ParquetResult<TypePtr> {
    let fields = columns
        .iter()
        .map(|column| {
            let (physical, logical) = match column.values {
                Values::F64(_) => (PhysicalType::DOUBLE, None),
                Values::F32(_) => (PhysicalType::FLOAT, None),
                Values::U64(_) => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
            };
            Type::primitive_type_builder(&column.name, physical)
                .with_repetition(Repetition::REQUIRED)
                .with_logical_type(logical)
                .build()
                .map(Arc::new)
        })
        .collect::<ParquetResult<Vec<_>>>()?;
    Type::group_type_builder("steinflow").with_fields(fields).build().map(Arc::new)
}

fn properties(columns: &[Column]) -> WriterPropertiesPtr {
    let mut builder = WriterProperties::builder()
        .set_created_by("steinflow".into())
        .set_compression(Compression::SNAPPY);
    for column in columns {
        // Sampled floats hardly repeat, so a dictionary of them only doubles the work.
        if !matches!(column.values, Values::U64(_)) {
            let path = ColumnPath::new(vec![column.name.clone()]);
            builder = builder.set_column_dictionary_enabled(path, false);
        }
    }
    Arc::new(builder.build())
}

fn write_values(
    writer: &mut SerializedColumnWriter<'_>,
    values: &Values,
    rows: Range<usize>,
) -> ParquetResult<usize> {
    match values {
        Values::F64(values) => writer.typed::<DoubleType>().write_batch(&values[rows], None, None),
        Values::F32(values) => writer.typed::<FloatType>().write_batch(&values[rows], None, None),
        Values::U64(values) => {
            // Parquet stores unsigned numbers in the bits of signed ones.
            let bits: Vec<i64> = values[rows].iter().map(|value| value.cast_signed()).collect();
            writer.typed::<Int64Type>().write_batch(&bits, None, None)
        }
    }
}

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside [`read_parquet`]: a panic there becomes an error, so that a program's
/// panic hook need not speak of it.
pub fn is_decoding() -> bool {
    DECODING.get()
}

/// Reads a table of numbers, whether written here or by another tool.
///
/// Missing entries of a float column become NaN. Text, dates, nested columns, negative integers and
/// missing integers are errors that name the column.
pub fn read_parquet(path: impl AsRef<Path>) -> Result<Vec<Column>> {
    let path = path.as_ref();
    let file = File::open(path).map_err(Error::io("open", path))?;
    let unreadable = |reason: String| Error::Unreadable { path: path.to_path_buf(), reason };
    // The decoder answers most damage with an error, but some with a panic of its own.
    DECODING.set(true);
    let columns = catch_unwind(AssertUnwindSafe(|| read_columns(file)));
    DECODING.set(false);
    let columns =
        columns.unwrap_or_else(|_| Err("its bytes are damaged".into())).map_err(unreadable)?;
    check_table(&columns).map_err(|error| unreadable(error.to_string()))?;
    Ok(columns)
}

/// Bytes of memory, about, that reading a table takes: a small file may hold a large one, compressed.
pub fn parquet_memory(path: impl AsRef<Path>) -> Result<u64> {
    let path = path.as_ref();
    let file = File::open(path).map_err(Error::io("open", path))?;
    let reason = |error: ParquetError| error.to_string();
    DECODING.set(true);
    let size = catch_unwind(|| SerializedFileReader::new(file).map(|reader| memory(&reader)));
    DECODING.set(false);
    let size =
        size.map_or_else(|_| Err("its bytes are damaged".into()), |size| size.map_err(reason));
    size.map_err(|reason| Error::Unreadable { path: path.to_path_buf(), reason })
}

/// A value of up to eight bytes, twice while a column grows, and whether it is there; and the bytes of
/// the row group that is being read.
fn memory(reader: &SerializedFileReader<File>) -> u64 {
    let groups = reader.metadata().row_groups();
    let unsigned = |size: i64| u64::try_from(size).unwrap_or(u64::MAX);
    let size = |rows: i64, columns: usize| unsigned(rows).saturating_mul(18 * columns as u64);
    let sizes = groups.iter().map(|group| size(group.num_rows(), group.num_columns()));
    let largest = groups.iter().map(|group| unsigned(group.total_byte_size())).max();
    sizes.fold(largest.unwrap_or(0), u64::saturating_add)
}

fn read_columns(file: File) -> std::result::Result<Vec<Column>, String> {
    let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
    let descriptors = reader.metadata().file_metadata().schema_descr_ptr();
    let named = |(index, descriptor): (usize, &Arc<ColumnDescriptor>)| {
        let name = descriptor.path().string();
        match read_column(&reader, index, descriptor) {
            Ok(values) => Ok(Column { name, values }),
            Err(reason) => Err(format!("column `{name}` {reason}")),
        }
    };
    descriptors.columns().iter().enumerate().map(named).collect()
}

/// Reads one column over all row groups; an error completes "column `x` …".
fn read_column(
    reader: &dyn FileReader,
    index: usize,
    descriptor: &ColumnDescriptor,
) -> std::result::Result<Values, String> {
    if descriptor.max_rep_level() > 0 || descriptor.path().parts().len() > 1 {
        return Err("is nested".into());
    }
    let optional = descriptor.max_def_level() > 0;
    let mut values = match descriptor.physical_type() {
        PhysicalType::DOUBLE => Values::F64(Vec::new()),
        PhysicalType::FLOAT => Values::F32(Vec::new()),
        PhysicalType::INT32 | PhysicalType::INT64 if holds_integers(descriptor) => {
            Values::U64(Vec::new())
        }
        other => return Err(format!("is of type {other} and does not hold numbers")),
    };
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(|error| error.to_string())?;
        let rows = usize::try_from(group.metadata().num_rows())
            .map_err(|_| "has a negative number of rows".to_string())?;
        let column = group.get_column_reader(index).map_err(|error| error.to_string())?;
        match (&mut values, column) {
            (Values::F64(values), ColumnReader::DoubleColumnReader(column)) => {
                values.extend(entries(column, rows, optional)?.map(|x| x.unwrap_or(f64::NAN)));
            }
            (Values::F32(values), ColumnReader::FloatColumnReader(column)) => {
                values.extend(entries(column, rows, optional)?.map(|x| x.unwrap_or(f32::NAN)));
            }
            (Values::U64(values), ColumnReader::Int64ColumnReader(column)) => {
                let unsigned = is_unsigned(descriptor);
                for entry in entries(column, rows, optional)? {
                    let entry = entry.ok_or("has missing integers")?;
                    values.push(if unsigned { entry.cast_unsigned() } else { count(entry)? });
                }
            }
            (Values::U64(values), ColumnReader::Int32ColumnReader(column)) => {
                let unsigned = is_unsigned(descriptor);
                for entry in entries(column, rows, optional)? {
                    let entry = entry.ok_or("has missing integers")?;
                    values.push(if unsigned {
                        u64::from(entry.cast_unsigned())
                    } else {
                        count(i64::from(entry))?
                    });
                }
            }
            _ => return Err("changes its type between row groups".into()),
        }
    }
    Ok(values)
}

/// The entries of one column of one row group, `None` where one is missing.
fn entries<T: DataType>(
    mut column: ColumnReaderImpl<T>,
    rows: usize,
    optional: bool,
) -> std::result::Result<impl Iterator<Item = Option<T::T>>, String> {
    let mut values = Vec::new();
    let mut present = Vec::new();
    let mut read = 0;
    while read < rows {
        let levels = optional.then_some(&mut present);
        // Bounded, because a damaged file may claim any number of rows.
        let batch = (rows - read).min(GROUP_ROWS);
        let (records, _, _) =
            column.read_records(batch, levels, None, &mut values).map_err(|e| e.to_string())?;
        if records == 0 {
            return Err(format!("ends after {read} of {rows} rows"));
        }
        read += records;
    }
    if !optional {
        present.resize(values.len(), 1);
    }
    let mut values = values.into_iter();
    Ok(present.into_iter().map(move |level| if level > 0 { values.next() } else { None }))
}

/// Whether an integer column counts something, rather than encoding a date or a decimal.
fn holds_integers(descriptor: &ColumnDescriptor) -> bool {
    match descriptor.logical_type_ref() {
        Some(logical) => matches!(logical, LogicalType::Integer(_)),
        // Older writers say it in this way.
        None => {
            matches!(
                descriptor.converted_type(),
                Converted::NONE
                    | Converted::INT_8
                    | Converted::INT_16
                    | Converted::INT_32
                    | Converted::INT_64
            ) || is_unsigned(descriptor)
        }
    }
}

fn is_unsigned(descriptor: &ColumnDescriptor) -> bool {
    match descriptor.logical_type_ref() {
        Some(LogicalType::Integer(integer)) => !integer.is_signed,
        _ => matches!(
            descriptor.converted_type(),
            Converted::UINT_8 | Converted::UINT_16 | Converted::UINT_32 | Converted::UINT_64
        ),
    }
}

fn count(value: i64) -> std::result::Result<u64, String> {
    u64::try_from(value).map_err(|_| format!("holds the negative integer {value}"))
}
