//! How time and memory of a velocity grow with particles and coordinates.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use steinflow::dynamics::{Langevin, THETA};
use steinflow::field::Stein;
use steinflow::kernel::Kernel;
use steinflow::target::PerParticle;
use steinflow::{Matrix, System};
use steinflow_io::plot::{Key, Layer, Mark, Panel, Panels};

use crate::{Result, inputs};

/// One measurement.
struct Point {
    particles: usize,
    dim: usize,
    seconds: f64,
    /// What the process took at most beyond what it had, over the size of the particles themselves.
    copies: Option<f64>,
}

const COORDINATES: [usize; 4] = [2, 16, 64, 256];

/// Measures, writes `scaling.csv` and draws `scaling.png`.
pub fn run(out: &Path, quick: bool) -> Result<()> {
    let most: usize = if quick { 4_096 } else { 65_536 };
    let mut points = Vec::new();
    for dim in COORDINATES {
        for power in 6..=16 {
            let particles = 1 << power;
            // A few seconds at most for each.
            if particles <= most && (particles * particles) as f64 * (dim as f64) < 1.2e12 {
                eprintln!("scaling: {particles} particles in {dim} dimensions …");
                points.push(measure(particles, dim)?);
            }
        }
    }
    let mut csv = String::from("particles,coordinates,seconds,copies\n");
    for Point { particles, dim, seconds, copies } in &points {
        let copies = copies.map_or(String::new(), |copies| format!("{copies:.1}"));
        let _ = writeln!(csv, "{particles},{dim},{seconds:e},{copies}");
    }
    fs::write(out.join("scaling.csv"), csv)?;
    draw(&points, out)
}

/// The velocity of SVGD with the median rule; the target is a Gaussian, whose score costs nothing.
fn measure(particles: usize, dim: usize) -> Result<Point> {
    let gaussian = PerParticle::new(dim, |theta: &[f32], score: &mut [f32]| {
        for (s, x) in score.iter_mut().zip(theta) {
            *s = -x;
        }
        0.0
    });
    let theta = inputs::normal(particles, dim, 1.0, 8);
    let before = reset_peak();
    let mut system =
        System::new(gaussian, Langevin::new(), Stein::new(Kernel::default()), &theta, 0)?;
    let velocity = |system: &mut System<'_, f32>| {
        rayon::scope(|_| system.velocity(&[THETA])).map(std::hint::black_box)
    };
    velocity(&mut system)?;
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let (begun, mut count) = (Instant::now(), 0.0);
        while count == 0.0 || begun.elapsed().as_secs_f64() < 0.1 {
            velocity(&mut system)?;
            count += 1.0;
        }
        best = best.min(begun.elapsed().as_secs_f64() / count);
    }
    let size = (particles * dim * size_of::<f32>()) as f64;
    // Smaller ones drown in what the allocator keeps.
    let copies = before.zip(peak()).filter(|_| size > 4e6).map(|(a, b)| (b - a) / size);
    Ok(Point { particles, dim, seconds: best, copies })
}

/// Forgets the most memory that the process has had, and returns what it has now, in bytes; Linux only.
fn reset_peak() -> Option<f64> {
    fs::write("/proc/self/clear_refs", "5").ok()?;
    peak()
}

/// The most memory that the process has had, in bytes.
fn peak() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(1024.0 * kilobytes)
}

fn draw(points: &[Point], out: &Path) -> Result<()> {
    let lines: Vec<Matrix<f64>> = COORDINATES
        .iter()
        .map(|dim| {
            let own: Vec<&Point> = points.iter().filter(|point| point.dim == *dim).collect();
            Matrix::from_fn(own.len(), 2, |i, j| {
                if j == 0 { (own[i].particles as f64).log10() } else { own[i].seconds.log10() }
            })
        })
        .collect();
    let names = COORDINATES.map(|dim| format!("{dim} coordinates"));
    let mut layers: Vec<Layer<'_>> = Vec::new();
    for (color, line) in lines.iter().enumerate() {
        layers.push(Layer::Path { points: line.as_ref(), color, width: 1.5 });
        layers.push(Layer::Dots { points: line.as_ref(), color });
    }
    // Time ∝ N², through the last point of the first line.
    let (x, y) = lines[0].as_slice().last_chunk::<2>().map_or((4.0, 0.0), |&[x, y]| (x, y));
    let square = Matrix::from_fn(2, 2, |i, j| {
        let back = 2.0 * (1 - i) as f64;
        if j == 0 { x - back } else { y + 0.4 - 2.0 * back }
    });
    layers.push(Layer::Path { points: square.as_ref(), color: 7, width: 1.0 });
    let legend: Vec<Key<'_>> = names
        .iter()
        .enumerate()
        .map(|(color, name)| Key { mark: Mark::Line, color, name })
        .chain([Key { mark: Mark::Line, color: 7, name: "slope 2" }])
        .collect();
    let times = points.iter().map(|point| point.seconds.log10());
    let (low, high) =
        times.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), t| (a.min(t), b.max(t)));
    let largest = points.iter().map(|point| point.particles).max().unwrap_or(1);
    let figure = Panels {
        title: "Time of one SVGD velocity, median rule included",
        caption: "f32, 2 threads unless said otherwise; below 257 particles distances are kept, above the median is that of a sample of pairs",
        names: ["log₁₀ particles", "log₁₀ seconds"],
        x: (1.6, (largest as f64).log10() + 0.2),
        y: (low - 0.3, high + 0.5),
        density: None,
        columns: 1,
        panels: &[Panel { title: String::new(), layers, corner: Vec::new() }],
        legend: &legend,
    }
    .draw()?;
    Ok(fs::write(out.join("scaling.png"), figure.png()?)?)
}
