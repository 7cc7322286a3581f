//! The loops over the activations of a tile, a row of data a lane, with whatever SIMD the machine has.
//!
//! Tiles are multiples of [`LANES`] wide, so that a unit's numbers fill whole registers on any machine.

// A body that is not inlined into its dispatcher is compiled without the SIMD it was chosen for.
#![allow(clippy::inline_always)]

use std::marker::PhantomData;

use pulp::{Arch, Simd, WithSimd};
use steinflow::Real;

use super::Activation;

/// The widest register holds 16 numbers.
pub(super) const LANES: usize = 16;

/// φ′, known when a loop is compiled so that it need not ask.
trait Slope {
    /// x φ′(z) from a = φ(z).
    fn times<T: Real, S: Simd>(simd: S, x: T::Vector<S>, a: T::Vector<S>) -> T::Vector<S>;
}

struct OfRelu;

impl Slope for OfRelu {
    #[inline(always)]
    fn times<T: Real, S: Simd>(simd: S, x: T::Vector<S>, a: T::Vector<S>) -> T::Vector<S> {
        T::where_positive(simd, a, x)
    }
}

struct OfTanh;

impl Slope for OfTanh {
    #[inline(always)]
    fn times<T: Real, S: Simd>(simd: S, x: T::Vector<S>, a: T::Vector<S>) -> T::Vector<S> {
        T::subtract_product(simd, T::times(simd, a, a), x, x)
    }
}

/// A loop that is compiled once for every slope.
struct With<P, L>(L, PhantomData<P>);

fn dispatch<L>(activation: Activation, work: L)
where
    With<OfRelu, L>: WithSimd<Output = ()>,
    With<OfTanh, L>: WithSimd<Output = ()>,
{
    match activation {
        Activation::Relu => Arch::new().dispatch(With::<OfRelu, _>(work, PhantomData)),
        Activation::Tanh => Arch::new().dispatch(With::<OfTanh, _>(work, PhantomData)),
    }
}

/// z ← φ(z + b), with a bias for every unit; `scratch` has room for as many numbers as z.
pub(super) fn activate<T: Real>(
    activation: Activation,
    biases: &[T],
    z: &mut [T],
    scratch: &mut [T],
) {
    match activation {
        Activation::Relu => Arch::new().dispatch(Rectify { biases, z }),
        Activation::Tanh => {
            Arch::new().dispatch(AddBiases { biases, z });
            // tanh z = ±(1 − e)/(1 + e) with e = exp(−2|z|): exact to rounding in absolute terms.
            let decay = &mut scratch[..z.len()];
            Arch::new().dispatch(TwiceMagnitude { z, out: decay });
            T::exp_of_negated(decay, T::one());
            Arch::new().dispatch(TanhFromDecay { z, decay });
        }
    }
}

struct Rectify<'a, T> {
    biases: &'a [T],
    z: &'a mut [T],
}

impl<T: Real> WithSimd for Rectify<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = self.z.len() / self.biases.len();
        for (z, &bias) in self.z.chunks_exact_mut(width).zip(self.biases) {
            let bias = T::splat(simd, bias);
            for z in T::registers_mut::<S>(z).0 {
                *z = T::positive_part(simd, T::plus(simd, *z, bias));
            }
        }
    }
}

struct AddBiases<'a, T> {
    biases: &'a [T],
    z: &'a mut [T],
}

impl<T: Real> WithSimd for AddBiases<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let width = self.z.len() / self.biases.len();
        for (z, &bias) in self.z.chunks_exact_mut(width).zip(self.biases) {
            for z in z {
                *z += bias;
            }
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

/// f = b + Σₖ wₖ aₖ for every row of data.
pub(super) fn output<T: Real>(weights: &[T], bias: T, a: &[T], f: &mut [T]) {
    Arch::new().dispatch(Output { weights, bias, a, f });
}

struct Output<'a, T> {
    weights: &'a [T],
    bias: T,
    a: &'a [T],
    f: &'a mut [T],
}

impl<T: Real> WithSimd for Output<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let f = T::registers_mut::<S>(self.f).0;
        let a = T::registers::<S>(self.a).0;
        let width = f.len();
        let (weights, last_weights) = self.weights.as_chunks::<4>();
        for (column, f) in f.iter_mut().enumerate() {
            // Four sums side by side: one alone would wait for itself at every step.
            let zero = T::splat(simd, T::zero());
            let mut sums = [T::splat(simd, self.bias), zero, zero, zero];
            let mut at = column;
            for weights in weights {
                for (sum, &weight) in sums.iter_mut().zip(weights) {
                    *sum = T::multiply_add(simd, T::splat(simd, weight), a[at], *sum);
                    at += width;
                }
            }
            for &weight in last_weights {
                sums[0] = T::multiply_add(simd, T::splat(simd, weight), a[at], sums[0]);
                at += width;
            }
            *f = T::plus(simd, T::plus(simd, sums[0], sums[1]), T::plus(simd, sums[2], sums[3]));
        }
    }
}

