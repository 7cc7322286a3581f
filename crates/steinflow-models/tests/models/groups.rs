//! Rows of groups against textbook formulas, differences, and quadrature over the standard deviation
//! between groups, given which everything is normal.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use steinflow::{Matrix, Minibatch};
use steinflow_models::data::read_new_rows;
use steinflow_models::{ModelSpec, build};

use crate::families::{check_scores, check_units, long_run};
use crate::support::{at, random_points};

/// `rows` pupils of each of six schools, which differ by `between` in level and slope, with targets of
/// every kind.
pub fn data(name: &str, rows: usize, between: f64) -> PathBuf {
    let mut text = "hours,school,score,passed,books,grade\n".to_owned();
    let (noise, schools) = (random_points(6 * rows, 2, 1.0, 31), random_points(6, 2, between, 32));
    for i in 0..6 * rows {
        let (school, n) = (["A", "B", "C", "D", "E", "F"][i % 6], noise.row(i));
        let (level, slope) = (schools.row(i % 6)[0], schools.row(i % 6)[1]);
        let eta = level + (0.8 + slope) * n[0] + 0.5 * n[1];
        let (hours, score) = (20.0 + 5.0 * n[0], 300.0 + 40.0 * eta);
        let (passed, books) = (if eta > 0.2 { "yes" } else { "no" }, (2.0 * eta.exp()).floor());
        let grade = if eta > 0.7 { 2 } else { i32::from(eta > -0.4) };
        writeln!(text, "{hours},{school},{score},{passed},{books},{grade}").unwrap();
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn words(list: &str) -> Option<Vec<String>> {
    Some(list.split_whitespace().map(str::to_owned).collect())
}

pub fn spec(model: &str, target: &str, data: &Path, slopes: bool) -> ModelSpec {
    ModelSpec {
        data: Some(data.to_owned()),
        target: Some(target.to_owned()),
        features: words("hours"),
        groups: words("school"),
        slopes: slopes.then(|| words("hours")).flatten(),
        ..ModelSpec::named(model)
    }
}

const MODELS: [(&str, &str); 6] = [
    ("linear-regression", "score"),
    ("student-t-regression", "score"),
    ("logistic-regression", "passed"),
    ("ordinal-regression", "grade"),
    ("poisson-regression", "books"),
    ("negative-binomial-regression", "books"),
];

#[test]
fn scores_and_units_fit_for_every_family() {
    // Few rows that differ little, and many that differ much: non-centred and centred.
    for (name, rows, between) in [("few.csv", 4, 0.1), ("many.csv", 30, 2.0)] {
        let path = data(&format!("groups-{name}"), rows, between);
        for (model, target) in MODELS {
            check_scores(&spec(model, target, &path, true));
            check_units(&spec(model, target, &path, true));
        }
    }
    let path = data("groups-horseshoe.csv", 5, 0.5);
    let prior = Some("horseshoe".to_owned());
    check_scores(&ModelSpec { prior, ..spec("linear-regression", "score", &path, true) });
}

#[test]
fn densities_are_those_of_the_textbook_in_units_of_the_table() {
    // A group that is centred adds −log τ to log p(u | τ).
    for (name, rows, between, centred) in [("a.csv", 4, 0.1, 0.0), ("b.csv", 30, 2.0, 6.0)] {
        let path = data(&format!("groups-textbook-{name}"), rows, between);
        let model = build::<f64>(&spec("linear-regression", "score", &path, true)).unwrap();
        let names = model.parameter_names();
        assert_eq!(names[..5], ["intercept", "hours", "sd[school]", "school[A]", "school[B]"]);
        assert_eq!(names[9..11], ["sd[school: hours]", "school[A]: hours"]);
        let table: Vec<(f64, usize, f64)> = std::fs::read_to_string(&path)
            .unwrap()
            .lines()
            .skip(1)
            .map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                let school = "ABCDEF".find(cells[1]).unwrap();
                (cells[0].parse().unwrap(), school, cells[2].parse().unwrap())
            })
            .collect();
        let mean = table.iter().map(|row| row.0).sum::<f64>() / table.len() as f64;
        let theta = random_points(5, model.dim(), 0.6, 8);
        let shown = model.units().unwrap().show(&theta);
        let excess: Vec<f64> = (0..theta.rows())
            .map(|i| {
                let (p, own) = (shown.row(i), theta.row(i));
                let noise = p[names.len() - 1];
                let likelihood = table.iter().map(|&(hours, school, score)| {
                    let line =
                        p[0] + p[1] * hours + p[3 + school] + p[10 + school] * (hours - mean);
                    -0.5 * ((score - line) / noise).powi(2) - noise.ln()
                });
                let effects = [2, 9].map(|first: usize| {
                    let squares = (1..7).map(|j| (p[first + j] / p[first]).powi(2)).sum::<f64>();
                    -0.5 * squares - centred * own[first]
                });
                let exponential = [2, 9, names.len() - 1].map(|j: usize| own[j] - own[j].exp());
                let coefficients = -(own[0] * own[0] + own[1] * own[1]) / 12.5;
                let prior = effects.iter().chain(&exponential).sum::<f64>() + coefficients;
                at(&*model, own, None).0 - likelihood.sum::<f64>() - prior
            })
            .collect();
        assert!(excess.iter().all(|x| (x - excess[0]).abs() < 1e-7), "{name}: {excess:?}");
    }
}

