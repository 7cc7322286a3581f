//! The documentation site: the repository's pages, the Python reference from docstrings and the Rust one from rustdoc.

use crate::python;
use crate::stage::Stage;

/// All of it, into `target/site`.
pub fn stages() -> Vec<Stage> {
    let mut stages = python::prepared();
    stages.push(Stage::cargo("docs", &["doc", "--workspace", "--no-deps"]));
    stages.push(build());
    stages
}

/// The pages alone, where the environment and the documentation are made already. Ends at a link that leads nowhere.
pub fn build() -> Stage {
    Stage::new("site", python::program("python"), &["docs/site/build.py"])
}
