//! `steinflow data` as a user meets it.

use std::io::Write as _;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;

#[allow(dead_code, reason = "some of it is for the unit tests")]
#[path = "support/server.rs"]
mod server;

/// The command with a home of its own, so that what the user has fetched does not matter.
fn command(home: &Path) -> Command {
    let mut command = Command::cargo_bin("steinflow").unwrap();
    for variable in ["STEINFLOW_DATA", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env_remove(variable);
    }
    command.env("HOME", home).env("XDG_CACHE_HOME", home.join("cache")).current_dir(home);
    command
}

fn steinflow(home: &Path, arguments: &[&str]) -> Output {
    command(home).args(arguments).output().unwrap()
}

fn succeed(home: &Path, arguments: &[&str]) -> String {
    let output = steinflow(home, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn fail(home: &Path, arguments: &[&str], code: i32, words: &[&str]) {
    let output = steinflow(home, arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
    for word in words {
        assert!(error.contains(word), "{arguments:?}: {error:?} lacks {word:?}");
    }
    assert!(!error.contains("panicked"), "{error}");
}

/// Files under `folder`, at any depth.
fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn the_list_says_what_is_here() {
    let home = tempfile::tempdir().unwrap();
    let text = succeed(home.path(), &["data", "list"]);
    for words in ["penguins", "built in", "boston", "515345", "CC BY 4.0", "not here"] {
        assert!(text.contains(words), "{text}");
    }
    let list: serde_json::Value =
        serde_json::from_str(&succeed(home.path(), &["data", "list", "--json"])).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 10);
    assert_eq!(list[0]["name"], "penguins");
    assert_eq!((&list[0]["rows"], &list[0]["built_in"]), (&333.into(), &true.into()));
    assert!(list[2]["file"].is_null());
}

/// The folder given, then the variable, then the cache; the list does not open the files.
#[test]
fn the_nearest_folder_wins() {
    let home = tempfile::tempdir().unwrap();
    let folders = ["given", "variable", "cache/steinflow"];
    for folder in folders {
        let folder = home.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("YearPredictionMSD.txt"), "").unwrap();
    }
    for (step, expected) in folders.iter().enumerate() {
        let output = command(home.path())
            .env("STEINFLOW_DATA", home.path().join("variable"))
            .args(["data", "list", "--json", "--data-dir", "given"])
            .output()
            .unwrap();
        let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let year = list.as_array().unwrap().iter().find(|set| set["name"] == "year").unwrap();
        let file = Path::new(year["file"].as_str().unwrap());
        assert!(file.ends_with(Path::new(expected).join("YearPredictionMSD.txt")), "{file:?}");
        std::fs::remove_file(home.path().join(folders[step]).join("YearPredictionMSD.txt"))
            .unwrap();
    }
    fail(home.path(), &["data", "fetch", "year", "--from", "x"], 2, &["no such file"]);
}

#[test]
fn a_set_is_shown_with_its_columns_or_with_the_way_to_get_it() {
    let home = tempfile::tempdir().unwrap();
    let text = succeed(home.path(), &["data", "show", "penguins"]);
    for words in
        ["flipper_length_mm", "200.9670", "20 standard splits of 300", "Gorman", "█", "CC0"]
    {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
    let shown: serde_json::Value =
        serde_json::from_str(&succeed(home.path(), &["data", "show", "penguins", "--json"]))
            .unwrap();
    let mass = &shown["columns"][6];
    assert_eq!((&mass["min"], &mass["max"]), (&2700.0.into(), &6300.0.into()));
    assert!((mass["mean"].as_f64().unwrap() - 4207.057).abs() < 1e-3);

    let text = succeed(home.path(), &["data", "show", "year"]);
    for words in ["not here", "data fetch year", "the first 463715 rows train, the last 51630 test"]
    {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
    fail(home.path(), &["data", "show", "yaht"], 2, &["did you mean `yacht`?"]);
}

#[test]
fn what_cannot_be_fetched_says_what_to_do_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let server = server::Server::start(|_, request| match request.path.as_str() {
        "/gone" => server::Answer::new(404, b"gone"),
        _ => server::Answer::new(200, b"1 2 3 4 5 6 7\n"),
    });
    // A port that nobody listens on any more.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let by_hand = "by hand from https://archive.ics.uci.edu/static/public/243/yacht";
    for (from, words) in [
        (server.url("gone"), "the server answers 404"),
        (server.url("small"), "it has 1 rows, expected 308"),
        (format!("http://{closed}/"), "no connection"),
    ] {
        let words = [words, &from, by_hand, "--from FILE", "yacht.csv.gz"];
        fail(home.path(), &["data", "fetch", "yacht", "--quiet", "--from", &from], 1, &words);
        assert!(files(home.path()).is_empty(), "{:?}", files(home.path()));
    }
    let words = ["--from no.zip", "no such file", "https://"];
    fail(home.path(), &["data", "fetch", "yacht", "--from", "no.zip"], 2, &words);
    fail(home.path(), &["data", "fetch", "titanic"], 2, &["no data set `titanic`"]);
    assert!(succeed(home.path(), &["data", "fetch", "penguins"]).contains("built in"));

    let folder = home.path().join("mine");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("yacht.csv.gz"), "x,target\n1,2\n").unwrap();
    let words = ["yacht.csv.gz", "is not the data set", "--force"];
    fail(home.path(), &["data", "fetch", "yacht", "--data-dir", "mine"], 2, &words);
}

/// With real numbers, where the user has them: fetched once, found from then on.
#[test]
fn a_fetched_set_is_found_in_the_cache_and_in_its_own_folder() {
    let Some(folder) = std::env::var_os("STEINFLOW_DATA") else {
        let _ = writeln!(std::io::stderr(), "skipped: STEINFLOW_DATA is not set");
        return;
    };
    let file = Path::new(&folder).join("yacht.csv.gz");
    let Ok(bytes) = std::fs::read(&file) else {
        let _ = writeln!(std::io::stderr(), "skipped: STEINFLOW_DATA has no yacht.csv.gz");
        return;
    };
    let server = server::Server::start(move |_, _| server::Answer::new(200, &bytes));
    let home = tempfile::tempdir().unwrap();
    let url = server.url("yacht.csv.gz");
    let text = succeed(home.path(), &["data", "fetch", "yacht", "--from", &url]);
    assert!(text.contains("yacht is here") && text.contains("CC BY 4.0"), "{text}");
    assert_eq!(files(home.path()), ["yacht.csv.gz"]);
    let text = succeed(home.path(), &["data", "show", "yacht"]);
    assert!(text.contains("cache/steinflow/yacht.csv.gz"), "{text}");
    assert!(succeed(home.path(), &["data", "fetch", "yacht"]).contains("already here"));
    assert_eq!(server.requests().len(), 1);

    let from = file.to_string_lossy();
    let fetch = ["data", "fetch", "yacht", "--data-dir", "mine", "--from", &from];
    succeed(home.path(), &fetch);
    let text = succeed(home.path(), &["data", "list", "--data-dir", "mine"]);
    assert!(text.contains("mine/yacht.csv.gz"), "{text}");
    // A compressed table is as good as any to a regression.
    let sample = "sample -m svgd linear-regression --data mine/yacht.csv.gz --steps 3 -q";
    succeed(home.path(), &sample.split(' ').collect::<Vec<_>>());
}

#[test]
fn a_file_that_is_called_xlsx_and_is_none_says_why() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("a.xlsx");
    for (content, why) in
        [("not a zip", "no zip archive"), ("PK\x05\x06 and so on", "no zip archive")]
    {
        std::fs::write(&file, content).unwrap();
        let from = file.display().to_string();
        let words = ["a.xlsx", "no Excel file", why];
        fail(home.path(), &["data", "fetch", "yacht", "--quiet", "--from", &from], 1, &words);
    }
}