#[test]
fn a_minibatch_of_all_rows_is_the_whole() {
    let path = data("groups-batch.csv", 5, 0.5);
    let model = build::<f64>(&spec("logistic-regression", "passed", &path, true)).unwrap();
    let theta = random_points(1, model.dim(), 0.5, 2);
    let whole = at(&*model, theta.row(0), None);
    let indices = (0..30).rev().collect();
    let batch = at(&*model, theta.row(0), Some(&Minibatch { indices, scale: 1.0 }));
    assert!((whole.0 - batch.0).abs() < 1e-10);
    assert!(whole.1.iter().zip(&batch.1).all(|(a, b)| (a - b).abs() < 1e-10));
}

/// Mean and sd of the intercept μ, the sd τ between groups, and the effects uⱼ, where the mean yⱼ of a group
/// has the known error eⱼ: given τ all is normal, and τ is summed over. Priors are those of targets with
/// standard deviation `unit` about `centre`.
fn exact(groups: &[(f64, f64)], centre: f64, unit: f64) -> Vec<(f64, f64)> {
    let prior = 1.0 / (2.5 * unit).powi(2);
    let mut sums = vec![(0.0, 0.0); 2 + groups.len()];
    let mut total = 0.0;
    for k in 0..20_000 {
        let tau = unit * (-14.0 + 18.0 * f64::from(k) / 20_000.0_f64).exp();
        let weights: Vec<f64> = groups.iter().map(|(_, e)| 1.0 / (e * e + tau * tau)).collect();
        let precision = prior + weights.iter().sum::<f64>();
        let moment: f64 = groups.iter().zip(&weights).map(|((y, _), w)| w * (y - centre)).sum();
        let mean = moment / precision;
        let misfit: f64 =
            groups.iter().zip(&weights).map(|((y, _), w)| w * (y - centre - mean).powi(2)).sum();
        let log = 0.5 * weights.iter().map(|w| w.ln()).sum::<f64>()
            - 0.5 * (misfit + prior * mean * mean + precision.ln())
            - tau / unit
            + tau.ln();
        let weight = log.exp();
        total += weight;
        let mut add = |j: usize, mean: f64, variance: f64| {
            sums[j].0 += weight * mean;
            sums[j].1 += weight * (variance + mean * mean);
        };
        add(0, centre + mean, 1.0 / precision);
        add(1, tau, 0.0);
        for (j, &(y, e)) in groups.iter().enumerate() {
            // u | μ, τ ~ N(B (y − μ), B e²) with B = τ²/(τ² + e²).
            let share = tau * tau / (tau * tau + e * e);
            let variance = share * e * e + share * share / precision;
            add(2 + j, share * (y - centre - mean), variance);
        }
    }
    let moments = sums.iter().map(|(a, b)| (a / total, (b / total - (a / total).powi(2)).sqrt()));
    moments.collect()
}

/// 2000 effective draws: 0.1 and 6 % are about four of their standard errors.
fn compare(spec: &ModelSpec, exact: &[(f64, f64)]) {
    let model = build::<f64>(spec).unwrap();
    let names = model.parameter_names();
    for ((found, exact), name) in long_run(&*model).iter().zip(exact).zip(&names) {
        assert!((found.0 - exact.0).abs() < 0.1 * exact.1, "{name}: {found:?}, {exact:?}");
        assert!((found.1 / exact.1 - 1.0).abs() < 0.06, "{name}: {found:?}, {exact:?}");
    }
}

#[test]
fn eight_schools_are_those_of_quadrature() {
    let spec = ModelSpec {
        data: Some("eight-schools".into()),
        groups: words("school"),
        noise_column: Some("error".to_owned()),
        ..ModelSpec::named("linear-regression")
    };
    let schools: [(f64, f64); 8] = [
        (28.0, 15.0),
        (8.0, 10.0),
        (-3.0, 16.0),
        (7.0, 11.0),
        (-1.0, 9.0),
        (1.0, 11.0),
        (18.0, 10.0),
        (12.0, 18.0),
    ];
    let centre = schools.iter().map(|(y, _)| y / 8.0).sum::<f64>();
    let unit = schools.iter().map(|(y, _)| (y - centre).powi(2) / 8.0).sum::<f64>().sqrt();
    compare(&spec, &exact(&schools, centre, unit));
}

