//! The pieces, for people who write their own loop: arrays in, arrays out.

use numpy::{PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use steinflow::diagnostics::{Statistic, squared_stein_discrepancy};
use steinflow::engine::{self, Factor, KernelSums};
use steinflow::field::Field;
use steinflow::kernel::{Bandwidth, Radial};
use steinflow::{Error, LogDensity, MatMut, MatRef, Matrix, Minibatch, Real, Result, System};

use crate::arrays::{Array2, Number, Rows, array, matrix, same_precision};
use crate::config::Config;
use crate::errors::{refused, to_python};
use crate::threads::compute;

/// A target whose score is known where the particles are.
struct Known<'a, T> {
    log_density: Vec<T>,
    score: MatRef<'a, T>,
}

impl<T: Real> LogDensity<T> for Known<'_, T> {
    fn dim(&self) -> usize {
        self.score.cols()
    }

    fn evaluate(
        &self,
        _theta: MatRef<'_, T>,
        _rows: Option<&Minibatch>,
        log_density: &mut [T],
        mut score: MatMut<'_, T>,
    ) -> Result<()> {
        log_density.copy_from_slice(&self.log_density);
        score.as_mut_slice().copy_from_slice(self.score.as_slice());
        Ok(())
    }
}

/// The rows of minibatch number `number` of a run, and what the likelihood of these is multiplied by.
#[pyfunction]
pub fn minibatch(
    py: Python<'_>,
    seed: u64,
    number: u64,
    rows: usize,
    size: usize,
) -> PyResult<(Bound<'_, PyArray1<i64>>, f64)> {
    if size == 0 || size > rows {
        let remedy = format!("give 1 to {rows}, the number of rows of the data");
        return Err(to_python(Error::setting("batch_size", size, remedy)));
    }
    let batch = Minibatch::draw(seed, number, rows, size);
    let indices = batch.indices.iter().map(|&row| i64::try_from(row).unwrap_or(i64::MAX));
    Ok((PyArray1::from_iter(py, indices), batch.scale))
}

/// The velocity of every particle z = (θ, r, …), one a row, from the scores of θ.
#[pyfunction]
pub fn velocity<'py>(
    py: Python<'py>,
    state: Array2<'py>,
    score: &Bound<'py, PyAny>,
    log_density: Option<Vec<f64>>,
    config: PyRef<'py, Config>,
) -> PyResult<Bound<'py, PyAny>> {
    match state {
        Array2::Double(state) => {
            let score = same_precision::<f64>(score, "score")?;
            Ok(velocity_of(py, matrix(&state), &score, log_density, &config)?.into_any())
        }
        Array2::Single(state) => {
            let score = same_precision::<f32>(score, "score")?;
            Ok(velocity_of(py, matrix(&state), &score, log_density, &config)?.into_any())
        }
    }
}

fn velocity_of<'py, T: Number>(
    py: Python<'py>,
    state: Matrix<T>,
    score: &PyReadonlyArray2<'py, T>,
    log_density: Option<Vec<f64>>,
    config: &Config,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let score = Rows::of(score);
    let score = score.as_ref();
    let (count, dim) = (score.rows(), score.cols());
    let (own, raised) = config.own_dynamics::<T>(py)?;
    let dynamics = own.unwrap_or_else(|| config.complete.dynamics());
    let field: Box<dyn Field<T>> = match config.own_field(py, dim)? {
        Some(own) => Box::new(own),
        None => config.complete.field::<T>(None).map_err(refused)?,
    };
    let blocks = dynamics.structure(dim).blocks();
    if (state.rows(), state.cols()) != (count, blocks * dim) {
        let (name, names) = (&config.complete.method, dynamics.structure(dim).block_names());
        return Err(PyValueError::new_err(format!(
            "particles have shape ({}, {}), but the method `{name}` moves ({}) and the score has shape \
             ({count}, {dim}): expected ({count}, {})",
            state.rows(),
            state.cols(),
            names.join(", "),
            blocks * dim
        )));
    }
    let log_density = match log_density {
        Some(given) if given.len() != count => {
            return Err(PyValueError::new_err(format!(
                "log_density has {} entries, expected {count}, one for each particle",
                given.len()
            )));
        }
        Some(given) => given.into_iter().map(T::of).collect(),
        None => vec![T::zero(); count],
    };
    let theta = Matrix::from_fn(count, dim, |i, j| state.row(i)[j]);
    let target = Known { log_density, score };
    let found = compute(py, || {
        let mut system = System::new(target, dynamics, field, &theta, config.complete.seed)?;
        system.set_state(state)?;
        let all: Vec<usize> = (0..blocks).collect();
        system.velocity(&all)
    });
    match found {
        Ok(velocity) => array(py, velocity),
        Err(error) => {
            let own = raised.and_then(|raised| raised.lock().ok()?.take());
            Err(own.unwrap_or_else(|| to_python(error)))
        }
    }
}

