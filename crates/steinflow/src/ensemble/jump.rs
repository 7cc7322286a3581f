//! Jumps between regions: the affine map that carries one onto another, with an accept step.
//!
//! From z, a is drawn by its responsibility r_a(z) and b ≠ a uniformly; z′ = μ_b + L_b L_a⁻¹(z − μ_a), and
//! log α = log π(z′) − log π(z) + log |L_b| − log |L_a| + log r_b(z′) − log r_a(z).

use super::cloud::Cloud;
use super::dice::{Event, index, uniform};
use super::flight::Flight;
use super::regions::Regions;
use crate::coordinates::Coordinates;
use crate::{LogDensity, Result};

impl Regions {
    /// One row carried from region `a` onto region `b`.
    fn carried(&self, z: &[f64], a: usize, b: usize) -> Vec<f64> {
        let (mut white, mut out) = (vec![0.0; z.len()], vec![0.0; z.len()]);
        self.all[a].shape.from_position(z, &mut white);
        self.all[b].shape.to_position(&white, &mut out);
        out
    }

    /// log |L_b| − log |L_a|.
    fn log_volume_change(&self, a: usize, b: usize) -> f64 {
        self.all[b].shape.log_determinant() - self.all[a].shape.log_determinant()
    }
}

/// Lets every particle try one jump; returns how many jumped.
pub(super) fn jump(
    cloud: &mut Cloud,
    flight: &mut Flight,
    regions: &Regions,
    target: &dyn LogDensity<f64>,
    coordinates: &Coordinates,
    event: Event,
) -> Result<usize> {
    let (count, dim, several) = (cloud.count(), cloud.z.cols(), regions.all.len());
    let claims = regions.log_responsibilities(cloud.z.as_slice(), dim);
    let mut choices = Vec::with_capacity(count);
    let mut carried = Vec::with_capacity(count * dim);
    for i in 0..count {
        let mut generator = event.of(i);
        let mut left = uniform(&mut generator);
        let mut a = 0;
        while a + 1 < several && left >= claims.row(i)[a].exp() {
            left -= claims.row(i)[a].exp();
            a += 1;
        }
        let b = (a + 1 + index(&mut generator, several - 1)) % several;
        carried.extend(regions.carried(cloud.z.row(i), a, b));
        choices.push((a, b, uniform(&mut generator).ln()));
    }
    let there = regions.log_responsibilities(&carried, dim);
    coordinates.linear.from_position(&carried, flight.proposal.white.as_mut_slice());
    flight.proposal.evaluate(target, coordinates)?;
    let mut jumped = 0;
    for (i, &(a, b, log_uniform)) in choices.iter().enumerate() {
        let gain = flight.proposal.white_log_density[i] - cloud.white_log_density[i];
        let back = there.row(i)[b] - claims.row(i)[a];
        if log_uniform < gain + regions.log_volume_change(a, b) + back {
            cloud.take(i, &flight.proposal, i);
            jumped += 1;
        }
    }
    Ok(jumped)
}

#[cfg(test)]
mod tests {
    use super::super::regions::{Regions, merge, split};
    use crate::Matrix;
    use crate::testing::random_states;

    /// Rows of two Gaussians, 8 apart, one of them twice as wide, and their scores.
    fn two(particles: usize, draws: usize) -> (Matrix<f64>, Matrix<f64>) {
        let noise = random_states(particles * draws, 2, 5);
        let wide = |row: usize| row % particles < particles / 3;
        let sd = |row: usize| if wide(row) { 2.0 } else { 1.0 };
        let z = Matrix::from_fn(noise.rows(), 2, |i, j| {
            sd(i) * noise.row(i)[j] + if wide(i) { 8.0 } else { 0.0 }
        });
        let scores = Matrix::from_fn(noise.rows(), 2, |i, j| -noise.row(i)[j] / sd(i));
        (z, scores)
    }

    #[test]
    fn separate_modes_are_found_and_one_mode_is_left_whole() {
        let (z, _) = two(30, 20);
        let labels = split(z.as_ref(), 30, &[0; 600]);
        for row in 0..600 {
            let same = labels[row] == labels[0];
            assert_eq!(same, row % 30 < 10, "row {row}");
        }
        assert_eq!(merge(z.as_ref(), labels.clone()), labels);
        let noise = random_states(600, 2, 6);
        assert_eq!(split(noise.as_ref(), 30, &[0; 600]), [0; 600]);
        // A cut through the middle of one mode is undone.
        let halves: Vec<usize> = (0..600).map(|i| usize::from(noise.row(i)[0] > 0.0)).collect();
        assert_eq!(merge(noise.as_ref(), halves), [1; 600]);
    }

    #[test]
    fn jumps_are_in_detailed_balance() {
        let (z, scores) = two(30, 20);
        let regions = Regions::fit(&z, &scores, &split(z.as_ref(), 30, &[0; 600]));
        assert_eq!(regions.all.len(), 2);
        // All of log α but log π: what there adds to it must come back on the way home.
        let rest = |from: &[f64], to: &[f64], a: usize, b: usize| {
            regions.log_volume_change(a, b) + regions.log_responsibilities(to, 2).row(0)[b]
                - regions.log_responsibilities(from, 2).row(0)[a]
        };
        for i in 0..50 {
            let (here, a, b) = (z.row(i), i % 2, 1 - i % 2);
            let there = regions.carried(here, a, b);
            let home = regions.carried(&there, b, a);
            for (x, y) in here.iter().zip(&home) {
                assert!((x - y).abs() < 1e-9);
            }
            let sum = rest(here, &there, a, b) + rest(&there, here, b, a);
            assert!(sum.abs() < 1e-9, "{sum}");
            // The volume change is that of the map.
            let step = 1e-4;
            let column = |j: usize| {
                let mut moved = here.to_vec();
                moved[j] += step;
                let moved = regions.carried(&moved, a, b);
                [(moved[0] - there[0]) / step, (moved[1] - there[1]) / step]
            };
            let (p, q) = (column(0), column(1));
            let volume = (p[0] * q[1] - p[1] * q[0]).abs().ln();
            assert!((volume - regions.log_volume_change(a, b)).abs() < 1e-6);
        }
    }
}
