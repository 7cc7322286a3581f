//! What `steinflow tune` finds and costs, against all points of a dense grid at full length.

mod page;

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use serde::{Deserialize, Serialize};
use steinflow::random::{Purpose, fill_standard_normal, stream};
use steinflow::run::Snapshot;
use steinflow_io::RunFolder;

use super::jobs::Ledger;
use crate::args::{CommonArguments, SearchArguments};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::progress::bar;
use crate::sample::sampler;
use crate::settings::Settings;
use crate::tune::Task;

const SETTINGS: &str = include_str!("../../../../experiments/tune/settings.toml");
/// Rows and features of the simulated data.
const SIMULATED: (usize, usize) = (300, 8);

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Plan {
    rates_per_decade: u32,
    seeds: Vec<u64>,
    target: Vec<Target>,
}

#[derive(Clone, Deserialize)]
struct Target {
    label: String,
    #[serde(default)]
    simulated: bool,
    #[serde(flatten)]
    settings: Settings,
}

/// One target with one seed.
struct Job<'a> {
    target: &'a Target,
    settings: Settings,
    rates_per_decade: u32,
}

/// A run of the grid; one that diverged has no discrepancy.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Point {
    eta: Option<f64>,
    alpha: Option<f64>,
    ksd: Option<f64>,
}

/// What a job has found.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Found {
    tuned: Point,
    tuned_steps: u64,
    /// Without tuning: `steinflow sample` as it stands.
    default_ksd: Option<f64>,
    grid: Vec<Point>,
    grid_steps: u64,
}

impl Found {
    /// The lowest discrepancy of the grid.
    fn best(&self) -> f64 {
        self.grid.iter().filter_map(|point| point.ksd).fold(f64::INFINITY, f64::min)
    }

    fn tuned_ksd(&self) -> f64 {
        self.tuned.ksd.unwrap_or(f64::NAN)
    }

    fn ratio(&self) -> f64 {
        self.tuned_ksd() / self.best()
    }

    fn cost_share(&self) -> f64 {
        self.tuned_steps as f64 / self.grid_steps as f64
    }
}

/// A job with what came of it.
struct Cell<'a> {
    label: &'a str,
    seed: u64,
    found: Result<Found, String>,
}

pub fn run(arguments: &CommonArguments) -> Result<()> {
    let mut plan: Plan = toml::from_str(SETTINGS).map_err(|error| Error::ConfigWrong {
        path: "experiments/tune/settings.toml".into(),
        message: error.to_string(),
    })?;
    if arguments.quick {
        plan.seeds.truncate(1);
        plan.target.truncate(2);
        plan.rates_per_decade = 2;
        for target in &mut plan.target {
            target.settings.steps = Some(64);
        }
    }
    let mut folder = RunFolder::create(arguments.out("tune"), arguments.force)?;
    folder.write("simulated.csv", simulated().as_bytes())?;
    let data = folder.partial_path().join("simulated.csv");
    let mut jobs = Vec::new();
    for target in &plan.target {
        jobs.extend(plan.seeds.iter().map(|&seed| Job::new(&plan, target, seed, &data)));
    }
    let quick = if arguments.quick { "# --quick\n" } else { "" };
    let text = format!("{quick}{SETTINGS}");
    let ledger = Ledger::open(&folder, &text)?;
    let work = |job: &Job<'_>| job.run().map_err(|error| error.to_string());
    let results = ledger.run("tune", &jobs, Job::key, work)?;
    let cells: Vec<Cell<'_>> = jobs
        .iter()
        .zip(results)
        .map(|(job, found)| Cell { label: &job.target.label, seed: job.seed(), found })
        .collect();
    let table = page::table(&cells);
    folder.write("settings.toml", text.as_bytes())?;
    folder.write("tune.csv", page::csv(&cells).as_bytes())?;
    folder.write("grid.csv", page::grid_csv(&cells).as_bytes())?;
    folder.write("tune.md", table.as_bytes())?;
    if let Some(figure) = page::figure(&cells)? {
        folder.write("tune.png", &figure.png()?)?;
    }
    let path = folder.commit()?;
    ledger.delete()?;
    writeln!(std::io::stdout(), "{table}\n{}", path.display())?;
    Ok(())
}

