//! Every regression against textbook formulas in the units of the table, differences, least squares,
//! quadrature and long runs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use steinflow::random::{Purpose, fill_standard_normal, stream};
use steinflow::run::{Auto, Samples};
use steinflow::{Matrix, Minibatch};
use steinflow_models::data::Table;
use steinflow_models::regression::LinearRegression;
use steinflow_models::{Describe, Model, ModelSpec, build};

use crate::support::{at, random_points};

/// Rows of two features on scales of their own, an exposure, and targets of every kind.
pub fn data(name: &str, rows: usize) -> PathBuf {
    let mut noise = Matrix::zeros(rows, 4);
    fill_standard_normal(&mut stream(5, Purpose::Start, 0, 0), noise.as_mut_slice());
    let mut text = "size,age,exposure,number,count,class,grade,answer\n".to_owned();
    for i in 0..rows {
        let n: &[f64] = noise.row(i);
        let (size, age) = (50.0 + 8.0 * n[0], 0.4 + 0.1 * n[1]);
        let eta = 0.8 * n[0] - 0.5 * n[1] + 0.7 * n[2];
        let count = (1.0 + eta.exp() * (1.0 + 0.5 * n[3]).abs() * 2.0).floor();
        let class =
            ["red", "green", "blue"][if eta > 0.5 { 0 } else { 1 + usize::from(n[3] > 0.0) }];
        let grade = if eta < -0.6 {
            1
        } else if eta < 0.7 {
            2
        } else {
            5
        };
        let answer = if eta > 0.0 { "yes" } else { "no" };
        let number = 300.0 + 20.0 * eta;
        let exposure = 0.3 * n[3];
        writeln!(text, "{size},{age},{exposure},{number},{count},{class},{grade},{answer}")
            .unwrap();
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A regression of one of the targets on both features.
pub fn spec(model: &str, data: &Path, prior: &str) -> ModelSpec {
    let target = match model {
        "linear-regression" | "student-t-regression" => "number",
        "logistic-regression" => "answer",
        "multinomial-regression" => "class",
        "ordinal-regression" => "grade",
        _ => "count",
    };
    let takes_prior = !["multinomial-regression", "ordinal-regression"].contains(&model);
    ModelSpec {
        data: Some(data.to_owned()),
        target: Some(target.to_owned()),
        features: Some(vec!["size".to_owned(), "age".to_owned()]),
        prior: takes_prior.then(|| prior.to_owned()),
        offset: (target == "count").then(|| "exposure".to_owned()),
        ..ModelSpec::named(model)
    }
}

const MODELS: [&str; 7] = [
    "linear-regression",
    "student-t-regression",
    "logistic-regression",
    "multinomial-regression",
    "ordinal-regression",
    "poisson-regression",
    "negative-binomial-regression",
];

fn all(data: &Path) -> Vec<ModelSpec> {
    MODELS
        .iter()
        .flat_map(|model| ["normal", "horseshoe"].map(|prior| spec(model, data, prior)))
        .collect()
}

#[test]
fn scores_are_the_gradients_of_the_log_densities() {
    let path = data("families-scores.csv", 60);
    all(&path).iter().for_each(check_scores);
}

/// Scores in both precisions are differences of log densities.
pub fn check_scores(spec: &ModelSpec) {
    let (wide, narrow) = (build::<f64>(spec).unwrap(), build::<f32>(spec).unwrap());
    let name = format!("{} {:?}", spec.name(), spec.prior);
    let points = random_points(10, wide.dim(), 0.7, 3);
    for i in 0..points.rows() {
        let rounded: Vec<f32> = points.row(i).iter().map(|&x| x as f32).collect();
        let mut point: Vec<f64> = rounded.iter().map(|&x| f64::from(x)).collect();
        let (value, score) = at(&*wide, &point, None);
        let (value_f32, score_f32) = at(&*narrow, &rounded, None);
        assert!((f64::from(value_f32) - value).abs() < 1e-4 * value.abs(), "{name}");
        let scale = score.iter().fold(1.0_f64, |scale, s| scale.max(s.abs()));
        for j in 0..point.len() {
            let (centre, step) = (point[j], 1e-5);
            point[j] = centre + step;
            let above = at(&*wide, &point, None).0;
            point[j] = centre - step;
            let below = at(&*wide, &point, None).0;
            point[j] = centre;
            let slope = (above - below) / (2.0 * step);
            let found = (score[j], f64::from(score_f32[j]));
            assert!((slope - found.0).abs() < 1e-6 * scale, "{name}, {j}: {found:?}, {slope}");
            assert!((slope - found.1).abs() < 1e-3 * scale, "{name}, {j}: {found:?}, {slope}");
        }
    }
}

#[test]
fn what_is_shown_leads_back() {
    let path = data("families-units.csv", 40);
    all(&path).iter().for_each(check_units);
}

/// The way from θ to what is shown, and back.
pub fn check_units(spec: &ModelSpec) {
    let model = build::<f64>(spec).unwrap();
    let (dim, units) = (model.dim(), model.units().unwrap());
    let theta = random_points(5, dim, 0.8, 4);
    let shown = units.show(&theta);
    assert_ne!(shown, theta);
    let back = units.hide(&shown);
    for (a, b) in back.as_slice().iter().zip(theta.as_slice()) {
        assert!((a - b).abs() < 1e-9, "{}: {a} and {b}", spec.name());
    }
    assert_eq!(model.parameter_names().len(), dim);
}

/// log p(y) by the textbook, from parameters as they are shown and a row of the table.
pub fn textbook(model: &str, p: &[f64], x: &[f64], exposure: f64, y: f64) -> f64 {
    let eta = |b: &[f64]| b[0] + b[1] * x[0] + b[2] * x[1];
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    match model {
        "linear-regression" => {
            let z = (y - eta(p)) / p[3];
            -0.5 * z * z - p[3].ln()
        }
        "student-t-regression" => {
            let (noise, degrees) = (p[3], p[4]);
            let z = (y - eta(p)) / noise;
            let power = f64::midpoint(degrees, 1.0);
            log_gamma(power)
                - log_gamma(degrees / 2.0)
                - 0.5 * degrees.ln()
                - noise.ln()
                - power * (1.0 + z * z / degrees).ln()
        }
        "logistic-regression" => {
            let probability = logistic(eta(p));
            if y == 1.0 { probability.ln() } else { (1.0 - probability).ln() }
        }
        "multinomial-regression" => {
            let weights = [1.0, eta(p).exp(), eta(&p[3..]).exp()];
            (weights[y as usize] / weights.iter().sum::<f64>()).ln()
        }
        "ordinal-regression" => {
            let eta = p[0] * x[0] + p[1] * x[1];
            let below = |k: usize| match k {
                0 => 0.0,
                3 => 1.0,
                k => logistic(p[1 + k] - eta),
            };
            let class = match y as u32 {
                1 => 0,
                2 => 1,
                _ => 2,
            };
            (below(class + 1) - below(class)).ln()
        }
        "poisson-regression" => {
            let eta = eta(p) + exposure;
            y * eta - eta.exp()
        }
        _ => {
            let (mean, r) = ((eta(p) + exposure).exp(), 1.0 / p[3]);
            log_gamma(y + r) - log_gamma(r)
                + r * (r / (r + mean)).ln()
                + y * (mean / (r + mean)).ln()
        }
    }
}

/// log Γ(x) by Stirling's series, far up.
fn log_gamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < 30.0 {
        below += x.ln();
        x += 1.0;
    }
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - below
}

/// log p(θ) of a normal prior, up to a constant.
pub fn prior(model: &str, theta: &[f64]) -> f64 {
    let coefficients = match model {
        "multinomial-regression" => 6,
        "ordinal-regression" => 2,
        _ => 3,
    };
    let (own, extras) = theta.split_at(coefficients);
    let exponential = |x: f64| x - x.exp();
    let of_extras = match (model, extras) {
        ("student-t-regression", &[noise, degrees]) => {
            exponential(noise) + 2.0 * degrees - 0.1 * degrees.exp()
        }
        ("ordinal-regression", &[first, gap]) => -first * first / 50.0 + exponential(gap),
        (_, &[only]) => exponential(only),
        _ => 0.0,
    };
    of_extras - own.iter().map(|x| x * x).sum::<f64>() / 12.5
}

#[test]
fn densities_are_those_of_the_textbook_in_units_of_the_table() {
    const ROWS: usize = 50;
    let path = data("families-textbook.csv", ROWS);
    let choices = steinflow_models::data::Choices::default();
    let table = steinflow_models::data::read_table(&path, None, &choices).unwrap().0;
    let column = |name: &str| {
        let j = table.position(Some(name)).unwrap();
        (0..ROWS).map(|i| table.values().row(i)[j]).collect::<Vec<f64>>()
    };
    let (size, age, exposure) = (column("size"), column("age"), column("exposure"));
    for name in MODELS {
        let spec = spec(name, &path, "normal");
        let model = build::<f64>(&spec).unwrap();
        let y = match name {
            // Indicators against the first level, `blue`.
            "multinomial-regression" => {
                let (green, red) = (column("class[green]"), column("class[red]"));
                green.iter().zip(&red).map(|(green, red)| green + 2.0 * red).collect()
            }
            _ => column(spec.target.as_deref().unwrap()),
        };
        let units = model.units().unwrap();
        let theta = random_points(4, model.dim(), 0.6, 8);
        let shown = units.show(&theta);
        let excess: Vec<f64> = (0..theta.rows())
            .map(|i| {
                let terms = (0..ROWS).map(|row| {
                    textbook(name, shown.row(i), &[size[row], age[row]], exposure[row], y[row])
                });
                let value = at(&*model, theta.row(i), None).0;
                value - terms.sum::<f64>() - prior(name, theta.row(i))
            })
            .collect();
        // Constants apart.
        assert!(excess.iter().all(|x| (x - excess[0]).abs() < 1e-8), "{name}: {excess:?}");
        // Wherever a model keeps them, the rows of a minibatch are those that it names.
        let of_rows = |indices: &[usize]| {
            let terms = indices.iter().map(|&row| {
                textbook(name, shown.row(0), &[size[row], age[row]], exposure[row], y[row])
            });
            let batch = Minibatch { indices: indices.to_vec(), scale: 1.0 };
            let value = at(&*model, theta.row(0), Some(&batch)).0;
            (value - terms.sum::<f64>()) / indices.len() as f64
        };
        let constant = of_rows(&[0]) - of_rows(&[0, 0]);
        for rows in [vec![1], vec![17], vec![30, 2], vec![49, 5, 22, 5]] {
            let (count, found) = (rows.len() as f64, of_rows(&rows));
            let expected = of_rows(&[0]) + 2.0 * constant * (1.0 / count - 1.0);
            assert!((found - expected).abs() < 1e-9, "{name}, {rows:?}: {found} and {expected}");
        }
    }
}

/// The mean and standard deviation of every parameter as it is shown, by a long run.
pub fn long_run(model: &dyn Model<f64>) -> Vec<(f64, f64)> {
    let mut draws = Samples::of_ensemble();
    let outcome = Auto::new(model).observe(draws.observer()).run().unwrap();
    let effective = outcome.report.unwrap().effective;
    assert!(effective >= 2000.0, "{effective}");
    let theta = draws.theta();
    let shown = model.units().unwrap().show(&theta);
    let count = shown.rows() as f64;
    let moments = (0..model.dim()).map(|j| {
        let mean = (0..shown.rows()).map(|i| shown.row(i)[j]).sum::<f64>() / count;
        let square = (0..shown.rows()).map(|i| (shown.row(i)[j] - mean).powi(2)).sum::<f64>();
        (mean, (square / count).sqrt())
    });
    moments.collect()
}

/// Solves A x = b by elimination.
pub fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let dim = b.len();
    for i in 0..dim {
        for k in i + 1..dim {
            let factor = a[k][i] / a[i][i];
            for j in i..dim {
                a[k][j] -= factor * a[i][j];
            }
            b[k] -= factor * b[i];
        }
    }
    for i in (0..dim).rev() {
        let rest: f64 = (i + 1..dim).map(|j| a[i][j] * b[j]).sum();
        b[i] = (b[i] - rest) / a[i][i];
    }
    b
}

