//! Every kernel compiles, for every method that runs here and in both precisions: no GPU is needed for that.

use steinflow::kernel::{Kernel, Radial, View};
use steinflow::method::{Method, Parameters};
use steinflow::{LogDensity, Real};
use steinflow_models::toy::{Banana, Crescent, Funnel, Gaussian, Isotropic, Ring, TriCrescent};

use crate::device::Source;
use crate::dynamics::Varying;
use crate::motion::{self, Field, shapes};
use crate::{Cuda, bandwidth, launch, target};

/// PTX for the oldest architecture that is taken, and for the newest that is aimed at.
fn compile(source: &Source, what: &str) {
    for arch in ["compute_80", "compute_90"] {
        source.compile(arch).unwrap_or_else(|error| panic!("{what} for {arch}: {error}"));
    }
}

fn has_compiler() -> bool {
    let found = launch::has_compiler();
    if !found {
        eprintln!(
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
    for name in ["ld", "svgd", "sghmc-stein-alt", "sgnht-blob-alt", "third-order-gfsd", "de"] {
        for (radial, view) in [
            (Radial::SquaredExponential, View::Joint),
            (Radial::InverseMultiquadric, View::Product),
            (Radial::SquaredExponential, View::Theta),
        ] {
            let (method, parameters) = (Method::named(name).unwrap(), Parameters::default());
            let kernel = Kernel { radial, view, ..Kernel::default() };
            let (field, varying): (Field, Option<Varying>) =
                Cuda::new(0, &method, &parameters, kernel).unwrap().into_parts();
            for (dim, size) in [(1, 4), (2, 8), (20, 4), (60, 4)] {
                let structure = method.build_dynamics::<f64>(&parameters).structure(dim);
                let moving: Vec<usize> = (0..structure.blocks()).collect();
                for moving in [&moving[..1], &moving] {
                    let varying = varying.as_ref();
                    let source = motion::source(&field, &structure, varying, moving, size).unwrap();
                    if dim < 20 {
                        compile(&source, name);
                    }
                    let width = moving.len();
                    for (shape, ..) in
                        shapes(&field, &structure, varying.is_some(), width, 100, size)
                    {
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
    for size in [4, 8] {
        compile(&bandwidth::source(size), "bandwidths");
    }
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
            compile(&target::source(&own, target.dim(), size), &format!("{own:?}"));
        }
    }
}
