//! The command as a user meets it: what it writes, what it says, and what it says when it is
//! asked for something wrong.

#[allow(dead_code, reason = "other tests read and write files")]
#[path = "support/desk.rs"]
mod desk;

use std::path::Path;

use assert_cmd::Command;
use desk::Desk;
use steinflow_io::{Values, read_parquet};

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

fn floats(folder: &Path, column: &str) -> Vec<f64> {
    let columns = read_parquet(folder.join("particles.parquet")).unwrap();
    match &columns.iter().find(|c| c.name == column).unwrap().values {
        Values::F64(values) => values.clone(),
        Values::F32(values) => values.iter().copied().map(f64::from).collect(),
        Values::U64(_) => panic!("particles are not counts"),
    }
}

#[test]
fn without_arguments_it_shows_the_papers_toy() {
    let desk = Desk::new();
    let text = desk.succeed("");
    for word in [
        "svgd on tri-crescent",
        "exact mean",
        "lower",
        "middle",
        "upper",
        "Trust:",
        "config.toml",
        "file://",
    ] {
        assert!(text.contains(word), "{text}");
    }
    let folder = desk.path("runs/tri-crescent-svgd-1");
    for file in [
        "config.toml",
        "particles.parquet",
        "trace.parquet",
        "summary.json",
        "particles.png",
        "report.html",
    ] {
        assert!(folder.join(file).exists(), "{file}");
    }
    // Every crescent holds a third of the mass.
    let summary = json(&std::fs::read_to_string(folder.join("summary.json")).unwrap());
    for part in summary["parts"].as_array().unwrap() {
        assert!((part["share"].as_f64().unwrap() - 1.0 / 3.0).abs() < 0.03, "{part}");
    }
    let names: Vec<String> = read_parquet(folder.join("particles.parquet"))
        .unwrap()
        .into_iter()
        .map(|column| column.name)
        .collect();
    assert_eq!(names, ["x", "y", "log_density"]);
    let names: Vec<String> = read_parquet(folder.join("trace.parquet"))
        .unwrap()
        .into_iter()
        .map(|column| column.name)
        .collect();
    assert_eq!(
        names,
        [
            "step",
            "mean_log_density",
            "velocity_norm",
            "bandwidth",
            "ksd",
            "step_size",
            "gradients",
            "seconds"
        ]
    );
    // A second run finds a name of its own.
    desk.succeed("");
    assert!(desk.path("runs/tri-crescent-svgd-2").exists());
    desk.succeed("verify runs/tri-crescent-svgd-1 runs/tri-crescent-svgd-2");
}

#[test]
fn programs_are_told_where_the_run_is_and_colours_stay_away() {
    let desk = Desk::new();
    let summary = json(&desk.succeed("sample gaussian --json --report"));
    assert_eq!(summary["folder"], "runs/gaussian-auto-1");
    assert_eq!(summary["diagnosis"]["verdict"], "trust");
    assert!(desk.path("runs/gaussian-auto-1/report.html").exists());
    let found = json(&desk.succeed("doctor --json"));
    let names: Vec<&str> =
        found.as_array().unwrap().iter().map(|row| row["what"].as_str().unwrap()).collect();
    for name in ["version", "processor", "threads", "GPU", "MPI", "BridgeStan", "data sets"] {
        assert!(names.contains(&name), "{names:?}");
    }
    // Nobody sees a colour in a pipe.
    assert!(!desk.succeed("sample gaussian -q").contains('\u{1b}'));
    for shell in ["bash", "zsh", "fish"] {
        assert!(desk.succeed(&format!("completions {shell}")).contains("bandwidth"));
    }
    desk.succeed("man pages");
    let page = desk.read("pages/steinflow-sample.1");
    assert!(page.contains(".TH") && page.contains("bandwidth"));
    desk.fail("completions tcsh", 2, &["tcsh", "bash"]);
    desk.fail("sample gaussian --method svgd --points", 2, &["points", "--warm-up"]);
}

