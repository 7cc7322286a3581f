//! Exact moments, samples and shares against quadrature of the density and against each other.

use steinflow::Matrix;
use steinflow_models::regression::LinearRegression;
use steinflow_models::toy::{
    Banana, Crescent, Funnel, Gaussian, GaussianMixture, Isotropic, Ring, TriCrescent,
};
use steinflow_models::{Describe, Model, Moments};

use crate::support::{at, table};

/// The midpoint rule on a map from the rectangle `limits` to the plane, whose Jacobian is the map's
/// last value. For smooth densities that vanish at the edge it is accurate to rounding.
struct Quadrature {
    limits: [[f64; 2]; 2],
    cells: [usize; 2],
    map: fn(f64, f64) -> ([f64; 2], f64),
}

fn straight(a: f64, b: f64) -> ([f64; 2], f64) {
    ([a, b], 1.0)
}

impl Quadrature {
    /// ∫π, the normalised moments and the normalised masses of the parts.
    fn integrate(&self, model: &dyn Model<f64>) -> (f64, Moments, Vec<f64>) {
        let parts = model.parts();
        let mut masses = vec![0.0; parts.as_ref().map_or(0, |parts| parts.names().len())];
        let (mut total, mut mean, mut second) = (0.0, [0.0; 2], [[0.0; 2]; 2]);
        let width = [0, 1]
            .map(|axis| (self.limits[axis][1] - self.limits[axis][0]) / self.cells[axis] as f64);
        for a in 0..self.cells[0] {
            for b in 0..self.cells[1] {
                let place = |axis: usize, cell: usize| {
                    self.limits[axis][0] + (cell as f64 + 0.5) * width[axis]
                };
                let (point, jacobian) = (self.map)(place(0, a), place(1, b));
                let mass = at(model, &point, None).0.exp() * jacobian * width[0] * width[1];
                total += mass;
                for i in 0..2 {
                    mean[i] += mass * point[i];
                    for j in 0..2 {
                        second[i][j] += mass * point[i] * point[j];
                    }
                }
                if let Some(parts) = &parts {
                    masses[parts.classify(&point)] += mass;
                }
            }
        }
        let mean: Vec<f64> = mean.iter().map(|m| m / total).collect();
        let covariance = Matrix::from_fn(2, 2, |i, j| second[i][j] / total - mean[i] * mean[j]);
        (total, Moments { mean, covariance }, masses.iter().map(|m| m / total).collect())
    }

    /// Checks the model's moments against the integral; returns ∫π and the masses of the parts.
    fn check(&self, model: &dyn Model<f64>, tolerance: f64) -> (f64, Vec<f64>) {
        let (total, found, masses) = self.integrate(model);
        let exact = model.exact_moments().unwrap();
        for i in 0..2 {
            let difference = exact.mean[i] - found.mean[i];
            assert!(difference.abs() < tolerance, "mean {i} is off by {difference:e}");
            for j in 0..2 {
                let difference = exact.covariance.row(i)[j] - found.covariance.row(i)[j];
                assert!(difference.abs() < tolerance, "covariance {i}, {j} off by {difference:e}");
            }
        }
        (total, masses)
    }
}

#[test]
fn tri_crescent_by_quadrature() {
    let grid = Quadrature { limits: [[-6.0, 6.0], [-5.0, 14.0]], cells: [800, 500], map: straight };
    let (total, shares) = grid.check(&TriCrescent, 1e-11);
    assert!((total - 2.020_137_926_386_410_3).abs() < 1e-12, "∫π = {total}");
    // A boundary that crosses cells limits the accuracy of the shares.
    assert!(shares.iter().all(|share| (share - 1.0 / 3.0).abs() < 1e-6), "{shares:?}");
    let moments = TriCrescent.exact_moments().unwrap();
    assert!((moments.covariance.row(0)[0] - 1.068_815_443_662_356_3).abs() < 1e-15);
    assert!((moments.mean[1] - 0.267_203_860_915_589_06).abs() < 1e-15);
    assert!((moments.covariance.row(1)[1] - 2.814_018_763_378_469_2).abs() < 1e-15);
}

#[test]
fn crescent_by_quadrature() {
    let grid = Quadrature { limits: [[-6.0, 6.0], [-4.0, 11.0]], cells: [800, 400], map: straight };
    grid.check(&Crescent, 1e-11);
}

