//! `steinflow report`: the page is whole by itself, says what the run says, and a browser draws it.

mod support {
    pub mod desk;
}

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use steinflow_io::add_to_run;
use support::desk::Desk;

/// A diagnosis as `steinflow diagnose` leaves it, with words that would like to be markup.
const DIAGNOSIS: &str = r#"{
    "verdict": "means-only",
    "headline": "The means can be used, <i>the spread</i> cannot.",
    "evidence": [
        {"name": "spread & kin", "value": 0.6, "expected": "0.9 to 1.1", "passed": false,
         "meaning": "Particles are too close."},
        {"name": "KSD", "value": null, "expected": "below 1", "passed": null, "meaning": "Unknown."}
    ],
    "advice": ["take more particles </script>"]
}"#;

/// The numbers inside a page.
fn data(page: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"data\">";
    let json = page.split_once(start).unwrap().1.split_once("</script>").unwrap().0;
    serde_json::from_str(json).unwrap()
}

/// Nothing in a page may be fetched from anywhere.
fn assert_self_contained(page: &str) {
    for attribute in ["src=\"", "href=\"", "action=\"", "url("] {
        for (place, _) in page.match_indices(attribute) {
            let value = &page[place + attribute.len()..];
            let inside = value.starts_with("data:") || value.starts_with('#');
            assert!(inside, "{attribute}{}", value.chars().take(40).collect::<String>());
        }
    }
    assert!(!page.contains("@import") && !page.contains("XMLHttpRequest"));
    // A live page asks its own server; no other page asks anybody.
    assert_eq!(page.matches("fetch(").count(), 1);
    assert!(page.contains("if (page.live) followRun();") && page.contains("default-src 'none'"));
    assert!(page.contains("<noscript>"));
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
}

/// Puts a diagnosis with all that it may hold in place of the run's own.
fn diagnose(folder: &Path) {
    add_to_run(folder, "diagnosis.json", DIAGNOSIS.as_bytes(), true).unwrap();
}

/// Opens a page in Chromium and gives what it made of it; none where there is no Chromium.
fn drawn(page: &Path) -> Option<String> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders: Vec<_> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let found = names.iter().find_map(|name| {
        folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
    });
    let Some(browser) = found else {
        let excused = std::env::var("STEINFLOW_EXCUSED").unwrap_or("chromium".to_owned());
        assert!(excused.contains("chromium"), "none of {names:?} is in PATH");
        let _ = writeln!(
            std::io::stderr(),
            "skipped: no chromium, chromium-browser or google-chrome in PATH"
        );
        return None;
    };
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--virtual-time-budget=3000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    let dom = String::from_utf8(output.stdout).unwrap();
    assert!(dom.contains("data-drawn=\"yes\""), "the script did not reach its end");
    Some(dom)
}

fn figures(dom: &str) -> usize {
    dom.matches("<figure").count()
}

#[test]
fn a_page_about_one_run() {
    let desk = Desk::new();
    desk.succeed("sample -m sgrhmc-stein --steps 60 -q --out run");
    assert_eq!(desk.succeed("report run").trim(), "run/report.html");
    let page = desk.read("run/report.html");
    assert_self_contained(&page);
    for word in [
        "sgrhmc-stein on tri-crescent: 100 particles, 60 steps (finished)",
        "variance, all coordinates",
        "exact sd",
        "upper",
        "model = &quot;tri-crescent&quot;",
        "arXiv:2110.03768",
    ] {
        assert!(page.contains(word), "{word}");
    }
    let run = &data(&page)["runs"][0];
    assert_eq!(run["points"]["columns"][1].as_array().unwrap().len(), 100);
    assert_eq!(run["density"]["side"], 120);
    assert_eq!(run["marginals"].as_array().unwrap().len(), 2);
    let frames = run["frames"]["steps"].as_array().unwrap();
    assert_eq!((frames.len(), &frames[60]), (61, &Value::from(60)));
    assert_eq!(run["trace"]["step"].as_array().unwrap().len(), 60);
    if let Some(dom) = drawn(&desk.path("run/report.html")) {
        // The animation, two marginals, four traces, and KSD by steps and by gradients.
        assert_eq!(figures(&dom), 9);
        assert!(dom.contains("Step 60"));
    }
    fs::remove_file(desk.path("run/diagnosis.json")).unwrap();
    desk.succeed("report run --force");
    let words = "This run has no diagnosis; <code>steinflow diagnose RUN</code> makes one";
    assert!(desk.read("run/report.html").contains(words));
    // The page belongs to the run.
    desk.fail("report run", 2, &["run/report.html", "exists", "--force"]);
    desk.succeed("report run --force");
    desk.succeed("sample -m sgrhmc-stein --steps 5 -q --out run --force");
    assert!(!desk.path("run/report.html").exists());
}

