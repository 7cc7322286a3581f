//! The schema of a run folder: what is written is read back, and what was written once still is. The
//! names stand here a second time, so that none of them changes by accident.

use std::fs;

use serde_json::{Value, json};
use steinflow::diagnostics::Verdict;
use steinflow_io::record::{self, Diagnosis, FinishedRun, Summary, Table, column, state_columns};
use steinflow_io::{Column, Error, RunFolder, Values, add_to_run, write_json, write_parquet};

/// All that a summary may hold.
fn full_summary() -> Value {
    let scores = json!({
        "rows": 3, "log_likelihood": -1.5, "rmse": 2.0, "mse": 4.0, "standardised_mse": 0.5,
        "crps": 0.25, "coverage_50": 0.5, "coverage_90": 1.0, "coverage_95": null, "pit": [1, 2]
    });
    json!({
        "steinflow_version": "0.1.0", "model": "bnn", "method": "svgd", "particles": 10,
        "samples": 30, "steps": 600, "ended": "finished", "gradients": 6000, "seconds": 1.5,
        "mean_log_density": null,
        "moments": [
            {"name": "x", "mean": 0.5, "sd": null, "exact_mean": 0.0, "exact_sd": 1.0},
            {"name": "y", "mean": 0.5, "sd": 2.0}
        ],
        "network": {
            "layers": [4, 50, 1], "activation": "relu", "weights": 301, "target": "y",
            "noise_sd": {"mean": 0.5, "sd": 0.25}, "weight_sd": {"mean": 1.0, "sd": 0.0},
            "training_rows": 27, "held_back_rows": 3, "held_back": "none",
            "predicted_with": "the 30 collected samples", "test": scores
        },
        "parts": [{"name": "upper", "share": 0.25, "exact_share": 0.5}],
        "frozen_particles": [3], "step_size_halvings": 2, "warnings": ["no step was taken"],
        "diagnosis": full_diagnosis()
    })
}

fn full_diagnosis() -> Value {
    json!({
        "verdict": "means-only", "headline": "The means can be used.",
        "evidence": [{
            "name": "KSD", "value": null, "expected": "below 1", "passed": null,
            "meaning": "Unknown."
        }],
        "advice": ["take more particles"], "evaluations": 12
    })
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|error| error.to_string())
}

/// `value` without the key at the end of the path.
fn without(value: &Value, path: &[&str]) -> Value {
    let (mut value, (last, before)) = (value.clone(), path.split_last().unwrap());
    let place = before.iter().fold(&mut value, |value, key| match key.parse::<usize>() {
        Ok(index) => &mut value[index],
        Err(_) => &mut value[*key],
    });
    assert!(place.as_object_mut().unwrap().remove(*last).is_some(), "{path:?}");
    value
}

#[test]
fn a_summary_is_read_as_it_was_written() {
    let summary: Summary = read(&full_summary()).unwrap();
    assert!(summary.mean_log_density.is_nan() && summary.moments[0].sd.is_nan());
    // A field that is read under another name than it was written would be missing or blank here.
    assert_eq!(serde_json::to_value(&summary).unwrap(), full_summary());
    let diagnosis: Diagnosis = read(&full_diagnosis()).unwrap();
    assert_eq!(serde_json::to_value(&diagnosis).unwrap(), full_diagnosis());
    assert_eq!(diagnosis.verdict(), Some(Verdict::MeansOnly));
}

#[test]
fn what_every_version_has_written_must_be_there() {
    for key in ["steinflow_version", "model", "particles", "steps", "ended", "mean_log_density"] {
        let error = read::<Summary>(&without(&full_summary(), &[key])).unwrap_err();
        assert!(error.contains(key), "{error}");
    }
    for path in [&["network", "layers"][..], &["network", "test", "rmse"], &["moments", "0", "sd"]]
    {
        assert!(read::<Summary>(&without(&full_summary(), path)).is_err(), "{path:?}");
    }
    for key in ["verdict", "headline", "evidence", "advice"] {
        assert!(read::<Diagnosis>(&without(&full_diagnosis(), &[key])).is_err(), "{key}");
    }
}

#[test]
fn a_summary_of_the_first_version_opens() {
    let first = json!({
        "steinflow_version": "0.1.0", "model": "gaussian", "method": "svgd", "particles": 10,
        "steps": 600, "ended": "finished", "gradients": 6000, "seconds": 1.5,
        "mean_log_density": -3.5, "moments": [{"name": "x", "mean": 0.5, "sd": 2.0}],
        "frozen_particles": [], "step_size_halvings": 0
    });
    let summary: Summary = read(&first).unwrap();
    assert!(summary.samples.is_none() && summary.warnings.is_empty());
    assert_eq!((summary.steps, summary.moments[0].sd), (600, 2.0));
}

#[test]
fn files_and_columns_have_the_names_that_others_know() {
    let files = [
        (record::CONFIG, "config.toml"),
        (record::SUMMARY, "summary.json"),
        (record::DIAGNOSIS, "diagnosis.json"),
        (record::PARTICLES, "particles.parquet"),
        (record::SAMPLES, "samples.parquet"),
        (record::TRACE, "trace.parquet"),
        (record::FRAMES, "frames.parquet"),
        (record::PREDICTIONS, "predictions.csv"),
        (record::STANDARDISATION, "standardisation.json"),
        (record::CHECKPOINT, "checkpoint"),
        (record::PICTURE, "particles.png"),
        (record::PREDICTIONS_PICTURE, "predictions.png"),
        (record::REPORT, "report.html"),
    ];
    let columns = [
        (column::STEP, "step"),
        (column::GRADIENTS, "gradients"),
        (column::SECONDS, "seconds"),
        (column::MEAN_LOG_DENSITY, "mean_log_density"),
        (column::VELOCITY_NORM, "velocity_norm"),
        (column::BANDWIDTH, "bandwidth"),
        (column::KSD, "ksd"),
        (column::STEP_SIZE, "step_size"),
        (column::LOG_DENSITY, "log_density"),
        (column::CHAIN, "chain"),
        (column::DRAW, "draw"),
        (column::FRAME, "frame"),
        (column::PARTICLE, "particle"),
        (column::ROW, "row"),
        (column::TARGET, "target"),
        (column::MEAN, "mean"),
        (column::SD, "sd"),
    ];
    for (own, known) in files.into_iter().chain(columns) {
        assert_eq!(own, known);
    }
    assert_eq!(column::quantile(0.05), "q0.05");
    let names = ["x".to_owned(), "y".to_owned()];
    assert_eq!(state_columns(&["theta", "r"], (&names, &names)), ["x", "y", "r_x", "r_y"]);
}