#[test]
fn same_bytes_for_any_number_of_threads_and_from_the_written_config() {
    let desk = Desk::new();
    for method in ["sgrhmc-stein", "sgnht", "svgd"] {
        let arguments =
            format!("sample tri-crescent --method {method} -n 150 --steps 20 -q --seed 3");
        desk.succeed(&format!("{arguments} --threads 1 --out {method}-1"));
        desk.succeed(&format!("{arguments} --threads 2 --out {method}-2"));
        desk.succeed(&format!("sample -q --config {method}-1/config.toml --out {method}-3"));
        let bytes =
            |k: u32| std::fs::read(desk.path(&format!("{method}-{k}/particles.parquet"))).unwrap();
        assert_eq!(bytes(1), bytes(2), "{method}: threads");
        assert_eq!(bytes(1), bytes(3), "{method}: config");
        desk.succeed(&format!(
            "sample -q --config {method}-1/config.toml --seed 4 --out {method}-4"
        ));
        assert_ne!(bytes(1), bytes(4), "{method}: a flag wins over the config");
    }
}

#[test]
fn every_method_runs_on_every_kind_of_model() {
    let desk = Desk::new();
    let methods = json(&desk.succeed("methods --json"));
    for method in methods.as_array().unwrap() {
        let name = method["name"].as_str().unwrap();
        // With the energy metric its noise has no covariance in places; the library tests that.
        if name == "rsvgd-product" {
            continue;
        }
        // Its grid is for one or two dimensions.
        if name.ends_with("lawgd") {
            let words = ["grid over one or two coordinates"];
            desk.fail(&format!("sample gaussian --dim 3 --method {name} -q"), 2, &words);
            desk.succeed(&format!("sample gaussian --method {name} --steps 5 -q --out {name}"));
            continue;
        }
        let out = format!(
            "sample gaussian --dim 3 --method {name} -n 20 --steps 5 -q --json --out {name}"
        );
        let summary = json(&desk.succeed(&out));
        assert_eq!(summary["steps"], 5);
        assert_eq!(summary["moments"].as_array().unwrap().len(), 3);
        assert!(floats(&desk.path(name), "log_density").iter().all(|x| x.is_finite()));
    }
    let models = json(&desk.succeed("models --json"));
    std::fs::write(desk.path("d.csv"), "t,a,b,y\n9,1,2,0\n3,2,1,1\n7,3,5,1\n5,0,1,0\n4,4,4,1\n")
        .unwrap();
    for model in models.as_array().unwrap() {
        let name = model["name"].as_str().unwrap();
        // A program stands for it: tests/stan.rs.
        if name == "stan" {
            continue;
        }
        let data = match model["needs_data"] == true {
            // Times are above 0.
            true if name == "weibull-regression" => "--data d.csv --target t",
            true => "--data d.csv",
            false => "",
        };
        for precision in ["f32", "f64"] {
            desk.succeed(&format!(
                "sample -m svgd {name} {data} -n 20 --steps 5 -q --precision {precision} --out {name}-{precision}"
            ));
        }
    }
    desk.succeed("sample -m svgd logistic-regression --data d.csv --target y --batch-size 3 --steps 5 -q --out batch");
    let text = desk.succeed("models");
    assert!(text.contains("tri-crescent") && text.contains("--data"), "{text}");
    let text = desk.succeed("methods");
    assert!(text.contains("sgrhmc-stein-alt") && text.contains("friction"), "{text}");
}

#[test]
fn phases_schedules_and_the_papers_parametrisation() {
    let desk = Desk::new();
    desk.succeed("sample ring --method sghmc-stein --phase euler:0.2x10 --phase splitting:cosine:0.1:0.01x7 -q --out a");
    let config = std::fs::read_to_string(desk.path("a/config.toml")).unwrap();
    assert!(config.contains("cosine:0.1:0.01") && config.contains("steps = 7"), "{config}");
    desk.succeed(
        "sample ring --method svgd --integrator adam --step-size 0.05 --steps 5 -q --out b",
    );
    desk.succeed("sample ring --method sghmc-stein --eta 0.01 --alpha 0.1 --steps 5 -q --out c");
    let config = std::fs::read_to_string(desk.path("c/config.toml")).unwrap();
    assert!(config.contains("friction = 1.0") && config.contains("\"0.1\""), "{config}");
    desk.succeed("sample -m svgd ring --budget 0.05 --steps 100000000 -q --out d");
    assert!(std::fs::read_to_string(desk.path("d/summary.json")).unwrap().contains("out of time"));
}

