//! Whether the score is the gradient of the log density: two functions that people write by hand.
//!
//! At a few places, along directions in which every coordinate has a part, (f(x + hv) − f(x − hv))/2h is compared
//! with the score's s·v: up the score itself, where no factor common to all coordinates hides, and along random
//! signs. Where the two differ, halves of the coordinates are asked in turn, down to a single one, which has to
//! prove the fault alone: for steps h over six orders of magnitude, the largest of them where the score promises
//! a change of a third of a nat. A step counts when rounding cannot explain what it shows, and both of its halves
//! show the same slope: not across a kink, not at a wall, not where curvature rules. One such step that agrees is
//! enough. Two that agree with each other and not with the score are a fault; anything else says nothing.

use std::fmt;

use crate::random::{Purpose, fill_standard_normal, stream};
use crate::{Error, LogDensity, MatRef, Matrix, Real, Result};

/// Places that are looked at, …
const PLACES: usize = 4;
/// … directions at each of them, …
const DIRECTIONS: usize = 3;
/// … and directions that are followed to a coordinate.
const MOST_FOLLOWED: usize = 3;
/// Steps, in units of a change of one nat by each coordinate, or less.
const STEPS: [f64; 6] = [0.3, 0.03, 3e-3, 3e-4, 3e-5, 3e-6];
/// The one that is enough where nothing is wrong.
const FIRST: f64 = STEPS[3];
/// Rounding errors of a log density, in units of its last digit: sums of many terms have more than one.
const DIGITS: f64 = 50.0;
/// By how much the halves of a step may differ, as a part of the largest slope along a coordinate.
const BENT: f64 = 0.3;
/// What is another slope, as such a part: of a single coordinate, and of many, of which one may be wrong.
const OTHER: f64 = 0.1;
const OTHER_OF_MANY: f64 = 0.02;
/// The part of that within which slopes are the same, and which rounding may hide.
const SAME: f64 = 0.3;

/// A score that is not the gradient of the log density.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongGradient {
    /// The coordinate, from 0.
    pub coordinate: usize,
    /// Its name, where the target has one for it.
    pub name: Option<String>,
    /// What the score says.
    pub given: f64,
    /// What differences of the log density say.
    pub found: f64,
    /// θ.
    pub place: Vec<f64>,
}

impl fmt::Display for WrongGradient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { coordinate, name, given, found, place } = self;
        if let Some(name) = name {
            write!(out, "`{name}`, ")?;
        }
        write!(
            out,
            "coordinate {coordinate} of the gradient is {given:.4e}, {:.3} times the {found:.4e} by which the \
             log density changes, at θ = (",
            given / found
        )?;
        for (j, x) in place.iter().take(4).enumerate() {
            write!(out, "{}{x:.4}", if j > 0 { ", " } else { "" })?;
        }
        out.write_str(if place.len() > 4 { ", …)" } else { ")" })
    }
}

/// Compares score and log density at some of the given places, on all of the data. About thirty evaluations;
/// some hundred where they differ.
///
/// ```
/// use steinflow::{Matrix, diagnostics::find_wrong_gradient, target::PerParticle};
/// let doubled = PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
///     score[0] = -2.0 * theta[0];
///     -0.5 * theta[0].powi(2)
/// });
/// let fault = find_wrong_gradient(&doubled, Matrix::from_fn(1, 1, |_, _| 3.0).as_ref())?.unwrap();
/// assert!(fault.coordinate == 0 && (fault.given / fault.found - 2.0).abs() < 1e-3);
/// # Ok::<(), steinflow::Error>(())
/// ```
pub fn find_wrong_gradient<T: Real>(
    target: &(impl LogDensity<T> + ?Sized),
    places: MatRef<'_, T>,
) -> Result<Option<WrongGradient>> {
    Ok(compare(target, places, u64::MAX)?.0)
}

/// The same with at most so many evaluations, and how many it took.
pub(super) fn compare<T: Real>(
    target: &(impl LogDensity<T> + ?Sized),
    places: MatRef<'_, T>,
    most: u64,
) -> Result<(Option<WrongGradient>, u64)> {
    let (count, dim) = (places.rows(), places.cols());
    let kept = count.min(PLACES).min(usize::try_from(most).unwrap_or(PLACES));
    let theta = Matrix::from_fn(kept, dim, |i, j| places.row(i * count / kept)[j]);
    let (log_density, score) = evaluate(target, &theta)?;
    let mut look = Look { target, theta, log_density, score, left: most - kept as u64 };
    let spread: Vec<f64> = (0..dim).map(|j| spread_of(places, j)).collect();
    let found = look.find(&spread)?;
    Ok((found, most - look.left))
}

/// A step both ways along some coordinates.
#[derive(Clone, Copy)]
struct Step<'a> {
    /// From which place.
    place: usize,
    /// What a step of length 1 adds to each coordinate.
    along: &'a [f64],
    length: f64,
}

/// What one shows, by its length.
#[derive(Clone, Copy)]
struct Shown {
    /// Of the log density.
    slope: f64,
    /// Of the score.
    given: f64,
    /// By how much the slopes of its halves differ, beyond what the score says of them.
    bend: f64,
    /// What rounding can make of a slope.
    noise: f64,
}

