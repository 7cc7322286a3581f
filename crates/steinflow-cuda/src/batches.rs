//! The minibatches of a run on the device: the library's own, sent some dozens at a time.

use steinflow::{Minibatch, Result};

use crate::device::{Buffer, Device};
use crate::launch::Argument;

/// Minibatches that are sent at once; those before them stay until the next are.
const SENT: u64 = 64;

/// A ring of row numbers.
pub(crate) struct Batches {
    seed: u64,
    /// Rows of the data, and of a minibatch.
    rows: usize,
    pub(crate) size: usize,
    ring: Buffer,
    /// What was sent to either half of the ring.
    sent: [Option<u64>; 2],
}

impl Batches {
    pub(crate) fn new(device: &Device, seed: u64, rows: usize, size: usize) -> Result<Self> {
        let ring = device.zeros(Self::bytes(size))?;
        Ok(Self { seed, rows, size, ring, sent: [None; 2] })
    }

    /// What a ring of minibatches of so many rows takes.
    pub(crate) fn bytes(size: usize) -> usize {
        2 * SENT as usize * size * 4
    }

    /// Minibatch number `number` of the run.
    pub(crate) fn draw(&self, number: u64) -> Minibatch {
        Minibatch::draw(self.seed, number, self.rows, self.size)
    }

    /// What the likelihood is multiplied by.
    pub(crate) fn scale(&self) -> f64 {
        self.rows as f64 / self.size as f64
    }

    /// The place of a minibatch in the ring, where it is sent if it is not there yet.
    pub(crate) fn place(&mut self, device: &Device, number: u64) -> Result<usize> {
        let (part, half) = (number / SENT, (number / SENT % 2) as usize);
        if self.sent[half] != Some(part) {
            let batches = (part * SENT..(part + 1) * SENT).map(|number| self.draw(number));
            let rows = batches.flat_map(|batch| batch.indices);
            let bytes: Vec<u8> = rows.flat_map(|row| (row as i32).to_ne_bytes()).collect();
            device.put_bytes_at(&bytes, half * bytes.len(), &mut self.ring)?;
            self.sent[half] = Some(part);
        }
        Ok((number % (2 * SENT)) as usize)
    }

    pub(crate) fn arg(&self) -> Argument {
        self.ring.arg()
    }
}
