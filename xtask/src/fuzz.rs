//! Every parser, given what nobody would write.

use crate::stage::Stage;

/// The fuzz tests of the crates that have parsers, with so many inputs each.
pub fn stages(inputs: &str) -> Vec<Stage> {
    let test = |name: &'static str, target: &[&str]| {
        let common = ["test", "--workspace"];
        let filter = ["fuzz", "--", "--nocapture"];
        let filter = if target[0] == "--bin" { &filter[..] } else { &filter[1..] };
        Stage::cargo(name, &[&common, target, filter].concat())
            .with_variable("STEINFLOW_FUZZ_INPUTS", inputs)
    };
    vec![test("fuzz files", &["--test", "fuzz"]), test("fuzz configs", &["--bin", "steinflow"])]
}
