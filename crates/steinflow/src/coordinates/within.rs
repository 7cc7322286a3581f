//! A target as a density of u.

use super::Coordinates;
use crate::{Error, LogDensity, MatMut, MatRef, Matrix, Minibatch, Real, Result};

/// The density of u when θ = [`Coordinates::to_theta`]`(u)` has the target's: the log Jacobian of the warp
/// is added, the score pulled back. The constant log |det L| is left out.
///
/// Maps are computed in `f64` whatever the precision, and θ is rounded once.
#[derive(Clone, Debug)]
pub struct InCoordinates<D> {
    target: D,
    coordinates: Coordinates,
}

impl<D> InCoordinates<D> {
    /// The target in coordinates of its dimension.
    pub fn new<T: Real>(target: D, coordinates: Coordinates) -> Result<Self>
    where
        D: LogDensity<T>,
    {
        if target.dim() == coordinates.dim() {
            return Ok(Self { target, coordinates });
        }
        Err(Error::Shape {
            what: "the coordinates",
            found: format!("{} dimensions", coordinates.dim()),
            expected: format!("{}, as the target", target.dim()),
        })
    }

    /// The coordinates.
    pub fn coordinates(&self) -> &Coordinates {
        &self.coordinates
    }

    /// The target as a density of θ.
    pub fn target(&self) -> &D {
        &self.target
    }
}

impl<T: Real, D: LogDensity<T>> LogDensity<T> for InCoordinates<D> {
    fn dim(&self) -> usize {
        self.target.dim()
    }

    fn data_rows(&self) -> usize {
        self.target.data_rows()
    }

    fn evaluate(
        &self,
        white: MatRef<'_, T>,
        rows: Option<&Minibatch>,
        log_density: &mut [T],
        mut score: MatMut<'_, T>,
    ) -> Result<()> {
        let (count, dim) = (white.rows(), white.cols());
        let Coordinates { warp, linear } = &self.coordinates;
        let widen = |from: &[T]| from.iter().map(|x| x.as_f64()).collect::<Vec<f64>>();
        let mut z = vec![0.0; count * dim];
        linear.to_position(&widen(white.as_slice()), &mut z);
        let mut theta = z.clone();
        warp.forward(&mut theta, dim);
        let theta = Matrix::from_fn(count, dim, |i, j| T::of(theta[i * dim + j]));
        let mut theta_score = Matrix::zeros(count, dim);
        self.target.evaluate(theta.as_ref(), rows, log_density, theta_score.as_mut())?;
        let (mut values, mut pulled) = (widen(log_density), widen(theta_score.as_slice()));
        warp.pull(&z, &mut values, &mut pulled, dim);
        linear.down(&pulled, &mut z);
        log_density.iter_mut().zip(values).for_each(|(out, value)| *out = T::of(value));
        score.as_mut_slice().iter_mut().zip(z).for_each(|(out, value)| *out = T::of(value));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Coordinates, InCoordinates, Linear, Warp, straightened};
    use crate::target::PerParticle;
    use crate::testing::{check_score, random_states};
    use crate::{LogDensity, Matrix};

    /// v ~ N(0, 9), x ~ N(0, eᵛ) in two coordinates, y ~ N(v²/2, 1).
    fn funnel_and_banana(theta: &[f64], score: &mut [f64]) -> f64 {
        let (v, x, y) = (theta[0], &theta[1..3], theta[3]);
        let (narrow, off) = ((-v).exp(), y - v * v / 2.0);
        let squares = x[0] * x[0] + x[1] * x[1];
        score[0] = -v / 9.0 + 0.5 * squares * narrow - 1.0 + off * v;
        (score[1], score[2], score[3]) = (-x[0] * narrow, -x[1] * narrow, -off);
        -0.5 * (v * v / 9.0 + squares * narrow + off * off) - v
    }

    /// Exact draws, and scores there.
    fn draws(count: usize, seed: u64) -> (Matrix<f64>, Matrix<f64>) {
        let noise = random_states(count, 4, seed);
        let theta = Matrix::from_fn(count, 4, |i, j| {
            let (e, v) = (noise.row(i), 3.0 * noise.row(i)[0]);
            [v, (v / 2.0).exp() * e[1], (v / 2.0).exp() * e[2], v * v / 2.0 + e[3]][j]
        });
        let mut scores = Matrix::zeros(count, 4);
        let target = PerParticle::new(4, funnel_and_banana);
        target.evaluate(theta.as_ref(), None, &mut vec![0.0; count], scores.as_mut()).unwrap();
        (theta, scores)
    }

    /// The same along directions that are no coordinates: its own inverse.
    fn reflect(row: &mut [f64]) {
        let normal = [1.0, 2.0, -1.0, 0.5];
        let along: f64 = row.iter().zip(&normal).map(|(x, n)| x * n).sum();
        row.iter_mut().zip(&normal).for_each(|(x, n)| *x -= 2.0 * along / 6.25 * n);
    }

