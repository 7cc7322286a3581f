//! How many directions a set of particles spans.

use rayon::prelude::*;

use crate::{MatRef, Real};

/// The effective number of directions that particles vary in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectionsSpanned {
    /// (tr R)²/tr R² of the particles' correlation matrix R: d when its eigenvalues are equal, 1 when
    /// all coordinates move as one.
    pub found: f64,
    /// What as many independent draws with uncorrelated coordinates would have: N particles span at
    /// most N − 1 directions.
    pub if_uncorrelated: f64,
}

/// The effective degrees of freedom of the rows of `particles`; coordinates that do not vary are left
/// out.
pub fn directions_spanned<T: Real>(particles: MatRef<'_, T>) -> DirectionsSpanned {
    let (count, dim) = (particles.rows(), particles.cols());
    let n = count as f64;
    let mut columns = Vec::with_capacity(dim);
    for j in 0..dim {
        let mean = (0..count).map(|i| particles.row(i)[j].as_f64()).sum::<f64>() / n;
        let square: f64 = (0..count).map(|i| (particles.row(i)[j].as_f64() - mean).powi(2)).sum();
        if square > 0.0 {
            columns.push((j, mean, square.sqrt().recip()));
        }
    }
    let standard = |i: usize| -> Vec<f64> {
        let row = particles.row(i);
        columns.iter().map(|&(j, mean, scale)| (row[j].as_f64() - mean) * scale).collect()
    };
    let rows: Vec<Vec<f64>> = (0..count).map(standard).collect();
    // tr R² = Σ (xᵢ·xⱼ)², without R: there may be more coordinates than particles.
    let squares: Vec<f64> = rows
        .par_iter()
        .map(|a| {
            let with = |b: &Vec<f64>| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>().powi(2);
            rows.iter().map(with).sum::<f64>()
        })
        .collect();
    let varying = columns.len() as f64;
    DirectionsSpanned {
        found: varying * varying / squares.iter().sum::<f64>(),
        if_uncorrelated: varying / (1.0 + (varying - 1.0) / (n - 1.0)),
    }
}
