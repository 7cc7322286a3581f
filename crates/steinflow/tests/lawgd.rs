#![allow(missing_docs)]
mod common;
use std::time::Instant;
use steinflow::dynamics::*;
use steinflow::field::{Lawgd, Stein};
use steinflow::integrator::{Euler, StepSize};
use steinflow::kernel::Kernel;
use steinflow::target::PerParticle;
use steinflow::testing::random_states;
use steinflow::{LogDensity, Matrix, Sampler, System};

fn rss() -> f64 {
    std::fs::read_to_string("/proc/self/status")
        .unwrap()
        .lines()
        .find(|l| l.starts_with("VmHWM"))
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<f64>()
        .unwrap()
        / 1024.0
}
fn ksd(target: &dyn LogDensity<f64>, x: &Matrix<f64>) -> f64 {
    let (n, d) = (x.rows(), x.cols());
    let (mut l, mut s) = (vec![0.0; n], Matrix::zeros(n, d));
    target.evaluate(x.as_ref(), None, &mut l, s.as_mut()).unwrap();
    let mut t = 0.0;
    for i in 0..n {
        for j in 0..n {
            let dif: Vec<f64> = (0..d).map(|k| x.row(i)[k] - x.row(j)[k]).collect();
            let r2: f64 = dif.iter().map(|a| a * a).sum();
            let q = 1.0 + r2;
            let mut ss = 0.0;
            let mut sd = 0.0;
            for k in 0..d {
                ss += s.row(i)[k] * s.row(j)[k];
                sd += (s.row(i)[k] - s.row(j)[k]) * dif[k];
            }
            t += ss * q.powf(-0.5) + sd * q.powf(-1.5) + d as f64 * q.powf(-1.5)
                - 3.0 * r2 * q.powf(-2.5);
        }
    }
    (t / (n * n) as f64).max(0.0).sqrt()
}
fn well() -> impl LogDensity<f64> {
    PerParticle::new(1, |t: &[f64], s: &mut [f64]| {
        let x = t[0];
        s[0] = -4.0 * x * (x * x - 2.0);
        -(x * x - 2.0).powi(2)
    })
}
struct Curl(f64);
impl Dynamics<f64> for Curl {
    fn structure(&self, dim: usize) -> Structure {
        let c = self.0;
        Structure::new(dim).diffusion(THETA, Block::Scalar(1.0)).curl(
            THETA,
            THETA,
            Block::Full(Matrix::from_fn(2, 2, move |i, j| {
                if i < j {
                    c
                } else if i > j {
                    -c
                } else {
                    0.0
                }
            })),
        )
    }
}

