//! The loops over one row of data a lane, compiled for whatever SIMD the machine has.
//!
//! Plain loops inside a [`WithSimd`] body: the compiler vectorises them once per instruction set,
//! and the choice is made at run time. All sums have a fixed order.

// A body that is not inlined into its dispatcher is compiled without the SIMD it was chosen for.
#![allow(clippy::inline_always)]

use pulp::{Arch, Simd, WithSimd};
use steinflow::Real;

use super::Activation;

/// Running sums of a reduction: enough to fill several registers.
const LANES: usize = 32;

/// a·b + c, fused where the instruction set has it; a software fused multiply-add would be slow.
#[inline(always)]
fn multiply_add<T: Real, S: Simd>(a: T, b: T, c: T) -> T {
    if S::IS_SCALAR { a * b + c } else { a.mul_add(b, c) }
}

/// Σ of the running sums, by halves: side by side, and always in the same order.
#[inline(always)]
fn total<T: Real>(mut sums: [T; LANES]) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

/// z ← φ(z); `scratch` has room for as many numbers.
pub(super) fn activate<T: Real>(activation: Activation, z: &mut [T], scratch: &mut [T]) {
    match activation {
        Activation::Relu => Arch::new().dispatch(Rectify(z)),
        Activation::Tanh => {
            // tanh z = ±(1 − e)/(1 + e) with e = exp(−2|z|): exact to rounding in absolute terms.
            let decay = &mut scratch[..z.len()];
            Arch::new().dispatch(TwiceMagnitude { z, out: decay });
            T::exp_of_negated(decay);
            Arch::new().dispatch(TanhFromDecay { z, decay });
        }
    }
}

struct Rectify<'a, T>(&'a mut [T]);

impl<T: Real> WithSimd for Rectify<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for z in self.0.iter_mut() {
            *z = if *z > T::zero() { *z } else { T::zero() };
        }
    }
}

struct TwiceMagnitude<'a, T> {
    z: &'a [T],
    out: &'a mut [T],
}

impl<T: Real> WithSimd for TwiceMagnitude<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (out, &z) in self.out.iter_mut().zip(self.z) {
            let magnitude = z.abs();
            *out = magnitude + magnitude;
        }
    }
}

struct TanhFromDecay<'a, T> {
    z: &'a mut [T],
    decay: &'a [T],
}

impl<T: Real> WithSimd for TanhFromDecay<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (z, &decay) in self.z.iter_mut().zip(self.decay) {
            let magnitude = (T::one() - decay) / (T::one() + decay);
            *z = if *z < T::zero() { -magnitude } else { magnitude };
        }
    }
}

/// φ′(z) from a = φ(z).
#[inline(always)]
fn slope<T: Real, S: Simd>(activation: Activation, a: T) -> T {
    match activation {
        Activation::Relu => {
            if a > T::zero() {
                T::one()
            } else {
                T::zero()
            }
        }
        Activation::Tanh => multiply_add::<T, S>(-a, a, T::one()),
    }
}

/// f = b + Σₖ wₖ aₖ for every row of data.
pub(super) fn output<T: Real>(weights: &[T], bias: T, a: &[T], f: &mut [T]) {
    f.fill(bias);
    Arch::new().dispatch(Output { weights, a, f });
}

struct Output<'a, T> {
    weights: &'a [T],
    a: &'a [T],
    f: &'a mut [T],
}

impl<T: Real> WithSimd for Output<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let width = self.f.len();
        for (&weight, a) in self.weights.iter().zip(self.a.chunks_exact(width)) {
            for (f, &a) in self.f.iter_mut().zip(a) {
                *f = multiply_add::<T, S>(weight, a, *f);
            }
        }
    }
}

/// f ← c(y − f), the derivative of the log likelihood; returns Σ (y − f)².
pub(super) fn residuals<T: Real>(targets: &[T], factor: T, f: &mut [T]) -> T {
    Arch::new().dispatch(Residuals { targets, factor, f })
}

struct Residuals<'a, T> {
    targets: &'a [T],
    factor: T,
    f: &'a mut [T],
}

impl<T: Real> WithSimd for Residuals<'_, T> {
    type Output = T;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> T {
        let mut sums = [T::zero(); LANES];
        for (f, y) in self.f.chunks_mut(LANES).zip(self.targets.chunks(LANES)) {
            for ((f, &y), sum) in f.iter_mut().zip(y).zip(&mut sums) {
                let residual = y - *f;
                *sum = multiply_add::<T, S>(residual, residual, *sum);
                *f = self.factor * residual;
            }
        }
        total(sums)
    }
}

