//! Every model that ships, and every option that changes what it predicts, through the command: sample, predict, compare.
//! A model that is new has to say here what it predicts.

#[path = "support/desk.rs"]
mod desk;

use std::fmt::Write as _;

use desk::Desk;
use serde_json::Value;
use steinflow_models::catalogue;

const ROWS: usize = 60;

/// Features and a target of every kind, none of which is a line.
fn rows(range: std::ops::Range<usize>) -> String {
    let mut text = "x,z,school,error,years,y,answer,kind,count,hours,failed\n".to_owned();
    for i in range {
        let wave = |rate: f64| (i as f64 * rate).sin();
        let (x, z) = (3.0 + 2.0 * wave(1.7), 10.0 * wave(2.9));
        let school = ["north", "south", "west"][i % 3];
        let line = 0.5 * x - 0.1 * z + wave(12.9898);
        let answer = if line > 1.5 { "yes" } else { "no" };
        let kind = if line > 2.2 { "ant" } else { ["bee", "cat"][i % 2] };
        let (count, hours) = ((0.7 * line).exp().floor(), (0.5 * line).exp());
        let failed = u8::from(i % 5 > 0);
        let (error, years) = (0.5 + 0.1 * wave(5.1), 0.2 * wave(7.7));
        writeln!(
            text,
            "{x:.3},{z:.3},{school},{error:.3},{years:.3},{line:.3},{answer},{kind},{count},{hours:.3},{failed}"
        )
        .unwrap();
    }
    text
}

/// What a model is asked: its target and further options, a list for every way in which it predicts.
fn asked(model: &str) -> Vec<&'static str> {
    match model {
        "linear-regression" => vec![
            "y",
            "y --noise-sd 0.5",
            "y --noise-column error",
            "y --prior horseshoe",
            "y --groups school",
            "y --groups school --slopes x",
            "y --lags 2",
            "y --formula y~x*z",
        ],
        "student-t-regression" => vec!["y", "y --prior horseshoe", "y --groups school --slopes x"],
        "mixture-regression" => vec!["y", "y --components 3", "y --groups school"],
        "gaussian-process" => vec!["y"],
        "logistic-regression" => {
            vec!["answer", "answer --prior horseshoe", "answer --groups school"]
        }
        "multinomial-regression" => vec!["kind"],
        "ordinal-regression" => vec!["kind --order bee,cat,ant", "kind --groups school"],
        "poisson-regression" | "negative-binomial-regression" => {
            vec!["count", "count --offset years", "count --groups school --slopes x"]
        }
        "weibull-regression" => {
            vec!["hours", "hours --event failed", "hours --event failed --groups school"]
        }
        "bnn" => vec![
            "y",
            "y --noise input",
            "y --activation tanh --hidden 4,4 --residual",
            "kind --hidden 4,4 --residual",
            "y --noise-precision 4 --weight-precision 1",
            "kind",
            "kind --activation tanh",
        ],
        other => panic!("say what {other} predicts"),
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn is_number(value: &Value) -> bool {
    value.as_f64().is_some_and(f64::is_finite)
}

#[test]
fn every_model_predicts_new_rows_and_is_compared_by_rows_left_out() {
    let desk = Desk::new();
    desk.write("table.csv", rows(0..ROWS));
    desk.write("new.csv", rows(ROWS..ROWS + 9));
    for model in catalogue().iter().filter(|model| model.predicts()) {
        let name = model.name;
        for (i, options) in asked(name).into_iter().enumerate() {
            let case = format!("{name} {options}");
            let run = format!("{name}-{i}");
            let (target, options) = options.split_once(' ').unwrap_or((options, ""));
            let effort = match name {
                // Twelve particles are too few to know a tail by.
                "bnn" => {
                    "--steps 60 -n 12 --collect-from 20 --collect-every 2 --hidden 5 --test-fraction 0"
                }
                _ => "--gradients 300",
            };
            // What was said of the layers stands.
            let effort = if options.contains("--hidden") {
                effort.replace(" --hidden 5", "")
            } else {
                effort.to_owned()
            };
            let columns = ["x", "z"].map(str::to_owned).into_iter();
            let named = |option: &str| {
                let mut words = options.split(' ');
                words.find(|word| *word == option)?;
                words.next().map(str::to_owned)
            };
            let used = ["--groups", "--noise-column", "--offset", "--event"].map(named);
            let used: Vec<String> = columns.chain(used.into_iter().flatten()).collect();
            let features = if options.contains("--formula") {
                String::new()
            } else {
                format!("--features {}", used.join(","))
            };
            let sample = format!("sample {name} --data table.csv --target {target} {options}");
            let sample = format!("{sample} {features} {effort} -q --json --out {run}");
            let sample = sample.replace("--target y --formula", "--formula");
            let summary = json(&desk.succeed(&sample));
            let lags = if options.contains("--lags 2") { 2 } else { 0 };

            let predict = format!("predict {run} --data new.csv --json --out {run}.csv");
            let found = json(&desk.succeed(&predict));
            assert_eq!(found["rows"], 9 - lags, "{case}: {found}");
            assert!(is_number(&found["scores"]["log_likelihood"]), "{case}: {found}");
            for line in desk.read(&format!("{run}.csv")).lines().skip(1) {
                let numbers = line.split(',').filter_map(|cell| cell.parse::<f64>().ok());
                assert!(numbers.clone().count() > 2, "{case}: {line}");
                assert!(numbers.into_iter().all(f64::is_finite), "{case}: {line}");
            }

            let compared = json(&desk.succeed(&format!("compare {run} {run} --json")));
            for score in ["log_score", "standard_error", "effective_parameters", "largest_shape"] {
                assert!(is_number(&compared[0][score]), "{case}: {score} of {compared}");
            }
            assert_eq!(compared[0]["rows"], ROWS - lags, "{case}: {compared}");
            assert!(compared[0]["doubtful_rows"].is_u64(), "{case}: {compared}");
            let own = if name == "bnn" { &summary["network"] } else { &summary["regression"] };
            assert!(!own["checks"].as_array().unwrap().is_empty(), "{case}: {own}");
        }
    }
}

#[test]
fn models_without_data_are_sampled_and_say_that_they_predict_nothing() {
    let desk = Desk::new();
    desk.write("new.csv", "x\n1\n");
    for model in catalogue().iter().filter(|model| !model.predicts()) {
        let name = match model.name {
            // What it needs is tested beside its library.
            "stan" => continue,
            "density" => "--density -(x^2)/2",
            name => name,
        };
        desk.succeed(&format!("sample {name} --gradients 40 -q --json --out run --force"));
        desk.fail("predict run --data new.csv", 2, &["predicts nothing"]);
        desk.fail("compare run", 2, &["predicts nothing"]);
    }
}
