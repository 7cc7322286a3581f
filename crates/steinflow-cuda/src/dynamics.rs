//! (A, C) as text: what `kernels/flow.cu` needs to know of the dynamics at hand.
//!
//! Every entry of M that runs here is diagonal in the coordinates: a number, or a coefficient that
//! [`Dynamics::device_source`](steinflow::dynamics::Dynamics::device_source) says as text.

use std::fmt::Write as _;

use steinflow::dynamics::{Block, Structure};
use steinflow::kernel::{Kernel, Radial, View};

/// An entry of M: a number, or a coefficient of M's times a number, at a row and a column of blocks.
struct Entry {
    row: usize,
    column: usize,
    value: f64,
    coefficient: Option<usize>,
}

/// The part of M that repels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repulsion {
    /// A + C.
    All,
    /// A, in the starred variants.
    Diffusion,
}

/// The number of a block's first coefficient, where it has some.
fn first_coefficient(block: &Block) -> Option<usize> {
    match *block {
        Block::ScalarCoefficient(first) | Block::DiagonalCoefficients(first) => Some(first),
        _ => None,
    }
}

/// Whether a block of A or C runs here; one that varies, if the dynamics have a text.
pub(crate) fn is_known(block: &Block, has_text: bool) -> bool {
    matches!(block, Block::Scalar(_)) || (has_text && first_coefficient(block).is_some())
}

/// The first numbers of the coefficients of blocks that vary, in order: the places of `c` in the dynamics' text.
fn coefficients(structure: &Structure) -> Vec<usize> {
    let diffusion = structure.diffusion_blocks().map(|(_, block)| block);
    let curl = structure.curl_blocks().map(|(_, _, block)| block);
    let mut firsts: Vec<usize> = diffusion.chain(curl).filter_map(first_coefficient).collect();
    firsts.sort_unstable();
    firsts.dedup();
    firsts
}

/// How many coefficients a coordinate has.
pub(crate) fn varying(structure: &Structure) -> usize {
    coefficients(structure).len()
}

fn entries(structure: &Structure, repulsion: Repulsion) -> Vec<Entry> {
    let firsts = coefficients(structure);
    let entry = |row, column, block: &Block, sign: f64| {
        let first = first_coefficient(block);
        let coefficient = first.and_then(|first| firsts.iter().position(|&known| known == first));
        let value = if let Block::Scalar(value) = *block { value } else { 1.0 };
        Entry { row, column, value: sign * value, coefficient }
    };
    let mut entries: Vec<Entry> = structure
        .diffusion_blocks()
        .map(|(block, value)| entry(block, block, value, 1.0))
        .collect();
    if repulsion == Repulsion::All {
        for (row, column, block) in structure.curl_blocks() {
            entries.push(entry(row, column, block, 1.0));
            entries.push(entry(column, row, block, -1.0));
        }
    }
    entries
}

/// A number as C++ has it.
fn number(value: f64) -> String {
    format!("real({value:?})")
}

/// What an entry multiplies by: a constant one by `one`.
fn factor(entry: &Entry, one: &str) -> String {
    let own = entry.coefficient.map_or(one.to_owned(), |place| format!("c[{place}]"));
    format!("{own} * {}", number(entry.value))
}

/// A sum as C++ has it.
fn sum(terms: &[String]) -> String {
    if terms.is_empty() { number(0.0) } else { terms.join(" + ") }
}

/// A function that applies a part of M.
fn product(name: &str, structure: &Structure, repulsion: Repulsion) -> String {
    let entries = entries(structure, repulsion);
    let mut text = format!(
        "__device__ __forceinline__ void {name}(real one, const real *c, const real *x, real *out) {{\n"
    );
    for row in 0..structure.blocks() {
        let own = entries.iter().filter(|entry| entry.row == row);
        let terms: Vec<String> =
            own.map(|entry| format!("{} * x[{}]", factor(entry, "one"), entry.column)).collect();
        let _ = writeln!(text, "    out[{row}] = {};", sum(&terms));
    }
    text + "}\n"
}

/// The functions of the dynamics, as the head of `kernels/flow.cu` lists them; `locals` is their own text.
pub(crate) fn text(structure: &Structure, repulsion: Repulsion, locals: Option<&str>) -> String {
    let mut text = product("apply", structure, Repulsion::All);
    text += &product("repel", structure, repulsion);
    text += "__device__ __forceinline__ void gradient(const real *z, real score, real *g) {\n    g[0] = score;\n";
    for (place, law) in structure.auxiliaries().iter().enumerate() {
        let (block, mean) = (place + 1, number(law.mean));
        let precision = number(1.0 / law.variance);
        let _ = writeln!(text, "    g[{block}] = ({mean} - z[{block}]) * {precision};");
    }
    text += "}\n__device__ __forceinline__ void root(const real *c, real *out) {\n";
    let diffusion = entries(structure, Repulsion::Diffusion);
    for block in 0..structure.blocks() {
        let own = diffusion.iter().filter(|entry| entry.row == block);
        let terms: Vec<String> = own.map(|entry| factor(entry, "real(1)")).collect();
        let _ = writeln!(text, "    out[{block}] = sqrt(2 * ({}));", sum(&terms));
    }
    text += "}\n";
    text += locals.unwrap_or(
        "__device__ __forceinline__ void locals(const real *, real, real, real *, real *, real *) {}",
    );
    text + "\n"
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
