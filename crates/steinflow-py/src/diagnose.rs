//! Whether particles can be believed, and how far they are from others.

use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use steinflow::Matrix;
use steinflow::diagnostics::{
    Course, Diagnosis, EnergyDistance, Judged, Statistic, SteinKernel, StopRule, pooled_bandwidth,
    sliced_wasserstein, squared_mean_discrepancy,
};
use steinflow::dynamics::{Dynamics, Langevin};
use steinflow::kernel::{Bandwidth, Radial};
use steinflow::run::{Samples, Standing, WarmMoments};
use steinflow_models::NETWORK;

use crate::arrays::{Array2, Number, Rows, matrix};
use crate::config::Config;
use crate::errors::to_python;
use crate::target::Target;
use crate::threads::compute;

/// A search for modes evaluates the target at some thousand points; where that takes more numbers than this, it
/// would take longer than many runs.
const MOST_NUMBERS: usize = 500_000;

/// Judges the particles of a run, `state` with auxiliary variables; `draws` are collected ones, draw after
/// draw of all particles.
#[pyfunction]
#[pyo3(signature = (target, state, config, *, log_densities, discrepancies, gradients=0, draws=None, stop_rule=None, warm_up=None, search_modes=true))]
pub fn diagnose<'py>(
    py: Python<'py>,
    target: Target<'py>,
    state: Array2<'py>,
    config: PyRef<'py, Config>,
    log_densities: Vec<f64>,
    discrepancies: Vec<f64>,
    gradients: u64,
    draws: Option<Array2<'py>>,
    stop_rule: Option<Said>,
    warm_up: Option<Drawn>,
    search_modes: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let discrepancies = discrepancies.into_iter().filter(|x| !x.is_nan()).collect();
    let course = Course { log_densities, discrepancies };
    let request = Request {
        py,
        config: &config,
        course: &course,
        stop_rule: stop_rule.map(StopRule::from),
        warm_moments: warm_up.map(WarmMoments::from),
        exact_moments: target.exact_moments()?,
        gradients,
        search_modes,
    };
    match (state, draws) {
        (Array2::Double(state), None) => request.judge(&target, &state, None),
        (Array2::Single(state), None) => request.judge(&target, &state, None),
        (Array2::Double(state), Some(Array2::Double(draws))) => {
            request.judge(&target, &state, Some(&draws))
        }
        (Array2::Single(state), Some(Array2::Single(draws))) => {
            request.judge(&target, &state, Some(&draws))
        }
        _ => Err(PyValueError::new_err("draws and particles differ in precision")),
    }
}

/// What a sampler with an accept step says of its draws, as `run` gives it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Said {
    done: bool,
    reasons: Vec<String>,
    effective: f64,
    rhat: f64,
    drift: f64,
}

impl From<Said> for StopRule {
    fn from(said: Said) -> Self {
        let Said { done, reasons, effective, rhat, drift } = said;
        Self { is_met: done, reasons, effective, rhat, drift }
    }
}

/// Moments of the draws of a warm-up, as `run` gives them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Drawn {
    draws: usize,
    mean: Vec<f64>,
    sd: Vec<f64>,
    standing: String,
}

impl From<Drawn> for WarmMoments {
    fn from(Drawn { draws, mean, sd, standing }: Drawn) -> Self {
        Self { draws, mean, sd, standing: Standing::named(&standing) }
    }
}

/// Judges draws that were made elsewhere: chains draw after draw, or a cloud of particles, which may be at rest.
#[pyfunction]
#[pyo3(signature = (target, draws, *, chains=None, resting=false, search_modes=true))]
pub fn diagnose_draws<'py>(
    py: Python<'py>,
    target: Target<'py>,
    draws: Array2<'py>,
    chains: Option<usize>,
    resting: bool,
    search_modes: bool,
) -> PyResult<Bound<'py, PyDict>> {
    match draws {
        Array2::Double(draws) => judge_draws(py, &target, &draws, chains, resting, search_modes),
        Array2::Single(draws) => judge_draws(py, &target, &draws, chains, resting, search_modes),
    }
}

fn judge_draws<'py, T: Number>(
    py: Python<'py>,
    target: &Target<'py>,
    draws: &PyReadonlyArray2<'py, T>,
    chains: Option<usize>,
    resting: bool,
    search_modes: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let exact = target.exact_moments()?;
    let target = target.density::<T>()?;
    let target = &*target;
    let structure = Dynamics::<T>::structure(&Langevin::new(), target.dim());
    let theta = matrix(draws);
    let (last, samples) = match chains {
        None => (theta, None),
        Some(chains) => {
            let (rows, steps) = (theta.rows(), (theta.rows() / chains.max(1)) as u64);
            let last = Matrix::from_fn(chains.min(rows), theta.cols(), |i, j| {
                theta.row(rows - chains + i)[j]
            });
            let samples = Samples::resume(0, 1, chains, (0..steps).collect(), theta);
            (last, Some(samples.map_err(to_python)?))
        }
    };
    let judged = Judged {
        is_interacting: resting,
        is_random: !resting,
        draws: samples.as_ref(),
        exact_moments: exact.as_ref(),
        search_modes,
        ..Judged::cloud(target, &last, &structure)
    };
    let found = compute(py, || judged.diagnose()).map_err(to_python)?;
    describe(py, &found)
}

