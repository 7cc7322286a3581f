//! Laws of a single particle: score, divergence, A ⪰ 0, structured against dense.

use super::{LawBroken, agree, dense_matrices};
use crate::dynamics::{Dynamics, Evaluated, Structure};
use crate::field::Diffusion;
use crate::linalg::symmetric_eigen;
use crate::{LogDensity, MatRef, Matrix, System};

/// Where a central difference balances truncation against rounding: ε^(1/3).
const STEP: f64 = 6e-6;
/// What such a difference may be off by, relative to its size.
const TOLERANCE: f64 = 1e-6;

/// ∇log π equals the central difference of log π, coordinate by coordinate.
pub fn check_score(target: &impl LogDensity<f64>, theta: MatRef<'_, f64>) -> Result<(), LawBroken> {
    let (count, dim) = (theta.rows(), theta.cols());
    let mut score = Matrix::zeros(count, dim);
    target.evaluate(theta, None, &mut vec![0.0; count], score.as_mut())?;
    for j in 0..dim {
        let shifted = |sign: f64| -> Result<Vec<f64>, LawBroken> {
            let moved = Matrix::from_fn(count, dim, |i, k| {
                theta.row(i)[k] + if k == j { sign * step_at(theta.row(i)[k]) } else { 0.0 }
            });
            let mut values = vec![0.0; count];
            target.evaluate(
                moved.as_ref(),
                None,
                &mut values,
                Matrix::zeros(count, dim).as_mut(),
            )?;
            Ok(values)
        };
        let (up, down) = (shifted(1.0)?, shifted(-1.0)?);
        for i in 0..count {
            let slope = (up[i] - down[i]) / (2.0 * step_at(theta.row(i)[j]));
            let place = || format!("particle {i}, coordinate {j}");
            let scale = 1.0 + slope.abs() + up[i].abs();
            agree("score = ∇log π", place, score.row(i)[j], slope, TOLERANCE * scale)?;
        }
    }
    Ok(())
}

fn step_at(x: f64) -> f64 {
    STEP * x.abs().max(1.0)
}

