//! The two precisions: `f64`, the default, and `f32`.

use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{AddAssign, DivAssign, MulAssign, SubAssign};

use crate::LogDensity;
use crate::ensemble::Widened;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A floating-point number that particles are made of. Sealed: `f32` and `f64`.
pub trait Real:
    sealed::Sealed
    + num_traits::Float
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Sum
    + Debug
    + Display
    + Default
    + Send
    + Sync
    + crate::engine::Arithmetic
    + 'static
{
    /// The name that configs and messages use.
    const NAME: &'static str;

    /// Rounds to this precision.
    fn of(value: f64) -> Self;

    /// Widens; diagnostics accumulate in `f64`.
    fn as_f64(self) -> f64;

    /// A target of this precision for those who compute in `f64`.
    fn widen<'a>(target: Box<dyn LogDensity<Self> + 'a>) -> Box<dyn LogDensity<f64> + 'a>;
}

impl Real for f32 {
    const NAME: &'static str = "f32";
    fn of(value: f64) -> Self {
        value as f32
    }
    fn as_f64(self) -> f64 {
        f64::from(self)
    }
    fn widen<'a>(target: Box<dyn LogDensity<Self> + 'a>) -> Box<dyn LogDensity<f64> + 'a> {
        Box::new(Widened(target))
    }
}

impl Real for f64 {
    const NAME: &'static str = "f64";
    fn of(value: f64) -> Self {
        value
    }
    fn as_f64(self) -> f64 {
        self
    }
    fn widen<'a>(target: Box<dyn LogDensity<Self> + 'a>) -> Box<dyn LogDensity<f64> + 'a> {
        target
    }
}
