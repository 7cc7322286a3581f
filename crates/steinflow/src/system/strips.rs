//! Moves in strips of coordinates, for few particles in many dimensions.
//!
//! Once the kernel is known, a field whose A and C act by coordinate needs for a coordinate that one alone. So a
//! strip of coordinates of all particles is read, its velocity computed, and the particles moved while it is in a
//! cache: nothing of the size of the particles is written but the particles.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::motion::add;
use super::{Configuration, System, own, write_locals};
use crate::dynamics::{Auxiliary, Dynamics, Evaluated, Operator, Point, THETA, Terms};
use crate::engine::{Borrowed, Products, Scratch, strip_width, strips_of_a_part, sum_of_squares};
use crate::field::{ByCoordinate, Draw};
use crate::precondition::Preconditioner;
use crate::team::Team;
use crate::{Matrix, Real, Result};

/// All that the velocity of a strip depends on, beside the particles.
struct Strips<'s, T: Real> {
    /// Coordinates of a strip.
    width: usize,
    dim: usize,
    blocks: usize,
    moving: &'s [usize],
    /// The blocks that the velocity depends on.
    read: Vec<usize>,
    field: &'s dyn ByCoordinate<T>,
    operator: &'s Operator<T>,
    dynamics: &'s dyn Dynamics<T>,
    auxiliaries: &'s [Auxiliary],
    log_density: &'s [T],
    /// None where it is not needed, and may be that of other particles.
    score: Option<&'s Matrix<T>>,
    scale: Option<&'s [T]>,
    address: Draw,
    versions: &'s [u64],
    scratch: &'s Scratch<T>,
    team: &'s dyn Team<T>,
}

/// The particles, apart from what [`Strips`] reads.
struct Movable<'s, T> {
    state: &'s mut Arc<Matrix<T>>,
    theta: &'s mut Matrix<T>,
    /// The state in the preconditioner's coordinates, if there is one.
    scaled: Option<&'s Matrix<T>>,
    frozen: &'s [bool],
}

/// A strip of the particles that are moved: its columns, and its parts of the state and of the copy of θ.
struct Strip<'s, T> {
    columns: Range<usize>,
    own: Parts<'s, T>,
    copy: Parts<'s, T>,
}

/// What some strips say of every particle and moving block: the squared length of its velocity; the first particle
/// that is not finite any more; and products for the distances of the blocks that have moved.
struct Moved<T: Real> {
    squares: Vec<f64>,
    bad: Option<(usize, f64)>,
    products: Vec<Products<T>>,
}

