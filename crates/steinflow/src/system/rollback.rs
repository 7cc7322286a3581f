//! Going back: what a system can be put back to, after a bad step or in another process.

use super::{System, own};
use crate::precondition::Learnt;
use crate::{Error, MatMut, MatRef, Matrix, Real, Result};

/// Particles as they were between two steps, with all that is known about them.
///
/// Noise and minibatches come from counters, so there is no generator to save.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved<T> {
    /// z = (θ, r, …), `N × (blocks · dim)`.
    pub state: Matrix<T>,
    /// log π(θ) of every particle.
    pub log_density: Vec<T>,
    /// ∇log π(θ), `N × dim`.
    pub score: Matrix<T>,
    /// Minibatches drawn so far: the address of the present one.
    pub batches: u64,
    /// What the preconditioner has learnt, if there is one.
    pub preconditioner: Option<Learnt>,
    /// What the field remembers: [`crate::field::Field::memory`].
    pub field: Vec<f64>,
}

impl<T: Real> Saved<T> {
    /// Checks that this is of `particles` rows of `blocks` blocks of `dim` finite numbers.
    pub fn check(&self, particles: usize, dim: usize, blocks: usize) -> Result<()> {
        let shape = |matrix: &Matrix<T>| (matrix.rows(), matrix.cols());
        let found = (shape(&self.state), shape(&self.score), self.log_density.len());
        if found != ((particles, blocks * dim), (particles, dim), particles) {
            let ((n, columns), (scores, coordinates), densities) = found;
            return Err(Error::Shape {
                what: "the saved state",
                found: format!(
                    "{n} × {columns} numbers, {scores} × {coordinates} scores and {densities} log \
                     densities"
                ),
                expected: format!(
                    "{particles} × {}, {particles} × {dim} and {particles}: go on with the target, \
                     the dynamics and the particles that it was saved with",
                    blocks * dim
                ),
            });
        }
        let numbers = self.state.as_slice().iter().chain(self.score.as_slice());
        if !numbers.chain(&self.log_density).all(|x| x.is_finite()) {
            return Err(Error::ForeignState { whose: "the particles, which must be finite" });
        }
        match &self.preconditioner {
            Some(learnt) if !learnt.fits(dim) => {
                Err(Error::ForeignState { whose: "the preconditioner" })
            }
            _ => Ok(()),
        }
    }
}

impl<T: Real> System<'_, T> {
    /// Whether freezing this particle would leave any that move.
    pub(crate) fn can_freeze(&self, particle: usize) -> bool {
        let others = self.frozen.iter().enumerate().filter(|&(i, _)| i != particle);
        !self.frozen[particle] && others.into_iter().any(|(_, frozen)| !frozen)
    }

    /// Keeps a particle where it is from now on; the others still feel it.
    pub(crate) fn freeze(&mut self, particle: usize) {
        self.frozen[particle] = true;
    }

    /// The particles that were frozen.
    pub fn frozen(&self) -> Vec<usize> {
        (0..self.frozen.len()).filter(|&i| self.frozen[i]).collect()
    }

    /// A copy of all that a step can spoil; the score must be current.
    pub(crate) fn save(&self) -> Saved<T> {
        let (preconditioner, field) = self.memory();
        Saved {
            state: Matrix::clone(&self.at.state),
            log_density: self.at.log_density.clone(),
            score: self.at.score.clone(),
            batches: self.at.batches,
            preconditioner,
            field,
        }
    }

    /// Goes back to what was saved, by this system or by one like it.
    pub(crate) fn restore(&mut self, saved: &Saved<T>) -> Result<()> {
        saved.check(self.frozen.len(), self.structure.dim(), self.structure.blocks())?;
        self.recall(saved.preconditioner.as_ref(), &saved.field)?;
        own(&mut self.at.state).clone_from(&saved.state);
        self.at.log_density.clone_from(&saved.log_density);
        self.at.score.clone_from(&saved.score);
        self.at.batches = saved.batches;
        self.draw_minibatch();
        self.versions.changed_everywhere();
        self.score_of = Some(self.score_key());
        Ok(())
    }

    /// What the target said of the particles when it was last asked.
    pub(crate) fn last_answer(&self) -> (&[T], MatRef<'_, T>) {
        (&self.at.log_density, self.at.score.as_ref())
    }

    /// Asks the target about the particles, on the present minibatch; the system keeps its own answer.
    pub(crate) fn ask(&self, log_density: &mut [T], score: MatMut<'_, T>) -> Result<()> {
        let state = &self.at.state;
        let dim = self.structure.dim();
        let theta = Matrix::from_fn(state.rows(), dim, |i, j| state.row(i)[j]);
        self.target.evaluate(theta.as_ref(), self.minibatch.as_ref(), log_density, score)
    }

    /// Mean |v|² of every block as it last moved.
    pub(crate) fn squared_speeds(&self) -> &[f64] {
        &self.squared_speeds
    }

    /// Takes up what is counted beside the particles, in a run that another process began.
    pub(crate) fn take_up(
        &mut self,
        gradients: u64,
        frozen: &[usize],
        speeds: &[f64],
    ) -> Result<()> {
        let last = frozen.last().is_some_and(|&last| last >= self.frozen.len());
        let in_order = frozen.windows(2).all(|pair| pair[0] < pair[1]);
        if last || !in_order || frozen.len() == self.frozen.len() {
            return Err(Error::ForeignState { whose: "the frozen particles" });
        }
        if speeds.len() != self.squared_speeds.len() || !speeds.iter().all(|v| *v >= 0.0) {
            return Err(Error::ForeignState { whose: "the blocks of the state" });
        }
        self.gradients = gradients;
        for &particle in frozen {
            self.freeze(particle);
        }
        self.squared_speeds.copy_from_slice(speeds);
        // A field may have taken up numbers that it can not work with.
        self.field.validate(self.structure.blocks(), self.frozen.len())
    }
}
