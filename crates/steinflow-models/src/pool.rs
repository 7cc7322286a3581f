//! Buffers that outlive a call: taken by whoever needs one, given back warm.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// As many buffers as were ever in use at once.
pub(crate) struct Pool<B>(Mutex<Vec<B>>);

/// A buffer on loan; what it holds is left over from earlier work.
pub(crate) struct Loan<'a, B: Default> {
    pool: &'a Pool<B>,
    buffer: B,
}

impl<B: Default> Pool<B> {
    pub(crate) fn lend(&self) -> Loan<'_, B> {
        let idle = self.lock().pop();
        Loan { pool: self, buffer: idle.unwrap_or_default() }
    }
}

impl<B> Pool<B> {
    fn lock(&self) -> MutexGuard<'_, Vec<B>> {
        // A panic elsewhere leaves at worst one buffer fewer.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: Default> Deref for Loan<'_, B> {
    type Target = B;
    fn deref(&self) -> &B {
        &self.buffer
    }
}

impl<B: Default> DerefMut for Loan<'_, B> {
    fn deref_mut(&mut self) -> &mut B {
        &mut self.buffer
    }
}

impl<B: Default> Drop for Loan<'_, B> {
    fn drop(&mut self) {
        self.pool.lock().push(std::mem::take(&mut self.buffer));
    }
}

impl<B> Default for Pool<B> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

/// Buffers are no part of what a model is, so a copy starts with none.
impl<B> Clone for Pool<B> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<B> fmt::Debug for Pool<B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").field("idle", &self.lock().len()).finish()
    }
}
