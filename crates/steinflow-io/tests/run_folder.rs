//! A run folder appears whole or not at all, and never in place of something else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use steinflow_io::{Column, Error, RunFolder, Values, WholeFile, write_json, write_parquet};

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

/// What `create` says about a path that it must refuse, with and without force in the same words.
fn refusal(path: &Path) -> Error {
    let error = RunFolder::create(path, true).unwrap_err();
    let text = error.to_string();
    assert!(error.is_usage() && text.contains("choose another --out"), "{text}");
    assert!(text.contains("--force will not"), "{text}");
    assert_eq!(RunFolder::create(path, false).unwrap_err().to_string(), text);
    error
}

#[test]
fn a_folder_that_no_run_wrote_is_refused() {
    let scratch = Scratch::new();
    let site = scratch.0.join("site");
    fs::create_dir(&site).unwrap();
    fs::write(site.join("config.toml"), b"theme = 'hugo'").unwrap();
    fs::write(site.join("thesis.tex"), b"ten years").unwrap();
    let error = refusal(&site);
    let Error::ForeignEntry { entry, .. } = &error else { panic!("{error}") };
    assert_eq!(entry, Path::new("config.toml"));
    assert!(error.to_string().contains("move `config.toml`"), "{error}");
    assert_eq!(fs::read(site.join("config.toml")).unwrap(), b"theme = 'hugo'");
    assert_eq!(fs::read(site.join("thesis.tex")).unwrap(), b"ten years");
    assert_eq!(scratch.entries(), ["site"]);
}

