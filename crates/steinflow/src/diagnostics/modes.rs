//! A search for modes without particles, which no test that looks at the particles alone can see.
//!
//! Probes start widely around the particles and climb. One that ends high, with a valley between it and
//! the particles next to it, has found a mode that they miss. Finding none proves nothing, least of all
//! in many dimensions.

use crate::random::{Purpose, fill_standard_normal, stream};
use crate::{Error, LogDensity, MatRef, Matrix, Real, Result};

/// Probes, half of them at each of two widths.
const PROBES: usize = 48;
/// Where they start, in standard deviations of the particles.
const WIDTHS: [f64; 2] = [3.0, 10.0];
/// Steps uphill.
const CLIMBS: usize = 80;
/// Particles next to a probe's end that are asked whether a valley lies between.
const NEIGHBOURS: usize = 5;
/// Points on the way to each of those.
const POINTS: usize = 9;
/// A valley is this deep, in nats.
const VALLEY: f64 = 2.0;
/// A mode that has less than e^-3 = 5 % of the density of the particles' own is not worth a word.
const WORTH: f64 = 3.0;

/// What the search found.
#[derive(Clone, Debug, PartialEq)]
pub struct ModeSearch {
    /// A point of the best mode without particles; none if no probe has found one.
    pub unvisited: Option<Vec<f64>>,
    /// How many of the probes ended there or in another such mode.
    pub share: f64,
}

/// Searches around the particles, one a row.
pub fn search_modes<T: Real>(
    target: &(impl LogDensity<T> + ?Sized),
    particles: MatRef<'_, T>,
    seed: u64,
) -> Result<ModeSearch> {
    let (count, dim) = (particles.rows(), particles.cols());
    if count < 2 {
        return Err(Error::setting("number of particles", count, "a search needs 2 or more"));
    }
    let (means, sds) = super::moments(particles);
    let evaluate = |points: &Matrix<T>| -> Result<(Vec<f64>, Matrix<T>)> {
        let mut log_density = vec![T::zero(); points.rows()];
        let mut score = Matrix::zeros(points.rows(), dim);
        target.evaluate(points.as_ref(), None, &mut log_density, score.as_mut())?;
        Ok((log_density.iter().map(|x| x.as_f64()).collect(), score))
    };
    let own = Matrix::from_fn(count, dim, |i, j| particles.row(i)[j]);
    let (own_density, _) = evaluate(&own)?;
    let mean_density = own_density.iter().sum::<f64>() / count as f64;

    let mut probes = Matrix::zeros(PROBES, dim);
    for k in 0..PROBES {
        let mut z = vec![0.0; dim];
        fill_standard_normal(&mut stream(seed, Purpose::Probe, 0, k as u64), &mut z);
        let width = WIDTHS[k % WIDTHS.len()];
        for (j, x) in probes.row_mut(k).iter_mut().enumerate() {
            *x = T::of(means[j] + width * sds[j] * z[j]);
        }
    }
    let ends = climb(probes, &sds, evaluate)?;

    // The mean of a mode's own particles is d/2 below its top.
    let worthy = |density: f64| density - 0.5 * dim as f64 > mean_density - WORTH;
    let mut best: Option<(f64, usize)> = None;
    let mut hits = 0_usize;
    for (k, &density) in ends.log_density.iter().enumerate() {
        if !worthy(density) || !is_cut_off(&ends, k, &own, &own_density, &sds, evaluate)? {
            continue;
        }
        hits += 1;
        if best.is_none_or(|(highest, _)| density > highest) {
            best = Some((density, k));
        }
    }
    let point = |k: usize| ends.points.row(k).iter().map(|x| x.as_f64()).collect();
    Ok(ModeSearch { unvisited: best.map(|(_, k)| point(k)), share: hits as f64 / PROBES as f64 })
}

/// Where the probes are.
struct Ends<T> {
    points: Matrix<T>,
    log_density: Vec<f64>,
}

/// Steps along the gradient, in units of the particles' standard deviations, of a length that grows
/// while it succeeds.
fn climb<T: Real>(
    mut points: Matrix<T>,
    sds: &[f64],
    evaluate: impl Fn(&Matrix<T>) -> Result<(Vec<f64>, Matrix<T>)>,
) -> Result<Ends<T>> {
    let (mut log_density, mut score) = evaluate(&points)?;
    let mut lengths = vec![1.0; points.rows()];
    for _ in 0..CLIMBS {
        let mut tried = points.clone();
        for k in 0..points.rows() {
            let scaled: Vec<f64> =
                score.row(k).iter().zip(sds).map(|(s, sd)| s.as_f64() * sd).collect();
            let norm = scaled.iter().map(|s| s * s).sum::<f64>().sqrt();
            if !(norm > 0.0) || !norm.is_finite() {
                continue;
            }
            for (j, x) in tried.row_mut(k).iter_mut().enumerate() {
                *x += T::of(lengths[k] * sds[j] * scaled[j] / norm);
            }
        }
        let (new_density, new_score) = evaluate(&tried)?;
        for k in 0..points.rows() {
            // What is not finite is not higher.
            if new_density[k] > log_density[k] || !log_density[k].is_finite() {
                log_density[k] = new_density[k];
                points.row_mut(k).copy_from_slice(tried.row(k));
                score.row_mut(k).copy_from_slice(new_score.row(k));
                lengths[k] *= 1.5;
            } else {
                lengths[k] *= 0.4;
            }
        }
    }
    Ok(Ends { points, log_density })
}

/// Whether a valley lies between a probe's end and all particles next to it.
fn is_cut_off<T: Real>(
    ends: &Ends<T>,
    k: usize,
    own: &Matrix<T>,
    own_density: &[f64],
    sds: &[f64],
    evaluate: impl Fn(&Matrix<T>) -> Result<(Vec<f64>, Matrix<T>)>,
) -> Result<bool> {
    let end = ends.points.row(k);
    let distance = |i: usize| -> f64 {
        let row = own.row(i).iter().zip(end).zip(sds);
        row.map(|((x, y), sd)| ((x.as_f64() - y.as_f64()) / sd).powi(2)).sum()
    };
    let mut order: Vec<usize> = (0..own.rows()).collect();
    order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
    order.truncate(NEIGHBOURS);
    let on_the_way = Matrix::from_fn(order.len() * POINTS, own.cols(), |row, j| {
        let (from, to) = (own.row(order[row / POINTS])[j].as_f64(), end[j].as_f64());
        T::of(from + (to - from) * (row % POINTS + 1) as f64 / (POINTS + 1) as f64)
    });
    let (density, _) = evaluate(&on_the_way)?;
    Ok(order.iter().zip(density.chunks_exact(POINTS)).all(|(&i, way)| {
        let lowest = way.iter().copied().fold(f64::INFINITY, f64::min);
        lowest < own_density[i].min(ends.log_density[k]) - VALLEY
    }))
}
