//! The settings that only some methods have: one table, from which flags, keys of config files and
//! keyword arguments are made.

use super::Method;
use crate::dynamics::metric::{EnergyMetric, EnergySign};
use crate::field::{CurlForm, TimeUnit};
use crate::{Error, Result};

/// The values of all parameters; a method takes those it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// A.
    pub friction: f64,
    /// σ.
    pub sigma: f64,
    /// μ.
    pub mu: f64,
    /// γ.
    pub gamma: f64,
    /// σᵤ.
    pub sigma_u: f64,
    /// G⁻¹.
    pub metric: EnergyMetric,
    /// η of the Stein gradient estimator.
    pub regulariser: f64,
    /// What an N×N solve may take, in bytes.
    pub solve_memory: u64,
    /// What the Stein field divides its sums by.
    pub time_unit: TimeUnit,
    /// C between two particles in the Stein field.
    pub curl: CurlForm,
    /// P, how many others a particle meets in a step; none for all.
    pub interactions: Option<usize>,
    /// σ² of SPOS.
    pub noise_strength: f64,
    /// Velocities before the bandwidth of an exact sampler is held.
    pub adapt: u64,
    /// Cells of LAWGD's grid per coordinate; none for what suits the dimension.
    pub cells: Option<usize>,
    /// τ, how long LAWGD's ρ/π is smoothed for; none for what suits the dimension.
    pub smoothing: Option<f64>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            friction: 1.0,
            sigma: 1.0,
            mu: 1.0,
            gamma: 1.0,
            sigma_u: 1.0,
            metric: EnergyMetric::default(),
            regulariser: 1e-2,
            solve_memory: 1 << 30,
            time_unit: TimeUnit::default(),
            curl: CurlForm::default(),
            interactions: None,
            noise_strength: 0.1,
            adapt: 100,
            cells: None,
            smoothing: None,
        }
    }
}

/// What kind of value a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// 0, 1, 2, …
    WholeNumber,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A parameter's value, as people write it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A whole number.
    WholeNumber(u64),
    /// A word.
    Word(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(value) => value.fmt(formatter),
            Self::WholeNumber(value) => value.fmt(formatter),
            Self::Word(value) => value.fmt(formatter),
        }
    }
}

/// Where a value is kept in [`Parameters`], and what it may be.
enum Place<'a> {
    Positive(&'a mut f64),
    ZeroOrMore(&'a mut f64),
    Finite(&'a mut f64),
    ZeroOrMoreIfAny(&'a mut Option<f64>),
    Count(&'a mut u64),
    CountIfAny(&'a mut Option<usize>),
    /// Written in mebibytes, kept in bytes.
    Mebibytes(&'a mut u64),
    Word(&'a mut dyn Word),
}

/// A choice among a few words.
trait Word {
    fn words(&self) -> &'static [&'static str];
    fn word(&self) -> &'static str;
    /// Whether there is such a word.
    fn choose(&mut self, word: &str) -> bool;
}

macro_rules! words {
    ($($choice:ty: $($word:literal = $value:ident),*;)*) => {$(
        impl Word for $choice {
            fn words(&self) -> &'static [&'static str] {
                &[$($word),*]
            }

            fn word(&self) -> &'static str {
                match self { $(Self::$value => $word,)* }
            }

            fn choose(&mut self, word: &str) -> bool {
                *self = match word {
                    $($word => Self::$value,)*
                    _ => return false,
                };
                true
            }
        }
    )*};
}

words! {
    EnergySign: "energy" = Energy, "log-density" = LogDensity;
    TimeUnit: "n" = Particles, "lambda" = Eigenvalue;
    CurlForm: "paper" = Paper, "symmetrised" = Symmetrised;
}

/// The rows of the table: variant, name, symbol in usage lines, help, where it is kept, and in words
/// the default of what the run decides.
macro_rules! parameters {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $symbol:literal, $help:literal,
       $place:expr $(, default: $default:literal)?;)*) => {
        /// A setting that only some methods have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Parameter {
            $($(#[$doc])* $variant,)*
        }

        impl Parameter {
            /// Every parameter there is.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name that flags and configs use, in kebab-case.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What stands for its value in a usage line.
            pub fn symbol(self) -> &'static str {
                match self { $(Self::$variant => $symbol,)* }
            }

            /// What it is, in one sentence without a full stop.
            pub fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }

            fn place(self, parameters: &mut Parameters) -> Place<'_> {
                let place: fn(&mut Parameters) -> Place<'_> = match self {
                    $(Self::$variant => $place,)*
                };
                place(parameters)
            }

            /// The default in words, where it depends on the run.
            fn default_in_words(self) -> Option<&'static str> {
                match self { $(Self::$variant => [$($default,)?].first().copied(),)* }
            }
        }
    };
}

