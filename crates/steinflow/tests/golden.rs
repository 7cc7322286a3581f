//! Every reference vector of drift, structure, velocity, steps and bandwidths is met.

use crate::common::{
    dynamics, golden, golden_name, matrix, number, numbers, relative_error, state, target,
};
use serde_json::Value;
use steinflow::field::{Diffusion, Estimator, Field, LogRatio, Stein};
use steinflow::integrator::{Euler, Integrator, SymmetricSplitting};
use steinflow::kernel::{Bandwidth, Kernel, Radial, View};
use steinflow::method::DynamicsKind;
use steinflow::testing::dense_matrices;
use steinflow::{Matrix, Real, System};

const TARGETS: [&str; 2] = ["gaussian3", "toy2"];

fn kernel(case: &Value, dynamics: &str, view: &str, bandwidth: &str) -> Kernel {
    let bandwidth = match bandwidth {
        "median" => Bandwidth::MedianLog,
        "fixed" => {
            let listed = &case["bandwidths"][format!("{dynamics}/{view}/fixed")];
            let listed: Vec<f64> =
                listed.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
            if view == "product" { Bandwidth::Fixed(listed) } else { Bandwidth::fixed(listed[0]) }
        }
        other => panic!("no bandwidth {other}"),
    };
    let view = match view {
        "joint" => View::Joint,
        "product" => View::Product,
        "theta" => View::Theta,
        other => panic!("no view {other}"),
    };
    Kernel { radial: Radial::SquaredExponential, view, bandwidth, affine: 0.0 }
}

fn system<T: Real>(
    golden: &Value,
    name: &str,
    dynamics_name: &str,
    field: impl Field<T> + 'static,
) -> System<'static, T> {
    let (dynamics, blocks) = dynamics::<T>(golden, dynamics_name);
    let case = &golden[name];
    let theta = matrix(&case["theta"]).cast();
    let mut system = System::new(target::<T>(golden, name), dynamics, field, &theta, 0).unwrap();
    system.set_state(state(case, &blocks).cast()).unwrap();
    system
}

fn velocities<T: Real>(tolerance: f64) -> usize {
    let golden = golden();
    let mut checked = 0;
    for name in TARGETS {
        let case = &golden[name];
        for (key, expected) in case["velocity"].as_object().unwrap() {
            let parts: Vec<&str> = key.split('/').collect();
            let [dynamics, view, bandwidth, form] = parts[..] else { panic!("key {key}") };
            let (dynamics, blob) = match dynamics.strip_suffix("_blob") {
                Some(dynamics) => (dynamics, true),
                None => (dynamics, false),
            };
            let kernel = kernel(case, dynamics, view, bandwidth);
            let field: Box<dyn Field<T>> = match (blob, form) {
                (false, "standard") => Box::new(Stein::new(kernel)),
                (false, "alt") => Box::new(Stein::starred(kernel)),
                (true, "standard") => Box::new(LogRatio::new(kernel, Estimator::Blob)),
                (true, "alt") => Box::new(LogRatio::starred(kernel, Estimator::Blob)),
                (_, other) => panic!("no form {other}"),
            };
            let mut system = system::<T>(&golden, name, dynamics, field);
            let blocks: Vec<usize> = (0..system.structure().blocks()).collect();
            let velocity = system.velocity(&blocks).unwrap();
            let error = relative_error(&velocity, &matrix(expected));
            assert!(error <= tolerance, "{name} {key}: relative error {error:e}");
            if bandwidth == "median" {
                let listed = &case["bandwidths"][format!("{dynamics}/{view}/median")];
                let listed = listed.as_array().unwrap().iter().filter_map(Value::as_f64);
                for (found, listed) in system.bandwidths().iter().zip(listed) {
                    assert!((found / listed - 1.0).abs() <= tolerance, "{name} {key}");
                }
            }
            checked += 1;
        }
    }
    checked
}

#[test]
fn velocities_in_f64() {
    assert_eq!(velocities::<f64>(1e-10), 212);
}

#[test]
fn velocities_in_f32() {
    assert_eq!(velocities::<f32>(1e-4), 212);
}

#[test]
fn velocity_of_some_blocks_is_a_part_of_the_whole() {
    let golden = golden();
    for dynamics in ["sghmc", "sgrhmc", "sgnht", "third"] {
        let mut system = system::<f64>(&golden, "toy2", dynamics, Stein::new(Kernel::default()));
        let blocks: Vec<usize> = (0..system.structure().blocks()).collect();
        let whole = system.velocity(&blocks).unwrap();
        for block in blocks {
            let part = system.velocity(&[block]).unwrap();
            let expected = Matrix::from_fn(8, 2, |i, j| whole.row(i)[2 * block + j]);
            assert!(relative_error(&part, &expected) < 1e-14, "{dynamics} block {block}");
        }
    }
}

