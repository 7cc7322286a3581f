//! What is read may be anything: CSV tables, files of splits, formulas.

#[path = "../../../fuzz/fuzz.rs"]
mod fuzz;

use fuzz::{fuzz, scratch};
use steinflow_models::Density;
use steinflow_models::data::{Choices, Split, Table};

#[test]
fn tables() {
    let words = [
        ",",
        "\n",
        "\r\n",
        "\"",
        "\"\"",
        "NaN",
        "inf",
        "1e999",
        "-",
        "x",
        "\u{feff}",
        "\0",
        ";",
        "#",
        "yes",
        "1,5",
        "2024-02-29",
    ];
    fuzz("table", &words, |bytes| {
        let chosen = Table::choose_from_reader(bytes, "table.csv", &Choices::default());
        assert!(chosen.is_err() || chosen.is_ok_and(|table| !table.notes().is_empty()));
        let table = Table::from_reader(bytes, "table.csv");
        table.is_ok_and(|table| {
            let lines = (0..table.values().rows()).map(|row| table.line(row)).max();
            lines.is_some()
                && table.position(None).is_ok_and(|column| table.scaling(column).is_ok())
        })
    });
}

#[test]
fn splits() {
    let folder = scratch();
    let path = folder.path().join("splits");
    let words = [" ", "\n", "\t", "-1", "99999999999999999999", "x", "\0", "10"];
    fuzz("splits", &words, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        (0..3).any(|index| Split::from_file(&path, 10, index).is_ok())
    });
}

#[test]
fn formulas() {
    let words = ["(", ")", "^", "-", "*", "exp(", "logaddexp(", ",", "1e308", ".", "x", "é", "\0"];
    fuzz("formula", &words, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.lines().map(str::to_owned);
        let formula = lines.next().unwrap_or_default();
        Density::new(&formula, &lines.collect::<Vec<_>>()).is_ok()
    });
}
