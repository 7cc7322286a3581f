//! A regression as statisticians write it, `price ~ area + C(district) + area:age`: the column to predict, the
//! columns to predict it from, and products of them.

use crate::{Error, Result};

/// Columns by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Formula {
    pub(super) target: String,
    /// All that are needed; none for all that there are.
    pub(super) features: Option<Vec<String>>,
    pub(super) categorical: Vec<String>,
    pub(super) drop: Vec<String>,
    /// Columns that are multiplied.
    pub(super) interactions: Vec<Vec<String>>,
    /// Columns that are needed for products alone.
    pub(super) helpers: Vec<String>,
}

/// A name or a sign, and where it stands.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Sign(char),
}

const SIGNS: &str = "~+-*:()";

/// More factors are a slip: their products grow as powers of 2.
const MOST_FACTORS: usize = 4;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token)>,
    at: usize,
    found: Formula,
}

impl Formula {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser { text, tokens: Vec::new(), at: 0, found: Self::default() };
        parser.split()?;
        parser.read()
    }
}

impl Parser<'_> {
    fn wrong<T>(&self, place: usize, message: impl Into<String>) -> Result<T> {
        let (what, text, message) = ("formula", self.text.to_owned(), message.into());
        Err(Error::Formula { what, text, place, message })
    }

    fn split(&mut self) -> Result<()> {
        let characters: Vec<char> = self.text.chars().collect();
        let mut at = 0;
        while let Some(&first) = characters.get(at) {
            let start = at;
            at += 1;
            if first.is_whitespace() {
                continue;
            }
            let token = if SIGNS.contains(first) {
                Token::Sign(first)
            } else {
                let is_quoted = first == '`';
                let ends =
                    |c: &char| *c == '`' || !is_quoted && (c.is_whitespace() || SIGNS.contains(*c));
                let from = if is_quoted { at } else { start };
                while characters.get(at).is_some_and(|c| !ends(c)) {
                    at += 1;
                }
                let name = characters[from..at].iter().collect();
                if is_quoted {
                    if at == characters.len() {
                        return self.wrong(start, "this quote is never closed");
                    }
                    at += 1;
                }
                Token::Name(name)
            };
            self.tokens.push((start, token));
        }
        Ok(())
    }

    /// Where the next token stands.
    fn place(&self) -> usize {
        self.tokens.get(self.at).map_or(self.text.chars().count(), |(place, _)| *place)
    }

    fn take(&mut self, sign: char) -> bool {
        let found = self.tokens.get(self.at).is_some_and(|(_, token)| *token == Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn name(&mut self) -> Result<String> {
        match self.tokens.get(self.at) {
            Some((_, Token::Name(name))) => {
                self.at += 1;
                Ok(name.clone())
            }
            _ => self.wrong(self.place(), "the name of a column belongs here"),
        }
    }

    fn read(mut self) -> Result<Formula> {
        self.found.target = self.name()?;
        if !self.take('~') {
            return self
                .wrong(self.place(), "~ belongs here, between what is predicted and the rest");
        }
        let (mut all, mut features) = (false, Vec::new());
        let mut is_minus = self.take('-');
        loop {
            let place = self.place();
            let term = self.term()?;
            match (term.as_slice(), is_minus) {
                ([one], false) if one == &["."] => all = true,
                ([one], false) if one == &["1"] => {}
                ([one], true) if one == &["1"] => {
                    return self.wrong(place, "there is always an intercept");
                }
                ([one], false) if one == &["0"] => {
                    return self.wrong(place, "there is always an intercept");
                }
                ([one], true) if one.len() == 1 => self.found.drop.extend(one.iter().cloned()),
                (_, true) => return self.wrong(place, "only columns can be taken away"),
                (terms, false) => {
                    for term in terms {
                        if term.contains(&self.found.target) {
                            return self.wrong(place, "what is predicted cannot predict itself");
                        }
                        match term.as_slice() {
                            [one] if features.contains(one) => {}
                            [one] => features.push(one.clone()),
                            _ if self.found.interactions.contains(term) => {}
                            _ => self.found.interactions.push(term.clone()),
                        }
                    }
                }
            }
            if self.at == self.tokens.len() {
                break;
            }
            is_minus = self.take('-');
            if !is_minus && !self.take('+') {
                return self.wrong(self.place(), "+ or - belongs here");
            }
        }
        if all {
            return Ok(self.found);
        }
        let dropped = std::mem::take(&mut self.found.drop);
        features.retain(|name| !dropped.contains(name));
        for name in self.found.interactions.iter().flatten() {
            if !features.contains(name) && !self.found.helpers.contains(name) {
                self.found.helpers.push(name.clone());
            }
        }
        features.extend(self.found.helpers.iter().cloned());
        self.found.features = Some(features);
        Ok(self.found)
    }

    /// Columns that are multiplied, of a term such as `a`, `a:b` or `a*b`, which is `a + b + a:b`.
    fn term(&mut self) -> Result<Vec<Vec<String>>> {
        let place = self.place();
        let mut parts = vec![vec![self.factor()?]];
        loop {
            if self.take(':') {
                let factor = self.factor()?;
                parts.last_mut().expect("there is one").push(factor);
            } else if self.take('*') {
                parts.push(vec![self.factor()?]);
            } else {
                break;
            }
        }
        if parts.iter().map(Vec::len).sum::<usize>() > MOST_FACTORS {
            return self.wrong(place, format!("more than {MOST_FACTORS} columns are multiplied"));
        }
        let mut subsets: Vec<Vec<String>> = (1_usize..1 << parts.len())
            .map(|chosen| {
                let own = parts.iter().enumerate().filter(|(k, _)| chosen >> k & 1 == 1);
                own.flat_map(|(_, part)| part.iter().cloned()).collect()
            })
            .collect();
        subsets.sort_by_key(Vec::len);
        Ok(subsets)
    }

    /// A column, or `C(column)` for one whose numbers are names.
    fn factor(&mut self) -> Result<String> {
        let name = self.name()?;
        if name != "C" || !self.take('(') {
            return Ok(name);
        }
        let column = self.name()?;
        if !self.take(')') {
            return self.wrong(self.place(), ") belongs here");
        }
        if !self.found.categorical.contains(&column) {
            self.found.categorical.push(column.clone());
        }
        Ok(column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &str) -> Vec<String> {
        list.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn formulas_name_columns() {
        let found = Formula::parse("price ~ area + C(district) + area:age").unwrap();
        assert_eq!((found.target.as_str(), found.categorical), ("price", words("district")));
        assert_eq!(found.features, Some(words("area district age")));
        assert_eq!((found.interactions, found.helpers), (vec![words("area age")], words("age")));

        let found = Formula::parse("y ~ a*b*`my x` - a").unwrap();
        let pairs: Vec<Vec<&str>> =
            vec![vec!["a", "b"], vec!["a", "my x"], vec!["b", "my x"], vec!["a", "b", "my x"]];
        assert_eq!(found.interactions, pairs);
        assert_eq!((found.drop, found.helpers), (Vec::new(), words("a")));

        let found = Formula::parse("y ~ . - id").unwrap();
        assert_eq!((found.features, found.drop), (None, words("id")));
        assert_eq!(Formula::parse("y~1").unwrap().features, Some(Vec::new()));
    }

    #[test]
    fn errors_show_the_place() {
        for (text, place, words) in [
            ("price area", 6, "~ belongs here"),
            ("", 0, "the name of a column"),
            ("y ~ a +", 7, "the name of a column"),
            ("y ~ a b", 6, "+ or -"),
            ("y ~ C(a", 7, ") belongs"),
            ("y ~ `a", 4, "never closed"),
            ("y ~ a - 1", 8, "always an intercept"),
            ("y ~ 0 + a", 4, "always an intercept"),
            ("y ~ a:y", 4, "predict itself"),
            ("y ~ a*b*c*d*e", 4, "more than 4"),
            ("y ~ a - a:b", 8, "only columns"),
        ] {
            let error = Formula::parse(text).unwrap_err();
            let Error::Formula { place: found, message, .. } = &error else { panic!("{error}") };
            assert!(*found == place && message.contains(words), "{text}: {error}");
        }
    }
}