parameters! {
    /// A.
    Friction, "friction", "A", "Friction A of methods with momentum",
        |p| Place::ZeroOrMore(&mut p.friction);
    /// σ, standard deviation of the momentum.
    Sigma, "sigma", "SIGMA", "Standard deviation σ of the momentum",
        |p| Place::Positive(&mut p.sigma);
    /// μ, precision of the thermostat.
    Mu, "mu", "MU", "Precision μ of the thermostat",
        |p| Place::Positive(&mut p.mu);
    /// γ, coupling of third-order dynamics.
    Gamma, "gamma", "GAMMA", "Coupling γ of third-order dynamics",
        |p| Place::Positive(&mut p.gamma);
    /// σᵤ, standard deviation of the third-order variable.
    SigmaU, "sigma-u", "SIGMA", "Standard deviation σᵤ of the third-order variable",
        |p| Place::Positive(&mut p.sigma_u);
    /// D of the metric G⁻¹.
    MetricScale, "metric-scale", "D", "D in the metric G⁻¹ = D √|U + c| of Riemannian methods",
        |p| Place::Positive(&mut p.metric.scale);
    /// c of the metric.
    MetricOffset, "metric-offset", "C", "c in the metric",
        |p| Place::Finite(&mut p.metric.offset);
    /// The sign of U in the metric.
    MetricSign, "metric-sign", "SIGN",
        "U in the metric: `energy` = −log π, `log-density` = +log π as the paper prints it",
        |p| Place::Word(&mut p.metric.sign);
    /// η of the Stein gradient estimator.
    Regulariser, "regulariser", "ETA", "Regulariser η of the Stein gradient estimator",
        |p| Place::ZeroOrMore(&mut p.regulariser);
    /// What an N×N solve may take.
    SolveMemory, "solve-memory", "MIB", "Mebibytes that the N×N solve of gfsf and sge may take",
        |p| Place::Mebibytes(&mut p.solve_memory);
    /// The unit of time of the Stein field.
    TimeUnit, "time-unit", "UNIT",
        "What sums over particles are divided by: `n`, as in the paper, or `lambda`: Nλ with λ the largest \
         eigenvalue of K/N at the start, so that time does not slow down with N; λ and bandwidth are held",
        |p| Place::Word(&mut p.time_unit);
    /// C between two particles.
    Curl, "curl", "FORM",
        "C between two particles where it varies: `paper` = C(zⱼ), `symmetrised` = (C(zᵢ) + C(zⱼ))/2, under \
         which π stays invariant",
        |p| Place::Word(&mut p.curl);
    /// P.
    Interactions, "interactions", "P",
        "Others that a particle meets in a step, drawn anew for every step, or a few more: O(N·P) instead of O(N²), \
         with the same velocity on average; exact samplers stay exact",
        |p| Place::CountIfAny(&mut p.interactions), default: "all";
    /// σ² of SPOS.
    NoiseStrength, "noise-strength", "S2", "Strength σ² of the independent noise of SPOS",
        |p| Place::ZeroOrMore(&mut p.noise_strength);
    /// Velocities before a bandwidth is held.
    Adapt, "adapt", "COUNT", "Velocities before an exact sampler holds its bandwidth",
        |p| Place::Count(&mut p.adapt), default: "a tenth of the steps";
    /// Cells of a grid per coordinate.
    Cells, "cells", "COUNT", "Cells of LAWGD's grid per coordinate",
        |p| Place::CountIfAny(&mut p.cells), default: "1000 on a line, 64 in the plane";
    /// τ of LAWGD.
    Smoothing, "smoothing", "TAU", "Smoothing time τ of LAWGD",
        |p| Place::ZeroOrMoreIfAny(&mut p.smoothing), default: "0 on a line, 0.1 in the plane";
}