#[test]
fn names_from_files_stay_text() {
    let desk = Desk::new();
    let feature = "<img/src=x>&'</script>";
    let rows: Vec<String> = (0..20).map(|i| format!("{i},{}", 2 * i + i % 3)).collect();
    desk.write("data.csv", format!("{feature},y\n{}\n", rows.join("\n")));
    let run = "sample linear-regression --data data.csv --method svgd -n 10 --steps 40 \
               --step-size 0.001 -q --out a<b>&c";
    desk.succeed(run);
    diagnose(&desk.path("a<b>&c"));
    desk.succeed("report a<b>&c --out page.html");
    let page = desk.read("page.html");
    assert_self_contained(&page);
    assert!(!page.contains("<img") && !page.contains("a<b>&c") && !page.contains("<i>the spread"));
    for word in [
        "a&lt;b&gt;&amp;c",
        "Trust the means, not the spread",
        "&lt;i&gt;the spread&lt;/i&gt;",
        "spread &amp; kin",
        "✗ failed",
        "take more particles &lt;/script&gt;",
        "Kernel Stein discrepancy",
    ] {
        assert!(page.contains(word), "{word}");
    }
    let run = &data(&page)["runs"][0];
    assert!(run["points"]["names"].as_array().unwrap().contains(&Value::from(feature)));
    // Of step 32 and the last.
    assert_eq!(run["trace"]["ksd"].as_array().unwrap().len(), 2);
    if let Some(dom) = drawn(&desk.path("page.html")) {
        assert!(!dom.contains("<img") && dom.contains("KSD against gradients"));
    }
}

#[test]
fn a_page_about_a_network() {
    let desk = Desk::new();
    desk.succeed("sample bnn --hidden 5 -n 10 --steps 50 -q --out net");
    desk.succeed("report net");
    let page = desk.read("net/report.html");
    assert_self_contained(&page);
    assert!(page.contains("inside the 90 % interval") && page.contains("rows held back"));
    let predictions = &data(&page)["runs"][0]["predictions"];
    let rows = predictions["rows"].as_u64().unwrap();
    let pit = predictions["pit"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap());
    assert_eq!((pit.sum::<u64>(), predictions["coverage"].as_array().unwrap().len()), (rows, 3));
    if let Some(dom) = drawn(&desk.path("net/report.html")) {
        // Six marginals, the pairs, four traces, three of predictions.
        assert_eq!(figures(&dom), 14);
    }
}

#[test]
fn runs_are_compared() {
    let desk = Desk::new();
    let run = "sample gaussian --dim 8 --steps 40 --step-size 0.05 -q -n 3000";
    desk.succeed(&format!("{run} --method ld --out runs/ld --collect-from 0 --collect-every 10"));
    desk.succeed(&format!("{run} --method svgd --out runs/svgd"));
    diagnose(&desk.path("runs/svgd"));
    fs::remove_file(desk.path("runs/ld/diagnosis.json")).unwrap();
    assert_eq!(desk.succeed("report runs/ld runs/svgd").trim(), "runs/comparison.html");
    let page = desk.read("runs/comparison.html");
    assert_self_contained(&page);
    for word in ["2 runs compared", "no diagnosis", "worst sd / exact", "last KSD"] {
        assert!(page.contains(word), "{word}");
    }
    // Too many to embed, and the page says so.
    assert!(page.contains("ld: 2000 of 15000 samples are shown"));
    assert!(page.contains("svgd: 2000 of 3000 particles are shown"));
    if let Some(dom) = drawn(&desk.path("runs/comparison.html")) {
        // Four traces, two of the discrepancy, six marginals.
        assert_eq!(figures(&dom), 12);
    }
    desk.fail("report runs/ld runs/svgd", 2, &["comparison.html", "exists"]);
}

