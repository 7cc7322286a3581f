//! Matrices that are used again: a step takes its buffers from here and gives them back, so that
//! after the first few steps nothing is allocated.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use super::cloud::Cloud;
use crate::{Matrix, Real};

/// Buffers at rest.
#[derive(Debug)]
pub struct Scratch<T> {
    free: Mutex<Vec<Vec<T>>>,
    cloud: Mutex<Option<Cloud<T>>>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self { free: Mutex::new(Vec::new()), cloud: Mutex::new(None) }
    }
}

impl<T: Real> Scratch<T> {
    /// A matrix to write to: its entries are whatever was there before.
    ///
    /// ```
    /// let scratch = steinflow::engine::Scratch::<f64>::default();
    /// let mut matrix = scratch.matrix(3, 2);
    /// matrix.row_mut(1).fill(1.0);
    /// assert_eq!((matrix.rows(), matrix.row(1)), (3, &[1.0, 1.0][..]));
    /// ```
    pub fn matrix(&self, rows: usize, cols: usize) -> Borrowed<'_, T> {
        let size = rows * cols;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        // The smallest that is large enough, or else the largest, to grow.
        let fitting = (0..free.len())
            .filter(|&i| free[i].capacity() >= size)
            .min_by_key(|&i| free[i].capacity())
            .or_else(|| (0..free.len()).max_by_key(|&i| free[i].capacity()));
        let mut data = fitting.map(|i| free.swap_remove(i)).unwrap_or_default();
        drop(free);
        data.resize(size, T::zero());
        let matrix = Matrix::from_vec(data, rows, cols).expect("resized to fit");
        Borrowed { matrix, home: self }
    }

    /// What is known of particles of this shape; it keeps what it learns for the next who asks.
    pub(crate) fn cloud(&self, count: usize, blocks: usize, dim: usize) -> BorrowedCloud<'_, T> {
        let kept = self.cloud.lock().unwrap_or_else(PoisonError::into_inner).take();
        let kept = kept.filter(|cloud| cloud.has_shape(count, blocks, dim));
        let cloud = kept.unwrap_or_else(|| Cloud::new(count, blocks, dim));
        BorrowedCloud { cloud: Some(cloud), home: self }
    }
}

/// A [`Cloud`] that goes back to its [`Scratch`] when it is dropped.
#[derive(Debug)]
pub(crate) struct BorrowedCloud<'a, T: Real> {
    cloud: Option<Cloud<T>>,
    home: &'a Scratch<T>,
}

impl<T: Real> Deref for BorrowedCloud<'_, T> {
    type Target = Cloud<T>;

    fn deref(&self) -> &Cloud<T> {
        self.cloud.as_ref().expect("there until it is dropped")
    }
}

impl<T: Real> DerefMut for BorrowedCloud<'_, T> {
    fn deref_mut(&mut self) -> &mut Cloud<T> {
        self.cloud.as_mut().expect("there until it is dropped")
    }
}

impl<T: Real> Drop for BorrowedCloud<'_, T> {
    fn drop(&mut self) {
        *self.home.cloud.lock().unwrap_or_else(PoisonError::into_inner) = self.cloud.take();
    }
}

/// A matrix that goes back to its [`Scratch`] when it is dropped.
#[derive(Debug)]
pub struct Borrowed<'a, T: Real> {
    matrix: Matrix<T>,
    home: &'a Scratch<T>,
}

impl<T: Real> Deref for Borrowed<'_, T> {
    type Target = Matrix<T>;

    fn deref(&self) -> &Matrix<T> {
        &self.matrix
    }
}

impl<T: Real> DerefMut for Borrowed<'_, T> {
    fn deref_mut(&mut self) -> &mut Matrix<T> {
        &mut self.matrix
    }
}

impl<T: Real> Drop for Borrowed<'_, T> {
    fn drop(&mut self) {
        let matrix = std::mem::replace(&mut self.matrix, Matrix::zeros(0, 0));
        let mut free = self.home.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(matrix.into_vec());
    }
}
