//! The particles, in θ and in u, and what the target says of them in both.

use crate::arrays::Arrays;
use crate::coordinates::Coordinates;
use crate::{LogDensity, MatMut, MatRef, Matrix, Result};

/// A log density below this is a wall.
const BOTTOM: f64 = -1e290;

/// N particles.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cloud {
    /// u.
    pub(super) white: Matrix<f64>,
    /// z = centre + L u.
    pub(super) z: Matrix<f64>,
    /// θ.
    pub(super) theta: Matrix<f64>,
    /// log π(θ); −∞ at a wall.
    pub(super) log_density: Vec<f64>,
    /// ∇log π(θ); 0 at a wall.
    pub(super) score: Matrix<f64>,
    /// The log density of u (up to the constant log |det L|).
    pub(super) white_log_density: Vec<f64>,
    /// Its gradient.
    pub(super) white_score: Matrix<f64>,
    /// ∇ with respect to z, on the way.
    pulled: Matrix<f64>,
}

impl Cloud {
    pub(super) fn new(count: usize, dim: usize) -> Self {
        let zeros = || Matrix::zeros(count, dim);
        Self {
            white: zeros(),
            z: zeros(),
            theta: zeros(),
            log_density: vec![f64::NEG_INFINITY; count],
            score: zeros(),
            white_log_density: vec![f64::NEG_INFINITY; count],
            white_score: zeros(),
            pulled: zeros(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.log_density.len()
    }

    fn dim(&self) -> usize {
        self.theta.cols()
    }

    /// Evaluates the target at u.
    pub(super) fn evaluate(
        &mut self,
        target: &dyn LogDensity<f64>,
        coordinates: &Coordinates,
    ) -> Result<()> {
        let dim = self.dim();
        coordinates.linear.to_position(self.white.as_slice(), self.z.as_mut_slice());
        self.theta.as_mut_slice().copy_from_slice(self.z.as_slice());
        coordinates.warp.forward(self.theta.as_mut_slice(), dim);
        evaluate(target, self.theta.as_ref(), &mut self.log_density, self.score.as_mut())?;
        self.pull(coordinates);
        Ok(())
    }

    /// Follows new coordinates, θ staying where it is.
    pub(super) fn follow(&mut self, coordinates: &Coordinates) {
        let dim = self.dim();
        self.z.as_mut_slice().copy_from_slice(self.theta.as_slice());
        coordinates.warp.backward(self.z.as_mut_slice(), dim);
        coordinates.linear.from_position(self.z.as_slice(), self.white.as_mut_slice());
        self.pull(coordinates);
    }

    /// Log density and score of u from those of θ.
    fn pull(&mut self, coordinates: &Coordinates) {
        let dim = self.dim();
        self.white_log_density.copy_from_slice(&self.log_density);
        self.pulled.as_mut_slice().copy_from_slice(self.score.as_slice());
        let Self { z, white_log_density, pulled, .. } = self;
        coordinates.warp.pull(z.as_slice(), white_log_density, pulled.as_mut_slice(), dim);
        coordinates.linear.down(self.pulled.as_slice(), self.white_score.as_mut_slice());
        raise_walls(&mut self.white_log_density, self.white_score.as_mut_slice(), dim);
    }

    /// Particle `i` becomes particle `j` of another cloud.
    pub(super) fn take(&mut self, i: usize, from: &Self, j: usize) {
        self.white.row_mut(i).copy_from_slice(from.white.row(j));
        self.z.row_mut(i).copy_from_slice(from.z.row(j));
        self.theta.row_mut(i).copy_from_slice(from.theta.row(j));
        self.log_density[i] = from.log_density[j];
        self.score.row_mut(i).copy_from_slice(from.score.row(j));
        self.white_log_density[i] = from.white_log_density[j];
        self.white_score.row_mut(i).copy_from_slice(from.white_score.row(j));
    }

    pub(super) fn save(&self, into: &mut Arrays) {
        into.put_matrix("white", &self.white);
        into.put_matrix("z", &self.z);
        into.put_matrix("theta", &self.theta);
        into.put("log_density", &*self.log_density);
        into.put_matrix("score", &self.score);
        into.put("white_log_density", &*self.white_log_density);
        into.put_matrix("white_score", &self.white_score);
    }

    pub(super) fn restore(count: usize, dim: usize, from: &Arrays) -> Result<Self> {
        let mut cloud = Self::new(count, dim);
        let fields: [(&str, &mut [f64]); 7] = [
            ("white", cloud.white.as_mut_slice()),
            ("z", cloud.z.as_mut_slice()),
            ("theta", cloud.theta.as_mut_slice()),
            ("log_density", &mut cloud.log_density),
            ("score", cloud.score.as_mut_slice()),
            ("white_log_density", &mut cloud.white_log_density),
            ("white_score", cloud.white_score.as_mut_slice()),
        ];
        for (name, field) in fields {
            field.copy_from_slice(&from.get_exactly(name, field.len())?);
        }
        Ok(cloud)
    }
}

/// Evaluates the target, with walls: a log density that is not finite or bottomless, or a score that is
/// not finite, becomes −∞ with score 0. A θ that is not finite is a wall that the target does not see.
pub(super) fn evaluate(
    target: &dyn LogDensity<f64>,
    theta: MatRef<'_, f64>,
    log_density: &mut [f64],
    mut score: MatMut<'_, f64>,
) -> Result<()> {
    let (count, dim) = (theta.rows(), theta.cols());
    let finite = |i: usize| theta.row(i).iter().all(|x| x.is_finite());
    let lost: Vec<usize> = (0..count).filter(|&i| !finite(i)).collect();
    if lost.is_empty() {
        let whole = MatMut::new(score.as_mut_slice(), count, dim).expect("the shape is its own");
        target.evaluate(theta, None, log_density, whole)?;
    } else if let Some(stand_in) = (0..count).find(|&i| finite(i)) {
        let row = |i: usize| if finite(i) { i } else { stand_in };
        let seen = Matrix::from_fn(count, dim, |i, j| theta.row(row(i))[j]);
        let whole = MatMut::new(score.as_mut_slice(), count, dim).expect("the shape is its own");
        target.evaluate(seen.as_ref(), None, log_density, whole)?;
    }
    for i in lost {
        log_density[i] = f64::NEG_INFINITY;
    }
    raise_walls(log_density, score.as_mut_slice(), dim);
    Ok(())
}

fn raise_walls(log_density: &mut [f64], score: &mut [f64], dim: usize) {
    for (value, score) in log_density.iter_mut().zip(score.chunks_exact_mut(dim)) {
        let fine = value.is_finite() && *value > BOTTOM && score.iter().all(|g| g.is_finite());
        if !fine {
            *value = f64::NEG_INFINITY;
            score.fill(0.0);
        }
    }
}