#[test]
fn wrong_requests() {
    let desk = Desk::new();
    let cases: [(&str, &[&str]); 27] = [
        ("sample --method sghmc-stien", &["did you mean `sghmc-stein`?"]),
        ("sample tricrescent", &["did you mean `tri-crescent`?"]),
        ("sample -n 0 -m svgd", &["number of particles is 0", "2 or more"]),
        ("sample -n 1", &["particles is 1", "at least 8"]),
        ("sample --steps 5", &["--steps does not fit the method `auto`", "--effective"]),
        ("sample -m svgd --effective 5", &["--effective does not fit the method `svgd`"]),
        ("sample gaussian --dim 0", &["0"]),
        ("sample banana --dim 3", &["banana"]),
        ("sample -m sgrhmc-stein --step-size -0.1", &["step size is -0.1", "positive"]),
        ("sample -m sgrhmc-stein --step-size nan", &["step size is NaN", "positive"]),
        ("sample -m sgrhmc-stein --step-size soon", &["step-size is soon", "linear:FROM:TO"]),
        ("sample --method svgd --friction 1", &["--friction does not fit the method `svgd`"]),
        ("sample --method sgrhmc-stein --alpha 0.1", &["--alpha does not fit", "metric-scale"]),
        ("sample --method sghmc --friction -1", &["friction is -1"]),
        ("sample --method ld --bandwidth 1", &["--bandwidth does not fit", "no kernel"]),
        (
            "sample -m sgrhmc-stein --bandwidth wide",
            &["no bandwidth rule `wide`", "did you mean `white`?"],
        ),
        ("sample -m sgrhmc-stein --bandwidth -1", &["bandwidth is -1"]),
        ("sample -m sgrhmc-stein --kernel rbf", &["no kernel `rbf`", "se, imq"]),
        ("sample -m sgrhmc-stein --kernel-on r", &["no kernel view `r`"]),
        ("sample --precision f16", &["no precision `f16`"]),
        ("sample -m sgrhmc-stein --integrator leapfrog", &["no integrator `leapfrog`"]),
        ("sample --method svgd --integrator splitting", &["use euler"]),
        ("sample -m sgrhmc-stein --eta 0.1 --step-size 0.1", &["--eta does not fit --step-size"]),
        (
            "sample -m sgrhmc-stein --phase euler:0.1x10 --steps 5",
            &["--steps does not fit --phase"],
        ),
        ("sample --threads 0", &["cannot start 0 threads"]),
        ("sample -m sgrhmc-stein --batch-size 5", &["no data to take minibatches of"]),
        ("sample -m sgrhmc-stein --non-finite ignore", &["stop, freeze, shrink"]),
    ];
    for (arguments, words) in cases {
        desk.fail(arguments, 2, words);
    }
    desk.fail("sample --start-mean 1,2,3", 2, &["64 × 3", "2 coordinates"]);
    desk.fail("sample --config nowhere.toml", 2, &["nowhere.toml"]);
    desk.fail("sample -m sgrhmc-stein --steps many", 2, &["many", "--steps"]);
    desk.fail("smaple", 2, &["sample"]);
}

#[test]
fn wrong_files() {
    let desk = Desk::new();
    let write = |name: &str, text: &str| std::fs::write(desk.path(name), text).unwrap();
    write("missing.csv", "a,b,y\n1,2,0\n1,,1\n");
    write("text.csv", "a,b,y\n1,2,0\n1,two,1\n3,4,0\n");
    write("good.csv", "a,b,y\n1,2,0\n1,5,1\n3,4,0\n");
    write("typo.toml", "mehtod = \"svgd\"\n");
    write("wrong.toml", "particles = \"many\"\n");
    write("broken.toml", "particles = [\n");
    let sample = "sample logistic-regression --data";
    desk.fail(
        &format!("{sample} missing.csv --missing error"),
        2,
        &["missing.csv", "line 3", "`b`"],
    );
    desk.fail(&format!("{sample} text.csv"), 2, &["text.csv", "line 3", "`b`", "two"]);
    desk.fail(&format!("{sample} nowhere.csv"), 2, &["nowhere.csv"]);
    desk.fail(&format!("{sample} good.csv --target z"), 2, &["`z`", "a, b, y"]);
    desk.fail(&format!("{sample} good.csv --batch-size 9"), 2, &["batch size is 9", "3 rows"]);
    desk.fail("sample logistic-regression", 2, &["--data"]);
    desk.fail("sample --data good.csv", 2, &["tri-crescent"]);
    desk.fail("sample --config typo.toml", 2, &["typo.toml", "mehtod", "method"]);
    desk.fail("sample --config wrong.toml", 2, &["wrong.toml", "particles"]);
    desk.fail("sample --config broken.toml", 2, &["broken.toml"]);
}

