//! A joint accept step: between two draws of the auxiliary variables, all particles move on together, or none.
//!
//! A flow of N particles that preserves π⊗…⊗π conserves E = H − log |det ∂z/∂z₀|, with H = −Σ log π(zᵢ), and
//! not H. Steps of finite length do so roughly. A level is drawn as in slice sampling, E₀ + e with
//! e ~ Exp(1), and the stretch is refused as soon as E exceeds it. From the other end the same path has the
//! same places above the same level, so that π⊗…⊗π stays invariant; and no place on an accepted path
//! is out of proportion.

use rand::Rng as _;

use crate::arrays::{Arrays, FOREIGN};
use crate::flow::{Flow, Particles};
use crate::random::{Purpose, stream};
use crate::system::Saved;
use crate::{Real, Result};

/// Refused by more than this, steps are too long by far.
const HARD: f64 = 10.0;
/// Refused this often in a row, they are too long as well.
const OFTEN: u64 = 2;

/// The stretch under way, and how earlier ones fared.
pub(super) struct Joint<T> {
    seed: u64,
    /// Where it began.
    start: Option<Saved<T>>,
    /// H of every particle there.
    energies: Vec<f64>,
    /// e.
    level: f64,
    refused: bool,
    /// The refused ones since the last that was not.
    in_a_row: u64,
    begun: u64,
    refusals: u64,
}

impl<T: Real> Joint<T> {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            start: None,
            energies: Vec::new(),
            level: 0.0,
            refused: false,
            in_a_row: 0,
            begun: 0,
            refusals: 0,
        }
    }

    /// Whether the stretch under way was refused.
    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    /// The share of stretches that were not refused.
    pub(super) fn acceptance(&self) -> Option<f64> {
        (self.begun > 0).then(|| 1.0 - self.refusals as f64 / self.begun as f64)
    }

    /// Begins a stretch where the particles are, with the score up to date.
    pub(super) fn begin(&mut self, flow: &mut dyn Flow<T>, step: u64) -> Result<()> {
        if !self.refused {
            self.in_a_row = 0;
        }
        // 53 bits, above 0.
        let bits = stream(self.seed, Purpose::Accept, step, 0).next_u64() >> 11;
        self.level = -((bits + 1) as f64 / (1_u64 << 53) as f64).ln();
        self.refused = false;
        self.begun += 1;
        self.energies = energies(flow)?;
        flow.set_log_volume(0.0);
        self.start = Some(flow.save()?);
        Ok(())
    }

    /// By how much E is above the level.
    pub(super) fn excess(&self, flow: &dyn Flow<T>) -> Result<f64> {
        let pairs = energies(flow)?.into_iter().zip(&self.energies);
        Ok(pairs.map(|(now, then)| now - then).sum::<f64>() - flow.log_volume() - self.level)
    }

    /// Refuses the stretch where it has to; tells whether steps are too long.
    pub(super) fn judge(&mut self, excess: f64, flow: &mut dyn Flow<T>) -> Result<bool> {
        if excess <= 0.0 {
            return Ok(false);
        }
        if let Some(start) = &self.start {
            flow.restore(start)?;
        }
        self.refused = true;
        self.refusals += 1;
        self.in_a_row += 1;
        // NaN is hard too.
        let too_long = !(excess <= HARD) || self.in_a_row >= OFTEN;
        if too_long {
            self.in_a_row = 0;
        }
        Ok(too_long)
    }

    pub(super) fn save(&self, flow: &dyn Flow<T>, into: &mut Arrays) {
        let Some(start) = &self.start else { return };
        let wide = |values: &[T]| values.iter().map(|x| x.as_f64()).collect::<Vec<_>>();
        into.put("joint.state", wide(start.state.as_slice()));
        into.put("joint.score", wide(start.score.as_slice()));
        into.put("joint.log_density", wide(&start.log_density));
        let refused = f64::from(u8::from(self.refused));
        let counts = [self.in_a_row, self.begun, self.refusals].map(|count| count as f64);
        let [row, begun, refusals] = counts;
        into.put("joint", [self.level, flow.log_volume(), refused, row, begun, refusals]);
    }

    /// Takes up what [`Self::save`] gave, on a flow that is where it was then.
    pub(super) fn recall(&mut self, from: &Arrays, flow: &mut dyn Flow<T>) -> Result<()> {
        let numbers = from.get_exactly("joint", 6)?;
        let now = flow.save()?;
        let mut start = now.clone();
        let take = |name: &str, out: &mut [T]| {
            let values = from.get_exactly(name, out.len())?;
            out.iter_mut().zip(values).for_each(|(out, value)| *out = T::of(value));
            Ok(())
        };
        take("joint.state", start.state.as_mut_slice())?;
        take("joint.score", start.score.as_mut_slice())?;
        take("joint.log_density", &mut start.log_density)?;
        // Checks it, too.
        flow.restore(&start)?;
        self.energies = energies(flow)?;
        flow.restore(&now)?;
        self.start = Some(start);
        self.level = numbers[0];
        flow.set_log_volume(numbers[1]);
        self.refused = numbers[2] != 0.0;
        let count = |number: f64| crate::arrays::as_count(number).map_err(|_| FOREIGN);
        self.in_a_row = count(numbers[3])?;
        (self.begun, self.refusals) = (count(numbers[4])?, count(numbers[5])?);
        Ok(())
    }
}

/// −log π(zᵢ) of every particle, auxiliary variables included, up to a constant.
fn energies<T: Real>(flow: &dyn Flow<T>) -> Result<Vec<f64>> {
    let Particles { state, log_density, .. } = flow.particles()?;
    let dim = flow.structure().dim();
    let laws = flow.structure().auxiliaries();
    let energy = |(i, log_density): (usize, &T)| {
        let blocks = laws.iter().zip(state.row(i)[dim..].chunks_exact(dim));
        let kinetic = blocks.map(|(law, block)| {
            let squares: f64 = block.iter().map(|x| (x.as_f64() - law.mean).powi(2)).sum();
            squares / (2.0 * law.variance)
        });
        kinetic.sum::<f64>() - log_density.as_f64()
    };
    Ok(log_density.iter().enumerate().map(energy).collect())
}