#[test]
fn gaussian_by_quadrature() {
    let grid =
        Quadrature { limits: [[-9.0, 9.0], [-18.0, 18.0]], cells: [300, 300], map: straight };
    grid.check(&Gaussian::correlated(), 1e-11);
}

#[test]
fn mixture_by_quadrature() {
    let grid =
        Quadrature { limits: [[-11.0, 11.0], [-9.0, 11.0]], cells: [400, 400], map: straight };
    let mixture = GaussianMixture::default();
    let (total, shares) = grid.check(&mixture, 1e-10);
    assert!((total - std::f64::consts::TAU).abs() < 1e-11, "∫π = {total}");
    for (share, weight) in shares.iter().zip([0.5, 0.3, 0.2]) {
        assert!((share - weight).abs() < 1e-4, "a share is {share}, the weight {weight}");
    }
    assert_eq!(mixture.parts().unwrap().shares(), [0.5, 0.3, 0.2]);
}

#[test]
fn banana_by_quadrature() {
    // Straightened, so that the grid follows the bend.
    let grid = Quadrature {
        limits: [[-20.0, 20.0], [-9.0, 9.0]],
        cells: [400, 200],
        map: |x, n| ([x, n - 0.5 * (x * x - 4.0)], 1.0),
    };
    grid.check(&Banana::default(), 1e-10);
}

#[test]
fn ring_by_quadrature() {
    let grid = Quadrature { limits: [[-4.0, 4.0]; 2], cells: [400; 2], map: straight };
    grid.check(&Ring::default(), 1e-11);
    // Wide enough for the cut at 0 to matter.
    grid.check(&Ring::new(1.0, 0.8).unwrap(), 1e-11);
}

#[test]
fn funnel_by_quadrature() {
    // The grid narrows with the funnel; E eᵛ needs v far beyond 3 standard deviations.
    let grid = Quadrature {
        limits: [[-30.0, 40.0], [-9.0, 9.0]],
        cells: [500, 200],
        map: |v, n| ([v, (v / 2.0).exp() * n], (v / 2.0).exp()),
    };
    grid.check(&Funnel::default(), 1e-9);
}

