//! What a coordinate lies between, and the way from the whole line to there.

use steinflow::Error;

use crate::Result;

/// a < x < b; either may be missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    low: f64,
    high: f64,
}

impl Limits {
    /// Of every coordinate, by lines such as `x > 0` and `0 < p < 1`.
    pub(super) fn of(names: &[String], support: &[String]) -> Result<Vec<Self>> {
        let mut all = vec![Self { low: f64::NEG_INFINITY, high: f64::INFINITY }; names.len()];
        for line in support {
            let wrong = || {
                let remedy = "write a limit as `x > 0`, `x < 1` or `0 < x < 1`";
                Error::setting("support", line, remedy)
            };
            let ups = line.matches('<').count();
            let downs = line.matches('>').count();
            if ups + downs == 0 || ups * downs > 0 {
                return Err(wrong().into());
            }
            // `=` makes no difference to a density.
            let plain = line.replace('=', "");
            let mut parts: Vec<&str> = plain.split(['<', '>']).map(str::trim).collect();
            if downs > 0 {
                parts.reverse();
            }
            let is_name = |part: &&str| part.starts_with(|c: char| c.is_alphabetic() || c == '_');
            let number = |part: &str| part.parse::<f64>().ok().filter(|x| x.is_finite());
            let (name, low, high) = match parts[..] {
                [name, high] if is_name(&name) => (name, None, Some(number(high))),
                [low, name] => (name, Some(number(low)), None),
                [low, name, high] => (name, Some(number(low)), Some(number(high))),
                _ => return Err(wrong().into()),
            };
            let place = names.iter().position(|own| own == name).ok_or_else(|| {
                Error::unknown("coordinate", name, names.iter().map(String::as_str))
            })?;
            let own = &mut all[place];
            if let Some(low) = low {
                own.low = own.low.max(low.ok_or_else(wrong)?);
            }
            if let Some(high) = high {
                own.high = own.high.min(high.ok_or_else(wrong)?);
            }
            if own.low >= own.high {
                let remedy = format!("nothing lies above {} and below {}", own.low, own.high);
                return Err(Error::setting("support", line, remedy).into());
            }
        }
        Ok(all)
    }

    pub(super) fn are_none(&self) -> bool {
        self.low == f64::NEG_INFINITY && self.high == f64::INFINITY
    }

    /// x of z.
    pub(super) fn show(&self, z: f64) -> f64 {
        match (self.low.is_finite(), self.high.is_finite()) {
            (false, false) => z,
            (true, false) => self.low + z.exp(),
            (false, true) => self.high - z.exp(),
            // From the nearer end, where rounding would lose what is left.
            (true, true) if z < 0.0 => self.low + self.width() / (1.0 + (-z).exp()),
            (true, true) => self.high - self.width() / (1.0 + z.exp()),
        }
    }

    /// The way back.
    pub(super) fn hide(&self, x: f64) -> f64 {
        match (self.low.is_finite(), self.high.is_finite()) {
            (false, false) => x,
            (true, false) => (x - self.low).ln(),
            (false, true) => (self.high - x).ln(),
            (true, true) => ((x - self.low) / (self.high - x)).ln(),
        }
    }

    /// dx/dz, log |dx/dz| and its derivative by z.
    pub(super) fn jacobian(&self, z: f64) -> (f64, f64, f64) {
        match (self.low.is_finite(), self.high.is_finite()) {
            (false, false) => (1.0, 0.0, 0.0),
            (true, false) => (z.exp(), z, 1.0),
            (false, true) => (-z.exp(), z, 1.0),
            (true, true) => {
                // w σ(z) σ(−z), by e^(−|z|) ≤ 1.
                let decay = (-z.abs()).exp();
                let log = self.width().ln() - z.abs() - 2.0 * decay.ln_1p();
                (log.exp(), log, -(z / 2.0).tanh())
            }
        }
    }

    fn width(&self) -> f64 {
        self.high - self.low
    }
}
