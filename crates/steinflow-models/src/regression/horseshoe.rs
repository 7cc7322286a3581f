//! The horseshoe with its local scales integrated out: t = zλ with z ~ N(0, 1) and λ ~ C⁺(0, 1) has the density
//! p(t) = h(t²/2)/√(2π³), h(u) = eᵘ E₁(u) (Carvalho, Polson and Scott 2010, Biometrika 97).
//!
//! It has a pole at 0 and tails like 1/t². Carried as w ~ N(0, 1) with t = Q(w), the quantile of p at Φ(w), it is a
//! normal variable to whoever samples it; local scales beside it would make a narrow ridge of every coefficient.

use std::f64::consts::{PI, TAU};
use std::sync::LazyLock;

/// The table is of log Q by log w, evenly spaced between these.
const SMALLEST: f64 = 1e-7;
const LARGEST: f64 = 10.0;
const PARTS: usize = 2000;

/// log Q and its derivative by log w.
static QUANTILES: LazyLock<Vec<[f64; 2]>> = LazyLock::new(table);

fn log_width() -> f64 {
    (LARGEST / SMALLEST).ln() / PARTS as f64
}

/// log p(t).
pub(super) fn log_density(t: f64) -> f64 {
    scaled_exponential_integral(t * t / 2.0).ln() - 0.5 * (2.0 * PI.powi(3)).ln()
}

/// Its derivative by log t.
pub(super) fn log_density_slope(t: f64) -> f64 {
    // h′ = h − 1/u.
    let u = t * t / 2.0;
    2.0 * (u - 1.0 / scaled_exponential_integral(u))
}

/// h(u) = eᵘ E₁(u), u > 0.
fn scaled_exponential_integral(u: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    if u < 1.0 {
        let (mut power, mut sum) = (1.0, -EULER - u.ln());
        for k in 1..25 {
            let k = f64::from(k);
            power *= -u / k;
            sum -= power / k;
        }
        return u.exp() * sum;
    }
    // The continued fraction 1/(u + 1 − 1/(u + 3 − 4/(u + 5 − …))), from its end.
    let terms = (8 + (120.0 / u) as u32).min(120);
    let mut tail = u + f64::from(2 * terms + 1);
    for k in (1..=terms).rev() {
        let k = f64::from(k);
        tail = u + 2.0 * k - 1.0 - k * k / tail;
    }
    1.0 / tail
}

/// d log Q/d log w, as the densities of both demand: Q′(w) = φ(w)/p(Q).
fn slope(log_w: f64, log_t: f64) -> f64 {
    let w = log_w.exp();
    let log_normal = -0.5 * (w * w + TAU.ln());
    (log_w + log_normal - log_t - log_density(log_t.exp())).exp()
}

/// From the far tail, where Q follows from the expansions of both tails, towards 0: in this direction errors die out.
fn table() -> Vec<[f64; 2]> {
    const STEPS: i32 = 8;
    let w = LARGEST;
    let mills = (1.0 - 1.0 / w.powi(2) + 3.0 / w.powi(4) - 15.0 / w.powi(6)) / w;
    let log_tail = -0.5 * (w * w + TAU.ln()) + mills.ln();
    let mut log_t = (2.0 / (2.0 * PI.powi(3)).sqrt()).ln() - log_tail;
    let step = -log_width() / f64::from(STEPS);
    let mut all = vec![[0.0; 2]; PARTS + 1];
    for i in (0..=PARTS).rev() {
        let mut log_w = SMALLEST.ln() + log_width() * i as f64;
        all[i] = [log_t, slope(log_w, log_t)];
        for _ in 0..STEPS {
            // Runge and Kutta's fourth order.
            let a = slope(log_w, log_t);
            let b = slope(log_w + step / 2.0, log_t + step / 2.0 * a);
            let c = slope(log_w + step / 2.0, log_t + step / 2.0 * b);
            let d = slope(log_w + step, log_t + step * c);
            log_t += step / 6.0 * (a + 2.0 * b + 2.0 * c + d);
            log_w += step;
        }
    }
    all
}

/// Q(w) and its derivative.
pub(super) fn quantile(w: f64) -> (f64, f64) {
    let size = w.abs();
    let all = &*QUANTILES;
    let (log_t, slope) = if size < SMALLEST {
        (all[0][0] + (size / SMALLEST).ln(), 1.0)
    } else {
        let place = (size / SMALLEST).ln() / log_width();
        let at = (place as usize).min(PARTS - 1);
        let (x, width) = (place - at as f64, log_width());
        let ([low, low_slope], [high, high_slope]) = (all[at], all[at + 1]);
        if x > 1.0 {
            (high + high_slope * width * (x - 1.0), high_slope)
        } else {
            // Hermite's cubic.
            let (rise, first, last) = (high - low, low_slope * width, high_slope * width);
            let (b, c) = (3.0 * rise - 2.0 * first - last, first + last - 2.0 * rise);
            let value = low + x * (first + x * (b + x * c));
            (value, (first + x * (2.0 * b + 3.0 * x * c)) / width)
        }
    };
    if size == 0.0 {
        return (0.0, (all[0][0]).exp() / SMALLEST);
    }
    let t = log_t.exp();
    (t.copysign(w), t * slope / size)
}