#[test]
fn a_run_with_something_of_the_users_is_refused() {
    let scratch = Scratch::new();
    let out = scratch.0.join("run");
    let mut folder = RunFolder::create(&out, false).unwrap();
    folder.write("config.toml", b"first").unwrap();
    folder.write("plots/deep/final.png", b"png").unwrap();
    folder.commit().unwrap();
    for (foreign, is_folder) in [
        ("notes.txt", false),
        ("plots/notes.txt", false),
        ("plots/deep/notes", true),
        ("plots/deep/final.png.bak", false),
        ("data", true),
    ] {
        let path = out.join(foreign);
        if is_folder { fs::create_dir(&path) } else { fs::write(&path, b"mine") }.unwrap();
        let error = refusal(&out);
        assert!(error.to_string().contains(&format!("`{foreign}`")), "{error}");
        assert_eq!(fs::read(out.join("config.toml")).unwrap(), b"first");
        // Still there, and the only thing in the way.
        if is_folder { fs::remove_dir(&path) } else { fs::remove_file(&path) }.unwrap();
        RunFolder::create(&out, true).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_link_or_folder_under_a_listed_name_is_foreign() {
    let scratch = Scratch::new();
    let out = scratch.0.join("run");
    finished_run(&out, "first");
    let listed = out.join("only-in-the-first.txt");
    fs::remove_file(&listed).unwrap();
    std::os::unix::fs::symlink("config.toml", &listed).unwrap();
    assert!(matches!(refusal(&out), Error::ForeignEntry { .. }));
    fs::remove_file(&listed).unwrap();
    fs::create_dir(&listed).unwrap();
    assert!(matches!(refusal(&out), Error::ForeignEntry { .. }));
}

#[test]
fn something_put_there_during_a_forced_run_is_kept() {
    let scratch = Scratch::new();
    let out = scratch.0.join("run");
    finished_run(&out, "first");
    let mut folder = RunFolder::create(&out, true).unwrap();
    folder.write("config.toml", b"second").unwrap();
    fs::write(out.join("notes.txt"), b"mine").unwrap();
    let error = folder.commit().unwrap_err();
    assert!(error.to_string().contains("notes.txt"), "{error}");
    assert_eq!(fs::read(out.join("notes.txt")).unwrap(), b"mine");
    assert_eq!(fs::read(out.join("config.toml")).unwrap(), b"first");
}

#[test]
fn the_manifest_lists_what_was_written() {
    let scratch = Scratch::new();
    let out = scratch.0.join("run");
    let mut folder = RunFolder::create(&out, false).unwrap();
    folder.write("plots/final.png", b"").unwrap();
    folder.write_with("config.toml", |_| Ok(())).unwrap();
    // `sha256sum /dev/null`
    let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(folder.checksum("config.toml"), Some(nothing));
    folder.commit().unwrap();
    let list = fs::read_to_string(out.join(".steinflow-run")).unwrap();
    assert_eq!(list, format!("{nothing}  config.toml\n{nothing}  plots/final.png\n"));
}

#[test]
fn a_file_is_refused() {
    let scratch = Scratch::new();
    let file = scratch.0.join("file");
    fs::write(&file, b"mine").unwrap();
    assert!(refusal(&file).to_string().contains("a file"));
    assert_eq!(fs::read(file).unwrap(), b"mine");
}

#[cfg(unix)]
#[test]
fn a_link_is_refused() {
    let scratch = Scratch::new();
    finished_run(&scratch.0.join("run"), "first");
    for target in ["run", "nowhere"] {
        let link = scratch.0.join(format!("link-to-{target}"));
        std::os::unix::fs::symlink(target, &link).unwrap();
        assert!(refusal(&link).to_string().contains("a symbolic link"));
    }
}

#[test]
fn the_partial_folder_can_be_removed_by_hand() {
    let scratch = Scratch::new();
    let mut folder = RunFolder::create(scratch.0.join("run"), false).unwrap();
    folder.write("config.toml", b"half").unwrap();
    assert_eq!(fs::read(folder.partial_path().join("config.toml")).unwrap(), b"half");
    fs::remove_dir_all(folder.partial_path()).unwrap();
    assert!(scratch.entries().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn leftovers_of_dead_processes_are_removed() {
    let scratch = Scratch::new();
    // Process numbers end far below this one, and 1 always lives.
    let dead = u32::MAX;
    for name in [
        format!(".run.partial-{dead}"),
        format!(".run.partial-{dead}-2"),
        ".run.partial-1".into(),
        format!(".other.partial-{dead}"),
        format!(".run.partial-{dead}-mine"),
        ".run.partial-".into(),
        format!("run.partial-{dead}"),
        format!(".run.partial-{dead}-3"),
    ] {
        fs::create_dir(scratch.0.join(&name)).unwrap();
        fs::write(scratch.0.join(name).join("config.toml"), b"").unwrap();
    }
    // A complete run that found its place taken.
    fs::write(scratch.0.join(format!(".run.partial-{dead}-3/.steinflow-run")), b"").unwrap();
    drop(RunFolder::create(scratch.0.join("run"), false).unwrap());
    assert_eq!(
        scratch.entries(),
        [
            format!(".other.partial-{dead}"),
            ".run.partial-".into(),
            ".run.partial-1".into(),
            format!(".run.partial-{dead}-3"),
            format!(".run.partial-{dead}-mine"),
            format!("run.partial-{dead}"),
        ]
    );
}

/// A writer on a disk without room.
struct Full;

impl io::Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_dead_process_left_of_a_file_is_removed_by_the_next() {
    let scratch = Scratch::new();
    let dead = u32::MAX;
    let mine = [format!(".other.csv.partial-{dead}"), ".table.csv.partial-1".into()];
    for name in [&format!(".table.csv.partial-{dead}"), &mine[0], &mine[1]] {
        fs::write(scratch.0.join(name), b"half").unwrap();
    }
    WholeFile::create(scratch.0.join("table.csv"), false).unwrap().write(b"whole").unwrap();
    let mut names: Vec<String> = fs::read_dir(&scratch.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [&mine[0], &mine[1], "table.csv"]);
}

#[test]
fn a_full_disk_is_called_that_in_every_format() {
    let scratch = Scratch::new();
    let mut folder = RunFolder::create(scratch.0.join("run"), false).unwrap();
    let columns = [Column { name: "x".into(), values: Values::F64(vec![1.0; 1000]) }];
    let errors = [
        folder.write_with("full", |_| write_parquet(&columns, Full)).unwrap_err(),
        folder.write_with("full", |_| write_json(&vec![1.0; 1000], Full)).unwrap_err(),
        folder.write_with("full", |_| Ok(io::Write::write_all(&mut Full, b"x")?)).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, Error::Io { .. }) && !error.is_usage(), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("cannot write `") && text.contains("run/full`"), "{text}");
        assert!(text.contains("free some space or choose another --out"), "{text}");
        assert!(!text.contains("External"), "{text}");
    }
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
    let error =
        folder.write_with("particles.parquet", |file| write_parquet(&[], file)).unwrap_err();
    assert!(error.to_string().contains("run/particles.parquet"), "{error}");
}
