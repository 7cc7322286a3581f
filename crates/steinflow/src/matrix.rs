//! Row-major matrices: a particle is a row, and a row is a slice.

use crate::Real;

/// An owned `rows × cols` matrix, contiguous by rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<T> {
    data: Vec<T>,
    rows: usize,
    cols: usize,
}

/// A borrowed matrix, contiguous by rows.
#[derive(Clone, Copy, Debug)]
pub struct MatRef<'a, T> {
    data: &'a [T],
    rows: usize,
    cols: usize,
}

/// A mutably borrowed matrix, contiguous by rows.
#[derive(Debug)]
pub struct MatMut<'a, T> {
    data: &'a mut [T],
    rows: usize,
    cols: usize,
}

impl<T: Real> Matrix<T> {
    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { data: vec![T::zero(); rows * cols], rows, cols }
    }

    /// A matrix whose entry `(i, j)` is `entry(i, j)`.
    ///
    /// ```
    /// let identity = steinflow::Matrix::from_fn(2, 2, |i, j| if i == j { 1.0 } else { 0.0 });
    /// assert_eq!(identity.row(1), [0.0, 1.0]);
    /// ```
    pub fn from_fn(rows: usize, cols: usize, mut entry: impl FnMut(usize, usize) -> T) -> Self {
        let mut data = Vec::with_capacity(rows * cols);
        for i in 0..rows {
            for j in 0..cols {
                data.push(entry(i, j));
            }
        }
        Self { data, rows, cols }
    }

    /// The same entries in another precision.
    pub fn cast<U: Real>(&self) -> Matrix<U> {
        Matrix {
            data: self.data.iter().map(|&x| U::of(x.as_f64())).collect(),
            rows: self.rows,
            cols: self.cols,
        }
    }
}

impl<T> Matrix<T> {
    /// Takes entries that are already in row order; `None` when `data` does not hold `rows · cols`.
    pub fn from_vec(data: Vec<T>, rows: usize, cols: usize) -> Option<Self> {
        (rows.checked_mul(cols) == Some(data.len())).then_some(Self { data, rows, cols })
    }
    /// The entries in row order.
    pub fn into_vec(self) -> Vec<T> {
        self.data
    }
    /// Number of rows (particles).
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// Number of columns (coordinates).
    pub fn cols(&self) -> usize {
        self.cols
    }
    /// Row `i`.
    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }
    /// Row `i`, to change.
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }
    /// All entries in row order.
    pub fn as_slice(&self) -> &[T] {
        &self.data
    }
    /// All entries in row order, to change.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.data
    }
    /// A view of the whole.
    pub fn as_ref(&self) -> MatRef<'_, T> {
        MatRef { data: &self.data, rows: self.rows, cols: self.cols }
    }
    /// A view of the whole, to change.
    pub fn as_mut(&mut self) -> MatMut<'_, T> {
        MatMut { data: &mut self.data, rows: self.rows, cols: self.cols }
    }
}

impl<'a, T> MatRef<'a, T> {
    /// Views a slice in row order; `None` when it does not hold `rows · cols` entries.
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Option<Self> {
        (rows.checked_mul(cols) == Some(data.len())).then_some(Self { data, rows, cols })
    }
    /// Number of rows (particles).
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// Number of columns (coordinates).
    pub fn cols(&self) -> usize {
        self.cols
    }
    /// Row `i`.
    pub fn row(&self, i: usize) -> &'a [T] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }
    /// All entries in row order.
    pub fn as_slice(&self) -> &'a [T] {
        self.data
    }
    /// A matrix of its own.
    pub fn copied(&self) -> Matrix<T>
    where
        T: Copy,
    {
        Matrix { data: self.data.to_vec(), rows: self.rows, cols: self.cols }
    }
}

impl<'a, T> MatMut<'a, T> {
    /// Views a slice in row order; `None` when it does not hold `rows · cols` entries.
    pub fn new(data: &'a mut [T], rows: usize, cols: usize) -> Option<Self> {
        (rows.checked_mul(cols) == Some(data.len())).then_some(Self { data, rows, cols })
    }
    /// Number of rows (particles).
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// Number of columns (coordinates).
    pub fn cols(&self) -> usize {
        self.cols
    }
    /// Row `i`, to change.
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }
    /// All entries in row order, to change.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.data
    }
}
