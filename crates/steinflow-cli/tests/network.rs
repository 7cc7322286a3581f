//! A Bayesian neural network as a user meets it: from a CSV file to scores, and to predictions for
//! another file.

#[path = "support/desk.rs"]
mod desk;

use desk::{Desk, listing};

const PENGUINS: &str = include_str!("../../steinflow-models/data/penguins.csv");

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

/// The numbers of a CSV file, a row a vector.
fn numbers(csv: &str) -> Vec<Vec<f64>> {
    let rows = csv.lines().skip(1);
    rows.map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect()
}

/// The header and the given rows of the penguins.
fn penguins(rows: impl Iterator<Item = usize>) -> String {
    let lines: Vec<&str> = PENGUINS.lines().collect();
    let chosen = rows.map(|row| lines[row + 1]);
    std::iter::once(lines[0]).chain(chosen).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_is_scored_on_the_rows_that_it_holds_back() {
    let desk = Desk::new();
    let text = desk.succeed("sample bnn --steps 20 -n 10 -q --out run");
    for words in [
        "401 weights (layers 6-50-1, relu)",
        "300 rows trained, 33 were held back at random (--test-fraction 0.1, --seed 0)",
        "the 10 last particles",
        "log-likelihood",
        "inside the 90 % interval",
        "predictions.csv",
    ] {
        assert!(text.contains(words), "{text} lacks {words}");
    }
    assert!(!text.contains("w1_1_1"), "{text}");
    assert_eq!(
        listing(&desk.path("run")),
        [
            ".steinflow-run",
            "checkpoint",
            "config.toml",
            "diagnosis.json",
            "particles.parquet",
            "predictions.csv",
            "predictions.png",
            "standardisation.json",
            "summary.json",
            "trace.parquet"
        ]
    );
    let summary = json(&desk.read("run/summary.json"));
    assert!(summary["moments"].is_null(), "{summary}");
    let test = &summary["network"]["test"];
    assert_eq!(test["rows"], 33);
    assert_eq!(test["pit"].as_array().unwrap().len(), 10);

    // The scores are those of the file.
    let csv = desk.read("run/predictions.csv");
    assert!(csv.starts_with("row,target,mean,sd,q0.05,q0.25,q0.5,q0.75,q0.95\n"), "{csv}");
    let rows = numbers(&csv);
    assert_eq!(rows.len(), 33);
    let mse = rows.iter().map(|row| (row[1] - row[2]).powi(2)).sum::<f64>() / 33.0;
    let near = |name: &str, value: f64| {
        let found = test[name].as_f64().unwrap();
        assert!((found - value).abs() < 1e-9 * value.abs().max(1.0), "{name}: {found} {value}");
    };
    near("rmse", mse.sqrt());
    let inside =
        |row: &&Vec<f64>, low: usize, high: usize| row[low] <= row[1] && row[1] <= row[high];
    near("coverage_90", rows.iter().filter(|row| inside(row, 4, 8)).count() as f64 / 33.0);
    near("coverage_50", rows.iter().filter(|row| inside(row, 5, 7)).count() as f64 / 33.0);
    // Row numbers are the file's, and quantiles are in order.
    let table = numbers(PENGUINS);
    for row in &rows {
        assert_eq!(table[row[0] as usize][6], row[1]);
        assert!(row[4..].is_sorted() && row[3] > 0.0, "{row:?}");
    }

    // All rows train, by a standard split, and with few rows.
    let text = desk.succeed("sample bnn --test-fraction 0 --steps 5 -n 10 -q --out all");
    assert!(text.contains("all 333 rows trained: hold some back with --test-fraction"), "{text}");
    assert!(
        !desk.path("all/predictions.csv").exists() && desk.path("all/predictions.png").exists()
    );
    let text = desk.succeed("sample bnn --split 3 --steps 5 -n 10 -q --out third");
    assert!(text.contains("held back by standard split 3"), "{text}");
    assert!(desk.read("all/config.toml").contains("batch-size = 100"));
    desk.write("few.csv", "x,y\n1,2\n2,3\n3,5\n4,4\n5,7\n6,6\n");
    desk.succeed("sample bnn --data few.csv --hidden 3 --steps 5 -n 10 -q --out few");
    assert!(desk.read("few/config.toml").contains("batch-size = 5"));
}

#[test]
fn a_run_predicts_the_same_when_its_training_data_is_gone() {
    let desk = Desk::new();
    for (run, options) in [
        ("single", "--hidden 8"),
        ("double", "--hidden 5,4 --activation tanh --precision f64 --noise-precision 4"),
        ("samples", "--hidden 8 --method sghmc --collect-from 10 --collect-every 5"),
    ] {
        desk.write("train.csv", PENGUINS);
        desk.succeed(&format!(
            "sample bnn --data train.csv --target body_mass_g {options} --steps 20 -n 10 -q --out {run}"
        ));
        std::fs::remove_file(desk.path("train.csv")).unwrap();
        let before = numbers(&desk.read(&format!("{run}/predictions.csv")));
        desk.write("held-back.csv", penguins(before.iter().map(|row| row[0] as usize)));
        let predict = format!("predict {run} --data held-back.csv --out {run}.csv");
        let summary = json(&desk.succeed(&format!("{predict} --json")));
        let after = numbers(&desk.read(&format!("{run}.csv")));
        assert_eq!(after.len(), before.len());
        for (before, after) in before.iter().zip(&after) {
            for (a, b) in before.iter().zip(after).skip(1) {
                assert!((a - b).abs() <= 1e-6 * a.abs(), "{run}: {before:?} {after:?}");
            }
        }
        let kept = json(&desk.read(&format!("{run}/summary.json")));
        assert_eq!(summary["scores"]["pit"], kept["network"]["test"]["pit"], "{run}");
        let with = if run == "samples" { "30 collected samples" } else { "10 last particles" };
        assert_eq!(summary["predicted_with"], with);
        let with = kept["network"]["predicted_with"].as_str().unwrap();
        assert_eq!(with.contains("collected samples"), run == "samples", "{with}");
    }
    // Columns in another order, no target, other levels, on standard output.
    let swapped: Vec<String> = penguins(0..5)
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            [&cells[3..6], &cells[..3]].concat().join(",")
        })
        .collect();
    desk.write("swapped.csv", swapped.join("\n"));
    desk.write("plain.csv", penguins(0..5));
    let text = desk.succeed("predict single --data swapped.csv --level 0.1,0.9 --level 0.5");
    assert!(text.starts_with("row,mean,sd,q0.1,q0.9,q0.5\n"), "{text}");
    let plain = desk.succeed("predict single --data plain.csv --out -");
    for (swapped, plain) in numbers(&text).iter().zip(numbers(&plain)) {
        assert_eq!((swapped[1], swapped[5]), (plain[2], plain[6]));
    }
    // A folder does not hide the set of its name.
    std::fs::create_dir(desk.path("penguins")).unwrap();
    assert_eq!(numbers(&desk.succeed("predict single --data penguins -q")).len(), 333);
}

