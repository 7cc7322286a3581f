//! Kernel sums Σⱼ kᵢⱼ (Rⱼ, 1) on the device: O(N²·columns) time and O(N·columns) memory.
//!
//! | columns that the kernel sees | way | file |
//! |---|---|---|
//! | few | every pair in registers | `kernels/pairs.cu` |
//! | up to 128, single precision | tensor cores, numbers split into halves | `kernels/tiles.cu` |
//! | more, or double precision | bands of K | `kernels/bands.cu` |
//!
//! Every way sums in a fixed order, so that the same device gives the same bits.

use cudarc::driver::CudaFunction;
use steinflow::Result;

use crate::device::{Buffer, Device, NOTHING, Source};
use crate::launch::Argument;

/// How a factor of the kernel falls off; the numbers are those of `kernels/prelude.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// 2^(−q).
    SquaredExponential = 0,
    /// (1 + q)^(−1/2).
    InverseMultiquadric = 1,
    /// (1 + q)^(−3/2).
    MultiquadricSlope = 2,
}

/// A factor of the kernel: the columns from the last factor's on up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Factor {
    pub end: usize,
    pub profile: Profile,
}

/// What is summed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// N.
    pub count: usize,
    /// Columns of R.
    pub width: usize,
    pub factors: Vec<Factor>,
    /// Bytes of a number.
    pub size: usize,
    /// Whether products of 11 bits are good enough, instead of 22.
    pub is_fast: bool,
}

/// Up to this many columns, pairs fit registers.
const FEW: usize = 16;
/// From this many columns on, tensor cores are faster.
const TENSOR: usize = 9;
/// Rows of halves are padded to this.
const PAD: usize = 16;
/// The most columns that tensor cores take.
const MOST_TILED: usize = 128;

/// Threads of a block, in all three ways.
const PAIR_THREADS: usize = 128;
const TILE_THREADS: usize = 256;
const STAGES: usize = 3;
/// Rows of a tile of `kernels/tiles.cu`.
const TILE_ROWS: usize = 64;

#[expect(clippy::large_enum_variant, reason = "a run has a handful of plans")]
enum Way {
    Pairs {
        kernel: CudaFunction,
        record: usize,
        rows: usize,
    },
    Tiles {
        kernel: CudaFunction,
        /// Numbers to halves: `column_largest`, `column_scales`, `split_rows`.
        split: [CudaFunction; 3],
        /// hi and lo of points and right-hand side.
        halves: [Buffer; 4],
        norms: Buffer,
        largest: Buffer,
        scales: Buffer,
        shared: usize,
        rows_per_block: usize,
    },
    Bands {
        kernel: CudaFunction,
        product: CudaFunction,
        band: Buffer,
        rows: usize,
    },
}

/// A plan for sums of one shape, with its buffers.
pub(crate) struct Sums {
    shape: Shape,
    way: Way,
    points: Buffer,
    rhs: Option<Buffer>,
    /// Rows j of a chunk, and how many chunks there are.
    chunk: usize,
    pub(crate) splits: usize,
    pub(crate) partial: Buffer,
}

/// The source of what splits numbers into halves.
pub(crate) fn split_source(is_fast: bool, size: usize) -> Source {
    let text = include_str!("../kernels/split.cu");
    Source::new(text, size).with("SPLIT", if is_fast { 1 } else { 2 })
}

impl Shape {
    fn seen(&self) -> usize {
        self.factors.last().map_or(0, |factor| factor.end)
    }

    fn is_tiled(&self) -> bool {
        let fits = self.seen() <= MOST_TILED && self.width <= MOST_TILED && self.width > 0;
        self.size == 4 && self.factors.len() == 1 && self.seen() >= TENSOR && fits
    }

    fn is_paired(&self) -> bool {
        !self.is_tiled() && self.seen() <= FEW && self.width <= 2 * FEW
    }

    /// Numbers of a record of `kernels/pairs.cu`.
    fn record(&self) -> usize {
        (self.seen() + self.width).next_multiple_of(4)
    }

    /// Rows of a band: it takes about what points and right-hand side do.
    fn band_rows(&self) -> usize {
        (self.seen() + self.width).next_multiple_of(64).clamp(64, self.count.next_multiple_of(64))
    }

    /// Groups of 16 rows that a warp of `kernels/tiles.cu` has registers for.
    fn groups_per_warp(&self) -> usize {
        let halves = if self.is_fast { 1 } else { 2 };
        let (dim, width) = (self.seen().next_multiple_of(PAD), self.width.next_multiple_of(PAD));
        let registers = 2 * (halves * dim / 4 + width / 2 + 16 + 8 * halves);
        if registers <= 192 { 2 } else { 1 }
    }

