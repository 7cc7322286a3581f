//! Checks of what callers give, made before anything is computed.

use steinflow::{Error, MatRef, Real};

/// Accepts a standard deviation, length or weight whose square neither overflows nor vanishes, in `f32` too.
pub(crate) fn require_scale(name: &'static str, value: f64) -> steinflow::Result<()> {
    if (1e-15..=1e15).contains(&value) {
        return Ok(());
    }
    Err(Error::setting(name, value, "give a positive number from 1e-15 to 1e15"))
}

/// Rejects buffers that do not belong together before anything is written.
pub(crate) fn require_shapes<T: Real>(
    dim: usize,
    theta: MatRef<'_, T>,
    log_density: &[T],
    score_rows: usize,
    score_cols: usize,
) -> steinflow::Result<()> {
    let particles = theta.rows();
    let require = |what, found: (usize, usize), expected: (usize, usize)| {
        if found == expected {
            return Ok(());
        }
        Err(Error::Shape {
            what,
            found: format!("{} × {} entries", found.0, found.1),
            expected: format!("{} × {}", expected.0, expected.1),
        })
    };
    require("theta", (particles, theta.cols()), (particles, dim))?;
    require("log_density", (log_density.len(), 1), (particles, 1))?;
    require("score", (score_rows, score_cols), (particles, dim))
}
