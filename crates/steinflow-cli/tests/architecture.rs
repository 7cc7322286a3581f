//! The page about the architecture names files and things that exist.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/architecture.md")).expect("the page")
}

/// What stands between single backquotes, outside blocks of code.
fn quoted(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

/// All Rust code of the library, the config, the engine for GPUs and the ranks.
fn code() -> String {
    fn add(folder: &Path, code: &mut String) {
        for entry in fs::read_dir(folder).expect("a folder of code").map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                add(&path, code);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                code.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut code = String::new();
    for name in ["steinflow", "steinflow-config", "steinflow-cuda", "steinflow-mpi"] {
        add(&root().join("crates").join(name).join("src"), &mut code);
    }
    code
}

#[test]
fn every_path_exists() {
    let page = page();
    let paths: Vec<&str> = quoted(&page).into_iter().filter(|text| text.contains('/')).collect();
    assert!(paths.len() > 20, "{paths:?}");
    for path in paths {
        assert!(root().join(path).exists(), "{path} is on the page and nowhere else");
    }
    // In the drawings, files stand after two or more spaces, relative to the library or to the root.
    let drawings = page.split("```").skip(1).step_by(2);
    let mut seen = 0;
    for word in drawings.flat_map(str::split_whitespace).map(|word| word.trim_matches(',')) {
        if Path::new(word).extension().is_none_or(|ending| ending != "rs") {
            continue;
        }
        seen += 1;
        let own = ["steinflow", "steinflow-config", "steinflow-cuda", "steinflow-mpi"];
        let places = own.map(|name| format!("crates/{name}/src"));
        let exists = root().join(word).is_file()
            || places.iter().any(|place| root().join(place).join(word).is_file());
        assert!(exists, "{word} is in a drawing and nowhere else");
    }
    assert!(seen > 15);
}

#[test]
fn every_function_in_the_drawings_exists() {
    let (page, code) = (page(), code());
    let drawings = page.split("```").skip(1).step_by(2);
    let mut seen = 0;
    for word in drawings.flat_map(str::split_whitespace) {
        let Some((kind, function)) = word.split_once("::") else { continue };
        seen += 1;
        assert!(code.contains(&format!("fn {function}")), "{word}: no such function");
        let declared = ["struct", "enum", "trait"].iter().any(|what| {
            [" ", "<", "(", ";", ":"]
                .iter()
                .any(|end| code.contains(&format!("{what} {kind}{end}")))
        });
        assert!(declared, "{word}: no such type");
    }
    assert!(seen >= 8);
}