#[test]
fn threads_do_not_change_a_byte() {
    let desk = Desk::new();
    for threads in [1, 2] {
        desk.succeed(&format!(
            "sample bnn --steps 10 -n 12 --hidden 9 -q --threads {threads} --out run{threads}"
        ));
        desk.succeed(&format!(
            "predict run{threads} --data penguins -q --threads {threads} --out {threads}.csv"
        ));
    }
    for file in ["predictions.csv", "particles.parquet", "predictions.png", "standardisation.json"]
    {
        let bytes = |k: u8| std::fs::read(desk.path(&format!("run{k}/{file}"))).unwrap();
        assert_eq!(bytes(1), bytes(2), "{file}");
    }
    assert_eq!(desk.read("1.csv"), desk.read("2.csv"));
}

/// A run with default settings learns, and knows what it does not know.
#[test]
fn defaults_on_the_penguins_are_calibrated() {
    let desk = Desk::new();
    let summary = json(&desk.succeed("sample bnn --steps 2000 -n 50 -q --json --out run"));
    let test = &summary["network"]["test"];
    let of = |name: &str| test[name].as_f64().unwrap();
    assert!((0.75..=1.0).contains(&of("coverage_90")), "{test}");
    // A constant has 1; the least squares line about 0.13.
    assert!(of("standardised_mse") < 0.2, "{test}");
    assert!(of("crps") < of("rmse"), "{test}");
    assert_eq!(summary["warnings"].as_array().unwrap().len(), 0, "{summary}");
}

