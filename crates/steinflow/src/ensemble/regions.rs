//! Regions: separate modes that particles have found, each with its place, shape and weight.
//!
//! A region is cut in two along the first principal axis of the means of its particles, where its draws leave
//! a valley; regions without a valley between them are joined.

use crate::arrays::Arrays;
use crate::coordinates::Linear;
use crate::linalg::symmetric_eigen;
use crate::{MatRef, Matrix, Result};

/// Regions that are worth telling apart.
const MOST: usize = 12;
/// Particles that a region must have to be cut.
const LEAST_PARTICLES: usize = 4;
/// Draws, and the share of all draws, that a region must have.
const LEAST_DRAWS: (usize, f64) = (8, 0.002);
/// Between two centres at 0 and 1, draws this near to a place are counted there.
const NEAR: f64 = 0.12;
/// Places on the line through two centres at which draws are counted, from −1 to 2.
const PLACES: usize = 61;

/// One mode: mean and metric in z.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Region {
    pub(super) shape: Linear,
    pub(super) log_weight: f64,
}

/// All modes; at most one where there is nothing to jump between.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Regions {
    pub(super) all: Vec<Region>,
}

impl Regions {
    pub(super) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Fits a region to every label that enough rows have.
    pub(super) fn fit(z: &Matrix<f64>, scores: &Matrix<f64>, labels: &[usize]) -> Self {
        let rows = labels.len();
        let least = (LEAST_DRAWS.0 as f64).max(LEAST_DRAWS.1 * rows as f64);
        let mut all = Vec::new();
        for label in distinct(labels) {
            let chosen: Vec<usize> = (0..rows).filter(|&i| labels[i] == label).collect();
            if chosen.len() as f64 >= least {
                let of = |m: &Matrix<f64>| {
                    Matrix::from_fn(chosen.len(), m.cols(), |i, j| m.row(chosen[i])[j])
                };
                all.push(Region {
                    shape: Linear::fit(of(z).as_ref(), of(scores).as_ref()),
                    log_weight: (chosen.len() as f64 / rows as f64).ln(),
                });
            }
        }
        Self { all }
    }

    /// log of the responsibilities: how much each region, as a Gaussian, claims of every row; rows × K.
    pub(super) fn log_responsibilities(&self, z: &[f64], dim: usize) -> Matrix<f64> {
        let rows = z.len() / dim;
        let mut out = Matrix::zeros(rows, self.all.len());
        let mut white = vec![0.0; z.len()];
        for (k, region) in self.all.iter().enumerate() {
            region.shape.from_position(z, &mut white);
            let level = region.log_weight - region.shape.log_determinant();
            for (i, row) in white.chunks_exact(dim).enumerate() {
                out.row_mut(i)[k] = level - 0.5 * row.iter().map(|u| u * u).sum::<f64>();
            }
        }
        for i in 0..rows {
            let row = out.row_mut(i);
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total = top + row.iter().map(|l| (l - top).exp()).sum::<f64>().ln();
            for l in row.iter_mut() {
                *l -= total;
            }
        }
        out
    }

    /// The region that claims most of every row.
    pub(super) fn labels(&self, z: &[f64], dim: usize) -> Vec<usize> {
        let claims = self.log_responsibilities(z, dim);
        let largest = |i: usize| {
            let row = claims.row(i);
            (0..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best })
        };
        (0..claims.rows()).map(largest).collect()
    }

    pub(super) fn save(&self, into: &mut Arrays) {
        into.put("regions", self.all.iter().map(|region| region.log_weight).collect::<Vec<_>>());
        for (k, region) in self.all.iter().enumerate() {
            region.shape.save(&format!("region{k}"), into);
        }
    }

    pub(super) fn restore(dim: usize, from: &Arrays) -> Result<Self> {
        let weights = from.get("regions")?.iter().enumerate();
        let region = |(k, &log_weight): (usize, &f64)| {
            Ok(Region { shape: Linear::restore(&format!("region{k}"), dim, from)?, log_weight })
        };
        Ok(Self { all: weights.map(region).collect::<Result<_>>()? })
    }
}

