//! Numbers as little-endian bytes, and back without trust.
//!
//! A length is believed only as far as there are bytes left, so that a damaged file can not ask for
//! more memory than it has bytes.

use std::io::{self, Write};

use steinflow::Real;

/// Why bytes are not what they should be; completes "the file …".
pub(super) type Damage = String;

/// Writes numbers.
pub(super) struct Pen<W>(pub(super) W);

impl<W: Write> Pen<W> {
    pub(super) fn count(&mut self, value: u64) -> io::Result<()> {
        self.0.write_all(&value.to_le_bytes())
    }

    pub(super) fn float(&mut self, value: f64) -> io::Result<()> {
        self.0.write_all(&value.to_le_bytes())
    }

    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        self.count(text.len() as u64)?;
        self.0.write_all(text.as_bytes())
    }

    pub(super) fn counts(&mut self, values: &[u64]) -> io::Result<()> {
        self.count(values.len() as u64)?;
        values.iter().try_for_each(|&value| self.count(value))
    }

    pub(super) fn floats(&mut self, values: &[f64]) -> io::Result<()> {
        self.count(values.len() as u64)?;
        values.iter().try_for_each(|&value| self.float(value))
    }

    /// Numbers in the run's own precision.
    pub(super) fn reals<T: Real>(&mut self, values: &[T]) -> io::Result<()> {
        self.count(values.len() as u64)?;
        for value in values {
            let wide = value.as_f64();
            if size_of::<T>() == 4 {
                // What was widened from f32 comes back to the same bits.
                self.0.write_all(&(wide as f32).to_le_bytes())?;
            } else {
                self.float(wide)?;
            }
        }
        Ok(())
    }
}

/// Reads numbers.
pub(super) struct Eye<'a>(pub(super) &'a [u8]);

impl<'a> Eye<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Damage> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| format!("ends {} bytes early", length - self.0.len()))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        Ok(self.take(N)?.try_into().expect("N bytes were taken"))
    }

    pub(super) fn count(&mut self) -> Result<u64, Damage> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn index(&mut self) -> Result<usize, Damage> {
        let count = self.count()?;
        usize::try_from(count).map_err(|_| format!("has the number {count} where a small one is"))
    }

    pub(super) fn float(&mut self) -> Result<f64, Damage> {
        self.array().map(f64::from_le_bytes)
    }

    /// How many entries of `size` bytes follow.
    pub(super) fn length(&mut self, size: usize) -> Result<usize, Damage> {
        let length = self.index()?;
        if length.checked_mul(size).is_none_or(|bytes| bytes > self.0.len()) {
            return Err(format!("announces {length} entries and has {} bytes left", self.0.len()));
        }
        Ok(length)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Damage> {
        let length = self.length(1)?;
        std::str::from_utf8(self.take(length)?).map_err(|_| "has text that is not UTF-8".to_owned())
    }

    pub(super) fn counts(&mut self) -> Result<Vec<u64>, Damage> {
        let length = self.length(8)?;
        (0..length).map(|_| self.count()).collect()
    }

    pub(super) fn floats(&mut self) -> Result<Vec<f64>, Damage> {
        let length = self.length(8)?;
        (0..length).map(|_| self.float()).collect()
    }

    pub(super) fn reals<T: Real>(&mut self) -> Result<Vec<T>, Damage> {
        let length = self.length(size_of::<T>())?;
        let number = |_| {
            if size_of::<T>() == 4 {
                Ok(T::of(f64::from(f32::from_le_bytes(self.array()?))))
            } else {
                self.float().map(T::of)
            }
        };
        (0..length).map(number).collect()
    }
}
