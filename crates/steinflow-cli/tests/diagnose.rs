//! Verdicts at the end of runs, and `steinflow diagnose`.

mod support {
    pub mod desk;
}

use std::fmt::Write as _;

use serde_json::Value;
use support::desk::Desk;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_run_ends_with_its_verdict_and_diagnose_says_the_same() {
    let desk = Desk::new();
    let out =
        desk.succeed("sample standard-normal --dim 2 --method svgd --steps 500 -q --out good");
    assert!(out.contains("Trust:") && out.contains("diagnosis.json"), "{out}");
    let at_the_end = desk.read("good/diagnosis.json");
    assert_eq!(json(&at_the_end)["verdict"], "trust");
    assert_eq!(json(&desk.read("good/summary.json"))["diagnosis"]["verdict"], "trust");

    let out = desk.succeed("diagnose good");
    for words in ["Trust:", "variance, all coordinates", "Langevin, imq", "exact draws"] {
        assert!(out.contains(words), "{out} lacks {words}");
    }
    assert_eq!(desk.read("good/diagnosis.json"), at_the_end);
    // What diagnose writes is the run's own: another run may replace it.
    desk.succeed("sample -m svgd standard-normal --dim 2 --steps 5 -q --out good --force");
}

#[test]
fn runs_that_went_wrong_are_told_apart() {
    let desk = Desk::new();
    let verdict = |arguments: &str, name: &str| {
        desk.succeed(&format!("sample {arguments} -q --out {name}"));
        let diagnosis = json(&desk.read(&format!("{name}/diagnosis.json")));
        assert!(!diagnosis["advice"].as_array().unwrap().is_empty());
        diagnosis["verdict"].as_str().unwrap().to_owned()
    };
    let collapsed = "standard-normal --dim 50 --method svgd --steps 500 --step-size 1";
    assert_eq!(verdict(collapsed, "a"), "collapsed");
    let short = "gaussian --method ld --steps 20 --step-size 0.001 --start-mean 5 --start-sd 0.5";
    assert_eq!(verdict(short, "b"), "not-converged");
    let missing = "mixture --method svgd --steps 500 --start-mean=-3,-1 --start-sd 0.5";
    assert_eq!(verdict(missing, "c"), "not-converged");
    assert!(desk.read("c/diagnosis.json").contains("mode without particles"));
}

#[test]
fn models_that_need_no_data_end_in_trust_with_their_defaults() {
    let desk = Desk::new();
    let models = json(&desk.succeed("models --json"));
    let free: Vec<&str> = models
        .as_array()
        .unwrap()
        .iter()
        .filter(|model| model["needs_data"] == false)
        .map(|model| model["name"].as_str().unwrap())
        .collect();
    assert!(free.len() >= 8, "{free:?}");
    for name in free {
        desk.succeed(&format!("sample {name} -q --out {name}"));
        let found = json(&desk.read(&format!("{name}/diagnosis.json")));
        // The funnel's tails are too heavy for standard deviations, and it says so.
        let expected = if name == "funnel" { "means-only" } else { "trust" };
        assert_eq!(found["verdict"], expected, "{name}: {}", found["headline"]);
        assert_eq!(name == "funnel", found["headline"].as_str().unwrap().contains("heavy tails"));
    }
}

