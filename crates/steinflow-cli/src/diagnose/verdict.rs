//! The verdict on a run, for people and for programs.

use std::io::Write;

use serde::Serialize;
use steinflow::diagnostics::{Course, Diagnosis, Judged};
use steinflow::dynamics::Structure;
use steinflow::run::Samples;
use steinflow::{Matrix, Real};
use steinflow_models::{Model, NETWORK};

use crate::error::Result;
use crate::summary::{short, table};
use steinflow_config::Config;

/// The file that holds a verdict in a run folder.
pub const FILE: &str = "diagnosis.json";

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
) -> Result<Diagnosis> {
    let judged = Judged {
        target: &model,
        state,
        structure,
        is_interacting: config.is_interacting(),
        is_random: config.is_random(),
        course,
        draws: draws.filter(|draws| !draws.steps().is_empty()),
        search_modes: config.model != NETWORK
            && model.data_rows().saturating_mul(model.dim()) <= MOST_NUMBERS,
    };
    Ok(judged.diagnose()?)
}

/// A [`Diagnosis`] as `diagnosis.json` has it.
#[derive(Clone, Debug, Serialize)]
pub struct VerdictRecord {
    verdict: &'static str,
    #[serde(skip)]
    title: &'static str,
    headline: String,
    evidence: Vec<EvidenceRecord>,
    advice: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct EvidenceRecord {
    name: &'static str,
    value: f64,
    expected: String,
    passed: Option<bool>,
    meaning: &'static str,
}

impl From<Diagnosis> for VerdictRecord {
    fn from(diagnosis: Diagnosis) -> Self {
        let evidence = diagnosis.evidence.into_iter().map(|evidence| EvidenceRecord {
            name: evidence.name,
            value: evidence.value,
            expected: evidence.expected,
            passed: evidence.passed,
            meaning: evidence.meaning,
        });
        Self {
            verdict: diagnosis.verdict.name(),
            title: diagnosis.verdict.title(),
            headline: diagnosis.headline,
            evidence: evidence.collect(),
            advice: diagnosis.advice,
        }
    }
}

impl VerdictRecord {
    /// The bytes of `diagnosis.json`.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        steinflow_io::write_json(self, &mut bytes)?;
        Ok(bytes)
    }

    /// What a run ends with: the verdict, the tests that it failed, and what to try next.
    pub fn print_short(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "\n{}: {}", self.title, self.headline)?;
        for evidence in self.evidence.iter().filter(|evidence| evidence.passed == Some(false)) {
            let EvidenceRecord { name, value, expected, .. } = evidence;
            writeln!(out, "  {name}: {}, expected {expected}", short(*value))?;
        }
        for advice in &self.advice {
            writeln!(out, "  → {advice}")?;
        }
        Ok(())
    }

    /// All of it.
    pub fn print(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "{}: {}\n", self.title, self.headline)?;
        let rows = self.evidence.iter().map(|evidence| {
            let mark = match evidence.passed {
                Some(true) => "passed",
                Some(false) => "FAILED",
                None => "",
            };
            let (name, expected) = (evidence.name.to_owned(), evidence.expected.clone());
            vec![name, short(evidence.value), expected, mark.to_owned()]
        });
        writeln!(out, "{}", table(&["", "found", "expected", ""], rows.collect()))?;
        for advice in &self.advice {
            writeln!(out, "→ {advice}")?;
        }
        Ok(())
    }
}
