//! `steinflow data list`: all sets in a table, and where each is.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use comfy_table::CellAlignment;
use serde_json::json;
use steinflow_models::data::{Located, Place, data_sets, find};

use crate::error::Result;
use crate::summary::table;

pub fn command(folder: Option<&Path>, as_json: bool) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let sets = || data_sets().iter().map(|set| (set, find(set.name, folder).ok()));
    if as_json {
        let list: Vec<_> = sets()
            .map(|(set, located)| {
                json!({
                    "name": set.name,
                    "title": set.title,
                    "rows": set.rows,
                    "features": set.features.len(),
                    "target": set.target_meaning,
                    "splits": set.split_count(),
                    "licence": set.licence,
                    "built_in": set.archives.is_empty(),
                    "file": located.as_ref().and_then(Located::file),
                })
            })
            .collect();
        steinflow_io::write_json(&list, &mut out)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = sets().map(|(set, located)| {
        let place = match located.as_ref().map(Located::place) {
            Some(Place::BuiltIn) => "built in".to_owned(),
            Some(Place::File(file)) => file.display().to_string(),
            None => "not here".to_owned(),
        };
        let (rows, features) = (set.rows.to_string(), set.features.len().to_string());
        let text = [set.target_meaning, set.licence].map(str::to_owned);
        [set.name.to_owned(), rows, features].into_iter().chain(text).chain([place]).collect()
    });
    let header = ["name", "rows", "features", "target", "licence", "where"];
    let mut table = table(&header, rows.collect());
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    writeln!(out, "{table}")?;
    writeln!(out, "\nsteinflow data show NAME describes one; steinflow data fetch NAME gets it")?;
    Ok(ExitCode::SUCCESS)
}