/// The w whose Q it is.
pub(super) fn normal_of(t: f64) -> f64 {
    // Between bounds, because Q rises over so many powers of ten.
    let (mut low, mut high) = (0.0, 2.0 * LARGEST);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if quantile(middle).0 < t.abs() { low = middle } else { high = middle }
    }
    f64::midpoint(low, high).copysign(t)
}

/// log E exp(−(at)²/2), by which a horseshoe is divided that a normal slab of width 1/a is multiplied to, and its
/// derivative by log a: E 1/√(1 + a²λ²) = 2/π · arccos(a)/√(1 − a²).
pub(super) fn log_normaliser(a: f64) -> (f64, f64) {
    let gap = 1.0 - a * a;
    let (value, slope) = if gap.abs() < 1e-4 {
        (1.0 - (a - 1.0) / 3.0, -1.0 / 3.0)
    } else {
        let angle = if gap > 0.0 { a.acos() } else { a.acosh() };
        let value = angle / gap.abs().sqrt();
        (value, (a * value - 1.0) / gap)
    };
    ((2.0 / PI * value).ln(), a * slope / value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_integral_is_that_of_the_tables() {
        // eᵘ E₁(u), Abramowitz and Stegun, table 5.1.
        for (u, e1) in [(0.5, 0.559_773_595), (1.0, 0.219_383_934), (2.0, 0.048_900_511)] {
            let found: f64 = scaled_exponential_integral(u) * (-u).exp();
            assert!((found / e1 - 1.0).abs() < 1e-8, "{u}: {found}");
        }
        let (below, above): (f64, f64) =
            (scaled_exponential_integral(1.0 - 1e-12), scaled_exponential_integral(1.0));
        assert!((below / above - 1.0).abs() < 1e-10, "{below} {above}");
        assert!((1e8 * scaled_exponential_integral(1e8) - 1.0).abs() < 1e-7);
    }

    /// The density of t by w is the normal one, and half of all lies on either side.
    #[test]
    fn quantiles_make_a_horseshoe_of_a_normal_variable() {
        for w in [1e-6_f64, 1e-3, 0.1, 0.7, 1.0, 2.0, 3.5, 6.0, 9.5] {
            let (t, slope) = quantile(w);
            let normal = (-0.5 * w * w).exp() / TAU.sqrt();
            assert!((log_density(t).exp() * slope / normal - 1.0).abs() < 1e-6, "{w}");
            let (above, below) = (quantile(w * (1.0 + 1e-6)).0, quantile(w * (1.0 - 1e-6)).0);
            assert!(((above - below) / (2e-6 * w) / slope - 1.0).abs() < 1e-6, "{w}");
            assert_eq!(quantile(-w), (-t, slope));
            assert!((normal_of(t) / w - 1.0).abs() < 1e-9, "{w}");
        }
        // Near 0, ∫p = t (2 − 2 log t + log 2 − γ)/√(2π³).
        let (t, _) = quantile(1e-4);
        let below =
            t * (2.0 - 2.0 * t.ln() + 2.0_f64.ln() - 0.577_215_665) / (2.0 * PI.powi(3)).sqrt();
        assert!((below * TAU.sqrt() / 1e-4 - 1.0).abs() < 1e-6, "{below}");
        // The tails of the ratio of two normal variables, by 3/4 of its probability: simulated, λ = |tan|.
        let median = quantile(0.674_489_750_196_082).0;
        let count = 400;
        let share = |k: usize| {
            let u = (k as f64 + 0.5) / count as f64;
            // P(|z| < median/λ) at an even quantile of λ.
            let lambda = (0.5 * PI * u).tan();
            libm::erf(median / lambda / 2.0_f64.sqrt())
        };
        let half = (0..count).map(share).sum::<f64>() / count as f64;
        assert!((half - 0.5).abs() < 1e-4, "{half}");
    }

    #[test]
    fn slopes_are_differences() {
        for t in [1e-3_f64, 0.3, 1.0, 1.5, 20.0] {
            let step = 1e-6;
            let rise = log_density(t * (1.0 + step)) - log_density(t * (1.0 - step));
            assert!((rise / (2.0 * step) - log_density_slope(t)).abs() < 1e-6, "{t}");
        }
        for a in [1e-4, 0.3, 0.999_99, 1.000_02, 1.7, 40.0] {
            let step = 1e-5;
            let rise = log_normaliser(a * (1.0 + step)).0 - log_normaliser(a * (1.0 - step)).0;
            assert!((rise / (2.0 * step) - log_normaliser(a).1).abs() < 1e-4, "{a}");
        }
        // E 1/√(1 + a²λ²) over even quantiles of λ.
        let a: f64 = 0.7;
        let term = |k: u32| {
            let lambda = (0.5 * PI * (f64::from(k) + 0.5) / 10_000.0).tan();
            1.0 / (a * lambda).hypot(1.0)
        };
        let mean = (0..10_000).map(term).sum::<f64>() / 10_000.0;
        assert!((log_normaliser(a).0 - mean.ln()).abs() < 1e-6, "{mean}");
    }
}
