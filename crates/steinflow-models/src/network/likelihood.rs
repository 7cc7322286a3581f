//! What the outputs of a network say about a target: ℓ of some rows, and its derivatives by the outputs.

use steinflow::Real;

use super::{noise, simd};

/// How outputs become a density.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likelihood {
    /// y ~ N(f, 1/γ).
    Normal,
    /// y ~ N(f, e⁻ˢ/γ), with s from a second output.
    NormalByInput,
    /// P(y = k) = e^(f_k)/Σⱼ e^(f_j).
    Classes,
}

impl Likelihood {
    /// Replaces the outputs of some rows, which stand output after output, by c ∂ℓ/∂f, for `factor` = cγ and `scale`
    /// = c; what is beyond the rows becomes 0. Returns Σ eˢ(y − f)² and Σ s, or for classes 0 and 2Σ log P.
    pub(super) fn slopes<T: Real>(
        self,
        targets: &[T],
        outputs: &mut [T],
        rows: usize,
        (factor, scale): (T, T),
    ) -> (T, T) {
        match self {
            Self::Normal => {
                simd::residuals(targets, outputs, rows);
                (simd::scale_and_sum(factor, outputs).0, T::zero())
            }
            Self::NormalByInput => noise::slopes(targets, outputs, rows, factor, scale),
            Self::Classes => (T::zero(), softmax_slopes(targets, outputs, rows, scale)),
        }
    }
}

/// Replaces the outputs by c (1[y = k] − P(k)) and returns 2Σ log P(y).
fn softmax_slopes<T: Real>(targets: &[T], outputs: &mut [T], rows: usize, scale: T) -> T {
    let (width, mut sum) = (targets.len(), T::zero());
    for (i, y) in targets[..rows].iter().enumerate() {
        let seen = y.as_f64() as usize;
        let (top, total) = normaliser(outputs, width, i);
        sum += outputs[seen * width + i] - top - total.ln();
        for (k, output) in outputs[i..].iter_mut().step_by(width).enumerate() {
            let probability = (*output - top).exp() / total;
            *output = scale * if k == seen { T::one() - probability } else { -probability };
        }
    }
    for output in outputs.chunks_exact_mut(width) {
        output[rows..].fill(T::zero());
    }
    sum + sum
}

/// The largest output m of a row, and Σ e^(f − m), which is 1 at least.
fn normaliser<T: Real>(outputs: &[T], width: usize, row: usize) -> (T, T) {
    let own = || outputs[row..].iter().step_by(width).copied();
    let top = own().fold(T::neg_infinity(), |a, b| if b > a { b } else { a });
    (top, own().map(|f| (f - top).exp()).sum())
}

/// log P of every class of a row.
pub(super) fn log_probabilities<T: Real>(
    outputs: &[T],
    width: usize,
    row: usize,
) -> impl Iterator<Item = f64> {
    let (top, total) = normaliser(outputs, width, row);
    let log_total = top.as_f64() + total.as_f64().ln();
    outputs[row..].iter().step_by(width).map(move |f| f.as_f64() - log_total)
}
