//! A formula as text, read into steps of which each uses those before it; one pass over them gives its value,
//! and one pass back all derivatives.
//!
//! Our own, because a parser should show the place of an error, read −x² as −(x²), and be short.

use crate::regression::digamma;
use crate::{Error, Result};

/// A longer formula is a mistake, and so is a deeper one.
const MOST_BYTES: usize = 100_000;
const MOST_DEPTH: usize = 200;

/// A formula of some coordinates.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    /// In the order in which they first appear.
    names: Vec<String>,
    steps: Vec<Step>,
    /// The step that is the value of the whole.
    last: usize,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Number(f64),
    Coordinate(usize),
    Function(&'static Function, usize),
    Pair(Pair, usize, usize),
}

#[derive(Clone, Copy, Debug)]
enum Pair {
    Sum,
    Difference,
    Product,
    Quotient,
    Power,
    /// log(eᵃ + eᵇ).
    LogSum,
}

/// A function of one number.
#[derive(Debug)]
struct Function {
    name: &'static str,
    value: fn(f64) -> f64,
    /// Its derivative, from its argument and its value.
    slope: fn(f64, f64) -> f64,
}

const fn function(
    name: &'static str,
    value: fn(f64) -> f64,
    slope: fn(f64, f64) -> f64,
) -> Function {
    Function { name, value, slope }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

static FUNCTIONS: [Function; 19] = [
    function("exp", f64::exp, |_, v| v),
    function("log", f64::ln, |x, _| 1.0 / x),
    function("ln", f64::ln, |x, _| 1.0 / x),
    function("log1p", f64::ln_1p, |x, _| 1.0 / (1.0 + x)),
    function("expm1", f64::exp_m1, |_, v| 1.0 + v),
    function("sqrt", f64::sqrt, |_, v| 0.5 / v),
    function("abs", f64::abs, |x, _| x.signum()),
    function("sin", f64::sin, |x, _| x.cos()),
    function("cos", f64::cos, |x, _| -x.sin()),
    function("tan", f64::tan, |_, v| 1.0 + v * v),
    function("sinh", f64::sinh, |x, _| x.cosh()),
    function("cosh", f64::cosh, |x, _| x.sinh()),
    function("tanh", f64::tanh, |_, v| 1.0 - v * v),
    function("atan", f64::atan, |x, _| 1.0 / (1.0 + x * x)),
    function("erf", libm::erf, |x, _| std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp()),
    function("lgamma", libm::lgamma, |x, _| digamma(x)),
    function("logistic", logistic, |_, v| v * (1.0 - v)),
    function("softplus", |x| x.max(0.0) + (-x.abs()).exp().ln_1p(), |x, _| logistic(x)),
    function("square", |x| x * x, |x, _| 2.0 * x),
];

impl Pair {
    fn value(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Sum => a + b,
            Self::Difference => a - b,
            Self::Product => a * b,
            Self::Quotient => a / b,
            Self::Power => a.powf(b),
            Self::LogSum => {
                let top = a.max(b);
                if top.is_finite() { top + (-(a - b).abs()).exp().ln_1p() } else { top }
            }
        }
    }

    /// The derivatives by both.
    fn slopes(self, a: f64, b: f64, value: f64) -> (f64, f64) {
        match self {
            Self::Sum => (1.0, 1.0),
            Self::Difference => (1.0, -1.0),
            Self::Product => (b, a),
            Self::Quotient => (1.0 / b, -value / b),
            Self::Power if b == 0.0 => (0.0, a.ln()),
            Self::Power => (b * a.powf(b - 1.0), value * a.ln()),
            Self::LogSum => ((a - value).exp(), (b - value).exp()),
        }
    }
}

impl Expression {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let expression = Self { names: Vec::new(), steps: Vec::new(), last: 0 };
        let mut parser = Parser { text, at: 0, depth: 0, expression };
        if text.len() > MOST_BYTES {
            return Err(parser.wrong(MOST_BYTES, "a formula ends before this place"));
        }
        parser.expression.last = parser.sum()?;
        if let Some(found) = parser.peek() {
            let message = format!("an operator such as + or * belongs here, not `{found}`");
            return Err(parser.wrong(parser.at, &message));
        }
        if parser.expression.names.is_empty() {
            return Err(parser.wrong(0, "it has no coordinate: name one, as in -(x^2)/2"));
        }
        Ok(parser.expression)
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The value at `x`; its derivatives replace what is in `slopes`.
    pub(super) fn evaluate(&self, x: &[f64], slopes: &mut [f64]) -> f64 {
        let mut values = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            values.push(match *step {
                Step::Number(number) => number,
                Step::Coordinate(j) => x[j],
                Step::Function(function, a) => (function.value)(values[a]),
                Step::Pair(pair, a, b) => pair.value(values[a], values[b]),
            });
        }
        slopes.fill(0.0);
        let mut back = vec![0.0; values.len()];
        back[self.last] = 1.0;
        for (k, step) in self.steps.iter().enumerate().rev() {
            // Nothing follows from it, not even what is infinite.
            if back[k] == 0.0 {
                continue;
            }
            match *step {
                Step::Number(_) => {}
                Step::Coordinate(j) => slopes[j] += back[k],
                Step::Function(function, a) => {
                    back[a] += back[k] * (function.slope)(values[a], values[k]);
                }
                Step::Pair(pair, a, b) => {
                    let (of_a, of_b) = pair.slopes(values[a], values[b], values[k]);
                    back[a] += back[k] * of_a;
                    // The logarithm of a negative base concerns no power that is a number.
                    if !matches!(self.steps[b], Step::Number(_)) {
                        back[b] += back[k] * of_b;
                    }
                }
            }
        }
        values[self.last]
    }

    fn push(&mut self, step: Step) -> usize {
        let number = |k: usize| match self.steps[k] {
            Step::Number(number) => Some(number),
            _ => None,
        };
        // What is a number needs no steps.
        let folded = match step {
            Step::Function(function, a) => number(a).map(function.value),
            Step::Pair(pair, a, b) => number(a).zip(number(b)).map(|(a, b)| pair.value(a, b)),
            Step::Number(_) | Step::Coordinate(_) => None,
        };
        self.steps.push(folded.map_or(step, Step::Number));
        self.steps.len() - 1
    }
}

