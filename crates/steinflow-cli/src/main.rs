//! The `steinflow` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    steinflow_cli::command(std::env::args_os())
}