fn cdf(x: f64) -> f64 {
    let (mut term, mut sum, mut k) = (x, x, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        k += 2.0;
        term *= x * x / k;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
}
fn quantile(p: f64) -> f64 {
    let (mut a, mut b) = (-7.0, 7.0);
    for _ in 0..60 {
        let m = 0.5 * (a + b);
        if cdf(m) < p { a = m } else { b = m }
    }
    0.5 * (a + b)
}

#[test]
fn memory() {
    let t = common::tri_crescent::<f64>();
    for n in [1000, 100000] {
        let w = Instant::now();
        let f = Lawgd::new(&well(), &Langevin::new(), &[(-4.0, 4.0)], n).unwrap();
        eprintln!("line {n}: {:?} rss {:.0}", w.elapsed(), rss());
        let th = random_states(50, 1, 1);
        let mut s = System::new(well(), Langevin::new(), f, &th, 0).unwrap();
        let w = Instant::now();
        s.velocity(&[0]).unwrap();
        eprintln!("vel {:?}", w.elapsed());
    }
    for n in [64, 128, 256, 512] {
        let w = Instant::now();
        let f = Lawgd::new(&t, &Curl(1.0), &[(-5.0, 5.0), (-5.0, 8.0)], n).unwrap();
        eprintln!("plane {n}: {:?} rss {:.0} edge {:e}", w.elapsed(), rss(), f.edge_mass());
        let th = random_states(50, 2, 1);
        let mut s = System::new(&t, Curl(1.0), f, &th, 0).unwrap();
        let w = Instant::now();
        s.velocity(&[0]).unwrap();
        eprintln!("vel {:?}", w.elapsed());
        let w = Instant::now();
        let f = Lawgd::new(&t, &Langevin::new(), &[(-5.0, 5.0), (-5.0, 8.0)], n).unwrap();
        eprintln!("  no curl {n}: {:?} rss {:.0} edge {:e}", w.elapsed(), rss(), f.edge_mass());
    }
}
#[test]
fn kl1() {
    let g = common::gaussian::<f64>(vec![0.0], Matrix::from_fn(1, 1, |_, _| 1.0));
    for (m, s) in [(0.5, 0.8), (1.0, 0.6), (0.3, 1.1), (0.0, 0.5)] {
        let th = Matrix::from_fn(400, 1, |i, _| m + s * quantile((i as f64 + 0.5) / 400.0));
        let f = Lawgd::new(&g, &Langevin::new(), &[(-8.0, 8.0)], 1000)
            .unwrap()
            .speed_limit(f64::INFINITY);
        let mut sys = System::new(&g, Langevin::new(), f, &th, 0).unwrap();
        let v = sys.velocity(&[0]).unwrap();
        let dkl: f64 = (0..400)
            .map(|i| {
                let x = th.row(i)[0];
                v.row(i)[0] * (-(x - m) / (s * s) + x)
            })
            .sum::<f64>()
            / 400.0;
        let q = 2.0 / (s * s) - 1.0;
        let b = 2.0 * m / (s * s);
        let chi = (0.5 * b * b / q - m * m / (s * s)).exp() / (s * s) / q.sqrt() - 1.0;
        eprintln!("m {m} s {s}: dkl {dkl} chi2 {chi} ratio {}", -dkl / chi);
    }
}
#[test]
fn kl2() {
    let p = [[1.2, 0.5], [0.5, 0.9]];
    let g = common::gaussian::<f64>(vec![0.0; 2], Matrix::from_fn(2, 2, |i, j| p[i][j]));
    for side in [40usize, 60, 100] {
        for cells in [96, 128] {
            for (made, used) in [(0.0, 0.0), (2.0, 2.0), (-2.0, 2.0), (0.0, 2.0)] {
                let (m, s) = ([0.6, -0.4], [0.55, 0.75]);
                let n = side * side;
                let th = Matrix::from_fn(n, 2, |i, k| {
                    let a = if k == 0 { i / side } else { i % side };
                    m[k] + s[k] * quantile((a as f64 + 0.5) / side as f64)
                });
                let f = Lawgd::new(&g, &Curl(made), &[(-6.0, 6.0), (-6.0, 6.0)], cells)
                    .unwrap()
                    .speed_limit(f64::INFINITY);
                let mut sys = System::new(&g, Curl(used), f, &th, 0).unwrap();
                let v = sys.velocity(&[0]).unwrap();
                let dkl: f64 = (0..n)
                    .map(|i| {
                        let x = th.row(i);
                        (0..2)
                            .map(|k| {
                                v.row(i)[k]
                                    * (-(x[k] - m[k]) / (s[k] * s[k])
                                        + p[k][0] * x[0]
                                        + p[k][1] * x[1])
                            })
                            .sum::<f64>()
                    })
                    .sum::<f64>()
                    / n as f64;
                let q = [2.0 / (s[0] * s[0]) - p[0][0], -p[0][1], 2.0 / (s[1] * s[1]) - p[1][1]];
                let b = [2.0 * m[0] / (s[0] * s[0]), 2.0 * m[1] / (s[1] * s[1])];
                let det = q[0] * q[2] - q[1] * q[1];
                let bqb =
                    (b[0] * b[0] * q[2] - 2.0 * b[0] * b[1] * q[1] + b[1] * b[1] * q[0]) / det;
                let ms = m[0] * m[0] / (s[0] * s[0]) + m[1] * m[1] / (s[1] * s[1]);
                let chi = (0.5 * bqb - ms).exp()
                    / (s[0] * s[0] * s[1] * s[1])
                    / (det * (p[0][0] * p[1][1] - p[0][1] * p[0][1])).sqrt()
                    - 1.0;
                eprintln!(
                    "side {side} cells {cells} made {made} used {used}: dkl {dkl:.5} chi2 {chi:.5} ratio {:.4}",
                    -dkl / chi
                );
            }
        }
    }
}
#[test]
fn wells() {
    let t = well();
    for sd in [0.1, 1.0] {
        for seed in 1..4u64 {
            let start = {
                let mut m = random_states(50, 1, seed);
                for x in m.as_mut_slice() {
                    *x *= sd
                }
                m
            };
            let mut out = format!("sd {sd} seed {seed} ");
            for (e, n) in [(0.02, 3000), (0.1, 2000)] {
                let o = Sampler::new(&t, Langevin::new(), Stein::new(Kernel::default()))
                    .start_at(start.clone())
                    .phase(Euler, n, StepSize::Constant(e))
                    .run();
                match o {
                    Ok(o) => out += &format!(" svgd {e}: {:.5}", ksd(&t, &o.theta())),
                    Err(e) => out += &format!(" svgd {e}"),
                }
            }
            for (e, n) in [(0.05, 400), (0.1, 200), (0.3, 100)] {
                let f = Lawgd::new(&t, &Langevin::new(), &[(-4.0, 4.0)], 1000).unwrap();
                let o = Sampler::new(&t, Langevin::new(), f)
                    .start_at(start.clone())
                    .phase(Euler, n, StepSize::Constant(e))
                    .run()
                    .unwrap();
                out += &format!(" lawgd {e}: {:.5}", ksd(&t, &o.theta()));
            }
            eprintln!("{out}");
        }
    }
}
#[test]
fn crescents() {
    let t = common::tri_crescent::<f64>();
    for (sd, n) in [(2.0, 100), (0.1, 100), (2.0, 50)] {
        for seed in 1..3u64 {
            let start = {
                let mut m = random_states(n, 2, seed);
                for x in m.as_mut_slice() {
                    *x *= sd
                }
                m
            };
            let mut out = format!("sd {sd} n {n} seed {seed} start {:.3}", ksd(&t, &start));
            for (e, n) in [(0.02, 4000), (0.05, 3000), (0.1, 2000)] {
                let o = Sampler::new(&t, Langevin::new(), Stein::new(Kernel::default()))
                    .start_at(start.clone())
                    .phase(Euler, n, StepSize::Constant(e))
                    .run();
                match o {
                    Ok(o) => out += &format!(" svgd {e}: {:.5}", ksd(&t, &o.theta())),
                    Err(e) => out += &format!(" svgd {e}"),
                }
            }
            for cells in [64, 128] {
                for (e, k) in [(0.02, 500u64), (0.05, 400), (0.2, 200)] {
                    let w = Instant::now();
                    let f = Lawgd::new(&t, &Langevin::new(), &[(-6.0, 6.0), (-7.0, 9.0)], cells)
                        .unwrap();
                    let o = Sampler::new(&t, Langevin::new(), f)
                        .start_at(start.clone())
                        .phase(Euler, k, StepSize::Constant(e))
                        .phase(Euler, k / 2, StepSize::Linear(e, e / 20.0))
                        .run()
                        .unwrap();
                    let th = o.theta();
                    let mut per = [0; 3];
                    for i in 0..n {
                        let (x, y) = (th.row(i)[0], th.row(i)[1]);
                        let r = [-2.0, 0.0, 2.0].map(|z| (4.0 * (y - z) - x * x).abs());
                        let b = (0..3).min_by(|&a, &b| r[a].total_cmp(&r[b])).unwrap();
                        per[b] += 1;
                    }
                    out += &format!(
                        "\n   lawgd {cells} {e}: {:.5} {per:?} {:?}",
                        ksd(&t, &o.theta()),
                        w.elapsed()
                    );
                }
            }
            eprintln!("{out}");
        }
    }
}
#[test]
fn diag() {
    let t = common::tri_crescent::<f64>();
    let n = 100;
    let start = {
        let mut m = random_states(n, 2, 1);
        for x in m.as_mut_slice() {
            *x *= 2.0
        }
        m
    };
    for (cells, win) in [
        (128, [(-6.0, 6.0), (-7.0, 9.0)]),
        (128, [(-3.5, 3.5), (-4.0, 7.0)]),
        (256, [(-6.0, 6.0), (-7.0, 9.0)]),
    ] {
        let f = Lawgd::new(&t, &Langevin::new(), &win, cells).unwrap();
        let mut norms = vec![];
        let o = Sampler::new(&t, Langevin::new(), f.clone())
            .start_at(start.clone())
            .phase(Euler, 150, StepSize::Constant(0.1))
            .phase(Euler, 100, StepSize::Linear(0.1, 0.005))
            .observe(|s: &steinflow::run::Snapshot<'_, f64>| {
                if let Some(v) = s.velocity_norm {
                    norms.push(v);
                }
                Ok(std::ops::ControlFlow::Continue(()))
            })
            .run()
            .unwrap();
        let th = o.theta();
        let (mut l, mut s) = (vec![0.0; n], Matrix::zeros(n, 2));
        t.evaluate(th.as_ref(), None, &mut l, s.as_mut()).unwrap();
        let mut sys = System::new(&t, Langevin::new(), f, &th, 0).unwrap();
        let v = sys.velocity(&[0]).unwrap();
        let mut idx: Vec<usize> = (0..n).collect();
        idx.sort_by(|&a, &b| l[a].total_cmp(&l[b]));
        eprintln!(
            "cells {cells} ksd {:.4} norms {:?}",
            ksd(&t, &th),
            norms.iter().step_by(30).collect::<Vec<_>>()
        );
        for &i in idx.iter().take(8) {
            eprintln!(
                "  logpi {:.2} at {:?} score {:?} v {:?}",
                l[i],
                th.row(i),
                s.row(i),
                v.row(i)
            );
        }
        let mut close: Vec<f64> = vec![];
        for i in 0..n {
            let mut b = f64::INFINITY;
            for j in 0..n {
                if i != j {
                    let d = ((th.row(i)[0] - th.row(j)[0]).powi(2)
                        + (th.row(i)[1] - th.row(j)[1]).powi(2))
                    .sqrt();
                    b = b.min(d);
                }
            }
            close.push(b);
        }
        close.sort_by(f64::total_cmp);
        eprintln!("  nearest: {:.3} {:.3} {:.3} {:.3}", close[0], close[10], close[50], close[90]);
        let mr: Vec<f64> = (0..n)
            .map(|i| {
                let (x, y) = (th.row(i)[0], th.row(i)[1]);
                [-2.0, 0.0, 2.0]
                    .map(|z| 4.0 * (y - z) - x * x)
                    .into_iter()
                    .min_by(|a, b| a.abs().total_cmp(&b.abs()))
                    .unwrap()
            })
            .collect();
        eprintln!(
            "  ridge sd {:.3} mean {:.3}; E x^4/10 (1/4): {:.3}",
            (mr.iter().map(|a| a * a).sum::<f64>() / n as f64).sqrt(),
            mr.iter().sum::<f64>() / n as f64,
            (0..n).map(|i| th.row(i)[0].powi(4) / 10.0).sum::<f64>() / n as f64
        );
    }
    for (e, k) in [(0.05, 3000u64)] {
        let o = Sampler::new(&t, Langevin::new(), Stein::new(Kernel::default()))
            .start_at(start.clone())
            .phase(Euler, k, StepSize::Constant(e))
            .run()
            .unwrap();
        let th = o.theta();
        let mr: Vec<f64> = (0..n)
            .map(|i| {
                let (x, y) = (th.row(i)[0], th.row(i)[1]);
                [-2.0, 0.0, 2.0]
                    .map(|z| 4.0 * (y - z) - x * x)
                    .into_iter()
                    .min_by(|a, b| a.abs().total_cmp(&b.abs()))
                    .unwrap()
            })
            .collect();
        let mut per = [0; 3];
        for i in 0..n {
            let (x, y) = (th.row(i)[0], th.row(i)[1]);
            let r = [-2.0, 0.0, 2.0].map(|z| (4.0 * (y - z) - x * x).abs());
            let b = (0..3).min_by(|&a, &b| r[a].total_cmp(&r[b])).unwrap();
            per[b] += 1;
        }
        eprintln!(
            "svgd ksd {:.4} {per:?} ridge sd {:.3} mean {:.3}; E x^4/10 (1/4): {:.3}",
            ksd(&t, &th),
            (mr.iter().map(|a| a * a).sum::<f64>() / n as f64).sqrt(),
            mr.iter().sum::<f64>() / n as f64,
            (0..n).map(|i| th.row(i)[0].powi(4) / 10.0).sum::<f64>() / n as f64
        );
    }
    // exact midpoint quantiles of the double well
    let w = well();
    let g = 200000;
    let mut c = vec![0.0];
    for i in 0..g {
        let x = -4.0 + 8.0 * (i as f64 + 0.5) / g as f64;
        c.push(c[i] + (-(x * x - 2.0).powi(2) as f64).exp());
    }
    let tot = c[g];
    let th = Matrix::from_fn(50, 1, |i, _| {
        let q = (i as f64 + 0.5) / 50.0 * tot;
        let k = c.partition_point(|&a| a < q);
        -4.0 + 8.0 * (k as f64) / g as f64
    });
    eprintln!("well quantiles ksd {:.5}", ksd(&w, &th));
}