impl Parameter {
    /// Finds a parameter by its name; an unknown name gets the nearest one suggested.
    pub fn named(name: &str) -> Result<Self> {
        let known = Self::ALL.iter().copied().find(|parameter| parameter.name() == name);
        let names = || Self::ALL.iter().map(|parameter| parameter.name());
        known.ok_or_else(|| Error::unknown("parameter", name, names()))
    }

    /// What kind of value it takes.
    pub fn kind(self) -> Kind {
        match self.place(&mut Parameters::default()) {
            Place::Positive(_)
            | Place::ZeroOrMore(_)
            | Place::Finite(_)
            | Place::ZeroOrMoreIfAny(_) => Kind::Number,
            Place::Count(_) | Place::CountIfAny(_) | Place::Mebibytes(_) => Kind::WholeNumber,
            Place::Word(own) => Kind::Word(own.words()),
        }
    }

    /// Its value where nobody gives one; none where the run decides.
    pub fn default_value(self) -> Option<Value> {
        if self.default_in_words().is_some() {
            return None;
        }
        Parameters::default().get(self)
    }

    /// The default as help texts have it.
    pub fn default_text(self) -> String {
        match (self.default_in_words(), self.default_value()) {
            (Some(words), _) => words.to_owned(),
            (None, Some(value)) => value.to_string(),
            (None, None) => String::new(),
        }
    }

    /// Reads a value.
    pub fn parse(self, text: &str) -> Result<Value> {
        let wrong = |what| Error::setting(self.name(), text, format!("give {what}"));
        match self.kind() {
            Kind::Number => text.parse().map(Value::Number).map_err(|_| wrong("a number")),
            Kind::WholeNumber => {
                text.parse().map(Value::WholeNumber).map_err(|_| wrong("a whole number"))
            }
            Kind::Word(_) => Ok(Value::Word(text.to_owned())),
        }
    }

    fn wrong(self, value: &Value, remedy: &str) -> Error {
        Error::setting(self.name(), value, remedy)
    }

    fn number(self, value: &Value) -> Result<f64> {
        match *value {
            Value::Number(number) => Ok(number),
            Value::WholeNumber(number) => Ok(number as f64),
            Value::Word(_) => Err(self.wrong(value, "give a number")),
        }
    }

    fn whole_number(self, value: &Value) -> Result<u64> {
        match *value {
            Value::WholeNumber(number) => Ok(number),
            // Whole numbers up to 2⁵³ are exact.
            Value::Number(number)
                if number.fract() == 0.0 && (0.0..=(1u64 << 53) as f64).contains(&number) =>
            {
                Ok(number as u64)
            }
            Value::Number(_) | Value::Word(_) => {
                Err(self.wrong(value, "give a whole number, 0 or more"))
            }
        }
    }

    fn in_range(self, value: &Value, fits: fn(f64) -> bool, range: &str) -> Result<f64> {
        let number = self.number(value)?;
        if fits(number) && number.is_finite() {
            Ok(number)
        } else {
            Err(self.wrong(value, &format!("it must be {range}")))
        }
    }
}