    fn reflected_funnel_and_banana(theta: &[f64], score: &mut [f64]) -> f64 {
        let mut straight = theta.to_vec();
        reflect(&mut straight);
        let log_density = funnel_and_banana(&straight, score);
        reflect(score);
        log_density
    }

    fn reflected_draws(count: usize, seed: u64) -> (Matrix<f64>, Matrix<f64>) {
        let (mut theta, mut scores) = draws(count, seed);
        (0..count).for_each(|i| reflect(theta.row_mut(i)));
        (0..count).for_each(|i| reflect(scores.row_mut(i)));
        (theta, scores)
    }

    #[test]
    fn bends_along_other_directions_are_found_and_straighten() {
        type Shape<'a> = &'a dyn Fn(&[f64], &mut [f64], &mut [f64]);
        let noise = random_states(1000, 4, 9);
        // v ~ N(0, 9/4), the others N(0, eᵛ).
        let funnel = |e: &[f64], x: &mut [f64], g: &mut [f64]| {
            let (v, scale) = (1.5 * e[0], (0.75 * e[0]).exp());
            let squares: f64 = e[1..].iter().map(|e| e * e).sum();
            (x[0], g[0]) = (v, -e[0] / 1.5 + 0.5 * squares - 1.5);
            (1..4).for_each(|j| (x[j], g[j]) = (scale * e[j], -e[j] / scale));
        };
        // v ~ N(0, 1), y ~ N(v², 1/4), and two more N(0, 1).
        let banana = |e: &[f64], x: &mut [f64], g: &mut [f64]| {
            x.copy_from_slice(e);
            x[1] = e[0] * e[0] + 0.5 * e[1];
            g.iter_mut().zip(e).for_each(|(g, e)| *g = -e);
            (g[0], g[1]) = (-e[0] + 4.0 * e[0] * e[1], -2.0 * e[1]);
        };
        for (k, shape) in [&funnel as Shape<'_>, &banana].into_iter().enumerate() {
            let (mut theta, mut scores) = (Matrix::zeros(1000, 4), Matrix::zeros(1000, 4));
            for i in 0..1000 {
                shape(noise.row(i), theta.row_mut(i), scores.row_mut(i));
                reflect(theta.row_mut(i));
                reflect(scores.row_mut(i));
            }
            let before = Linear::least_misfit(theta.as_ref(), scores.as_ref()).mean;
            let warp = Warp::fit(theta.as_ref(), scores.as_ref());
            let (z, scores) = straightened(&warp, theta.as_ref(), scores.as_ref());
            let after = Linear::least_misfit(z.as_ref(), scores.as_ref()).mean;
            assert!(after < 0.3 * before, "shape {k}: {before} became {after} by {warp:?}");
        }
    }

    #[test]
    fn bends_are_found_and_straighten() {
        let (theta, scores) = draws(2000, 1);
        let warp = Warp::fit(theta.as_ref(), scores.as_ref());
        assert!(!warp.bends().is_empty());
        assert_eq!(warp.bends()[0].parent(), 0);
        assert_eq!(warp.bends()[0].children(), [1, 2, 3]);
        // Straight: the rows are N(0, I), so fourth moments are 3, where the funnel has 3e⁹.
        let (fresh, _) = draws(4000, 2);
        let coordinates = Coordinates::fit(theta.as_ref(), scores.as_ref(), true);
        let white = coordinates.from_theta(fresh.as_ref());
        for j in 0..4 {
            let moment =
                |power: i32| (0..4000).map(|i| white.row(i)[j].powi(power)).sum::<f64>() / 4000.0;
            assert!((moment(2) - 1.0).abs() < 0.15, "coordinate {j}: {}", moment(2));
            assert!(moment(4) < 4.5, "coordinate {j}: {}", moment(4));
        }
    }

    #[test]
    fn coordinates_are_inverse_and_their_jacobian_is_the_determinant() {
        for (theta, scores) in [draws(1000, 3), reflected_draws(1000, 3)] {
            are_inverse(&Coordinates::fit(theta.as_ref(), scores.as_ref(), true));
        }
    }

