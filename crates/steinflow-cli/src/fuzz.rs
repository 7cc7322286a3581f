//! Configs and records of networks may be anything.

#[path = "../../../fuzz/fuzz.rs"]
mod harness;

use std::path::Path;

use harness::{fuzz, scratch};
use steinflow_io::record::{FinishedRun, STANDARDISATION};

use crate::network::Record;
use steinflow::settings::Value;
use steinflow_config::Config;
use steinflow_config::Settings;

#[test]
fn configs() {
    let words = [
        "=",
        "\n",
        "'",
        "[[phase]]",
        "[",
        "]",
        "-1",
        "0",
        "nan",
        "inf",
        "1e999",
        "99999999999999999999",
        "model = ",
        "method = ",
        "'svgd'",
        "'spos'",
        "'third-order-stein'",
        "'banana'",
        "'funnel'",
        "steps = ",
        "bandwidth = ",
        "kernel-on = 'theta'",
        "hidden = []",
        "true",
        "\\u0000",
        "#",
    ];
    fuzz("config", &words, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return false };
        let Ok(settings) = Settings::parse(Path::new("config.toml"), text) else { return false };
        // What is large is slow to build, and its limits have tests of their own.
        let is_small = |count: Option<usize>| count.is_none_or(|count| count <= 40);
        let cells = match settings.get("cells") {
            Some(Value::Count(cells)) => Some(cells as usize),
            _ => None,
        };
        let small_net = settings.spec.hidden.iter().flatten().all(|&units| units <= 20)
            && settings.spec.hidden.as_ref().is_none_or(|hidden| hidden.len() < 5);
        if !(is_small(settings.spec.dim) && is_small(cells) && small_net) {
            return false;
        }
        Config::resolve(settings).is_ok_and(|config| {
            let again = config.to_toml();
            let again = Settings::parse(Path::new("config.toml"), &again).unwrap();
            // A config that was accepted is one that reads back as itself.
            Config::resolve(again).is_ok_and(|again| again == config)
        })
    });
}

#[test]
fn records() {
    let folder = scratch();
    std::fs::write(folder.path().join(".steinflow-run"), STANDARDISATION).unwrap();
    let run = FinishedRun::open(folder.path()).unwrap();
    let words = ["{", "}", "[", "1e999", "null", "-1", "\"mean\":", "\"fixed\":", "\"sd\": 0", ","];
    fuzz("record", &words, |bytes| {
        std::fs::write(run.path(STANDARDISATION), bytes).unwrap();
        Record::read(&run).is_ok_and(|record| !record.standardisation().target_name.is_empty())
    });
}