impl<T: Real> System<'_, T> {
    /// The field by coordinate, where strips are the way to go.
    pub(super) fn by_coordinate(
        &mut self,
        moving: &[usize],
    ) -> Result<Option<Box<dyn ByCoordinate<T>>>> {
        let (count, dim) = (self.frozen.len(), self.structure.dim());
        if strip_width(count, self.structure.blocks(), dim).is_none()
            || !self.structure.acts_by_coordinate()
        {
            return Ok(None);
        }
        self.refresh_particles(moving)?;
        let (evaluated, field) = self.view();
        field.by_coordinate(&evaluated)
    }

    fn strips<'s>(
        &'s mut self,
        field: &'s dyn ByCoordinate<T>,
        moving: &'s [usize],
    ) -> (Strips<'s, T>, Movable<'s, T>) {
        let Configuration { state, log_density, score, preconditioner, .. } = &mut self.at;
        let (dim, blocks) = (self.structure.dim(), self.structure.blocks());
        let strips = Strips {
            width: strip_width(state.rows(), blocks, dim).unwrap_or(dim),
            dim,
            blocks,
            moving,
            // What varies may depend on anything.
            read: match self.operator.width() {
                1 => self.operator.blocks_read(moving, Terms::All),
                _ => (0..blocks).collect(),
            },
            field,
            operator: &self.operator,
            dynamics: &*self.dynamics,
            auxiliaries: self.structure.auxiliaries(),
            log_density,
            score: self.structure.needs_score(moving).then_some(&*score),
            scale: preconditioner.as_ref().map(Preconditioner::scale),
            address: Draw { seed: self.seed, index: self.step },
            versions: &self.versions.blocks,
            scratch: &self.scratch,
            team: &*self.team,
        };
        let theta = &mut self.theta.value;
        let scaled = self.scaled.as_ref().map(|scaled| &scaled.value);
        (strips, Movable { state, theta, scaled, frozen: &self.frozen })
    }

    /// Writes the velocity of the blocks in `moving`.
    pub(super) fn write_velocity_by_strips(
        &mut self,
        field: &dyn ByCoordinate<T>,
        moving: &[usize],
        velocity: &mut Matrix<T>,
    ) -> Result<()> {
        let (strips, Movable { state, scaled, .. }) = self.strips(field, moving);
        let (state, dim) = (scaled.unwrap_or(state), strips.dim);
        strips.cut(velocity).into_par_iter().with_max_len(1).try_for_each(|(columns, mut out)| {
            let z = strips
                .gather(&columns, |i, block| &state.row(i)[block * dim..][..dim][columns.clone()]);
            let found = strips.velocity(&columns, &z)?;
            let parts = found.as_slice().chunks_exact(columns.len());
            out.iter_mut().zip(parts).for_each(|(out, part)| out.copy_from_slice(part));
            Ok(())
        })
    }

    /// Moves the blocks in `moving` for a time `dt`, and returns the squared speed of every particle and block.
    pub(super) fn advance_by_strips(
        &mut self,
        field: &dyn ByCoordinate<T>,
        moving: &[usize],
        dt: f64,
    ) -> Result<Vec<f64>> {
        let (blocks, dim) = (self.structure.blocks(), self.structure.dim());
        // Distances that will be asked for, of numbers that are at hand now.
        let known = self.scratch.cloud(self.frozen.len(), blocks, dim);
        let is_asked_for = |block: &usize| self.scaled.is_none() && known.is_asked_for(*block);
        let asked: Vec<usize> = moving.iter().copied().filter(is_asked_for).collect();
        drop(known);
        // Of a state that is θ alone there is no other copy, and one that is not current is not kept so.
        let follows = blocks > 1
            && moving.contains(&THETA)
            && self.theta.of == Some(self.versions.blocks[THETA]);

        let (strips, Movable { state, theta, scaled, frozen }) = self.strips(field, moving);
        let count = frozen.len();
        let mut cuts: Vec<Strip<'_, T>> = strips
            .cut(own(state))
            .into_iter()
            .map(|(columns, own)| Strip { columns, own, copy: Vec::new() })
            .collect();
        if follows {
            let copies = strips.cut(theta).into_iter();
            cuts.iter_mut().zip(copies).for_each(|(cut, (_, copy))| cut.copy = copy);
        }
        let move_strips = |cuts: &mut [Strip<'_, T>]| -> Result<Moved<T>> {
            let mut squares = vec![0.0; count * moving.len()];
            let mut bad: Option<(usize, f64)> = None;
            let mut products: Vec<_> = asked.iter().map(|_| Products::new(count)).collect();
            for Strip { columns, own, copy } in cuts {
                let z = strips.gather(columns, |i, block| match scaled {
                    Some(scaled) => &scaled.row(i)[block * dim..][..dim][columns.clone()],
                    None => &*own[i * blocks + block],
                });
                let velocity = strips.velocity(columns, &z)?;
                let parts = velocity.as_slice().chunks_exact(columns.len());
                for (slot, (part, square)) in parts.zip(&mut squares).enumerate() {
                    let (i, block) = (slot / moving.len(), moving[slot % moving.len()]);
                    if frozen[i] {
                        continue;
                    }
                    *square += sum_of_squares(part);
                    let x = &mut *own[i * blocks + block];
                    let scale = strips.scale.filter(|_| block == THETA);
                    let is_finite = add(x, part, T::of(dt), scale.map(|s| &s[columns.clone()]));
                    if !is_finite && bad.is_none_or(|(first, _)| i < first) {
                        bad = x.iter().find(|x| !x.is_finite()).map(|x| (i, x.as_f64()));
                    }
                    if block == THETA
                        && let Some(copy) = copy.get_mut(i)
                    {
                        copy.copy_from_slice(x);
                    }
                }
                for (&block, products) in asked.iter().zip(&mut products) {
                    products.add(count, columns.len(), |i| &*own[i * blocks + block]);
                }
            }
            Ok(Moved { squares, bad, products })
        };
        let some = strips_of_a_part(cuts.len());
        let moved = cuts.par_chunks_mut(some).with_max_len(1).map(move_strips);
        let moved: Result<Vec<Moved<T>>> = moved.collect();
        self.note_move(moving);
        let mut squares = vec![0.0; count * moving.len()];
        let mut bad: Option<(usize, f64)> = None;
        let mut products: Vec<Vec<_>> = asked.iter().map(|_| Vec::new()).collect();
        for part in moved? {
            squares.iter_mut().zip(part.squares).for_each(|(sum, more)| *sum += more);
            bad = [bad, part.bad].into_iter().flatten().min_by_key(|(i, _)| *i);
            products.iter_mut().zip(part.products).for_each(|(all, some)| all.push(some));
        }
        if let Some((particle, value)) = bad {
            return Err(self.non_finite("position", particle, value));
        }
        let mut cloud = self.scratch.cloud(count, blocks, dim);
        for (&block, parts) in asked.iter().zip(&products) {
            cloud.learn((*self.at.state).as_ref(), block, self.versions.blocks[block], parts);
        }
        Ok(squares)
    }
}