fn parsed<T: Number>(
    py: Python<'_>,
    points: MatRef<'_, T>,
    kernel: &str,
    rule: &str,
) -> Result<(Radial, f64)> {
    let radial = Radial::parse(kernel)?;
    let rule = Bandwidth::parse(rule)?;
    steinflow::kernel::Kernel { radial, bandwidth: rule.clone(), ..Default::default() }
        .validate(1)?;
    Ok((radial, compute(py, || rule.of(points))))
}

/// h for these particles.
#[pyfunction]
pub fn bandwidth(py: Python<'_>, particles: Array2<'_>, rule: &str) -> PyResult<f64> {
    match particles {
        Array2::Double(x) => parsed(py, Rows::of(&x).as_ref(), "se", rule),
        Array2::Single(x) => parsed(py, Rows::of(&x).as_ref(), "se", rule),
    }
    .map(|(_, h)| h)
    .map_err(to_python)
}

/// K·values.
#[pyfunction]
pub fn kernel_sums<'py>(
    py: Python<'py>,
    particles: Array2<'py>,
    values: &Bound<'py, PyAny>,
    kernel: &str,
    rule: &str,
) -> PyResult<Bound<'py, PyAny>> {
    match particles {
        Array2::Double(x) => {
            let values = same_precision::<f64>(values, "values")?;
            Ok(sums(py, &x, &values, kernel, rule)?.into_any())
        }
        Array2::Single(x) => {
            let values = same_precision::<f32>(values, "values")?;
            Ok(sums(py, &x, &values, kernel, rule)?.into_any())
        }
    }
}

fn sums<'py, T: Number>(
    py: Python<'py>,
    points: &PyReadonlyArray2<'py, T>,
    values: &PyReadonlyArray2<'py, T>,
    kernel: &str,
    rule: &str,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let (points, values) = (Rows::of(points), Rows::of(values));
    let (points, values) = (points.as_ref(), values.as_ref());
    if points.rows() != values.rows() {
        return Err(PyValueError::new_err(format!(
            "values have {} rows, expected {}, one for each particle",
            values.rows(),
            points.rows()
        )));
    }
    let (radial, h) = parsed(py, points, kernel, rule).map_err(to_python)?;
    let found = compute(py, || {
        let factors = [Factor::new(points, T::of(h.recip()))];
        engine::kernel_sums(&KernelSums { radial, factors: &factors, values, slopes: &[] }).0
    });
    array(py, found)
}

/// KSD² of particles with the given scores.
#[pyfunction]
pub fn squared_ksd<'py>(
    py: Python<'py>,
    particles: Array2<'py>,
    score: &Bound<'py, PyAny>,
    kernel: &str,
    rule: &str,
    statistic: &str,
) -> PyResult<f64> {
    match particles {
        Array2::Double(x) => {
            let score = same_precision::<f64>(score, "score")?;
            discrepancy(py, &x, &score, kernel, rule, statistic)
        }
        Array2::Single(x) => {
            let score = same_precision::<f32>(score, "score")?;
            discrepancy(py, &x, &score, kernel, rule, statistic)
        }
    }
    .map_err(to_python)
}

fn discrepancy<T: Number>(
    py: Python<'_>,
    points: &PyReadonlyArray2<'_, T>,
    score: &PyReadonlyArray2<'_, T>,
    kernel: &str,
    rule: &str,
    statistic: &str,
) -> Result<f64> {
    let (points, score) = (Rows::of(points), Rows::of(score));
    let (points, score) = (points.as_ref(), score.as_ref());
    let statistic = Statistic::parse(statistic)?;
    let (radial, h) = parsed(py, points, kernel, rule)?;
    compute(py, || squared_stein_discrepancy(points, score, radial, h, statistic))
}