#[test]
fn momenta_chains_and_seeds_are_reported() {
    let desk = Desk::new();
    let run = "sample gaussian --method sghmc --steps 400 --collect-from 200 --collect-every 10 -q";
    desk.succeed(&format!("{run} --seed 1 --out a"));
    desk.succeed(&format!("{run} --seed 2 --out b --precision f32"));
    let out = desk.succeed("diagnose a b --json --replicates 99");
    let found = json(&out);
    let first = &found["runs"][0];
    let names: Vec<&str> = first["evidence"]
        .as_array()
        .unwrap()
        .iter()
        .map(|evidence| evidence["name"].as_str().unwrap())
        .collect();
    for name in
        ["R̂ of the collected draws", "effective sample size", "variance, auxiliary variables"]
    {
        assert!(names.contains(&name), "{names:?}");
    }
    let operators = first["stein_discrepancies"].as_array().unwrap();
    assert_eq!(operators.len(), 4, "two kernels, of the Langevin operator and of (A, C)");
    assert!(operators.iter().all(|row| row["p_value"].as_f64().unwrap() > 0.0));
    assert_eq!(found["moments"].as_array().unwrap().len(), 2);
    assert!(found["moments"][0]["mean_standard_error"].as_f64().unwrap() > 0.0);
    // To the exact draws, and to the other run.
    assert_eq!(found["runs"][1]["distances"].as_array().unwrap().len(), 3);

    desk.write("reference.csv", "theta_0,theta_1\n0,0\n1,1\n-1,-1\n0.5,1\n");
    let names = json(&desk.succeed("diagnose a --json --reference b/particles.parquet"));
    assert_eq!(names["runs"][0]["distances"][0]["to"], "b/particles.parquet");
}

#[test]
fn the_verdict_does_not_depend_on_threads() {
    let desk = Desk::new();
    let run = "sample mixture --method svgd --steps 100 -q";
    desk.succeed(&format!("{run} --threads 1 --out a"));
    desk.succeed(&format!("{run} --threads 3 --out b"));
    assert_eq!(desk.read("a/diagnosis.json"), desk.read("b/diagnosis.json"));
}

#[test]
fn a_network_is_judged_too() {
    let desk = Desk::new();
    desk.succeed("sample bnn --steps 50 --hidden 5 -n 10 -q --out net");
    let diagnosis = json(&desk.read("net/diagnosis.json"));
    let names = diagnosis["evidence"].to_string();
    assert!(!names.contains("modes without particles"), "a network has too many modes: {names}");
    desk.succeed("diagnose net --replicates 99");
}

/// A log density by four rows at a time jumps by far more than a run that runs away falls.
#[test]
fn the_noise_of_minibatches_is_no_divergence() {
    let desk = Desk::new();
    for seed in 1..=3 {
        let run = "sample bnn --steps 600 --hidden 5 -n 10 --batch-size 4 -q";
        desk.succeed(&format!("{run} --seed {seed} --out {seed}"));
        let found = json(&desk.read(&format!("{seed}/diagnosis.json")));
        assert_ne!(found["verdict"], "diverged", "{found}");
    }
}

#[test]
fn wrong_requests_are_refused() {
    let desk = Desk::new();
    desk.succeed("sample -m svgd banana --steps 20 -q --out run");
    desk.succeed("sample -m svgd gaussian --dim 3 --steps 20 -q --out other");
    desk.write("points.csv", "x,z\n1,2\n");
    desk.fail("diagnose", 2, &["RUN"]);
    desk.fail("diagnose nowhere", 2, &["nowhere", "does not exist"]);
    desk.fail("diagnose points.csv", 2, &["give the folder of a finished"]);
    desk.fail("diagnose run other", 2, &["other parameters", "by itself"]);
    desk.fail("diagnose run --replicates 3", 2, &["19 or more"]);
    desk.fail("diagnose run --bandwidth wide", 2, &["bandwidth rule `wide`"]);
    desk.fail("diagnose run --reference points.csv", 2, &["`y`"]);
    desk.fail("diagnose run --reference missing.parquet", 2, &["missing.parquet"]);
}

#[test]
fn a_script_can_require_a_verdict() {
    let desk = Desk::new();
    let good = "sample standard-normal --dim 2 -m svgd --steps 500 -q --require";
    desk.succeed(&format!("{good} trust --out good"));
    let collapsed =
        "sample standard-normal --dim 50 -m svgd --steps 300 --step-size 1 -q --require";
    let output = desk.run(&format!("{collapsed} trust --out a"));
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the verdict is collapsed, and trust was required"), "{said}");
    // The run is kept all the same.
    assert_eq!(json(&desk.read("a/diagnosis.json"))["verdict"], "collapsed");
    desk.succeed(&format!("{collapsed} collapsed --out b"));
    desk.fail(&format!("{collapsed} splendid --out c"), 2, &["trust, means-only"]);
}