impl Shown {
    /// Whether it can be believed. Written so that NaN cannot.
    fn counts(&self, size: f64, other: f64) -> bool {
        self.noise <= SAME * other * size && self.bend.abs() <= BENT * size
    }

    fn agrees(&self, size: f64, other: f64) -> bool {
        self.counts(size, other) && (self.slope - self.given).abs() <= other * size
    }
}

struct Look<'a, T: Real, D: ?Sized> {
    target: &'a D,
    /// The places, and what the target says there.
    theta: Matrix<T>,
    log_density: Vec<T>,
    score: Matrix<T>,
    /// Evaluations that may still be taken.
    left: u64,
}

impl<T: Real, D: LogDensity<T> + ?Sized> Look<'_, T, D> {
    fn find(&mut self, spread: &[f64]) -> Result<Option<WrongGradient>> {
        let directions: Vec<(usize, Vec<f64>)> = (0..self.theta.rows())
            .filter(|&i| {
                let numbers = self.theta.row(i).iter().chain(self.score.row(i));
                self.log_density[i].is_finite() && numbers.into_iter().all(|x| x.is_finite())
            })
            .flat_map(|i| self.directions(i, spread))
            .collect();
        let first: Vec<Step<'_>> = directions
            .iter()
            .map(|(place, along)| Step { place: *place, along, length: FIRST })
            .collect();
        let Some(shown) = self.show(&first)? else { return Ok(None) };
        let agrees = |(step, shown): (&Step<'_>, &Shown)| {
            shown.agrees(self.size(step.place, step.along, shown), OTHER_OF_MANY)
        };
        let agreed: Vec<bool> = first.iter().zip(&shown).map(agrees).collect();
        let doubtful = directions.iter().zip(agreed).filter(|(_, agrees)| !agrees);
        let mut followed = 0;
        for ((place, along), _) in doubtful {
            let Some((length, _)) = self.disagreement(*place, along, OTHER_OF_MANY)? else {
                continue;
            };
            let Some(coordinate) = self.narrow_down(*place, along, length)? else {
                return Ok(None);
            };
            if let Some(fault) = self.prove(*place, coordinate)? {
                return Ok(Some(fault));
            }
            followed += 1;
            if followed == MOST_FOLLOWED {
                break;
            }
        }
        Ok(None)
    }

    /// Up the score, and along random signs; every coordinate by what changes the log density by a nat, and no
    /// further than the places are spread.
    fn directions(&self, place: usize, spread: &[f64]) -> Vec<(usize, Vec<f64>)> {
        let dim = spread.len();
        let wanted = if dim < 3 { dim } else { DIRECTIONS };
        let direction = |k: usize| {
            let mut signs = vec![1.0_f64; dim];
            if k > 0 {
                let key = (place * DIRECTIONS + k) as u64;
                fill_standard_normal(&mut stream(key, Purpose::Probe, 0, 0), &mut signs);
            }
            let up = |j: usize| if self.score.row(place)[j] < T::zero() { -1.0 } else { 1.0 };
            // Two coordinates have but one other direction.
            let sign = |j: usize| -> f64 {
                match (k, dim) {
                    (1, 2) if j == 1 => -up(j),
                    (0, _) | (_, 2) => up(j),
                    _ => signs[j].signum(),
                }
            };
            let unit = |j: usize| -> f64 { self.unit(place, j).min(spread[j]) };
            (place, (0..dim).map(|j| sign(j) * unit(j)).collect())
        };
        (0..wanted).map(direction).collect()
    }

    /// How far a coordinate has to go for the score to promise a nat.
    fn unit(&self, place: usize, j: usize) -> f64 {
        let slope = self.score.row(place)[j].as_f64().abs();
        if slope > 0.0 { slope.recip() } else { self.theta.row(place)[j].as_f64().abs().max(1.0) }
    }

    /// The largest slope along one of the coordinates that move: what differences are measured by.
    fn size(&self, place: usize, along: &[f64], shown: &Shown) -> f64 {
        let moving = || along.iter().zip(self.score.row(place)).filter(|(along, _)| **along != 0.0);
        let largest = moving().map(|(along, s)| (along * s.as_f64()).abs()).fold(0.0, f64::max);
        largest.max(shown.slope.abs() / moving().count().max(1) as f64)
    }

    /// What steps show; none where there are not enough evaluations left for it.
    fn show(&mut self, steps: &[Step<'_>]) -> Result<Option<Vec<Shown>>> {
        let needed = 2 * steps.len() as u64;
        if needed > self.left {
            return Ok(None);
        }
        self.left -= needed;
        let points = Matrix::from_fn(2 * steps.len(), self.theta.cols(), |row, j| {
            let Step { place, along, length } = steps[row / 2];
            let sign = if row % 2 == 0 { 1.0 } else { -1.0 };
            self.theta.row(place)[j] + T::of(sign * length * along[j])
        });
        let (found, _) = evaluate(self.target, &points)?;
        let shown = steps.iter().zip(found.chunks_exact(2)).enumerate().map(|(k, (step, ends))| {
            let Step { place, length, .. } = *step;
            // By where the points really are: rounding moves them too.
            let promised = |row: usize| -> f64 {
                let moved = points.row(row).iter().zip(self.theta.row(place));
                let slopes = self.score.row(place).iter();
                moved.zip(slopes).map(|((to, from), s)| (*to - *from).as_f64() * s.as_f64()).sum()
            };
            let (up, down) = (promised(2 * k), -promised(2 * k + 1));
            let middle = self.log_density[place].as_f64();
            let (above, below) = (ends[0].as_f64(), ends[1].as_f64());
            Shown {
                slope: (above - below) / (2.0 * length),
                given: (up + down) / (2.0 * length),
                bend: ((above - middle - up) - (middle - below - down)) / length,
                noise: DIGITS * T::epsilon().as_f64() * above.abs().max(below.abs())
                    / (2.0 * length),
            }
        });
        Ok(Some(shown.collect()))
    }

    /// The shorter of two steps along a direction that agree with each other, where none agrees with the score.
    fn disagreement(
        &mut self,
        place: usize,
        along: &[f64],
        other: f64,
    ) -> Result<Option<(f64, Shown)>> {
        let Some(shown) = self.show(&STEPS.map(|length| Step { place, along, length }))? else {
            return Ok(None);
        };
        let sized = STEPS.iter().zip(shown).map(|(&length, shown)| {
            let size = self.size(place, along, &shown);
            (length, shown, size)
        });
        let known: Vec<(f64, Shown, f64)> =
            sized.filter(|(_, shown, size)| shown.counts(*size, other)).collect();
        if known.iter().any(|(_, shown, size)| shown.agrees(*size, other)) {
            return Ok(None);
        }
        let same = |pair: &&[(f64, Shown, f64)]| {
            (pair[0].1.slope - pair[1].1.slope).abs() <= SAME * other * pair[1].2
        };
        Ok(known.windows(2).find(same).map(|pair| (pair[1].0, pair[1].1)))
    }

    /// The coordinate that halving leads to: always the half where slopes differ more.
    fn narrow_down(&mut self, place: usize, along: &[f64], length: f64) -> Result<Option<usize>> {
        let mut left: Vec<usize> = (0..along.len()).collect();
        while left.len() > 1 {
            let halves = left.split_at(left.len() / 2);
            let part = |kept: &[usize]| -> Vec<f64> {
                let mut part = vec![0.0; along.len()];
                for &j in kept {
                    part[j] = along[j];
                }
                part
            };
            let (lower, upper) = (part(halves.0), part(halves.1));
            let step = |along| Step { place, along, length };
            let Some(shown) = self.show(&[step(&lower), step(&upper)])? else { return Ok(None) };
            let off = |shown: &Shown| (shown.slope - shown.given).abs();
            left = if off(&shown[0]) > off(&shown[1]) { halves.0 } else { halves.1 }.to_vec();
        }
        Ok(left.first().copied())
    }

    /// Whether a coordinate is wrong by itself.
    fn prove(&mut self, place: usize, coordinate: usize) -> Result<Option<WrongGradient>> {
        let mut along = vec![0.0; self.theta.cols()];
        along[coordinate] = self.unit(place, coordinate);
        let Some((_, shown)) = self.disagreement(place, &along, OTHER)? else { return Ok(None) };
        let given = self.score.row(place)[coordinate].as_f64();
        let found = if given == 0.0 {
            shown.slope / along[coordinate]
        } else {
            given * shown.slope / shown.given
        };
        Ok(Some(WrongGradient {
            coordinate,
            name: self.target.coordinate_name(coordinate),
            given,
            found,
            place: self.theta.row(place).iter().map(|x| x.as_f64()).collect(),
        }))
    }
}

