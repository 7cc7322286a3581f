//! Kernel sums of some hundred particles in many dimensions, in single precision: K is stored (`kernels/matrix.cu`).

use cudarc::driver::CudaFunction;
use steinflow::Result;

use crate::device::{Buffer, Device, NOTHING, Source};
use crate::launch::Argument;
use crate::motion::World;
use crate::rules::Rules;

/// The most particles: sums over them are made in one go.
pub(crate) const MOST: usize = 2048;
/// The least dimension; with fewer, other ways are faster.
pub(crate) const LEAST_DIM: usize = 129;

/// Rows and columns of a tile, and what the columns that are summed over are a multiple of.
const TILE: usize = 128;
const DEPTH: usize = 32;
const STAGES: usize = 2;
/// Blocks of a multiprocessor.
const RESIDENT: usize = 2;
/// Columns that tensor cores sum without adding up in between.
const STRETCH: usize = 2048;

/// A plan for moves of some blocks, with its buffers.
pub(crate) struct Pairwise {
    find_largest: CudaFunction,
    split_block: CudaFunction,
    gram: CudaFunction,
    finish_squares: CudaFunction,
    kernel_matrix: CudaFunction,
    multiply: CudaFunction,
    split_right: CudaFunction,
    /// `column_largest` and `column_scales` of the right-hand side.
    split: [CudaFunction; 2],
    count: usize,
    width: usize,
    /// hi and lo of a block of the state, of K, and of the right-hand side.
    points: [Buffer; 2],
    kernel: [Buffer; 2],
    halves: [Buffer; 2],
    norms: Buffer,
    largest: Buffer,
    partial: Buffer,
    parts: usize,
    chunk: usize,
    shared: usize,
    rhs: Buffer,
    column_largest: Buffer,
    column_scales: Buffer,
    /// The sums, `width + 1` columns.
    pub(crate) out: Buffer,
}

/// The source of these kernels, with products of 11 or of 22 bits.
pub(crate) fn source(is_fast: bool) -> Source {
    let text = [include_str!("../kernels/mma.cu"), include_str!("../kernels/matrix.cu")].concat();
    Source::new(&text, 4)
        .with("PRODUCTS", if is_fast { 1 } else { 3 })
        .with("STAGES", STAGES)
        .with("RESIDENT", RESIDENT)
}

fn padded(columns: usize) -> usize {
    columns.next_multiple_of(DEPTH)
}

impl Pairwise {
    pub(crate) fn new(
        device: &Device,
        rules: &Rules,
        width: usize,
        is_fast: bool,
        split: &Source,
    ) -> Result<Self> {
        let (count, dim, source) = (rules.count, rules.structure.dim(), source(is_fast));
        let tiles = count.div_ceil(TILE);
        let tiles = tiles * (tiles + 1) / 2;
        let wanted =
            (device.processors * RESIDENT / tiles).max(1).max(padded(dim).div_ceil(STRETCH));
        let chunk = padded(dim).div_ceil(wanted).next_multiple_of(DEPTH);
        let parts = padded(dim).div_ceil(chunk);
        let stride = count.next_multiple_of(2 * DEPTH);
        let halves = if is_fast { 1 } else { 2 };
        let shared = STAGES * halves * 2 * TILE * (DEPTH + 8) * 2;
        let two = |rows: usize, columns: usize| {
            Ok::<_, steinflow::Error>([
                device.zeros(rows * columns * 2)?,
                device.zeros(rows * columns * 2)?,
            ])
        };
        let own = Self {
            find_largest: device.kernel(&source, "largest_of_block")?,
            split_block: device.kernel(&source, "split_block")?,
            gram: device.kernel(&source, "gram")?,
            finish_squares: device.kernel(&source, "finish_squares")?,
            kernel_matrix: device.kernel(&source, "kernel_matrix")?,
            multiply: device.kernel(&source, "multiply")?,
            split_right: device.kernel(&source, "split_right")?,
            split: [
                device.kernel(split, "column_largest")?,
                device.kernel(split, "column_scales")?,
            ],
            count,
            width,
            points: two(count, padded(dim))?,
            kernel: two(count, stride)?,
            halves: two(count, padded(width))?,
            norms: device.zeros(count * 4)?,
            largest: device.zeros(4)?,
            partial: device.zeros(parts * count * count * 4)?,
            parts,
            chunk,
            shared,
            rhs: device.zeros(count * width * 4)?,
            column_largest: device.zeros(width * 4)?,
            column_scales: device.zeros(width * 4)?,
            out: device.zeros(count * (width + 1) * 4)?,
        };
        Device::allow_shared(&own.gram, shared)?;
        Device::allow_shared(&own.multiply, shared)?;
        Ok(own)
    }

