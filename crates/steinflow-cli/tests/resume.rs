//! Runs that are interrupted, killed, damaged or changed, and go on.

mod support {
    pub mod desk;
}

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use steinflow_io::{Values, read_parquet};
use support::desk::Desk;

/// A run that would take for ever, and writes a checkpoint every few steps.
const ENDLESS: &str = "sample banana --method sghmc --steps 1000000000 --step-size 0.05 -n 20 \
                       --trace-every 1000 -q --checkpoint-every 50 --out cut";

fn start(desk: &Desk, arguments: &str) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin("steinflow"))
        .current_dir(desk.0.path())
        .args(arguments.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_for(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The checkpoints of an unfinished run, oldest first.
fn checkpoints(desk: &Desk, name: &str) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(desk.path(&format!("{name}.unfinished"))) else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("checkpoint-"))
        .collect();
    found.sort();
    found
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
}

/// Starts a run, kills it when it has two checkpoints, and leaves what is left.
#[cfg(unix)]
fn kill_early(desk: &Desk, arguments: &str, name: &str) {
    let mut child = start(desk, arguments);
    wait_for(|| checkpoints(desk, name).len() == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!desk.path(name).exists());
}

#[test]
fn an_ensemble_that_has_stopped_by_itself_is_finished() {
    let desk = Desk::new();
    desk.succeed("sample gaussian --effective 100 -q --out done");
    desk.succeed("sample gaussian --gradients 40 -q --out spent");
    for name in ["done", "spent"] {
        let before = lasting(&desk.path(name));
        desk.fail(&format!("resume {name}"), 2, &["it is finished", "more effective draws"]);
        assert!(lasting(&desk.path(name)) == before && desk.listing().len() == 2);
    }
}

#[cfg(unix)]
#[test]
fn a_warm_up_is_interrupted_and_goes_on() {
    let desk = Desk::new();
    // Its warm-up is long enough to be met.
    let run =
        "sample gaussian --dim 60 --condition 10000 --method svgd --warm-up -n 64 --steps 5 -q";
    desk.succeed(&format!("{run} --out whole"));
    let mut child = start(&desk, &format!("{run} --out cut"));
    wait_for(|| desk.path("cut.unfinished/config.toml").exists());
    std::thread::sleep(Duration::from_millis(50));
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!desk.path("cut").exists());
    let [only] = &checkpoints(&desk, "cut")[..] else { panic!("one checkpoint") };
    assert!(only.ends_with("checkpoint-000000000000"), "it was in the warm-up");
    desk.succeed("resume cut -q");
    assert!(lasting(&desk.path("cut")) == lasting(&desk.path("whole")));
    assert!(checkpoints(&desk, "cut").is_empty());
}

