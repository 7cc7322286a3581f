//! (A, C) as text: what `kernels/flow.cu` needs to know of the dynamics at hand.
//!
//! Every entry of M that runs here is diagonal in the coordinates: a number, or a number times a coefficient
//! that is proportional to the coordinate of a block.

use std::fmt::Write as _;

use steinflow::dynamics::{Block, Structure};
use steinflow::kernel::{Kernel, Radial, View};
use steinflow::{Error, Result};

/// What varies from particle to particle: c = rate · z of a block, with a constant divergence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Varying {
    /// The block that c is proportional to.
    pub block: usize,
    pub rate: f64,
    /// The block whose rows have a divergence, and how large it is.
    pub divergence: (usize, f64),
}

/// An entry of M: `value`, or `value` times c, at a row and a column of blocks.
struct Entry {
    row: usize,
    column: usize,
    value: f64,
    varies: bool,
}

/// The part of M that repels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repulsion {
    /// A + C.
    All,
    /// A, in the starred variants.
    Diffusion,
}

fn entries(structure: &Structure, repulsion: Repulsion) -> Result<Vec<Entry>> {
    let refuse = |value: &Block| {
        let remedy = "on a GPU, A and C have blocks that are numbers; run with device cpu";
        Error::setting("a block of A or C", format!("{value:?}"), remedy)
    };
    let mut entries = Vec::new();
    for (block, value) in structure.diffusion_blocks() {
        let Block::Scalar(value) = *value else { return Err(refuse(value)) };
        entries.push(Entry { row: block, column: block, value, varies: false });
    }
    if repulsion == Repulsion::Diffusion {
        return Ok(entries);
    }
    for (row, column, block) in structure.curl_blocks() {
        let (value, varies) = match *block {
            Block::Scalar(value) => (value, false),
            Block::DiagonalCoefficients(0) => (1.0, true),
            _ => return Err(refuse(block)),
        };
        entries.push(Entry { row, column, value, varies });
        entries.push(Entry { row: column, column: row, value: -value, varies });
    }
    Ok(entries)
}

/// A number as C++ has it.
fn number(value: f64) -> String {
    format!("real({value:?})")
}

/// A function that applies a part of M.
fn product(name: &str, structure: &Structure, repulsion: Repulsion) -> Result<String> {
    let entries = entries(structure, repulsion)?;
    let mut text = format!(
        "__device__ __forceinline__ void {name}(real one, real c, const real *x, real *out) {{\n"
    );
    for row in 0..structure.blocks() {
        let terms: Vec<String> = entries
            .iter()
            .filter(|entry| entry.row == row)
            .map(|entry| {
                let factor = if entry.varies { "c" } else { "one" };
                format!("{factor} * {} * x[{}]", number(entry.value), entry.column)
            })
            .collect();
        let sum = if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") };
        let _ = writeln!(text, "    out[{row}] = {sum};");
    }
    Ok(text + "}\n")
}

/// The functions of the dynamics, as the head of `kernels/flow.cu` lists them.
pub(crate) fn text(
    structure: &Structure,
    repulsion: Repulsion,
    varying: Option<&Varying>,
) -> Result<String> {
    let mut text = product("apply", structure, Repulsion::All)?;
    text += &product("repel", structure, repulsion)?;
    text += "__device__ __forceinline__ void gradient(const real *z, real score, real *g) {\n    g[0] = score;\n";
    for (place, law) in structure.auxiliaries().iter().enumerate() {
        let (block, mean) = (place + 1, number(law.mean));
        let precision = number(1.0 / law.variance);
        let _ = writeln!(text, "    g[{block}] = ({mean} - z[{block}]) * {precision};");
    }
    text += "}\n";
    let coefficient =
        varying.map_or("0".to_owned(), |v| format!("z[{}] * {}", v.block, number(v.rate)));
    let _ = writeln!(
        text,
        "__device__ __forceinline__ real coefficient(const real *z) {{ return {coefficient}; }}"
    );
    text += "__device__ __forceinline__ void divergence(real *out) {\n";
    for block in 0..structure.blocks() {
        let value = varying.filter(|v| v.divergence.0 == block).map_or(0.0, |v| v.divergence.1);
        let _ = writeln!(text, "    out[{block}] = {};", number(value));
    }
    text += "}\n__device__ __forceinline__ void root(real *out) {\n";
    let diffusion = entries(structure, Repulsion::Diffusion)?;
    for block in 0..structure.blocks() {
        let own: f64 = diffusion.iter().filter(|entry| entry.row == block).map(|e| e.value).sum();
        let _ = writeln!(text, "    out[{block}] = {};", number((2.0 * own).sqrt()));
    }
    Ok(text + "}\n")
}

/// The kernel's factors: for every block, the one that sees it.
pub(crate) fn groups(kernel: &Kernel, blocks: usize) -> Vec<Option<usize>> {
    (0..blocks)
        .map(|block| match kernel.view {
            View::Joint => Some(0),
            View::Product => Some(block),
            View::Theta => (block == 0).then_some(0),
        })
        .collect()
}

/// What points are scaled by, beside √(1/h): so that the kernel is 2^(−q).
pub(crate) fn unit(radial: Radial) -> f64 {
    match radial {
        Radial::SquaredExponential => std::f64::consts::LOG2_E,
        Radial::InverseMultiquadric => 1.0,
    }
}