/// The output layer backwards: adds Σ δaₖ to ∂/∂wₖ and replaces aₖ by wₖ δ φ′, the derivative with
/// respect to what the unit was given, whose sum is added to the unit's ∂/∂b.
pub(super) fn output_backward<T: Real>(
    activation: Activation,
    delta: &[T],
    weights: &[T],
    a: &mut [T],
    weight_score: &mut [T],
    bias_score: &mut [T],
) {
    Arch::new().dispatch(OutputBackward {
        activation,
        delta,
        weights,
        a,
        weight_score,
        bias_score,
    });
}

struct OutputBackward<'a, T> {
    activation: Activation,
    delta: &'a [T],
    weights: &'a [T],
    a: &'a mut [T],
    weight_score: &'a mut [T],
    bias_score: &'a mut [T],
}

impl<T: Real> WithSimd for OutputBackward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let units = self.weights.iter().zip(self.a.chunks_exact_mut(self.delta.len()));
        let scores = self.weight_score.iter_mut().zip(self.bias_score);
        for ((&weight, a), (weight_score, bias_score)) in units.zip(scores) {
            let (mut products, mut sums) = ([T::zero(); LANES], [T::zero(); LANES]);
            for (a, delta) in a.chunks_mut(LANES).zip(self.delta.chunks(LANES)) {
                for (lane, (a, &delta)) in a.iter_mut().zip(delta).enumerate() {
                    products[lane] = multiply_add::<T, S>(*a, delta, products[lane]);
                    *a = weight * delta * slope::<T, S>(self.activation, *a);
                    sums[lane] += *a;
                }
            }
            *weight_score += total(products);
            *bias_score += total(sums);
        }
    }
}

/// Adds Σ δaₖ to every score: the output layer where the inputs themselves are its units.
pub(super) fn add_products<T: Real>(delta: &[T], a: &[T], scores: &mut [T]) {
    Arch::new().dispatch(AddProducts { delta, a, scores });
}

struct AddProducts<'a, T> {
    delta: &'a [T],
    a: &'a [T],
    scores: &'a mut [T],
}

impl<T: Real> WithSimd for AddProducts<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (a, score) in self.a.chunks_exact(self.delta.len()).zip(self.scores) {
            let mut sums = [T::zero(); LANES];
            for (a, delta) in a.chunks(LANES).zip(self.delta.chunks(LANES)) {
                for ((&a, &delta), sum) in a.iter().zip(delta).zip(&mut sums) {
                    *sum = multiply_add::<T, S>(a, delta, *sum);
                }
            }
            *score += total(sums);
        }
    }
}

/// aₖ ← φ′ · derivativeₖ, whose sum is added to the unit's ∂/∂b.
pub(super) fn hidden_backward<T: Real>(
    activation: Activation,
    derivative: &[T],
    a: &mut [T],
    bias_score: &mut [T],
) {
    Arch::new().dispatch(HiddenBackward { activation, derivative, a, bias_score });
}

struct HiddenBackward<'a, T> {
    activation: Activation,
    derivative: &'a [T],
    a: &'a mut [T],
    bias_score: &'a mut [T],
}

impl<T: Real> WithSimd for HiddenBackward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let width = self.a.len() / self.bias_score.len();
        let units = self.a.chunks_exact_mut(width).zip(self.derivative.chunks_exact(width));
        for ((a, derivative), bias_score) in units.zip(self.bias_score) {
            let mut sums = [T::zero(); LANES];
            for (a, derivative) in a.chunks_mut(LANES).zip(derivative.chunks(LANES)) {
                for ((a, &derivative), sum) in a.iter_mut().zip(derivative).zip(&mut sums) {
                    *a = derivative * slope::<T, S>(self.activation, *a);
                    *sum += *a;
                }
            }
            *bias_score += total(sums);
        }
    }
}

/// score ← score − λw; returns Σ w².
pub(super) fn shrink<T: Real>(lambda: T, weights: &[T], score: &mut [T]) -> T {
    Arch::new().dispatch(Shrink { lambda, weights, score })
}

struct Shrink<'a, T> {
    lambda: T,
    weights: &'a [T],
    score: &'a mut [T],
}

impl<T: Real> WithSimd for Shrink<'_, T> {
    type Output = T;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> T {
        let mut sums = [T::zero(); LANES];
        for (w, score) in self.weights.chunks(LANES).zip(self.score.chunks_mut(LANES)) {
            for ((&w, score), sum) in w.iter().zip(score).zip(&mut sums) {
                *score = multiply_add::<T, S>(-self.lambda, w, *score);
                *sum = multiply_add::<T, S>(w, w, *sum);
            }
        }
        total(sums)
    }
}