struct Parser<'a> {
    text: &'a str,
    /// In bytes.
    at: usize,
    depth: usize,
    expression: Expression,
}

impl<'a> Parser<'a> {
    fn wrong(&self, at: usize, message: &str) -> Error {
        // In a text that is far too long, the place may be inside of a character.
        let before = self.text.char_indices().take_while(|(place, _)| *place < at).count();
        let (text, message) = (self.text.to_owned(), message.to_owned());
        Error::Formula { what: "density", text, place: before, message }
    }

    /// The next character that is not a space.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, word: &str) -> bool {
        self.peek();
        let found = self.text[self.at..].starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// As many characters as fit.
    fn take_while(&mut self, mut fits: impl FnMut(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn sum(&mut self) -> Result<usize> {
        let mut left = self.product()?;
        loop {
            let pair = match self.peek() {
                Some('+') => Pair::Sum,
                Some('-' | '−') => Pair::Difference,
                _ => return Ok(left),
            };
            self.step_over();
            let right = self.product()?;
            left = self.expression.push(Step::Pair(pair, left, right));
        }
    }

    fn product(&mut self) -> Result<usize> {
        let mut left = self.signed()?;
        loop {
            let pair = match self.peek() {
                Some('*') => Pair::Product,
                Some('/') => Pair::Quotient,
                _ => return Ok(left),
            };
            self.step_over();
            let right = self.signed()?;
            left = self.expression.push(Step::Pair(pair, left, right));
        }
    }

    /// A sign binds less than a power: −x² is −(x²).
    fn signed(&mut self) -> Result<usize> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(self.wrong(self.at, "it goes too deep: take fewer brackets and signs"));
        }
        let found = match self.peek() {
            Some('-' | '−') => {
                self.step_over();
                let minus = self.expression.push(Step::Number(-1.0));
                let operand = self.signed()?;
                self.expression.push(Step::Pair(Pair::Product, minus, operand))
            }
            Some('+') => {
                self.step_over();
                self.signed()?
            }
            _ => self.power()?,
        };
        self.depth -= 1;
        Ok(found)
    }

    fn power(&mut self) -> Result<usize> {
        let base = self.atom()?;
        if self.take("^") || self.take("**") {
            let exponent = self.signed()?;
            return Ok(self.expression.push(Step::Pair(Pair::Power, base, exponent)));
        }
        Ok(base)
    }

    fn atom(&mut self) -> Result<usize> {
        let Some(first) = self.peek() else {
            return Err(self.wrong(self.at, "it ends where a number, a name or ( belongs"));
        };
        let start = self.at;
        if first == '(' {
            self.step_over();
            let inner = self.sum()?;
            self.close(start)?;
            return Ok(inner);
        }
        if first.is_ascii_digit() || first == '.' {
            return self.number(start);
        }
        if !(first.is_alphabetic() || first == '_') {
            let message = format!("a number, a name or ( belongs here, not `{first}`");
            return Err(self.wrong(start, &message));
        }
        let name = self.take_while(|c| c.is_alphanumeric() || c == '_');
        let function = FUNCTIONS.iter().find(|function| function.name == name);
        let is_pair = name == LOG_SUM;
        if self.peek() != Some('(') {
            if function.is_some() || is_pair {
                let message = format!("`{name}` is a function: write {name}(…)");
                return Err(self.wrong(start, &message));
            }
            if name == "pi" {
                return Ok(self.expression.push(Step::Number(std::f64::consts::PI)));
            }
            return Ok(self.coordinate(name));
        }
        let open = self.at;
        if is_pair {
            self.step_over();
            let a = self.sum()?;
            if !self.take(",") {
                let message = format!("a comma belongs here: {name} takes two numbers");
                return Err(self.wrong(self.at, &message));
            }
            let b = self.sum()?;
            self.close(open)?;
            return Ok(self.expression.push(Step::Pair(Pair::LogSum, a, b)));
        }
        let Some(function) = function else {
            let known = FUNCTIONS.iter().map(|function| function.name).chain([LOG_SUM]);
            let message = steinflow::Error::unknown("function", name, known).to_string();
            return Err(self.wrong(start, &message));
        };
        self.step_over();
        let argument = self.sum()?;
        self.close(open)?;
        Ok(self.expression.push(Step::Function(function, argument)))
    }

