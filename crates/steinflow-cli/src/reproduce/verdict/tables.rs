//! What the rows of `verdict.csv` come to: verdicts by what is true, over all, by target and by way.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use steinflow::diagnostics::Verdict;

use super::truth::Truth;

/// A run that was judged.
struct Line<'a> {
    target: &'a str,
    way: &'a str,
    verdict: Verdict,
    truth: Truth,
    evidence: &'a str,
}

impl<'a> Line<'a> {
    /// None of a run that failed, or of what is no row.
    fn parse(line: &'a str) -> Option<Self> {
        // Texts stand in quotes, and hold none.
        let parts: Vec<&str> = line.split('"').collect();
        let &[_, target, _, way, numbers, evidence, ..] = parts.as_slice() else { return None };
        let mut words = numbers.trim_matches(',').split(',').skip(1);
        let (verdict, truth) = (words.next()?, words.next()?);
        let verdict = Verdict::ALL.into_iter().find(|known| known.name() == verdict)?;
        let truth = Truth::ALL.into_iter().find(|known| known.name() == truth)?;
        Some(Self { target, way, verdict, truth, evidence })
    }

    fn is_bad(&self) -> bool {
        matches!(self.truth, Truth::MeansRight | Truth::Wrong)
    }

    fn is_trusted(&self) -> bool {
        self.verdict == Verdict::Trust
    }

    /// Why no more may be used, without numbers, so that it can be counted.
    fn why(&self) -> String {
        let headline = self.evidence.split(". ").next().unwrap_or_default();
        let why = headline.split_once(": ").map_or(headline, |(_, why)| why);
        let why = why.strip_prefix("the stop rule is not met: ").unwrap_or(why);
        let why = why.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let end = why.find(|c: char| c.is_ascii_digit() || "(,;".contains(c));
        let why = &why[..end.unwrap_or(why.len())];
        why.trim().trim_end_matches(':').to_owned()
    }
}

/// All of them.
pub fn of(csv: &str) -> String {
    let lines: Vec<Line<'_>> = csv.lines().filter_map(Line::parse).collect();
    format!("{}\n{}\n{}", over_all(&lines), by_target(&lines), by_way(&lines))
}

/// Verdicts by what is true, and how often they mislead.
fn over_all(lines: &[Line<'_>]) -> String {
    let count = |verdict: Verdict, truth: Truth| {
        lines.iter().filter(|line| line.verdict == verdict && line.truth == truth).count()
    };
    let mut text = String::from("| verdict |");
    for truth in Truth::ALL {
        let _ = write!(text, " {} |", truth.name());
    }
    text.push_str("\n|---|---|---|---|---|\n");
    for verdict in Verdict::ALL {
        let _ = write!(text, "| {} |", verdict.name());
        for truth in Truth::ALL {
            let _ = write!(text, " {} |", count(verdict, truth));
        }
        text.push('\n');
    }
    let trusted = lines.iter().filter(|line| line.is_trusted()).count();
    let bad = lines.iter().filter(|line| line.is_bad()).count();
    let false_trust = lines.iter().filter(|line| line.is_bad() && line.is_trusted()).count();
    let good = lines.iter().filter(|line| line.truth == Truth::Good).count();
    let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    let _ = writeln!(
        text,
        "\n{} runs. {trusted} were trusted, {false_trust} of them wrongly: {:.1} % of those trusted, \
         {:.1} % of the {bad} that are bad. Of the {good} good ones, {:.1} % were trusted.",
        lines.len(),
        share(false_trust, trusted),
        share(false_trust, bad),
        share(count(Verdict::Trust, Truth::Good), good),
    );
    text
}

/// In every cell the good, fair, means right and wrong runs; then the bad ones that were trusted, by way, and why good
/// ones were not.
fn by_target(lines: &[Line<'_>]) -> String {
    let mut text = String::from("| target: good · fair · means right · wrong |");
    for verdict in Verdict::ALL {
        let _ = write!(text, " {} |", verdict.name());
    }
    text.push_str(" bad, and not seen | good, and doubted |\n|---|---|---|---|---|---|---|---|\n");
    for (target, lines) in groups(lines, |line| line.target) {
        let _ = write!(text, "| {target} |");
        for verdict in Verdict::ALL {
            let count = |truth: Truth| {
                lines.iter().filter(|line| line.verdict == verdict && line.truth == truth).count()
            };
            let counts = Truth::ALL.map(count);
            let cell = counts.map(|count| count.to_string()).join(" · ");
            let _ = write!(text, " {} |", if counts == [0; 4] { "" } else { &cell });
        }
        let not_seen = lines.iter().filter(|line| line.is_bad() && line.is_trusted());
        let doubted = lines.iter().filter(|line| line.truth == Truth::Good && !line.is_trusted());
        let _ = writeln!(
            text,
            " {} | {} |",
            counted(not_seen.map(|line| line.way.to_owned())),
            counted(doubted.map(|line| line.why()))
        );
    }
    text
}

/// How often bad runs were trusted, and good ones.
fn by_way(lines: &[Line<'_>]) -> String {
    let mut text =
        String::from("| way | good | trusted | bad | trusted |\n|---|---|---|---|---|\n");
    for (way, lines) in groups(lines, |line| line.way) {
        let count = |of: &dyn Fn(&Line<'_>) -> bool| {
            let all = lines.iter().filter(|line| of(line));
            (all.clone().count(), all.filter(|line| line.is_trusted()).count())
        };
        let (good, right) = count(&|line| line.truth == Truth::Good);
        let (bad, wrong) = count(&|line| line.is_bad());
        let _ = writeln!(text, "| {way} | {good} | {right} | {bad} | {wrong} |");
    }
    text
}

fn groups<'l, 'a>(
    lines: &'l [Line<'a>],
    of: impl Fn(&Line<'a>) -> &'a str,
) -> BTreeMap<&'a str, Vec<&'l Line<'a>>> {
    let mut groups: BTreeMap<&str, Vec<&Line<'_>>> = BTreeMap::new();
    for line in lines {
        groups.entry(of(line)).or_default().push(line);
    }
    groups
}

/// Each with how often it is there, the most frequent first.
fn counted(texts: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.iter().map(|(text, count)| format!("{count} {text}")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_by_target_and_by_way() {
        let csv = "target,method,seed,verdict,truth,mean_error,variance,distance,seconds,cost,evidence\n\
            \"ring\",\"svgd, cut short\",1,trust,means right,0.1,0.5,1,1,9,\"Means may be used: they are. x 1\"\n\
            \"ring\",\"auto\",1,not-converged,good,0.1,1,1,1,9,\
            \"Use nothing of it yet: the stop rule is not met: does not mix (R̂ 1.17): several. x 1\"\n\
            \"ring\",\"ld\",1,not-converged,good,0,1,1,1,9,\"Use nothing of it yet: 8 steps are few. x 1\"\n\
            \"ring\",\"auto\",2,error,,,,,,,\"no\"\n\
            \"ball\",\"auto\",1,trust,good,0.1,1,1,1,9,\"Means may be used: they are. x 1\"\n";
        let table = of(csv);
        assert!(table.contains("4 runs. 2 were trusted, 1 of them wrongly: 50.0 %"), "{table}");
        let ring = "| ring | 0 · 0 · 1 · 0 |  | 2 · 0 · 0 · 0 |  |  | 1 svgd, cut short | 1 does not mix; 1 steps are few |";
        assert!(table.contains(ring), "{table}");
        assert!(table.contains("| auto | 2 | 1 | 0 | 0 |"), "{table}");
    }
}