/// Mean and covariance of the draws within 4 standard errors of the exact ones.
fn check_sample(name: &str, model: &impl Describe) {
    const COUNT: usize = 20_000;
    let exact = model.exact_moments().unwrap();
    let sample = model.exact_sample(COUNT, 5).unwrap();
    let dim = exact.mean.len();
    let check = |what: String, expected: f64, statistic: &dyn Fn(&[f64]) -> f64| {
        let values: Vec<f64> = (0..COUNT).map(|i| statistic(sample.row(i))).collect();
        let mean = values.iter().sum::<f64>() / COUNT as f64;
        let variance =
            values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (COUNT - 1) as f64;
        let error = (mean - expected) / (variance / COUNT as f64).sqrt();
        assert!(error.abs() < 4.0, "{name}: {what} is {mean}, {error} standard errors off");
    };
    for i in 0..dim {
        check(format!("mean {i}"), exact.mean[i], &|x| x[i]);
        for j in 0..=i {
            check(format!("covariance {i}, {j}"), exact.covariance.row(i)[j], &|x| {
                (x[i] - exact.mean[i]) * (x[j] - exact.mean[j])
            });
        }
    }
    if let Some(parts) = model.parts() {
        for (found, &share) in parts.shares_of(sample.as_ref()).iter().zip(parts.shares()) {
            let standard_error = (share * (1.0 - share) / COUNT as f64).sqrt();
            assert!((found - share).abs() < 4.0 * standard_error, "{name}: share {found}");
        }
        assert!((parts.shares().iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
    let longer = model.exact_sample(COUNT + 1, 5).unwrap();
    assert_eq!(longer.row(COUNT - 1), sample.row(COUNT - 1), "{name}: a sample extends");
    assert_ne!(model.exact_sample(1, 6).unwrap().row(0), sample.row(0), "{name}: the seed counts");
}

#[test]
fn samples_have_the_exact_moments() {
    check_sample("gaussian", &Gaussian::correlated());
    let shifted = Matrix::from_fn(3, 3, |i, j| if i == j { 2.0 } else { -0.5 });
    check_sample("shifted", &Gaussian::new(vec![1.0, -2.0, 3.0], shifted).unwrap());
    check_sample("autoregressive", &Gaussian::autoregressive(4, 0.8).unwrap());
    check_sample("ill-conditioned", &Gaussian::ill_conditioned(5, 30.0).unwrap());
    check_sample("mixture", &GaussianMixture::default());
    check_sample("tri-crescent", &TriCrescent);
    check_sample("crescent", &Crescent);
    check_sample("banana", &Banana::default());
    check_sample("ring", &Ring::default());
    check_sample("standard normal", &Isotropic::new(3).unwrap());
    check_sample("wide ring", &Ring::new(1.0, 0.8).unwrap());
    let regression = LinearRegression::<f64>::new(&table(60, false), None, 2.5, Some(1.0)).unwrap();
    check_sample("linear regression", &regression);
}

/// The funnel without its tails: v and xᵢe^(−v/2) are independent normals.
#[test]
fn funnel_samples_straighten_to_a_gaussian() {
    struct Straightened(Funnel);
    impl Describe for Straightened {
        fn parameter_names(&self) -> Vec<String> {
            self.0.parameter_names()
        }
        fn start(&self) -> steinflow_models::Start {
            self.0.start()
        }
        fn exact_moments(&self) -> Option<Moments> {
            let mut moments = self.0.exact_moments()?;
            for i in 1..moments.mean.len() {
                moments.covariance.row_mut(i)[i] = 1.0;
            }
            Some(moments)
        }
        fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
            let mut sample = self.0.exact_sample(count, seed)?;
            for i in 0..count {
                let sd = (sample.row(i)[0] / 2.0).exp();
                sample.row_mut(i)[1..].iter_mut().for_each(|x| *x /= sd);
            }
            Some(sample)
        }
    }
    check_sample("funnel", &Straightened(Funnel::new(4).unwrap()));
}

#[test]
fn windows_hold_nearly_all_of_a_plane_density() {
    let models: [(&str, &dyn Describe, f64); 7] = [
        ("gaussian", &Gaussian::correlated(), 0.99),
        ("mixture", &GaussianMixture::default(), 0.99),
        ("tri-crescent", &TriCrescent, 0.99),
        ("crescent", &Crescent, 0.99),
        ("banana", &Banana::default(), 0.98),
        ("ring", &Ring::default(), 0.99),
        ("funnel", &Funnel::default(), 0.9),
    ];
    for (name, model, share) in models {
        let window = model.window().expect(name);
        let sample = model.exact_sample(5_000, 2).expect(name);
        let inside = (0..sample.rows())
            .filter(|&i| {
                let inside = |x: f64, [low, high]: [f64; 2]| low <= x && x <= high;
                inside(sample.row(i)[0], window[0]) && inside(sample.row(i)[1], window[1])
            })
            .count();
        assert!(inside as f64 >= share * 5_000.0, "{name}: {inside} of 5000 are inside");
    }
    assert_eq!(Gaussian::standard(3).unwrap().window(), None);
    assert_eq!(Funnel::new(3).unwrap().window(), None);
}

#[test]
fn the_condition_number_is_what_was_asked_for() {
    let (dim, condition) = (50, 1e3);
    let covariance =
        Gaussian::ill_conditioned(dim, condition).unwrap().exact_moments().unwrap().covariance;
    // The waves are eigenvectors; the first and the last have the extreme variances.
    for (j, variance) in [(0, 1.0), (dim - 1, 1.0 / condition)] {
        let wave =
            |i: usize| (std::f64::consts::PI * (i as f64 + 0.5) * j as f64 / dim as f64).cos();
        for i in 0..dim {
            let row: f64 = (0..dim).map(|k| covariance.row(i)[k] * wave(k)).sum();
            assert!((row - variance * wave(i)).abs() < 1e-13, "wave {j}, row {i}");
        }
    }
    let trace: f64 = (0..dim).map(|i| covariance.row(i)[i]).sum();
    let variances: f64 = (0..dim).map(|j| condition.powf(-(j as f64) / 49.0)).sum();
    assert!((trace - variances).abs() < 1e-12);
}