    fn coordinate(&mut self, name: &str) -> usize {
        let names = &mut self.expression.names;
        let place = names.iter().position(|own| own == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        self.expression.push(Step::Coordinate(place))
    }

    fn number(&mut self, start: usize) -> Result<usize> {
        self.take_while(|c| c.is_ascii_digit() || c == '.');
        // An exponent, if digits follow.
        let rest = &self.text[self.at..];
        let digits =
            rest.strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
        if digits.is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit())) {
            self.at += 2;
            self.take_while(|c| c.is_ascii_digit());
        }
        let text = &self.text[start..self.at];
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        let Some(number) = number else {
            return Err(self.wrong(start, &format!("`{text}` is not a number")));
        };
        Ok(self.expression.push(Step::Number(number)))
    }

    fn step_over(&mut self) {
        self.at += self.text[self.at..].chars().next().map_or(0, char::len_utf8);
    }

    fn close(&mut self, open: usize) -> Result<()> {
        if self.take(")") {
            return Ok(());
        }
        if let Some(found) = self.peek() {
            let message = format!("an operator or ) belongs here, not `{found}`");
            return Err(self.wrong(self.at, &message));
        }
        Err(self.wrong(open, "this bracket is never closed"))
    }
}

/// The one function of two numbers.
const LOG_SUM: &str = "logaddexp";

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, x: &[f64]) -> (f64, Vec<f64>) {
        let expression = Expression::parse(text).unwrap();
        let mut slopes = vec![0.0; x.len()];
        (expression.evaluate(x, &mut slopes), slopes)
    }

    #[test]
    fn formulas_mean_what_they_mean_on_paper() {
        for (text, expected) in [
            ("-x^2", -9.0),
            ("2^-1*x", 1.5),
            ("2^3^2 + 0*x", 512.0),
            ("x - 1 - 1", 1.0),
            ("12 / x / 2", 2.0),
            ("-x*-x", 9.0),
            ("1.5e1 + .5e-0*x", 16.5),
            ("x**2 − 1", 8.0),
            ("2*(x + 1)^2/4", 8.0),
            ("logaddexp(x, x) - log(2)", 3.0),
            ("sqrt(square(x)) + 0*pi", 3.0),
            ("(-x)^3", -27.0),
        ] {
            let (value, _) = at(text, &[3.0]);
            assert!((value - expected).abs() < 1e-12, "{text}: {value}");
        }
    }

    #[test]
    fn derivatives_are_differences() {
        let mut formulas: Vec<String> =
            FUNCTIONS.iter().map(|f| format!("{}(x*y) + {}(y)/x", f.name, f.name)).collect();
        formulas.extend(
            ["x^y", "x^3 - y^-2", "logaddexp(x, 2*y)*x", "x/y - (x - y)*x"].map(str::to_owned),
        );
        for text in formulas {
            let point = [0.7, 1.3];
            let (_, slopes) = at(&text, &point);
            for j in 0..2 {
                let value = |step: f64| {
                    let mut near = point;
                    near[j] += step;
                    at(&text, &near).0
                };
                let slope = (value(1e-6) - value(-1e-6)) / 2e-6;
                assert!((slope - slopes[j]).abs() < 1e-7 * slope.abs().max(1.0), "{text}, {j}");
            }
        }
        // A power that is a number needs no logarithm.
        assert_eq!(at("x^2", &[-3.0]), (9.0, vec![-6.0]));
        assert_eq!(at("x^2", &[0.0]), (0.0, vec![0.0]));
    }

    #[test]
    fn errors_show_the_place() {
        for (text, place, words) in [
            ("x +* y", 3, "not `*`"),
            ("x + ", 4, "it ends"),
            ("2x", 1, "an operator such as + or *"),
            ("(x + 1", 0, "never closed"),
            ("exp(x", 3, "never closed"),
            ("sinn(x)", 0, "did you mean `sin`?"),
            ("x + exp", 4, "exp(…)"),
            ("1.2.3*x", 0, "`1.2.3` is not a number"),
            ("logaddexp(x)", 11, "two numbers"),
            ("1 + 2", 0, "no coordinate"),
            ("ä + ß $", 6, "not `$`"),
            ("x)", 1, "not `)`"),
        ] {
            let error = Expression::parse(text).unwrap_err();
            let Error::Formula { place: found, message, .. } = &error else { panic!("{error}") };
            assert!(*found == place && message.contains(words), "{text}: {error}");
        }
        let deep = "(".repeat(100_000);
        assert!(Expression::parse(&deep).is_err());
        assert!(Expression::parse(&"-".repeat(50_000)).is_err());
    }
}
