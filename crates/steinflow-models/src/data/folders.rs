//! The folders that named data sets are looked for in.

use std::path::{Path, PathBuf};

/// The environment variable that names a folder of data sets.
pub const DATA_FOLDER_VARIABLE: &str = "STEINFLOW_DATA";

/// Where fetched data sets are kept: `$XDG_CACHE_HOME/steinflow` or the platform's usual place;
/// `None` where there is no home.
pub fn cache_folder() -> Option<PathBuf> {
    let cache = folder_variable("XDG_CACHE_HOME").or_else(|| {
        if cfg!(windows) {
            folder_variable("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            home_folder().map(|home| home.join("Library/Caches"))
        } else {
            home_folder().map(|home| home.join(".cache"))
        }
    });
    cache.map(|cache| cache.join("steinflow"))
}

/// `data_dir`, then `$STEINFLOW_DATA`, then the [`cache_folder`]: those that are set.
pub fn search_folders(data_dir: Option<&Path>) -> Vec<PathBuf> {
    [data_dir.map(Path::to_owned), folder_variable(DATA_FOLDER_VARIABLE), cache_folder()]
        .into_iter()
        .flatten()
        .collect()
}

/// The user's own folder.
pub(crate) fn home_folder() -> Option<PathBuf> {
    folder_variable(if cfg!(windows) { "USERPROFILE" } else { "HOME" })
}

/// A variable that is set to something.
pub(crate) fn folder_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
