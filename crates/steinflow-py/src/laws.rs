//! The laws of `steinflow::testing`, for what is written in Python.

use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use steinflow::target::PerParticle;
use steinflow::testing::{self, check_diffusion, check_divergence, check_structure};

use crate::arrays::Rows;
use crate::dynamics::OwnDynamics;
use crate::errors::{LawBroken, to_python};
use crate::threads::compute;

/// Checks A, C and their divergences at some states z = (θ, r, …), with a standard normal for the target.
#[pyfunction]
pub fn check_dynamics(
    py: Python<'_>,
    dynamics: &Bound<'_, PyAny>,
    states: PyReadonlyArray2<'_, f64>,
    dim: usize,
) -> PyResult<()> {
    let own = OwnDynamics::read(dynamics)?;
    let (raised, states) = (own.raised(), Rows::of(&states));
    let normal = PerParticle::new(dim, |theta: &[f64], score: &mut [f64]| {
        score.iter_mut().zip(theta).for_each(|(score, x)| *score = -x);
        -0.5 * theta.iter().map(|x| x * x).sum::<f64>()
    });
    let states = states.as_ref();
    let found = compute(py, || {
        check_structure(&normal, &own, states)?;
        check_diffusion(&normal, &own, states)?;
        check_divergence(&normal, &own, states)
    });
    let kept = raised.lock().ok().and_then(|mut raised| raised.take());
    match (kept, found) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok(()),
        (None, Err(testing::LawBroken::Failed(error))) => Err(to_python(error)),
        (None, Err(broken)) => Err(LawBroken::new_err(broken.to_string())),
    }
}