/// f ← y − f in the first `rows` rows of data and 0 after them.
pub(super) fn residuals<T: Real>(targets: &[T], f: &mut [T], rows: usize) {
    Arch::new().dispatch(Residuals { targets, f });
    f[rows..].fill(T::zero());
}

struct Residuals<'a, T> {
    targets: &'a [T],
    f: &'a mut [T],
}

impl<T: Real> WithSimd for Residuals<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (f, &y) in self.f.iter_mut().zip(self.targets) {
            *f = y - *f;
        }
    }
}

/// r ← factor · r; returns Σ r² from before and Σ r from after.
pub(super) fn scale_and_sum<T: Real>(factor: T, r: &mut [T]) -> (T, T) {
    Arch::new().dispatch(ScaleAndSum { factor, r })
}

struct ScaleAndSum<'a, T> {
    factor: T,
    r: &'a mut [T],
}

impl<T: Real> WithSimd for ScaleAndSum<'_, T> {
    type Output = (T, T);

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> (T, T) {
        let factor = T::splat(simd, self.factor);
        let (mut squares, mut sums) = (T::splat(simd, T::zero()), T::splat(simd, T::zero()));
        for r in T::registers_mut::<S>(self.r).0 {
            squares = T::multiply_add(simd, *r, *r, squares);
            *r = T::times(simd, factor, *r);
            sums = T::plus(simd, sums, *r);
        }
        (T::sum_of_lanes(simd, squares), T::sum_of_lanes(simd, sums))
    }
}

/// The output layer backwards: adds Σ δaₖ to ∂/∂wₖ and replaces aₖ by wₖ δ φ′, the derivative with
/// respect to what the unit was given, whose sum is added to the unit's ∂/∂b.
pub(super) struct OutputBackward<'a, T> {
    pub(super) delta: &'a [T],
    pub(super) weights: &'a [T],
    pub(super) a: &'a mut [T],
    pub(super) weight_score: &'a mut [T],
    pub(super) bias_score: &'a mut [T],
}

impl<T: Real> OutputBackward<'_, T> {
    pub(super) fn run(self, activation: Activation) {
        dispatch(activation, self);
    }
}

impl<T: Real, P: Slope> WithSimd for With<P, OutputBackward<'_, T>> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(work, _) = self;
        let delta = T::registers::<S>(work.delta).0;
        let units = T::registers_mut::<S>(work.a).0.chunks_exact_mut(delta.len());
        let scores = work.weight_score.iter_mut().zip(work.bias_score);
        for ((a, &weight), (weight_score, bias_score)) in units.zip(work.weights).zip(scores) {
            let weight = T::splat(simd, weight);
            let (mut products, mut sums) = (T::splat(simd, T::zero()), T::splat(simd, T::zero()));
            for (a, &delta) in a.iter_mut().zip(delta) {
                products = T::multiply_add(simd, *a, delta, products);
                *a = P::times::<T, S>(simd, T::times(simd, weight, delta), *a);
                sums = T::plus(simd, sums, *a);
            }
            *weight_score += T::sum_of_lanes(simd, products);
            *bias_score += T::sum_of_lanes(simd, sums);
        }
    }
}

/// aₖ ← φ′ · derivativeₖ, whose sum is added to the unit's ∂/∂b.
pub(super) struct HiddenBackward<'a, T> {
    pub(super) derivative: &'a [T],
    pub(super) a: &'a mut [T],
    pub(super) bias_score: &'a mut [T],
}

impl<T: Real> HiddenBackward<'_, T> {
    pub(super) fn run(self, activation: Activation) {
        dispatch(activation, self);
    }
}

impl<T: Real, P: Slope> WithSimd for With<P, HiddenBackward<'_, T>> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(work, _) = self;
        let a = T::registers_mut::<S>(work.a).0;
        let width = a.len() / work.bias_score.len();
        let derivative = T::registers::<S>(work.derivative).0.chunks_exact(width);
        for ((a, derivative), bias_score) in
            a.chunks_exact_mut(width).zip(derivative).zip(work.bias_score)
        {
            let mut sums = T::splat(simd, T::zero());
            for (a, &derivative) in a.iter_mut().zip(derivative) {
                *a = P::times::<T, S>(simd, derivative, *a);
                sums = T::plus(simd, sums, *a);
            }
            *bias_score += T::sum_of_lanes(simd, sums);
        }
    }
}
