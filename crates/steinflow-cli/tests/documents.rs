//! Every command of the README and of the documents runs, and ends in the verdict that its text promises.
//!
//! A block of commands that cannot run here is marked above it: `<!-- not run: why -->`.

#[allow(dead_code, reason = "other tests read what is written")]
#[path = "support/desk.rs"]
mod desk;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use desk::Desk;
use steinflow::diagnostics::Verdict;

/// The documents with commands for a shell.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    found.push(root.join("README.md"));
    found.sort();
    found
}

/// The commands of the blocks that are to run: words, and what is said beside them.
fn commands(text: &str) -> Vec<(String, String)> {
    let (mut found, mut is_open, mut is_run) = (Vec::new(), false, true);
    for line in text.lines() {
        if line.starts_with("<!-- not run:") {
            is_run = false;
        } else if line.starts_with("```") {
            is_open = !is_open && line == "```sh";
            // A mark is for the one block below it.
            is_run |= line == "```" && !is_open;
        } else if is_open && is_run && (line.starts_with("steinflow ") || line == "steinflow") {
            let (words, said) = line.split_once(" # ").unwrap_or((line, ""));
            let (words, _) = words.split_once(" > ").unwrap_or((words, ""));
            found.push((words.trim_start_matches("steinflow").trim().to_owned(), said.to_owned()));
        }
    }
    found
}

/// Tables with the names that the documents use.
fn lay_out(desk: &Desk) {
    let wave = |i: usize, k: f64| (i as f64 * k).sin();
    let mut homes = "id,agent,district,area,age,price\n".to_owned();
    let mut patients = "age,dose,outcome\n".to_owned();
    let mut claims = "region,years,log_years,claims\n".to_owned();
    let mut pupils = "school,hours,score\n".to_owned();
    for i in 0..160 {
        let (area, age) = (90.0 + 30.0 * wave(i, 1.7), 20.0 + 15.0 * wave(i, 2.9));
        let district = ["north", "south", "east"][i % 3];
        let price = 120.0 + 2.0 * area - age + 30.0 * (i % 3) as f64 + 12.0 * wave(i, 12.9898);
        writeln!(homes, "{i},a{},{district},{area:.2},{age:.1},{price:.2}", i * 7 % 160).unwrap();
        let (age, dose) = (50.0 + 20.0 * wave(i, 1.3), 5.0 + 3.0 * wave(i, 0.7));
        let is_well = (age - 50.0) / 20.0 + (dose - 5.0) / 3.0 + 1.6 * wave(i, 78.233) > 0.0;
        writeln!(patients, "{age:.1},{dose:.2},{}", if is_well { "yes" } else { "no" }).unwrap();
        let years: f64 = 1.0 + (i % 5) as f64;
        let count = (years * (1.0 + (i % 2) as f64) + 1.5 * wave(i, 43.1)).max(0.0).round();
        let region = ["coast", "hills"][i % 2];
        writeln!(claims, "{region},{years},{:.4},{count}", years.ln()).unwrap();
    }
    for i in 0..180 {
        let (school, hours) = (i % 12, 5.0 + 4.0 * wave(i, 0.37));
        let score = 50.0 + 3.0 * hours + 8.0 * wave(school, 2.1) + 5.0 * wave(i, 91.7);
        writeln!(pupils, "s{school},{hours:.2},{score:.2}").unwrap();
    }
    desk.write("pupils.csv", pupils);
    let (mut sales, mut before) = ("day,sales\n".to_owned(), [100.0, 105.0]);
    for day in 0..120 {
        let next = 60.0 + 0.7 * before[1] - 0.3 * before[0] + 8.0 * wave(day, 57.3);
        writeln!(sales, "{},{next:.2}", ["mo", "tu", "we"][day % 3]).unwrap();
        before = [before[1], next];
    }
    desk.write("sales.csv", sales + "mo,\n");
    desk.write("new-homes.csv", homes.lines().take(20).collect::<Vec<_>>().join("\n"));
    for (name, text) in [("homes.csv", homes), ("patients.csv", patients), ("claims.csv", claims)] {
        desk.write(name, text);
    }
}

/// The verdict that a line promises: trust, unless its comment names another. A comment may leave it open: "or less".
fn is_promised(said: &str, verdict: Verdict) -> bool {
    let others = Verdict::ALL.into_iter().filter(|&other| other != Verdict::Trust);
    let promised = others.into_iter().find(|other| said.contains(&other.name().replace('-', " ")));
    said.contains("or less") || promised.unwrap_or(Verdict::Trust) == verdict
}

#[test]
fn every_command_runs_and_ends_in_the_verdict_that_it_promises() {
    let mut ran = 0;
    for document in documents() {
        let desk = Desk::new();
        lay_out(&desk);
        let name = document.file_name().unwrap().to_string_lossy().into_owned();
        for (words, said) in commands(&std::fs::read_to_string(&document).unwrap()) {
            let text = desk.succeed(&words);
            ran += 1;
            if !(words.is_empty() || words.starts_with("sample") || words.starts_with("resume")) {
                continue;
            }
            let is_told = |verdict: &Verdict| text.contains(&format!("\n{}: ", verdict.title()));
            let verdict = Verdict::ALL.into_iter().find(is_told);
            let verdict =
                verdict.unwrap_or_else(|| panic!("{name}: {words}: no verdict in {text}"));
            assert!(is_promised(&said, verdict), "{name}: steinflow {words}:\n{text}");
        }
    }
    assert!(ran > 30, "only {ran} commands were found");
}

#[test]
fn blocks_are_told_apart() {
    let text = "\
```sh
steinflow sample a   # means only
cargo run
```
<!-- not run: why -->

```sh
steinflow sample b
```

```console
steinflow sample c
```

```sh
steinflow completions bash > file
```
";
    let found = commands(text);
    let words: Vec<&str> = found.iter().map(|(words, _)| words.as_str()).collect();
    assert_eq!(words, ["sample a", "completions bash"]);
    let (said, [trust, means_only, ..]) = (&found[0].1, Verdict::ALL);
    assert!(is_promised(said, means_only) && !is_promised(said, trust));
    assert!(is_promised("", trust) && !is_promised("", means_only));
}
