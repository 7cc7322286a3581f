//! Inputs that both sides read: raw little-endian `f32`, shapes by name.

use std::fs;
use std::path::Path;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use steinflow::Matrix;

use crate::Result;

/// Standard normal numbers times `scale`.
pub fn normal(rows: usize, cols: usize, scale: f32, seed: u64) -> Matrix<f32> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    Matrix::from_fn(rows, cols, |_, _| {
        let x: f32 = StandardNormal.sample(&mut generator);
        scale * x
    })
}

pub fn write(folder: &Path, name: &str, matrix: &Matrix<f32>) -> Result<()> {
    let bytes: Vec<u8> = matrix.as_slice().iter().flat_map(|x| x.to_le_bytes()).collect();
    let file = format!("{name}.{}x{}.f32", matrix.rows(), matrix.cols());
    Ok(fs::write(folder.join(file), bytes)?)
}

pub fn read(path: &Path) -> Result<Vec<f32>> {
    let bytes = fs::read(path)?;
    let (numbers, _) = bytes.as_chunks::<4>();
    Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}
