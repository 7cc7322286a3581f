//! What to do with a NaN.

use crate::{Error, Result};

/// What happens when a score, a log density or a position is not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NonFinitePolicy {
    /// The run ends with an error that names the particle, the step and the step size.
    #[default]
    Stop,
    /// The particle goes back to where it was before the step and stays there.
    Freeze,
    /// All particles go back to where they were 100 to 200 steps ago (a particle that runs away has
    /// been lost for some time before its score says so), and from there steps are half as long.
    Shrink,
}

impl NonFinitePolicy {
    /// Reads a policy's name: `stop`, `freeze` or `shrink`.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "stop" => Ok(Self::Stop),
            "freeze" => Ok(Self::Freeze),
            "shrink" => Ok(Self::Shrink),
            other => {
                let known = ["stop", "freeze", "shrink"];
                Err(Error::unknown("policy for non-finite values", other, known))
            }
        }
    }
}
