//! The preconditioner's scale on the device, learnt there from the scores.

use cudarc::driver::CudaFunction;
use steinflow::precondition::RootMeanSquare;
use steinflow::run::Learnt;
use steinflow::{Real, Result};

use crate::device::{Buffer, Device, Source};
use crate::launch::Argument;

/// A rule and what it has learnt.
pub(crate) struct Preconditioner {
    rule: RootMeanSquare,
    learn: CudaFunction,
    moments: Buffer,
    /// s, a number for every coordinate of θ.
    pub(crate) scale: Buffer,
    weight: f64,
    seen: u64,
    dim: usize,
}

impl Preconditioner {
    pub(crate) fn new<T: Real>(
        device: &Device,
        source: &Source,
        rule: RootMeanSquare,
        dim: usize,
    ) -> Result<Self> {
        let mut own = Self {
            rule,
            learn: device.kernel(source, "learn")?,
            moments: device.zeros(dim * 8)?,
            scale: device.zeros(dim * size_of::<T>())?,
            weight: 0.0,
            seen: 0,
            dim,
        };
        let nothing = Learnt { moments: vec![0.0; dim], weight: 0.0, seen: 0 };
        own.recall::<T>(device, &nothing)?;
        Ok(own)
    }

    /// Counts one more gradient; the weight of all so far, unless enough is learnt.
    pub(crate) fn count(&mut self) -> Option<f64> {
        if self.rule.hold_after.is_some_and(|most| self.seen >= most) {
            return None;
        }
        self.seen += 1;
        self.weight = self.rule.decay * self.weight + 1.0;
        Some(self.weight)
    }

    /// Takes the scores of all particles into account.
    pub(crate) fn learn(
        &self,
        device: &Device,
        score: &Buffer,
        count: usize,
        moved: Argument,
    ) -> Result<()> {
        let arguments = [
            score.arg(),
            count.into(),
            self.dim.into(),
            Argument::Double(self.rule.decay),
            Argument::Double(self.rule.floor),
            self.moments.arg(),
            self.scale.arg(),
            moved,
        ];
        device.launch(&self.learn, (self.dim.div_ceil(32), 1), (32, 32), 0, &arguments)
    }

    pub(crate) fn learnt(&self, device: &Device) -> Result<Learnt> {
        let moments = device.get(&self.moments, self.dim)?;
        Ok(Learnt { moments, weight: self.weight, seen: self.seen })
    }

    /// Goes on from what was learnt before.
    pub(crate) fn recall<T: Real>(&mut self, device: &Device, learnt: &Learnt) -> Result<()> {
        device.put(&learnt.moments, &mut self.moments)?;
        (self.weight, self.seen) = (learnt.weight, learnt.seen);
        let scale = |moment: &f64| match learnt.seen {
            0 => T::one(),
            _ => T::of(((moment / learnt.weight).sqrt() + self.rule.floor).sqrt().recip()),
        };
        let scale: Vec<T> = learnt.moments.iter().map(scale).collect();
        device.put(&scale, &mut self.scale)
    }
}
