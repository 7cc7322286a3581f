//! Draws one picture of every kind: `cargo run --release -p steinflow-io --example gallery -- FOLDER`.

use std::path::Path;
use std::time::Instant;

use steinflow::Matrix;
use steinflow_io::plot::{Density, Groups, ParticlePlot};

/// Three crescents, one above the other.
fn tri_crescent(x: f64, y: f64) -> f64 {
    let crescent = |z: f64| (-x.powi(4) / 10.0 - 0.5 * (4.0 * (y - z) - x * x).powi(2)).exp();
    ((crescent(-2.0) + crescent(0.0) + crescent(2.0)) / 3.0).ln()
}

/// A number in [0, 1) that looks random, by the mixing of `SplitMix64`.
fn uniform(index: usize, coordinate: usize) -> f64 {
    let mut z = (index as u64 * 64 + coordinate as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Draws from the crescents by rejection.
fn rejection(count: usize) -> Matrix<f64> {
    let mut points = Matrix::zeros(count, 2);
    let (mut filled, mut tries) = (0, 0);
    while filled < count {
        let (x, y) = (7.0 * uniform(tries, 0) - 3.5, 8.5 * uniform(tries, 1) - 3.5);
        if uniform(tries, 2) < 2.9 * tri_crescent(x, y).exp() {
            points.row_mut(filled).copy_from_slice(&[x, y]);
            filled += 1;
        }
        tries += 1;
    }
    points
}

/// Correlated bell-shaped points in `dim` coordinates.
fn bells(count: usize, dim: usize) -> Matrix<f64> {
    let bell = |i: usize, j: usize| (0..4).map(|k| uniform(i, 4 * j + k)).sum::<f64>() - 2.0;
    Matrix::from_fn(count, dim, |i, j| bell(i, j) + if j > 0 { 0.8 * bell(i, 0) } else { 0.0 })
}

fn save(
    folder: &Path,
    name: &str,
    plot: &ParticlePlot<'_>,
) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let figure = plot.draw()?;
    let png = figure.png()?;
    let elapsed = start.elapsed();
    let svg = figure.svg();
    println!("{name}: {elapsed:?}, PNG {} bytes, SVG {} bytes", png.len(), svg.len());
    std::fs::write(folder.join(format!("{name}.png")), png)?;
    std::fs::write(folder.join(format!("{name}.svg")), svg)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "gallery".into());
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;

    let grid = Matrix::from_fn(161, 161, |i, j| {
        tri_crescent(j as f64 * 7.0 / 160.0 - 3.5, i as f64 * 8.5 / 160.0 - 3.5)
    });
    let plane = Density::Plane { x: (-3.5, 3.5), y: (-3.5, 5.0), log_density: grid.as_ref() };
    let names = ["x".to_string(), "y".to_string()];
    for count in [20, 100, 1000, 5000, 100_000] {
        let points = rejection(count);
        let caption = format!("sgrhmc-stein, {count} particles, 600 steps");
        let plot = ParticlePlot {
            points: points.as_ref(),
            names: &names,
            title: "tri-crescent",
            caption: &caption,
            density: Some(plane),
            groups: None,
        };
        save(folder, &format!("plane-{count}"), &plot)?;
    }

    let mut points = rejection(100);
    points.row_mut(0)[0] = 1e6;
    points.row_mut(1)[0] = f64::NAN;
    points.row_mut(2).copy_from_slice(&[5.0, -6.0]);
    let index: Vec<usize> = (0..100).map(|i| i % 3).collect();
    let group_names = ["chain 1", "chain 2", "chain 3"].map(String::from);
    let grouped = ParticlePlot {
        points: points.as_ref(),
        names: &names,
        title: "tri-crescent",
        caption: "three chains, one particle far out, one not finite, one outside the grid",
        density: Some(plane),
        groups: Some(Groups { index: &index, names: &group_names }),
    };
    save(folder, "plane-groups", &grouped)?;
    save(folder, "plane-bare", &ParticlePlot { density: None, groups: None, ..grouped })?;

    let ring = Matrix::from_fn(121, 121, |i, j| {
        let (x, y) = (j as f64 / 20.0 - 3.0, i as f64 / 20.0 - 3.0);
        -0.5 * ((x.hypot(y) - 2.0) / 0.25).powi(2) + 0.5 * x
    });
    let ring_points = Matrix::from_fn(60, 2, |i, j| {
        let angle = i as f64 / 60.0 * std::f64::consts::TAU;
        2.0 * if j == 0 { angle.cos() } else { angle.sin() }
    });
    let ring_density =
        Density::Plane { x: (-3.0, 3.0), y: (-3.0, 3.0), log_density: ring.as_ref() };
    let ring_plot = ParticlePlot {
        points: ring_points.as_ref(),
        names: &names,
        title: "ring",
        caption: "60 particles",
        density: Some(ring_density),
        groups: None,
    };
    save(folder, "plane-ring", &ring_plot)?;

    let curve: Vec<f64> = (0..201).map(|i| -1.5 * (f64::from(i) * 0.04 - 4.0).powi(2)).collect();
    for (name, count, with_curve) in [("line-curve", 500, true), ("line-bare", 30, false)] {
        let points = bells(count, 1);
        let caption = format!("svgd, {count} particles, 1000 steps");
        let line = Density::Line { limits: (-2.5, 2.5), log_density: &curve[38..163] };
        let plot = ParticlePlot {
            points: points.as_ref(),
            names: &names[..1],
            title: "one coordinate",
            caption: &caption,
            density: with_curve.then_some(line),
            groups: None,
        };
        save(folder, name, &plot)?;
    }

    let long_names: Vec<String> = ["intercept", "log_variance", "slope[1]", "slope[2]", "slope[3]"]
        .map(String::from)
        .to_vec();
    for (dim, count) in [(3, 100), (5, 1000), (4, 100_000)] {
        let points = bells(count, dim);
        let caption = format!("sghmc-blob, {count} particles, 2000 steps");
        let plot = ParticlePlot {
            points: points.as_ref(),
            names: &long_names[..dim],
            title: "regression",
            caption: &caption,
            density: None,
            groups: None,
        };
        save(folder, &format!("pairs-{dim}"), &plot)?;
    }

    // Centre and spread of coordinates whose tick labels are long.
    let scales = [(-1.0, 0.25), (1e-5, 2e-7), (12_345.6, 0.4), (-0.5, 0.004)];
    let mut points = bells(300, 4);
    for i in 0..300 {
        for (x, (centre, spread)) in points.row_mut(i).iter_mut().zip(scales) {
            *x = centre + spread * *x;
        }
    }
    let plot = ParticlePlot {
        points: points.as_ref(),
        names: &long_names[..4],
        title: "long labels",
        caption: "300 particles",
        density: None,
        groups: None,
    };
    save(folder, "pairs-long-labels", &plot)?;
    Ok(())
}
