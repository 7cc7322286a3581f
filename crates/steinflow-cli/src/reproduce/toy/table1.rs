//! `table1`: one chain of a diffusion beside the particles of its deterministic twin.

use std::fmt::Write as _;

use serde::Deserialize;
use steinflow::Matrix;
use steinflow_io::plot::{Key, Layer, Mark, Panel};

use super::csv::{Csv, number};
use super::flow::Flow;
use super::{Section, Toy, parse, write_figure};
use crate::error::Result;
use crate::reproduce::study::Study;
use steinflow_config::Settings;

const SETTINGS: &str = include_str!("../../../../../experiments/toy/table1.toml");
/// Of paths and of momenta: far apart for every kind of colour vision.
const PATHS: usize = 0;
const MOMENTA: usize = 1;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Plan {
    arrow_length: f64,
    panel: Vec<PanelPlan>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct PanelPlan {
    title: String,
    shown: usize,
    arrow_every: Option<usize>,
    #[serde(flatten)]
    settings: Settings,
}

/// What a panel is drawn from.
struct Drawn {
    paths: Vec<Matrix<f64>>,
    starts: Matrix<f64>,
    ends: Matrix<f64>,
    /// Where momenta are shown, and the arrows.
    arrows: Option<(Matrix<f64>, Matrix<f64>)>,
}

pub fn make(toy: &Toy, study: &mut Study) -> Result<Section> {
    let plan: Plan = parse("table1.toml", SETTINGS)?;
    let mut flows = Vec::new();
    for panel in &plan.panel {
        let settings = Settings { seed: Some(toy.seed), ..panel.settings.clone() };
        flows.push(Flow::record(&panel.title, settings)?);
    }
    let drawn: Vec<Drawn> = plan
        .panel
        .iter()
        .zip(&flows)
        .map(|(panel, flow)| Drawn::new(panel, flow, plan.arrow_length))
        .collect();
    draw(toy, &plan, &drawn, study)?;

    let mut csv = Csv::new("method,particle,step,x,y,r_x,r_y");
    for (panel, flow) in plan.panel.iter().zip(&flows) {
        for particle in 0..panel.shown.min(flow.particles()) {
            for step in 0..=flow.steps() {
                let (x, y) = flow.place(step, particle);
                let mut cells = vec![particle.to_string(), step.to_string(), number(x), number(y)];
                cells.extend(match flow.momentum(step, particle) {
                    Some((r_x, r_y)) => [number(r_x), number(r_y)],
                    None => [String::new(), String::new()],
                });
                csv.row(&[panel.settings.method.as_deref().unwrap_or_default()], &cells);
            }
        }
    }
    study.write("table1.toml", SETTINGS.as_bytes())?;
    study.write("table1.csv", csv.bytes())?;
    Ok(Section { markdown: text(toy, &plan, &flows), terminal: String::new() })
}

impl Drawn {
    fn new(plan: &PanelPlan, flow: &Flow, arrow_length: f64) -> Self {
        let (shown, last) = (plan.shown.min(flow.particles()), flow.steps());
        let at = |step: usize| {
            let place = move |i| flow.place(step, i);
            Matrix::from_fn(shown, 2, |i, j| if j == 0 { place(i).0 } else { place(i).1 })
        };
        let mut arrows = Vec::new();
        if let Some(every) = plan.arrow_every {
            for step in (0..=last).step_by(every.max(1)) {
                for particle in 0..shown {
                    if let Some((r_x, r_y)) = flow.momentum(step, particle) {
                        let by = (arrow_length * r_x, arrow_length * r_y);
                        arrows.push((flow.place(step, particle), by));
                    }
                }
            }
        }
        let matrix = |of: &dyn Fn(usize) -> (f64, f64)| {
            Matrix::from_fn(arrows.len(), 2, |i, j| if j == 0 { of(i).0 } else { of(i).1 })
        };
        Self {
            paths: (0..shown).map(|particle| flow.path(particle, 0, last)).collect(),
            starts: at(0),
            ends: at(last),
            arrows: plan.arrow_every.map(|_| (matrix(&|i| arrows[i].0), matrix(&|i| arrows[i].1))),
        }
    }
}

fn draw(toy: &Toy, plan: &Plan, drawn: &[Drawn], study: &mut Study) -> Result<()> {
    let panels: Vec<Panel<'_>> = plan
        .panel
        .iter()
        .zip(drawn)
        .map(|(panel, drawn)| {
            let mut layers: Vec<Layer<'_>> = drawn
                .paths
                .iter()
                .map(|path| Layer::Path { points: path.as_ref(), color: PATHS, width: 1.0 })
                .collect();
            layers.push(Layer::Rings { points: drawn.starts.as_ref(), color: PATHS });
            layers.push(Layer::Dots { points: drawn.ends.as_ref(), color: PATHS });
            if let Some((at, by)) = &drawn.arrows {
                let (at, by) = (at.as_ref(), by.as_ref());
                layers.push(Layer::Arrows { at, by, color: MOMENTA });
            }
            Panel { title: panel.title.clone(), layers, corner: Vec::new() }
        })
        .collect();
    let legend = [
        Key { mark: Mark::Ring, color: PATHS, name: "start" },
        Key { mark: Mark::Line, color: PATHS, name: "path, paler the earlier" },
        Key { mark: Mark::Dot, color: PATHS, name: "end" },
        Key { mark: Mark::Arrow, color: MOMENTA, name: "momentum" },
    ];
    let title = "Dynamics with noise, and their deterministic twins";
    let caption = "without momentum above, with momentum below";
    let figure = toy.backdrop.figure(title, caption, 2, &panels, &legend);
    write_figure(study, "table1", &figure.draw()?)
}

fn text(toy: &Toy, plan: &Plan, flows: &[Flow]) -> String {
    let mut table = String::from(
        "| panel | steps | time | particles | mean squared momentum: start → end |\n|---|---|---|---|---|\n",
    );
    for (panel, flow) in plan.panel.iter().zip(flows) {
        let momenta = match (mean_square(flow, 0), mean_square(flow, flow.steps())) {
            (Some(start), Some(end)) => format!("{start:.2} → {end:.2}"),
            _ => "none".to_owned(),
        };
        let _ = writeln!(
            table,
            "| {} | {} | {:.1} | {} | {momenta} |",
            panel.title,
            flow.steps(),
            flow.time(flow.steps()),
            flow.particles()
        );
    }
    format!(
        "\n## Noise against interaction (the figure of the paper's Table 1)\n\n\
         ![one chain of SGLD and SGHMC beside particles of SVGD and SGHMC-Stein](table1.png)\n\n\
         **Run.** [`table1.toml`](table1.toml), seed {}; [`table1.csv`](table1.csv) has every step of \
         every path in the figure.\n\n\
         **The paper.** MCMC dynamics are stochastic simulations of a single chain; the deterministic \
         particles approximate the time evolution of the same densities. Without momentum they descend \
         a gradient, with momentum they flow along a Hamiltonian too, which the arrows show.\n\n\
         **What we see.** Noise makes the path of (a) rough and bends that of (c), and one chain covers \
         the crescent over time; particles of (b) and (d) move on smooth curves and cover it together. The squared momentum per coordinate \
         has mean 1 under the target; what deterministic particles keep of it is in the last \
         column.\n\n{table}\n\
         **Where we differ.** The paper's figure is there to explain, and no settings go with it; ours are \
         runs of the samplers on the toy target, with steps small enough to be the flow's.\n",
        toy.seed
    )
}

/// Mean of r² over particles and coordinates.
fn mean_square(flow: &Flow, step: usize) -> Option<f64> {
    let squares: Option<Vec<f64>> = (0..flow.particles())
        .map(|particle| flow.momentum(step, particle).map(|(x, y)| 0.5 * (x * x + y * y)))
        .collect();
    squares.map(|squares| squares.iter().sum::<f64>() / squares.len() as f64)
}