/// Under a wide prior a regression is least squares: coefficients, their standard errors, the noise.
#[test]
fn a_wide_prior_gives_least_squares_in_units_of_the_table() {
    const ROWS: usize = 300;
    let path = data("families-least-squares.csv", ROWS);
    let wide = ModelSpec { prior_sd: Some(100.0), ..spec("linear-regression", &path, "normal") };
    let found = long_run(&*build::<f64>(&wide).unwrap());
    let choices = steinflow_models::data::Choices::default();
    let table = steinflow_models::data::read_table(&path, None, &choices).unwrap().0;
    let rows: Vec<([f64; 3], f64)> = (0..ROWS)
        .map(|i| {
            let row = table.values().row(i);
            ([1.0, row[0], row[1]], row[3])
        })
        .collect();
    let gram: Vec<Vec<f64>> = (0..3)
        .map(|i| (0..3).map(|j| rows.iter().map(|(x, _)| x[i] * x[j]).sum()).collect())
        .collect();
    let moment = (0..3).map(|i| rows.iter().map(|(x, y)| x[i] * y).sum()).collect();
    let estimate = solve(gram.clone(), moment);
    let residual =
        |(x, y): &([f64; 3], f64)| y - x.iter().zip(&estimate).map(|(x, b)| x * b).sum::<f64>();
    let variance = rows.iter().map(|row| residual(row).powi(2)).sum::<f64>() / (ROWS as f64 - 3.0);
    for j in 0..3 {
        let mut unit = vec![0.0; 3];
        unit[j] = 1.0;
        let error = (variance * solve(gram.clone(), unit)[j]).sqrt();
        let (mean, sd) = found[j];
        // 2000 effective draws: 0.1 and 6 % are about four of their standard errors.
        assert!((mean - estimate[j]).abs() < 0.1 * error, "{j}: {mean} and {}", estimate[j]);
        assert!((sd / error - 1.0).abs() < 0.06, "{j}: {sd} and {error}");
    }
    let noise = variance.sqrt();
    let of_noise = noise / (2.0 * (ROWS as f64 - 3.0)).sqrt();
    assert!((found[3].0 - noise).abs() < 0.2 * of_noise, "{:?} and {noise}", found[3]);
    assert!((found[3].1 / of_noise - 1.0).abs() < 0.06, "{:?} and {of_noise}", found[3]);
}