#[test]
fn three_steps_of_every_integrator() {
    let golden = golden();
    let (eps, steps) =
        (number(&golden["params"]["eps"]), number(&golden["params"]["steps"]) as u64);
    let mut checked = 0;
    for name in TARGETS {
        for (key, expected) in golden[name]["after_steps"].as_object().unwrap() {
            let parts: Vec<&str> = key.split('/').collect();
            let [dynamics, view, bandwidth, scheme] = parts[..] else { panic!("key {key}") };
            let field = Stein::new(kernel(&golden[name], dynamics, view, bandwidth));
            let mut system = system::<f64>(&golden, name, dynamics, field);
            let mut integrator: Box<dyn Integrator<f64>> = match scheme {
                "euler" => Box::new(Euler),
                "split" => Box::new(SymmetricSplitting),
                other => panic!("no scheme {other}"),
            };
            for _ in 0..steps {
                integrator.step(&mut system, eps).unwrap();
            }
            let found = Matrix::from_vec(
                system.state().as_slice().to_vec(),
                system.state().rows(),
                system.state().cols(),
            );
            let error = relative_error(&found.unwrap(), &matrix(expected));
            assert!(error <= 1e-10, "{name} {key}: relative error {error:e}");
            // One gradient a step; splitting opens with one more, which the next step shares.
            assert_eq!(system.gradients(), steps + u64::from(scheme == "split"), "{key}");
            checked += 1;
        }
    }
    assert_eq!(checked, 132);
}

#[test]
fn every_dynamics_of_the_catalogue_has_reference_vectors() {
    let golden = golden();
    for name in TARGETS {
        let known = golden[name]["drift"].as_object().unwrap();
        for &kind in DynamicsKind::ALL {
            assert!(known.contains_key(golden_name(kind)), "{name} {}", kind.name());
        }
    }
}

#[test]
fn drift_matrices_and_one_step_of_the_diffusion() {
    let golden = golden();
    let eps = number(&golden["params"]["eps"]);
    for name in TARGETS {
        let case = &golden[name];
        for (dynamics, expected) in case["drift"].as_object().unwrap() {
            let mut system = system::<f64>(&golden, name, dynamics, Diffusion);
            let structure = system.structure().clone();
            let at = system.evaluated().unwrap();
            let drift = at.drift();
            let error = relative_error(&drift, &matrix(expected));
            assert!(error <= 1e-10, "{name} {dynamics} drift: {error:e}");

            let (a, c) = dense_matrices(&structure, &at.coefficients.row(0)[1..]);
            let listed = &case["matrices"][dynamics];
            let (expected_a, expected_c) =
                (matrix(&listed["A_of_particle0"]), matrix(&listed["C_of_particle0"]));
            for (found, expected) in a.as_slice().iter().zip(expected_a.as_slice()) {
                assert!((found - expected).abs() < 1e-12, "{name} {dynamics} A");
            }
            for (found, expected) in c.as_slice().iter().zip(expected_c.as_slice()) {
                assert!((found - expected).abs() < 1e-12, "{name} {dynamics} C");
            }

            let blocks: Vec<usize> = (0..structure.blocks()).collect();
            let noise = matrix(&case["noise"]);
            let mut after = drift.clone();
            for i in 0..after.rows() {
                let row = after.row_mut(i);
                for x in row.iter_mut() {
                    *x *= eps;
                }
                let n = &noise.row(i)[..row.len()];
                let scale = (2.0 * eps).sqrt();
                at.operator.apply_diffusion_root(at.coefficients.row(i), n, &blocks, scale, row);
                for (x, z) in row.iter_mut().zip(at.state.row(i)) {
                    *x += z;
                }
            }
            let error = relative_error(&after, &matrix(&case["euler_maruyama_one_step"][dynamics]));
            assert!(error <= 1e-10, "{name} {dynamics} Euler–Maruyama: {error:e}");
        }
    }
}

#[test]
fn median_rules() {
    let golden = golden();
    for name in TARGETS {
        let case = &golden[name];
        let expected = &case["bandwidth_rules_theta"];
        for (rule, expected) in [
            (Bandwidth::MedianLog, number(&expected["lw"])),
            (Bandwidth::Median, number(&expected["med"])),
        ] {
            let kernel = Kernel { bandwidth: rule, ..Kernel::default() };
            let mut system = system::<f64>(&golden, name, "svgd", Stein::new(kernel));
            system.velocity(&[0]).unwrap();
            assert!((system.bandwidths()[0] / expected - 1.0).abs() < 1e-12, "{name}");
        }
        // The rules over all N×N entries, against a plain sort.
        let theta: Vec<Vec<f64>> = case["theta"].as_array().unwrap().iter().map(numbers).collect();
        let mut squares: Vec<f64> = Vec::new();
        for a in &theta {
            for b in &theta {
                squares.push(a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum());
            }
        }
        squares.sort_by(f64::total_cmp);
        let middle = [squares[31], squares[32]];
        let liu_wang = 0.5 * (middle[0] + middle[1]) / 9f64.ln();
        let numpyro = (0.5 * (middle[0].sqrt() + middle[1].sqrt())).powi(2) / 8f64.ln();
        for (rule, expected) in [(Bandwidth::LiuWang, liu_wang), (Bandwidth::NumPyro, numpyro)] {
            let kernel = Kernel { bandwidth: rule, ..Kernel::default() };
            let mut system = system::<f64>(&golden, name, "svgd", Stein::new(kernel));
            system.velocity(&[0]).unwrap();
            assert!((system.bandwidths()[0] / expected - 1.0).abs() < 1e-12, "{name}");
        }
    }
}
