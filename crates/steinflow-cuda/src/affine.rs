//! Sums with the affine part of a kernel, Σⱼ c(1 + xᵢ·xⱼ) rⱼ: linear work.
//!
//! By the moments Σⱼ (1, xⱼ) rⱼᵀ where there are more particles than coordinates, else by all products of particles.

use cudarc::driver::CudaFunction;
use steinflow::Result;

use crate::bandwidth::Cloud;
use crate::device::{Buffer, Device, Source};
use crate::launch::Argument;

/// Rows that one block of `product` sums over, where there are many.
const CHUNK: usize = 1024;

/// A plan for sums of one shape, with its buffers.
pub(crate) struct Affine {
    features: CudaFunction,
    product: CudaFunction,
    add_parts: CudaFunction,
    count: usize,
    /// Columns that the kernel sees, and of the right-hand side.
    seen: usize,
    width: usize,
    strength: f64,
    rows: Buffer,
    /// Moments, or products of particles.
    between: Buffer,
    rhs: Buffer,
    /// The sums, `width + 1` columns: the last is how many terms there are of M x.
    pub(crate) out: Buffer,
}

/// A matrix: its address, and how far rows and columns are apart.
type Strided = (Argument, usize, usize);

pub(crate) fn source(size: usize) -> Source {
    Source::new(include_str!("../kernels/affine.cu"), size)
}

/// Numbers between, and parts that they are summed in.
fn between(count: usize, seen: usize, width: usize) -> (usize, usize) {
    if seen < count {
        let parts = count.div_ceil(CHUNK);
        (parts * (seen + 1) * width, parts)
    } else {
        (count * count, 1)
    }
}

/// Bytes that a plan takes.
pub(crate) fn bytes(count: usize, seen: usize, width: usize, size: usize) -> u64 {
    let own = count * (seen + 1 + 2 * width + 1) + between(count, seen, width).0;
    (own * size) as u64
}

impl Affine {
    pub(crate) fn new(
        device: &Device,
        strength: f64,
        (count, seen, width): (usize, usize, usize),
        size: usize,
    ) -> Result<Self> {
        let source = source(size);
        let (numbers, _) = between(count, seen, width);
        Ok(Self {
            features: device.kernel(&source, "features")?,
            product: device.kernel(&source, "product")?,
            add_parts: device.kernel(&source, "add_parts")?,
            count,
            seen,
            width,
            strength,
            rows: device.zeros(count * (seen + 1) * size)?,
            between: device.zeros(numbers * size)?,
            rhs: device.zeros(count * width * size)?,
            out: device.zeros(count * (width + 1) * size)?,
        })
    }

    /// Where the right-hand side is written: an address, and numbers from row to row.
    pub(crate) fn rhs(&self) -> [Argument; 2] {
        [self.rhs.arg(), self.width.into()]
    }

    pub(crate) fn run(&self, device: &Device, cloud: Cloud<'_>) -> Result<()> {
        let (count, width, features) = (self.count, self.width, self.seen + 1);
        let [scale, scaled] = cloud.scale;
        let arguments = [
            cloud.state.arg(),
            scale,
            scaled,
            count.into(),
            cloud.row.into(),
            self.seen.into(),
            self.rows.arg(),
            self.out.arg(),
            width.into(),
        ];
        let grid = ((count * features).div_ceil(256), 1);
        device.launch(&self.features, grid, (256, 1), 0, &arguments)?;
        let rows = (self.rows.arg(), features, 1);
        let turned = (self.rows.arg(), 1, features);
        let rhs = (self.rhs.arg(), width, 1);
        let out = (self.out.arg(), width + 1);
        if self.seen < count {
            let (_, parts) = between(count, self.seen, width);
            let moments = (self.between.arg(), width);
            self.multiply(device, turned, rhs, moments, [features, width, count], 1.0)?;
            if parts > 1 {
                let size = features * width;
                let arguments = [self.between.arg(), Argument::Wide(size as u64), parts.into()];
                device.launch(&self.add_parts, (size.div_ceil(256), 1), (256, 1), 0, &arguments)?;
            }
            let moments = (self.between.arg(), width, 1);
            self.multiply(device, rows, moments, out, [count, width, features], self.strength)
        } else {
            let products = (self.between.arg(), count);
            self.multiply(device, rows, turned, products, [count, count, features], 1.0)?;
            let products = (self.between.arg(), count, 1);
            self.multiply(device, products, rhs, out, [count, width, count], self.strength)
        }
    }

    /// C = alpha A B; sums over all particles for few moments are made in parts.
    fn multiply(
        &self,
        device: &Device,
        a: Strided,
        b: Strided,
        c: (Argument, usize),
        [m, n, k]: [usize; 3],
        alpha: f64,
    ) -> Result<()> {
        let is_of_moments = m == self.seen + 1 && k == self.count && self.seen < self.count;
        let chunk = if is_of_moments { CHUNK } else { k };
        let arguments = [
            a.0,
            a.1.into(),
            a.2.into(),
            b.0,
            b.1.into(),
            b.2.into(),
            c.0,
            c.1.into(),
            Argument::Wide((m * n) as u64),
            m.into(),
            n.into(),
            k.into(),
            chunk.into(),
            Argument::Double(alpha),
        ];
        let grid = (m.div_ceil(64) * n.div_ceil(64), k.div_ceil(chunk));
        device.launch(&self.product, grid, (256, 1), 0, &arguments)
    }
}
