//! Bandwidths on the device, by the library's rules and from the library's pairs.

use std::ops::Range;

use cudarc::driver::CudaFunction;
use steinflow::Result;
use steinflow::kernel::{Bandwidth, EXACT_PAIRS, SAMPLED_PAIRS};

use crate::device::{Buffer, Device, Source};
use crate::launch::Argument;

/// Pairs of particles, as the library chooses them.
struct Pairs {
    count: usize,
    is_exact: bool,
    firsts: usize,
    stride: usize,
    shifts: usize,
}

impl Pairs {
    fn of(particles: usize) -> Self {
        let all = particles * (particles - 1) / 2;
        if all <= EXACT_PAIRS {
            return Self { count: all, is_exact: true, firsts: 1, stride: 1, shifts: 1 };
        }
        let (stride, shifts) =
            (particles.div_ceil(SAMPLED_PAIRS), SAMPLED_PAIRS.div_ceil(particles));
        let firsts = particles.div_ceil(stride);
        Self { count: firsts * shifts, is_exact: false, firsts, stride, shifts }
    }
}

/// Which of the sorted squared distances make the middle: see the library's rules.
struct Middle {
    /// −1 for a zero of the diagonal.
    low: i32,
    high: i32,
    by_roots: bool,
    divisor: f64,
}

impl Middle {
    fn of(rule: &Bandwidth, particles: usize, pairs: usize) -> Self {
        let log_n = (particles as f64).ln();
        let (has_diagonal, by_roots, divisor) = match rule {
            Bandwidth::Median => (false, true, 1.0),
            Bandwidth::NumPyro => (true, true, log_n),
            Bandwidth::LiuWang => (true, false, (particles as f64 + 1.0).ln()),
            _ => (false, true, log_n),
        };
        let all = particles * (particles - 1) / 2;
        let zeros = (particles as f64 * pairs as f64 / all as f64).round() as usize;
        let (zeros, copies) = if has_diagonal { (zeros, 2) } else { (0, 1) };
        let total = copies * pairs + zeros;
        let at = |rank: usize| rank.checked_sub(zeros).map_or(-1, |rank| (rank / copies) as i32);
        Self { low: at((total - 1) / 2), high: at(total / 2), by_roots, divisor }
    }

    /// As kernels take it.
    fn arguments(&self) -> [Argument; 4] {
        let Self { low, high, by_roots, divisor } = *self;
        [Argument::Int(low), Argument::Int(high), by_roots.into(), Argument::Double(divisor)]
    }
}

/// Particles as somebody who measures distances reads them.
#[derive(Clone, Copy)]
pub(crate) struct Cloud<'b> {
    pub state: &'b Buffer,
    /// What the first block is divided by, and how long that is.
    pub scale: [Argument; 2],
    pub count: usize,
    /// Numbers from particle to particle.
    pub row: usize,
}

/// Chooses the bandwidth of every factor of a kernel.
pub(crate) struct Bandwidths {
    /// One double for every factor.
    pub(crate) h: Buffer,
    pub(crate) groups: usize,
    median: Option<Median>,
}

struct Median {
    pair_squares: CudaFunction,
    gather: CudaFunction,
    middle: CudaFunction,
    squares: Buffer,
    pairs: Pairs,
    ranks: Middle,
    columns: Vec<Range<usize>>,
}

/// The source of both kernels.
pub(crate) fn source(size: usize) -> Source {
    Source::new(include_str!("../kernels/bandwidth.cu"), size)
}

