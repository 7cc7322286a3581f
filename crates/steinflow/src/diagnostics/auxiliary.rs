//! Auxiliary variables against the Gaussians that they must have whatever the target is: free evidence
//! of convergence.

use crate::dynamics::{Auxiliary, Structure};
use crate::{MatRef, Real};

/// One auxiliary block, all of its coordinates together.
#[derive(Clone, Debug, PartialEq)]
pub struct AuxiliaryMarginal {
    /// The block's name: `r`, `xi`, …
    pub name: String,
    /// Mean of (x − mean)/sd over particles and coordinates; 0 at rest.
    pub mean: f64,
    /// Mean of ((x − mean)/sd)²; 1 at rest.
    pub square: f64,
    /// Numbers that the means are over.
    pub count: usize,
}

/// The marginals of all auxiliary blocks of states z = (θ, r, …), one a row.
pub fn auxiliary_marginals<T: Real>(
    states: MatRef<'_, T>,
    structure: &Structure,
) -> Vec<AuxiliaryMarginal> {
    let dim = structure.dim();
    let of = |(block, &Auxiliary { mean, variance, name }): (usize, &Auxiliary)| {
        let (mut sum, mut squares) = (0.0, 0.0);
        for i in 0..states.rows() {
            for x in &states.row(i)[block * dim..(block + 1) * dim] {
                let z = (x.as_f64() - mean) / variance.sqrt();
                sum += z;
                squares += z * z;
            }
        }
        let count = states.rows() * dim;
        let name = name.to_owned();
        AuxiliaryMarginal { name, mean: sum / count as f64, square: squares / count as f64, count }
    };
    (1..).zip(structure.auxiliaries()).map(of).collect()
}
