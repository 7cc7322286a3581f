//! The paper's toy experiments: four figures, the numbers behind them, and a page about both.

mod backdrop;
mod csv;
mod evolution;
mod flow;
mod judge;
mod moves;
mod page;
mod samples;
mod table1;
mod tally;
mod traces;

use std::io::Write as _;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use steinflow_io::RunFolder;
use steinflow_io::plot::Figure;
use steinflow_models::{Describe as _, Parts, toy::TriCrescent};

use crate::args::{Experiment, ReproduceArguments};
use crate::error::{Error, Result};
use crate::settings::Settings;
use backdrop::Backdrop;

const METHODS: &str = include_str!("../../../../experiments/toy/methods.toml");
/// As `steinflow sample`.
const DEFAULT_SEED: u64 = 0;

/// What all of the experiments share.
struct Toy {
    backdrop: Backdrop,
    parts: Parts,
    methods: Methods,
    seed: u64,
    quick: bool,
}

/// The samplers of the figures.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Methods {
    particles: usize,
    window: Window,
    method: Vec<Row>,
}

/// Limits of the axes.
#[derive(Deserialize)]
struct Window {
    x: (f64, f64),
    y: (f64, f64),
}

/// Settings with a name for people.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Row {
    label: String,
    #[serde(default)]
    in_paper: bool,
    #[serde(flatten)]
    settings: Settings,
}

/// Makes the figures of one experiment and the section about them.
type Make = fn(&Toy, &mut RunFolder) -> Result<Section>;

/// A part of the page, and what of it is worth a place on the terminal.
struct Section {
    markdown: String,
    terminal: String,
}

impl Toy {
    fn new(arguments: &ReproduceArguments) -> Result<Self> {
        let methods: Methods = parse("methods.toml", METHODS)?;
        Ok(Self {
            backdrop: Backdrop::new(methods.window.x, methods.window.y)?,
            parts: TriCrescent.parts().expect("the tri-crescent has three parts"),
            methods,
            seed: arguments.seed.unwrap_or(DEFAULT_SEED),
            quick: arguments.quick,
        })
    }

    /// The settings of a run on the toy.
    fn settings(&self, row: &Row, seed: u64) -> Settings {
        Settings {
            seed: Some(seed),
            particles: row.settings.particles.or(Some(self.methods.particles)),
            ..row.settings.clone()
        }
    }
}

pub fn run(arguments: &ReproduceArguments) -> Result<()> {
    let toy = Toy::new(arguments)?;
    let mut folder = RunFolder::create(&arguments.out, arguments.force)?;
    let experiments: [(Experiment, Make); 4] = [
        (Experiment::Table1, table1::make),
        (Experiment::Samples, samples::make),
        (Experiment::Traces, traces::make),
        (Experiment::Evolution, evolution::make),
    ];
    let mut page = page::opening(arguments, toy.seed);
    let mut terminal = String::new();
    for (experiment, make) in experiments {
        if [experiment, Experiment::Toy].contains(&arguments.experiment) {
            let section = make(&toy, &mut folder)?;
            page.push_str(&section.markdown);
            terminal.push_str(&section.terminal);
        }
    }
    folder.write("methods.toml", METHODS.as_bytes())?;
    folder.write("README.md", page.as_bytes())?;
    let path = folder.commit()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{terminal}{}", path.display())?;
    for (name, what) in [
        ("README.md", "what was run, what the paper says, what came out"),
        ("*.png, *.svg", "figures"),
        ("*.csv", "the numbers behind them"),
        ("*.toml", "settings"),
    ] {
        writeln!(out, "  {name:<14} {what}")?;
    }
    Ok(())
}

/// Reads settings that ship with the command.
fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| Error::ConfigWrong {
        path: format!("experiments/toy/{name}").into(),
        message: error.to_string(),
    })
}

/// A figure as PNG, for people, and as SVG, for print.
fn write_figure(folder: &mut RunFolder, name: &str, figure: &Figure) -> Result<()> {
    folder.write(&format!("{name}.png"), &figure.png()?)?;
    folder.write(&format!("{name}.svg"), figure.svg().as_bytes())?;
    Ok(())
}
