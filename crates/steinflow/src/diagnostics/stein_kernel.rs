//! The Stein kernel u(z, z′) of a set of particles: a kernel whose mean under the target is zero.
//!
//! For dynamics M = A + C with drift f = M ∇log π + ∇·M the diffusion Stein operator of a vector
//! function g is f·g + tr(M ∇g), and applied to both arguments of k(z, z′) I it gives
//!
//! ```text
//! u = f·f′ k + f·M′∇′k + f′·M∇k + tr(M ∇∇′k M′ᵀ)
//! ```
//!
//! With k = φ(q), q = |Δ|²/h, Δ = z − z′ and w = −2φ′(q)/h this is
//!
//! ```text
//! u = f·f′ φ + w (f·M′Δ − f′·MΔ) + w tr(M M′ᵀ) − 4φ″(q)/h² (MΔ)·(M′Δ)
//! ```
//!
//! M = I is the kernel Stein discrepancy of Liu, Lee and Jordan (2016) and Chwialkowski, Strathmann and
//! Gretton (2016); other M are the diffusion KSD of Barp et al. (2019) and Gorham et al. (2019).

use rayon::prelude::*;

use super::{TILE, dot};
use crate::dynamics::{Dynamics, Operator, Terms};
use crate::engine::vectorised;
use crate::field::Diffusion;
use crate::kernel::Radial;
use crate::random::{Purpose, stream};
use crate::{Error, LogDensity, MatRef, Matrix, Real, Result, System};
use rand::Rng as _;

/// How the mean of u is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Statistic {
    /// Over all pairs, a particle with itself included: never negative.
    #[default]
    V,
    /// Over pairs of different particles: unbiased.
    U,
}

impl Statistic {
    /// Reads a statistic's name: `v` or `u`.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "v" => Ok(Self::V),
            "u" => Ok(Self::U),
            other => Err(Error::unknown("statistic", other, ["v", "u"])),
        }
    }
}

/// M at every particle.
#[derive(Clone, Debug)]
enum Action {
    /// M = I.
    Identity,
    Dynamics {
        operator: Operator<f64>,
        /// The coefficient row of every particle.
        coefficients: Matrix<f64>,
        /// The entries of M at every particle, in one order, so that tr(M M′ᵀ) is a dot product.
        entries: Matrix<f64>,
        blocks: Vec<usize>,
    },
}

/// u(z, z′) between all pairs of a set of particles.
#[derive(Clone, Debug)]
pub struct SteinKernel {
    states: Matrix<f64>,
    drift: Matrix<f64>,
    action: Action,
    radial: Radial,
    bandwidth: f64,
}

/// A test of the hypothesis that the particles are independent draws from the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteinTest {
    /// The U-statistic of KSD².
    pub squared_discrepancy: f64,
    /// How often a sample from the target would be as far from it as this one. Particles that repel
    /// one another are nearer than independent draws, with values close to 1.
    pub p_value: f64,
}

impl SteinKernel {
    /// The plain kernel, M = I, of particles with the given scores, one a row; `bandwidth` is h.
    pub fn new<T: Real>(
        particles: MatRef<'_, T>,
        score: MatRef<'_, T>,
        radial: Radial,
        bandwidth: f64,
    ) -> Result<Self> {
        super::require_score(particles, score)?;
        super::require_bandwidth(bandwidth)?;
        let (states, drift) = (in_f64(particles), in_f64(score));
        Ok(Self { states, drift, action: Action::Identity, radial, bandwidth })
    }

    /// The kernel of the diffusion Stein operator of `dynamics` on `target`, at states z = (θ, r, …),
    /// one a row.
    pub fn of_dynamics(
        target: &dyn LogDensity<f64>,
        dynamics: &dyn Dynamics<f64>,
        states: Matrix<f64>,
        radial: Radial,
        bandwidth: f64,
    ) -> Result<Self> {
        super::require_bandwidth(bandwidth)?;
        let dim = target.dim();
        if states.cols() < dim {
            return Err(Error::Shape {
                what: "the states",
                found: format!("{} columns", states.cols()),
                expected: format!("{dim} or more, the target's dimension"),
            });
        }
        let theta = Matrix::from_fn(states.rows(), dim, |i, j| states.row(i)[j]);
        let mut system = System::new(target, dynamics, Diffusion, &theta, 0)?;
        system.set_state(states)?;
        let at = system.evaluated()?;
        let operator = at.operator.clone();
        let (count, width) = (at.state.rows(), operator.width());
        let rows: Vec<Vec<f64>> =
            (0..count).map(|i| operator.nonzeros(at.coefficients.row(i))).collect();
        let columns = rows.first().map_or(0, Vec::len);
        let action = Action::Dynamics {
            coefficients: Matrix::from_fn(count, width, |i, k| at.coefficients.row(i)[k]),
            entries: Matrix::from_fn(count, columns, |i, k| rows[i][k]),
            blocks: (0..operator.blocks()).collect(),
            operator,
        };
        let (states, drift) = (in_f64(at.state), in_f64(at.drift().as_ref()));
        Ok(Self { states, drift, action, radial, bandwidth })
    }

