//! Particles moved on by the default sampler, whose moves have an accept step: what is right stays as it is, and
//! what rests only because its own dynamics are slow goes on.

use std::ops::ControlFlow;

use super::counted::{Counted, unless_spent};
use super::judge::evenly;
use crate::ensemble::{Ensemble, Options, Stage};
use crate::run::{Standing, WarmMoments};
use crate::{MatRef, Matrix, Result};

/// Moments of draws that some of the particles make, with so many evaluations in all. None where there were too
/// few for a draw.
pub(super) fn moments_after_moves(
    target: &Counted<'_>,
    start: &Matrix<f64>,
    evaluations: u64,
) -> Result<Option<WarmMoments>> {
    let dim = start.cols();
    let start = evenly(start, Options::default_particles(dim));
    let options = Options {
        gradients: evaluations / start.rows() as u64,
        start: Some(start),
        is_warm: true,
        ..Options::default()
    };
    let mut ensemble = Ensemble::new(dim, options)?;
    let mut draws: Vec<f64> = Vec::new();
    // Modes that no particle visits have been searched for.
    while !matches!(ensemble.stage(), Stage::Search | Stage::Done) {
        let advanced = ensemble.advance(target, &mut |at| {
            if let Some(draw) = at.draw {
                draws.truncate(draw * at.theta.as_slice().len());
                draws.extend(at.theta.as_slice());
            }
            ControlFlow::Continue(())
        });
        if unless_spent(advanced)?.is_none() {
            break;
        }
    }
    let Some(all) = MatRef::new(&draws, draws.len() / dim, dim).filter(|all| all.rows() > 0) else {
        return Ok(None);
    };
    let (mean, sd) = super::moments(all);
    Ok(Some(WarmMoments {
        // Draws of one chain are held to be worth half as many.
        draws: (2.0 * ensemble.report().effective) as usize,
        mean,
        sd,
        standing: Standing::of(&ensemble),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::PerParticle;
    use crate::testing::random_states;

    /// x ~ N(0, 1), y ~ N(x², 1/100): particles that crowd in the middle of the ridge go out along it.
    #[test]
    fn moves_mend_what_rests_on_a_ridge() {
        let ridge = PerParticle::new(2, |theta: &[f64], score: &mut [f64]| {
            let off = theta[1] - theta[0] * theta[0];
            score.copy_from_slice(&[-theta[0] + 200.0 * theta[0] * off, -100.0 * off]);
            -0.5 * theta[0] * theta[0] - 50.0 * off * off
        });
        let z = random_states(100, 2, 3);
        let crowded = Matrix::from_fn(100, 2, |i, j| {
            let x = 0.5 * z.row(i)[0];
            if j == 0 { x } else { x * x + 0.1 * z.row(i)[1] }
        });
        let target = Counted::new(&ridge);
        let moved = moments_after_moves(&target, &crowded, 40_000).unwrap().unwrap();
        assert!(moved.standing == Standing::Settled && target.points() <= 44_000, "{moved:?}");
        for (j, (mean, sd)) in [(0.0, 1.0), (1.0, 2.01_f64.sqrt())].into_iter().enumerate() {
            assert!((moved.mean[j] - mean).abs() < 0.15 * sd, "{moved:?}");
            assert!((moved.sd[j] / sd - 1.0).abs() < 0.1, "{moved:?}");
        }
    }
}
