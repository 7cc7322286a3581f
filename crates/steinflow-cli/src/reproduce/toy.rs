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
use steinflow_io::plot::Figure;
use steinflow_models::{Describe as _, Parts, toy::TriCrescent};

use super::study::Study;
use crate::args::ToyArguments;
use crate::error::Result;
use backdrop::Backdrop;
use steinflow_config::Settings;

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
type Make = fn(&Toy, &mut Study) -> Result<Section>;

/// A part of the page, and what of it is worth a place on the terminal.
struct Section {
    markdown: String,
    terminal: String,
}

impl Toy {
    fn new(arguments: &ToyArguments) -> Result<Self> {
        let methods: Methods = parse("methods.toml", METHODS)?;
        Ok(Self {
            backdrop: Backdrop::new(methods.window.x, methods.window.y)?,
            parts: TriCrescent.parts().expect("the tri-crescent has three parts"),
            methods,
            seed: arguments.seed.unwrap_or(DEFAULT_SEED),
            quick: arguments.common.quick,
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

/// The figures, in the order of the page.
pub const FIGURES: &[&str] = &["table1", "samples", "traces", "evolution"];

/// Makes the named figures and the page about them; `name` is what the user asked for.
pub fn run(name: &str, figures: &[&str], arguments: &ToyArguments) -> Result<()> {
    let toy = Toy::new(arguments)?;
    if figures.contains(&"samples") {
        // Before anything is written.
        samples::seeds(&toy)?;
    }
    let settings = format!("{METHODS}{}# seed {}\n", samples::SETTINGS, toy.seed);
    let mut study = Study::begin(&arguments.common, name, &settings)?;
    let all: [Make; 4] = [table1::make, samples::make, traces::make, evolution::make];
    let mut page = page::opening(name, &toy);
    let mut terminal = String::new();
    for (figure, make) in FIGURES.iter().zip(all) {
        if figures.contains(figure) {
            let section = make(&toy, &mut study)?;
            page.push_str(&section.markdown);
            terminal.push_str(&section.terminal);
        }
    }
    study.write("methods.toml", METHODS.as_bytes())?;
    study.write("README.md", page.as_bytes())?;
    let path = study.publish()?;
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
    let wrong = |error: toml::de::Error| steinflow_config::Error::Wrong {
        path: format!("experiments/toy/{name}").into(),
        message: error.to_string(),
    };
    Ok(toml::from_str(text).map_err(wrong)?)
}

/// A figure as PNG, for people, and as SVG, for print.
fn write_figure(study: &mut Study, name: &str, figure: &Figure) -> Result<()> {
    study.write(&format!("{name}.png"), &figure.png()?)?;
    study.write(&format!("{name}.svg"), figure.svg().as_bytes())?;
    Ok(())
}