/// Moments of θ by a grid around the mode, for two or three coordinates.
pub fn quadrature(
    model: &dyn Model<f64>,
    centre: &[f64],
    width: f64,
    side: i32,
) -> Vec<(f64, f64)> {
    let dim = centre.len();
    let places: Vec<Vec<f64>> = (0..(2 * side + 1).pow(dim as u32))
        .map(|mut k| {
            let place = |c: &f64| {
                let step = k % (2 * side + 1) - side;
                k /= 2 * side + 1;
                c + width * f64::from(step) / f64::from(side)
            };
            centre.iter().map(place).collect()
        })
        .collect();
    let theta = Matrix::from_fn(places.len(), dim, |i, j| places[i][j]);
    let (mut values, mut score) = (vec![0.0; places.len()], Matrix::zeros(places.len(), dim));
    model.evaluate(theta.as_ref(), None, &mut values, score.as_mut()).unwrap();
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shown = model.units().unwrap().show(&theta);
    let total: f64 = values.iter().map(|v| (v - top).exp()).sum();
    (0..dim)
        .map(|j| {
            let moment = |of: &dyn Fn(f64) -> f64| {
                let terms = values.iter().enumerate();
                terms.map(|(i, v)| (v - top).exp() / total * of(shown.row(i)[j])).sum::<f64>()
            };
            let mean = moment(&|x| x);
            (mean, moment(&|x| (x - mean).powi(2)).sqrt())
        })
        .collect()
}

