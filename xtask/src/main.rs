//! The repository's tasks, run as `cargo xtask <task>`.

mod checks;
mod deny;
mod python;
mod stage;
mod torture;

use std::env;
use std::process::ExitCode;

const USAGE: &str = "\
The repository's tasks.

Usage: cargo xtask <task>

  test   run every check: format, lints, tests, a little torture, docs, dependencies,
         the Python package
  torture [OPTIONS]
         kill, interrupt, damage and starve runs, go on with them, compare the bits; a table
  wheel  build the wheel of the Python package into target/wheels
  deny   check licences and sources of the dependencies; installs cargo-deny if it is missing
  help   show this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> =
        env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["torture", ref options @ ..] => stage::run_all(&torture::stages(options)),
        ["test"] => stage::run_all(&checks::stages()),
        ["wheel"] => stage::run_all(&python::wheel()),
        ["deny"] => stage::run_all(&deny::install_and_check()),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        [] => misused("a task is missing"),
        _ => misused(&format!("there is no task `{}`", arguments.join(" "))),
    }
}

fn misused(problem: &str) -> ExitCode {
    eprint!("{problem}\n\n{USAGE}");
    ExitCode::from(2)
}
