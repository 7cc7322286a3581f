//! Stan programs: the command with a small C library of BridgeStan's interface, and with a makefile in the place of
//! BridgeStan's.
#![cfg(unix)]

#[path = "support/desk.rs"]
mod desk;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use desk::Desk;
use serde_json::Value;
use steinflow::Matrix;
use steinflow_models::{ModelSpec, build};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/stan_library.c");
const DATA: &str = r#"{"N": 4, "y": [1.0, 2.0, 3.5, 1.5]}"#;
const PROGRAM: &str = "parameters { real mu; }\nmodel { mu ~ normal(0, 1); }\n";

/// Compiles the library into a desk; `options` are its constants.
fn compile(to: &Path, options: &[&str]) {
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(to).args(options).args([SOURCE, "-lm"]);
    let made = command.output().expect("a C compiler, which linking takes too");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn with_library() -> Desk {
    let desk = Desk::new();
    compile(&desk.path("model.so"), &[]);
    desk.write("data.json", DATA);
    desk
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Mean and standard deviation of a parameter.
fn moment(summary: &Value, name: &str) -> [f64; 2] {
    let all = summary["moments"].as_array().unwrap();
    let found = all.iter().find(|moment| moment["name"] == name);
    let found = found.unwrap_or_else(|| panic!("{name} is not in {all:?}"));
    ["mean", "sd"].map(|what| found[what].as_f64().unwrap())
}

#[test]
fn parameters_come_back_constrained_and_named_with_the_answers_of_the_density() {
    let desk = with_library();
    let summary =
        json(&desk.succeed("sample model.so --data data.json -q --json --report --out run"));
    assert_eq!(summary["model"], "model");
    let names: Vec<&str> = summary["moments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|moment| moment["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["mu", "sigma", "p[1]", "p[2]", "twice"]);
    // N(mean of y, 1/4), Exponential(1), Beta(2, 3).
    for (name, mean, sd) in [
        ("mu", 2.0, 0.5),
        ("sigma", 1.0, 1.0),
        ("p[1]", 0.4, 0.2),
        ("p[2]", 0.6, 0.2),
        ("twice", 4.0, 1.0),
    ] {
        let [found, spread] = moment(&summary, name);
        assert!((found - mean).abs() < 0.1 * sd, "{name}: {found}, not {mean}");
        assert!((spread / sd - 1.0).abs() < 0.1, "{name}: {spread}, not {sd}");
    }
    assert_eq!(summary["diagnosis"]["verdict"], "trust");
    let columns = steinflow_io::read_parquet(desk.path("run/samples.parquet")).unwrap();
    let column = |name: &str| {
        let found = columns.iter().find(|column| column.name == name).unwrap();
        found.values.numbers()
    };
    assert!(column("sigma").iter().all(|&x| x > 0.0));
    assert!(column("p[1]").iter().zip(column("p[2]")).all(|(p, q)| (p + q - 1.0).abs() < 1e-12));
    assert!(desk.read("run/report.html").contains("p[2]"));
    // What is written is read back and judged again, and a run is the same as the one that it was.
    assert!(desk.succeed("diagnose run").contains("Trust"));
    let config = desk.read("run/config.toml");
    assert!(config.contains("model = \"stan\"") && config.contains("model.so"), "{config}");
    desk.succeed("sample --config run/config.toml -q --out again");
    let bytes = |run: &str| std::fs::read(desk.path(run).join("samples.parquet")).unwrap();
    assert!(bytes("run") == bytes("again"));
    desk.fail("predict run --data data.json", 2, &["run", "`stan`", "predicts nothing"]);
}

/// What is shown leads back to the coordinates, and what Stan refuses leads nowhere.
#[test]
fn what_is_shown_leads_back() {
    let desk = with_library();
    let spec = ModelSpec {
        program: Some(desk.path("model.so")),
        data: Some(desk.path("data.json")),
        ..ModelSpec::named("stan")
    };
    let units = build::<f64>(&spec).unwrap().units().unwrap();
    let theta = Matrix::from_fn(4, 3, |i, j| (i as f64 - 1.4) * (j as f64 + 0.3));
    let mut shown = units.show(&theta);
    assert_eq!(shown.cols(), 5);
    let back = units.hide(&shown);
    assert!(back.as_slice().iter().zip(theta.as_slice()).all(|(a, b)| (a - b).abs() < 1e-9));
    shown.row_mut(2)[1] = -1.0;
    let back = units.hide(&shown);
    assert!(back.row(2).iter().all(|x| x.is_nan()) && back.row(3).iter().all(|x| x.is_finite()));
}

#[test]
fn auxiliary_variables_belong_to_coordinates_and_not_to_what_is_shown() {
    let desk = with_library();
    let run =
        "sample model.so --data data.json --method sghmc --particles 50 --steps 30 -q --out run";
    desk.succeed(run);
    let columns = steinflow_io::read_parquet(desk.path("run/particles.parquet")).unwrap();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let own = ["mu", "sigma", "p[1]", "p[2]", "twice"];
    assert_eq!(names, [&own[..], &["r_mu", "r_sigma", "r_p[1]", "log_density"]].concat());
    desk.succeed("report run");
    desk.succeed("diagnose run");
    // Going on is the same as not having stopped.
    desk.succeed("resume run --steps 60 -q");
    desk.succeed(&run.replace("30 -q --out run", "60 -q --out whole"));
    let bytes = |run: &str| std::fs::read(desk.path(run).join("particles.parquet")).unwrap();
    assert!(bytes("run") == bytes("whole"));
    // But not with other data, or another library.
    desk.write("data.json", DATA.replace("3.5", "9.5"));
    desk.fail("resume run --steps 90", 2, &["data.json", "not what it was"]);
    desk.write("data.json", DATA);
    compile(&desk.path("model.so"), &["-DINFO=\"\""]);
    desk.fail("resume run --steps 90", 2, &["model.so", "not what it was"]);
}

#[test]
fn a_library_without_threads_gives_the_same_numbers_one_at_a_time() {
    let desk = with_library();
    compile(&desk.path("single.so"), &["-DINFO=\"STAN_THREADS=false\""]);
    for model in ["model", "single"] {
        desk.succeed(&format!("sample {model}.so --data data.json -q --threads 2 --out {model}"));
    }
    let bytes = |run: &str| std::fs::read(desk.path(run).join("samples.parquet")).unwrap();
    assert!(bytes("model") == bytes("single"));
}

#[test]
fn what_is_wrong_is_said_by_name() {
    let desk = with_library();
    let data = "--data data.json";
    compile(&desk.path("old.so"), &["-DMAJOR=1"]);
    compile(&desk.path("never.so"), &["-DREFUSE"]);
    desk.write("text.so", "no library");
    desk.write("wrong.json", "N = 3");
    desk.write("other.json", "{\"x\": 3}");
    desk.fail(&format!("sample old.so {data}"), 2, &["old.so", "version 1 of BridgeStan"]);
    desk.fail(&format!("sample text.so {data}"), 2, &["text.so", "cannot be loaded"]);
    desk.fail(&format!("sample none.so {data}"), 2, &["none.so", "no such file"]);
    desk.fail(&format!("sample none.stan {data}"), 2, &["none.stan", "no such file"]);
    desk.fail("sample model.so --data wrong.json", 2, &["wrong.json", "JSON"]);
    desk.fail("sample model.so --data other.json", 2, &["other.json", "variable name=y"]);
    desk.fail("sample model.so --data none.json", 2, &["none.json", "No such file"]);
    desk.fail("sample model.so", 2, &["variable name=y", "--data FILE.json"]);
    desk.fail("sample model.so --data data.json --target y", 2, &["target", "`stan`"]);
    desk.fail("sample stan", 2, &["FILE.stan"]);
    desk.fail(&format!("sample never.so {data}"), 2, &["never.so", "no density", "Rejecting"]);
    // A library that is none of Stan's.
    let plain = desk.path("plain.so");
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-o"]).arg(&plain).args(["-x", "c", "/dev/null"]);
    assert!(command.status().unwrap().success());
    desk.fail(&format!("sample plain.so {data}"), 2, &["plain.so", "bs_major_version"]);
    // No toolchain: one line that says how to get it.
    desk.write("model.stan", PROGRAM);
    desk.fail(
        &format!("sample model.stan {data} -q"),
        2,
        &["model.stan", "pip install bridgestan"],
    );
}

/// With a toolchain of our own: a makefile that compiles the C library, whatever the program.
#[test]
fn a_program_is_compiled_once() {
    if Command::new("make").arg("--version").output().is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: there is no `make`");
        return;
    }
    let desk = with_library();
    desk.write("model.stan", PROGRAM);
    std::fs::create_dir_all(desk.path(".bridgestan/bridgestan-2.10.0")).unwrap();
    // Older by its number, and not by its letters.
    std::fs::create_dir_all(desk.path(".bridgestan/bridgestan-2.9.0")).unwrap();
    let makefile = format!(
        "%_model.so: %.stan\n\t@grep -q wrong $< && echo 'Syntax error in line 1' && exit 1; \
         echo made >> {log} && cc -shared -fPIC -o $@ {SOURCE} -lm\n",
        log = desk.path("log").display()
    );
    desk.write(".bridgestan/bridgestan-2.10.0/Makefile", makefile);
    let sample = |out: &str| -> Output {
        desk.run(&format!("sample model.stan --data data.json --effective 200 --out {out}"))
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let first = sample("first");
    assert!(first.status.success() && said(&first).contains("compiling"), "{}", said(&first));
    let second = sample("second");
    assert!(second.status.success() && !said(&second).contains("compiling"), "{}", said(&second));
    assert_eq!(desk.read("log"), "made\n");
    let bytes = |run: &str| std::fs::read(desk.path(run).join("samples.parquet")).unwrap();
    assert!(bytes("first") == bytes("second"));
    // Another program is compiled of its own.
    desk.write("model.stan", format!("// changed\n{PROGRAM}"));
    assert!(sample("third").status.success());
    assert_eq!(desk.read("log"), "made\nmade\n");
    desk.write("model.stan", "wrong");
    desk.fail(
        "sample model.stan --data data.json",
        2,
        &["model.stan", "does not compile", "Syntax error in line 1"],
    );
    let kept = desk::listing(&desk.path("cache/steinflow/stan"));
    assert!(kept.len() == 2 && !kept.iter().any(|name| name.contains("partial")), "{kept:?}");
}
