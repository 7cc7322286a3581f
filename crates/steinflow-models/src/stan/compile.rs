//! From a Stan program to a shared library, by BridgeStan's own makefile, once for every program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::data::{cache_folder, folder_variable, home_folder, text_sha256};

/// The environment variable by which all of BridgeStan's packages know where it is.
const VARIABLE: &str = "BRIDGESTAN";

/// Where a program's library is kept.
pub(super) struct Place {
    program: PathBuf,
    bridgestan: Option<PathBuf>,
    folder: PathBuf,
    library: PathBuf,
}

impl Place {
    /// Of a program: the same text, with what it includes, has the same place.
    pub(super) fn of(program: &Path) -> Result<Self, String> {
        let mut text = String::new();
        read_with_includes(program, 0, &mut text)?;
        let bridgestan = toolchain();
        // Another version of BridgeStan makes another library.
        let version = bridgestan.as_deref().and_then(Path::file_name).unwrap_or_default();
        let key = text_sha256(&format!("{}\n{text}", version.to_string_lossy()));
        let folder = cache_folder()
            .ok_or("there is no folder to keep its library in: set HOME or XDG_CACHE_HOME")?
            .join("stan")
            .join(&key[..24]);
        let library = folder.join("program_model.so");
        Ok(Self { program: program.to_owned(), bridgestan, folder, library })
    }

    /// Whether the library is there.
    pub(super) fn is_ready(&self) -> bool {
        self.library.is_file()
    }

    /// The library, compiled if it is not there.
    pub(super) fn library(self) -> Result<PathBuf, String> {
        if self.is_ready() {
            return Ok(self.library);
        }
        let bridgestan = self.bridgestan.ok_or(
            "BridgeStan is not here, which compiles Stan programs: `pip install bridgestan`, then `python -c \
             'import bridgestan as b; b.compile.get_bridgestan_path()'` fetches it (or point $BRIDGESTAN to its \
             folder, or give a compiled library `model.so`)",
        )?;
        // Made beside its place and moved there whole, so that nobody loads half of it.
        let partial = self.folder.with_extension(format!("partial-{}", std::process::id()));
        let made = make(&bridgestan, &self.program, &partial).and_then(|()| {
            // Another process may have been faster, with the same.
            match std::fs::rename(&partial, &self.folder) {
                Err(error) if !self.library.is_file() => {
                    Err(format!("{} cannot be written: {error}", self.folder.display()))
                }
                _ => Ok(self.library),
            }
        });
        let _ = std::fs::remove_dir_all(&partial);
        made
    }
}

/// Runs the makefile.
fn make(bridgestan: &Path, program: &Path, folder: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{} cannot be written: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::copy(program, folder.join("program.stan")).map_err(failed)?;
    let beside = program.parent().unwrap_or(Path::new("."));
    let made = Command::new("make")
        .arg(folder.join("program_model.so"))
        .arg("STAN_THREADS=true")
        .arg(format!("STANCFLAGS=--include-paths={}", beside.display()))
        .current_dir(bridgestan)
        .output()
        .map_err(|error| format!("`make` cannot be run, which compiling takes: {error}"))?;
    if made.status.success() {
        return Ok(());
    }
    // The compiler's own words: the last lines, for the first are commands.
    let said = [made.stdout, made.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(20)..].join("\n");
    Err(format!("it does not compile:\n{last}"))
}

/// `$BRIDGESTAN`, or the newest that one of its packages has fetched.
fn toolchain() -> Option<PathBuf> {
    if let Some(given) = folder_variable(VARIABLE) {
        return Some(given);
    }
    let fetched = std::fs::read_dir(home_folder()?.join(".bridgestan")).ok()?;
    let version = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str)?.strip_prefix("bridgestan-")?;
        let parts: Option<Vec<u32>> = name.split('.').map(|part| part.parse().ok()).collect();
        parts
    };
    let folders = fetched.filter_map(|entry| Some(entry.ok()?.path()));
    folders.filter(|path| version(path).is_some()).max_by_key(version)
}

/// The text of a program, and of the files beside it that it includes.
fn read_with_includes(path: &Path, depth: usize, text: &mut String) -> Result<(), String> {
    /// Deeper is a circle.
    const MOST: usize = 16;
    let own =
        std::fs::read_to_string(path).map_err(|error| format!("it cannot be read: {error}"))?;
    for line in own.lines() {
        let included = line.trim().strip_prefix("#include").map(|name| {
            name.trim().trim_matches(|c| matches!(c, '"' | '<' | '>' | ';')).to_owned()
        });
        if let Some(name) = included.filter(|_| depth < MOST) {
            // One that is not there is Stan's to name.
            let _ = read_with_includes(&path.with_file_name(name), depth + 1, text);
        }
    }
    text.push_str(&own);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_includes_belongs_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let read = || {
            let mut text = String::new();
            read_with_includes(&folder.path().join("a.stan"), 0, &mut text).map(|()| text)
        };
        file("a.stan", "#include b.stan\nmodel {}");
        file("b.stan", "first");
        assert_eq!(read().unwrap(), "first#include b.stan\nmodel {}");
        // A circle ends.
        file("b.stan", "#include a.stan\n");
        assert!(read().unwrap().len() < 10_000);
        assert!(read_with_includes(&folder.path().join("c.stan"), 0, &mut String::new()).is_err());
    }
}
