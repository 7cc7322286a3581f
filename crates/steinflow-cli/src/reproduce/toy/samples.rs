//! `samples`: final particles of every method, judged over many seeds and with other settings too.

use serde::Deserialize;
use steinflow::{Error as LibraryError, Matrix};
use steinflow_io::plot::{Layer, Panel};
use steinflow_models::{Describe as _, toy::TriCrescent};

use super::csv::{Csv, number};
use super::judge::{Judge, Reference, Verdict};
use super::tally;
use super::{Row, Section, Toy, page, parse, write_figure};
use crate::error::Result;
use crate::reproduce::study::Study;
use steinflow_config::Config;

pub const SETTINGS: &str = include_str!("../../../../../experiments/toy/samples.toml");
const EXACT: &str = "exact samples";

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    seeds: u64,
    pub found: f64,
    pub reference: usize,
    pub reference_seed: u64,
    variant: Vec<Row>,
}

/// The settings that ship with the command.
pub fn plan() -> Result<Plan> {
    parse("samples.toml", SETTINGS)
}

/// A run: the final particles and what they are worth, or what went wrong.
pub struct Cell<'a> {
    pub label: &'a str,
    /// Which settings; none for exact samples.
    pub row: Option<&'a Row>,
    pub seed: u64,
    pub found: Result<(Matrix<f64>, Verdict), String>,
}

/// The seeds of every method.
pub fn seeds(toy: &Toy) -> Result<Vec<u64>> {
    let count = if toy.quick { 2 } else { plan()?.seeds };
    let last = toy.seed.checked_add(count - 1).ok_or_else(|| {
        let remedy = format!("{count} seeds follow from it; take a smaller one");
        LibraryError::setting("seed", toy.seed, remedy)
    })?;
    Ok((toy.seed..=last).collect())
}

pub fn make(toy: &Toy, study: &mut Study) -> Result<Section> {
    let (mut plan, seeds) = (plan()?, seeds(toy)?);
    if toy.quick {
        plan.variant.truncate(2);
    }
    let reference = Reference::new(&plan, toy.quick);
    let judge = Judge::new(&toy.parts, &reference)?;

    let rows: Vec<&Row> = toy.methods.method.iter().chain(&plan.variant).collect();
    let jobs: Vec<(&Row, u64)> =
        rows.iter().flat_map(|&row| seeds.iter().map(move |&seed| (row, seed))).collect();
    let results: Vec<Result<(Vec<f64>, Verdict), String>> = study.run(
        "samples",
        &jobs,
        |(row, seed)| format!("{}, seed {seed}", row.label),
        |&(row, seed)| run(toy, &judge, row, seed).map_err(|error| error.to_string()),
    )?;
    let mut cells: Vec<Cell<'_>> = jobs
        .iter()
        .zip(results)
        .map(|(&(row, seed), found)| {
            let found = found.and_then(|(numbers, verdict)| {
                let rows = numbers.len() / 2;
                let theta =
                    Matrix::from_vec(numbers, rows, 2).ok_or("particles have two coordinates")?;
                Ok((theta, verdict))
            });
            Cell { label: &row.label, row: Some(row), seed, found }
        })
        .collect();
    for &seed in &seeds {
        let exact = TriCrescent.exact_sample(toy.methods.particles, seed);
        let exact = exact.expect("the tri-crescent can be sampled exactly");
        let verdict = judge.of(exact.as_ref())?;
        cells.push(Cell { label: EXACT, row: None, seed, found: Ok((exact, verdict)) });
    }

    draw(toy, &cells, &reference, study)?;
    study.write("samples.toml", SETTINGS.as_bytes())?;
    study.write("samples.csv", particles_csv(toy, &cells).bytes())?;
    study.write("samples-seeds.csv", seeds_csv(&cells).bytes())?;
    let tallies = tally::tallies(&cells, plan.found);
    let (methods, variants) = tallies.split_at(toy.methods.method.len());
    let markdown = page::samples(toy, &seeds, plan.found, reference.len(), methods, variants);
    Ok(Section { markdown, terminal: format!("{}\n\n", tally::terminal(&tallies)) })
}

fn run(toy: &Toy, judge: &Judge<'_>, row: &Row, seed: u64) -> Result<(Vec<f64>, Verdict)> {
    let config = Config::resolve(toy.settings(row, seed))?;
    let model = steinflow_models::build::<f64>(config.spec())?;
    let theta = config.sampler(&*model)?.run()?.theta();
    let verdict = judge.of(theta.as_ref())?;
    Ok((theta.into_vec(), verdict))
}

/// The methods' particles of the first seed over the target.
fn draw(toy: &Toy, cells: &[Cell<'_>], reference: &Reference, study: &mut Study) -> Result<()> {
    let panels: Vec<Panel<'_>> = shown(toy, cells)
        .map(|cell| match &cell.found {
            Ok((theta, verdict)) => Panel {
                title: cell.label.to_owned(),
                layers: vec![Layer::Dots { points: theta.as_ref(), color: 0 }],
                corner: verdict.corner(),
            },
            Err(_) => Panel {
                title: cell.label.to_owned(),
                layers: Vec::new(),
                corner: vec!["ran away".to_owned()],
            },
        })
        .collect();
    let exact = cells.iter().find(|cell| cell.label == EXACT && cell.seed == toy.seed);
    let exact = exact.and_then(|cell| cell.found.as_ref().ok()).map_or(f64::NAN, |x| x.1.distance);
    let caption = format!(
        "{count} particles; in the corner, shares of the lower / middle / upper crescent and the \
         energy distance to {} exact samples ({count} exact ones are at {exact:.3})",
        reference.len(),
        count = toy.methods.particles,
    );
    let figure = toy.backdrop.figure("Final particles", &caption, 4, &panels, &[]);
    write_figure(study, "samples", &figure.draw()?)
}

/// The cells of the figure.
fn shown<'a>(toy: &Toy, cells: &'a [Cell<'a>]) -> impl Iterator<Item = &'a Cell<'a>> {
    let (seed, methods) = (toy.seed, toy.methods.method.len());
    cells.iter().filter(move |cell| cell.seed == seed).take(methods)
}

fn particles_csv(toy: &Toy, cells: &[Cell<'_>]) -> Csv {
    let mut csv = Csv::new("method,crescent,particle,x,y");
    for cell in shown(toy, cells) {
        let Ok((theta, _)) = &cell.found else { continue };
        for i in 0..theta.rows() {
            let place = theta.row(i);
            let crescent = &toy.parts.names()[toy.parts.classify(place)];
            csv.row(&[cell.label, crescent], &[i.to_string(), number(place[0]), number(place[1])]);
        }
    }
    csv
}

fn seeds_csv(cells: &[Cell<'_>]) -> Csv {
    let mut csv = Csv::new("method,error,seed,lower,middle,upper,energy_distance");
    for cell in cells {
        let mut numbers = vec![cell.seed.to_string()];
        let error = match &cell.found {
            Ok((_, verdict)) => {
                let values = verdict.shares.iter().chain([&verdict.distance]);
                numbers.extend(values.map(|&value| number(value)));
                ""
            }
            Err(error) => {
                numbers.extend([const { String::new() }; 4]);
                error
            }
        };
        csv.row(&[cell.label, error], &numbers);
    }
    csv
}