#[test]
fn groups_of_many_rows_are_those_of_quadrature() {
    const ROWS: usize = 40;
    let path = data("groups-balanced.csv", ROWS, 0.7);
    let mut spec = spec("linear-regression", "score", &path, false);
    // No feature, and a noise that is known.
    (spec.features, spec.noise_sd) = (Some(Vec::new()), Some(30.0));
    let text = std::fs::read_to_string(&path).unwrap();
    let scores: Vec<f64> =
        text.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().parse().unwrap()).collect();
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let centre = mean(&scores);
    let unit = mean(&scores.iter().map(|y| (y - centre).powi(2)).collect::<Vec<_>>()).sqrt();
    let error = 30.0 / (ROWS as f64).sqrt();
    let group = |j| (mean(&scores.iter().skip(j).step_by(6).copied().collect::<Vec<_>>()), error);
    compare(&spec, &exact(&(0..6).map(group).collect::<Vec<_>>(), centre, unit));
}

#[test]
fn a_group_that_is_new_is_any_group() {
    let path = data("groups-new.csv", 5, 0.5);
    let model = build::<f64>(&spec("linear-regression", "score", &path, true)).unwrap();
    let fitted = model.fitted().unwrap();
    let new = path.with_file_name("groups-new-rows.csv");
    std::fs::write(&new, "school,hours\nB,22\nZ,22\n").unwrap();
    let table = read_new_rows(&new, None, fitted.recipe()).unwrap();
    let names = fitted.parameters();
    // 10 + 2·hours, B is 5 higher and steeper by 0.5 about the mean; groups differ by 3 and 0.1.
    let value = |name: &str| match name {
        "intercept" => 10.0,
        "hours" => 2.0,
        "school[B]" => 5.0,
        "school[B]: hours" => 0.5,
        "sd[school]" => 3.0,
        "sd[school: hours]" => 0.1,
        "noise" => 4.0,
        _ => 0.0,
    };
    let parameters = Matrix::from_fn(20_000, names.len(), |_, j| value(&names[j]));
    let rows = fitted.predict(&parameters, &table).unwrap();
    let hours = {
        let text = std::fs::read_to_string(&path).unwrap();
        let own = |line: &str| line.split(',').next().unwrap().parse::<f64>().unwrap();
        text.lines().skip(1).map(own).sum::<f64>() / 30.0
    };
    let steep = 22.0 - hours;
    assert!((rows[0].mean - (59.0 + 0.5 * steep)).abs() < 1e-9, "{}", rows[0].mean);
    assert!((rows[0].sd - 4.0).abs() < 1e-9, "{}", rows[0].sd);
    let sd = (16.0 + 9.0 + (0.1 * steep).powi(2)).sqrt();
    // Four standard errors of 20 000 draws.
    assert!((rows[1].mean - 54.0).abs() < 4.0 * 3.1 / 141.0, "{}", rows[1].mean);
    assert!((rows[1].sd / sd - 1.0).abs() < 0.02, "{} and {sd}", rows[1].sd);
}

#[test]
fn what_cannot_be_grouped_is_said() {
    let path = data("groups-wrong.csv", 3, 0.5);
    let whole = spec("linear-regression", "score", &path, false);
    let alone = path.with_file_name("groups-alone.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    let of_a = |line: &&str| !['B', 'C', 'D', 'E', 'F'].iter().any(|&s| line.contains(s));
    std::fs::write(&alone, text.lines().filter(of_a).collect::<Vec<_>>().join("\n")).unwrap();
    for (spec, expected) in [
        (ModelSpec { groups: words("shool"), ..whole.clone() }, "did you mean `school`?"),
        (ModelSpec { slopes: words("hour"), ..whole.clone() }, "did you mean `hours`?"),
        (ModelSpec { groups: None, slopes: words("hours"), ..whole.clone() }, "`--groups`"),
        (ModelSpec { data: Some(alone), ..whole.clone() }, "all rows are of the group `A`"),
        (
            ModelSpec { noise_column: Some("hours".into()), noise_sd: Some(1.0), ..whole.clone() },
            "column already",
        ),
        (
            ModelSpec { noise_column: Some("books".into()), ..whole.clone() },
            "standard deviation above 0, found 0",
        ),
    ] {
        let error = build::<f64>(&spec).err().unwrap().to_string();
        assert!(error.contains(expected), "`{expected}` is not in: {error}");
    }
}
