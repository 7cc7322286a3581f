//! What a run leaves behind: its folder, Parquet tables, JSON summaries, plots and animations.
//!
//! A run is written into a [`RunFolder`], which appears whole or not at all:
//!
//! ```
//! use steinflow_io::{Column, RunFolder, Values, write_json, write_parquet};
//!
//! # let scratch = std::env::temp_dir().join(format!("steinflow-io-doc-{}", std::process::id()));
//! # let out = scratch.join("runs/first");
//! let mut folder = RunFolder::create(&out, false)?;
//! folder.write("config.toml", b"seed = 1\n")?;
//! let columns = [Column { name: "x".into(), values: Values::F64(vec![0.5, -1.0]) }];
//! folder.write_with("particles.parquet", |file| write_parquet(&columns, file))?;
//! folder.write_with("summary.json", |file| write_json(&serde_json::json!({"steps": 600}), file))?;
//! let path = folder.commit()?;
//! assert!(path.join("particles.parquet").exists());
//! # std::fs::remove_dir_all(&scratch).unwrap();
//! # Ok::<(), steinflow_io::Error>(())
//! ```

pub mod animation;
mod checkpoint;
mod checksum;
mod error;
mod journal;
mod json;
mod leftovers;
mod manifest;
pub mod plot;
pub mod record;
pub mod report;
mod run_folder;
mod table;
mod unfinished;
mod whole_file;

pub use checkpoint::{CheckpointFile, Collected, SavedRun, write_checkpoint};
pub use error::{Error, Result};
pub use journal::Journal;
pub use json::write_json;
pub use run_folder::{RunFolder, add_to_run, is_finished_run};
pub use table::{Column, Values, is_decoding, parquet_memory, read_parquet, write_parquet};
pub use unfinished::Unfinished;
pub use whole_file::WholeFile;