#[test]
fn a_folder_is_read_back_and_what_is_missing_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path().join("run");
    let error = FinishedRun::open(&place).unwrap_err();
    assert!(error.to_string().contains("does not exist") && error.is_usage(), "{error}");

    let summary: Summary = read(&full_summary()).unwrap();
    let columns = [("x", vec![0.5, 1.5]), ("log_density", vec![-1.0, -2.0])];
    let columns = columns.map(|(name, x)| Column { name: name.into(), values: Values::F64(x) });
    let mut folder = RunFolder::create(&place, false).unwrap();
    folder.write(record::CONFIG, b"seed = 1\n").unwrap();
    folder.write_with(record::SUMMARY, |file| write_json(&summary, file)).unwrap();
    folder.write_with(record::PARTICLES, |file| write_parquet(&columns, file)).unwrap();
    folder.commit().unwrap();

    let run = FinishedRun::open(&place).unwrap();
    assert_eq!(run.config().unwrap(), "seed = 1\n");
    assert_eq!(run.summary().unwrap().steps, 600);
    assert!(run.diagnosis().unwrap().is_none());
    let table: Table = run.table(record::PARTICLES).unwrap();
    assert_eq!(table.matrix::<f64>(&["x".to_owned()]).unwrap().as_slice(), [0.5, 1.5]);
    assert_eq!(table.columns_beside(&[column::LOG_DENSITY]).len(), 1);
    let error = table.column("z").unwrap_err().to_string();
    assert!(error.contains("particles.parquet") && error.contains("no column `z`"), "{error}");
    assert!(run.filled_table(record::SAMPLES).unwrap().is_none());
    let error = run.table(record::TRACE).unwrap_err();
    assert!(matches!(error, Error::RunDamaged { .. }) && error.to_string().contains("not there"));
}

/// A run with a table and a picture in a folder inside.
fn committed(place: &std::path::Path) -> FinishedRun {
    let columns = [Column { name: "x".into(), values: Values::F64(vec![0.5; 1000]) }];
    let mut folder = RunFolder::create(place, false).unwrap();
    folder.write(record::CONFIG, b"seed = 1\n").unwrap();
    folder.write("plots/a.png", b"picture").unwrap();
    folder.write_with(record::PARTICLES, |file| write_parquet(&columns, file)).unwrap();
    FinishedRun::open(&folder.commit().unwrap()).unwrap()
}

#[test]
fn every_bit_that_changes_is_noticed() {
    let scratch = tempfile::tempdir().unwrap();
    let run = committed(&scratch.path().join("run"));
    assert_eq!((run.verify().len(), run.summed()), (0, (3, 0)));
    let path = run.path(record::PARTICLES);
    let good = fs::read(&path).unwrap();
    for place in (0..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[place] ^= 1 << (place % 8);
        fs::write(&path, bad).unwrap();
        let error = run.table(record::PARTICLES).unwrap_err().to_string();
        assert!(error.contains("particles.parquet") && error.contains("SHA-256"), "{error}");
        assert_eq!(run.verify().len(), 1);
    }
    fs::write(&path, &good).unwrap();
    assert_eq!(run.table(record::PARTICLES).unwrap().rows(), 1000);
    fs::write(run.path(record::CONFIG), b"seed = 2\n").unwrap();
    assert!(run.config().unwrap_err().to_string().contains("config.toml"));
    fs::remove_file(run.path("plots/a.png")).unwrap();
    assert_eq!(run.verify().len(), 2);
    // What somebody has put beside is not the run's.
    fs::write(run.path(record::SUMMARY), b"{}").unwrap();
    let error = run.summary().unwrap_err().to_string();
    assert!(error.contains("does not name it"), "{error}");
}

#[test]
fn what_is_added_has_a_checksum_and_the_list_is_that_of_sha256sum() {
    let scratch = tempfile::tempdir().unwrap();
    let run = committed(&scratch.path().join("run"));
    for content in [b"one", b"two"] {
        add_to_run(run.folder(), record::REPORT, content, true).unwrap();
        let again = FinishedRun::open(run.folder()).unwrap();
        assert_eq!((again.verify().len(), again.summed()), (0, (4, 0)));
    }
    let list = fs::read_to_string(run.path(".steinflow-run")).unwrap();
    // `printf two | sha256sum`
    let known = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3  report.html";
    assert!(list.lines().any(|line| line == known), "{list}");
    // A list of an earlier version has names alone, and its files are taken as they are.
    fs::write(run.path(".steinflow-run"), "config.toml\nparticles.parquet\n").unwrap();
    let old = FinishedRun::open(run.folder()).unwrap();
    assert_eq!((old.verify().len(), old.summed()), (0, (0, 2)));
    assert_eq!(old.table(record::PARTICLES).unwrap().rows(), 1000);
}