impl Parameters {
    /// Sets a parameter, if the value is one it can have.
    ///
    /// ```
    /// use steinflow::method::{Parameter, Parameters};
    /// let mut parameters = Parameters::default();
    /// let sigma = Parameter::named("sigma")?;
    /// parameters.set(sigma, &sigma.parse("2.5")?)?;
    /// assert_eq!(parameters.sigma, 2.5);
    /// assert!(parameters.set(sigma, &sigma.parse("0")?).is_err());
    /// # Ok::<(), steinflow::Error>(())
    /// ```
    pub fn set(&mut self, parameter: Parameter, value: &Value) -> Result<()> {
        let zero_or_more = |x: f64| x >= 0.0;
        match parameter.place(self) {
            Place::Positive(own) => {
                *own = parameter.in_range(value, |x| x > 0.0, "positive and finite")?;
            }
            Place::ZeroOrMore(own) => {
                *own = parameter.in_range(value, zero_or_more, "zero or positive and finite")?;
            }
            Place::ZeroOrMoreIfAny(own) => {
                let range = "zero or positive and finite";
                *own = Some(parameter.in_range(value, zero_or_more, range)?);
            }
            Place::Finite(own) => *own = parameter.in_range(value, |_| true, "finite")?,
            Place::Count(own) => *own = parameter.whole_number(value)?,
            Place::CountIfAny(own) => *own = Some(parameter.whole_number(value)? as usize),
            Place::Mebibytes(own) => *own = parameter.whole_number(value)?.saturating_mul(1 << 20),
            Place::Word(own) => {
                let (word, words) = (value.to_string(), own.words());
                if !own.choose(&word) {
                    return Err(Error::unknown(parameter.name(), &word, words.iter().copied()));
                }
            }
        }
        Ok(())
    }

    /// A parameter's value; none where the run decides.
    pub fn get(&self, parameter: Parameter) -> Option<Value> {
        match parameter.place(&mut self.clone()) {
            Place::Positive(own) | Place::ZeroOrMore(own) | Place::Finite(own) => {
                Some(Value::Number(*own))
            }
            Place::ZeroOrMoreIfAny(own) => own.map(Value::Number),
            Place::Count(own) => Some(Value::WholeNumber(*own)),
            Place::CountIfAny(own) => own.map(|count| Value::WholeNumber(count as u64)),
            Place::Mebibytes(own) => Some(Value::WholeNumber(*own >> 20)),
            Place::Word(own) => Some(Value::Word(own.word().to_owned())),
        }
    }

    /// Checks that the parameters a method has are in range.
    pub fn validate(&self, method: &Method) -> Result<()> {
        let mut checked = Self::default();
        for parameter in method.parameters() {
            if let Some(value) = self.get(parameter) {
                checked.set(parameter, &value)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_by_name_is_what_is_got_and_bad_values_are_refused() {
        for &parameter in Parameter::ALL {
            assert_eq!(Parameter::named(parameter.name()).unwrap(), parameter);
            let text = match parameter.kind() {
                Kind::Number => "0.75",
                Kind::WholeNumber => "7",
                Kind::Word(words) => words[1],
            };
            let mut parameters = Parameters::default();
            let value = parameter.parse(text).unwrap();
            assert_ne!(parameters.get(parameter), Some(value.clone()), "{parameter:?}");
            parameters.set(parameter, &value).unwrap();
            assert_eq!(parameters.get(parameter), Some(value), "{parameter:?}");
            // No other one has moved.
            for &other in Parameter::ALL {
                let same = parameters.get(other) == Parameters::default().get(other);
                assert_eq!(same, other != parameter, "{parameter:?} against {other:?}");
            }
            for bad in [Value::Number(f64::NAN), Value::Word("nonsense".to_owned())] {
                let error = parameters.set(parameter, &bad).unwrap_err().to_string();
                assert!(error.contains(parameter.name()), "{error}");
            }
            assert!(!parameter.default_text().is_empty(), "{parameter:?}");
        }
    }
}
