//! The shape of M = A + C: A block-diagonal, C skew by construction.

use crate::linalg::symmetric_eigen;
use crate::{Error, Matrix, Result};

/// A `dim × dim` block of A or C.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// a·I.
    Scalar(f64),
    /// A constant diagonal.
    Diagonal(Vec<f64>),
    /// A constant matrix. One product with an `N × dim` matrix per velocity.
    Full(Matrix<f64>),
    /// cₖ·I, where cₖ is a coefficient of the particle.
    ScalarCoefficient(usize),
    /// diag(cₖ … cₖ₊dim₋₁). Costs `dim` further columns in the kernel sums.
    DiagonalCoefficients(usize),
    /// The matrix cₖ … cₖ₊dim²₋₁ in row order. Costs `dim²` further columns: for small dimensions.
    FullCoefficients(usize),
}

/// What a particle can carry before a mistake in numbering is the likelier reason.
const MOST_COEFFICIENTS: usize = 1 << 24;

impl Block {
    /// How many coefficients the block needs a particle to have, counted from the first one.
    fn coefficients_end(&self, dim: usize) -> usize {
        match *self {
            Self::Scalar(_) | Self::Diagonal(_) | Self::Full(_) => 0,
            Self::ScalarCoefficient(k) => k.saturating_add(1),
            Self::DiagonalCoefficients(k) => k.saturating_add(dim),
            Self::FullCoefficients(k) => k.saturating_add(dim * dim),
        }
    }

    /// Whether it depends on the state.
    fn varies(&self) -> bool {
        self.coefficients_end(1) > 0
    }
}

/// A Gaussian auxiliary variable, one number per coordinate of θ.
#[derive(Clone, Debug, PartialEq)]
pub struct Auxiliary {
    /// The name that output columns carry.
    pub name: &'static str,
    /// Its mean under the augmented density.
    pub mean: f64,
    /// Its variance.
    pub variance: f64,
}

/// The blocks of A and C, and the auxiliary variables. Built by chaining:
///
/// ```
/// use steinflow::dynamics::{Block, R, Structure, THETA};
/// let sghmc = Structure::new(3)
///     .auxiliary("r", 0.0, 1.0)
///     .diffusion(R, Block::Scalar(0.5))
///     .curl(R, THETA, Block::Scalar(1.0));
/// assert_eq!(sghmc.block_names(), ["theta", "r"]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    pub(super) dim: usize,
    pub(super) auxiliaries: Vec<Auxiliary>,
    pub(super) diffusion: Vec<(usize, Block)>,
    pub(super) curl: Vec<(usize, usize, Block)>,
    stages: Option<Vec<Vec<usize>>>,
    reads_density: bool,
    each_coordinate_alone: bool,
}

impl Structure {
    /// A state of θ alone, with A = C = 0.
    pub fn new(dim: usize) -> Self {
        Self {
            dim,
            auxiliaries: Vec::new(),
            diffusion: Vec::new(),
            curl: Vec::new(),
            stages: None,
            reads_density: true,
            each_coordinate_alone: false,
        }
    }

    /// Adds a block of auxiliary variables with density N(mean, variance·I).
    pub fn auxiliary(mut self, name: &'static str, mean: f64, variance: f64) -> Self {
        self.auxiliaries.push(Auxiliary { name, mean, variance });
        self
    }

    /// Sets block (`block`, `block`) of A, once; it must be positive semidefinite.
    pub fn diffusion(mut self, block: usize, value: Block) -> Self {
        self.diffusion.push((block, value));
        self
    }

    /// Adds `value` to block (`row`, `column`) of C and −valueᵀ to (`column`, `row`).
    ///
    /// With `row == column` the value must be full; its part above the diagonal is taken and
    /// mirrored with the opposite sign.
    pub fn curl(mut self, row: usize, column: usize, value: Block) -> Self {
        self.curl.push((row, column, value));
        self
    }

    /// Says which blocks move together in symmetric splitting, from the outermost half steps to
    /// the full step in the middle. Without it: the last block outermost, θ in the middle.
    pub fn split(mut self, stages: &[&[usize]]) -> Self {
        self.stages = Some(stages.iter().map(|stage| stage.to_vec()).collect());
        self
    }

    /// Promises that coefficients and divergences use neither log π nor its gradient, which lets
    /// splitting move θ without a new evaluation of the target.
    pub fn coefficients_ignore_density(mut self) -> Self {
        self.reads_density = false;
        self
    }

