//! The prior N(0, I/λ) of weights, in one pass over them.

// A body that is not inlined into its dispatcher is compiled without the SIMD it was chosen for.
#![allow(clippy::inline_always)]

use pulp::{Arch, Simd, WithSimd};
use steinflow::Real;

/// score ← scale · score − λw; returns Σ w².
pub(crate) fn add_gaussian<T: Real>(scale: T, lambda: T, weights: &[T], score: &mut [T]) -> T {
    Arch::new().dispatch(AddGaussian { scale, lambda, weights, score })
}

struct AddGaussian<'a, T> {
    scale: T,
    lambda: T,
    weights: &'a [T],
    score: &'a mut [T],
}

impl<T: Real> WithSimd for AddGaussian<'_, T> {
    type Output = T;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> T {
        let (weights, last_weights) = T::registers::<S>(self.weights);
        let (scores, last_scores) = T::registers_mut::<S>(self.score);
        let (scale, lambda) = (T::splat(simd, self.scale), T::splat(simd, self.lambda));
        let mut sums = T::splat(simd, T::zero());
        for (&w, score) in weights.iter().zip(scores) {
            *score = T::subtract_product(simd, lambda, w, T::times(simd, scale, *score));
            sums = T::multiply_add(simd, w, w, sums);
        }
        let mut total = T::sum_of_lanes(simd, sums);
        for (&w, score) in last_weights.iter().zip(last_scores) {
            *score = self.scale * *score - self.lambda * w;
            total += w * w;
        }
        total
    }
}
