//! Data for regressions: tables, train/test splits, standardisation, and the benchmark sets by name.
//!
//! A [`Table`] is columns of numbers, by a [`Recipe`] from a file that may hold more; a [`Split`] says which of its rows train and which
//! test; [`RegressionData`] standardises both by the training rows alone, and its [`Standardisation`]
//! reads files that come later. [`find`] looks up a
//! [`DataSet`] of the [registry](data_sets) on this computer; one of them, `penguins`, is built in.
//!
//! ```
//! use steinflow_models::data::{RegressionData, find};
//!
//! let penguins = find("penguins", None)?;
//! let table = penguins.table()?;
//! let data = RegressionData::new(&table, Some("body_mass_g"), &penguins.split(0)?)?;
//! assert_eq!((data.train_inputs().rows(), data.test_inputs().rows()), (300, 33));
//!
//! // A prediction of 0 is the mean of the training targets, in grams.
//! assert!((data.target_scaling().restore(0.0) - 4200.0).abs() < 100.0);
//! # Ok::<(), steinflow_models::Error>(())
//! ```

mod choices;
mod data_set;
mod data_set_error;
mod date;
mod dialect;
mod digest;
mod folders;
mod formula;
mod frame;
mod kind;
mod locate;
mod parquet;
mod permutation;
mod recipe;
mod registry;
mod regression;
mod scaling;
mod split;
mod split_error;
mod split_file;
mod standardisation;
mod table;
mod table_error;
mod text;
mod year;

pub use choices::{Choices, Missing};
pub use data_set::{Archive, DataSet, Fingerprint, Layout, Splits};
pub use data_set_error::{DataSetError, Difference};
pub(crate) use digest::text_sha256;
pub use digest::{content_sha256, file_sha256};
pub use folders::{DATA_FOLDER_VARIABLE, cache_folder, search_folders};
pub(crate) use folders::{folder_variable, home_folder};
pub use locate::{Located, Place, find, is_name, read_fitted_rows, read_new_rows, read_table};
pub use recipe::Recipe;
pub use registry::{data_set, data_sets};
pub use regression::RegressionData;
pub use scaling::Scaling;
pub use split::Split;
pub use split_error::SplitError;
pub use standardisation::{NewRows, Standardisation};
pub use table::Table;
pub use table_error::TableError;
pub use text::MAX_TEXT_BYTES;
