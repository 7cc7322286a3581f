//! Tests of the library, one binary: what all of them use is compiled once.

mod catalogue;
mod common;
mod convergence;
mod derandomised;
mod diagnosis;
mod diagnostics;
mod diffusion_discrepancy;
mod engine;
mod ensemble;
mod ensemble_moves;
mod golden;
mod integrators;
mod interactions;
mod joint;
mod lawgd;
mod laws;
mod points;
mod precondition;
mod resume;
mod run_loop;
mod same_target;
mod stein_discrepancy;
mod stepper;
mod strips;
mod verdict;
mod warm_up;
mod wrong_gradient;

/// A file that nobody names here would not run.
#[test]
fn every_file_is_named() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|it| it == "rs") && name != "main" {
            let line = format!("\nmod {name};\n");
            assert!(include_str!("main.rs").contains(&line), "{}", path.display());
        }
    }
}
