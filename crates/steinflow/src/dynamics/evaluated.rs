//! Everything that is known about the particles at one instant: what a field works from.

use super::operator::{Base, Entry};
use super::{Auxiliary, Operator, Terms};
use crate::engine::Scratch;
use crate::field::Draw;
use crate::team::Team;
use crate::{MatRef, Matrix, Real};

/// The particles, M = A + C, and f at every particle.
#[derive(Clone, Copy, Debug)]
pub struct Evaluated<'a, T> {
    /// M = A + C, ready to be applied.
    pub operator: &'a Operator<T>,
    /// The particles z, `N × (blocks · dim)`.
    pub state: MatRef<'a, T>,
    /// The coefficient row c of every particle, `N × width`; column 0 holds ones.
    pub coefficients: MatRef<'a, T>,
    /// A number for every block that changes whenever the block's part of the state does: what was
    /// computed from a block alone holds until then. Never 0.
    pub versions: &'a [u64],
    /// The seed of the run, and the step: the address of what a field draws once for a whole step.
    pub address: Draw,
    /// Buffers for whatever a field computes on the way.
    pub scratch: &'a Scratch<T>,
    /// Who does the work.
    pub team: &'a dyn Team<T>,
    /// ∇log π(θ) in the target's own coordinates, `N × dim`.
    pub(crate) score: MatRef<'a, T>,
    /// What turns the score into that in the coordinates of the state, where they differ.
    pub(crate) scale: Option<&'a [T]>,
    /// The laws of the auxiliary blocks.
    pub(crate) auxiliaries: &'a [Auxiliary],
    /// ∇·(A + C) and ∇·C, shaped as the state, where A or C vary.
    pub(crate) divergences: Option<(MatRef<'a, T>, MatRef<'a, T>)>,
}

/// What a force is made of beside M∇log π(z): particles x that repel, with a rate for every block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repulsion<'a, T> {
    /// One for every block; 0 where nothing is taken.
    pub rates: &'a [T],
    /// The part of M that acts on it.
    pub terms: Terms,
    /// x of all particles, shaped as the state.
    pub points: &'a Matrix<T>,
}

impl<T: Real> Repulsion<'_, T> {
    /// The rate that a block of M reads.
    fn rate(&self, entry: &Entry<T>) -> T {
        if entry.is_in(self.terms) { self.rates[entry.column()] } else { T::zero() }
    }
}

