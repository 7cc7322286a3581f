//! What can go wrong, in the user's terms: every error names the value and the remedy.

/// Result of anything in this library that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the library.
///
/// [`Error::is_usage`] tells a wrong request (mend the call) from a failed run (change a setting).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting has a value it cannot have.
    #[error("{name} is {value}: {remedy}")]
    Setting {
        /// The setting's name.
        name: &'static str,
        /// What it was set to.
        value: String,
        /// What to do.
        remedy: String,
    },

    /// A name that is not in a catalogue.
    #[error("there is no {kind} `{name}`{}", suggestion(.nearest.as_deref(), .known))]
    Unknown {
        /// What kind of thing was asked for: method, model, …
        kind: &'static str,
        /// The name that was given.
        name: String,
        /// The nearest known name, if one is near.
        nearest: Option<String>,
        /// All known names.
        known: Vec<String>,
    },

    /// A matrix or slice of the wrong shape.
    #[error("{what} has {found}, expected {expected}")]
    Shape {
        /// What it is.
        what: &'static str,
        /// The shape it has.
        found: String,
        /// The shape it should have.
        expected: String,
    },

    /// A run that ended before there was anything to keep.
    #[error(
        "stopped during {during}, before the first step: go on from a checkpoint of it, or run it again"
    )]
    Interrupted {
        /// What was under way.
        during: &'static str,
    },

    /// A score, log density or velocity that is not a number.
    #[error(
        "{what} of particle {particle} is {value} at step {step} with step size {step_size}: try a \
         smaller step size, a start closer to the mode, or the policy `freeze` or `shrink` for \
         non-finite values"
    )]
    NonFinite {
        /// `score`, `log density` or `position`.
        what: &'static str,
        /// The value found.
        value: f64,
        /// The particle's index.
        particle: usize,
        /// The step, counted from 0.
        step: u64,
        /// The step size in use.
        step_size: f64,
    },

    /// A score that is not the gradient of the log density.
    #[error(
        "{0}: one of the two is wrong; mend it, or set check_gradient to false if it is meant to be so"
    )]
    WrongGradient(Box<crate::diagnostics::WrongGradient>),

    /// Particles that halving the step size could not bring back.
    #[error(
        "the particles had run away by step {step}: {halvings} halvings of the step size \
         {step_size} did not bring a finite score; start with a smaller one"
    )]
    RanAway {
        /// The step, counted from 0.
        step: u64,
        /// The step size that the schedule asked for.
        step_size: f64,
        /// How often it was halved.
        halvings: u32,
    },

    /// A diffusion matrix A with a negative direction.
    #[error(
        "A is not positive semidefinite in block `{block}` at particle {particle} (found {value}): \
         a diffusion matrix must have no negative eigenvalue; check the dynamics' coefficients"
    )]
    NotPositiveSemidefinite {
        /// The block of the state.
        block: String,
        /// The particle's index.
        particle: usize,
        /// The offending entry or pivot.
        value: f64,
    },

    /// A kernel matrix that cannot be inverted.
    #[error(
        "the kernel matrix of {particles} particles is singular (regulariser {regulariser}): \
         particles coincide or nearly so; set a regulariser such as 1e-3 (method `sge`), or use \
         `gfsd` or `blob`, which solve nothing"
    )]
    SingularKernel {
        /// N.
        particles: usize,
        /// η.
        regulariser: f64,
    },

    /// A solve that would take more memory than allowed.
    #[error(
        "{particles} particles need {bytes} bytes for the N×N solve, above the limit of {limit}: \
         raise the limit, take fewer particles, or use `gfsd` or `blob`, which need no solve"
    )]
    TooMuchMemory {
        /// N.
        particles: usize,
        /// What the solve takes.
        bytes: u64,
        /// What it may take.
        limit: u64,
    },

    /// Correlated noise whose covariance has a negative direction.
    #[error(
        "the noise covariance of the product-space sampler is not positive semidefinite: with a \
         state-dependent A that is possible; take a constant metric, a wider bandwidth, or another field"
    )]
    IndefiniteNoise,

    /// A saved state that belongs to another run.
    #[error(
        "the saved state does not fit {whose}: it is from a run with other settings, or damaged; go on \
         with the settings it was saved under, or start afresh"
    )]
    ForeignState {
        /// The part of the run that cannot take it up.
        whose: &'static str,
    },

    /// A target that is not the one that a run was saved with.
    #[error(
        "the target is not the one that this run was saved with: the {what} of particle {particle} was \
         {saved} and is {found} now; go on with the function and the data that it began with, or begin \
         anew beside it (another checkpoint, another folder)"
    )]
    OtherTarget {
        /// `log density` or `score`.
        what: &'static str,
        /// The particle's index.
        particle: usize,
        /// What the target said when the run was saved.
        saved: f64,
        /// What it says now.
        found: f64,
    },

    /// The user's own target or observer failed.
    #[error("{0}")]
    User(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The nearest name, or all of them where none is near.
fn suggestion(nearest: Option<&str>, known: &[String]) -> String {
    match nearest {
        Some(name) => format!(", did you mean `{name}`?"),
        None => format!("; known: {}", known.join(", ")),
    }
}

impl Error {
    /// A wrong request, as opposed to a run that failed while it was under way.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Setting { .. }
                | Self::Unknown { .. }
                | Self::Shape { .. }
                | Self::WrongGradient { .. }
                | Self::TooMuchMemory { .. }
                | Self::OtherTarget { .. }
        )
    }

    /// A setting that cannot have the value it was given.
    pub fn setting(
        name: &'static str,
        value: impl std::fmt::Display,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Setting { name, value: value.to_string(), remedy: remedy.into() }
    }

    /// A name that is not in the catalogue `known`; suggests the nearest one.
    pub fn unknown<'a>(
        kind: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<String> = known.into_iter().map(str::to_owned).collect();
        let nearest = known
            .iter()
            .map(|candidate| (edit_distance(name, candidate), candidate))
            // Near: at most half of it differs, and something is shared.
            .filter(|&(distance, candidate)| {
                distance <= candidate.len().max(3) / 2 && distance < candidate.len()
            })
            // Of two that are as near, the one that has the same letters.
            .min_by_key(|&(distance, candidate)| (distance, letters(candidate) != letters(name)))
            .map(|(_, candidate)| candidate.clone());
        Self::Unknown { kind, name: name.to_owned(), nearest, known }
    }
}

fn letters(name: &str) -> Vec<u8> {
    let mut letters = name.as_bytes().to_vec();
    letters.sort_unstable();
    letters
}

/// How many letters, by bytes, were left out, put in, taken for others, or have changed places with the next.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let (above, same) = (&rows[i - 1], a[i - 1] == b[j - 1]);
            let mut least =
                (above[j - 1] + usize::from(!same)).min(above[j] + 1).min(row[j - 1] + 1);
            let is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if is_swapped {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn unknown_names_suggest_the_nearest() {
        let error = Error::unknown("method", "sghmc-stien", ["ld", "svgd", "sghmc-stein"]);
        assert!(error.to_string().contains("did you mean `sghmc-stein`?"), "{error}");
        let error = Error::unknown("method", "sgvd", ["sgrld", "sgld", "svgd"]);
        assert!(error.to_string().contains("did you mean `svgd`?"), "{error}");
        let error = Error::unknown("method", "metropolis", ["ld", "svgd"]);
        assert!(error.to_string().ends_with("; known: ld, svgd"), "{error}");
        let error = Error::unknown("column", "z", ["a", "b"]);
        assert!(error.to_string().ends_with("; known: a, b"), "{error}");
    }
}