impl<'a> Job<'a> {
    fn new(plan: &Plan, target: &'a Target, seed: u64, data: &Path) -> Self {
        let mut settings = target.settings.clone();
        settings.seed = Some(seed);
        if target.simulated {
            settings.data = Some(data.to_owned());
        }
        Self { target, settings, rates_per_decade: plan.rates_per_decade }
    }

    fn seed(&self) -> u64 {
        self.settings.seed.unwrap_or(0)
    }

    fn key(&self) -> String {
        format!("{}, seed {}", self.target.label, self.seed())
    }

    fn run(&self) -> Result<Found> {
        let search = SearchArguments { judge: Some("ksd".to_owned()), ..Default::default() };
        let dense = Task::with_density(self.settings.clone(), &search, self.rates_per_decade)?;
        let model = steinflow_models::build::<f64>(&dense.base.model_spec()?)?;
        let tuned = Task::new(self.settings.clone(), &search)?.run(&bar("", true))?;
        // Judged as the pilots were, and the steps that were taken; one that diverges takes fewer.
        let ksd = |config: &Config| -> Result<(Option<f64>, u64)> {
            let mut steps = 0;
            let count = |at: &Snapshot<'_, f64>| {
                steps = at.step;
                Ok(ControlFlow::Continue(()))
            };
            let ksd = match sampler(config, &*model)?.observe(count).run() {
                Ok(run) => tuned.discrepancy(&*model, &run.theta())?.filter(|x| x.is_finite()),
                Err(error) if error.is_usage() => return Err(error.into()),
                Err(_) => None,
            };
            Ok((ksd, steps))
        };
        let default_ksd = ksd(&Config::resolve(self.settings.clone())?)?.0;
        let tuned_ksd = ksd(&tuned.config)?.0;
        let (mut grid, mut grid_steps) = (Vec::new(), 0);
        for &choice in &dense.choices {
            let config = Config::resolve_on(dense.settings_of(choice), &*model)?;
            let (ksd, steps) = ksd(&config)?;
            grid.push(Point { eta: choice.eta, alpha: choice.alpha, ksd });
            grid_steps += steps;
        }
        let (choice, tuned_steps) = (tuned.choices[tuned.best], tuned.steps);
        let tuned = Point { eta: choice.eta, alpha: choice.alpha, ksd: tuned_ksd };
        Ok(Found { tuned, tuned_steps, default_ksd, grid, grid_steps })
    }
}

/// Correlated features and a label that a linear function of them and noise decides.
fn simulated() -> String {
    let (rows, features) = SIMULATED;
    let normals = |row: u64, count: usize| {
        let mut values = vec![0.0; count];
        fill_standard_normal(&mut stream(2021, Purpose::Start, 0, row), &mut values);
        values
    };
    let names: Vec<String> = (1..=features).map(|j| format!("x{j}")).collect();
    let mut text = format!("{},y\n", names.join(","));
    let weights = normals(0, features);
    for row in 1..=rows as u64 {
        let draws = normals(row, features + 2);
        let (shared, noise) = (draws[features], 1.7 * draws[features + 1]);
        let x: Vec<f64> = draws[..features].iter().map(|own| 0.6 * shared + 0.8 * own).collect();
        let total: f64 = x.iter().zip(&weights).map(|(x, weight)| x * weight).sum();
        let cells: Vec<String> = x.iter().map(|x| format!("{x:.6}")).collect();
        let _ = writeln!(text, "{},{}", cells.join(","), u8::from(total + noise > 0.0));
    }
    text
}
