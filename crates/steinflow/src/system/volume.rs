//! By how much a step of the implicit midpoint rule changes volume.
//!
//! z′ = z + dt v((z + z′)/2) has ∂z′/∂z = (I − A)⁻¹(I + A) with A = (dt/2) ∂v/∂z at the midpoint, so that
//!
//! ```text
//! log |det ∂z′/∂z| = log |det(I + A)| − log |det(I − A)| = dt ∇·v + ⅔ tr A³ + …
//! ```
//!
//! ∇·v is known in closed form. What is beyond it needs the whole of A, N·d columns of it, and is left out where those are
//! many: it changes the acceptance of a stretch by far less than the steps themselves do.

use super::{System, own};
use crate::{Matrix, Real, Result};

/// Numbers that move in all particles together, up to which A is computed.
pub(super) const FEW: usize = 16;

impl<T: Real> System<'_, T> {
    /// Up to how many numbers that move in all particles together the volume of implicit steps is that of their
    /// whole Jacobian: 16 unless somebody says otherwise, for each takes two velocities in every step.
    pub fn exact_volume_up_to(&mut self, numbers: usize) {
        self.exact_volume = numbers;
    }

    /// log |det ∂z′/∂z| of a step of the blocks in `moving` with its midpoint here, where they have this velocity.
    pub(super) fn volume_of_step(
        &mut self,
        moving: &[usize],
        dt: f64,
        velocity: &Matrix<T>,
    ) -> Result<f64> {
        let first = dt * self.divergence(moving, velocity)?;
        if velocity.as_slice().len() > self.exact_volume {
            return Ok(first);
        }
        Ok(first + self.beyond_divergence(moving, dt)?)
    }

    /// log |det(I + A)| − log |det(I − A)| − 2 tr A, with A by central differences: cubic in A, and so in their errors.
    fn beyond_divergence(&mut self, moving: &[usize], dt: f64) -> Result<f64> {
        let (count, dim) = (self.at.state.rows(), self.structure.dim());
        let midpoint = Matrix::clone(&self.at.state);
        let step = T::epsilon().cbrt();
        // A column a row.
        let mut columns: Vec<Vec<f64>> = Vec::with_capacity(count * moving.len() * dim);
        for i in 0..count {
            for place in moving.iter().flat_map(|block| block * dim..(block + 1) * dim) {
                let mut shifted = |by: T| {
                    self.put_back(&midpoint, moving);
                    own(&mut self.at.state).row_mut(i)[place] += by;
                    self.velocity(moving)
                };
                let (up, down) = (shifted(step)?, shifted(-step)?);
                let pairs = up.as_slice().iter().zip(down.as_slice());
                let slope = 0.25 * dt / step.as_f64();
                columns.push(pairs.map(|(&a, &b)| slope * (a - b).as_f64()).collect());
            }
        }
        self.put_back(&midpoint, moving);
        let size = columns.len();
        let log_determinant = |sign: f64| {
            let entry = |k: usize, l: usize| f64::from(u8::from(k == l)) + sign * columns[l][k];
            let factors = faer::Mat::from_fn(size, size, entry).partial_piv_lu();
            (0..size).map(|k| factors.U()[(k, k)].abs().ln()).sum::<f64>()
        };
        let trace: f64 = (0..size).map(|k| columns[k][k]).sum();
        Ok(log_determinant(1.0) - log_determinant(-1.0) - 2.0 * trace)
    }

    /// ∇·v of the blocks in `moving`, whose velocity is given. A flow that preserves e⁻ᴴ has ∇·v = v·∇H, and
    /// here the blocks at rest would not change their own volume. Of ∇H, the score cancels: any will do,
    /// also that of another θ.
    fn divergence(&mut self, moving: &[usize], velocity: &Matrix<T>) -> Result<f64> {
        let (count, dim) = (self.at.state.rows(), self.structure.dim());
        let others: Vec<usize> =
            (0..self.structure.blocks()).filter(|block| !moving.contains(block)).collect();
        let mut pushed = Matrix::zeros(count, others.len() * dim);
        let (evaluated, field) = self.view();
        field.velocity(&evaluated, &others, &mut pushed)?;
        let mut gradient = vec![T::zero(); dim];
        let mut sum = 0.0;
        for i in 0..count {
            for (blocks, velocity) in [(moving, velocity.row(i)), (&others, pushed.row(i))] {
                for (&block, v) in blocks.iter().zip(velocity.chunks_exact(dim)) {
                    evaluated.write_gradient(i, block, &mut gradient);
                    let pairs = gradient.iter().zip(v);
                    sum -= pairs.map(|(g, v)| g.as_f64() * v.as_f64()).sum::<f64>();
                }
            }
        }
        Ok(sum)
    }
}