    /// Chunks of j, so that all processors have work.
    fn splits(&self, processors: usize) -> usize {
        if self.is_paired() {
            let blocks = self.count.div_ceil(PAIR_THREADS * self.pair_rows());
            return (8 * processors / blocks).clamp(1, self.count.div_ceil(32));
        }
        if !self.is_tiled() {
            return 1;
        }
        let blocks = self.count.div_ceil(TILE_THREADS / 32 * 16 * self.groups_per_warp());
        let share = |splits: usize| {
            let blocks = blocks * splits;
            blocks as f64 / blocks.next_multiple_of(processors) as f64
        };
        // The fewest that are about as good as any.
        let most = self.count.div_ceil(64).min(16);
        let best = (1..=most).map(share).fold(0.0, f64::max);
        (1..=most).find(|&splits| share(splits) > best - 0.03).unwrap_or(1)
    }

    /// Particles of a thread of `kernels/pairs.cu`, as far as registers go.
    fn pair_rows(&self) -> usize {
        let numbers = self.seen() + 2 * (self.width + 1);
        [8, 4, 2].into_iter().find(|rows| rows * numbers <= 64).unwrap_or(1)
    }

    /// Bytes that a plan takes on a device.
    pub(crate) fn bytes(&self, processors: usize) -> u64 {
        let (seen, width, size) = (self.seen() as u64, self.width as u64, self.size as u64);
        let own = if self.is_paired() {
            self.record() as u64 * size
        } else if self.is_tiled() {
            (seen + width) * size + 4 * (seen + width + 32) + 4
        } else {
            (seen + width + self.band_rows() as u64) * size
        };
        self.count as u64 * (own + self.splits(processors) as u64 * (width + 1) * size)
    }

    /// The source of the main kernel.
    pub(crate) fn source(&self) -> Source {
        if self.is_paired() {
            let factors = self.factors.iter().map(|f| format!("{{{},{}}}", f.end, f.profile as u8));
            return Source::new(include_str!("../kernels/pairs.cu"), self.size)
                .with("SEEN", self.seen())
                .with("WIDTH", self.width)
                .with("RECORD", self.record())
                .with("ROWS", self.pair_rows())
                .with("THREADS", PAIR_THREADS)
                .with("TILE", 128)
                .with("FACTOR_LIST", factors.collect::<Vec<_>>().join(","));
        }
        if self.is_tiled() {
            let text =
                [include_str!("../kernels/mma.cu"), include_str!("../kernels/tiles.cu")].concat();
            return Source::new(&text, self.size)
                .with("DIM", self.seen().next_multiple_of(PAD))
                .with("WIDTH", self.width.next_multiple_of(PAD))
                .with("WIDTH_OUT", self.width)
                .with("PRODUCTS", if self.is_fast { 1 } else { 3 })
                .with("PROFILE", self.factors[0].profile as u8)
                .with("MT", self.groups_per_warp())
                .with("THREADS", TILE_THREADS)
                .with("STAGES", STAGES);
        }
        Source::new(include_str!("../kernels/bands.cu"), self.size)
    }

    /// The source of what splits numbers into halves.
    pub(crate) fn split_source(&self) -> Source {
        split_source(self.is_fast, self.size)
    }
}

impl Sums {
    pub(crate) fn new(device: &Device, shape: Shape) -> Result<Self> {
        let (count, seen, width, size) = (shape.count, shape.seen(), shape.width, shape.size);
        let source = shape.source();
        let buffer = |numbers: usize| device.zeros(count * numbers * size);
        let (way, points, rhs) = if shape.is_paired() {
            let (record, rows) = (shape.record(), shape.pair_rows());
            let way = Way::Pairs { kernel: device.kernel(&source, "pairs")?, record, rows };
            (way, buffer(record)?, None)
        } else if shape.is_tiled() {
            let (dim, padded) = (seen.next_multiple_of(PAD), width.next_multiple_of(PAD));
            let parts = if shape.is_fast { 1 } else { 2 };
            let shared = STAGES * TILE_ROWS * (dim + 8 + padded + 8) * parts * 2;
            let kernel = device.kernel(&source, "tiles")?;
            Device::allow_shared(&kernel, shared)?;
            let split = shape.split_source();
            let half = |numbers: usize| device.zeros(count * numbers * 2);
            let way = Way::Tiles {
                kernel,
                split: [
                    device.kernel(&split, "column_largest")?,
                    device.kernel(&split, "column_scales")?,
                    device.kernel(&split, "split_rows")?,
                ],
                halves: [half(dim)?, half(dim)?, half(padded)?, half(padded)?],
                norms: device.zeros(count.next_multiple_of(TILE_ROWS) * 4)?,
                largest: device.zeros(width * 4)?,
                scales: device.zeros(width * 4)?,
                shared,
                rows_per_block: TILE_THREADS / 32 * 16 * shape.groups_per_warp(),
            };
            (way, buffer(seen)?, Some(buffer(width)?))
        } else {
            let rows = shape.band_rows();
            let way = Way::Bands {
                kernel: device.kernel(&source, "kernel_band")?,
                product: device.kernel(&source, "band_product")?,
                band: buffer(rows)?,
                rows,
            };
            (way, buffer(seen)?, Some(buffer(width.max(1))?))
        };
        let splits = shape.splits(device.processors);
        let chunk =
            count.div_ceil(splits).next_multiple_of(if shape.is_tiled() { TILE_ROWS } else { 1 });
        let splits = count.div_ceil(chunk);
        let partial = device.zeros(splits * count * (width + 1) * size)?;
        Ok(Self { shape, way, points, rhs, chunk, splits, partial })
    }

