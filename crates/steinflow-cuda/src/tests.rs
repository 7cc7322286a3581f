//! Every kernel compiles, for every method that runs here and in both precisions: no GPU is needed for that.

use std::io::Write as _;

use steinflow::kernel::{Kernel, Radial, View};
use steinflow::method::{Method, Parameters};
use steinflow::target::PerParticle;
use steinflow::{LogDensity, Real};
use steinflow_models::data::Table;
use steinflow_models::network::{Architecture, Bnn, Precisions};
use steinflow_models::regression::{LinearRegression, LogisticRegression};
use steinflow_models::toy::{Banana, Crescent, Funnel, Gaussian, Isotropic, Ring, TriCrescent};

use crate::device::Source;
use crate::rules::{self, Field, Rules, shapes};
use crate::{Cuda, affine, bandwidth, core, launch, matrix, target};

/// PTX for the oldest architecture that is taken, and for the newest that is aimed at.
fn compile(source: &Source, what: &str) {
    for arch in ["compute_80", "compute_90"] {
        source.compile(arch).unwrap_or_else(|error| panic!("{what} for {arch}: {error}"));
    }
}

fn has_compiler() -> bool {
    let found = launch::has_compiler();
    if !found {
        // Not by `eprintln!`, which the test harness keeps to itself.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: NVRTC is not installed (`pip install nvidia-cuda-nvrtc`, and put it on LD_LIBRARY_PATH)"
        );
    }
    found
}

#[test]
fn kernels_compile_for_flows_and_sums() {
    if !has_compiler() {
        return;
    }
    let mut sums: Vec<Source> = Vec::new();
    for name in [
        "ld",
        "svgd",
        "sghmc-stein-alt",
        "sgnht-blob-alt",
        "third-order-gfsd",
        "de",
        "sgrld",
        "rsvgd",
        "sgrhmc-stein",
        "sgrhmc-blob-alt",
    ] {
        for (radial, view) in [
            (Radial::SquaredExponential, View::Joint),
            (Radial::InverseMultiquadric, View::Product),
            (Radial::SquaredExponential, View::Theta),
        ] {
            let (method, parameters) = (Method::named(name).unwrap(), Parameters::default());
            let kernel = Kernel { radial, view, ..Kernel::default() };
            let (field, locals): (Field, Option<String>) =
                Cuda::new(0, &method, &parameters, kernel).unwrap().into_parts();
            for (dim, size) in [(1, 4), (2, 8), (20, 4), (60, 4)] {
                let structure = method.build_dynamics::<f64>(&parameters).structure(dim);
                let moving: Vec<usize> = (0..structure.blocks()).collect();
                for (moving, count, is_scaled) in [(&moving[..1], 100, false), (&moving, 13, true)]
                {
                    let (field, structure) = (field.clone(), structure.clone());
                    let locals = locals.clone();
                    let eigenvalue = 1.0;
                    let rules =
                        Rules { field, structure, locals, is_scaled, count, size, eigenvalue };
                    if dim < 20 {
                        compile(&rules::source(&rules, moving), name);
                    }
                    let Rules { field, structure, .. } = rules;
                    let width = moving.len();
                    for (shape, ..) in shapes(&field, &structure, width, 100, size) {
                        for source in [shape.source(), shape.split_source()] {
                            if !(size == 8 && source.text.contains("split_rows")) {
                                sums.push(source);
                            }
                        }
                    }
                }
            }
        }
    }
    sums.sort_by(|a, b| (&a.text, &a.macros).cmp(&(&b.text, &b.macros)));
    sums.dedup();
    assert!(sums.len() > 20, "{}", sums.len());
    for source in &sums {
        compile(source, &format!("{:?}", source.macros));
    }
    for is_fast in [false, true] {
        compile(&matrix::source(is_fast), "a stored kernel");
    }
    for size in [4, 8] {
        compile(&bandwidth::source(size), "bandwidths");
        compile(&core::source(size), "steps");
        compile(&affine::source(size), "affine");
    }
}

/// Those that run here, on 4 rows of 2 features.
fn regressions() -> [Box<dyn LogDensity<f32>>; 2] {
    let table =
        Table::from_reader("a,b,y\n1,2,0\n2,1,1\n0,3,1\n4,4,0\n".as_bytes(), "table").unwrap();
    [
        Box::new(LogisticRegression::new(&table, None, 2.5).unwrap()),
        Box::new(LinearRegression::new(&table, None, 2.5, Some(0.5)).unwrap()),
    ]
}

#[test]
fn data_take_memory() {
    for model in regressions() {
        // With the intercept, three columns and the outcomes; minibatches of three rows, 128 of them.
        assert_eq!(target::bytes(&*model, None), 4 * (3 + 1) * 4);
        assert_eq!(target::bytes(&*model, Some(3)), 4 * (3 + 1) * 4 + 128 * 3 * 4);
    }
    let host = PerParticle::new(2, |_: &[f64], _: &mut [f64]| 0.0);
    assert_eq!(target::bytes(&host, None), 0);
}

#[test]
fn kernels_compile_for_targets() {
    fn all<T: Real>() -> Vec<Box<dyn LogDensity<T>>> {
        let covariance = steinflow::Matrix::from_fn(2, 2, |i, j| if i == j { 2.0 } else { 0.5 });
        vec![
            Box::new(Gaussian::new(vec![0.0, 1.0], covariance).unwrap()),
            Box::new(Isotropic::new(3).unwrap()),
            Box::new(TriCrescent),
            Box::new(Crescent),
            Box::new(Banana::default()),
            Box::new(Ring::default()),
            Box::new(Funnel::new(3).unwrap()),
        ]
    }
    if !has_compiler() {
        return;
    }
    for target in all::<f32>() {
        let own = target.device_source().unwrap();
        for size in [4, 8] {
            let source = target::source(&own, target.dim(), size).unwrap();
            compile(&source, &format!("{own:?}"));
        }
    }
    for model in regressions() {
        let own = model.device_source().unwrap();
        for size in [4, 8] {
            compile(&target::source(&own, model.dim(), size).unwrap(), &format!("{own:?}"));
        }
    }
    let inputs = steinflow::Matrix::from_fn(9, 4, |i, j| (i * j) as f64);
    for (hidden, noise_by_input) in [(vec![], false), (vec![5], true), (vec![50, 300], false)] {
        let architecture = Architecture { hidden, noise_by_input, ..Architecture::default() };
        let precisions = Precisions::default();
        let model = Bnn::<f32>::new(&architecture, &inputs, &[0.0; 9], precisions).unwrap();
        let own = model.device_source().unwrap();
        for size in [4, 8] {
            compile(
                &target::source(&own, model.dim(), size).unwrap(),
                &format!("{architecture:?}"),
            );
        }
    }
}
