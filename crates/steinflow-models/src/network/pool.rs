//! Buffers that outlive a call: taken by whoever needs one, given back warm.

use std::fmt;
use std::sync::{Mutex, PoisonError};

/// As many buffers as were ever in use at once.
pub(super) struct Pool<B>(Mutex<Vec<B>>);

impl<B: Default> Pool<B> {
    /// Lends a buffer; what it holds is left over from earlier work.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut B) -> R) -> R {
        let idle = self.lock().pop();
        let mut buffer = idle.unwrap_or_default();
        let result = work(&mut buffer);
        self.lock().push(buffer);
        result
    }
}

impl<B> Pool<B> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<B>> {
        // A panic elsewhere leaves at worst one buffer fewer.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
