//! How a file of text holds its table: what separates cells, and how decimals are written.

use csv::{ReaderBuilder, StringRecord, Trim};

/// Lines that begin with it are comments.
const COMMENT: u8 = b'#';

/// How much of a text is looked at to tell its separator.
const SAMPLE_RECORDS: usize = 200;

/// In the order in which they are preferred.
const SEPARATORS: [(u8, &str); 4] =
    [(b',', "commas"), (b'\t', "tabs"), (b';', "semicolons"), (b'|', "vertical bars")];

/// What was found out about a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    separator: u8,
    /// Whether decimals are written with a comma, as in `1.234,5`.
    pub(super) decimal_comma: bool,
}

impl Dialect {
    /// Of numbers that no text has held.
    pub(super) const PLAIN: Self = Self { separator: b',', decimal_comma: false };

    /// The separator that splits most records as it splits the header; of several, the one that
    /// makes most cells.
    pub(super) fn detect(text: &str) -> Self {
        let mut best = (0.0, 1);
        let mut found = Self::PLAIN;
        for (separator, _) in SEPARATORS {
            let dialect = Self { separator, decimal_comma: false };
            let mut lengths = Vec::new();
            let records = dialect.reader(text).into_records();
            for record in records.take(SAMPLE_RECORDS).map_while(Result::ok) {
                lengths.push(record.len());
            }
            let Some(&header) = lengths.first().filter(|&&cells| cells > 1) else { continue };
            let alike = lengths.iter().filter(|&&cells| cells == header).count();
            let score = (alike as f64 / lengths.len() as f64, header);
            if score > best {
                (best, found) = (score, dialect);
            }
        }
        found.decimal_comma = found.separator != b',' && found.has_decimal_commas(text);
        found
    }

    /// Whether more cells are numbers with a comma than with a point.
    fn has_decimal_commas(self, text: &str) -> bool {
        let (mut commas, mut points) = (0, 0);
        for record in self.reader(text).into_records().take(SAMPLE_RECORDS).map_while(Result::ok) {
            for cell in &record {
                let cell = sign_of_unit(cell).map_or(cell, |(_, cell)| cell);
                let is_number = |text: &str| text.parse::<f64>().is_ok();
                commas += usize::from(cell.contains(',') && is_number(&with_point(cell)));
                // `1.234` may be either.
                let has_point = cell.contains('.') && groups_of_three(cell, '.').is_none();
                points += usize::from(has_point && is_number(cell));
            }
        }
        commas > points
    }

    /// Flexible, because our own check of the length gives the better error.
    pub(super) fn reader(self, text: &str) -> csv::Reader<&[u8]> {
        ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(Trim::All)
            .comment(Some(COMMENT))
            .delimiter(self.separator)
            .from_reader(text.as_bytes())
    }

    /// What is not as in most files, for people.
    pub(super) fn peculiarity(self) -> Option<String> {
        let named = SEPARATORS.iter().find(|(separator, _)| *separator == self.separator);
        let separated = named.filter(|_| self.separator != b',').map(|(_, name)| *name)?;
        let decimals = if self.decimal_comma { " and decimal commas" } else { "" };
        Some(format!("with {separated}{decimals}"))
    }

    /// The number that a cell holds, perhaps with the sign of a currency or of percent.
    pub(super) fn number(self, cell: &str) -> Option<f64> {
        self.plain_number(cell).or_else(|| match cell.strip_prefix('-') {
            Some(rest) => sign_of_unit(rest).and_then(|(_, rest)| Some(-self.plain_number(rest)?)),
            None => sign_of_unit(cell).and_then(|(_, rest)| self.plain_number(rest)),
        })
    }

    fn plain_number(self, cell: &str) -> Option<f64> {
        if self.decimal_comma {
            return with_point(cell).parse().ok();
        }
        cell.parse().ok().or_else(|| grouped(cell))
    }
}

/// The sign of a currency or of percent before or after a number, and what is left.
pub(super) fn sign_of_unit(cell: &str) -> Option<(char, &str)> {
    const BEFORE: [char; 4] = ['$', '€', '£', '¥'];
    const AFTER: [char; 5] = ['%', '$', '€', '£', '¥'];
    let (first, last) = (cell.chars().next()?, cell.chars().next_back()?);
    if BEFORE.contains(&first) {
        return Some((first, cell[first.len_utf8()..].trim_start()));
    }
    AFTER.contains(&last).then(|| (last, cell[..cell.len() - last.len_utf8()].trim_end()))
}

