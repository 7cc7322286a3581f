//! A way between two points that goes around valleys: a straight one first, whose points then climb across it
//! and stay equally far apart, as a string that settles on a ridge does. (E, Ren and Vanden-Eijnden 2007,
//! doi:10.1063/1.2720838.)

use super::{View, distance};
use crate::{Matrix, Result};

/// Points of the way, both ends among them.
const POINTS: usize = 14;
/// How often they climb.
const CLIMBS: usize = 60;
/// The first step's length, in parts of the distance between two points.
const FIRST_STEP: f64 = 0.5;

/// Whether some way between two points stays above a level. Without one, the string has settled, or has had
/// its time.
pub(super) fn stays_above(view: &View<'_>, from: &[f64], to: &[f64], level: f64) -> Result<bool> {
    let mut way = Matrix::from_fn(POINTS, from.len(), |i, j| {
        from[j] + (to[j] - from[j]) * i as f64 / (POINTS - 1) as f64
    });
    let mut lengths = vec![FIRST_STEP * distance(from, to) / (POINTS - 1) as f64; POINTS];
    for _ in 0..CLIMBS {
        let (log_density, score) = view.at(&way)?;
        if log_density.iter().all(|&density| density > level) {
            return Ok(true);
        }
        let tried = across(&way, &score, &lengths);
        let (found, _) = view.at(&tried)?;
        for i in 1..POINTS - 1 {
            if found[i] > log_density[i] {
                way.row_mut(i).copy_from_slice(tried.row(i));
                lengths[i] *= 1.5;
            } else {
                lengths[i] *= 0.4;
            }
        }
        way = evenly(&way);
    }
    Ok(false)
}

/// Inner points moved up by so much, along what the score has across the way.
fn across(way: &Matrix<f64>, score: &Matrix<f64>, lengths: &[f64]) -> Matrix<f64> {
    let mut moved = way.clone();
    for i in 1..POINTS - 1 {
        let (last, next) = (way.row(i - 1), way.row(i + 1));
        let apart = distance(last, next).max(f64::MIN_POSITIVE);
        let along: Vec<f64> =
            next.iter().zip(last).map(|(next, last)| (next - last) / apart).collect();
        let part: f64 = along.iter().zip(score.row(i)).map(|(along, score)| along * score).sum();
        let up: Vec<f64> =
            score.row(i).iter().zip(&along).map(|(score, along)| score - part * along).collect();
        let norm = up.iter().map(|up| up * up).sum::<f64>().sqrt();
        if norm > 0.0 && norm.is_finite() {
            let step = lengths[i].min(norm) / norm;
            moved.row_mut(i).iter_mut().zip(&up).for_each(|(x, up)| *x += step * up);
        }
    }
    moved
}

/// The same way with points that are equally far apart.
fn evenly(way: &Matrix<f64>) -> Matrix<f64> {
    let mut at = [0.0; POINTS];
    for i in 1..POINTS {
        at[i] = at[i - 1] + distance(way.row(i), way.row(i - 1));
    }
    Matrix::from_fn(POINTS, way.cols(), |i, j| {
        let wanted = at[POINTS - 1] * i as f64 / (POINTS - 1) as f64;
        let next = at.partition_point(|&at| at < wanted).clamp(1, POINTS - 1);
        let part = (wanted - at[next - 1]) / (at[next] - at[next - 1]).max(f64::MIN_POSITIVE);
        way.row(next - 1)[j] + (way.row(next)[j] - way.row(next - 1)[j]) * part.clamp(0.0, 1.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::counted::Counted;
    use crate::target::PerParticle;
    use crate::testing::random_states;

    /// A ring of radius 2 and width 0.2, with or without gaps left and right, 8 nats deep.
    fn ring(gap: bool) -> PerParticle<impl Fn(&[f64], &mut [f64]) -> f64 + Sync> {
        PerParticle::new(2, move |theta: &[f64], score: &mut [f64]| {
            let radius = theta[0].hypot(theta[1]);
            let out = (radius - 2.0) / 0.2;
            let fall = if gap { 8.0 * (-0.5 * (theta[1] / 0.5).powi(2)).exp() } else { 0.0 };
            for (s, x) in score.iter_mut().zip(theta) {
                *s = -out / 0.2 * x / radius;
            }
            score[1] += fall * theta[1] / 0.25;
            -0.5 * out * out - fall
        })
    }

    #[test]
    fn a_way_bends_around_a_hole_and_does_not_cross_a_gap() -> Result<()> {
        let cloud = random_states(100, 2, 3);
        for gap in [false, true] {
            let target = ring(gap);
            let counted = Counted::new(&target);
            let score = Matrix::from_fn(100, 2, |i, j| -cloud.row(i)[j]);
            let view = View::new(&counted, &cloud, &score);
            // Top and bottom of the ring, in the view's coordinates and a little aside, where symmetry ends.
            let place = |x: f64, y: f64| {
                let mut white = vec![0.0; 2];
                view.linear.from_position(&[x, y], &mut white);
                let unit = |j: usize| (white[j] - view.middle[j]) / view.spread[j];
                vec![unit(0), unit(1)]
            };
            let (top, bottom) = (place(0.3, 1.977), place(0.3, -1.977));
            assert_eq!(stays_above(&view, &top, &bottom, -1.0)?, !gap, "gap: {gap}");
        }
        Ok(())
    }
}