struct Request<'py, 's> {
    py: Python<'py>,
    config: &'s Config,
    course: &'s Course,
    stop_rule: Option<StopRule>,
    warm_moments: Option<WarmMoments>,
    exact_moments: Option<WarmMoments>,
    gradients: u64,
    search_modes: bool,
}

impl<'py> Request<'py, '_> {
    fn judge<T: Number>(
        &self,
        target: &Target<'py>,
        state: &PyReadonlyArray2<'py, T>,
        draws: Option<&PyReadonlyArray2<'py, T>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let target = target.density::<T>()?;
        let target = &*target;
        let structure = self.config.structure(self.py, target.dim())?;
        let state = matrix(state);
        let draws = draws.map(|draws| {
            let (theta, chains) = (matrix(draws), state.rows());
            let steps = (0..(theta.rows() / chains.max(1)) as u64).collect();
            Samples::resume(0, 1, chains, steps, theta)
        });
        let draws = draws.transpose().map_err(to_python)?;
        let judged = Judged {
            target,
            state: &state,
            structure: &structure,
            is_interacting: self.config.complete.is_interacting(),
            is_random: self.config.complete.is_random(),
            course: self.course,
            draws: draws.as_ref(),
            stop_rule: self.stop_rule.as_ref(),
            warm_moments: self.warm_moments.as_ref(),
            exact_moments: self.exact_moments.as_ref(),
            gradients: self.gradients,
            check_gradient: self.config.complete.check_gradient
                && self.config.complete.batch_size.is_none(),
            search_modes: self.search_modes
                && self.config.complete.model != NETWORK
                && target.data_rows().saturating_mul(target.dim()) <= MOST_NUMBERS,
        };
        let found = compute(self.py, || judged.diagnose()).map_err(to_python)?;
        describe(self.py, &found)
    }
}

fn describe<'py>(py: Python<'py>, found: &Diagnosis) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    answer.set_item("verdict", found.verdict.name())?;
    answer.set_item("title", found.verdict.title())?;
    answer.set_item("headline", &found.headline)?;
    let evidence = PyList::empty(py);
    for item in &found.evidence {
        let row = PyDict::new(py);
        row.set_item("name", item.name)?;
        row.set_item("value", item.value)?;
        row.set_item("expected", &item.expected)?;
        row.set_item("passed", item.passed)?;
        row.set_item("meaning", item.meaning)?;
        evidence.append(row)?;
    }
    answer.set_item("evidence", evidence)?;
    answer.set_item("advice", &found.advice)?;
    answer.set_item("evaluations", found.evaluations)?;
    Ok(answer)
}

/// KSD² (U-statistic) with the p-value of the wild bootstrap.
#[pyfunction]
pub fn ksd_test(
    py: Python<'_>,
    particles: PyReadonlyArray2<'_, f64>,
    score: PyReadonlyArray2<'_, f64>,
    kernel: &str,
    rule: &str,
    replicates: usize,
    seed: u64,
) -> PyResult<(f64, f64)> {
    let (particles, score) = (Rows::of(&particles), Rows::of(&score));
    let (x, s) = (particles.as_ref(), score.as_ref());
    let test = || -> steinflow::Result<(f64, f64)> {
        let (radial, h) = (Radial::parse(kernel)?, Bandwidth::parse(rule)?.of(x));
        let test = SteinKernel::new(x, s, radial, h)?.test(replicates, seed)?;
        Ok((test.squared_discrepancy, test.p_value))
    };
    compute(py, test).map_err(to_python)
}

/// Energy distance, MMD² (squared exponential, pooled median bandwidth, U-statistic) and sliced W₂ between
/// two sets of points.
#[pyfunction]
pub fn distances(
    py: Python<'_>,
    x: PyReadonlyArray2<'_, f64>,
    y: PyReadonlyArray2<'_, f64>,
    directions: usize,
    seed: u64,
) -> PyResult<(f64, f64, f64)> {
    let (x, y) = (Rows::of(&x), Rows::of(&y));
    let all = || -> steinflow::Result<(f64, f64, f64)> {
        let (x, y) = (x.as_ref(), y.as_ref());
        let h = pooled_bandwidth(x, y)?;
        let radial = Radial::SquaredExponential;
        Ok((
            EnergyDistance::to(y)?.of(x)?,
            squared_mean_discrepancy(x, y, radial, h, Statistic::U)?,
            sliced_wasserstein(x, y, directions, seed)?,
        ))
    };
    compute(py, all).map_err(to_python)
}