#[test]
fn an_existing_folder_is_kept_unless_forced() {
    let desk = Desk::new();
    desk.succeed("sample -m sgrhmc-stein --steps 2 -q --out here --seed 1");
    let first = floats(&desk.path("here"), "x");
    desk.fail("sample -m sgrhmc-stein --steps 2 -q --out here --seed 2", 2, &["here", "--force"]);
    assert_eq!(floats(&desk.path("here"), "x"), first);
    desk.succeed("sample -m sgrhmc-stein --steps 2 -q --out here --seed 2 --force");
    assert_ne!(floats(&desk.path("here"), "x"), first);
    // Never something that is not a run.
    std::fs::create_dir(desk.path("home")).unwrap();
    std::fs::write(desk.path("home/thesis.tex"), "years of work").unwrap();
    desk.fail("sample -m sgrhmc-stein --steps 2 -q --out home --force", 2, &["home"]);
    assert!(desk.path("home/thesis.tex").exists());
}

#[test]
fn a_run_that_blows_up_says_where_and_what_to_try() {
    let desk = Desk::new();
    // On a slow machine a run may last long enough for a checkpoint, which a failure keeps.
    let run = "sample --method svgd --step-size 50 -q --checkpoint-every never";
    let words = ["particle", "at step", "with step size 50", "smaller step size", "shrink"];
    desk.fail(&format!("{run} --steps 100"), 1, &words);
    // From where they were well before, smaller steps bring them home.
    let said = desk
        .succeed("sample --method svgd --step-size 50 --steps 20 -q --non-finite shrink --out a");
    assert!(said.contains("the step size was halved"), "{said}");
    // Every particle would have to be frozen.
    let words = ["score of particle", "at step"];
    desk.fail(&format!("{run} --steps 20 --non-finite freeze"), 1, &words);
}

#[test]
fn collected_samples_keep_chain_and_draw_apart() {
    let desk = Desk::new();
    let text = desk.succeed(
        "sample gaussian --method sghmc-blob-alt --friction 0.01 -n 10 --steps 100 --resample-every 20 \
         --collect-from 40 -q --out run",
    );
    assert!(text.contains("40 samples collected"), "{text}");
    let columns = read_parquet(desk.path("run/samples.parquet")).unwrap();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["chain", "draw", "step", "x", "y"]);
    let Values::U64(steps) = &columns[2].values else { panic!("steps are counts") };
    assert_eq!((steps.len(), steps[0], steps[39]), (40, 40, 100));
    desk.fail("sample --method svgd --resample-every 5", 2, &["no auxiliary variable"]);
    desk.fail("sample -m sgrhmc-stein --collect-every 5", 2, &["--collect-from"]);
    desk.fail("sample --method gfsf -n 10000 --solve-memory 1", 2, &["10000", "1048576"]);
}

#[test]
fn points_come_with_a_run_or_with_the_reason_why_not() {
    let desk = Desk::new();
    desk.succeed("sample gaussian --points -q --out good");
    let columns = read_parquet(desk.path("good/points.parquet")).unwrap();
    for (column, (name, sd)) in columns.iter().zip([("x", 1.0), ("y", 2.0)]) {
        let Values::F64(values) = &column.values else { panic!("points are numbers") };
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let spread = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        assert_eq!((column.name.as_str(), values.len()), (name, 64));
        // As many draws would err by 0.12 and 9 %.
        assert!((mean / sd).abs() < 0.03 && (spread / sd - 1.0).abs() < 0.03, "{mean} {spread}");
    }
    let output = desk.run("sample standard-normal --dim 10 -n 16 --points -q --out bad");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("there are no points at rest"), "{said}");
    assert!(said.contains("is 16") && said.contains("20 or more"), "{said}");
    assert!(
        desk.path("bad/particles.parquet").exists() && !desk.path("bad/points.parquet").exists()
    );
}