impl<T: Real> Evaluated<'_, T> {
    /// Writes one block of ∇log π(zᵢ), the gradient of the augmented density.
    pub fn write_gradient(&self, i: usize, block: usize, out: &mut [T]) {
        let dim = self.operator.dim();
        match (block.checked_sub(1).map(|at| &self.auxiliaries[at]), self.scale) {
            (Some(law), _) => {
                let (mean, precision) = (T::of(law.mean), T::of(1.0 / law.variance));
                let z = &self.state.row(i)[block * dim..(block + 1) * dim];
                for (out, &z) in out.iter_mut().zip(z) {
                    *out = (mean - z) * precision;
                }
            }
            (None, Some(scale)) => {
                for ((out, &g), &s) in out.iter_mut().zip(self.score.row(i)).zip(scale) {
                    *out = g * s;
                }
            }
            (None, None) => out.copy_from_slice(self.score.row(i)),
        }
    }

    /// Writes f(zᵢ) of the blocks in `moving`, one after the other.
    pub fn write_drift(&self, i: usize, moving: &[usize], out: &mut [T]) {
        self.write_drift_with(i, moving, T::one(), out);
    }

    /// Writes (A + C)∇log π(zᵢ) + ∇·C of the blocks in `moving`: the drift without ∇·A.
    pub(crate) fn write_flow(&self, i: usize, moving: &[usize], out: &mut [T]) {
        let curl = self.divergences.map(|(_, curl)| curl.row(i));
        self.write_product(i, moving, curl, None, T::one(), out);
    }

    /// Writes f(zᵢ) with C and its divergence taken `curl` times.
    pub(crate) fn write_drift_with(&self, i: usize, moving: &[usize], curl: T, out: &mut [T]) {
        self.write_force_from(i, moving, None, curl, out);
    }

    /// Adds `scale` · ∇·C at zᵢ of the blocks in `moving`.
    pub(crate) fn add_curl_divergence(&self, i: usize, moving: &[usize], scale: T, out: &mut [T]) {
        let dim = self.operator.dim();
        let Some((_, curl)) = self.divergences else { return };
        for (&block, out) in moving.iter().zip(out.chunks_exact_mut(dim)) {
            for (out, &more) in out.iter_mut().zip(&curl.row(i)[block * dim..(block + 1) * dim]) {
                *out += scale * more;
            }
        }
    }

    /// Writes M applied to what repels, negated, and with it f(zᵢ) where it `drifts`:
    /// ∇·M + M(∇log π(zᵢ) − rate · xᵢ), with C taken `curl` times.
    pub(crate) fn write_force(
        &self,
        i: usize,
        moving: &[usize],
        drifts: bool,
        repulsion: Repulsion<'_, T>,
        curl: T,
        out: &mut [T],
    ) {
        if drifts {
            self.write_force_from(i, moving, Some(repulsion), curl, out);
        } else {
            self.write_repulsion(i, moving, repulsion, curl, out);
        }
    }

    fn write_force_from(
        &self,
        i: usize,
        moving: &[usize],
        repulsion: Option<Repulsion<'_, T>>,
        curl: T,
        out: &mut [T],
    ) {
        let divergence = self.divergences.map(|(divergence, _)| divergence.row(i));
        self.write_product(i, moving, divergence, repulsion, curl, out);
        if curl != T::one() {
            self.add_curl_divergence(i, moving, curl - T::one(), out);
        }
    }

    /// Writes −M(rate · xᵢ).
    fn write_repulsion(
        &self,
        i: usize,
        moving: &[usize],
        from: Repulsion<'_, T>,
        curl: T,
        out: &mut [T],
    ) {
        let dim = self.operator.dim();
        for (&row, out) in moving.iter().zip(out.chunks_exact_mut(dim)) {
            out.fill(T::zero());
            for entry in self.operator.entries_of(row) {
                let (rate, x) = (from.rate(entry), &from.points.row(i)[entry.column() * dim..]);
                let u = x[..dim].iter().map(|&x| -(rate * x));
                entry.write(
                    (self.coefficients.row(i), entry.weight(curl)),
                    u,
                    Base::Own,
                    None,
                    out,
                );
            }
        }
    }

    /// Writes base + M(∇log π(zᵢ) − rate · xᵢ). The gradient is not stored: it is made where M reads it.
    fn write_product(
        &self,
        i: usize,
        moving: &[usize],
        base: Option<&[T]>,
        repulsion: Option<Repulsion<'_, T>>,
        curl: T,
        out: &mut [T],
    ) {
        let (dim, c) = (self.operator.dim(), self.coefficients.row(i));
        for (&row, out) in moving.iter().zip(out.chunks_exact_mut(dim)) {
            let base = base.map(|base| &base[row * dim..(row + 1) * dim]);
            let mut base = base.map_or(Base::Nothing, Base::These);
            let entries = self.operator.entries_of(row);
            if entries.is_empty() {
                out.fill(T::zero());
            }
            for entry in entries {
                let columns = entry.column() * dim..(entry.column() + 1) * dim;
                let rate = repulsion.map_or(T::zero(), |repulsion| repulsion.rate(entry));
                // Where nothing repels, any finite x will do: the rate is 0.
                let z = &self.state.row(i)[columns.clone()];
                let x = repulsion.map_or(z, |repulsion| &repulsion.points.row(i)[columns]);
                let by = (c, entry.weight(curl));
                let law = entry.column().checked_sub(1).map(|at| &self.auxiliaries[at]);
                match (law, self.scale) {
                    (Some(law), _) => {
                        let (mean, precision) = (T::of(law.mean), T::of(1.0 / law.variance));
                        let u = z.iter().zip(x).map(|(&z, &x)| (mean - z) * precision - rate * x);
                        entry.write(by, u, base, None, out);
                    }
                    (None, Some(scale)) => {
                        let scores = self.score.row(i).iter().zip(scale);
                        let u = scores.zip(x).map(|((&g, &s), &x)| g * s - rate * x);
                        entry.write(by, u, base, None, out);
                    }
                    (None, None) => {
                        let u = self.score.row(i).iter().zip(x).map(|(&g, &x)| g - rate * x);
                        entry.write(by, u, base, None, out);
                    }
                }
                base = Base::Own;
            }
        }
    }

    /// ∇log π(z) of every particle, shaped as the state.
    pub fn gradient(&self) -> Matrix<T> {
        let dim = self.operator.dim();
        self.by_rows(|i, out| {
            for (block, out) in out.chunks_exact_mut(dim).enumerate() {
                self.write_gradient(i, block, out);
            }
        })
    }

    /// f(z) of every particle, shaped as the state.
    pub fn drift(&self) -> Matrix<T> {
        let blocks: Vec<usize> = (0..self.operator.blocks()).collect();
        self.by_rows(|i, out| self.write_drift(i, &blocks, out))
    }

    /// ∇·C at every particle, shaped as the state.
    pub fn curl_divergence(&self) -> Matrix<T> {
        self.by_rows(|i, out| {
            if let Some((_, curl)) = self.divergences {
                out.copy_from_slice(curl.row(i));
            }
        })
    }

    fn by_rows(&self, write: impl Fn(usize, &mut [T])) -> Matrix<T> {
        let mut matrix = Matrix::zeros(self.state.rows(), self.state.cols());
        for i in 0..matrix.rows() {
            write(i, matrix.row_mut(i));
        }
        matrix
    }
}
