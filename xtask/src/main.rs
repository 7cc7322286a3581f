//! The repository's tasks, run as `cargo xtask <task>`.

mod bench;
mod checks;
mod deny;
mod fuzz;
mod gpu;
mod instructions;
mod python;
mod ranks;
mod site;
mod stage;
mod strict;
mod torture;

use std::env;
use std::process::ExitCode;

const USAGE: &str = "\
The repository's tasks.

Usage: cargo xtask <task>

  test [--strict]
         run every check: format, lints, tests, a little torture, docs, dependencies, the Python
         package; strictly, what lacks a tool is installed or fails, and is not skipped
  torture [OPTIONS]
         kill, interrupt, damage and starve runs, go on with them, compare the bits; a table
  bench [OPTIONS] [WORK…]
         time Steinflow against its peers, turn about in one run; writes benches/runs/<date>
  gpu    test the engine for GPUs on the one that is here, and time it with JAX beside it; writes
         benches/runs/<date>-<GPU>
  gpu --emulated
         run these tests on a GPU that is not there: right, and some thousand times as slow
  instructions [--write]
         count the instructions of two kernels with callgrind, against the committed numbers
  fuzz [INPUTS]
         give every parser a million inputs, or so many, made from good ones; a table
  site   build the documentation into target/site, and check its links
  wheel  build the wheel of the Python package into target/wheels, for manylinux 2014 on Linux, and
         try it in an empty environment
  torch  install PyTorch into target/torch (5 GB), and run the tests that need it
  deny   check licences and sources of the dependencies; installs cargo-deny if it is missing
  help   show this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> =
        env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["torture", ref options @ ..] => stage::run_all(&torture::stages(options)),
        ["bench", ref options @ ..] => stage::run_all(&bench::stages(options)),
        ["gpu"] => stage::run_all(&gpu::stages()),
        ["gpu", "--emulated"] => stage::run_all(&gpu::emulated()),
        ["instructions"] => instructions::run(false),
        ["instructions", "--write"] => instructions::run(true),
        ["fuzz"] => stage::run_all(&fuzz::stages("1000000")),
        ["fuzz", inputs] if inputs.parse::<u64>().is_ok() => stage::run_all(&fuzz::stages(inputs)),
        ["test"] => stage::run_all(&checks::stages(false)),
        ["test", "--strict"] => {
            let code = stage::run_all(&checks::stages(true));
            strict::announce();
            code
        }
        ["site"] => stage::run_all(&site::stages()),
        ["torch"] => stage::run_all(&python::with_torch()),
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
