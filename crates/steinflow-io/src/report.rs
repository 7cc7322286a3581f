//! One HTML page about a run, or about several beside each other, that needs no other file.
//!
//! Words and tables are written here; plots are drawn by the page's own script from numbers that
//! stand in it as JSON. All that comes from a file is escaped on its way into either.
//!
//! ```
//! use steinflow_io::report::{Page, Run};
//! let run = Run { name: "a <b> run".into(), ..Run::default() };
//! let html = Page::report(vec![run]).html();
//! assert!(html.contains("a &lt;b&gt; run") && !html.contains("a <b> run"));
//! ```

mod comparison;
mod data;
mod escape;
mod text;

pub use data::{Frames, Grid, Line, Points, Predictions, Run, Trace, evenly};

use std::fmt::Write as _;

use escape::{escape, in_script};
use serde::Serialize;
use steinflow::diagnostics::Verdict;

use crate::record::Diagnosis;

const TEMPLATE: &str = include_str!("report/page.html");
const STYLE: &str = include_str!("report/page.css");
/// In the order in which they build on each other.
const SCRIPTS: [&str; 3] = [
    include_str!("report/plot.js"),
    include_str!("report/figures.js"),
    include_str!("report/page.js"),
];

/// What a page is about.
#[derive(Clone, Debug)]
pub struct Page {
    runs: Vec<Run>,
    is_live: bool,
}

/// What a live page asks for again and again.
#[derive(Serialize)]
struct State<'a> {
    runs: &'a [Run],
    live: bool,
    /// HTML of the parts that change.
    now: String,
    numbers: String,
}

impl Page {
    /// A page that stays: of one run, or of several compared.
    pub fn report(runs: Vec<Run>) -> Self {
        Self { runs, is_live: false }
    }

    /// A page about a run under way, which asks its server for [`Page::state`].
    pub fn live(run: Run) -> Self {
        Self { runs: vec![run], is_live: true }
    }

    /// The page.
    pub fn html(&self) -> String {
        let (title, body) = match &self.runs[..] {
            [run] => (run.name.clone(), text::body(run, self.is_live)),
            runs => (format!("{} runs compared", runs.len()), comparison::body(runs)),
        };
        let scripts = SCRIPTS.concat();
        let data = serde_json::json!({ "runs": self.runs, "live": self.is_live }).to_string();
        let parts = [
            ("TITLE", escape(&title)),
            ("STYLE", STYLE.to_owned()),
            ("BODY", body),
            ("DATA", in_script(&data)),
            ("SCRIPT", scripts),
        ];
        fill(TEMPLATE, &parts)
    }

    /// The numbers and words of now, as JSON.
    pub fn state(&self) -> String {
        let (now, numbers) = match &self.runs[..] {
            [run] => (text::now(run, self.is_live), text::numbers(run)),
            _ => (String::new(), String::new()),
        };
        let state = State { runs: &self.runs, live: self.is_live, now, numbers };
        serde_json::to_string(&state).unwrap_or_default()
    }
}

/// Puts parts in the places `{{NAME}}` of a template, in one pass, so that a part with braces of its
/// own stays as it is.
fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut page = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        page += before;
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        if let Some((_, part)) = parts.iter().find(|(own, _)| *own == name) {
            page += part;
        }
        rest = after;
    }
    page + rest
}

/// A table: the first column text, all others numbers.
fn table(caption: &str, header: &[&str], rows: &[Vec<String>]) -> String {
    let mut html = format!("<table><caption>{}</caption><thead><tr>", escape(caption));
    // Writing to a string cannot fail.
    for name in header {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(name));
    }
    html += "</tr></thead><tbody>";
    for row in rows {
        html += "<tr>";
        for (i, cell) in row.iter().enumerate() {
            let _ = match i {
                0 => write!(html, "<th scope=\"row\">{}</th>", escape(cell)),
                _ => write!(html, "<td>{}</td>", escape(cell)),
            };
        }
        html += "</tr>";
    }
    html + "</tbody></table>"
}

/// Four digits; a dash for what is not a number.
fn number(x: f64) -> String {
    if !x.is_finite() {
        "–".to_owned()
    } else if x == 0.0 {
        "0".to_owned()
    } else if (1e-3..1e6).contains(&x.abs()) {
        let digits = (3.0 - x.abs().log10().floor()).clamp(0.0, 6.0) as usize;
        format!("{x:.digits$}").replace('-', "−")
    } else {
        format!("{x:.3e}").replace('-', "−")
    }
}

/// The verdict in plain words; its own where another version has written it.
fn verdict_in_words(diagnosis: &Diagnosis) -> &str {
    match diagnosis.verdict() {
        Some(Verdict::Trust) => "Trust this run",
        Some(Verdict::MeansOnly) => "Trust the means, not the spread",
        Some(Verdict::NotConverged) => "Not converged",
        Some(Verdict::Collapsed) => "Collapsed",
        Some(Verdict::Diverged) => "Diverged",
        None => &diagnosis.verdict,
    }
}

/// The class that colours a verdict.
fn verdict_class(diagnosis: &Diagnosis) -> &'static str {
    match diagnosis.verdict() {
        Some(Verdict::Trust) => "good",
        Some(Verdict::MeansOnly) => "fair",
        Some(Verdict::NotConverged | Verdict::Collapsed | Verdict::Diverged) => "bad",
        None => "none",
    }
}
