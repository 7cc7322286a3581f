//! `traces`: paths of a few particles of every method, and how far all of them get.

use std::fmt::Write as _;

use serde::Deserialize;
use steinflow::Matrix;
use steinflow_io::plot::{Key, Layer, Mark, Panel};

use super::csv::{Csv, number};
use super::flow::Flow;
use super::moves::Moves;
use super::{Section, Toy, parse, write_figure};
use crate::error::Result;
use crate::reproduce::study::Study;

const SETTINGS: &str = include_str!("../../../../../experiments/toy/traces.toml");

#[derive(Deserialize)]
struct Plan {
    shown: usize,
}

pub fn make(toy: &Toy, study: &mut Study) -> Result<Section> {
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
    draw(toy, &plan, &labels, &flows, study)?;

    let mut csv = Csv::new("method,share_that_left,changes_of_crescent,last_change,longest_step");
    let mut table = String::from(
        "| method | left the middle crescent at any step | changes of crescent per particle | last \
         change at step | longest step |\n|---|---|---|---|---|\n",
    );
    for (label, flow) in labels.iter().zip(&flows) {
        let moves = Moves::of(flow, &toy.parts);
        let last = moves.last_change.map_or_else(String::new, |step| step.to_string());
        let (left, changes) = (number(moves.left), number(moves.changes));
        csv.row(&[label], &[left, changes, last.clone(), number(moves.longest)]);
        let _ = writeln!(
            table,
            "| {label} | {:.0} % | {:.1} | {} | {:.2} |",
            100.0 * moves.left,
            moves.changes,
            if last.is_empty() { "–" } else { &last },
            moves.longest
        );
    }
    study.write("traces.toml", SETTINGS.as_bytes())?;
    study.write("traces.csv", paths.bytes())?;
    study.write("traces-moves.csv", csv.bytes())?;
    let markdown = format!(
        "\n## Paths (the paper's figure of trajectories)\n\n\
         ![paths of {shown} particles of every method](traces.png)\n\n\
         **Run.** The methods of [`methods.toml`](methods.toml) with seed {seed}; {shown} of the \
         {particles} particles, evenly spaced by number. [`traces.csv`](traces.csv) has the paths, \
         [`traces-moves.csv`](traces-moves.csv) the table below, which is over all particles.\n\n\
         **The paper.** “SGRHMC-Stein aggressively explores the space, while other methods cannot \
         escape the local component.”\n\n\
         **What we see.**\n\n{table}\n\
         **Where we differ.** We show methods beyond the paper too, and count crossings: the last change of \
         crescent says for how long particles went on crossing.\n",
        shown = plan.shown,
        seed = toy.seed,
        particles = toy.methods.particles,
    );
    Ok(Section { markdown, terminal: String::new() })
}

fn draw(toy: &Toy, plan: &Plan, labels: &[&str], flows: &[Flow], study: &mut Study) -> Result<()> {
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
    write_figure(study, "traces", &figure.draw()?)
}

/// Numbers of the particles shown.
fn chosen(flow: &Flow, shown: usize) -> impl Iterator<Item = usize> {
    let (count, shown) = (flow.particles(), shown.min(flow.particles()));
    (0..shown).map(move |k| k * count / shown)
}
