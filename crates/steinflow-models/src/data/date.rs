//! Dates as numbers: days since 1970-01-01, with the time of day as a fraction.

use serde::{Deserialize, Serialize};

/// Which part of a date is written first.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DateForm {
    /// 2024-02-29.
    Year,
    /// 29.02.2024.
    Day,
    /// 02/29/2024.
    Month,
    /// 2024-02, the first of the month.
    YearAndMonth,
}

impl DateForm {
    /// The form that all of the texts have; where days and months cannot be told apart, points mean
    /// that days come first.
    pub(super) fn of<'a>(texts: &(impl Iterator<Item = &'a str> + Clone)) -> Option<Self> {
        let with_points = texts.clone().any(|text| text.contains('.'));
        let order = if with_points {
            [Self::Year, Self::Day, Self::Month, Self::YearAndMonth]
        } else {
            [Self::Year, Self::Month, Self::Day, Self::YearAndMonth]
        };
        order.into_iter().find(|form| texts.clone().all(|text| form.days(text).is_some()))
    }

    /// Days since 1970-01-01; none if the text is no date of this form.
    pub(super) fn days(self, text: &str) -> Option<f64> {
        let (date, time) = match text.split_once(['T', ' ']) {
            Some((date, time)) => (date, Some(time.trim())),
            None => (text, None),
        };
        let separator = date.chars().find(|c| !c.is_ascii_digit())?;
        if !matches!(separator, '-' | '/' | '.') {
            return None;
        }
        let parts: Vec<&str> = date.split(separator).collect();
        let (year, month, day) = match (self, parts.as_slice()) {
            (Self::Year, &[year, month, day])
            | (Self::Day, &[day, month, year])
            | (Self::Month, &[month, day, year]) => (year, month, day),
            (Self::YearAndMonth, &[year, month]) if time.is_none() => (year, month, "1"),
            _ => return None,
        };
        let number = |part: &str, lengths: std::ops::RangeInclusive<usize>| {
            let fits = lengths.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
            if fits { part.parse::<i64>().ok() } else { None }
        };
        let (year, month, day) = (number(year, 4..=4)?, number(month, 1..=2)?, number(day, 1..=2)?);
        if !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) {
            return None;
        }
        Some(days_to(year, month) as f64 + (day - 1) as f64 + time.map_or(Some(0.0), fraction)?)
    }
}

/// The part of a day that has passed at a time such as `13:30`, `13:30:05.5` or `13:30:05Z`.
fn fraction(time: &str) -> Option<f64> {
    let mut parts = time.trim_end_matches('Z').split(':');
    let mut next = |limit: f64| -> Option<f64> {
        let number: f64 = parts.next().unwrap_or("0").parse().ok()?;
        (0.0..limit).contains(&number).then_some(number)
    };
    let (hours, minutes, seconds) = (next(24.0)?, next(60.0)?, next(60.0)?);
    if parts.next().is_some() {
        return None;
    }
    Some((hours + (minutes + seconds / 60.0) / 60.0) / 24.0)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to the first of a month.
fn days_to(year: i64, month: i64) -> i64 {
    let leaps = |year: i64| (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    let years = 365 * (year - 1970) + leaps(year) - leaps(1970);
    years + (1..month).map(|month| days_of(year, month)).sum::<i64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted() {
        for (text, form, days) in [
            ("1970-01-01", DateForm::Year, Some(0.0)),
            ("2000-03-01", DateForm::Year, Some(11_017.0)),
            ("1969-12-31T12:00", DateForm::Year, Some(-0.5)),
            ("29.2.2024", DateForm::Day, Some(19_782.0)),
            ("2/29/2024 06:00:00", DateForm::Month, Some(19_782.25)),
            ("29.2.2023", DateForm::Day, None),
            ("2024-13-01", DateForm::Year, None),
            ("2024-1", DateForm::Year, None),
            ("2024-03", DateForm::YearAndMonth, Some(19_783.0)),
            ("2024-03-02", DateForm::YearAndMonth, None),
            ("2024-13", DateForm::YearAndMonth, None),
            ("2024-01-01 25:00", DateForm::Year, None),
            ("1-2-3", DateForm::Year, None),
            ("9é.1.2020", DateForm::Day, None),
        ] {
            assert_eq!(form.days(text), days, "{text}");
        }
    }

    #[test]
    fn forms_are_told_by_all_dates() {
        let form = |texts: &[&str]| DateForm::of(&texts.iter().copied());
        assert_eq!(form(&["2024-01-02"]), Some(DateForm::Year));
        assert_eq!(form(&["01/02/2024", "13/02/2024"]), Some(DateForm::Day));
        assert_eq!(form(&["01/02/2024"]), Some(DateForm::Month));
        assert_eq!(form(&["01.02.2024"]), Some(DateForm::Day));
        assert_eq!(form(&["01.02.2024", "north"]), None);
    }
}