#[test]
fn wrong_training_data() {
    let desk = Desk::new();
    desk.write("good.csv", "a,b,y\n1,2,0\n1,5,1\n3,4,0\n2,2,2\n5,1,3\n");
    desk.write("constant.csv", "a,b,y\n1,2,0\n1,2,1\n1,2,0\n");
    desk.write("flat.csv", "a,b,y\n1,2,7\n2,3,7\n3,4,7\n");
    desk.write("text.csv", "a,b,y\n1,2,0\n1,two,1\n3,4,0\n");
    desk.write("nan.csv", "a,b,y\n1,2,0\n1,NaN,1\n3,4,0\n");
    desk.write("empty.csv", "");
    let cases: [(&str, &[&str]); 11] = [
        ("good.csv --target z", &["there is no column `z`"]),
        ("constant.csv --test-fraction 0", &["target column `y` and no other"]),
        ("flat.csv --test-fraction 0", &["column `y`", "every row holds 7"]),
        ("text.csv", &["line 3", "`b`", "`two` is not a number"]),
        ("nan.csv --missing error", &["line 3", "`b`", "the cell is empty"]),
        ("empty.csv", &["an empty file"]),
        ("good.csv --batch-size 5", &["batch size is 5", "4 rows"]),
        ("good.csv --split 0", &["no standard splits"]),
        ("yacht", &["`yacht` is not here", "steinflow data fetch yacht"]),
        ("yaht", &["did you mean `yacht`?"]),
        ("nowhere.csv", &["nowhere.csv", "check the path"]),
    ];
    for (arguments, words) in cases {
        desk.fail(&format!("sample bnn -q --steps 2 --data {arguments}"), 2, words);
    }
}

#[test]
fn wrong_predictions() {
    let desk = Desk::new();
    desk.succeed("sample bnn --steps 2 -n 5 --hidden 3 -q --out run");
    desk.succeed("sample -m svgd banana --steps 2 -n 5 -q --out toy");
    let rows = penguins(0..4);
    let change = |from: &str, to: &str| rows.replacen(from, to, 1);
    desk.write("good.csv", &rows);
    desk.write("renamed.csv", change("gentoo", "gentou"));
    let first_cut = rows.lines().filter_map(|line| line.split_once(','));
    desk.write("missing.csv", first_cut.map(|(_, rest)| rest).collect::<Vec<_>>().join("\n"));
    desk.write("text.csv", change("\n39.1,", "\nlong,"));
    desk.write("nan.csv", change("\n39.1,", "\nNaN,"));
    desk.write("empty.csv", "");
    desk.write("header.csv", penguins(0..0));
    let extra: Vec<String> = rows.lines().zip(0..).map(|(line, i)| format!("{line},{i}")).collect();
    desk.write("extra.csv", extra.join("\n").replacen(",0", ",year", 1));
    let cases: [(&str, &[&str]); 16] = [
        ("nowhere --data good.csv", &["nowhere does not exist"]),
        ("good.csv --data good.csv", &["is a file"]),
        (". --data good.csv", &["not the folder of a finished run"]),
        ("toy --data good.csv", &["a run on `banana`, which predicts nothing"]),
        ("run --data missing.csv", &["no column `bill_length_mm`"]),
        ("run --data renamed.csv", &["no column `gentoo`"]),
        ("run --data text.csv", &["line 2", "`bill_length_mm`", "`long` is not a number"]),
        ("run --data nan.csv", &["line 2", "the cell is empty"]),
        ("run --data empty.csv", &["an empty file"]),
        ("run --data header.csv", &["no rows of data"]),
        ("run --data yacht", &["steinflow data fetch yacht"]),
        ("run --data good.csv --out good.csv", &["`good.csv` exists", "--force"]),
        ("run --data good.csv --out toy --force", &["`toy` cannot be used", "not a file"]),
        ("run --data good.csv --out no/p.csv", &["its folder does not exist"]),
        ("run --data good.csv --level 1", &["level is 1", "between 0 and 1"]),
        ("run --data good.csv --json --out -", &["--json does not fit"]),
    ];
    for (arguments, words) in cases {
        desk.fail(&format!("predict {arguments}"), 2, words);
    }
    assert_eq!(desk.read("good.csv"), rows);
    // A column that is not asked for does no harm.
    desk.succeed("predict run --data extra.csv --out extra-predictions.csv");
    desk.write("p.csv", "mine");
    desk.succeed("predict run --data good.csv --out p.csv --force");
    assert!(desk.read("p.csv").starts_with("row,target,mean"));
}

