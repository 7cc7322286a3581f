//! `evolution`: one method at a few moments, and all of its flow as an animation.

use std::fmt::Write as _;

use serde::Deserialize;
use steinflow::{Error as LibraryError, MatRef, Matrix};
use steinflow_io::animation::{Animation, Frame};
use steinflow_io::plot::{Key, Layer, Mark, Panel};
use steinflow_models::{Describe as _, toy::TriCrescent};

use super::csv::{Csv, number};
use super::flow::Flow;
use super::judge::{Judge, Reference};
use super::moves::Moves;
use super::{Section, Toy, parse, samples, write_figure};
use crate::error::Result;
use crate::reproduce::study::Study;

const SETTINGS: &str = include_str!("../../../../../experiments/toy/evolution.toml");
/// Red points and blue lines, as in the paper.
const DOTS: usize = 0;
const TRAILS: usize = 5;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Plan {
    method: String,
    moments: Vec<usize>,
    trail: usize,
    frames: Vec<Stretch>,
    rate: u16,
    animated_trail: usize,
}

#[derive(Deserialize)]
struct Stretch {
    until: usize,
    every: usize,
}

impl Plan {
    /// The steps that the animation shows.
    fn animated_steps(&self, last: usize) -> Vec<usize> {
        let mut steps = vec![0];
        for stretch in &self.frames {
            let from = steps.last().copied().unwrap_or(0) + stretch.every;
            steps.extend((from..=stretch.until.min(last)).step_by(stretch.every));
        }
        steps
    }
}

pub fn make(toy: &Toy, study: &mut Study) -> Result<Section> {
    let mut plan: Plan = parse("evolution.toml", SETTINGS)?;
    if toy.quick {
        plan.frames.iter_mut().for_each(|stretch| stretch.every *= 10);
    }
    let row = toy.methods.method.iter().find(|row| row.label == plan.method).ok_or_else(|| {
        let known = toy.methods.method.iter().map(|row| row.label.as_str());
        LibraryError::unknown("method of the toy", &plan.method, known)
    })?;
    let flow = Flow::record(&row.label, toy.settings(row, toy.seed))?;
    plan.moments.retain(|&step| step <= flow.steps());
    let reference = Reference::new(&samples::plan()?, toy.quick);
    let judge = Judge::new(&toy.parts, &reference)?;

    draw(toy, &plan, &flow, &judge, study)?;
    animate(toy, &plan, &flow, study)?;

    let mut particles = Csv::new("step,particle,x,y,r_x,r_y");
    for &step in &plan.moments {
        for particle in 0..flow.particles() {
            let ((x, y), r) = (flow.place(step, particle), flow.momentum(step, particle));
            let (r_x, r_y) = r.unwrap_or((f64::NAN, f64::NAN));
            let counts = [step.to_string(), particle.to_string()];
            particles.row(&[], &[&counts[..], &[x, y, r_x, r_y].map(number)].concat());
        }
    }
    let mut course = Csv::new("step,time,lower,middle,upper,energy_distance,sd_x,sd_y");
    let mut widest = (0, 0.0);
    for step in plan.animated_steps(flow.steps()) {
        let places = flow.places(step);
        let verdict = judge.of(places.as_ref())?;
        let spread = [0, 1].map(|j| standard_deviation(places.as_ref(), j));
        if spread[1] > widest.1 {
            widest = (step, spread[1]);
        }
        let numbers = verdict.shares.iter().chain([&verdict.distance]).chain(&spread);
        let mut cells = vec![step.to_string(), number(flow.time(step))];
        cells.extend(numbers.map(|&value| number(value)));
        course.row(&[], &cells);
    }
    study.write("evolution.toml", SETTINGS.as_bytes())?;
    study.write("evolution.csv", particles.bytes())?;
    study.write("evolution-course.csv", course.bytes())?;
    let markdown = text(toy, &plan, &flow, &judge, widest)?;
    Ok(Section { markdown, terminal: String::new() })
}

