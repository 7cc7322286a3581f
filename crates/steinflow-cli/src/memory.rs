//! How much memory a run will take, and whether it is there.

use steinflow::Real;
use steinflow::field::Lawgd;
use steinflow::method::FieldKind;
use steinflow::run::NonFinitePolicy;
use steinflow_models::memory::available;

use crate::error::{Error, Result};
use steinflow_config::Config;

/// State, scaled state, gradient, drift, divergence, displacement, right-hand sides, sums, centred
/// points, and what an integrator keeps: matrices of the size of the state.
const STATES: u64 = 12;

/// What a run that pauses between two steps keeps, in states: its own, θ, score, and what field and
/// integrator remember.
const PAUSED_STATES: u64 = 5;

/// Refuses a run that will not fit, beside so many that pause.
pub fn check<T: Real>(config: &Config, dim: usize, paused: usize) -> Result<()> {
    let state = state_size::<T>(config, dim);
    let paused = state.saturating_mul(PAUSED_STATES).saturating_mul(paused as u64);
    let needed = estimate::<T>(config, dim).saturating_add(paused);
    match available() {
        Some(free) if needed > free => Err(Error::TooLarge { needed, free }),
        _ => Ok(()),
    }
}

/// Bytes, about; what the model itself takes is not known here.
fn estimate<T: Real>(config: &Config, dim: usize) -> u64 {
    let state = state_size::<T>(config, dim);
    let (n, dim, size) = (config.particles as u64, dim as u64, size_of::<T>() as u64);
    // θ and score are among what is kept to go back to.
    let kept = match config.policy {
        NonFinitePolicy::Stop => 0,
        NonFinitePolicy::Freeze => 2,
        NonFinitePolicy::Shrink => 4,
    };
    // Another copy while a checkpoint is written.
    let mut bytes = state.saturating_mul(STATES + 2 + 2 * kept);
    if let Some((from, every)) = config.collect {
        let draws = config.steps().saturating_sub(from) / every + 1;
        // Collected, and once more as the table that is written.
        let collected = draws.saturating_mul(n.saturating_mul(dim)).saturating_mul(2 * size);
        bytes = bytes.saturating_add(collected);
    }
    let Some((method, parameters)) = config.flow() else { return bytes };
    // A batch of those who meet has less than two batches' worth of particles.
    let meeting = |others: usize| n.min((others as u64).saturating_mul(2).saturating_add(1));
    let met = parameters.interactions.map_or(n, meeting);
    let square = met.saturating_mul(met).saturating_mul(8);
    let field = match method.field {
        // A kernel matrix, its shifted copy and its factor.
        FieldKind::Product | FieldKind::SposExact => square.saturating_mul(3),
        FieldKind::Lawgd => {
            let cells = parameters.cells.unwrap_or(if dim > 1 { 64 } else { 1000 });
            Lawgd::bytes(cells, dim as usize).saturating_mul(2)
        }
        field => field.solve_memory(parameters, config.particles),
    };
    bytes.saturating_add(field)
}

/// Bytes of one matrix of the size of the state.
fn state_size<T: Real>(config: &Config, dim: usize) -> u64 {
    let blocks = config.dynamics::<T>().structure(dim).blocks();
    let numbers =
        (config.particles as u64).saturating_mul(dim as u64).saturating_mul(blocks as u64);
    numbers.saturating_mul(size_of::<T>() as u64)
}