    /// Where scaled points are written: an address, and numbers from row to row.
    pub(crate) fn points(&self) -> [Argument; 2] {
        let stride = match self.way {
            Way::Pairs { record, .. } => record,
            _ => self.shape.seen(),
        };
        [self.points.arg(), stride.into()]
    }

    /// Where the right-hand side is written, likewise.
    pub(crate) fn rhs(&self) -> [Argument; 2] {
        match (&self.way, &self.rhs, self.points.arg()) {
            (Way::Pairs { record, .. }, _, Argument::Address(first)) => {
                let offset = self.shape.seen() * self.shape.size;
                [Argument::Address(first + offset as u64), (*record).into()]
            }
            (_, Some(rhs), _) => [rhs.arg(), self.shape.width.into()],
            _ => [NOTHING, 0.into()],
        }
    }

    /// Sums; [`Sums::partial`] has `splits` matrices of `width + 1` columns, to be added in order.
    pub(crate) fn run(&mut self, device: &Device) -> Result<()> {
        let Shape { count, width, ref factors, .. } = self.shape;
        let (seen, n) = (self.shape.seen(), Argument::from(count));
        match &mut self.way {
            Way::Pairs { kernel, rows, .. } => {
                let grid = (count.div_ceil(PAIR_THREADS * *rows), self.splits);
                let arguments = [self.points.arg(), n, self.chunk.into(), self.partial.arg()];
                device.launch(kernel, grid, (PAIR_THREADS as u32, 1), 0, &arguments)
            }
            Way::Tiles {
                kernel,
                split,
                halves,
                norms,
                largest,
                scales,
                shared,
                rows_per_block,
            } => {
                let [find_largest, find_scales, split_rows] = split;
                let rhs = self.rhs.as_ref().map_or(NOTHING, Buffer::arg);
                let [x_hi, x_lo, r_hi, r_lo] = [0, 1, 2, 3].map(|k| halves[k].arg());
                let (columns, padded) = (width.into(), width.next_multiple_of(PAD).into());
                device.clear(largest)?;
                let grid = (width.div_ceil(32), count.div_ceil(64));
                device.launch(find_largest, grid, (32, 8), 0, &[rhs, n, columns, largest.arg()])?;
                let arguments = [largest.arg(), columns, scales.arg()];
                device.launch(find_scales, (width.div_ceil(128), 1), (128, 1), 0, &arguments)?;
                let grid = (count.next_multiple_of(TILE_ROWS) / 8, 1);
                let dim = seen.next_multiple_of(PAD);
                let arguments = [
                    self.points.arg(),
                    n,
                    seen.into(),
                    dim.into(),
                    NOTHING,
                    x_hi,
                    x_lo,
                    norms.arg(),
                ];
                device.launch(split_rows, grid, (256, 1), 0, &arguments)?;
                let arguments = [rhs, n, columns, padded, scales.arg(), r_hi, r_lo, NOTHING];
                device.launch(split_rows, grid, (256, 1), 0, &arguments)?;
                let grid = (count.div_ceil(*rows_per_block), self.splits);
                let arguments = [
                    x_hi,
                    x_lo,
                    norms.arg(),
                    r_hi,
                    r_lo,
                    scales.arg(),
                    n,
                    self.chunk.into(),
                    self.partial.arg(),
                ];
                device.launch(kernel, grid, (TILE_THREADS as u32, 1), *shared, &arguments)
            }
            Way::Bands { kernel, product, band, rows } => {
                let rhs = self.rhs.as_ref().map_or(NOTHING, Buffer::arg);
                for row in (0..count).step_by(*rows) {
                    let here = (*rows).min(count - row);
                    let mut first = 0;
                    for (place, factor) in factors.iter().enumerate() {
                        let arguments = [
                            self.points.arg(),
                            n,
                            seen.into(),
                            first.into(),
                            (factor.end - first).into(),
                            row.into(),
                            here.into(),
                            (factor.profile as usize).into(),
                            (place > 0).into(),
                            band.arg(),
                        ];
                        let grid = (count.div_ceil(64), here.div_ceil(64));
                        device.launch(kernel, grid, (256, 1), 0, &arguments)?;
                        first = factor.end;
                    }
                    let arguments = [
                        band.arg(),
                        rhs,
                        n,
                        width.into(),
                        row.into(),
                        here.into(),
                        self.partial.arg(),
                    ];
                    let grid = ((width + 1).div_ceil(64), here.div_ceil(64));
                    device.launch(product, grid, (256, 1), 0, &arguments)?;
                }
                Ok(())
            }
        }
    }
}
