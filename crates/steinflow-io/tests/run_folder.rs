//! A run folder appears whole or not at all, and never in place of something else.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use steinflow_io::{Error, RunFolder};

/// A folder of its own for a test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("steinflow-io-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn entries(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn finished_run(path: &Path, content: &str) {
    let mut folder = RunFolder::create(path, false).unwrap();
    folder.write("config.toml", content.as_bytes()).unwrap();
    folder.write("only-in-the-first.txt", b"").unwrap();
    folder.commit().unwrap();
}

#[test]
fn appears_only_at_commit_and_leaves_nothing_else() {
    let scratch = Scratch::new();
    let out = scratch.0.join("a/b/run");
    let mut folder = RunFolder::create(&out, false).unwrap();
    assert_eq!(folder.path(), out);
    folder.write("config.toml", b"seed = 1").unwrap();
    folder.write_with("plots/final.svg", |file| Ok(file.write_all(b"<svg/>")?)).unwrap();
    assert!(!out.exists());
    assert_eq!(folder.commit().unwrap(), out);
    assert_eq!(fs::read(out.join("config.toml")).unwrap(), b"seed = 1");
    assert_eq!(fs::read(out.join("plots/final.svg")).unwrap(), b"<svg/>");
    assert_eq!(fs::read_dir(out.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn refuses_an_existing_folder_and_says_what_to_do() {
    let scratch = Scratch::new();
    let out = scratch.0.join("run");
    finished_run(&out, "first");
    let error = RunFolder::create(&out, false).unwrap_err();
    assert!(matches!(error, Error::FolderExists { .. }) && error.is_usage());
    let text = error.to_string();
    assert!(text.contains("run` exists") && text.contains("--force") && text.contains("--out"));
    assert_eq!(fs::read(out.join("config.toml")).unwrap(), b"first");
}

#[test]
fn force_replaces_a_run_only_at_commit() {
    let scratch = Scratch::new();
    let out = scratch.0.join("run");
    finished_run(&out, "first");

    drop(RunFolder::create(&out, true).unwrap());
    assert_eq!(fs::read(out.join("config.toml")).unwrap(), b"first");

    let mut folder = RunFolder::create(&out, true).unwrap();
    folder.write("config.toml", b"second").unwrap();
    assert_eq!(fs::read(out.join("config.toml")).unwrap(), b"first");
    folder.commit().unwrap();
    assert_eq!(fs::read(out.join("config.toml")).unwrap(), b"second");
    assert!(!out.join("only-in-the-first.txt").exists());
    assert_eq!(scratch.entries(), ["run"]);
}

#[test]
fn force_replaces_an_empty_folder() {
    let scratch = Scratch::new();
    let out = scratch.0.join("run");
    fs::create_dir(&out).unwrap();
    let mut folder = RunFolder::create(&out, true).unwrap();
    folder.write("config.toml", b"").unwrap();
    folder.commit().unwrap();
    assert!(out.join("config.toml").exists());
}

#[test]
fn force_refuses_what_is_not_a_run_folder() {
    let scratch = Scratch::new();
    let home = scratch.0.join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("thesis.tex"), b"ten years").unwrap();
    let file = scratch.0.join("file");
    fs::write(&file, b"mine").unwrap();
    for path in [&home, &file] {
        let error = RunFolder::create(path, true).unwrap_err();
        assert!(matches!(error, Error::NotARunFolder { .. }), "{error}");
        assert!(error.to_string().contains("choose another --out"), "{error}");
    }
    assert_eq!(fs::read(home.join("thesis.tex")).unwrap(), b"ten years");
    assert_eq!(fs::read(file).unwrap(), b"mine");
    assert_eq!(scratch.entries(), ["file", "home"]);
}

#[cfg(unix)]
#[test]
fn force_refuses_a_link() {
    let scratch = Scratch::new();
    finished_run(&scratch.0.join("run"), "first");
    let link = scratch.0.join("link");
    std::os::unix::fs::symlink("run", &link).unwrap();
    let error = RunFolder::create(&link, true).unwrap_err();
    assert!(error.to_string().contains("a symbolic link"), "{error}");
}

#[test]
fn dropped_without_commit_it_leaves_nothing() {
    let scratch = Scratch::new();
    let mut folder = RunFolder::create(scratch.0.join("new/parents/run"), false).unwrap();
    folder.write("config.toml", b"half").unwrap();
    assert_eq!(scratch.entries(), ["new"]);
    drop(folder);
    assert!(scratch.entries().is_empty(), "{:?}", scratch.entries());
}

#[test]
fn an_unwritable_place_is_told_at_once() {
    let scratch = Scratch::new();
    let file = scratch.0.join("file");
    fs::write(&file, b"").unwrap();
    let error = RunFolder::create(file.join("deeper/run"), false).unwrap_err();
    assert!(matches!(error, Error::Io { .. }) && !error.is_usage());
    assert!(error.to_string().contains("file"), "{error}");
    assert!(error.to_string().contains("writable"), "{error}");
    assert_eq!(scratch.entries(), ["file"]);
}

#[test]
fn paths_that_name_no_folder_are_refused() {
    for path in ["", "/", ".."] {
        let error = RunFolder::create(path, true).unwrap_err();
        assert!(matches!(error, Error::BadPath { .. }), "{path}: {error}");
    }
}

#[test]
fn files_cannot_be_written_outside() {
    let scratch = Scratch::new();
    let mut folder = RunFolder::create(scratch.0.join("run"), false).unwrap();
    for name in ["", "../stray", "/tmp/stray", "plots/"] {
        let error = folder.write(name, b"").unwrap_err();
        assert!(matches!(error, Error::BadPath { .. }), "{name}: {error}");
    }
}

#[test]
fn a_place_taken_meanwhile_costs_no_results() {
    let scratch = Scratch::new();
    let out = scratch.0.join("run");
    let mut folder = RunFolder::create(&out, false).unwrap();
    folder.write("config.toml", b"late").unwrap();
    finished_run(&out, "early");
    let error = folder.commit().unwrap_err();
    assert_eq!(fs::read(out.join("config.toml")).unwrap(), b"early");
    let Error::NotMoved { kept, .. } = error else { panic!("{error}") };
    assert_eq!(fs::read(kept.join("config.toml")).unwrap(), b"late");
}

#[test]
fn two_writers_of_one_name_do_not_meet() {
    let scratch = Scratch::new();
    let out = scratch.0.join("run");
    let mut first = RunFolder::create(&out, false).unwrap();
    let mut second = RunFolder::create(&out, false).unwrap();
    first.write("config.toml", b"first").unwrap();
    second.write("config.toml", b"second").unwrap();
    drop(second);
    first.commit().unwrap();
    assert_eq!(fs::read(out.join("config.toml")).unwrap(), b"first");
}

#[test]
fn an_error_inside_a_file_names_the_file() {
    let scratch = Scratch::new();
    let mut folder = RunFolder::create(scratch.0.join("run"), false).unwrap();
    let error = folder
        .write_with("particles.parquet", |file| steinflow_io::write_parquet(&[], file))
        .unwrap_err();
    assert!(error.to_string().contains("run/particles.parquet"), "{error}");
}
