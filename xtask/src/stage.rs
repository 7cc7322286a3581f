//! A stage: one command run from the root of the workspace, its output streamed, its time taken.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// A named command.
pub struct Stage {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
    /// Why it cannot run here.
    skip: Option<&'static str>,
    /// Whether it fails then.
    is_strict: bool,
}

/// How a stage ended.
enum Outcome {
    Passed(Duration),
    Failed(Duration),
    Skipped(&'static str),
    /// Could not run, and had to.
    Missing(&'static str),
    NotReached,
}

impl Outcome {
    fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Missing(_))
    }
}

impl Stage {
    /// Runs a program.
    pub fn new(name: &'static str, program: PathBuf, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let (variables, skip, is_strict) = (Vec::new(), None, false);
        Self { name, program, arguments, variables, skip, is_strict }
    }

    /// Runs cargo.
    pub fn cargo(name: &'static str, arguments: &[&str]) -> Self {
        Self::new(name, "cargo".into(), arguments)
    }

    /// Runs nothing, and says why.
    pub fn skipped(name: &'static str, reason: &'static str) -> Self {
        Self { skip: Some(reason), ..Self::cargo(name, &[]) }
    }

    /// Skips the stage, for this reason, where cargo does not have the subcommand.
    pub fn needs(mut self, subcommand: &str, reason: &'static str) -> Self {
        if !cargo_has(subcommand) {
            self.skip = Some(reason);
        }
        self
    }

    /// Sets an environment variable for the command.
    pub fn with_variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// Fails the stage where it would be skipped.
    pub fn strictly(self) -> Self {
        Self { is_strict: true, ..self }
    }

    fn run(&self) -> Outcome {
        match self.skip {
            Some(reason) if self.is_strict => return Outcome::Missing(reason),
            Some(reason) => return Outcome::Skipped(reason),
            None => {}
        }
        let begun = Instant::now();
        let status = command(&self.program)
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .status();
        match status {
            Ok(status) if status.success() => Outcome::Passed(begun.elapsed()),
            Ok(_) => Outcome::Failed(begun.elapsed()),
            Err(error) => {
                eprintln!("`{}` could not be started: {error}", self.program.display());
                Outcome::Failed(begun.elapsed())
            }
        }
    }
}

/// The command as one types it into a shell at the root.
impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(formatter, "{name}='{value}' ")?;
        }
        let program = self.program.strip_prefix(root()).unwrap_or(&self.program);
        write!(formatter, "{}", program.display())?;
        self.arguments.iter().try_for_each(|argument| write!(formatter, " {argument}"))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed(time) => write!(formatter, "passed  {:>7.1} s", time.as_secs_f64()),
            Self::Failed(time) => write!(formatter, "FAILED  {:>7.1} s", time.as_secs_f64()),
            Self::Skipped(reason) => write!(formatter, "skipped: {reason}"),
            Self::Missing(reason) => write!(formatter, "FAILED: {reason}"),
            Self::NotReached => write!(formatter, "not reached"),
        }
    }
}

/// Runs the stages until one fails, then prints a table of all of them.
pub fn run_all(stages: &[Stage]) -> ExitCode {
    let outcomes = run_until_failure(stages);
    println!();
    for (stage, outcome) in stages.iter().zip(&outcomes) {
        println!("{:<14}{outcome}", stage.name);
    }
    let Some(failed) = outcomes.iter().position(Outcome::is_failure) else {
        return ExitCode::SUCCESS;
    };
    if stages[failed].skip.is_none() {
        println!("\nTo run the failed stage alone: {}", stages[failed]);
    }
    ExitCode::FAILURE
}

fn run_until_failure(stages: &[Stage]) -> Vec<Outcome> {
    let mut failed = false;
    let run = |stage: &Stage| {
        if failed {
            return Outcome::NotReached;
        }
        if stage.skip.is_none() {
            println!("\n== {}: {stage}", stage.name);
        }
        let outcome = stage.run();
        println!("== {}: {outcome}", stage.name);
        failed = outcome.is_failure();
        outcome
    };
    stages.iter().map(run).collect()
}

/// Whether `cargo <subcommand>` exists here.
pub fn cargo_has(subcommand: &str) -> bool {
    command(Path::new("cargo"))
        .args([subcommand, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The folder of the workspace, which holds that of this crate.
pub fn root() -> PathBuf {
    // What cargo says now comes first: clones that share a target folder also share this program.
    let own = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    own.parent().unwrap_or(&own).to_owned()
}

/// A command that runs at the root; cargo is the one that runs this program.
fn command(program: &Path) -> Command {
    let cargo = || env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let program: OsString =
        if program == Path::new("cargo") { cargo() } else { program.as_os_str().to_owned() };
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Stage, root, run_until_failure};

    #[test]
    fn a_stage_is_shown_as_one_types_it() {
        let docs =
            Stage::cargo("docs", &["doc", "--no-deps"]).with_variable("FLAGS", "-D warnings");
        assert_eq!(docs.to_string(), "FLAGS='-D warnings' cargo doc --no-deps");
        let own = Stage::new("own", root().join("tool"), &["check"]);
        assert_eq!(own.to_string(), "tool check");
    }

    #[test]
    fn what_is_missing_is_skipped_or_if_strict_a_failure() {
        let absent = || Stage::cargo("absent", &["--version"]).needs("no-such-subcommand", "why");
        let after = || Stage::cargo("after", &["--version"]);
        let outcomes = run_until_failure(&[absent(), after()]);
        assert!(matches!(outcomes[..], [Outcome::Skipped("why"), Outcome::Passed(_)]));
        let outcomes = run_until_failure(&[absent().strictly(), after().strictly()]);
        assert!(matches!(outcomes[..], [Outcome::Missing("why"), Outcome::NotReached]));
    }

    #[test]
    fn the_first_failure_ends_the_run_and_a_skip_does_not() {
        let outcomes = run_until_failure(&[
            Stage::cargo("fine", &["--version"]),
            Stage::cargo("absent", &["--version"]).needs("no-such-subcommand", "not installed"),
            Stage::new("gone", root().join("no-such-program"), &[]),
            Stage::cargo("after", &["--version"]),
        ]);
        assert!(matches!(
            outcomes[..],
            [
                Outcome::Passed(_),
                Outcome::Skipped("not installed"),
                Outcome::Failed(_),
                Outcome::NotReached
            ]
        ));
    }
}
