//! What was tried: for people as a table and a picture, for programs as CSV and JSON, and the winner as
//! a config.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use serde_json::json;
use steinflow::Matrix;
use steinflow::tune::{Choice, Fate, Trial};
use steinflow_io::plot::{Figure, Key, Layer, Mark, Panel, Panels};

use super::{Judge, Tuned};
use crate::error::Result;
use crate::summary::{short, table};

/// More rows than this are for `tried.csv`.
const MOST_ROWS: usize = 12;
/// The colour of the winner.
const BEST_COLOR: usize = 5;

/// The winner's config, with a word on how it was found.
pub fn config(tuned: &Tuned) -> Result<String> {
    let text = tuned.config.to_toml()?;
    let best = tuned.search.last_trial(tuned.best);
    let score = best.and_then(|trial| trial.score).unwrap_or(f64::NAN);
    let rounds: Vec<String> = tuned.rungs.iter().map(|rung| rung.steps.to_string()).collect();
    Ok(format!(
        "# Found by `steinflow tune` {}: the best of {} candidates in rounds of {} steps, {} steps in all.\n\
         # {}; {} {} after {} steps. All that was tried is in tried.csv.\n\n{text}",
        env!("CARGO_PKG_VERSION"),
        tuned.choices.len(),
        rounds.join(", "),
        tuned.steps,
        tuned.winner(),
        tuned.judge.title(),
        short(score),
        best.map_or(0, |trial| trial.steps),
    ))
}

/// A row for every candidate in every round that it was in.
pub fn csv(tuned: &Tuned) -> String {
    let mut text = String::from("candidate,eta,alpha,mu,gamma,round,steps,score,fate\n");
    let cell = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for trial in &tuned.search.trials {
        let Choice { eta, alpha, mu, gamma } = tuned.choices[trial.candidate];
        let values = [eta, alpha, mu, gamma].map(cell).join(",");
        let (round, fate) = (trial.rung + 1, trial.fate.name());
        let score = cell(trial.score);
        let _ =
            writeln!(text, "{},{values},{round},{},{score},{fate}", trial.candidate, trial.steps);
    }
    text
}

/// Prints the winner and those that came closest to it.
pub fn print(tuned: &Tuned, folder: &Path, as_json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if as_json {
        steinflow_io::write_json(&summary(tuned), &mut out)?;
        writeln!(out)?;
        return Ok(());
    }
    let config = &tuned.config;
    writeln!(
        out,
        "{} on {}: {} candidates, {} pilot steps in all ({:.1} runs of {})\n",
        config.method,
        config.model,
        tuned.choices.len(),
        tuned.steps,
        tuned.steps as f64 / full_steps(tuned) as f64,
        full_steps(tuned),
    )?;
    let names: Vec<&str> = tuned.choices[0].values().map(|(name, _)| name).collect();
    let header: Vec<&str> =
        names.iter().copied().chain(["round", "steps", tuned.judge.title(), ""]).collect();
    let row = |trial: &Trial| {
        let values = tuned.choices[trial.candidate].values().map(|(_, value)| value.to_string());
        let score = trial.score.map_or("–".to_owned(), short);
        let rest = [(trial.rung + 1).to_string(), trial.steps.to_string(), score];
        values.chain(rest).chain([trial.fate.name().to_owned()]).collect()
    };
    let last = |&candidate: &usize| tuned.search.last_trial(candidate).map(row);
    let mut rows: Vec<Vec<String>> =
        tuned.search.ranking.iter().take(MOST_ROWS).filter_map(last).collect();
    if tuned.choices.len() > MOST_ROWS {
        rows.push(vec![format!("… {} more", tuned.choices.len() - MOST_ROWS)]);
    }
    writeln!(out, "{}", table(&header, rows))?;
    let diverged = tuned.search.trials.iter().filter(|trial| trial.fate == Fate::Diverged).count();
    if diverged > 0 {
        writeln!(out, "\n{diverged} of all diverged")?;
    }
    let folder = folder.display();
    writeln!(out, "\nbest: {}\n\n{folder}", tuned.winner())?;
    for (name, what) in [
        ("config.toml", format!("run it: steinflow sample --config {folder}/config.toml")),
        ("tried.csv", "all that was tried".to_owned()),
        ("tried.png", "picture".to_owned()),
    ] {
        writeln!(out, "  {name:<12} {what}")?;
    }
    Ok(())
}

fn summary(tuned: &Tuned) -> serde_json::Value {
    let values = |candidate: usize| -> serde_json::Map<String, serde_json::Value> {
        let values = tuned.choices[candidate].values();
        values.map(|(name, value)| (name.to_owned(), value.into())).collect()
    };
    let trial = |trial: &Trial| {
        json!({
            "candidate": values(trial.candidate),
            "round": trial.rung + 1,
            "steps": trial.steps,
            "score": trial.score,
            "fate": trial.fate.name(),
        })
    };
    json!({
        "steinflow_version": env!("CARGO_PKG_VERSION"),
        "model": tuned.config.model,
        "method": tuned.config.method,
        "judge": tuned.judge.title(),
        "best": values(tuned.best),
        "pilot_steps": tuned.steps,
        "tried": tuned.search.trials.iter().map(trial).collect::<Vec<_>>(),
    })
}

