//! Moving: velocities become displacements, and displacements new positions.

use std::sync::Arc;

use rayon::prelude::*;

use super::{Configuration, System, own};
use crate::dynamics::THETA;
use crate::engine::{rows_per_task, sum_of_squares, vectorised};
use crate::field::Draw;
use crate::precondition::Preconditioner;
use crate::{Error, Matrix, Real, Result};

/// A particle's number, state and θ, and room for the squared lengths of its displacements.
type Row<'a, T> = (((usize, &'a mut [T]), &'a mut [T]), &'a mut [f64]);

impl<T: Real> System<'_, T> {
    /// Keeps how fast the blocks in `moving` are, for those who ask.
    pub(super) fn measure_speeds(&mut self, moving: &[usize], velocity: &Matrix<T>) {
        let dim = self.structure.dim();
        let speeds = velocity.as_slice().par_chunks(dim).with_min_len(rows_per_task(dim));
        let speeds: Vec<f64> = speeds.map(sum_of_squares).collect();
        self.keep_speeds(moving, &speeds);
    }

    /// Averages squared speeds, one for every particle and block in `moving`. Frozen particles have a
    /// velocity but do not move.
    fn keep_speeds(&mut self, moving: &[usize], speeds: &[f64]) {
        let free = self.frozen.iter().filter(|frozen| !**frozen).count().max(1) as f64;
        for (place, &block) in moving.iter().enumerate() {
            let of_block = speeds.iter().skip(place).step_by(moving.len()).zip(&self.frozen);
            let moved = of_block.filter(|(_, frozen)| !**frozen).map(|(speed, _)| speed / free);
            self.squared_speeds[block] = moved.sum();
        }
    }

    /// The buffer that displacements are made in, shaped for the blocks in `moving`.
    fn take_displacement(&mut self, moving: &[usize]) -> Matrix<T> {
        let (rows, cols) = (self.frozen.len(), moving.len() * self.structure.dim());
        let mut data = std::mem::take(&mut self.displacement);
        data.resize(rows * cols, T::zero());
        Matrix::from_vec(data, rows, cols).expect("resized to fit")
    }

    /// Moves the blocks in `moving` for a time `dt` along their velocity, with the field's noise.
    pub fn advance(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        self.check_moving(moving)?;
        if let Some(field) = self.by_coordinate(moving)? {
            let speeds = self.advance_by_strips(&*field, moving, dt)?;
            self.keep_speeds(moving, &speeds);
            self.finish_move(moving);
            return Ok(());
        }
        let mut displacement = self.take_displacement(moving);
        self.write_velocity(moving, &mut displacement)?;
        if self.field.is_random() {
            self.measure_speeds(moving, &displacement);
            scale(&mut displacement, dt);
            let draw = Draw { seed: self.seed, index: self.noises };
            self.noises += 1;
            let (evaluated, field) = self.view();
            field.add_noise(&evaluated, moving, dt, draw, &mut displacement)?;
            self.displace(moving, &displacement)?;
        } else {
            let speeds = self.displace_by(moving, dt, &displacement)?;
            self.keep_speeds(moving, &speeds);
        }
        self.displacement = displacement.into_vec();
        self.finish_move(moving);
        Ok(())
    }

    /// As [`System::advance`], by the explicit midpoint rule: second order in `dt`.
    ///
    /// For deterministic fields: there is no midpoint rule for noise here.
    pub fn advance_by_midpoint(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        if self.field.is_random() {
            let remedy = "take a deterministic field, or Euler or symmetric splitting";
            return Err(Error::setting("field", "a field with noise", remedy));
        }
        let before = Arc::clone(&self.at.state);
        let mut half = self.velocity(moving)?;
        scale(&mut half, 0.5 * dt);
        self.displace(moving, &half)?;
        let mut full = self.velocity(moving)?;
        scale(&mut full, dt);
        self.at.state = before;
        self.versions.changed(moving);
        self.displace(moving, &full)?;
        self.finish_move(moving);
        Ok(())
    }

    /// As [`System::advance`], by the implicit midpoint rule z′ = z + dt v((z + z′)/2), which is its own
    /// inverse with dt reversed. Adds log |det ∂z′/∂z| to [`System::log_volume`].
    ///
    /// For blocks whose velocity needs no score.
    pub fn advance_implicitly(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        /// The map contracts by about dt/2 an iteration.
        const MOST: usize = 60;
        let before = Matrix::clone(&self.at.state);
        let mut velocity = self.velocity(moving)?;
        // Far below what steps get wrong, and above what rounding does.
        let rounding = T::epsilon().as_f64().powf(0.7);
        let mut settled = false;
        for _ in 0..MOST {
            self.put_back(&before, moving);
            self.displace_by(moving, 0.5 * dt, &velocity)?;
            let next = self.velocity(moving)?;
            let pairs = || next.as_slice().iter().zip(velocity.as_slice());
            let change = pairs().map(|(a, b)| (*a - *b).as_f64().abs()).fold(0.0, f64::max);
            let size = pairs().map(|(a, _)| a.as_f64().abs()).fold(0.0, f64::max);
            velocity = next;
            if change <= rounding * size {
                settled = true;
                break;
            }
        }
        self.log_volume +=
            if settled { self.volume_of_step(moving, dt, &velocity)? } else { f64::NAN };
        self.put_back(&before, moving);
        self.displace_by(moving, dt, &velocity)?;
        self.finish_move(moving);
        Ok(())
    }

    pub(super) fn put_back(&mut self, before: &Matrix<T>, moved: &[usize]) {
        own(&mut self.at.state).clone_from(before);
        self.versions.changed(moved);
    }

    /// Particles have been moved, and the copy of θ with them.
    pub(super) fn note_move(&mut self, moving: &[usize]) {
        let theta_was_current = self.theta.of == Some(self.versions.blocks[THETA]);
        self.versions.changed(moving);
        if theta_was_current {
            self.theta.of = Some(self.versions.blocks[THETA]);
        }
    }

    /// Adds a displacement, shaped as [`System::velocity`] gives it, to all but frozen particles.
    pub fn displace(&mut self, moving: &[usize], displacement: &Matrix<T>) -> Result<()> {
        self.displace_by(moving, 1.0, displacement).map(drop)
    }

    /// Adds `factor` times a displacement, and returns the squared length of what was added of every
    /// particle and block, before the factor.
    fn displace_by(
        &mut self,
        moving: &[usize],
        factor: f64,
        displacement: &Matrix<T>,
    ) -> Result<Vec<f64>> {
        self.check_moving(moving)?;
        let dim = self.structure.dim();
        let expected = (self.at.state.rows(), moving.len() * dim);
        if (displacement.rows(), displacement.cols()) != expected {
            return Err(Error::Shape {
                what: "the displacement",
                found: format!("shape {} × {}", displacement.rows(), displacement.cols()),
                expected: format!("{} × {}", expected.0, expected.1),
            });
        }
        let Configuration { state, preconditioner, .. } = &mut self.at;
        let scale = preconditioner.as_ref().map(Preconditioner::scale);
        let factor = T::of(factor);
        let frozen = &self.frozen;
        let size = state.cols();
        let follows = size > dim && self.theta.of == Some(self.versions.blocks[THETA]);
        let mut squares = vec![0.0; displacement.rows() * moving.len()];
        let move_row = |(((i, row), theta), squares): Row<'_, T>| -> Option<(usize, f64)> {
            if frozen[i] {
                return None;
            }
            let mut bad = None;
            let blocks = moving.iter().zip(displacement.row(i).chunks_exact(dim));
            for ((&block, moved), square) in blocks.zip(squares) {
                *square = sum_of_squares(moved);
                let own = &mut row[block * dim..(block + 1) * dim];
                let scale = scale.filter(|_| block == THETA);
                if !add(own, moved, factor, scale) && bad.is_none() {
                    bad = own.iter().find(|x| !x.is_finite()).map(|x| (i, x.as_f64()));
                }
                if block == THETA && follows {
                    theta.copy_from_slice(own);
                }
            }
            bad
        };
        let bad = own(state)
            .as_mut_slice()
            .par_chunks_mut(size)
            .enumerate()
            .zip(self.theta.value.as_mut_slice().par_chunks_mut(dim))
            .zip(squares.par_chunks_mut(moving.len()))
            .with_min_len(rows_per_task(displacement.cols()))
            .filter_map(move_row)
            .min_by_key(|(i, _)| *i);
        self.note_move(moving);
        match bad {
            Some((particle, value)) => Err(self.non_finite("position", particle, value)),
            None => Ok(squares),
        }
    }
}

/// x += scale · factor · by, with no scale for 1; tells whether all x are finite then.
pub(super) fn add<T: Real>(x: &mut [T], by: &[T], factor: T, scale: Option<&[T]>) -> bool {
    vectorised(
        #[inline(always)]
        || {
            let mut finite = true;
            if let Some(scale) = scale {
                for ((x, &by), &s) in x.iter_mut().zip(by).zip(scale) {
                    *x += s * (factor * by);
                    finite &= x.is_finite();
                }
            } else {
                for (x, &by) in x.iter_mut().zip(by) {
                    *x += factor * by;
                    finite &= x.is_finite();
                }
            }
            finite
        },
    )
}

fn scale<T: Real>(velocity: &mut Matrix<T>, dt: f64) {
    let dt = T::of(dt);
    for v in velocity.as_mut_slice() {
        *v *= dt;
    }
}
