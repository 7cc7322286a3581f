//! A folder of its own for every test, and the command run inside it.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;

/// The folder. What the user has fetched does not matter in it: the command sees no data but its own.
pub struct Desk(pub tempfile::TempDir);

impl Desk {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn run(&self, arguments: &str) -> Output {
        let mut command = Command::cargo_bin("steinflow").unwrap();
        command.env_remove("STEINFLOW_DATA").env("HOME", self.0.path());
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command.current_dir(self.0.path()).args(words(arguments)).output().unwrap()
    }

    pub fn succeed(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "steinflow {arguments}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Fails with `code` and says all of `words`; leaves nothing behind.
    pub fn fail(&self, arguments: &str, code: i32, words: &[&str]) {
        let before = self.listing();
        let output = self.run(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "steinflow {arguments}: {error}");
        for word in words {
            assert!(error.contains(word), "steinflow {arguments}: {error:?} lacks {word:?}");
        }
        assert!(!error.contains("panicked"), "{error}");
        assert_eq!(self.listing(), before, "steinflow {arguments} left something behind");
    }

    pub fn listing(&self) -> Vec<String> {
        listing(self.0.path())
    }
}

/// The words of a line, as a shell tells them apart: by spaces, but for those between double quotes.
fn words(line: &str) -> Vec<String> {
    let (mut found, mut is_quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ' ' | '\n' if !is_quoted => found.push(String::new()),
            letter => found.last_mut().unwrap().push(letter),
        }
    }
    found.retain(|word| !word.is_empty());
    found
}

/// The names in a folder, sorted.
pub fn listing(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