fn distinct(labels: &[usize]) -> Vec<usize> {
    let mut out = labels.to_vec();
    out.sort_unstable();
    out.dedup();
    out
}

/// Cuts regions further. Rows are draws of all particles one after the other, in white coordinates.
pub(super) fn split(white: MatRef<'_, f64>, particles: usize, labels: &[usize]) -> Vec<usize> {
    let rows_of = |label: usize| (0..labels.len()).filter(|&r| labels[r] == label).collect();
    let mut waiting: Vec<Vec<usize>> = distinct(labels).into_iter().map(rows_of).collect();
    let (mut out, mut found) = (vec![0; labels.len()], 0);
    while let Some(rows) = waiting.pop() {
        if found + waiting.len() < MOST
            && let Some((low, high)) = cut(white, particles, &rows)
        {
            waiting.extend([low, high]);
        } else {
            for &r in &rows {
                out[r] = found;
            }
            found += 1;
        }
    }
    out
}

/// The two sides of a region, if there is a valley between them.
fn cut(
    white: MatRef<'_, f64>,
    particles: usize,
    rows: &[usize],
) -> Option<(Vec<usize>, Vec<usize>)> {
    let dim = white.cols();
    let (mut means, mut counts) = (Matrix::<f64>::zeros(particles, dim), vec![0.0; particles]);
    for &r in rows {
        counts[r % particles] += 1.0;
        means.row_mut(r % particles).iter_mut().zip(white.row(r)).for_each(|(m, x)| *m += x);
    }
    let present: Vec<usize> = (0..particles).filter(|&i| counts[i] > 0.0).collect();
    if present.len() < LEAST_PARTICLES {
        return None;
    }
    let means =
        Matrix::from_fn(present.len(), dim, |i, j| means.row(present[i])[j] / counts[present[i]]);
    let place = along_first_axis(&means);
    let mut order: Vec<usize> = (0..present.len()).collect();
    order.sort_by(|&a, &b| place[a].total_cmp(&place[b]));
    // Where the variance between the two sides is largest.
    let (mut sum, mut best) = (0.0, (f64::NEG_INFINITY, 1));
    for k in 1..order.len() {
        sum += place[order[k - 1]];
        let between = sum * sum * (1.0 / k as f64 + 1.0 / (order.len() - k) as f64);
        if between > best.0 {
            best = (between, k);
        }
    }
    let (low, high) = order.split_at(best.1);
    let centre = |side: &[usize]| mean_of(means.as_ref(), side);
    if !valley(white, rows, &centre(low), &centre(high)) {
        return None;
    }
    let mut is_low = vec![false; particles];
    for &i in low {
        is_low[present[i]] = true;
    }
    Some(rows.iter().partition(|&&r| is_low[r % particles]))
}

/// Coordinates of the rows along their first principal axis, up to a factor.
fn along_first_axis(rows: &Matrix<f64>) -> Vec<f64> {
    let count = rows.rows();
    let centre = mean_of(rows.as_ref(), &(0..count).collect::<Vec<_>>());
    let away = Matrix::from_fn(count, rows.cols(), |i, j| rows.row(i)[j] - centre[j]);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    // From the smaller of the two Gram matrices.
    if count <= rows.cols() {
        return last_axis(count, |i, j| dot(away.row(i), away.row(j)));
    }
    let columns = Matrix::from_fn(rows.cols(), count, |j, i| away.row(i)[j]);
    let axis = last_axis(rows.cols(), |i, j| dot(columns.row(i), columns.row(j)));
    (0..count).map(|i| dot(away.row(i), &axis)).collect()
}

/// The eigenvector of the largest eigenvalue.
fn last_axis(width: usize, entry: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let mut gram = vec![0.0; width * width];
    for i in 0..width {
        for j in 0..=i {
            let entry = entry(i, j);
            (gram[i * width + j], gram[j * width + i]) = (entry, entry);
        }
    }
    let (_, vectors) = symmetric_eigen(&gram, width);
    (0..width).map(|i| vectors[i * width + width - 1]).collect()
}

