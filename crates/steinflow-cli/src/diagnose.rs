//! `steinflow diagnose`, and the verdict that every run ends with.

use steinflow::Matrix;
use steinflow::Real;
use steinflow::diagnostics::{Diagnosis, Judged};
use steinflow::dynamics::Structure;
use steinflow::method::FieldKind;
use steinflow::run::{Samples, TraceRow};
use steinflow_models::{Model, NETWORK};

use crate::config::Config;
use crate::error::Result;

/// Judges the particles of a run.
pub fn judge<T: Real>(
    config: &Config,
    model: &dyn Model<T>,
    (state, structure): (&Matrix<T>, &Structure),
    trace: &[TraceRow],
    draws: Option<&Samples<T>>,
) -> Result<Diagnosis> {
    let target: &dyn steinflow::LogDensity<T> = &model;
    let field = config.method()?.field;
    let judged = Judged {
        target,
        state,
        structure,
        is_interacting: field.has_kernel() || field == FieldKind::Lawgd,
        is_random: field.is_random(),
        trace,
        draws,
        search_modes: config.model != NETWORK,
    };
    Ok(judged.diagnose()?)
}
