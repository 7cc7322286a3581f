//! A buffer that begins at a cache line, so that no register's worth of numbers straddles two.

use steinflow::Real;

const CACHE_LINE: usize = 64;

/// Grows to the largest slice that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Aligned<T>(Vec<T>);

impl<T> Default for Aligned<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Real> Aligned<T> {
    /// Makes room for `len` numbers; what they are is left over from earlier work.
    pub(super) fn reserve(&mut self, len: usize) {
        let with_offset = len + CACHE_LINE / size_of::<T>();
        if self.0.len() < with_offset {
            self.0.resize(with_offset, T::zero());
        }
    }

    /// The first `len` numbers that there is room for.
    pub(super) fn first(&self, len: usize) -> &[T] {
        let offset = self.offset();
        &self.0[offset..offset + len]
    }

    /// The first `len` numbers that there is room for, to change.
    pub(super) fn first_mut(&mut self, len: usize) -> &mut [T] {
        let offset = self.offset();
        &mut self.0[offset..offset + len]
    }

    /// Numbers before the first cache line; wrong at worst for speed, never for the answer.
    fn offset(&self) -> usize {
        self.0.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE / size_of::<T>())
    }
}