fn mean_of(rows: MatRef<'_, f64>, chosen: &[usize]) -> Vec<f64> {
    let mut out = vec![0.0; rows.cols()];
    for &i in chosen {
        out.iter_mut().zip(rows.row(i)).for_each(|(o, x)| *o += x / chosen.len() as f64);
    }
    out
}

/// Whether rows are rare somewhere between the densest place on one side of the middle of two centres and
/// the densest on the other. The centre of a side is no such place where the side holds several modes itself.
fn valley(white: MatRef<'_, f64>, rows: &[usize], from: &[f64], to: &[f64]) -> bool {
    let axis: Vec<f64> = to.iter().zip(from).map(|(b, a)| b - a).collect();
    let square = axis.iter().map(|x| x * x).sum::<f64>().max(1e-300);
    let place_of = |k: usize| 3.0 * k as f64 / (PLACES - 1) as f64 - 1.0;
    let mut counts = [0_usize; PLACES];
    for &r in rows {
        let away = white.row(r).iter().zip(from).zip(&axis);
        let place = away.map(|((x, a), axis)| (x - a) * axis).sum::<f64>() / square;
        for (k, count) in counts.iter_mut().enumerate() {
            *count += usize::from((place - place_of(k)).abs() < NEAR);
        }
    }
    // Of equals, the one nearest to the middle.
    let middle = PLACES / 2;
    let densest = |places: &mut dyn Iterator<Item = usize>| {
        places.reduce(|best, k| if counts[k] > counts[best] { k } else { best }).unwrap_or(middle)
    };
    let (low, high) = (densest(&mut (0..middle).rev()), densest(&mut (middle + 1..PLACES)));
    let rarest = (low..=high).map(|k| counts[k]).min().unwrap_or(0) as f64;
    // The rarest of many counts is rare by chance too.
    2.0 * (rarest + 3.0 * rarest.sqrt() + 1.0) < counts[low].min(counts[high]) as f64
}

/// Joins regions that no valley parts.
pub(super) fn merge(white: MatRef<'_, f64>, mut labels: Vec<usize>) -> Vec<usize> {
    for a in distinct(&labels) {
        let rows_of = |labels: &[usize], label: usize| -> Vec<usize> {
            (0..labels.len()).filter(|&r| labels[r] == label).collect()
        };
        let own = rows_of(&labels, a);
        if own.is_empty() {
            continue;
        }
        for b in distinct(&labels).into_iter().filter(|&b| b > a) {
            let other = rows_of(&labels, b);
            let both: Vec<usize> = own.iter().chain(&other).copied().collect();
            if !valley(white, &both, &mean_of(white, &own), &mean_of(white, &other)) {
                for &r in &own {
                    labels[r] = b;
                }
                break;
            }
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random_states;

    /// Draws of particles that stay in modes at these places of the first axis, one after the other.
    fn draws(modes: &[f64], draws: usize) -> (Matrix<f64>, usize) {
        let particles = 20 * modes.len();
        let noise = random_states(draws * particles, 2, 3);
        let place = |r: usize| modes[r % modes.len()];
        let at = |r: usize, j: usize| noise.row(r)[j] + if j == 0 { place(r) } else { 0.0 };
        (Matrix::from_fn(draws * particles, 2, at), particles)
    }

    #[test]
    fn modes_are_told_apart_however_many_there_are() {
        for modes in [&[0.0][..], &[-4.0, 4.0], &[-6.0, 0.0, 6.0], &[-9.0, -3.0, 3.0, 9.0]] {
            let (white, particles) = draws(modes, 12);
            let labels = split(white.as_ref(), particles, &vec![0; white.rows()]);
            let labels = merge(white.as_ref(), labels);
            assert_eq!(distinct(&labels).len(), modes.len(), "{modes:?}");
            // Every particle has one label, and those of a mode share it.
            assert!((0..white.rows()).all(|r| labels[r] == labels[r % modes.len()]), "{modes:?}");
        }
    }
}