/// A run that ends badly, words of the advice that it gets, and the run that follows it.
const ADVICE: [(&str, &str, &str, &str); 11] = [
    (
        "collapsed",
        "standard-normal --dim 50 -m svgd --steps 300 --step-size 1",
        "default method, auto",
        "standard-normal --dim 50",
    ),
    (
        "missing",
        "mixture -m svgd --steps 300 --start-mean=-3,-1 --start-sd 0.5",
        "start wider",
        "mixture -m auto --start-mean 0 --start-sd 5",
    ),
    (
        "moving",
        "gaussian -m ld --steps 40 --step-size 0.001 --start-mean 5 --start-sd 0.5",
        "auto, which needs no steps",
        "gaussian -m auto --start-mean 5 --start-sd 0.5",
    ),
    (
        "short",
        "gaussian -m sghmc --warm-up=false --steps 60 --start-mean 5",
        "take more steps",
        "gaussian -m sghmc --warm-up=false --steps 4000 --start-mean 5",
    ),
    (
        "diverged",
        "standard-normal --dim 2 -m ld --warm-up=false --steps 40 --step-size 2.2",
        "a tenth as large",
        "standard-normal --dim 2 -m ld --warm-up=false --steps 40 --step-size 0.22",
    ),
    (
        "wide",
        "standard-normal --dim 2 -m ld --warm-up=false --steps 400 --step-size 1.2",
        "smaller steps",
        "standard-normal --dim 2 -m ld --warm-up=false --steps 400 --step-size 0.2",
    ),
    (
        "discarded",
        "--density=-2*log(1+x^2/3) -m ld -n 12 --warm-up=false --steps 2000 --step-size 0.2",
        "collect draws",
        "--density=-2*log(1+x^2/3) -m ld -n 12 --warm-up=false --steps 4000 --step-size 0.2 \
         --collect-from 1000 --collect-every 5",
    ),
    (
        "vague",
        "eight-schools-centred -m sghmc --warm-up=false --steps 3000 -n 20",
        "default method, auto",
        "eight-schools-centred",
    ),
    ("heavy", "funnel", "ask for more gradients", "funnel --gradients 6000"),
    (
        "unsettled",
        "\"--density=log(exp(-(x^2+y^2)/2)+exp(-(x^2+y^2)/800)/400)\" -m svgd --seed 1",
        "goes on with more gradients",
        "\"--density=log(exp(-(x^2+y^2)/2)+exp(-(x^2+y^2)/800)/400)\" --seed 1 --gradients 8000",
    ),
    ("stopped", "banana --gradients 200", "ask for more gradients", "banana --gradients 4000"),
];

/// What is advised works: the next verdict is better.
#[test]
fn advice_is_worth_following() {
    let desk = Desk::new();
    let diagnosis = |arguments: &str, name: &str| {
        desk.succeed(&format!("sample {arguments} -q --out {name}"));
        json(&desk.read(&format!("{name}/diagnosis.json")))
    };
    let order = ["trust", "means-only", "not-converged", "collapsed", "diverged"];
    let rank = |found: &Value| order.iter().position(|&name| found["verdict"] == name).unwrap();
    for (name, bad, words, better) in ADVICE {
        let before = diagnosis(bad, name);
        assert_ne!(before["verdict"], "trust", "{name}: {before}");
        assert!(before["advice"].to_string().contains(words), "{name}: {before}");
        let after = diagnosis(better, &format!("{name}-better"));
        assert!(rank(&after) < rank(&before), "{name}: {after}");
    }
}

