//! Log densities, up to a constant, of numbers that carry a derivative.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

use steinflow::target::DualNum;

/// A number that carries a first derivative.
pub(super) trait Number: DualNum<Primitive = f64> + Copy {}
impl<D: DualNum<Primitive = f64> + Copy> Number for D {}

pub(super) fn square<D: Number>(x: D) -> D {
    x * x
}

/// a + Σⱼ bⱼ xⱼ, with the intercept first.
pub(super) fn linear<D: Number>(coefficients: &[D], features: &[f64]) -> D {
    let mut sum = coefficients[0];
    for (&b, &x) in coefficients[1..].iter().zip(features) {
        sum += b * x;
    }
    sum
}

/// x ~ N(mean, sd²), all known: a prior.
pub(super) fn prior<D: Number>(x: D, mean: f64, sd: f64) -> D {
    square((x - mean) / sd) * -0.5
}

/// Every one of `xs` ~ N(0, sd²).
pub(super) fn priors<D: Number>(xs: &[D], sd: f64) -> D {
    xs.iter().map(|&x| prior(x, 0.0, sd)).sum()
}

/// `count` deviations from N(0, e^(2 log sd)) whose squares sum to `squares`.
pub(super) fn normals<D: Number>(squares: D, count: usize, log_sd: D) -> D {
    squares * (log_sd * -2.0).exp() * -0.5 - log_sd * count as f64
}

/// One deviation from N(0, sd²).
pub(super) fn normal<D: Number>(deviation: D, log_sd: D) -> D {
    normals(square(deviation), 1, log_sd)
}

/// e^log_x ~ |N(0, scale²)|, with the Jacobian of the logarithm.
pub(super) fn half_normal<D: Number>(log_x: D, scale: f64) -> D {
    log_x - square(log_x.exp() / scale) * 0.5
}

/// e^log_x ~ |Cauchy(0, scale)|, with the Jacobian of the logarithm.
pub(super) fn half_cauchy<D: Number>(log_x: D, scale: f64) -> D {
    log_x - softplus((log_x - scale.ln()) * 2.0)
}

/// e^log_x ~ Gamma(shape, rate), with the Jacobian of the logarithm.
pub(super) fn gamma<D: Number>(log_x: D, shape: f64, rate: f64) -> D {
    log_x * shape - log_x.exp() * rate
}

/// Student's t with `shape` degrees of freedom at `x`, in units of its scale.
pub(super) fn student<D: Number>(x: D, shape: D) -> D {
    let half = (shape + 1.0) / 2.0;
    log_gamma(half) - log_gamma(shape / 2.0) - shape.ln() / 2.0 - half * (square(x) / shape).ln_1p()
}

/// ln(1 + eˣ), which is −ln P(0) of a Bernoulli with log odds x.
pub(super) fn softplus<D: Number>(x: D) -> D {
    if x.re() > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

/// 1/(1 + e⁻ˣ).
pub(super) fn sigmoid<D: Number>(x: D) -> D {
    (-softplus(-x)).exp()
}

/// The Jacobian of p = 1/(1 + e⁻ˣ): ln p(1 − p).
pub(super) fn sigmoid_jacobian<D: Number>(x: D) -> D {
    -softplus(x) - softplus(-x)
}

/// ln(eᵃ + eᵇ), from the larger one, so that a term of −1e15 costs the other no digits.
pub(super) fn log_add<D: Number>(a: D, b: D) -> D {
    if a.re() > b.re() { a + (b - a).exp().ln_1p() } else { b + (a - b).exp().ln_1p() }
}

/// `successes` of `trials` with these log odds.
pub(super) fn binomial<D: Number>(successes: f64, trials: f64, log_odds: D) -> D {
    log_odds * successes - softplus(log_odds) * trials
}

/// A Poisson count with mean e^log_mean.
pub(super) fn poisson<D: Number>(count: f64, log_mean: D) -> D {
    log_mean * count - log_mean.exp()
}

/// A count with mean μ and variance μ + μ²/φ.
pub(super) fn negative_binomial<D: Number>(count: f64, log_mean: D, log_phi: D) -> D {
    let phi = log_phi.exp();
    log_gamma(phi + count)
        - log_gamma(phi)
        - phi * softplus(log_mean - log_phi)
        - softplus(log_phi - log_mean) * count
}

/// ln Γ(x), x > 0: Stirling's series where it is exact to rounding, x ≥ 8, and Γ(x + 1) = xΓ(x) below.
pub(super) fn log_gamma<D: Number>(x: D) -> D {
    let (mut x, mut product) = (x, D::one());
    while x.re() < 8.0 {
        product *= x;
        x += 1.0;
    }
    let inverse = x.recip();
    let square = inverse * inverse;
    let coefficients = [1.0 / 156.0, -691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0];
    let mut series = D::zero();
    for coefficient in coefficients.into_iter().chain([-1.0 / 360.0, 1.0 / 12.0]) {
        series = series * square + coefficient;
    }
    (x - 0.5) * x.ln() - x + 0.5 * TAU.ln() + series * inverse - product.ln()
}

/// ln Φ(x) of the standard normal.
pub(super) fn log_normal_cdf<D: Number>(x: D) -> D {
    let at = x.re();
    // Beyond −30, where erfc nears the smallest number, its asymptotic series is good to 1e−8.
    let value = if at > -30.0 {
        (0.5 * libm::erfc(-at * FRAC_1_SQRT_2)).ln()
    } else {
        let y = 1.0 / (at * at);
        -0.5 * at * at - (-at * TAU.sqrt()).ln() - y + 2.5 * y * y
    };
    let slope = (-0.5 * at * at - value).exp() / TAU.sqrt();
    // The value and the slope at a point are all that a first derivative sees.
    (x - at) * slope + value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_gamma_agrees_with_libm() {
        for x in [1e-8, 0.3, 1.0, 2.5, 7.999, 8.0, 31.0, 1e6] {
            let expected = libm::lgamma(x);
            assert!((log_gamma(x) - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{x}");
        }
    }

    #[test]
    fn the_normal_tail_continues_where_erfc_ends() {
        // By mpmath, with 40 digits.
        for (x, expected) in [
            (-1.0_f64, -1.841_021_645_009_264),
            (-29.999, -454.291_211_196_123_9),
            (-30.001, -454.351_277_715_458_8),
            (-100.0, -5_005.524_208_694_205),
        ] {
            assert!((log_normal_cdf(x) - expected).abs() < 1e-7, "{x}: {}", log_normal_cdf(x));
        }
    }

    #[test]
    fn a_hopeless_term_leaves_a_sum_alone() {
        assert_eq!((log_add(-1e15, -3.7), log_add(-3.7, -1e15)), (-3.7, -3.7));
        assert!((log_add(0.0_f64, 0.0) - std::f64::consts::LN_2).abs() < 1e-15);
    }

    #[test]
    fn student_with_a_huge_shape_is_normal() {
        let difference: f64 = student(1.7, 1e8) - student(0.3, 1e8);
        assert!((difference + 0.5 * (1.7 * 1.7 - 0.3 * 0.3)).abs() < 1e-6);
    }

    #[test]
    fn a_negative_binomial_with_a_huge_phi_is_poisson() {
        let difference = |f: &dyn Fn(f64) -> f64| f(7.0) - f(2.0);
        let limit = difference(&|count| poisson(count, 1.2));
        let found = difference(&|count| negative_binomial(count, 1.2, 14.0));
        // They differ by terms of order count²/φ, 4e−5 here.
        assert!((found - limit).abs() < 1e-4, "{found} {limit}");
    }
}
