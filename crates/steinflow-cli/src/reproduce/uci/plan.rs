//! What is run: settings, grids and data sets, from a TOML file.

use super::halving::Rung;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use steinflow::Error as LibraryError;
use steinflow_models::data::data_set;
use toml::Table;

use super::job::Source;
use crate::args::UciArguments;
use crate::error::Result;
use steinflow_config::Settings;

/// The settings that ship with the command, by name.
const SHIPPED: [(&str, &str); 3] = [
    ("paper", include_str!("../../../../../experiments/uci/paper.toml")),
    ("best", include_str!("../../../../../experiments/uci/best.toml")),
    ("noise", include_str!("../../../../../experiments/uci/noise.toml")),
];

pub struct Plan {
    pub text: String,
    pub search: Search,
    pub grid: Grid,
    pub datasets: Vec<DataSetPlan>,
    pub runs: Vec<Run>,
    /// What all runs share; a run's own settings win.
    pub common: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSetPlan {
    pub name: String,
    /// Iterations, where they differ from those of the others.
    pub steps: Option<u64>,
    /// Particles, where they differ from those of the others.
    pub particles: Option<usize>,
}

/// How hyperparameters are chosen inside the training rows.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Search {
    pub validation_fraction: f64,
    pub rungs: Vec<Rung>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    #[serde(default)]
    pub eta: Vec<f64>,
    #[serde(default)]
    pub alpha: Vec<f64>,
    #[serde(default)]
    pub mu: Vec<f64>,
}

/// One method: its settings, and which of the grid's hyperparameters it searches.
pub struct Run {
    pub label: String,
    pub search: Vec<String>,
    pub settings: Settings,
}

impl Plan {
    /// The plan that the arguments ask for, cut down to what they name.
    pub fn read(arguments: &UciArguments) -> Result<Self> {
        let name = arguments.settings.as_str();
        let shipped = SHIPPED.iter().find(|(shipped, _)| *shipped == name);
        let text = match shipped {
            Some((_, text)) => (*text).to_owned(),
            None => std::fs::read_to_string(name).map_err(|source| {
                steinflow_config::Error::Unreadable { path: name.into(), source }
            })?,
        };
        let wrong = |message: String| steinflow_config::Error::Wrong { path: name.into(), message };
        let mut plan = Self::parse(text).map_err(|error| wrong(error.to_string()))?;
        if arguments.common.quick {
            plan.shorten();
        }
        keep_named("data set", &arguments.datasets, &mut plan.datasets, |set| &set.name)?;
        keep_named("method", &arguments.methods, &mut plan.runs, |run| &run.label)?;
        for run in &plan.runs {
            let known = ["eta", "alpha", "mu"];
            if let Some(other) = run.search.iter().find(|name| !known.contains(&name.as_str())) {
                return Err(LibraryError::unknown("hyperparameter", other, known).into());
            }
        }
        for set in &plan.datasets {
            data_set(&set.name)?;
        }
        Ok(plan)
    }

    /// Whatever is not of the plan itself is a setting, and one that does not exist is an error.
    fn parse(text: String) -> Result<Self, toml::de::Error> {
        let mut table: Table = text.parse()?;
        let datasets = take(&mut table, "dataset")?.unwrap_or_default();
        let search = take(&mut table, "search")?.unwrap_or_default();
        let grid = take(&mut table, "grid")?.unwrap_or_default();
        let runs: Vec<Table> = take(&mut table, "run")?.unwrap_or_default();
        let run = |mut table: Table| {
            let label = take(&mut table, "label")?;
            Ok(Run {
                label: label.ok_or_else(|| toml::de::Error::custom("a run has no `label`"))?,
                search: take(&mut table, "search")?.unwrap_or_default(),
                settings: table.try_into()?,
            })
        };
        let runs = runs.into_iter().map(run).collect::<Result<_, toml::de::Error>>()?;
        Ok(Self { text, search, grid, datasets, runs, common: table.try_into()? })
    }

    /// A hundredth of the work, to see that everything runs.
    fn shorten(&mut self) {
        self.text.insert_str(0, "# --quick\n");
        for steps in [&mut self.common.steps]
            .into_iter()
            .chain(self.datasets.iter_mut().map(|set| &mut set.steps))
        {
            *steps = steps.map(|steps| (steps / 50).max(1));
        }
        for phase in self.runs.iter_mut().flat_map(|run| run.settings.phase.iter_mut().flatten()) {
            phase.steps = (phase.steps / 50).max(1);
        }
        for rung in &mut self.search.rungs {
            rung.steps = (rung.steps / 50).max(1);
        }
    }
}

/// Takes an entry out of a table.
fn take<E: DeserializeOwned>(table: &mut Table, name: &str) -> Result<Option<E>, toml::de::Error> {
    table.remove(name).map(toml::Value::try_into).transpose()
}

/// The splits of a data set that are asked for.
pub fn splits(arguments: &UciArguments, source: &Source) -> Vec<usize> {
    let all = 0..source.splits();
    match &arguments.splits {
        Some(chosen) => all.filter(|split| chosen.contains(split)).collect(),
        None if arguments.common.quick => all.take(1).collect(),
        None => all.collect(),
    }
}

/// Keeps the entries that are named, all of them when none is.
fn keep_named<E>(
    what: &'static str,
    names: &[String],
    entries: &mut Vec<E>,
    name_of: impl Fn(&E) -> &String,
) -> Result<()> {
    let is = |entry: &E, name: &String| name_of(entry).eq_ignore_ascii_case(name);
    for name in names {
        if !entries.iter().any(|entry| is(entry, name)) {
            return Err(LibraryError::unknown(
                what,
                name,
                entries.iter().map(|e| name_of(e).as_str()),
            )
            .into());
        }
    }
    if !names.is_empty() {
        entries.retain(|entry| names.iter().any(|name| is(entry, name)));
    }
    Ok(())
}
