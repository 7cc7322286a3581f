//! The verdict on a run, for people and for programs.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use steinflow::diagnostics::{Course, Judged, StopRule, Verdict};
use steinflow::dynamics::Structure;
use steinflow::run::{Samples, WarmMoments};
use steinflow::{LogDensity, Matrix, Real};
use steinflow_io::record::{Diagnosis, Evidence};
use steinflow_models::{Model, NETWORK};

use crate::error::Result;
use crate::summary::{short, table};
use steinflow_config::Config;

/// A search for modes evaluates the target at about 4000 points; where that takes more numbers than
/// this, it would take longer than many runs.
const MOST_NUMBERS: usize = 500_000;

/// What a run has left behind.
pub struct Left<'a, T> {
    /// The last particles z = (θ, r, …), and the blocks of those.
    pub particles: (&'a Matrix<T>, &'a Structure),
    pub course: &'a Course,
    pub draws: Option<&'a Samples<T>>,
    pub stop_rule: Option<&'a StopRule>,
    pub warm_moments: Option<&'a WarmMoments>,
    pub gradients: u64,
}

/// Judges the particles of a run, by the model's own moments too where it knows them.
pub fn judge<T: Real>(
    config: &Config,
    model: &dyn Model<T>,
    left: &Left<'_, T>,
) -> Result<Diagnosis> {
    judge_through(config, model, &model, left)
}

/// As [`judge`], where `target` is the model's density, evaluated in another way.
pub fn judge_through<T: Real>(
    config: &Config,
    model: &dyn Model<T>,
    target: &(impl LogDensity<T> + ?Sized),
    left: &Left<'_, T>,
) -> Result<Diagnosis> {
    let exact = model.exact_moments().map(WarmMoments::from);
    judge_by(config, target, exact.as_ref(), left)
}

/// Judges them as those of a target whose moments are known to be `exact_moments`, if they are.
pub fn judge_by<T: Real>(
    config: &Config,
    target: &(impl LogDensity<T> + ?Sized),
    exact_moments: Option<&WarmMoments>,
    left: &Left<'_, T>,
) -> Result<Diagnosis> {
    let (state, structure) = left.particles;
    let judged = Judged {
        target: &target,
        state,
        structure,
        is_interacting: config.is_interacting(),
        is_random: config.is_random(),
        course: left.course,
        draws: left.draws.filter(|draws| !draws.steps().is_empty()),
        stop_rule: left.stop_rule,
        warm_moments: left.warm_moments,
        exact_moments,
        gradients: left.gradients,
        check_gradient: config.check_gradient && config.batch_size.is_none(),
        search_modes: config.model != NETWORK
            && target.data_rows().saturating_mul(target.dim()) <= MOST_NUMBERS,
    };
    Ok(judged.diagnose()?.into())
}

/// In a few words, in the colour of a traffic light; whoever prints it leaves the colour out where it cannot
/// be seen.
fn title(diagnosis: &Diagnosis) -> String {
    let verdict = diagnosis.verdict();
    let words = verdict.map_or(&*diagnosis.verdict, |verdict| verdict.title());
    let colour = match verdict {
        Some(Verdict::Trust) => AnsiColor::Green,
        Some(Verdict::MeansOnly) => AnsiColor::Yellow,
        _ => AnsiColor::Red,
    };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    format!("{style}{words}{style:#}")
}

/// What a run ends with: the verdict, the tests that it failed, and what to try next.
pub fn print_short(diagnosis: &Diagnosis, out: &mut impl Write) -> Result<()> {
    writeln!(out, "\n{}: {}", title(diagnosis), diagnosis.headline)?;
    for evidence in diagnosis.evidence.iter().filter(|evidence| evidence.passed == Some(false)) {
        let Evidence { name, value, expected, .. } = evidence;
        writeln!(out, "  {name}: {}, expected {expected}", short(*value))?;
    }
    for advice in &diagnosis.advice {
        writeln!(out, "  → {advice}")?;
    }
    Ok(())
}

/// All of it.
pub fn print(diagnosis: &Diagnosis, out: &mut impl Write) -> Result<()> {
    writeln!(out, "{}: {}\n", title(diagnosis), diagnosis.headline)?;
    let rows = diagnosis.evidence.iter().map(|evidence| {
        let mark = match evidence.passed {
            Some(true) => "passed",
            Some(false) => "FAILED",
            None => "",
        };
        let (name, expected) = (evidence.name.clone(), evidence.expected.clone());
        vec![name, short(evidence.value), expected, mark.to_owned()]
    });
    writeln!(out, "{}", table(&["", "found", "expected", ""], rows.collect()))?;
    for advice in &diagnosis.advice {
        writeln!(out, "→ {advice}")?;
    }
    Ok(())
}