impl Bandwidths {
    /// For particles of `size` bytes a number, of which every factor sees some columns.
    pub(crate) fn new(
        device: &Device,
        rule: &Bandwidth,
        particles: usize,
        columns: Vec<Range<usize>>,
        size: usize,
    ) -> Result<Self> {
        let groups = columns.len();
        let known = |group: usize| match rule {
            Bandwidth::Fixed(values) => Some(*values.get(group).unwrap_or(&values[0])),
            _ if particles < 2 => Some(1.0),
            Bandwidth::White { factor } => {
                let d = columns[group].len() as f64;
                let white = 2.0 * d * (1.0 - 2.0 / (9.0 * d)).powi(3) / (particles as f64).ln();
                Some(factor * white)
            }
            _ => None,
        };
        let values: Option<Vec<f64>> = (0..groups).map(known).collect();
        let mut h = device.zeros(groups * 8)?;
        device.put(&values.clone().unwrap_or_else(|| vec![1.0; groups]), &mut h)?;
        let median = if values.is_some() {
            None
        } else {
            let source = source(size);
            let pairs = Pairs::of(particles);
            Some(Median {
                pair_squares: device.kernel(&source, "pair_squares")?,
                gather: device.kernel(&source, "gather_squares")?,
                middle: device.kernel(&source, "middle")?,
                squares: device.zeros(pairs.count * size)?,
                ranks: Middle::of(rule, particles, pairs.count),
                pairs,
                columns,
            })
        };
        Ok(Self { h, groups, median })
    }

    /// For who chooses them on the way: whether that is by the middle of all pairs, and which that is.
    pub(crate) fn rule(&self) -> [Argument; 5] {
        match &self.median {
            Some(median) => {
                let [low, high, by_roots, divisor] = median.ranks.arguments();
                [true.into(), low, high, by_roots, divisor]
            }
            None => [false.into(), 0.into(), 0.into(), 0.into(), Argument::Double(1.0)],
        }
    }

    /// Brings them up to date with the particles.
    pub(crate) fn choose(&self, device: &Device, cloud: Cloud<'_>) -> Result<()> {
        let Cloud { state, scale: [scale, scaled], count: particles, row } = cloud;
        let Some(own) = &self.median else { return Ok(()) };
        let Median { pair_squares, squares, pairs, columns, .. } = own;
        for (group, columns) in columns.iter().enumerate() {
            let lanes = if columns.len() > 8 { 32 } else { 1 };
            let arguments = [
                state.arg(),
                scale,
                scaled,
                particles.into(),
                row.into(),
                columns.start.into(),
                columns.len().into(),
                pairs.count.into(),
                pairs.is_exact.into(),
                pairs.firsts.into(),
                pairs.stride.into(),
                pairs.shifts.into(),
                lanes.into(),
                squares.arg(),
            ];
            let grid = ((pairs.count * lanes).div_ceil(256), 1);
            device.launch(pair_squares, grid, (256, 1), 0, &arguments)?;
            own.find_middle(device, group, &self.h)?;
        }
        Ok(())
    }

    /// The same from squared distances of up to three blocks that every factor sees, all particles' with all.
    pub(crate) fn choose_known(
        &self,
        device: &Device,
        count: usize,
        seen: &[[Argument; 3]],
    ) -> Result<()> {
        let Some(own) = &self.median else { return Ok(()) };
        let Median { gather, squares, pairs, .. } = own;
        for (group, blocks) in seen.iter().enumerate() {
            let rest = [
                count.into(),
                pairs.count.into(),
                pairs.is_exact.into(),
                pairs.firsts.into(),
                pairs.stride.into(),
                pairs.shifts.into(),
                squares.arg(),
            ];
            let arguments = [&blocks[..], &rest].concat();
            device.launch(gather, (pairs.count.div_ceil(256), 1), (256, 1), 0, &arguments)?;
            own.find_middle(device, group, &self.h)?;
        }
        Ok(())
    }
}

impl Median {
    fn find_middle(&self, device: &Device, group: usize, h: &Buffer) -> Result<()> {
        let [low, high, by_roots, divisor] = self.ranks.arguments();
        let (squares, all, group) = (self.squares.arg(), self.pairs.count.into(), group.into());
        let arguments = [squares, all, low, high, by_roots, divisor, group, h.arg()];
        device.launch(&self.middle, (1, 1), (1024, 1), 0, &arguments)
    }
}
