//! Tests of what runs leave behind, one binary: what all of them use is compiled once.

mod animation;
mod calibration;
mod checkpoint;
mod journal;
mod json;
mod panels;
mod plot;
mod record;
mod run_folder;
mod table;

/// A file that nobody names here would not run.
#[test]
fn every_file_is_named() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|it| it == "rs") && name != "main" && name != "fuzz" {
            let line = format!("\nmod {name};\n");
            assert!(include_str!("main.rs").contains(&line), "{}", path.display());
        }
    }
}
