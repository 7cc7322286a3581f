//! What differs between the settings a run was begun with and those it is to go on with.

use std::collections::BTreeSet;

use steinflow_models::data::{file_sha256, is_name};
use toml::{Table, Value};

use steinflow_config::Config;

/// Settings that say when to stop, and nothing about the way there.
const STOP_RULES: [&str; 2] = ["budget", "tolerance"];

/// A line for every setting that would make other numbers: `seed: 1 → 2`.
pub fn changes(old: &Table, new: &Table) -> Vec<String> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names
        .into_iter()
        .filter(|name| !STOP_RULES.contains(&name.as_str()))
        .filter(|name| old.get(*name) != new.get(*name))
        .filter(|name| *name != "phase" || !is_longer(old, new))
        .map(|name| {
            let shown = |value: Option<&Value>| value.map_or("not set".to_owned(), show);
            format!("{name}: {} → {}", shown(old.get(name)), shown(new.get(name)))
        })
        .collect()
}

/// Whether `new` has the same steps as `old` as far as both go.
fn is_longer(old: &Table, new: &Table) -> bool {
    let phases = |table: &Table| table.get("phase").and_then(Value::as_array).cloned();
    let (Some(old), Some(new)) = (phases(old), phases(new)) else { return false };
    let Some((last, before)) = old.split_last() else { return true };
    let Some(now) = new.get(old.len() - 1) else { return false };
    let same = |name: &str| last.get(name) == now.get(name);
    // A linear or cosine schedule over more steps has other step sizes from the first on.
    let text = last.get("step-size").and_then(Value::as_str).unwrap_or_default();
    let by_length = text.starts_with("linear") || text.starts_with("cosine");
    new.starts_with(before)
        && same("integrator")
        && same("step-size")
        && (same("steps") || (!by_length && new.len() == old.len()))
}

fn show(value: &Value) -> String {
    match value {
        Value::Array(values) => {
            let shown: Vec<String> = values.iter().map(show).collect();
            format!("[{}]", shown.join(", "))
        }
        Value::Table(table) => match ["integrator", "step-size", "steps"].map(|key| table.get(key))
        {
            [Some(Value::String(integrator)), Some(Value::String(size)), Some(steps)] => {
                format!("{integrator}:{size}x{steps}")
            }
            _ => table.to_string(),
        },
        other => other.to_string(),
    }
}

/// A line for everything outside the config that the numbers depend on: this program, and the
/// files that it reads.
pub fn inputs(config: &Config) -> String {
    let mut lines = vec![format!("steinflow {}", env!("CARGO_PKG_VERSION"))];
    let options = config.spec();
    // A data set with a name is known by its own fingerprint.
    let data = options.data.as_ref().filter(|data| !is_name(data));
    for path in data.into_iter().chain(&options.split_file).chain(&options.program) {
        let fingerprint = file_sha256(path).unwrap_or_else(|error| error.to_string());
        lines.push(format!("{} {fingerprint}", path.display()));
    }
    lines.join("\n")
}

/// A line for every input that is not what it was.
pub fn changed_inputs(old: &str, new: &str) -> Vec<String> {
    let name = |line: &str| line.rsplit_once(' ').map_or(line, |(name, _)| name).to_owned();
    let described = |line: &str| match line.strip_prefix("steinflow ") {
        Some(version) => format!("this is steinflow {version}, and it was another version"),
        None => format!("the content of {} is not what it was", name(line)),
    };
    // Files that are named differently are settings that differ.
    let is_known = |line: &str| old.lines().any(|other| name(other) == name(line));
    new.lines()
        .filter(|line| is_known(line) && !old.lines().any(|other| other == *line))
        .map(described)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(old: &str, new: &str) -> Vec<String> {
        changes(&old.parse().unwrap(), &new.parse().unwrap())
    }

    #[test]
    fn changed_settings_are_named_with_both_values() {
        assert_eq!(found("seed = 1\nbudget = 3.0", "seed = 2"), ["seed: 1 → 2"]);
        assert_eq!(found("a = [1.0, 2.0]", ""), ["a: [1.0, 2.0] → not set"]);
        assert!(found("seed = 1\ntolerance = 0.1", "seed = 1\nbudget = 4.0").is_empty());
    }

    #[test]
    fn more_steps_are_no_change_unless_the_schedule_stretches() {
        let phase = |size: &str, steps: u64| {
            format!("[[phase]]\nintegrator = 'euler'\nstep-size = '{size}'\nsteps = {steps}\n")
        };
        assert!(found(&phase("0.1", 100), &phase("0.1", 200)).is_empty());
        assert!(found(&phase("polynomial:1:2:3", 100), &phase("polynomial:1:2:3", 90)).is_empty());
        assert_eq!(
            found(&phase("linear:2:1", 100), &phase("linear:2:1", 200)),
            ["phase: [euler:linear:2:1x100] → [euler:linear:2:1x200]"]
        );
        let two = phase("0.1", 100) + &phase("0.2", 50);
        assert!(found(&phase("0.1", 100), &two).is_empty());
        assert!(found(&(phase("linear:2:1", 100)), &(phase("linear:2:1", 100) + &two)).is_empty());
        assert_eq!(found(&two, &phase("0.1", 100)).len(), 1);
        assert_eq!(found(&phase("0.1", 90), &two).len(), 1, "another phase from step 90 on");
        assert_eq!(found(&phase("0.1", 100), &phase("0.2", 100)).len(), 1);
    }

    #[test]
    fn changed_inputs_are_named() {
        let old = "steinflow 1.0.0\nmy data.csv abc";
        assert!(changed_inputs(old, old).is_empty());
        let new = changed_inputs(old, "steinflow 1.0.1\nmy data.csv abd");
        assert_eq!(new.len(), 2);
        assert!(new[0].contains("1.0.1") && new[1].contains("my data.csv"), "{new:?}");
    }
}
