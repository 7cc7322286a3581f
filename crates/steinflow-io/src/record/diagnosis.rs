//! `diagnosis.json`: whether to trust a run, and why.

use serde::{Deserialize, Serialize};
use steinflow::diagnostics::{self, Verdict};

use super::number;

/// `diagnosis.json`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The name of a [`Verdict`].
    pub verdict: String,
    /// What may be used, and why no more than that.
    pub headline: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What to try next, the most promising first.
    pub advice: Vec<String>,
    /// Points that the target was evaluated at for it.
    #[serde(default)]
    pub evaluations: u64,
}

/// One finding.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Evidence {
    /// What was looked at.
    pub name: String,
    /// What was found.
    #[serde(deserialize_with = "number")]
    pub value: f64,
    /// What exact draws would show.
    pub expected: String,
    /// Whether it is that; none where it decides nothing.
    pub passed: Option<bool>,
    /// What it means, in a sentence.
    pub meaning: String,
}

impl Diagnosis {
    /// The verdict; none where another version has written one that this one does not know.
    pub fn verdict(&self) -> Option<Verdict> {
        Verdict::ALL.into_iter().find(|verdict| verdict.name() == self.verdict)
    }
}

impl From<diagnostics::Diagnosis> for Diagnosis {
    fn from(diagnosis: diagnostics::Diagnosis) -> Self {
        let evidence = diagnosis.evidence.into_iter().map(|evidence| Evidence {
            name: evidence.name.to_owned(),
            value: evidence.value,
            expected: evidence.expected,
            passed: evidence.passed,
            meaning: evidence.meaning.to_owned(),
        });
        Self {
            verdict: diagnosis.verdict.name().to_owned(),
            headline: diagnosis.headline,
            evidence: evidence.collect(),
            advice: diagnosis.advice,
            evaluations: diagnosis.evaluations,
        }
    }
}