/// How far the places are apart along a coordinate; anywhere, where they are all the same.
fn spread_of<T: Real>(places: MatRef<'_, T>, j: usize) -> f64 {
    let column = || (0..places.rows()).map(|i| places.row(i)[j].as_f64());
    let mean = column().sum::<f64>() / places.rows() as f64;
    let square = column().map(|x| (x - mean).powi(2)).sum::<f64>() / places.rows() as f64;
    if square > 0.0 { square.sqrt() } else { f64::INFINITY }
}

fn evaluate<T: Real>(
    target: &(impl LogDensity<T> + ?Sized),
    points: &Matrix<T>,
) -> Result<(Vec<T>, Matrix<T>)> {
    let mut log_density = vec![T::zero(); points.rows()];
    let mut score = Matrix::zeros(points.rows(), points.cols());
    if points.rows() > 0 {
        target.evaluate(points.as_ref(), None, &mut log_density, score.as_mut())?;
    }
    Ok((log_density, score))
}

/// The same as an error.
pub(crate) fn require_gradient<T: Real>(
    target: &(impl LogDensity<T> + ?Sized),
    places: MatRef<'_, T>,
) -> Result<()> {
    match find_wrong_gradient(target, places)? {
        Some(fault) => Err(Error::WrongGradient(Box::new(fault))),
        None => Ok(()),
    }
}