/// Steps of the run that was tuned for.
fn full_steps(tuned: &Tuned) -> u64 {
    tuned.config.phase.iter().map(|phase| phase.steps).sum()
}

/// Scores against η, a panel a round and a line for every α; of several μ or γ the best is shown. None
/// where η is not searched.
pub fn figure(tuned: &Tuned) -> Result<Option<Figure>> {
    // Likelihoods have both signs; discrepancies span orders of magnitude.
    let height = |score: f64| match tuned.judge {
        Judge::Discrepancy => score.max(f64::MIN_POSITIVE).log10(),
        Judge::Likelihood => score,
    };
    let mut alphas: Vec<Option<f64>> = Vec::new();
    for choice in &tuned.choices {
        if !alphas.contains(&choice.alpha) {
            alphas.push(choice.alpha);
        }
    }
    // (log η, score) of every candidate of a round that has one.
    let points = |rung: usize, alpha: Option<f64>| -> Matrix<f64> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for trial in tuned.search.trials.iter().filter(|trial| trial.rung == rung) {
            let choice = tuned.choices[trial.candidate];
            if let (Some(eta), Some(score)) = (choice.eta, trial.score)
                && choice.alpha == alpha
            {
                let (x, y) = (eta.log10(), height(score));
                match points.last_mut() {
                    Some(last) if last.0 == x => last.1 = last.1.min(y),
                    _ => points.push((x, y)),
                }
            }
        }
        Matrix::from_fn(points.len(), 2, |i, j| if j == 0 { points[i].0 } else { points[i].1 })
    };
    let lines: Vec<Vec<Matrix<f64>>> = (0..tuned.rungs.len())
        .map(|rung| alphas.iter().map(|&alpha| points(rung, alpha)).collect())
        .collect();
    let column = |j: usize| {
        let rows = lines.iter().flatten().flat_map(|line| (0..line.rows()).map(|i| line.row(i)));
        let mut values: Vec<f64> = rows.map(|row| row[j]).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (x, y) = (column(0), column(1));
    let (Some(&left), Some(&right), Some(&low)) = (x.first(), x.last(), y.first()) else {
        return Ok(None);
    };
    // Runs that are about to diverge are far above all others, and stand at the upper edge.
    let high = y[(0.9 * (y.len() - 1) as f64) as usize];
    let margin = 0.08 * (high - low).max(1e-3);
    let cut = |line: &Matrix<f64>| {
        Matrix::from_fn(line.rows(), 2, |i, j| {
            if j == 0 { line.row(i)[0] } else { line.row(i)[1].min(high + 0.5 * margin) }
        })
    };
    let lines: Vec<Vec<Matrix<f64>>> =
        lines.iter().map(|round| round.iter().map(cut).collect()).collect();
    let best = tuned.search.last_trial(tuned.best).and_then(|trial| {
        let point = [tuned.choices[tuned.best].eta?.log10(), height(trial.score?)];
        Some((trial.rung, Matrix::from_fn(1, 2, |_, j| point[j])))
    });
    let panels: Vec<Panel<'_>> = lines
        .iter()
        .zip(&tuned.rungs)
        .enumerate()
        .map(|(index, (lines, rung))| {
            let mut layers = Vec::new();
            for (color, line) in lines.iter().enumerate() {
                let points = line.as_ref();
                layers.push(Layer::Path { points, color, width: 1.0 });
                layers.push(Layer::Dots { points, color });
            }
            if let Some((_, point)) = best.as_ref().filter(|(rung, _)| *rung == index) {
                layers.push(Layer::Rings { points: point.as_ref(), color: BEST_COLOR });
            }
            let title = format!("after {} steps", rung.steps);
            Panel { title, layers, corner: Vec::new() }
        })
        .collect();
    let names: Vec<String> =
        alphas.iter().flatten().map(|alpha| format!("alpha {alpha}")).collect();
    let key = |(color, name)| Key { mark: Mark::Dot, color, name };
    let mut legend: Vec<Key<'_>> = names.iter().map(String::as_str).enumerate().map(key).collect();
    legend.push(Key { mark: Mark::Ring, color: BEST_COLOR, name: "best" });
    let score = match tuned.judge {
        Judge::Discrepancy => "log10 KSD",
        Judge::Likelihood => "-log-lik.",
    };
    let figure = Panels {
        title: &format!("Tuning {} on {}", tuned.config.method, tuned.config.model),
        caption: &format!("best: {}", tuned.winner()),
        names: ["log10 eta", score],
        x: (left - 0.3, right + 0.3),
        y: (low - margin, high + margin),
        density: None,
        columns: panels.len().min(2),
        panels: &panels,
        legend: &legend,
    };
    Ok(Some(figure.draw()?))
}