/// The mode, by Newton's method on differences of the score.
pub fn mode(model: &dyn Model<f64>) -> Vec<f64> {
    let mut theta = model.start().mean;
    for _ in 0..50 {
        let (_, score) = at(model, &theta, None);
        let hessian: Vec<Vec<f64>> = (0..theta.len())
            .map(|j| {
                let mut near = theta.clone();
                near[j] += 1e-5;
                let (_, there) = at(model, &near, None);
                there.iter().zip(&score).map(|(a, b)| (b - a) / 1e-5).collect()
            })
            .collect();
        let step = solve(hessian, score);
        let length = step.iter().map(|x| x * x).sum::<f64>().sqrt();
        let damping = (0.5 / length).min(1.0);
        theta.iter_mut().zip(step).for_each(|(x, s)| *x += damping * s);
    }
    theta
}

#[test]
fn long_runs_have_the_moments_of_quadrature() {
    let path = data("families-quadrature.csv", 120);
    for (name, side) in [
        ("logistic-regression", 60),
        ("poisson-regression", 60),
        ("negative-binomial-regression", 24),
        ("ordinal-regression", 24),
        ("linear-regression", 24),
    ] {
        let features = Some(vec!["size".to_owned()]);
        let one = ModelSpec { features, ..spec(name, &path, "normal") };
        let model = build::<f64>(&one).unwrap();
        let exact = quadrature(&*model, &mode(&*model), 1.6, side);
        for (j, (found, exact)) in long_run(&*model).iter().zip(&exact).enumerate() {
            assert!((found.0 - exact.0).abs() < 0.1 * exact.1, "{name}, {j}: {found:?}, {exact:?}");
            assert!((found.1 / exact.1 - 1.0).abs() < 0.06, "{name}, {j}: {found:?}, {exact:?}");
        }
    }
}