#[test]
fn a_config_serves_another_method_and_folder() {
    let desk = Desk::new();
    std::fs::write(desk.path("d.csv"), "a,y\n1,0.4\n2,1.1\n3,1.3\n0,0.2\n4,2.2\n").unwrap();
    desk.succeed("sample linear-regression --data d.csv --method sghmc --friction 2 --steps 5 -q --out first");
    let config = std::fs::read_to_string(desk.path("first/config.toml")).unwrap();
    for word in ["prior-sd = 2.5", "missing = \"drop\"", "start-sd", "friction = 2.0"] {
        assert!(config.contains(word), "{config}");
    }
    std::fs::create_dir(desk.path("elsewhere")).unwrap();
    let elsewhere = Command::cargo_bin("steinflow")
        .unwrap()
        .current_dir(desk.path("elsewhere"))
        .args(
            "sample --config ../first/config.toml --method sghmc-stein --steps 5 -q --out second"
                .split(' '),
        )
        .output()
        .unwrap();
    assert!(elsewhere.status.success(), "{}", String::from_utf8_lossy(&elsewhere.stderr));
    let config = std::fs::read_to_string(desk.path("elsewhere/second/config.toml")).unwrap();
    assert!(config.contains("friction = 2.0") && config.contains("d.csv"), "{config}");
    // What was written and cannot apply is refused by name, not dropped.
    let words = ["--friction does not fit the method `svgd`"];
    desk.fail("sample --config first/config.toml --method svgd -q --out third", 2, &words);
}

#[test]
fn defaults_on_sharp_posteriors_do_not_run_away() {
    let desk = Desk::new();
    // 300 rows make a posterior with a curvature of 300.
    let rows = (0..300).map(|i| {
        let (a, b) = (f64::from(i % 17) - 8.0, f64::from(i % 23) - 11.0);
        format!("{a},{b},{}", 2.0 * a - b + f64::from(i % 5))
    });
    let csv: Vec<String> = std::iter::once("a,b,y".to_owned()).chain(rows).collect();
    std::fs::write(desk.path("d.csv"), csv.join("\n")).unwrap();
    for method in ["ld", "svgd", "sghmc", "blob", "sghmc-stein --steps 4000"] {
        let run = format!(
            "sample linear-regression --noise-sd 12 --data d.csv --method {method} -q --json --force --out run"
        );
        let summary = json(&desk.succeed(&run));
        assert_eq!(summary["warnings"].as_array().unwrap().len(), 0, "{method}: {summary}");
        for moment in summary["moments"].as_array().unwrap() {
            let of = |name: &str| moment[name].as_f64().unwrap();
            let error = (of("mean") - of("exact_mean")) / of("exact_sd");
            assert!(error.abs() < 0.5, "{method}: {moment}");
        }
    }
    let text = desk.succeed("sample linear-regression --noise-sd 12 --data d.csv --method ld --step-size 0.01 -q --steps 60 --out bad");
    assert!(text.contains("Diverged: Use nothing of it: the log density has fallen far"), "{text}");
}

#[test]
fn the_collapse_table_can_be_made_again() {
    let desk = Desk::new();
    let text = desk.succeed("reproduce collapse --help");
    assert!(text.contains("--quick"), "{text}");
    desk.fail("reproduce colapse", 2, &["collapse"]);
}

