//! Verdicts on draws of our own models: what they cost, and that they say no more than they know.

use steinflow::diagnostics::{Diagnosis, Judged, Verdict};
use steinflow::dynamics::{Dynamics, Langevin, Structure};
use steinflow::ensemble::Options;
use steinflow::run::{Auto, Samples};
use steinflow::testing::random_states;
use steinflow::{LogDensity, Matrix};
use steinflow_models::toy::{Funnel, Gaussian, GaussianMixture, TriCrescent};
use steinflow_models::{Model, posteriors};

/// As particles, or where `chains` are more than none as draws of so many chains.
fn judge(target: &dyn LogDensity<f64>, theta: &Matrix<f64>, chains: usize) -> Diagnosis {
    let structure: Structure = Dynamics::<f64>::structure(&Langevin::new(), target.dim());
    let steps = theta.rows() / chains.max(1);
    let last =
        Matrix::from_fn(chains, theta.cols(), |i, j| theta.row(theta.rows() - chains + i)[j]);
    let draws = (chains > 0).then(|| {
        Samples::resume(0, 1, chains, (0..steps as u64).collect(), theta.clone()).unwrap()
    });
    let state = if chains > 0 { &last } else { theta };
    let judged = Judged { draws: draws.as_ref(), ..Judged::cloud(target, state, &structure) };
    judged.diagnose().unwrap()
}

#[test]
fn a_verdict_costs_no_more_than_it_says() {
    let models: Vec<(&str, Box<dyn Model<f64>>)> = vec![
        ("tri-crescent", Box::new(TriCrescent)),
        ("mixture", Box::new(GaussianMixture::default())),
        ("funnel", Box::new(Funnel::new(10).unwrap())),
        ("gaussian", Box::new(Gaussian::ill_conditioned(50, 1e4).unwrap())),
    ];
    for (name, model) in &models {
        // Particles, and chains of draws, of which there are few.
        for (rows, chains) in [(100, 0), (2000, 100), (1200, 4), (400, 1)] {
            let theta = model.exact_sample(rows, 7).unwrap();
            let found = judge(&**model, &theta, chains);
            let batch = if chains > 0 { chains } else { rows } as u64;
            let used = found.evaluations;
            assert!(used > 0 && used <= 200 * batch, "{name}, {rows}, {chains}: {used}");
            let cost = found.evidence.iter().find(|item| item.name == "cost of this verdict");
            assert_eq!(cost.unwrap().value, used.div_ceil(batch) as f64, "{name}");
        }
    }
}

/// The score does not see how modes weigh, and a mean is a mean over them.
#[test]
fn shares_of_modes_that_are_off_grant_no_means() {
    let unit = Matrix::from_fn(2, 2, |i, j| if i == j { 1.0 } else { 0.0 });
    let centres = [[-5.0, 0.0], [5.0, 0.0], [0.0, 8.0]];
    let parts = centres.map(|centre| (1.0, centre.to_vec(), unit.clone()));
    let target = GaussianMixture::new(parts.to_vec()).unwrap();
    for (count, seed) in [100, 300].into_iter().flat_map(|count| (0..10).map(move |s| (count, s))) {
        let z = random_states(count, 2, seed);
        let of = |i: usize| match 100 * i / count {
            0..46 => centres[0],
            46..83 => centres[1],
            _ => centres[2],
        };
        let theta = Matrix::from_fn(count, 2, |i, j| of(i)[j] + z.row(i)[j]);
        let found = judge(&target, &theta, 0);
        assert!(!found.headline.starts_with("Means may"), "seed {seed}: {}", found.headline);
        // A hundred particles leave weights open by as much; three hundred do not.
        if count == 300 {
            assert_eq!(found.verdict, Verdict::NotConverged, "seed {seed}: {}", found.headline);
        }
    }
}

/// Draws of the default sampler, which are trusted, of a posterior that ships.
fn draws_of(name: &str) -> (impl LogDensity<f64>, Matrix<f64>, usize) {
    let wanted = |info: &&posteriors::PosteriorInfo| info.name == name;
    let posterior = posteriors::all().iter().find(wanted).unwrap().build();
    let mut samples = Samples::of_ensemble();
    let options = Options { seed: 3, effective: 400.0, ..Options::default() };
    let sampler = Auto::<f64>::new(&posterior).options(options);
    sampler.observe(samples.observer()).run().unwrap();
    let (draws, chains) = (samples.theta(), samples.chains());
    (posterior, draws, chains)
}

/// Out there the score is hardly anything, so that neither it nor moves tell of the particle; but it makes most of
/// the spread.
#[test]
fn one_particle_far_out_in_a_tail_grants_no_spreads() {
    let (posterior, draws, _) = draws_of("pumps");
    for seed in 0..4 {
        let mut particles = Matrix::from_fn(100, draws.cols(), |i, j| {
            draws.row((7 * i + seed) * draws.rows() / 800)[j]
        });
        let found = judge(&posterior, &particles, 0);
        assert_eq!(found.verdict, Verdict::Trust, "seed {seed}: {}", found.headline);
        // log β, whose tail is that of the prior.
        particles.row_mut(50)[1] = -20.0;
        let found = judge(&posterior, &particles, 0);
        assert_ne!(found.verdict, Verdict::Trust, "seed {seed}: {}", found.headline);
    }
}

/// Eight schools with effects spread about three times as widely as they are.
#[test]
fn a_wrong_scale_of_effects_grants_no_means() {
    let (posterior, draws, chains) = draws_of("eight-schools-centred");
    // μ, log τ, and effects μ + τ η.
    let wide = Matrix::from_fn(draws.rows(), draws.cols(), |i, j| {
        let row = draws.row(i);
        match j {
            0 => row[0],
            1 => row[1] + 1.04,
            _ => row[0] + 2.83 * (row[j] - row[0]),
        }
    });
    let last = Matrix::from_fn(chains, wide.cols(), |i, j| wide.row(wide.rows() - chains + i)[j]);
    for found in [judge(&posterior, &wide, chains), judge(&posterior, &last, 0)] {
        assert!(!found.headline.starts_with("Means"), "{}", found.headline);
    }
}