fn draw(toy: &Toy, plan: &Plan, flow: &Flow, judge: &Judge<'_>, study: &mut Study) -> Result<()> {
    let places: Vec<Matrix<f64>> = plan.moments.iter().map(|&step| flow.places(step)).collect();
    let trails: Vec<Vec<Matrix<f64>>> = plan
        .moments
        .iter()
        .map(|&step| {
            let from = step.saturating_sub(plan.trail);
            (0..flow.particles()).map(|particle| flow.path(particle, from, step)).collect()
        })
        .collect();
    let mut panels = Vec::new();
    for (k, &step) in plan.moments.iter().enumerate() {
        let mut layers: Vec<Layer<'_>> = trails[k]
            .iter()
            .map(|trail| Layer::Path { points: trail.as_ref(), color: TRAILS, width: 0.8 })
            .collect();
        layers.push(Layer::Dots { points: places[k].as_ref(), color: DOTS });
        panels.push(Panel {
            title: label(flow, step),
            layers,
            corner: judge.of(places[k].as_ref())?.corner(),
        });
    }
    let title = format!("{}: the flow at {} moments", plan.method, plan.moments.len());
    let caption = format!(
        "{} particles; in the corner, shares of the lower / middle / upper crescent and the energy \
         distance to exact samples",
        flow.particles()
    );
    let trail = format!("the {} steps before", plan.trail);
    let figure = toy.backdrop.figure(&title, &caption, 2, &panels, &legend(&trail)).draw()?;
    write_figure(study, "evolution", &figure)
}

fn legend(trail: &str) -> [Key<'_>; 2] {
    [
        Key { mark: Mark::Dot, color: DOTS, name: "particles" },
        Key { mark: Mark::Line, color: TRAILS, name: trail },
    ]
}

fn label(flow: &Flow, step: usize) -> String {
    format!("step {step}, time {:.0}", flow.time(step))
}

fn animate(toy: &Toy, plan: &Plan, flow: &Flow, study: &mut Study) -> Result<()> {
    let frames: Vec<Frame> = plan
        .animated_steps(flow.steps())
        .into_iter()
        .map(|step| Frame { label: label(flow, step), points: flow.places(step) })
        .collect();
    let legend = legend("their way here");
    let animation = Animation {
        figure: toy.backdrop.figure(&plan.method, "on three crescents", 1, &[], &legend),
        frames: &frames,
        trail: plan.animated_trail,
        rate: plan.rate,
        colors: [DOTS, TRAILS],
    };
    study.write("evolution-animated.png", &animation.png()?)?;
    study.write("evolution.html", animation.html()?.as_bytes())?;
    Ok(())
}

/// `widest` is the step at which the particles are farthest apart in y, and how far.
fn text(
    toy: &Toy,
    plan: &Plan,
    flow: &Flow,
    judge: &Judge<'_>,
    widest: (usize, f64),
) -> Result<String> {
    let mut table = String::from(
        "| step | time | lower / middle / upper | energy distance | sd of y |\n|---|---|---|---|---|\n",
    );
    for &step in &plan.moments {
        let places = flow.places(step);
        let verdict = judge.of(places.as_ref())?;
        let spread = standard_deviation(places.as_ref(), 1);
        let _ = writeln!(
            table,
            "| {step} | {:.1} | {} % | {:.3} | {spread:.2} |",
            flow.time(step),
            verdict.percentages(),
            verdict.distance
        );
    }
    let exact = TriCrescent.exact_moments().map_or(f64::NAN, |m| m.covariance.row(1)[1].sqrt());
    let last = flow.steps();
    let settled = standard_deviation(flow.places(last).as_ref(), 1);
    let changes = match Moves::of(flow, &toy.parts).last_change {
        Some(step) => format!(
            "the last to change crescent does so at step {step} of {last}, and the shares are the same \
             from then on"
        ),
        None => "no particle ever changes crescent".to_owned(),
    };
    Ok(format!(
        "\n## Evolution of {method}\n\n\
         ![{method} at {count} moments](evolution.png)\n\n\
         ![the flow of {method}](evolution-animated.png)\n\n\
         **Run.** {method} of [`methods.toml`](methods.toml), seed {seed}. The animation with controls \
         is [`evolution.html`](evolution.html), one file that needs no network. \
         [`evolution.csv`](evolution.csv) has the particles of the figure, \
         [`evolution-course.csv`](evolution-course.csv) shares, distance and spread for every frame.\n\n\
         **The paper.** “The RHMC explores the space by an aggressive outward expansion followed by \
         convergence to the tri-Gaussian density π.”\n\n\
         **What we see.** The particles are farthest apart in y at step {step} (standard deviation \
         {spread:.2}); at the end it is {settled:.2}, and {exact:.2} for the target.\n\n{table}\n\
         **Where we differ.** The paper gives no times, so the moments are ours. The shares of the \
         crescents settle when particles stop crossing: {changes}.\n",
        method = plan.method,
        count = plan.moments.len(),
        seed = toy.seed,
        step = widest.0,
        spread = widest.1,
    ))
}

fn standard_deviation(points: MatRef<'_, f64>, coordinate: usize) -> f64 {
    let count = points.rows() as f64;
    let values = || (0..points.rows()).map(|i| points.row(i)[coordinate]);
    let mean = values().sum::<f64>() / count;
    (values().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}