/// The parts that a strip has of all rows of a matrix, row after row and block after block.
type Parts<'a, T> = Vec<&'a mut [T]>;

impl<T: Real> Strips<'_, T> {
    /// Cuts every block of every row into strips: the columns of a strip, and its parts.
    fn cut<'m>(&self, matrix: &'m mut Matrix<T>) -> Vec<(Range<usize>, Parts<'m, T>)> {
        let blocks = matrix.as_mut_slice().chunks_exact_mut(self.dim);
        let mut rest: Vec<_> = blocks.map(|block| block.chunks_mut(self.width)).collect();
        let strips = (0..self.dim).step_by(self.width);
        strips
            .map(|first| {
                let columns = first..self.dim.min(first + self.width);
                (columns, rest.iter_mut().filter_map(Iterator::next).collect())
            })
            .collect()
    }

    /// What is read of the states of all particles in a strip, as `part(i, block)` has them.
    fn gather<'p>(
        &self,
        columns: &Range<usize>,
        part: impl Fn(usize, usize) -> &'p [T],
    ) -> Borrowed<'_, T>
    where
        T: 'p,
    {
        let width = columns.len();
        let mut z = self.scratch.matrix(self.log_density.len(), self.blocks * width);
        for (i, row) in z.as_mut_slice().chunks_exact_mut(self.blocks * width).enumerate() {
            for &block in &self.read {
                row[block * width..(block + 1) * width].copy_from_slice(part(i, block));
            }
        }
        z
    }

    /// The velocity of a strip whose particles are at `z`.
    fn velocity(&self, columns: &Range<usize>, z: &Matrix<T>) -> Result<Borrowed<'_, T>> {
        let (count, dim) = (z.rows(), columns.len());
        let operator = self.operator.strip(columns.clone());
        let mut score = self.scratch.matrix(count, self.score.map_or(0, |_| dim));
        if let Some(all) = self.score {
            for i in 0..count {
                score.row_mut(i).copy_from_slice(&all.row(i)[columns.clone()]);
            }
        }
        let scale = self.scale.map(|scale| &scale[columns.clone()]);
        let (width, varies) = (operator.width(), operator.width() > 1);
        let mut coefficients = self.scratch.matrix(count, width);
        let size = |varies: bool| if varies { z.cols() } else { 0 };
        let mut curl = self.scratch.matrix(count, size(varies));
        let mut divergence = self.scratch.matrix(count, size(operator.diffusion_varies()));
        for i in 0..count {
            coefficients.row_mut(i)[0] = T::one();
            if varies {
                let point = Point {
                    state: z.row(i),
                    dim,
                    log_density: self.log_density[i],
                    score: score.row(i),
                };
                let out = (coefficients.row_mut(i), curl.row_mut(i), divergence.row_mut(i));
                write_locals(self.dynamics, &operator, (i, point, scale), out)?;
            }
        }
        let at = Evaluated {
            operator: &operator,
            state: z.as_ref(),
            coefficients: coefficients.as_ref(),
            versions: self.versions,
            address: self.address,
            scratch: self.scratch,
            team: self.team,
            score: score.as_ref(),
            scale,
            auxiliaries: self.auxiliaries,
            divergences: varies.then(|| {
                let all = if operator.diffusion_varies() { &divergence } else { &curl };
                (all.as_ref(), curl.as_ref())
            }),
        };
        let mut velocity = self.scratch.matrix(count, self.moving.len() * dim);
        self.field.velocity(&at, self.moving, &mut velocity);
        Ok(velocity)
    }
}
