//! SIMD registers of either precision behind one set of names, so that a kernel is written once.

// What is not inlined into a dispatched body is compiled without the SIMD it was chosen for.
#![allow(clippy::inline_always)]

use pulp::Simd;

/// Arithmetic on registers full of numbers, inside a [`pulp::WithSimd`] body.
pub trait Lanes: Copy {
    /// A register.
    type Vector<S: Simd>: Copy;

    /// The same number in every lane.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// a + b.
    fn plus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// a · b.
    fn times<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// a · b + c, fused where the instruction set has it.
    fn multiply_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// c − a · b, fused where the instruction set has it.
    fn subtract_product<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// x where a > 0, and 0 elsewhere.
    fn where_positive<S: Simd>(simd: S, a: Self::Vector<S>, x: Self::Vector<S>) -> Self::Vector<S>;
    /// max(a, 0), and NaN where a is.
    fn positive_part<S: Simd>(simd: S, a: Self::Vector<S>) -> Self::Vector<S>;
    /// The sum of the lanes, in an order that the instruction set fixes.
    fn sum_of_lanes<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
    /// The first numbers, at most a register full, and zeros after them.
    fn load<S: Simd>(simd: S, values: &[Self]) -> Self::Vector<S>;
    /// Full registers, and what is left over.
    fn registers<S: Simd>(values: &[Self]) -> (&[Self::Vector<S>], &[Self]);
    /// Full registers, and what is left over, to change.
    fn registers_mut<S: Simd>(values: &mut [Self]) -> (&mut [Self::Vector<S>], &mut [Self]);
}

macro_rules! lanes {
    ($real:ident, $vector:ident, $splat:ident, $add:ident, $multiply:ident, $multiply_add:ident,
     $negate:ident, $greater:ident, $select:ident, $sum:ident, $load:ident, $registers:ident,
     $registers_mut:ident) => {
        impl Lanes for $real {
            type Vector<S: Simd> = S::$vector;

            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> S::$vector {
                simd.$splat(value)
            }
            #[inline(always)]
            fn plus<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$add(a, b)
            }
            #[inline(always)]
            fn times<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$multiply(a, b)
            }
            #[inline(always)]
            fn multiply_add<S: Simd>(
                simd: S,
                a: S::$vector,
                b: S::$vector,
                c: S::$vector,
            ) -> S::$vector {
                simd.$multiply_add(a, b, c)
            }
            #[inline(always)]
            fn subtract_product<S: Simd>(
                simd: S,
                a: S::$vector,
                b: S::$vector,
                c: S::$vector,
            ) -> S::$vector {
                simd.$multiply_add(simd.$negate(a), b, c)
            }
            #[inline(always)]
            fn where_positive<S: Simd>(simd: S, a: S::$vector, x: S::$vector) -> S::$vector {
                let zero = simd.$splat(0.0);
                simd.$select(simd.$greater(a, zero), x, zero)
            }
            #[inline(always)]
            fn positive_part<S: Simd>(simd: S, a: S::$vector) -> S::$vector {
                let zero = simd.$splat(0.0);
                simd.$select(simd.$greater(zero, a), zero, a)
            }
            #[inline(always)]
            fn sum_of_lanes<S: Simd>(simd: S, a: S::$vector) -> Self {
                simd.$sum(a)
            }
            #[inline(always)]
            fn load<S: Simd>(simd: S, values: &[Self]) -> S::$vector {
                simd.$load(values)
            }
            #[inline(always)]
            fn registers<S: Simd>(values: &[Self]) -> (&[S::$vector], &[Self]) {
                S::$registers(values)
            }
            #[inline(always)]
            fn registers_mut<S: Simd>(values: &mut [Self]) -> (&mut [S::$vector], &mut [Self]) {
                S::$registers_mut(values)
            }
        }
    };
}

lanes!(
    f32,
    f32s,
    splat_f32s,
    add_f32s,
    mul_f32s,
    mul_add_e_f32s,
    neg_f32s,
    greater_than_f32s,
    select_f32s,
    reduce_sum_f32s,
    partial_load_f32s,
    as_simd_f32s,
    as_mut_simd_f32s
);
lanes!(
    f64,
    f64s,
    splat_f64s,
    add_f64s,
    mul_f64s,
    mul_add_e_f64s,
    neg_f64s,
    greater_than_f64s,
    select_f64s,
    reduce_sum_f64s,
    partial_load_f64s,
    as_simd_f64s,
    as_mut_simd_f64s
);