    /// Where the right-hand side is written: an address, and numbers from row to row.
    pub(crate) fn rhs(&self) -> [Argument; 2] {
        [self.rhs.arg(), self.width.into()]
    }

    /// Squared distances over a block of the state.
    pub(crate) fn find_squares(
        &mut self,
        device: &Device,
        rules: &Rules,
        world: &World<'_>,
        mean: &Buffer,
        block: usize,
    ) -> Result<()> {
        let (count, dim) = (self.count, rules.structure.dim());
        let size = rules.structure.blocks() * dim;
        let scale = if block == 0 { world.scale() } else { NOTHING };
        let [hi, lo] = [0, 1].map(|half| self.points[half].arg());
        let (n, columns) = (Argument::from(count), Argument::from(padded(dim)));
        let head = [world.state.arg(), scale, mean.arg(), n, size.into()];
        let head = [&head[..], &[(block * dim).into(), dim.into()]].concat();
        device.clear(&mut self.largest)?;
        let arguments = [&head[..], &[self.largest.arg()]].concat();
        let grid = ((count * dim).div_ceil(1024).min(8 * device.processors), 1);
        device.launch(&self.find_largest, grid, (256, 1), 0, &arguments)?;
        let tail = [columns, self.largest.arg(), hi, lo, self.norms.arg()];
        let arguments = [&head[..], &tail].concat();
        device.launch(&self.split_block, (count, 1), (256, 1), 0, &arguments)?;
        let tiles = count.div_ceil(TILE);
        let arguments = [hi, lo, n, columns, self.chunk.into(), self.partial.arg()];
        let grid = (tiles * (tiles + 1) / 2, self.parts);
        device.launch(&self.gram, grid, (256, 1), self.shared, &arguments)?;
        let arguments = [
            self.partial.arg(),
            self.parts.into(),
            self.norms.arg(),
            self.largest.arg(),
            n,
            world.squares[block].arg(),
        ];
        let grid = (count.div_ceil(32), count.div_ceil(8));
        device.launch(&self.finish_squares, grid, (32, 8), 0, &arguments)
    }

    /// Sums, from the squared distances of all blocks, each with the group that sees it.
    pub(crate) fn run(
        &mut self,
        device: &Device,
        seen: [(Argument, usize); 3],
        h: &Buffer,
        unit: f64,
    ) -> Result<()> {
        let (count, width) = (self.count, self.width);
        let (n, columns) = (Argument::from(count), Argument::from(width));
        let stride = count.next_multiple_of(2 * DEPTH);
        let [k_hi, k_lo, r_hi, r_lo] =
            [&self.kernel[0], &self.kernel[1], &self.halves[0], &self.halves[1]].map(Buffer::arg);
        let squares = seen.map(|(squares, _)| squares);
        let groups = seen.map(|(_, group)| Argument::from(group));
        let rest = [
            h.arg(),
            Argument::Double(unit),
            n,
            stride.into(),
            k_hi,
            k_lo,
            self.out.arg(),
            columns,
        ];
        let arguments = [&squares[..], &groups, &rest].concat();
        device.launch(&self.kernel_matrix, (count.div_ceil(8), 1), (256, 1), 0, &arguments)?;
        let [find_largest, find_scales] = &self.split;
        let (rhs, scales) = (self.rhs.arg(), self.column_scales.arg());
        device.clear(&mut self.column_largest)?;
        let arguments = [rhs, n, columns, self.column_largest.arg()];
        let grid = (width.div_ceil(32), count.div_ceil(64));
        device.launch(find_largest, grid, (32, 8), 0, &arguments)?;
        let arguments = [self.column_largest.arg(), columns, scales];
        device.launch(find_scales, (width.div_ceil(128), 1), (128, 1), 0, &arguments)?;
        let wide = Argument::from(padded(width));
        let arguments = [rhs, columns, wide, scales, r_hi, r_lo];
        device.launch(&self.split_right, (count, 1), (256, 1), 0, &arguments)?;
        let arguments =
            [k_hi, k_lo, stride.into(), r_hi, r_lo, scales, n, columns, wide, self.out.arg()];
        let grid = (width.div_ceil(TILE), count.div_ceil(TILE));
        device.launch(&self.multiply, grid, (256, 1), self.shared, &arguments)
    }
}