/// A resting cloud on a slow ridge: the target's own moments tell, and where they are not known, exact moves do.
#[test]
fn a_slow_ridge_is_seen_with_and_without_exact_moments() {
    let desk = Desk::new();
    let same = "--density=-x^2/8-(y+0.5*(x^2-4))^2/2";
    let run = "-m svgd --warm-up=false -q --start-mean 0 --start-sd 0.5 --steps 6000";
    for seed in 1..=3 {
        for (target, by) in [("banana", "against the exact one"), (same, "after exact moves")] {
            let name = format!("{}-{seed}", target.len());
            desk.succeed(&format!("sample \"{target}\" {run} --seed {seed} --out {name}"));
            let found = json(&desk.read(&format!("{name}/diagnosis.json")));
            assert_ne!(found["verdict"], "trust", "{found}");
            assert!(found.to_string().contains(by), "{found}");
        }
    }
}

/// The Cauchy distribution has no mean and no variance: whoever's draws particles stand for, they are not trusted.
#[test]
fn a_law_without_moments_is_not_trusted() {
    let desk = Desk::new();
    for (method, reason) in
        [("auto", "the stop rule is not met"), ("svgd", "whose draws the particles stand for")]
    {
        desk.succeed(&format!(
            "sample --density=-log(1+x^2) -m {method} -q --seed 3 --out {method}"
        ));
        let found = json(&desk.read(&format!("{method}/diagnosis.json")));
        assert_ne!(found["verdict"], "trust", "{found}");
        assert!(found["headline"].as_str().unwrap().contains(reason), "{found}");
    }
}

#[test]
fn draws_from_elsewhere_are_judged() {
    let desk = Desk::new();
    desk.succeed("sample standard-normal --dim 2 -q --out run --seed 3");
    let table = |chains: usize, draws: usize, scale: f64, apart: f64| {
        let mut text = String::from("chain,draw,x,y\n");
        let z = steinflow::testing::random_states(chains * draws, 2, 5);
        for (i, row) in (0..chains * draws).map(|i| (i, z.row(i))) {
            let (chain, draw) = (i / draws, i % draws);
            let [x, y] = [row[0], row[1]].map(|x| scale * x + apart * chain as f64);
            writeln!(text, "{chain},{draw},{x},{y}").unwrap();
        }
        text
    };
    let verdict = |file: &str, more: &str| {
        let arguments =
            format!("diagnose --draws {file} --model standard-normal --dim 2 --json {more}");
        json(&desk.succeed(&arguments))["verdict"].as_str().unwrap().to_owned()
    };
    desk.write("chains.csv", table(4, 300, 1.0, 0.0));
    assert_eq!(verdict("chains.csv", ""), "trust");
    desk.write("narrow.csv", table(4, 300, 0.5, 0.0));
    assert_eq!(verdict("narrow.csv", ""), "collapsed");
    desk.write("apart.csv", table(4, 300, 1.0, 1.0));
    assert_eq!(verdict("apart.csv", ""), "not-converged");
    // The model knows its own moments.
    desk.write("wide.csv", table(4, 300, 1.3, 0.0));
    assert_ne!(verdict("wide.csv", ""), "trust");
    let said = desk.succeed("diagnose --draws wide.csv --model standard-normal --dim 2");
    assert!(said.contains("spread, against the exact one"), "{said}");
    assert_eq!(verdict("run/particles.parquet", ""), "trust");
    desk.fail("diagnose --draws chains.csv", 2, &["--model"]);
    desk.fail("diagnose --draws none.csv --model banana", 2, &["none.csv"]);
    desk.fail("diagnose run --draws chains.csv --model banana", 2, &["cannot be used with"]);
}

/// Particles that push one another with noise are one chain: their means over time are compared.
#[test]
fn an_interacting_diffusion_is_trusted_where_it_is_right() {
    let desk = Desk::new();
    let run = "sample standard-normal --dim 2 -m svgd-product --steps 2000 --collect-from 500 -q";
    let mut trusted = 0;
    for seed in 0..4 {
        desk.succeed(&format!("{run} --collect-every 25 --seed {seed} --out {seed}"));
        let verdict = &json(&desk.read(&format!("{seed}/diagnosis.json")))["verdict"];
        trusted += usize::from(verdict == "trust");
    }
    assert!(trusted >= 3, "{trusted} of 4");
}
