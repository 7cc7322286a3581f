//! Named arrays of numbers: what was learnt, and where a sampler is, as plain data for any file.

use crate::{Error, Matrix, Result};

/// Arrays by name, in the order in which they were put.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrays {
    arrays: Vec<(String, Vec<f64>)>,
}

impl Arrays {
    /// Arrays that were read back.
    pub fn new(arrays: Vec<(String, Vec<f64>)>) -> Self {
        Self { arrays }
    }

    /// All of them, to be written.
    pub fn as_slice(&self) -> &[(String, Vec<f64>)] {
        &self.arrays
    }

    pub(crate) fn put(&mut self, name: impl Into<String>, values: impl Into<Vec<f64>>) {
        self.arrays.push((name.into(), values.into()));
    }

    pub(crate) fn put_matrix(&mut self, name: impl Into<String>, matrix: &Matrix<f64>) {
        self.put(name, matrix.as_slice());
    }

    /// The array of this name; `Error::ForeignState` where there is none.
    pub(crate) fn get(&self, name: &str) -> Result<&[f64]> {
        let found = self.arrays.iter().find(|(known, _)| known == name);
        found.map(|(_, values)| values.as_slice()).ok_or(FOREIGN)
    }

    /// An array of known length.
    pub(crate) fn get_exactly(&self, name: &str, length: usize) -> Result<Vec<f64>> {
        let values = self.get(name)?;
        if values.len() == length { Ok(values.to_vec()) } else { Err(FOREIGN) }
    }

    /// A matrix of known shape.
    pub(crate) fn get_matrix(&self, name: &str, rows: usize, cols: usize) -> Result<Matrix<f64>> {
        Matrix::from_vec(self.get(name)?.to_vec(), rows, cols).ok_or(FOREIGN)
    }

    /// One number.
    pub(crate) fn get_number(&self, name: &str) -> Result<f64> {
        Ok(self.get_exactly(name, 1)?[0])
    }

    /// A count: whole and not negative.
    pub(crate) fn get_count(&self, name: &str) -> Result<u64> {
        as_count(self.get_number(name)?)
    }
}

/// A saved number that must be a count.
pub(crate) fn as_count(number: f64) -> Result<u64> {
    // Counts are exact below 2⁵³.
    let fits = (0.0..9e15).contains(&number) && number.fract() == 0.0;
    if fits { Ok(number as u64) } else { Err(FOREIGN) }
}

/// What all of these are part of.
pub(crate) const FOREIGN: Error = Error::ForeignState { whose: "the ensemble" };