/// All that must not depend on an interruption: particles, samples, and the trace but for its clock.
fn lasting(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for name in ["particles.parquet", "samples.parquet", "frames.parquet", "config.toml"] {
        if folder.join(name).exists() {
            found.push((name.to_owned(), fs::read(folder.join(name)).unwrap()));
        }
    }
    for column in read_parquet(folder.join("trace.parquet")).unwrap() {
        if column.name != "seconds" {
            let bytes = match column.values {
                Values::F64(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
                Values::F32(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
                Values::U64(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            };
            found.push((column.name, bytes));
        }
    }
    found
}

#[track_caller]
fn assert_same(desk: &Desk, one: &str, other: &str) {
    let (one, other) = (lasting(&desk.path(one)), lasting(&desk.path(other)));
    assert_eq!(one.len(), other.len());
    for (a, b) in one.iter().zip(&other) {
        assert!(a == b, "{} differs", a.0);
    }
}

#[cfg(unix)]
#[test]
fn a_killed_run_comes_back_to_the_same_bytes() {
    let desk = Desk::new();
    let arguments = "sample bnn --hidden 5 -n 4 --steps 6000 --collect-from 100 --collect-every 50 \
                     -q --non-finite shrink --precision f32";
    desk.succeed(&format!("{arguments} --out whole"));
    kill_early(&desk, &format!("{arguments} --checkpoint-every 20 --out cut"), "cut");
    desk.succeed("resume cut -q");
    assert_same(&desk, "cut", "whole");
    assert_eq!(desk.listing(), ["cut", "whole"]);
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_run_in_good_order_with_its_own_exit_code() {
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let desk = Desk::new();
        let child = start(&desk, ENDLESS);
        wait_for(|| !checkpoints(&desk, "cut").is_empty());
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{error}");
        assert!(error.contains("go on with `steinflow resume cut`"), "{error}");
        assert_eq!(desk.listing(), ["cut"]);
        let steps = |desk: &Desk| {
            let summary: serde_json::Value =
                serde_json::from_str(&desk.read("cut/summary.json")).unwrap();
            (summary["ended"].clone(), summary["steps"].as_u64().unwrap())
        };
        let (ended, taken) = steps(&desk);
        assert!(ended == "interrupted" && taken > 0);
        // It goes on to wherever it is asked to, and has the numbers of an uninterrupted run.
        let total = taken + 10;
        desk.succeed(&format!("resume cut -q --steps {total}"));
        assert_eq!(steps(&desk), ("finished".into(), total));
        let whole = ENDLESS.replace("1000000000", &total.to_string()).replace("cut", "whole");
        desk.succeed(&whole);
        assert_same(&desk, "cut", "whole");
    }
}

#[cfg(unix)]
#[test]
fn a_second_signal_stops_at_once_and_leaves_a_good_checkpoint() {
    let desk = Desk::new();
    let child = start(&desk, ENDLESS);
    wait_for(|| checkpoints(&desk, "cut").len() == 2);
    signal(&child, "-INT");
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    // Either the two came as one, or the second cut the first short.
    if desk.path("cut").exists() {
        desk.succeed("resume cut -q --steps 1000000000 --budget 0.001");
    } else {
        assert_eq!(desk.listing(), ["cut.unfinished"]);
        desk.succeed("resume cut.unfinished -q --budget 0.001");
    }
    assert_eq!(desk.listing(), ["cut"]);
}

#[test]
fn a_finished_run_goes_on_with_more_steps() {
    let desk = Desk::new();
    let run = "sample gaussian --method sgnht-stein -n 20 --step-size 0.05 -q --trace-every 7 \
               --collect-from 3 --collect-every 4";
    desk.succeed(&format!("{run} --steps 460 --out long"));
    desk.succeed(&format!("{run} --steps 150 --out short"));
    desk.fail("resume short -q", 2, &["finished after 150 steps", "--steps"]);
    desk.fail("resume short -q --steps 39", 2, &["150", "at least as many"]);
    desk.succeed("resume short -q --steps 460");
    assert_same(&desk, "short", "long");
    // A schedule that stretches is another one.
    let stretched = "sample banana --method ld --step-size linear:0.1:0.01 -q -n 5";
    desk.succeed(&format!("{stretched} --steps 20 --out linear"));
    desk.fail("resume linear --steps 30", 2, &["euler:linear:0.1:0.01x20", "--branch"]);
}

#[test]
fn changed_settings_are_named_and_ask_for_a_branch() {
    let desk = Desk::new();
    desk.write("data.csv", "x,y\n1,2\n2,3.5\n3,7\n4,8.5\n5,9\n");
    desk.succeed(
        "sample linear-regression --data data.csv --method svgd -n 10 --steps 30 --step-size 0.001 \
         -q --out run",
    );
    let before = desk.read("run/config.toml");
    desk.write("other.toml", before.replace("seed = 0", "seed = 9"));
    desk.fail(
        "resume run --steps 50 --config other.toml",
        2,
        &["other settings", "seed: 0 → 9", "--branch"],
    );
    desk.succeed("resume run -q --steps 50 --config other.toml --branch branch");
    assert!(desk.read("branch/config.toml").contains("seed = 9"));
    assert_eq!(desk.read("run/config.toml"), before);
    desk.fail("resume run -q --steps 50 --branch branch", 2, &["exists"]);
    // An edit of the run's own config, or of its data, is a change too.
    desk.write("run/config.toml", before.replace("particles = 10", "particles = 11"));
    desk.fail("resume run --steps 50", 2, &["particles: 10 → 11"]);
    desk.write("run/config.toml", &before);
    desk.write("data.csv", "x,y\n1,2\n2,3.5\n3,7\n4,8.5\n5,9.5\n");
    desk.fail("resume run --steps 50", 2, &["data.csv is not what it was"]);
}

#[cfg(unix)]
#[test]
fn a_damaged_checkpoint_is_passed_over_and_without_any_the_run_begins_again() {
    let desk = Desk::new();
    let arguments = "sample ring --method spos-exact -n 20 --steps 6000 --step-size 0.01 -q";
    desk.succeed(&format!("{arguments} --out whole"));
    let cut = format!("{arguments} --checkpoint-every 100 --out cut --force");
    let resume = || {
        let output = desk.run("resume cut -q");
        assert!(output.status.success());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_same(&desk, "cut", "whole");
        fs::remove_dir_all(desk.path("cut")).unwrap();
        said
    };
    kill_early(&desk, &cut, "cut");
    let newest = checkpoints(&desk, "cut").pop().unwrap();
    let mut bytes = fs::read(&newest).unwrap();
    bytes.truncate(bytes.len() / 2);
    fs::write(&newest, bytes).unwrap();
    let said = resume();
    let name = newest.file_name().unwrap().to_string_lossy().into_owned();
    assert!(said.contains(&name) && said.contains("cannot be used"), "{said}");

    kill_early(&desk, &cut, "cut");
    for path in checkpoints(&desk, "cut") {
        fs::write(path, b"nonsense").unwrap();
    }
    assert!(resume().contains("beginning with the first step"));
}

#[cfg(unix)]
#[test]
fn a_run_has_one_writer_and_is_not_begun_over_by_mistake() {
    let desk = Desk::new();
    let mut child = start(&desk, ENDLESS);
    wait_for(|| checkpoints(&desk, "cut").len() == 2);
    for second in ["resume cut -q", "sample -m svgd banana -q --out cut --force --steps 5"] {
        let output = desk.run(second);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("another process"), "{error}");
    }
    assert!(child.try_wait().unwrap().is_none(), "the first goes on");
    child.kill().unwrap();
    child.wait().unwrap();
    desk.fail(
        "sample -m svgd banana -q --out cut --steps 5",
        2,
        &["steinflow resume cut", "--force"],
    );
    desk.succeed("sample -m svgd banana -q --out cut --steps 5 --force");
    assert_eq!(desk.listing(), ["cut"]);
}

/// Kills a run that has begun and has no checkpoint yet.
#[cfg(unix)]
fn kill_at_the_beginning(desk: &Desk, arguments: &str, name: &str) {
    let settings = desk.path(&format!("{name}.unfinished/config.toml"));
    let mut child = start(desk, arguments);
    wait_for(|| settings.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(checkpoints(desk, name).is_empty());
}

#[cfg(unix)]
#[test]
fn a_new_run_in_the_place_of_an_old_one_is_the_one_that_goes_on() {
    let desk = Desk::new();
    let new =
        "sample banana --method sghmc -n 20 --step-size 0.05 --trace-every 1000 -q --threads 1";
    desk.succeed("sample ring --method svgd --steps 20 -q --out x");
    desk.succeed(&format!("{new} --steps 20000 --out whole"));
    let before = desk.read("x/summary.json");
    // Long enough to be killed, then cut to what was made above.
    let forced = format!("{new} --steps 1000000000 --checkpoint-every never --out x --force");
    kill_at_the_beginning(&desk, &forced, "x");
    assert_eq!(desk.read("x/summary.json"), before);
    let settings = desk.read("x.unfinished/config.toml");
    desk.fail("resume x --steps many", 2, &["many"]);
    assert_eq!(desk.read("x.unfinished/config.toml"), settings, "a slip costs nothing");
    let output = desk.run("resume x -q --steps 20000");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("beginning with the first step"), "{said}");
    assert_same(&desk, "x", "whole");
    assert_eq!(desk.listing(), ["whole", "x"]);
}

#[cfg(unix)]
#[test]
fn a_run_that_had_ended_is_known_by_its_folder() {
    let desk = Desk::new();
    desk.succeed("sample banana --method svgd -n 5 --steps 20 -q --out x");
    let summary = desk.read("x/summary.json");
    // What a process leaves that is killed between putting the folder in its place and removing this.
    fs::create_dir(desk.path("x.unfinished")).unwrap();
    let mut left = steinflow_io::Unfinished::open(&desk.path("y")).unwrap();
    left.begin(desk.read("x/config.toml").as_bytes(), None).unwrap();
    let mark = desk.read("y.unfinished/.steinflow-unfinished").replace("`y`", "`x`");
    desk.write("x.unfinished/.steinflow-unfinished", mark);
    desk.write("x.unfinished/config.toml", desk.read("x/config.toml"));
    drop(left);
    let list = desk.read("x/.steinflow-run");
    let line = list.lines().find(|line| line.ends_with("summary.json")).unwrap();
    desk.write("x.unfinished/ended", &line[..64]);
    let output = desk.run("resume x -q");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("finished after 20 steps"), "{said}");
    assert_eq!(desk.listing(), ["x"]);
    assert_eq!(desk.read("x/summary.json"), summary);
}

#[test]
fn what_has_the_name_of_an_unfinished_run_is_left_alone() {
    let desk = Desk::new();
    fs::create_dir(desk.path("a.unfinished")).unwrap();
    desk.write("a.unfinished/config.toml", "mine");
    let run = "sample banana --method svgd -n 5 --steps 20 -q";
    let words = ["a.unfinished", "move it away", "--out"];
    for force in ["", " --force"] {
        desk.fail(&format!("{run} --out a{force}"), 2, &words);
    }
    desk.fail("resume a", 2, &words);
    assert_eq!(desk.read("a.unfinished/config.toml"), "mine");

    // A run may have such a name, and is then nobody else's.
    desk.succeed(&format!("{run} --out b.unfinished"));
    let summary = desk.read("b.unfinished/summary.json");
    desk.fail(&format!("{run} --out b --force"), 2, &["b.unfinished", "without its mark"]);
    assert_eq!(desk.read("b.unfinished/summary.json"), summary);
    desk.fail("resume b.unfinished", 2, &["finished after 20 steps"]);
    desk.succeed("resume b.unfinished -q --steps 30");
    assert!(desk.read("b.unfinished/summary.json").contains("\"steps\": 30"));
}

#[cfg(unix)]
#[test]
fn a_link_of_that_name_is_left_alone() {
    let desk = Desk::new();
    fs::create_dir(desk.path("theirs")).unwrap();
    desk.write("theirs/config.toml", "mine");
    std::os::unix::fs::symlink("theirs", desk.path("a.unfinished")).unwrap();
    desk.fail("sample -m svgd banana --steps 5 -q --out a --force", 2, &["symbolic link"]);
    assert_eq!(desk.read("theirs/config.toml"), "mine");
    assert_eq!(fs::read_dir(desk.path("theirs")).unwrap().count(), 1);
}

#[test]
fn a_run_goes_on_from_inside_its_folder() {
    let desk = Desk::new();
    desk.succeed("sample banana --method svgd -n 5 --steps 20 -q --out x");
    let output = Command::new(assert_cmd::cargo::cargo_bin("steinflow"))
        .current_dir(desk.path("x"))
        .args(["resume", ".", "-q", "--steps", "30"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(desk.read("x/summary.json").contains("\"steps\": 30"));
    assert_eq!(desk.listing(), ["x"]);
}

#[test]
fn requests_that_cannot_be_met_are_told_so() {
    let desk = Desk::new();
    desk.fail("resume nowhere", 2, &["nowhere", "nothing is there"]);
    desk.write("file", "");
    desk.fail("resume file", 2, &["had not begun"]);
    desk.succeed("sample -m svgd banana -q --steps 5 --checkpoint-every never --out never");
    assert!(!desk.path("never/checkpoint").exists());
    desk.fail("resume never --steps 9", 2, &["missing or damaged"]);
    desk.fail("sample --checkpoint-every sometimes", 2, &["30s"]);
    desk.fail("resume never --steps 9 --budget nan", 2, &["checkpoint"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_does_not_fit_into_memory_is_refused_with_the_number() {
    let desk = Desk::new();
    // 2.5e8 steps of 1000 particles.
    let run = "sample -m svgd gaussian --dim 20 -n 1000 --steps 250000000 --step-size 0.1 --collect-from 0 -q";
    desk.fail(run, 2, &["GiB", "are free", "fewer"]);
}

/// A shell that sets a limit and then runs the command.
#[cfg(target_os = "linux")]
fn limited(desk: &Desk, limit: &str, arguments: &str) -> (Option<i32>, String) {
    let program = assert_cmd::cargo::cargo_bin("steinflow");
    let output = Command::new("bash")
        .current_dir(desk.0.path())
        .args(["-c", &format!("ulimit {limit}; exec {} {arguments}", program.display())])
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[cfg(target_os = "linux")]
#[test]
fn limits_of_the_shell_are_told_and_nothing_aborts() {
    let desk = Desk::new();
    // 2 GB of addresses, and twelve states of 160 MB.
    let run = "sample standard-normal --dim 1000 -n 20000 --steps 1 --step-size 0.1 --method ld";
    let (code, said) = limited(&desk, "-v 2000000", &format!("{run} -q --threads 1"));
    assert!(code == Some(2) && said.contains("GiB") && said.contains("are free"), "{said}");
    // Files of at most 8 blocks of 1024 bytes.
    let run = "sample banana --method ld -n 2000 --steps 2 -q --threads 1 --out run";
    let (code, said) = limited(&desk, "-f 8", run);
    assert!(code == Some(1) && said.contains("ulimit -f"), "{code:?} {said}");
    assert_eq!(desk.listing(), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn a_table_that_is_too_wide_is_refused_with_the_number() {
    let desk = Desk::new();
    let columns = 90_000;
    let line = |cell: &str| vec![cell; columns].join(",") + "\n";
    let names: Vec<String> = (0..columns).map(|j| format!("c{j}")).collect();
    desk.write("wide.csv", names.join(",") + "\n" + &line("1") + &line("2") + &line("4"));
    // 90,000² numbers of 8 bytes, four times, are more than any machine of a test has.
    let run =
        "sample -m svgd linear-regression --data wide.csv --noise-sd 1 --steps 2 -q --out run";
    desk.fail(run, 2, &["90000", "GiB", "are free", "fewer"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_small_file_that_unpacks_to_a_large_table_is_refused() {
    let desk = Desk::new();
    desk.succeed("sample banana --method ld -n 5 --steps 2 -q --out run");
    let names: Vec<String> = read_parquet(desk.path("run/particles.parquet"))
        .unwrap()
        .into_iter()
        .map(|column| column.name)
        .collect();
    let column = |name: &String| steinflow_io::Column {
        name: name.clone(),
        values: Values::F64(vec![0.0; 5_000_000]),
    };
    let columns: Vec<_> = names.iter().map(column).collect();
    let file = fs::File::create(desk.path("zeros.parquet")).unwrap();
    steinflow_io::write_parquet(&columns, file).unwrap();
    // Of 120 MB.
    assert!(fs::metadata(desk.path("zeros.parquet")).unwrap().len() < 10_000_000);
    let command = "diagnose run --reference zeros.parquet --threads 1";
    let (code, said) = limited(&desk, "-v 400000", command);
    assert!(code == Some(2) && said.contains("zeros.parquet"), "{said}");
    assert!(said.contains("MiB") && said.contains("are free"), "{said}");
}
