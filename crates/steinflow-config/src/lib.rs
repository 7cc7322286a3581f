//! One description of a run, for the command and for the Python package.
//!
//! [`Settings`] is what somebody has asked for: every setting by name, with the words that explain it,
//! and nothing filled in. [`Config`] is a complete and checked run: defaults, presets and what belongs
//! together. [`Config::sampler`] makes the sampler that it describes. Flags, keys of `config.toml` and
//! keyword arguments all come from [`Settings::table`].

mod config;
mod cost;
mod device;
mod error;
mod parameters;
mod phase;
mod presets;
mod resolve;
mod sampler;
mod settings;
mod text;

pub use config::{Config, Way};
pub use error::{Error, Result, in_python};
pub use parameters::GivenParameters;
pub use phase::Phase;
pub use presets::{ADJUSTED, AUTO, DEFAULT_MODEL};
pub use resolve::{Begin, Facts, OwnDynamics};
pub use sampler::{Run, Start, window};
pub use settings::Settings;