    /// Promises that coefficients and divergences of a coordinate depend on that coordinate of the blocks alone,
    /// and that some coordinates may be asked about as if there were no others: in many dimensions they are then
    /// worked on a strip at a time. Coefficients come in [`Block::DiagonalCoefficients`], one after the other.
    pub fn each_coordinate_alone(mut self) -> Self {
        self.each_coordinate_alone = true;
        self
    }

    /// Whether A and C act on each coordinate alone, and vary with it alone.
    pub(crate) fn acts_by_coordinate(&self) -> bool {
        let diffusion = self.diffusion.iter().map(|(_, block)| block);
        let mut blocks = diffusion.chain(self.curl.iter().map(|(_, _, block)| block));
        blocks.all(|block| match block {
            Block::Scalar(_) | Block::Diagonal(_) => true,
            Block::DiagonalCoefficients(k) => {
                self.each_coordinate_alone && k.is_multiple_of(self.dim)
            }
            Block::Full(_) | Block::ScalarCoefficient(_) | Block::FullCoefficients(_) => false,
        })
    }

    /// The number of coordinates of θ.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The number of blocks of the state, θ included.
    pub fn blocks(&self) -> usize {
        1 + self.auxiliaries.len()
    }

    /// The auxiliary variables, in block order from block 1.
    pub fn auxiliaries(&self) -> &[Auxiliary] {
        &self.auxiliaries
    }

    /// Whether A is anything but 0.
    pub(crate) fn has_diffusion(&self) -> bool {
        self.diffusion.iter().any(|(_, block)| !matches!(block, Block::Scalar(0.0)))
    }

    /// The blocks of A, with their place on the diagonal.
    pub fn diffusion_blocks(&self) -> impl Iterator<Item = (usize, &Block)> {
        self.diffusion.iter().map(|(block, value)| (*block, value))
    }

    /// The blocks of C as given to [`Structure::curl`]: row, column, value.
    pub fn curl_blocks(&self) -> impl Iterator<Item = (usize, usize, &Block)> {
        self.curl.iter().map(|(row, column, value)| (*row, *column, value))
    }

    /// Whether C differs from zero.
    pub fn has_curl(&self) -> bool {
        !self.curl.is_empty()
    }

    /// Whether A depends on the state.
    pub fn diffusion_varies(&self) -> bool {
        self.diffusion.iter().any(|(_, block)| block.varies())
    }

    /// Whether C depends on the state.
    pub fn curl_varies(&self) -> bool {
        self.curl.iter().any(|(_, _, block)| block.varies())
    }