/// What a dynamics computes at given states z.
fn with_evaluated<R>(
    target: &impl LogDensity<f64>,
    dynamics: &impl Dynamics<f64>,
    states: Matrix<f64>,
    look: impl FnOnce(&Structure, &Evaluated<'_, f64>) -> R,
) -> Result<R, LawBroken> {
    let dim = target.dim();
    let theta = Matrix::from_fn(states.rows(), dim, |i, j| states.row(i)[j]);
    let mut system = System::new(target, dynamics, Diffusion, &theta, 0)?;
    system.set_state(states)?;
    let structure = system.structure().clone();
    Ok(look(&structure, &system.evaluated()?))
}

/// The dynamics' divergences equal Σⱼ ∂Aᵢⱼ/∂zⱼ and Σⱼ ∂Cᵢⱼ/∂zⱼ by central differences of the dense
/// matrices.
///
/// `states` are rows z = (θ, r, …).
pub fn check_divergence(
    target: &impl LogDensity<f64>,
    dynamics: &impl Dynamics<f64>,
    states: MatRef<'_, f64>,
) -> Result<(), LawBroken> {
    let (count, size) = (states.rows(), states.cols());
    let zeros = || Matrix::<f64>::zeros(count, size);
    let own = Matrix::from_fn(count, size, |i, j| states.row(i)[j]);
    // f = M ∇log π + ∇·A + ∇·C, so ∇·A is what the drift has beyond the other two.
    let (found_a, found_c) = with_evaluated(target, dynamics, own, |structure, at| {
        let (mut found_a, mut found_c) = (zeros(), zeros());
        let (gradient, drift, curl_divergence) = (at.gradient(), at.drift(), at.curl_divergence());
        for i in 0..count {
            let (a, c) = dense_matrices(structure, &at.coefficients.row(i)[1..]);
            for row in 0..size {
                let product: f64 =
                    (0..size).map(|j| (a.row(row)[j] + c.row(row)[j]) * gradient.row(i)[j]).sum();
                let curl = curl_divergence.row(i)[row];
                found_c.row_mut(i)[row] = curl;
                found_a.row_mut(i)[row] = drift.row(i)[row] - product - curl;
            }
        }
        (found_a, found_c)
    })?;
    let (mut expected_a, mut expected_c) = (zeros(), zeros());
    for j in 0..size {
        for sign in [1.0, -1.0] {
            let moved = Matrix::from_fn(count, size, |i, k| {
                states.row(i)[k] + if k == j { sign * step_at(states.row(i)[k]) } else { 0.0 }
            });
            with_evaluated(target, dynamics, moved, |structure, at| {
                for i in 0..count {
                    let (a, c) = dense_matrices(structure, &at.coefficients.row(i)[1..]);
                    let weight = sign / (2.0 * step_at(states.row(i)[j]));
                    for row in 0..size {
                        expected_a.row_mut(i)[row] += weight * a.row(row)[j];
                        expected_c.row_mut(i)[row] += weight * c.row(row)[j];
                    }
                }
            })?;
        }
    }
    for (law, found, expected) in [
        ("diffusion divergence = Σⱼ ∂Aᵢⱼ/∂zⱼ", found_a, expected_a),
        ("curl divergence = Σⱼ ∂Cᵢⱼ/∂zⱼ", found_c, expected_c),
    ] {
        for i in 0..count {
            for row in 0..size {
                let (found, expected) = (found.row(i)[row], expected.row(i)[row]);
                let place = || format!("particle {i}, row {row}");
                agree(law, place, found, expected, TOLERANCE * (1.0 + expected.abs()))?;
            }
        }
    }
    Ok(())
}

/// A is symmetric positive semidefinite and C skew at every state.
pub fn check_structure(
    target: &impl LogDensity<f64>,
    dynamics: &impl Dynamics<f64>,
    states: MatRef<'_, f64>,
) -> Result<(), LawBroken> {
    let size = states.cols();
    let own = Matrix::from_fn(states.rows(), size, |i, j| states.row(i)[j]);
    with_evaluated(target, dynamics, own, |structure, at| {
        for i in 0..at.state.rows() {
            let (a, c) = dense_matrices(structure, &at.coefficients.row(i)[1..]);
            for row in 0..size {
                for column in 0..size {
                    let place = || format!("particle {i}, entry ({row}, {column})");
                    let (x, y) = (a.row(row)[column], a.row(column)[row]);
                    agree("A is symmetric", place, x, y, 1e-10 * (1.0 + y.abs()))?;
                    agree("C is skew", place, c.row(row)[column], -c.row(column)[row], 0.0)?;
                }
            }
            let (values, _) = symmetric_eigen(a.as_slice(), size);
            let rounding = 1e-10 * values[size - 1].abs();
            let place = || format!("particle {i}");
            agree("A ⪰ 0: lowest eigenvalue", place, values[0].min(0.0), 0.0, rounding)?;
        }
        Ok(())
    })?
}

/// √A as the diffusion uses it satisfies √A √Aᵀ = A, and M applied by structure equals M applied
/// as a dense matrix.
pub fn check_diffusion(
    target: &impl LogDensity<f64>,
    dynamics: &impl Dynamics<f64>,
    states: MatRef<'_, f64>,
) -> Result<(), LawBroken> {
    use crate::dynamics::Terms;
    let size = states.cols();
    let own = Matrix::from_fn(states.rows(), size, |i, j| states.row(i)[j]);
    with_evaluated(target, dynamics, own, |structure, at| {
        let blocks: Vec<usize> = (0..structure.blocks()).collect();
        for i in 0..at.state.rows() {
            let coefficients = at.coefficients.row(i);
            let (a, c) = dense_matrices(structure, &coefficients[1..]);
            let mut root = Matrix::zeros(size, size);
            for j in 0..size {
                let mut unit = vec![0.0; size];
                unit[j] = 1.0;
                let (mut column, mut product) = (vec![0.0; size], vec![0.0; size]);
                at.operator.apply_diffusion_root(coefficients, &unit, &blocks, 1.0, &mut column);
                at.operator.apply(coefficients, &unit, &blocks, Terms::All, 1.0, &mut product);
                for row in 0..size {
                    root.row_mut(row)[j] = column[row];
                    let expected = a.row(row)[j] + c.row(row)[j];
                    let place = || format!("particle {i}, entry ({row}, {j})");
                    agree("structured M = dense M", place, product[row], expected, 1e-12)?;
                }
            }
            for row in 0..size {
                for column in 0..size {
                    let found: f64 =
                        root.row(row).iter().zip(root.row(column)).map(|(x, y)| x * y).sum();
                    let expected = a.row(row)[column];
                    let place = || format!("particle {i}, entry ({row}, {column})");
                    agree("√A √Aᵀ = A", place, found, expected, 1e-10 * (1.0 + expected.abs()))?;
                }
            }
        }
        Ok(())
    })?
}
