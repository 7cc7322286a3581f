//! Rows of numbers as CSV text.

use std::fmt::Write as _;

/// A table under construction.
pub struct Csv(String);

impl Csv {
    pub fn new(header: &str) -> Self {
        Self(format!("{header}\n"))
    }

    /// A row: text in quotes, then what is already written as numbers.
    pub fn row(&mut self, texts: &[&str], numbers: &[String]) {
        let quoted = texts.iter().map(|text| format!("\"{}\"", text.replace('"', "\"\"")));
        let cells: Vec<String> = quoted.chain(numbers.iter().cloned()).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{}", cells.join(","));
    }

    pub fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// A number with the digits that a figure can show.
pub fn number(value: f64) -> String {
    format!("{value:.4}")
}
