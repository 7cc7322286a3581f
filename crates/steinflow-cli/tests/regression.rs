//! Regressions from a table as people keep it to predictions for new rows.

#[path = "support/desk.rs"]
mod desk;

use std::fmt::Write as _;

use desk::Desk;
use serde_json::Value;

/// price = 100 + 2·area + 30·[south] ± 5.
fn homes(rows: std::ops::Range<usize>) -> String {
    let mut text = "id;district;area;sold;price\n".to_owned();
    for i in rows {
        let area = 50.0 + (i as f64 * 1.7).sin() * 20.0;
        let south = i % 3 == 0;
        let noise = 5.0 * (i as f64 * 12.9898).sin() * 1.4;
        let price = 100.0 + 2.0 * area + if south { 30.0 } else { 0.0 } + noise;
        let district = if south { "south" } else { "north" };
        let sold = if price > 215.0 { "yes" } else { "no" };
        let area =
            if i % 50 == 7 { "NA".to_owned() } else { format!("{area:.3}").replace('.', ",") };
        let price = price.to_string().replace('.', ",");
        writeln!(text, "{i};{district};{area};{sold};{price}").unwrap();
    }
    text
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_table_becomes_coefficients_in_its_units_and_predictions() {
    let desk = Desk::new();
    desk.write("homes.csv", homes(0..200));
    desk.write("new.csv", homes(200..240));
    let run = "sample linear-regression --data homes.csv --drop sold -q --json --out run";
    let summary = json(&desk.succeed(run));
    let moment = |name: &str| {
        let all = summary["moments"].as_array().unwrap();
        let found = all.iter().find(|moment| moment["name"] == name).unwrap();
        (found["mean"].as_f64().unwrap(), found["sd"].as_f64().unwrap())
    };
    for (name, truth) in
        [("intercept", 100.0), ("area", 2.0), ("district[south]", 30.0), ("noise", 5.0)]
    {
        let (mean, sd) = moment(name);
        assert!((mean - truth).abs() < 4.0 * sd && sd < 0.1 * truth, "{name}: {mean} ± {sd}");
    }
    let fit = &summary["regression"];
    let parameters = fit["effective_parameters"].as_f64().unwrap();
    assert!((parameters - 4.0).abs() < 2.5 && fit["rows"] == 196, "{fit}");
    let share = fit["checks"][0]["share_above"].as_f64().unwrap();
    assert!(fit["checks"][0]["name"] == "mean" && (share - 0.5).abs() < 0.2, "{fit}");
    // What is written is what is shown, and can be judged again.
    let columns = steinflow_io::read_parquet(desk.path("run/samples.parquet")).unwrap();
    let area = columns.iter().find(|column| column.name == "area").unwrap();
    let values = area.values.numbers();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    assert!((mean - moment("area").0).abs() < 1e-9);
    let again = json(&desk.succeed("diagnose run --json"));
    assert_eq!(again["runs"][0]["verdict"], summary["diagnosis"]["verdict"]);

    let found = json(&desk.succeed("predict run --data new.csv --json --out p.csv"));
    let scores = &found["scores"];
    assert!((scores["rmse"].as_f64().unwrap() - 5.0).abs() < 1.5, "{found}");
    assert!(scores["coverage_95"].as_f64().unwrap() > 0.9, "{found}");
    let predictions = desk.read("p.csv");
    assert!(predictions.starts_with("row,target,mean,sd,q0.05"), "{predictions}");
    // Row 7 of the new table lacks its area.
    assert!(predictions.contains("\n6,") && !predictions.contains("\n7,"), "{predictions}");
    desk.write("unknown.csv", homes(0..4).replace("north", "west"));
    desk.fail("predict run --data unknown.csv", 2, &["line 3", "`west`", "known: north, south"]);
}

#[test]
fn what_is_made_of_a_table_is_said() {
    let desk = Desk::new();
    desk.write("homes.csv", homes(0..200));
    let command = "sample linear-regression --data homes.csv --drop sold --gradients 20 --out run";
    let said = String::from_utf8(desk.run(command).stderr).unwrap();
    for words in [
        "read 196 rows, 3 columns, with semicolons and decimal commas; 4 rows with missing cells left out",
        "id: left out, every row has its own: an identifier",
        "district: a category of 2 levels, each against `north`",
    ] {
        assert!(said.contains(words), "`{words}` is not in: {said}");
    }
}

#[test]
fn rows_without_a_target_are_predicted_and_do_not_hide_the_fit_of_the_others() {
    let desk = Desk::new();
    let text = homes(0..100);
    let (all, last) = text.trim_end().rsplit_once('\n').unwrap();
    let (last, _) = last.rsplit_once(';').unwrap();
    desk.write("homes.csv", format!("{all}\n{last};\n"));
    let run = "sample linear-regression --data homes.csv --drop sold -q --json --out run";
    let summary = json(&desk.succeed(run));
    // Two lack their area, and one its price.
    assert_eq!(summary["regression"]["rows"], 97, "{summary}");
    let predicted = desk.succeed("predict run --data homes.csv --out -");
    assert!(predicted.starts_with("row,mean,sd") && predicted.contains("\n99,"), "{predicted}");
    let compared = json(&desk.succeed("compare run run --json"));
    assert_eq!(compared[0]["rows"], 97);
}

#[test]
fn times_that_were_not_seen_count_by_what_is_known_of_them() {
    let desk = Desk::new();
    let mut text = "hours,failed,age\n".to_owned();
    for i in 0..150 {
        let (age, level) = (f64::from(i % 30), (f64::from(i) * 0.618).fract() + 0.001);
        let hours = (3.0 - 0.05 * age).exp() * (-level.ln()).powf(0.5);
        let seen = if hours < 20.0 { "yes" } else { "no" };
        writeln!(text, "{},{seen},{age}", hours.min(20.0)).unwrap();
    }
    desk.write("parts.csv", text);
    let run = "sample weibull-regression --data parts.csv --target hours --event failed -q --json --out run";
    let summary = json(&desk.succeed(run));
    for (name, truth) in [("intercept", 3.0), ("age", -0.05), ("shape", 2.0)] {
        let all = summary["moments"].as_array().unwrap();
        let found = all.iter().find(|moment| moment["name"] == name).unwrap();
        let (mean, sd) = (found["mean"].as_f64().unwrap(), found["sd"].as_f64().unwrap());
        assert!((mean - truth).abs() < 4.0 * sd && sd < 0.2 * truth.abs(), "{name}: {found}");
    }
    let fit = &summary["regression"];
    assert_eq!(fit["rows"], 150);
    // 150 rows: 0.9 ± 4 · 0.025.
    let inside = fit["left_out_times"]["coverage_90"].as_f64().unwrap();
    assert!((0.8..=1.0).contains(&inside), "{fit}");
    for check in fit["checks"].as_array().unwrap().iter().take(2) {
        assert!((0.02..0.98).contains(&check["share_above"].as_f64().unwrap()), "{check}");
    }
    let said = desk.succeed("predict run --data parts.csv --out p.csv");
    assert!(said.contains("events seen") && said.contains("inside the 90 % interval"), "{said}");
    assert!(!desk.read("p.csv").contains(",-"), "times are shown as they are");
    desk.write("new.csv", "age\n4\n");
    let found = json(&desk.succeed("predict run --data new.csv --json --out new-p.csv"));
    assert_eq!((&found["rows"], &found["scores"]), (&1.into(), &Value::Null), "{found}");
    desk.succeed("compare run run");
    desk.succeed("report run");
    desk.fail(
        "sample weibull-regression --data parts.csv --target hours --event age --out other",
        2,
        &["line 4", "`age`", "1 says that the event was seen"],
    );
}

#[test]
fn fits_are_compared_by_rows_left_out() {
    let desk = Desk::new();
    desk.write("homes.csv", homes(0..120));
    let sample = "sample linear-regression --data homes.csv -q --drop sold";
    desk.succeed(&format!("{sample} --out all"));
    desk.succeed(&format!("{sample},district --out fewer"));
    desk.succeed("sample bnn --data homes.csv --drop sold --test-fraction 0 --hidden 5 --steps 200 -q --out net");
    let found = json(&desk.succeed("compare fewer all net --json"));
    // The district is worth 30 with a noise of 5.
    assert_eq!((&found[0]["run"], &found[0]["behind"]), (&"all".into(), &0.0.into()), "{found}");
    let fewer = found.as_array().unwrap().iter().find(|one| one["run"] == "fewer").unwrap();
    assert!(fewer["behind"].as_f64().unwrap() > 100.0, "{found}");
    // Intercept, two slopes and the noise, of 117 rows.
    let parameters = found[0]["effective_parameters"].as_f64().unwrap();
    assert!((parameters - 4.0).abs() < 2.5, "{found}");
    assert_eq!(
        (&found[0]["rows"], &found[0]["doubtful_rows"]),
        (&117.into(), &0.into()),
        "{found}"
    );
    desk.succeed(
        "sample linear-regression --data homes.csv -q --missing mean --drop sold --out other",
    );
    desk.fail("compare all other", 2, &["different rows, 117 and 120"]);
    let said = desk.succeed("compare fewer all");
    assert!(said.contains("log p(price) of 117 rows") && said.contains("behind"), "{said}");
}

#[test]
fn eight_schools_and_a_ninth() {
    let desk = Desk::new();
    let said = desk.succeed(
        "sample linear-regression --data eight-schools --groups school --noise-column error -q --out run",
    );
    assert!(said.contains("sd[school]") && said.contains("school[8]"), "{said}");
    desk.write("new.csv", "school,error\n1,15\n9,15\n9,0.1\n");
    let predictions = desk.succeed("predict run --data new.csv -q");
    let rows: Vec<Vec<f64>> = predictions
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    // Mean and sd: the first school is above any other, and errors are part of what is predicted.
    assert!(rows[0][1] > rows[1][1] + 1.0, "{predictions}");
    assert!(rows[1][2] > 15.0 && rows[2][2] < 15.0 && rows[2][2] > 3.0, "{predictions}");
}

#[test]
fn classes_are_predicted_with_their_probabilities() {
    let desk = Desk::new();
    desk.write("homes.csv", homes(0..200));
    for model in ["logistic-regression", "multinomial-regression", "ordinal-regression"] {
        desk.succeed(&format!(
            "sample {model} --data homes.csv --target district --features area,price -q --out {model}"
        ));
        let found = json(
            &desk.succeed(&format!("predict {model} --data homes.csv --json --out {model}.csv")),
        );
        assert!(found["scores"]["accuracy"].as_f64().unwrap() > 0.9, "{model}: {found}");
        let text = desk.read(&format!("{model}.csv"));
        assert!(text.starts_with("row,target,class,p[north],p[south]\n0,south,south,"), "{text}");
    }
}

#[test]
fn a_target_that_does_not_fit_says_which_model_does() {
    let desk = Desk::new();
    desk.write("homes.csv", homes(0..20));
    let sample = "sample linear-regression --data homes.csv --target district";
    desk.fail(sample, 2, &["`district`", "words", "multinomial"]);
    desk.fail(
        "sample poisson-regression --data homes.csv --target price",
        2,
        &["counts", "line 3"],
    );
    desk.fail("sample logistic-regression --data homes.csv --target price", 2, &["0 or 1"]);
    desk.fail("sample linear-regression --data homes.csv --prior lasso", 2, &["horseshoe"]);
    desk.fail("sample ring --drop id", 2, &["takes no drop"]);
}

/// y = 5 sin x ± 0.5, and which third of the plane a row lies in.
fn waves(rows: std::ops::Range<usize>) -> String {
    let mut text = "x,z,kind,y\n".to_owned();
    for i in rows {
        let (x, z) = (5.0 + 5.0 * (i as f64 * 1.7).sin(), (i as f64 * 2.9).cos() * 3.0);
        let y = 5.0 * x.sin() + 0.7 * (i as f64 * 12.9898).sin();
        let kind = if x > 6.0 { "ant" } else { ["bee", "cat"][usize::from(z > 0.0)] };
        writeln!(text, "{x:.4},{z:.4},{kind},{y:.4}").unwrap();
    }
    text
}

#[test]
fn a_process_predicts_and_its_report_begins_with_that() {
    let desk = Desk::new();
    desk.write("waves.csv", waves(0..60));
    desk.write("new.csv", waves(60..90));
    let run = "sample gaussian-process --data waves.csv --drop kind,z --report -q --json --out run";
    let summary = json(&desk.succeed(run));
    let fit = &summary["regression"];
    let inside = fit["left_out"]["coverage_90"].as_f64().unwrap();
    // 60 rows: 0.9 ± 3 · 0.039.
    assert!((0.78..=1.0).contains(&inside) && fit["left_out"]["rmse"].as_f64().unwrap() < 1.2);
    assert!(fit["largest_shape"].as_f64().unwrap() < 0.7, "{fit}");
    let page = desk.read("run/report.html");
    let place = |what: &str| page.find(what).unwrap_or_else(|| panic!("no {what:?}"));
    assert!(place("Predictions for every row from all others") < place("Marginals"));
    assert!(page.contains("largest Pareto k") && page.contains("drawn from the fit"));
    assert_eq!(desk.read("run/predictions.csv").lines().count(), 61);
    let said = json(&desk.succeed("predict run --data new.csv --json --out new-y.csv"));
    assert!(said["scores"]["rmse"].as_f64().unwrap() < 1.0, "{said}");
    desk.succeed("compare run");
    desk.fail("sample gaussian-process --data waves.csv --target kind", 2, &["kind"]);
    desk.fail(
        "sample gaussian-process --data waves.csv --drop kind --batch-size 9",
        2,
        &["batch-size"],
    );
}

#[test]
fn a_network_of_classes_predicts_their_probabilities() {
    let desk = Desk::new();
    desk.write("waves.csv", waves(0..300));
    desk.write("new.csv", waves(300..340));
    let run = "sample bnn --data waves.csv --target kind --drop y --steps 1500 -q --json --report --out run";
    let summary = json(&desk.succeed(run));
    let network = &summary["network"];
    assert_eq!(network["classes"], serde_json::json!(["ant", "bee", "cat"]));
    assert!(network["class_test"]["accuracy"].as_f64().unwrap() > 0.85, "{network}");
    let page = desk.read("run/report.html");
    assert!(page.contains("most probable class seen") && page.contains("\"reliability\":[["));
    let said = json(&desk.succeed("predict run --data new.csv --json --out new-kinds.csv"));
    assert!(said["scores"]["accuracy"].as_f64().unwrap() > 0.85, "{said}");
    let kinds = desk.read("new-kinds.csv");
    assert!(kinds.starts_with("row,target,class,p[ant],p[bee],p[cat]\n"), "{kinds}");
    for line in kinds.lines().skip(1) {
        let shares = line.split(',').skip(3).map(|cell| cell.parse::<f64>().unwrap());
        assert!((shares.sum::<f64>() - 1.0).abs() < 1e-5, "{line}");
    }
    desk.succeed("compare run");
    let refused = "sample bnn --data waves.csv --target kind --drop y --noise-rate 0.1";
    desk.fail(refused, 2, &["noise-rate is 0.1", "classes"]);
}