/// A number with a decimal comma, and perhaps points between thousands, as a program writes it.
fn with_point(cell: &str) -> String {
    let (whole, fraction) = cell.split_once(',').unwrap_or((cell, ""));
    let whole = match groups_of_three(whole, '.') {
        Some(digits) => digits,
        None => whole.to_owned(),
    };
    if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") }
}

/// A number with commas between thousands, as in `1,234.5`.
fn grouped(cell: &str) -> Option<f64> {
    let (whole, fraction) = cell.split_once('.').unwrap_or((cell, ""));
    format!("{}.{fraction}", groups_of_three(whole, ',')?).parse().ok()
}

/// The digits of a number whose thousands are set apart.
fn groups_of_three(whole: &str, separator: char) -> Option<String> {
    let mut groups = whole.split(separator);
    let first = groups.next()?;
    let digits = first.trim_start_matches(['+', '-']);
    let is_group = |group: &str| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit());
    let rest: Vec<&str> = groups.collect();
    let fits = !rest.is_empty()
        && (1..=3).contains(&digits.len())
        && first.len() - digits.len() <= 1
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && rest.iter().all(|group| is_group(group));
    fits.then(|| first.to_owned() + &rest.concat())
}

/// Words that stand for a value that is not known.
pub(super) fn is_missing(cell: &str) -> bool {
    const WORDS: [&str; 12] =
        ["", "?", "-", "--", ".", "na", "n/a", "#n/a", "<na>", "nan", "null", "missing"];
    // `none` in small letters is a level of many categories.
    cell == "None" || (cell.len() <= 7 && WORDS.contains(&cell.to_ascii_lowercase().as_str()))
}

/// Whether every cell of a record is a number, which no header is.
pub(super) fn is_all_numbers(dialect: Dialect, record: &StringRecord) -> bool {
    record.iter().all(|cell| dialect.number(cell).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_and_decimals_are_told() {
        for (text, separator, decimal_comma) in [
            ("a,b\n1,2\n", b',', false),
            ("a;b\n1,5;2\n", b';', true),
            ("a;b\n1.5;2\n", b';', false),
            ("a\tb\n1\t2\n", b'\t', false),
            ("a|b\n1|2\n", b'|', false),
            ("# by, hand\na;b\n\"x;y\";2\n", b';', false),
            ("a;b,y\n1,2\n", b',', false),
            ("a\n1\n", b',', false),
            ("", b',', false),
            ("a;b\n1,50 €;x\n", b';', true),
        ] {
            assert_eq!(Dialect::detect(text), Dialect { separator, decimal_comma }, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        let comma = Dialect { separator: b';', decimal_comma: true };
        for (dialect, cell, number) in [
            (comma, "1,5", Some(1.5)),
            (comma, "-1.234.567,5", Some(-1_234_567.5)),
            (comma, "1.234", Some(1234.0)),
            (comma, "12.34", Some(12.34)),
            (comma, "1,2,3", None),
            (Dialect::PLAIN, "1,234.5", Some(1234.5)),
            (Dialect::PLAIN, "1,234,567", Some(1_234_567.0)),
            (Dialect::PLAIN, "1,23", None),
            (Dialect::PLAIN, "-3e-2", Some(-0.03)),
            (Dialect::PLAIN, "x", None),
            (Dialect::PLAIN, "$1,463.76", Some(1463.76)),
            (Dialect::PLAIN, "-£ 5", Some(-5.0)),
            (Dialect::PLAIN, "$-5", Some(-5.0)),
            (Dialect::PLAIN, "29.9%", Some(29.9)),
            (comma, "1.234,50 €", Some(1234.5)),
            (Dialect::PLAIN, "$", None),
            (Dialect::PLAIN, "%5", None),
        ] {
            assert_eq!(dialect.number(cell), number, "{cell}");
        }
    }

    #[test]
    fn words_for_what_is_missing_are_known() {
        assert!(["", "NA", "n/a", "NaN", "?", "NULL", "None"].iter().all(|word| is_missing(word)));
        assert!(["none", "0", "no", "nano"].iter().all(|word| !is_missing(word)));
    }
}
