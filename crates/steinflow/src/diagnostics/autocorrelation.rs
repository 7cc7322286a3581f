//! How many independent draws a set of chains is worth, and whether the chains agree: rank-normalised
//! split R̂ and bulk effective sample size of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021).
//!
//! They are for chains in time: diffusions, and draws collected along a run. Over particles that push
//! one another at one instant they mean nothing.

use super::normal;

/// R̂ and effective sample size of one quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChainSummary {
    /// Split R̂ of the ranks, the larger of bulk and folded; near 1 where the chains agree. NaN for
    /// chains that do not vary.
    pub r_hat: f64,
    /// How many independent draws the bulk of these is worth.
    pub effective_sample_size: f64,
}

/// Summarises chains of equal length, at least 4 draws each; `None` when there are fewer.
///
/// ```
/// use steinflow::diagnostics::summarise_chains;
/// // A generator that jumps about is as good as independent draws, or better.
/// let chain = |k: u64| (0..500).map(|t| ((t * 7919 + k * 104_729) % 1009) as f64).collect();
/// let chains: Vec<Vec<f64>> = (0..4).map(chain).collect();
/// let found = summarise_chains(&chains).unwrap();
/// assert!(found.r_hat < 1.01 && found.effective_sample_size > 500.0);
/// ```
pub fn summarise_chains(chains: &[Vec<f64>]) -> Option<ChainSummary> {
    let draws = chains.iter().map(Vec::len).min()?;
    if draws < 4 {
        return None;
    }
    let halves: Vec<Vec<f64>> = chains
        .iter()
        .flat_map(|chain| [&chain[..draws / 2], &chain[draws - draws / 2..draws]])
        .map(<[f64]>::to_vec)
        .collect();
    let median = {
        let mut all: Vec<f64> = halves.iter().flatten().copied().collect();
        all.sort_by(f64::total_cmp);
        0.5 * (all[(all.len() - 1) / 2] + all[all.len() / 2])
    };
    let folded: Vec<Vec<f64>> =
        halves.iter().map(|chain| chain.iter().map(|x| (x - median).abs()).collect()).collect();
    let bulk = normal_scores(&halves);
    Some(ChainSummary {
        r_hat: r_hat(&bulk).max(r_hat(&normal_scores(&folded))),
        effective_sample_size: effective_sample_size(&bulk),
    })
}

/// The same for particles that push one another: they are one chain of many numbers, so that their means over
/// time are compared. At least 8 draws; `None` when there are fewer.
///
/// R̂ is that of stretches of time, and far nearer to 1 than that of single chains where nothing drifts.
pub fn summarise_ensemble(particles: &[Vec<f64>]) -> Option<ChainSummary> {
    let draws = particles.iter().map(Vec::len).min()?;
    if draws < 8 {
        return None;
    }
    let (count, batches) = (particles.len() as f64, (draws / 4).clamp(4, 16));
    let length = draws / batches;
    let all = || particles.iter().flat_map(|chain| &chain[draws - batches * length..draws]);
    let total = (batches * length) as f64 * count;
    let middle = all().sum::<f64>() / total;
    let of = |function: &dyn Fn(f64) -> f64| {
        let whole = all().map(|&x| function(x)).sum::<f64>() / total;
        let variance = all().map(|&x| (function(x) - whole).powi(2)).sum::<f64>() / total;
        let means: Vec<f64> = (0..batches)
            .map(|b| {
                let from = draws - (batches - b) * length;
                let stretch = particles.iter().flat_map(|chain| &chain[from..from + length]);
                stretch.map(|&x| function(x)).sum::<f64>() / (length as f64 * count)
            })
            .collect();
        let between =
            means.iter().map(|mean| (mean - whole).powi(2)).sum::<f64>() / (batches - 1) as f64;
        let halves = mean(&means[batches / 2..]) - mean(&means[..batches / 2]);
        (
            (1.0 + between.max(0.5 * halves * halves) / variance).sqrt(),
            batches as f64 * variance / between,
        )
    };
    let (of_means, of_spreads) = (of(&|x| x), of(&|x| (x - middle).abs()));
    Some(ChainSummary {
        r_hat: of_means.0.max(of_spreads.0),
        effective_sample_size: of_means.1.min(of_spreads.1).min(total),
    })
}

/// Replaces every number by the normal quantile of its rank, ties by their mean rank.
fn normal_scores(chains: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let length = chains.first().map_or(0, Vec::len);
    let values: Vec<f64> = chains.iter().flatten().copied().collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut scores = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let mut last = first;
        while last + 1 < order.len() && values[order[last + 1]] == values[order[first]] {
            last += 1;
        }
        let rank = 0.5 * (first + last) as f64 + 1.0;
        let score = normal::quantile((rank - 0.375) / (values.len() as f64 + 0.25));
        for &place in &order[first..=last] {
            scores[place] = score;
        }
        first = last + 1;
    }
    scores.chunks_exact(length.max(1)).map(<[f64]>::to_vec).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean variance within chains, and the estimate of the whole variance from within and between.
fn variances(chains: &[Vec<f64>]) -> (f64, f64) {
    let draws = chains[0].len() as f64;
    let means: Vec<f64> = chains.iter().map(|chain| mean(chain)).collect();
    let within = chains
        .iter()
        .zip(&means)
        .map(|(chain, m)| chain.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (draws - 1.0));
    let within = within.sum::<f64>() / chains.len() as f64;
    let centre = mean(&means);
    let between = if chains.len() > 1 {
        means.iter().map(|m| (m - centre).powi(2)).sum::<f64>() / (chains.len() as f64 - 1.0)
    } else {
        0.0
    };
    (within, within * (draws - 1.0) / draws + between)
}

fn r_hat(chains: &[Vec<f64>]) -> f64 {
    let (within, whole) = variances(chains);
    (whole / within).sqrt()
}

/// By Geyer's (1992) initial monotone sequence of the autocorrelations, all chains together.
fn effective_sample_size(chains: &[Vec<f64>]) -> f64 {
    let (count, draws) = (chains.len() as f64, chains[0].len());
    let (within, whole) = variances(chains);
    if !(whole > 0.0) {
        return f64::NAN;
    }
    let centred: Vec<Vec<f64>> = chains
        .iter()
        .map(|chain| {
            let m = mean(chain);
            chain.iter().map(|x| x - m).collect()
        })
        .collect();
    let correlation = |lag: usize| {
        let of_chain =
            |x: &Vec<f64>| x[lag..].iter().zip(x).map(|(a, b)| a * b).sum::<f64>() / draws as f64;
        let covariance = centred.iter().map(of_chain).sum::<f64>() / count;
        // Variance within chains is estimated with one degree less.
        1.0 - (within * (draws as f64 - 1.0) / draws as f64 - covariance) / whole
    };
    // Sums of neighbouring pairs of a reversible chain's autocorrelations fall and stay positive.
    let (mut sum, mut last, mut lag) = (0.0, f64::INFINITY, 0);
    while lag + 1 < draws {
        let pair =
            if lag == 0 { 1.0 + correlation(1) } else { correlation(lag) + correlation(lag + 1) };
        if !(pair > 0.0) {
            break;
        }
        last = pair.min(last);
        sum += last;
        lag += 2;
    }
    let total = count * draws as f64;
    // Antithetic chains are worth more than independent draws, but not without bound.
    let autocorrelation_time = (2.0 * sum - 1.0).max(1.0 / total.log10());
    total / autocorrelation_time
}