    /// The number of particles.
    pub fn count(&self) -> usize {
        self.states.rows()
    }

    /// u between particles `i` and `j`.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.between(i, j, &mut Workspace::default())
    }

    fn between(&self, i: usize, j: usize, work: &mut Workspace) -> f64 {
        let (x, y) = (self.states.row(i), self.states.row(j));
        let (f, g) = (self.drift.row(i), self.drift.row(j));
        let h = self.bandwidth;
        match &self.action {
            Action::Identity => {
                let (mut square, mut drifts, mut cross) = (0.0, 0.0, 0.0);
                for ((x, y), (f, g)) in x.iter().zip(y).zip(f.iter().zip(g)) {
                    let difference = x - y;
                    square += difference * difference;
                    drifts += f * g;
                    cross += (f - g) * difference;
                }
                let q = square / h;
                let (value, slope, curvature) = profile(self.radial, q);
                let w = -2.0 * slope / h;
                drifts * value + w * (cross + x.len() as f64) - 4.0 * q * curvature / h
            }
            Action::Dynamics { operator, coefficients, entries, blocks } => {
                let Workspace { difference, here, there } = work;
                difference.clear();
                difference.extend(x.iter().zip(y).map(|(x, y)| x - y));
                let square: f64 = difference.iter().map(|d| d * d).sum();
                for (particle, out) in [(i, &mut *here), (j, &mut *there)] {
                    out.clear();
                    out.resize(x.len(), 0.0);
                    let c = coefficients.row(particle);
                    operator.apply(c, difference, blocks, Terms::All, 1.0, out);
                }
                let (value, slope, curvature) = profile(self.radial, square / h);
                let w = -2.0 * slope / h;
                let cross = dot(f, there) - dot(g, here);
                let trace = dot(entries.row(i), entries.row(j));
                dot(f, g) * value + w * (cross + trace)
                    - 4.0 * curvature / (h * h) * dot(here, there)
            }
        }
    }

    /// Σ u(zᵢ, zⱼ) over j < i for M = I, many particles at a time; states and drift coordinate by
    /// coordinate.
    fn sum_below(&self, i: usize, states: &[f64], drift: &[f64], work: &mut Workspace) -> f64 {
        let (count, dim, h) = (self.count(), self.states.cols(), self.bandwidth);
        let Workspace { difference: squares, here: drifts, there: crosses } = work;
        for sums in [&mut *squares, &mut *drifts, &mut *crosses] {
            sums.clear();
            sums.resize(i, 0.0);
        }
        vectorised(
            #[inline(always)]
            || {
                for (x, f) in states.chunks_exact(count).zip(drift.chunks_exact(count)) {
                    let (own, own_drift) = (x[i], f[i]);
                    let others = x[..i].iter().zip(&f[..i]);
                    let sums = squares.iter_mut().zip(drifts.iter_mut()).zip(crosses.iter_mut());
                    for ((&x, &f), ((square, product), cross)) in others.zip(sums) {
                        let difference = own - x;
                        *square += difference * difference;
                        *product += own_drift * f;
                        *cross += (own_drift - f) * difference;
                    }
                }
                let mut sum = 0.0;
                for ((square, product), cross) in squares.iter().zip(&*drifts).zip(&*crosses) {
                    let q = square / h;
                    let (value, slope, curvature) = profile(self.radial, q);
                    let w = -2.0 * slope / h;
                    sum += product * value + w * (cross + dim as f64) - 4.0 * q * curvature / h;
                }
                sum
            },
        )
    }

    /// KSD²: the mean of u over pairs.
    pub fn squared_discrepancy(&self, statistic: Statistic) -> Result<f64> {
        let count = self.count();
        let fewest = if statistic == Statistic::V { 1 } else { 2 };
        if count < fewest {
            let remedy = format!("this statistic needs {fewest} or more");
            return Err(Error::setting("number of particles", count, remedy));
        }
        // u is symmetric: the pairs below the diagonal count twice.
        let columns = matches!(self.action, Action::Identity)
            .then(|| (by_coordinate(&self.states), by_coordinate(&self.drift)));
        let of_row = |i: usize, work: &mut Workspace| {
            let below: f64 = match &columns {
                Some((states, drift)) => self.sum_below(i, states, drift, work),
                None => (0..i).map(|j| self.between(i, j, work)).sum(),
            };
            let own = if statistic == Statistic::V { self.between(i, i, work) } else { 0.0 };
            2.0 * below + own
        };
        let tiles: Vec<f64> = (0..count.div_ceil(TILE))
            .into_par_iter()
            .map_init(Workspace::default, |work, tile| {
                (tile * TILE..count.min((tile + 1) * TILE)).map(|i| of_row(i, work)).sum()
            })
            .collect();
        let pairs = match statistic {
            Statistic::V => count as f64 * count as f64,
            Statistic::U => count as f64 * (count as f64 - 1.0),
        };
        Ok(tiles.iter().sum::<f64>() / pairs)
    }

    /// Tests the particles by the wild bootstrap (Chwialkowski, Strathmann and Gretton 2016): under the
    /// hypothesis, Σ u(zᵢ, zⱼ) over pairs of different particles is distributed as the same sum with
    /// random signs εᵢ εⱼ.
    ///
    /// `replicates` sets of signs, drawn from `seed`. Costs `replicates` N² beside the kernel's own
    /// N² D, and memory for N signs a replicate.
    pub fn test(&self, replicates: usize, seed: u64) -> Result<SteinTest> {
        if replicates < 19 {
            let remedy = "take 19 or more: fewer cannot give a p-value of 0.05";
            return Err(Error::setting("number of bootstrap replicates", replicates, remedy));
        }
        let count = self.count();
        if count < 2 {
            return Err(Error::setting("number of particles", count, "a test needs 2 or more"));
        }
        let signs: Vec<f64> = (0..count)
            .flat_map(|i| {
                let mut generator = stream(seed, Purpose::Bootstrap, 0, i as u64);
                let mut bits = 0;
                (0..replicates).map(move |k| {
                    if k % 64 == 0 {
                        bits = generator.next_u64();
                    }
                    if (bits >> (k % 64)) & 1 == 0 { 1.0 } else { -1.0 }
                })
            })
            .collect();
        let signs_of = |i: usize| &signs[i * replicates..(i + 1) * replicates];
        // The first is the sum itself, the others those with signs.
        let of_tile = |work: &mut Workspace, tile: usize| {
            let mut sums = vec![0.0; replicates + 1];
            let mut weighted = vec![0.0; replicates];
            for i in tile * TILE..count.min((tile + 1) * TILE) {
                weighted.fill(0.0);
                for j in 0..i {
                    let u = self.between(i, j, work);
                    sums[0] += u;
                    for (w, sign) in weighted.iter_mut().zip(signs_of(j)) {
                        *w += u * sign;
                    }
                }
                for ((sum, w), sign) in sums[1..].iter_mut().zip(&weighted).zip(signs_of(i)) {
                    *sum += w * sign;
                }
            }
            sums
        };
        let tiles: Vec<Vec<f64>> = (0..count.div_ceil(TILE))
            .into_par_iter()
            .map_init(Workspace::default, of_tile)
            .collect();
        let sum = |k: usize| tiles.iter().map(|tile| tile[k]).sum::<f64>();
        let found = sum(0);
        let as_far = (1..=replicates).filter(|&k| !(sum(k) < found)).count();
        Ok(SteinTest {
            squared_discrepancy: 2.0 * found / (count as f64 * (count as f64 - 1.0)),
            p_value: (1 + as_far) as f64 / (1 + replicates) as f64,
        })
    }
}

