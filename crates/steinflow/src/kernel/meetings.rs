//! Who meets whom in a step, where particles do not all meet: random batches.
//!
//! The particles are shuffled, by address, and cut into even batches of P + 1 or more; those of a batch meet one
//! another. A step then costs O(N·P) instead of O(N²), in O(N) memory. With b particles in a batch B,
//!
//! ```text
//! sampled    Σ̂ᵢ = Rᵢ + (N − 1)/(b − 1) Σⱼ≠ᵢ kᵢⱼRⱼ over B      E Σ̂ᵢ = Σⱼ kᵢⱼRⱼ over all
//! alone      Σ̂ᵢ = N/b Σⱼ kᵢⱼRⱼ over B                        a system of b particles
//! ```
//!
//! as a radial kernel is 1 where a particle meets itself. (Random batches: Jin, Li and Liu, *J. Comput. Phys.* 2020;
//! for SVGD: Li, Li, Liu, Liu and Lu, *SIAM J. Sci. Comput.* 2020.)

use std::ops::Range;

use rand::seq::SliceRandom as _;
use rayon::prelude::*;

use crate::engine::{Factor, KernelSums, rows_per_task};
use crate::field::Draw;
use crate::random::{Purpose, stream};
use crate::team::Team;
use crate::{Error, MatRef, Matrix, Real, Result};

/// What a batch stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// For all particles: sums have the expectation of those over all.
    Sampled,
    /// For itself: the sum over all, divided by N, becomes one over the batch, divided by b.
    Alone,
}

/// How many others a particle meets in a step, and what they stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interactions {
    /// P, at the least.
    pub others: usize,
    pub standing: Standing,
}

impl Interactions {
    pub(crate) fn validate(self) -> Result<()> {
        if self.others == 0 {
            let remedy = "a particle must meet another: take 1 or more, or leave it out for all";
            return Err(Error::setting("interactions", 0, remedy));
        }
        Ok(())
    }

    /// The meetings of a step, or none where everybody meets everybody.
    pub(crate) fn draw(self, count: usize, address: Draw) -> Option<Meetings> {
        let batches = count / self.others.saturating_add(1);
        if batches < 2 {
            return None;
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.shuffle(&mut stream(address.seed, Purpose::Partners, address.index, 0));
        Some(Meetings { order, batches, standing: self.standing })
    }
}

/// The meetings of one step.
#[derive(Debug)]
pub(crate) struct Meetings {
    /// The particles, batch after batch.
    order: Vec<usize>,
    batches: usize,
    standing: Standing,
}

impl Meetings {
    /// The particles of every batch; the first batches may have one more than the others.
    pub(crate) fn batches(&self) -> impl ExactSizeIterator<Item = &[usize]> {
        (0..self.batches).map(|batch| &self.order[self.places(batch)])
    }

    fn places(&self, batch: usize) -> Range<usize> {
        let (size, larger) = (self.order.len() / self.batches, self.order.len() % self.batches);
        let start = batch * size + batch.min(larger);
        start..start + size + usize::from(batch < larger)
    }

    /// What a batch of this size is multiplied by, and how often a particle meets itself.
    fn weights(&self, size: usize) -> (f64, f64) {
        let (all, size) = (self.order.len() as f64, size as f64);
        match self.standing {
            Standing::Sampled => ((all - 1.0) / (size - 1.0), 1.0),
            Standing::Alone => (all / size, all / size),
        }
    }

    /// How often every particle meets itself.
    pub(crate) fn own_weights<T: Real>(&self) -> Vec<T> {
        let mut weights = vec![T::one(); self.order.len()];
        for members in self.batches() {
            let own = T::of(self.weights(members.len()).1);
            for &i in members {
                weights[i] = own;
            }
        }
        weights
    }

    /// Writes K·R and then every Sᵍ·Rᵍ, as far as the particles meet.
    pub(crate) fn write_sums<T: Real>(
        &self,
        sums: &KernelSums<'_, T>,
        team: &dyn Team<T>,
        out: &mut [&mut Matrix<T>],
    ) {
        // Batch after batch; all factors of a kernel look at the same points.
        let points = self.in_order(sums.factors[0].points());
        let factors = sums.factors.iter();
        let factors: Vec<Factor<'_, T>> =
            factors.map(|own| Factor::new(points.as_ref(), own.rate()).of(own.columns())).collect();
        let values = self.in_order(sums.values);
        let slopes: Vec<Matrix<T>> = sums.slopes.iter().map(|rhs| self.in_order(*rhs)).collect();
        let slopes: Vec<MatRef<'_, T>> = slopes.iter().map(Matrix::as_ref).collect();
        let (radial, values) = (sums.radial, values.as_ref());
        let ordered = KernelSums { radial, factors: &factors, values, slopes: &slopes };
        let sizes: Vec<usize> = self.batches().map(<[usize]>::len).collect();
        let mut found: Vec<Matrix<T>> =
            out.iter().map(|out| Matrix::zeros(out.rows(), out.cols())).collect();
        team.batch_sums(&ordered, &sizes, &mut found.iter_mut().collect::<Vec<_>>());

        // And back to where the particles are.
        let mut places = vec![(0, T::zero(), T::zero()); self.order.len()];
        let weights = sizes.iter().flat_map(|&size| std::iter::repeat_n(self.weights(size), size));
        for (place, (&i, (weight, own))) in self.order.iter().zip(weights).enumerate() {
            places[i] = (place, T::of(weight), T::of(own - weight));
        }
        let rhs = std::iter::once(&sums.values).chain(sums.slopes);
        for ((out, found), rhs) in out.iter_mut().zip(&found).zip(rhs) {
            let width = out.cols().max(1);
            let rows = out.as_mut_slice().par_chunks_mut(width).enumerate();
            rows.with_min_len(rows_per_task(width)).for_each(|(i, out)| {
                let (place, weight, own) = places[i];
                let pairs = found.row(place).iter().zip(rhs.row(i));
                for (out, (&sum, &rhs)) in out.iter_mut().zip(pairs) {
                    *out = weight * sum + own * rhs;
                }
            });
        }
    }

    /// The rows of a matrix, batch after batch.
    fn in_order<T: Real>(&self, matrix: MatRef<'_, T>) -> Matrix<T> {
        let mut ordered = Matrix::zeros(matrix.rows(), matrix.cols());
        let width = matrix.cols().max(1);
        let rows = ordered.as_mut_slice().par_chunks_mut(width).zip(&self.order);
        rows.with_min_len(rows_per_task(width))
            .for_each(|(row, &i)| row.copy_from_slice(matrix.row(i)));
        ordered
    }
}