/// Leaves the list of a run's files as earlier versions wrote it, without checksums, so that damage is for
/// the readers to find.
fn forget_checksums(desk: &Desk) {
    let list = desk.read("run/.steinflow-run");
    let names: Vec<&str> = list.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    desk.write("run/.steinflow-run", names.join("\n"));
}

#[test]
fn damaged_runs() {
    let desk = Desk::new();
    desk.succeed("sample bnn --steps 2 -n 5 --hidden 3 -q --out run");
    forget_checksums(&desk);
    desk.write("good.csv", penguins(0..4));
    // Each damage is done to the whole run, and undone.
    let damaged = |file: &str, damage: &dyn Fn(&[u8]) -> Vec<u8>, code: i32, words: &[&str]| {
        let path = format!("run/{file}");
        let bytes = std::fs::read(desk.path(&path)).unwrap();
        desk.write(&path, damage(&bytes));
        desk.fail("predict run --data good.csv --out p.csv", code, words);
        desk.write(&path, &bytes);
    };
    let half = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
    let without = |from: &'static str, to: &'static str| {
        move |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec()).unwrap().replace(from, to).into_bytes()
        }
    };
    damaged("particles.parquet", &half, 1, &["particles.parquet", "Parquet"]);
    damaged("standardisation.json", &half, 1, &["standardisation.json", "EOF"]);
    damaged("standardisation.json", &without("\"sd\": ", "\"sd\": -"), 1, &["deviation -"]);
    damaged("standardisation.json", &without("  3\n", "  2\n"), 1, &["columns are not those"]);
    // Cut inside its first line; what is cut between two lines still reads.
    damaged("config.toml", &|bytes| bytes[..4].to_vec(), 2, &["config.toml"]);
    for (file, code, word) in [
        ("particles.parquet", 1, "it is not there"),
        ("standardisation.json", 1, "standardisation.json"),
        (".steinflow-run", 2, "not the folder of a finished run"),
    ] {
        let (path, aside) = (desk.path("run").join(file), desk.path("aside"));
        std::fs::rename(&path, &aside).unwrap();
        desk.fail("predict run --data good.csv --out p.csv", code, &[word]);
        std::fs::rename(&aside, &path).unwrap();
    }
    desk.succeed("predict run --data good.csv --out p.csv");
}

#[test]
fn particles_that_make_the_decoder_panic_are_called_damaged() {
    let desk = Desk::new();
    desk.succeed("sample bnn --hidden 2 -n 2 --steps 2 -q --out run");
    forget_checksums(&desk);
    let bad = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/parquet/makes-the-decoder-panic.parquet"
    );
    std::fs::copy(bad, desk.path("run/particles.parquet")).unwrap();
    desk.fail("predict run --data penguins", 1, &["particles.parquet", "damaged"]);
}