    fn are_inverse(coordinates: &Coordinates) {
        let white = random_states(20, 4, 4);
        let back = coordinates.from_theta(coordinates.to_theta(white.as_ref()).as_ref());
        for (a, b) in white.as_slice().iter().zip(back.as_slice()) {
            assert!((a - b).abs() < 1e-9, "{a} against {b}");
        }
        // log |∂θ/∂u| by differences is w Σb, as the density of a flat target says, plus a constant.
        let flat = PerParticle::new(4, |_: &[f64], score: &mut [f64]| {
            score.fill(0.0);
            0.0
        });
        let flat = InCoordinates::new(flat, coordinates.clone()).unwrap();
        let mut claimed = vec![0.0; 20];
        flat.evaluate(white.as_ref(), None, &mut claimed, Matrix::zeros(20, 4).as_mut()).unwrap();
        let differences: Vec<f64> =
            (0..20).map(|i| log_jacobian(coordinates, white.row(i)) - claimed[i]).collect();
        for difference in &differences {
            assert!((difference - differences[0]).abs() < 1e-6, "{differences:?}");
        }
    }

    /// By central differences and elimination.
    fn log_jacobian(coordinates: &Coordinates, at: &[f64]) -> f64 {
        let (dim, step) = (at.len(), 1e-5);
        let moved = Matrix::from_fn(2 * dim, dim, |i, j| {
            at[j] + if i / 2 == j { step * (1.0 - 2.0 * (i % 2) as f64) } else { 0.0 }
        });
        let theta = coordinates.to_theta(moved.as_ref());
        let mut jacobian = Matrix::from_fn(dim, dim, |i, j| {
            (theta.row(2 * i)[j] - theta.row(2 * i + 1)[j]) / (2.0 * step)
        });
        let mut sum = 0.0;
        for k in 0..dim {
            let pivot = (k..dim)
                .max_by(|&a, &b| jacobian.row(a)[k].abs().total_cmp(&jacobian.row(b)[k].abs()))
                .unwrap();
            let row = jacobian.row(pivot).to_vec();
            let old = jacobian.row(k).to_vec();
            jacobian.row_mut(pivot).copy_from_slice(&old);
            jacobian.row_mut(k).copy_from_slice(&row);
            sum += row[k].abs().ln();
            for i in k + 1..dim {
                let factor = jacobian.row(i)[k] / row[k];
                jacobian.row_mut(i).iter_mut().zip(&row).for_each(|(x, r)| *x -= factor * r);
            }
        }
        sum
    }

    #[test]
    fn the_score_in_coordinates_is_the_gradient_there() {
        let (theta, scores) = draws(1000, 5);
        let coordinates = Coordinates::fit(theta.as_ref(), scores.as_ref(), true);
        let target = PerParticle::new(4, funnel_and_banana);
        let target = InCoordinates::new(target, coordinates).unwrap();
        check_score(&target, random_states(30, 4, 6).as_ref()).unwrap();
        let (theta, scores) = reflected_draws(1000, 5);
        let coordinates = Coordinates::fit(theta.as_ref(), scores.as_ref(), true);
        let target = PerParticle::new(4, reflected_funnel_and_banana);
        let target = InCoordinates::new(target, coordinates).unwrap();
        check_score(&target, random_states(30, 4, 6).as_ref()).unwrap();
    }

    #[test]
    fn saved_coordinates_come_back() {
        let (theta, scores) = reflected_draws(1000, 7);
        let coordinates = Coordinates::fit(theta.as_ref(), scores.as_ref(), true);
        assert_eq!(Coordinates::restore(4, &coordinates.save()).unwrap(), coordinates);
        assert!(Coordinates::restore(5, &coordinates.save()).is_err());
    }

    #[test]
    fn both_precisions_agree() {
        let linear = Linear::diagonal(vec![1.0, -2.0], vec![0.5, 3.0]);
        let wide = PerParticle::new(2, |x: &[f64], s: &mut [f64]| {
            s.copy_from_slice(&[-x[0], -x[1]]);
            -0.5 * (x[0] * x[0] + x[1] * x[1])
        });
        let narrow = PerParticle::new(2, |x: &[f32], s: &mut [f32]| {
            s.copy_from_slice(&[-x[0], -x[1]]);
            -0.5 * (x[0] * x[0] + x[1] * x[1])
        });
        let u = random_states(5, 2, 8);
        let (mut a, mut b) = (vec![0.0; 5], vec![0.0_f32; 5]);
        let (mut score_a, mut score_b) = (Matrix::zeros(5, 2), Matrix::zeros(5, 2));
        let in_u = InCoordinates::new(wide, linear.clone().into()).unwrap();
        in_u.evaluate(u.as_ref(), None, &mut a, score_a.as_mut()).unwrap();
        let in_u = InCoordinates::new(narrow, linear.into()).unwrap();
        in_u.evaluate(u.cast::<f32>().as_ref(), None, &mut b, score_b.as_mut()).unwrap();
        for (a, b) in a.iter().chain(score_a.as_slice()).zip(b.iter().chain(score_b.as_slice())) {
            assert!((a - f64::from(*b)).abs() < 1e-4 * (1.0 + a.abs()), "{a} against {b}");
        }
    }
}
