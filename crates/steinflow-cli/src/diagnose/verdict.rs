//! The verdict on a run, for people and for programs.

use std::io::Write;

use steinflow::diagnostics::{Course, Judged, StopRule};
use steinflow::dynamics::Structure;
use steinflow::run::{Samples, WarmMoments};
use steinflow::{Matrix, Real};
use steinflow_io::record::{Diagnosis, Evidence};
use steinflow_models::{Model, NETWORK};

use crate::error::Result;
use crate::summary::{short, table};
use steinflow_config::Config;

/// A search for modes evaluates the target at about 4000 points; where that takes more numbers than
/// this, it would take longer than many runs.
const MOST_NUMBERS: usize = 500_000;

/// Judges the particles of a run.
pub fn judge<T: Real>(
    config: &Config,
    model: &dyn Model<T>,
    (state, structure): (&Matrix<T>, &Structure),
    course: &Course,
    draws: Option<&Samples<T>>,
    stop_rule: Option<&StopRule>,
    warm_moments: Option<&WarmMoments>,
) -> Result<Diagnosis> {
    let judged = Judged {
        target: &model,
        state,
        structure,
        is_interacting: config.is_interacting(),
        is_random: config.is_random(),
        course,
        draws: draws.filter(|draws| !draws.steps().is_empty()),
        stop_rule,
        warm_moments,
        search_modes: config.model != NETWORK
            && model.data_rows().saturating_mul(model.dim()) <= MOST_NUMBERS,
    };
    Ok(judged.diagnose()?.into())
}

/// In a few words.
fn title(diagnosis: &Diagnosis) -> &str {
    diagnosis.verdict().map_or(&diagnosis.verdict, |verdict| verdict.title())
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