    /// The names of the blocks: `theta`, then the auxiliaries.
    pub fn block_names(&self) -> Vec<&'static str> {
        std::iter::once("theta").chain(self.auxiliaries.iter().map(|a| a.name)).collect()
    }

    /// How many coefficients a particle has.
    pub fn coefficients(&self) -> usize {
        let diffusion = self.diffusion.iter().map(|(_, block)| block);
        let curl = self.curl.iter().map(|(_, _, block)| block);
        diffusion.chain(curl).map(|block| block.coefficients_end(self.dim)).max().unwrap_or(0)
    }

    /// The stages of symmetric splitting, from the outermost half step to the full step.
    pub fn stages(&self) -> Vec<Vec<usize>> {
        match &self.stages {
            Some(stages) => stages.clone(),
            None => (0..self.blocks()).rev().map(|block| vec![block]).collect(),
        }
    }

    /// Whether the velocity of `moving` depends on the target at the current θ.
    pub fn needs_score(&self, moving: &[usize]) -> bool {
        let rows_read_score = self.diffusion.iter().any(|&(b, _)| b == 0 && moving.contains(&0))
            || self.curl.iter().any(|&(row, column, _)| {
                (column == 0 && moving.contains(&row)) || (row == 0 && moving.contains(&column))
            });
        rows_read_score || (self.reads_density && self.coefficients() > 0)
    }

    /// Checks all that can be checked before a particle exists.
    pub fn validate(&self) -> Result<()> {
        let blocks = self.blocks();
        if self.dim == 0 {
            return Err(Error::setting("dimension", 0, "a target needs at least one coordinate"));
        }
        for auxiliary in &self.auxiliaries {
            if !(auxiliary.variance > 0.0) || !auxiliary.variance.is_finite() {
                return Err(Error::setting(
                    "variance of an auxiliary variable",
                    auxiliary.variance,
                    format!("`{}` needs a positive, finite variance", auxiliary.name),
                ));
            }
            if !auxiliary.mean.is_finite() {
                return Err(Error::setting(
                    "mean of an auxiliary variable",
                    auxiliary.mean,
                    format!("`{}` needs a finite mean", auxiliary.name),
                ));
            }
        }
        for (place, (block, value)) in self.diffusion.iter().enumerate() {
            self.check_block(*block, value)?;
            self.check_positive_semidefinite(*block, value)?;
            if self.diffusion[..place].iter().any(|(earlier, _)| earlier == block) {
                return Err(Error::setting(
                    "A",
                    format!("block `{}` twice", self.block_names()[*block]),
                    "say `diffusion` once for a block; add the two up yourself",
                ));
            }
        }
        for (row, column, value) in &self.curl {
            self.check_block(*row, value)?;
            self.check_block(*column, value)?;
            let full = matches!(value, Block::Full(_) | Block::FullCoefficients(_));
            if row == column && !full {
                return Err(Error::setting(
                    "curl of a block with itself",
                    format!("{value:?}"),
                    "only a full block can be skew: a scalar or diagonal one would be zero",
                ));
            }
        }
        if self.coefficients() > MOST_COEFFICIENTS {
            let remedy = format!("number coefficients from 0; at most {MOST_COEFFICIENTS} fit");
            return Err(Error::setting("number of coefficients", self.coefficients(), remedy));
        }
        let mut moved: Vec<usize> = self.stages().concat();
        moved.sort_unstable();
        let empty = self.stages().iter().any(Vec::is_empty);
        if empty || moved != (0..blocks).collect::<Vec<_>>() {
            return Err(Error::setting(
                "splitting",
                format!("{:?}", self.stages()),
                format!("name each of the {blocks} blocks once, in stages that are not empty"),
            ));
        }
        Ok(())
    }

    fn check_block(&self, block: usize, value: &Block) -> Result<()> {
        if block >= self.blocks() {
            return Err(Error::setting(
                "block",
                block,
                format!("the state has {} blocks; add an auxiliary variable first", self.blocks()),
            ));
        }
        let (entries, shape): (&[f64], _) = match value {
            Block::Scalar(a) => (std::slice::from_ref(a), None),
            Block::Diagonal(a) => (a, Some((a.len(), self.dim))),
            Block::Full(a) => {
                let square = if a.rows() == a.cols() { a.rows() } else { usize::MAX };
                (a.as_slice(), Some((square, self.dim)))
            }
            _ => (&[], None),
        };
        if let Some((found, expected)) = shape
            && found != expected
        {
            return Err(Error::Shape {
                what: "a block of A or C",
                found: format!("{} entries", entries.len()),
                expected: format!("dimension {expected}"),
            });
        }
        match entries.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(Error::setting("an entry of A or C", x, "it must be finite")),
            None => Ok(()),
        }
    }

    fn check_positive_semidefinite(&self, block: usize, value: &Block) -> Result<()> {
        let lowest = match value {
            Block::Scalar(a) => *a,
            Block::Diagonal(a) => a.iter().copied().fold(f64::INFINITY, f64::min),
            Block::Full(a) => {
                for i in 0..self.dim {
                    for j in 0..i {
                        let scale = 1e-12 * (a.row(i)[i].abs() + a.row(j)[j].abs());
                        if (a.row(i)[j] - a.row(j)[i]).abs() > scale {
                            return Err(Error::setting(
                                "a block of A",
                                format!(
                                    "{} at ({i}, {j}) and {} at ({j}, {i})",
                                    a.row(i)[j],
                                    a.row(j)[i]
                                ),
                                "A must be symmetric; put the skew part into C with `curl`",
                            ));
                        }
                    }
                }
                let (values, _) = symmetric_eigen(a.as_slice(), self.dim);
                let largest = values.last().copied().unwrap_or(0.0).abs();
                if values[0] < 0.0 && values[0] > -1e-12 * largest { 0.0 } else { values[0] }
            }
            _ => 0.0,
        };
        if !(lowest >= 0.0) {
            return Err(Error::setting(
                "A",
                format!("{lowest} in block `{}`", self.block_names()[block]),
                "A must be positive semidefinite: no negative entry or eigenvalue",
            ));
        }
        Ok(())
    }
}