#[test]
fn what_is_no_run_is_told_so() {
    let desk = Desk::new();
    desk.write("file", "");
    fs::create_dir(desk.path("folder")).unwrap();
    desk.fail("report", 2, &["RUN"]);
    desk.fail("report nowhere", 2, &["nowhere", "does not exist"]);
    desk.fail("report file", 2, &["is a file"]);
    desk.fail("report folder", 2, &[".steinflow-run"]);
    desk.succeed("sample -m svgd banana --steps 5 -q --out run");
    desk.fail("report run --out missing/page.html", 2, &["folder does not exist"]);
    desk.write("run/diagnosis.json", "{\"verdict\": 3}");
    desk.fail("report run", 1, &["diagnosis.json", "cannot be used"]);
    fs::remove_file(desk.path("run/diagnosis.json")).unwrap();
    fs::remove_file(desk.path("run/trace.parquet")).unwrap();
    desk.fail("report run", 1, &["trace.parquet", "not there"]);
}

/// `old-run` is a folder as runs were left before the list of their files had checksums.
#[test]
fn a_folder_of_an_earlier_version_opens() {
    let desk = Desk::new();
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old-run");
    fs::create_dir(desk.path("old")).unwrap();
    for entry in fs::read_dir(old).unwrap().flatten() {
        fs::copy(entry.path(), desk.path("old").join(entry.file_name())).unwrap();
    }
    desk.succeed("report old");
    let page = desk.read("old/report.html");
    for word in [
        "sgrhmc-stein on tri-crescent: 12 particles, 20 steps (finished)",
        "mean log density −1.242",
        "Moments of 36 collected samples",
        "Not converged",
        "There is a mode without particles.",
        "variance, narrowest coordinate",
    ] {
        assert!(page.contains(word), "{word}");
    }
    let run = &data(&page)["runs"][0];
    assert_eq!(run["points"]["names"], serde_json::json!(["x", "y"]));
    assert_eq!(run["points"]["columns"][0].as_array().unwrap().len(), 36);
    assert_eq!(run["frames"]["steps"].as_array().unwrap().len(), 21);
    let names: Vec<&str> = run["trace"]["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column[0].as_str().unwrap())
        .collect();
    assert_eq!(names, ["mean_log_density", "velocity_norm", "bandwidth", "step_size"]);
    assert!(!run["trace"]["ksd"].as_array().unwrap().is_empty());
    desk.succeed("diagnose old");
    // Twelve particles allow too few evaluations to look for modes in.
    assert_eq!(desk.read("old/diagnosis.json").matches("\"name\"").count(), 13);
}

#[test]
fn bits_that_have_changed_are_noticed_by_whoever_reads_them() {
    let desk = Desk::new();
    desk.succeed("sample banana --method ld -n 20 --steps 20 -q --out run");
    desk.succeed("sample banana --method ld -n 20 --steps 20 -q --out other");
    let said = desk.succeed("verify run other");
    assert!(said.contains("run: 8 of 8 files are as they were written"), "{said}");
    let good = fs::read(desk.path("run/particles.parquet")).unwrap();
    for place in (0..good.len()).step_by(good.len() / 20) {
        let mut bad = good.clone();
        bad[place] ^= 16;
        fs::write(desk.path("run/particles.parquet"), bad).unwrap();
        for command in ["report run --force", "diagnose run", "verify other run"] {
            desk.fail(command, 1, &["run/particles.parquet", "SHA-256"]);
        }
    }
    fs::write(desk.path("run/particles.parquet"), good).unwrap();
    for command in ["report run --force", "diagnose run", "verify run", "verify --help"] {
        desk.succeed(command);
    }
    assert!(desk.succeed("--help").contains("verify"));
    desk.fail("verify nowhere", 2, &["nowhere", "does not exist"]);
    desk.fail("verify", 2, &["RUN"]);
}
