//! `traces`: paths of a few particles of every method, and how far all of them get.

use std::fmt::Write as _;

use serde::Deserialize;
use steinflow::Matrix;
use steinflow_io::RunFolder;
use steinflow_io::plot::{Key, Layer, Mark, Panel};
use steinflow_models::Parts;

use super::csv::{Csv, number};
use super::flow::Flow;
use super::{Section, Toy, parse, write_figure};
use crate::error::Result;

const SETTINGS: &str = include_str!("../../../../../experiments/toy/traces.toml");

#[derive(Deserialize)]
struct Plan {
    shown: usize,
}

/// How the particles of a method moved.
struct Moves {
    /// The share of particles that were outside of the crescent they began in at any step.
    left: f64,
    /// Changes from one crescent to another, per particle.
    changes: f64,
    /// The longest way of a particle in one step.
    longest: f64,
}

pub fn make(toy: &Toy, folder: &mut RunFolder) -> Result<Section> {
    let plan: Plan = parse("traces.toml", SETTINGS)?;
    let mut flows = Vec::new();
    for row in &toy.methods.method {
        flows.push(Flow::record(&row.label, toy.settings(row, toy.seed))?);
    }
    let labels: Vec<&str> = toy.methods.method.iter().map(|row| row.label.as_str()).collect();

    let mut paths = Csv::new("method,particle,step,x,y");
    for (label, flow) in labels.iter().zip(&flows) {
        for particle in chosen(flow, plan.shown) {
            for step in 0..=flow.steps() {
                let (x, y) = flow.place(step, particle);
                let counts = [particle.to_string(), step.to_string()];
                paths.row(&[label], &[&counts[..], &[number(x), number(y)]].concat());
            }
        }
    }
    draw(toy, &plan, &labels, &flows, folder)?;

    let mut csv = Csv::new("method,share_that_left,changes_of_crescent,longest_step");
    let mut table = String::from(
        "| method | left the middle crescent at any step | changes of crescent per particle | longest step |\n|---|---|---|---|\n",
    );
    for (label, flow) in labels.iter().zip(&flows) {
        let moves = Moves::of(flow, &toy.parts);
        csv.row(&[label], &[moves.left, moves.changes, moves.longest].map(number));
        let _ = writeln!(
            table,
            "| {label} | {:.0} % | {:.1} | {:.2} |",
            100.0 * moves.left,
            moves.changes,
            moves.longest
        );
    }
    folder.write("traces.toml", SETTINGS.as_bytes())?;
    folder.write("traces.csv", paths.bytes())?;
    folder.write("traces-moves.csv", csv.bytes())?;
    let markdown = format!(
        "\n## Paths (the paper's figure of trajectories)\n\n\
         ![paths of {shown} particles of every method](traces.png)\n\n\
         **Run.** The methods of [`methods.toml`](methods.toml) with seed {seed}; {shown} of the \
         {particles} particles, evenly spaced by number. [`traces.csv`](traces.csv) has the paths, \
         [`traces-moves.csv`](traces-moves.csv) the table below, which is over all particles.\n\n\
         **The paper.** “SGRHMC-Stein aggressively explores the space, while other methods cannot \
         escape the local component.”\n\n\
         **What we see.**\n\n{table}\n\
         **Where we differ.** A long step is a property of the step size as much as of the dynamics: \
         Euler steps above the stability limit overshoot from side to side and over the barriers, which \
         are zigzags in the figure and not paths of the continuous flow. Lines between places far \
         apart should be read as jumps.\n",
        shown = plan.shown,
        seed = toy.seed,
        particles = toy.methods.particles,
    );
    Ok(Section { markdown, terminal: String::new() })
}

fn draw(
    toy: &Toy,
    plan: &Plan,
    labels: &[&str],
    flows: &[Flow],
    folder: &mut RunFolder,
) -> Result<()> {
    let paths: Vec<Vec<Matrix<f64>>> = flows
        .iter()
        .map(|flow| chosen(flow, plan.shown).map(|i| flow.path(i, 0, flow.steps())).collect())
        .collect();
    let ends = |end: &dyn Fn(&Matrix<f64>) -> usize| -> Vec<Vec<Matrix<f64>>> {
        let of = |path: &Matrix<f64>| Matrix::from_fn(1, 2, |_, j| path.row(end(path))[j]);
        paths.iter().map(|paths| paths.iter().map(of).collect()).collect()
    };
    let (starts, finals) = (ends(&|_| 0), ends(&|path| path.rows() - 1));
    let panels: Vec<Panel<'_>> = labels
        .iter()
        .enumerate()
        .map(|(k, label)| {
            let mut layers = Vec::new();
            for (color, path) in paths[k].iter().enumerate() {
                layers.push(Layer::Path { points: path.as_ref(), color, width: 0.7 });
            }
            for (color, start) in starts[k].iter().enumerate() {
                layers.push(Layer::Rings { points: start.as_ref(), color });
            }
            for (color, end) in finals[k].iter().enumerate() {
                layers.push(Layer::Dots { points: end.as_ref(), color });
            }
            Panel { title: (*label).to_owned(), layers, corner: Vec::new() }
        })
        .collect();
    let caption = format!("{} particles of {} a method", plan.shown, toy.methods.particles);
    let legend = [
        Key { mark: Mark::Ring, color: 1, name: "start" },
        Key { mark: Mark::Line, color: 1, name: "path, paler the earlier" },
        Key { mark: Mark::Dot, color: 1, name: "end" },
    ];
    let figure = toy.backdrop.figure("Paths from start to end", &caption, 4, &panels, &legend);
    write_figure(folder, "traces", &figure.draw()?)
}

/// Numbers of the particles shown.
fn chosen(flow: &Flow, shown: usize) -> impl Iterator<Item = usize> {
    let (count, shown) = (flow.particles(), shown.min(flow.particles()));
    (0..shown).map(move |k| k * count / shown)
}

impl Moves {
    fn of(flow: &Flow, parts: &Parts) -> Self {
        let part = |step: usize, particle: usize| {
            let (x, y) = flow.place(step, particle);
            parts.classify(&[x, y])
        };
        let (mut left, mut changes, mut longest) = (0, 0, 0.0_f64);
        for particle in 0..flow.particles() {
            let home = part(0, particle);
            left += usize::from((0..=flow.steps()).any(|step| part(step, particle) != home));
            for step in 0..flow.steps() {
                changes += usize::from(part(step, particle) != part(step + 1, particle));
                let ((x, y), (a, b)) = (flow.place(step, particle), flow.place(step + 1, particle));
                longest = longest.max((a - x).hypot(b - y));
            }
        }
        let count = flow.particles() as f64;
        Self { left: left as f64 / count, changes: changes as f64 / count, longest }
    }
}