/// Room for M Δ and M′ Δ.
#[derive(Default)]
struct Workspace {
    difference: Vec<f64>,
    here: Vec<f64>,
    there: Vec<f64>,
}

/// KSD² of particles with the given scores, one a row; `bandwidth` is h.
///
/// ```
/// use steinflow::{Matrix, diagnostics::{Statistic, squared_stein_discrepancy}, kernel::Radial};
/// // One particle at the mode of a standard normal: u = d·2/h.
/// let (x, score) = (Matrix::<f64>::zeros(1, 1), Matrix::zeros(1, 1));
/// let radial = Radial::SquaredExponential;
/// let found =
///     squared_stein_discrepancy(x.as_ref(), score.as_ref(), radial, 4.0, Statistic::V)?;
/// assert_eq!(found, 0.5);
/// # Ok::<(), steinflow::Error>(())
/// ```
///
/// A low value does not mean that all modes are found: the score is blind to their weights.
pub fn squared_stein_discrepancy<T: Real>(
    particles: MatRef<'_, T>,
    score: MatRef<'_, T>,
    radial: Radial,
    bandwidth: f64,
    statistic: Statistic,
) -> Result<f64> {
    SteinKernel::new(particles, score, radial, bandwidth)?.squared_discrepancy(statistic)
}

fn by_coordinate(matrix: &Matrix<f64>) -> Vec<f64> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    (0..cols).flat_map(|j| (0..rows).map(move |i| matrix.row(i)[j])).collect()
}

fn in_f64<T: Real>(matrix: MatRef<'_, T>) -> Matrix<f64> {
    Matrix::from_fn(matrix.rows(), matrix.cols(), |i, j| matrix.row(i)[j].as_f64())
}

/// φ, φ′ and φ″.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it must be compiled for its caller's SIMD")]
fn profile(radial: Radial, q: f64) -> (f64, f64, f64) {
    match radial {
        Radial::SquaredExponential => {
            let k = (-q).exp();
            (k, -k, k)
        }
        Radial::InverseMultiquadric => {
            let k = (1.0 + q).sqrt().recip();
            let square = k * k;
            (k, -0.5 * k * square, 0.75 * k * square * square)
        }
    }
}
