//! Noise that depends on the input: a second output t(x) of the network makes the precision of a row γeˢ, with
//! s = L tanh(t/L), so that ℓ = ½(log γ + s − log 2π − γeˢ(y − f)²).

use steinflow::Real;

/// L: far from all data, where t is any number, precisions still differ by e^±L at most.
pub(super) const LARGEST: f64 = 6.0;

/// s of t, and ds/dt.
pub(super) fn log_factor<T: Real>(t: T) -> (T, T) {
    let bounded = (t / T::of(LARGEST)).tanh();
    (T::of(LARGEST) * bounded, T::one() - bounded * bounded)
}

/// Replaces f and t of some rows, which stand one after the other, by c ∂ℓ/∂f and c ∂ℓ/∂t, for `factor` = cγ
/// and `scale` = c; what is beyond the rows becomes 0. Returns Σ eˢ(y − f)² and Σ s.
pub(super) fn slopes<T: Real>(
    targets: &[T],
    outputs: &mut [T],
    rows: usize,
    factor: T,
    scale: T,
) -> (T, T) {
    let (f, t) = outputs.split_at_mut(targets.len());
    let (mut squares, mut factors) = (T::zero(), T::zero());
    for ((f, t), &y) in f[..rows].iter_mut().zip(&mut t[..rows]).zip(targets) {
        let ((s, slope), residual) = (log_factor(*t), y - *f);
        let weighted = s.exp() * residual;
        squares += weighted * residual;
        factors += s;
        *f = factor * weighted;
        *t = T::of(0.5) * (scale - factor * weighted * residual) * slope;
    }
    f[rows..].fill(T::zero());
    t[rows..].fill(T::zero());
    (squares, factors)
}
