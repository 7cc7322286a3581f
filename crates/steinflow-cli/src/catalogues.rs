//! `steinflow methods` and `steinflow models`: what there is.

use std::io::Write as _;
use std::process::ExitCode;

use serde_json::json;
use steinflow::method::{FieldKind, Method, Parameter};
use steinflow_config::ADJUSTED;
use steinflow_models::catalogue;

use crate::error::Result;

pub fn methods(as_json: bool) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let parameters = |method: &Method| -> Vec<&str> {
        method.parameters().into_iter().map(Parameter::name).collect()
    };
    if as_json {
        let list: Vec<_> = Method::all()
            .iter()
            .map(|method| {
                json!({
                    "name": method.name,
                    "formula": method.formula(),
                    "parameters": parameters(method),
                    "kernel": method.field.has_kernel(),
                    "random": method.field.is_random(),
                    "reference": method.reference(),
                })
            })
            .collect();
        steinflow_io::write_json(&list, &mut out)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(
        out,
        "\nThe default, and others with an accept step: an ensemble learns its coordinates\n"
    )?;
    for (name, _, what) in ADJUSTED {
        writeln!(out, "  {name:<22} {what}  [effective, gradients]")?;
    }
    let mut heading = None;
    for method in Method::all() {
        if heading != Some(method.field) {
            heading = Some(method.field);
            writeln!(out, "\n{}\n  {}\n", method.field.title(), method.field.formula())?;
        }
        let own = parameters(&method);
        let own = if own.is_empty() { String::new() } else { format!("  [{}]", own.join(", ")) };
        writeln!(out, "  {:<22} {}{own}", method.name, method.reference())?;
    }
    writeln!(out, "\nf = (A + C)∇log π + ∇·(A + C):\n")?;
    for method in Method::all().iter().filter(|m| m.field == FieldKind::Diffusion) {
        writeln!(out, "  {:<22} {}", method.name, method.dynamics.drift())?;
    }
    Ok(ExitCode::SUCCESS)
}

pub fn models(as_json: bool) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    if as_json {
        let list: Vec<_> = catalogue()
            .iter()
            .map(|model| {
                json!({
                    "name": model.name,
                    "title": model.title,
                    "formula": model.formula,
                    "reference": model.reference,
                    "options": model.options,
                    "needs_data": model.takes("data"),
                    "takes_dim": model.takes("dim"),
                })
            })
            .collect();
        steinflow_io::write_json(&list, &mut out)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    for model in catalogue() {
        let takes = match (model.takes("data"), model.takes("dim")) {
            (true, _) => "; needs --data",
            (_, true) => "; takes --dim",
            _ => "",
        };
        writeln!(out, "  {:<20} {}{takes}", model.name, model.title)?;
        writeln!(out, "  {:<20} {}", "", model.formula)?;
        writeln!(out, "  {:<20} {}\n", "", model.reference)?;
    }
    Ok(ExitCode::SUCCESS)
}