#[test]
fn a_multinomial_regression_of_two_classes_is_a_logistic_one() {
    let path = data("families-two.csv", 50);
    let logistic = spec("logistic-regression", &path, "normal");
    let multinomial =
        ModelSpec { target: logistic.target.clone(), ..spec("multinomial-regression", &path, "") };
    let models = [build::<f64>(&logistic).unwrap(), build::<f64>(&multinomial).unwrap()];
    let theta = [0.3, -0.8, 0.5];
    let [(a, one), (b, other)] = models.map(|model| at(&*model, &theta, None));
    assert!((a - b).abs() < 1e-10 && one.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-10));
}

/// The horseshoe finds the one feature of many that matters, and keeps the others near 0.
#[test]
fn a_horseshoe_shrinks_what_does_not_matter() {
    let mut text = "a,b,c,d,e,f,g,h,y\n".to_owned();
    let noise = random_points(60, 9, 1.0, 21);
    for i in 0..noise.rows() {
        let (features, rest) = noise.row(i).split_at(8);
        for x in features {
            write!(text, "{x},").unwrap();
        }
        writeln!(text, "{}", 2.0 * features[3] + rest[0]).unwrap();
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("families-horseshoe.csv");
    std::fs::write(&path, text).unwrap();
    let means = |prior: &str| {
        let prior = Some(prior.to_owned());
        let spec =
            ModelSpec { data: Some(path.clone()), prior, ..ModelSpec::named("linear-regression") };
        long_run(&*build::<f64>(&spec).unwrap())
    };
    let (plain, shrunk) = (means("normal"), means("horseshoe"));
    let idle = |moments: &[(f64, f64)]| {
        (1..9).filter(|&j| j != 4).map(|j| moments[j].0.powi(2) + moments[j].1.powi(2)).sum::<f64>()
    };
    assert!((shrunk[4].0 - 2.0).abs() < 0.45, "{:?}", shrunk[4]);
    assert!(idle(&shrunk) < 0.6 * idle(&plain), "{} and {}", idle(&shrunk), idle(&plain));
}

#[test]
fn predictions_are_those_of_the_line() {
    let table =
        Table::from_reader("x,y\n1,3\n2,5.5\n4,8\n5,11.5\n".as_bytes(), "line.csv").unwrap();
    let model = LinearRegression::<f64>::new(&table, None, 2.5, None).unwrap();
    let fitted = model.fitted().unwrap();
    assert_eq!(fitted.parameters(), ["intercept", "x", "noise"]);
    // 1 + 2x ± 0.5, and 3 + 2x ± 0.5.
    let parameters = Matrix::from_fn(4000, 3, |i, j| [[1.0, 2.0, 0.5], [3.0, 2.0, 0.5]][i % 2][j]);
    let rows = fitted.predict(&parameters, &table).unwrap();
    for (row, x) in rows.iter().zip([1.0, 2.0, 4.0, 5.0]) {
        assert!((row.mean - (2.0 + 2.0 * x)).abs() < 1e-9, "{}", row.mean);
        assert!((row.sd - 1.25_f64.sqrt()).abs() < 1e-9, "{}", row.sd);
        // Four standard errors of a median between two humps, where the density is 0.108.
        assert!((row.quantile(0.5) - row.mean).abs() < 0.3, "{}", row.quantile(0.5));
        assert!(row.draws.iter().all(|y| (y - row.mean).abs() < 4.0));
    }
    let density = |z: f64| (-0.5 * (z / 0.5) * (z / 0.5)).exp() / (0.5 * 2.506_628_274_631);
    let expected = f64::midpoint(density(3.0 - 3.0), density(3.0 - 5.0)).ln();
    assert!((rows[0].log_density.unwrap() - expected).abs() < 1e-6);
}
