//! `steinflow completions` and `steinflow man`: the command line as shells and manual pages know it.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory as _;
use steinflow_io::WholeFile;

use crate::args::Arguments;
use crate::error::Result;

pub fn completions(shell: clap_complete::Shell) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "steinflow", &mut text);
    std::io::stdout().lock().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// `steinflow.1`, `steinflow-sample.1`, …, and the names of the files.
pub fn manual(folder: &Path) -> Result<ExitCode> {
    std::fs::create_dir_all(folder)?;
    let mut command = Arguments::command();
    command.build();
    write_pages(folder, &command, "steinflow")?;
    Ok(ExitCode::SUCCESS)
}

fn write_pages(folder: &Path, command: &clap::Command, name: &str) -> Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name).render(&mut page)?;
    let path = folder.join(format!("{name}.1"));
    WholeFile::create(&path, true)?.write(&page)?;
    writeln!(std::io::stdout(), "{}", path.display())?;
    let own = command.get_subcommands().filter(|command| command.get_name() != "help");
    for subcommand in own {
        write_pages(folder, subcommand, &format!("{name}-{}", subcommand.get_name()))?;
    }
    Ok(())
}