#[test]
fn the_toy_figures_come_with_their_numbers_and_a_page() {
    let desk = Desk::new();
    let text = desk.succeed("reproduce toy --quick --seed 5 --out toy");
    assert!(text.contains("SGRHMC-Stein") && text.contains("README.md"), "{text}");
    let read = |name: &str| std::fs::read(desk.path("toy").join(name)).unwrap();
    let lines = |name: &str| String::from_utf8(read(name)).unwrap().lines().count();
    for figure in ["table1", "samples", "traces", "evolution"] {
        assert!(read(&format!("{figure}.png")).starts_with(b"\x89PNG\r\n\x1a\n"), "{figure}");
        assert!(read(&format!("{figure}.svg")).starts_with(b"<svg"), "{figure}");
        assert!(lines(&format!("{figure}.csv")) > 1, "{figure}");
        assert!(lines(&format!("{figure}.toml")) > 1, "{figure}");
    }
    assert!(read("evolution-animated.png").windows(4).any(|chunk| chunk == b"acTL"));
    // A header, then 8 methods of 100 particles; 8 methods, 2 variants and exact samples, 2 seeds.
    assert_eq!(lines("samples.csv"), 1 + 8 * 100);
    assert_eq!(lines("samples-seeds.csv"), 1 + 11 * 2);
    let player = String::from_utf8(read("evolution.html")).unwrap();
    assert!(!player.replace("http://www.w3.org/2000/svg", "").contains("http"), "loads something");
    let page = String::from_utf8(read("README.md")).unwrap();
    assert!(page.contains("steinflow reproduce toy --seed 5 --quick"), "{page}");
    // Whatever the page links to is there.
    for link in page.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        assert!(
            link.starts_with("https://arxiv.org") || desk.path("toy").join(link).exists(),
            "{link}"
        );
    }
    desk.fail("reproduce toy --quick --out toy", 2, &["toy", "--force"]);
}

#[test]
fn wrong_requests_for_figures_are_refused() {
    let desk = Desk::new();
    desk.fail("reproduce figure9", 2, &["figure9"]);
    desk.fail("reproduce samples --seed -1", 2, &["--seed"]);
    desk.fail("reproduce samples --seed 18446744073709551615", 2, &["seed", "a smaller one"]);
    desk.fail("reproduce collapse --seed 1", 2, &["--seed"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_everything_so_far() {
    use std::process::{Command, Stdio};
    let desk = Desk::new();
    let child = Command::new(assert_cmd::cargo::cargo_bin("steinflow"))
        .current_dir(desk.0.path())
        .args("sample -m sgrhmc-stein --steps 1000000000 --step-size 0.01 -q --out cut --trace-every 1".split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The hidden folder appears once the run has begun.
    while desk.listing().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let summary = json(&std::fs::read_to_string(desk.path("cut/summary.json")).unwrap());
    assert_eq!(summary["ended"], "interrupted");
    let steps = summary["steps"].as_u64().unwrap();
    assert!(steps > 0);
    assert_eq!(floats(&desk.path("cut"), "x").len(), 100);
    assert_eq!(desk.listing(), ["cut"]);
}

#[test]
fn nobody_reading_the_messages_is_no_reason_to_stop() {
    use std::process::{Command, Stdio};
    let desk = Desk::new();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("steinflow"))
        .current_dir(desk.0.path())
        // The N×N solve of this method is announced on standard error.
        .args("sample gaussian -m sge -n 300 --steps 5 --out run".split(' '))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(desk.path("run/summary.json").exists());
}

#[test]
fn a_formula_is_sampled_in_its_own_coordinates_and_its_errors_show_their_place() {
    let desk = Desk::new();
    let run = "sample --density -2*x+log(x) --support x>0 -q --json --out run";
    let summary = json(&desk.succeed(run));
    // Gamma(2, 2).
    let mean = summary["moments"][0]["mean"].as_f64().unwrap();
    assert!((mean - 1.0).abs() < 0.1, "{summary}");
    assert_eq!(summary["diagnosis"]["verdict"], "trust", "{summary}");
    let config = desk.read("run/config.toml");
    for line in ["model = \"density\"", "density = \"-2*x+log(x)\"", "support = [\"x>0\"]"] {
        assert!(config.contains(line), "{config}");
    }
    // The folder says it all.
    let again = json(&desk.succeed("sample --config run/config.toml -q --json --out again"));
    assert_eq!(summary["moments"], again["moments"]);
    desk.fail("sample --density -x^2+*3", 2, &["not `*`", "\n  -x^2+*3\n       ^"]);
    desk.fail("sample ring --density -x^2", 2, &["takes no density"]);
}
