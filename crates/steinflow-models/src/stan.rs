//! A Stan program: its log density on coordinates without limits, with the Jacobian of what takes them to its
//! parameters, and those parameters by name.

mod compile;
mod library;

use std::path::Path;
use std::sync::Arc;

use steinflow::random::{Purpose, stream};
use steinflow::{LogDensity, MatMut, MatRef, Minibatch, Real};

use crate::one_particle::evaluate_in_f64;
use crate::{Describe, Error, Model, ModelInfo, ModelSpec, Result, Start, Units};
use compile::Place;
use library::Program;
use rand_distr::{Distribution, Uniform};

/// The name of the model of a Stan program.
pub const STAN: &str = "stan";

/// How it is listed.
pub(crate) const ENTRY: ModelInfo = ModelInfo {
    name: STAN,
    title: "your own Stan program, or its compiled library: steinflow sample FILE.stan --data FILE.json",
    formula: "the program's, by BridgeStan",
    reference: "Carpenter et al., J. Stat. Softw. 76 (2017); Roualdes et al., J. Open Source Softw. 8 (2023)",
    options: &["program", "data"],
    single: build,
    double: build,
};

fn build<T: Real>(spec: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    Ok(Box::new(Stan::of(spec)?))
}

/// Whether a model is named by the file of a program or of a compiled one.
pub(crate) fn is_program(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("stan" | "so" | "dylib" | "dll"))
}

/// What somebody who waits should know: nothing unless a program will be compiled.
pub fn compiles(spec: &ModelSpec) -> Option<String> {
    let program = spec.program.as_deref().filter(|path| is_source(path))?;
    let is_new = Place::of(program).is_ok_and(|place| !place.is_ready());
    is_new.then(|| format!("compiling {}; the library is kept for later runs", program.display()))
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "stan")
}

/// A Stan program with its data.
pub struct Stan {
    program: Arc<Program>,
}

impl Stan {
    fn of(spec: &ModelSpec) -> Result<Self> {
        let Some(path) = spec.program.as_deref() else {
            let remedy = "name the program instead: FILE.stan, or a compiled FILE.so";
            return Err(steinflow::Error::setting("model", STAN, remedy).into());
        };
        let wrong = |message: String| Error::Stan { path: path.to_owned(), message };
        if !path.is_file() {
            return Err(wrong("there is no such file".to_owned()));
        }
        let data = spec.data.as_deref().map(read_data).transpose()?;
        let library = if is_source(path) {
            Place::of(path).and_then(Place::library).map_err(wrong)?
        } else {
            std::path::absolute(path).map_err(|error| wrong(error.to_string()))?
        };
        let program = Program::load(&library, data.as_deref().unwrap_or_default());
        let program = program.map_err(|message| match &spec.data {
            _ if message.contains("BridgeStan") || message.contains("loaded") => wrong(message),
            Some(data) => {
                wrong(format!("it does not take the data of {}: {message}", data.display()))
            }
            None => wrong(format!("{message} (its data is given as --data FILE.json)")),
        })?;
        if program.coordinates.is_empty() {
            return Err(wrong("it has no parameters to sample".to_owned()));
        }
        let stan = Self { program: Arc::new(program) };
        stan.require_start().map_err(wrong)?;
        Ok(stan)
    }

    /// Stan's samplers begin between −2 and 2, and give up after a hundred places.
    fn require_start(&self) -> Result<(), String> {
        let dim = self.program.coordinates.len();
        let (mut theta, mut score) = (vec![0.0; dim], vec![0.0; dim]);
        let mut said = None;
        let places = Uniform::new(-2.0, 2.0).expect("an interval");
        for i in 0..100 {
            match self.program.log_density_gradient(&theta, &mut score) {
                Ok(value) if value.is_finite() => return Ok(()),
                Ok(value) => said = Some(format!("the log density is {value}")),
                Err(message) => said = Some(message),
            }
            let mut random = stream(0, Purpose::Start, 0, i);
            theta.fill_with(|| places.sample(&mut random));
        }
        let said = said.unwrap_or_default();
        Err(format!("it has no density at a hundred places between −2 and 2: {said}"))
    }
}

fn read_data(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        let remedy = format!("it cannot be read as the JSON of a Stan program: {error}");
        steinflow::Error::setting("data", path.display(), remedy).into()
    })
}

impl<T: Real> LogDensity<T> for Stan {
    fn dim(&self) -> usize {
        self.program.coordinates.len()
    }

    fn coordinate_name(&self, coordinate: usize) -> Option<String> {
        self.program.coordinates.get(coordinate).cloned()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        _rows: Option<&Minibatch>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> steinflow::Result<()> {
        let dim = self.program.coordinates.len();
        evaluate_in_f64(dim, theta, log_density, score, |theta, score| {
            // A statement that Stan refuses far out, as its own samplers meet it: no density there.
            self.program.log_density_gradient(theta, score).unwrap_or_else(|_| {
                score.fill(f64::NAN);
                f64::NAN
            })
        })
    }
}

impl Describe for Stan {
    fn parameter_names(&self) -> Vec<String> {
        self.program.names.clone()
    }

    fn coordinate_names(&self) -> Vec<String> {
        self.program.coordinates.clone()
    }

    fn start(&self) -> Start {
        Start::around_zero(self.program.coordinates.len(), 1.0)
    }

    fn units(&self) -> Option<Units> {
        let (to, from) = (Arc::clone(&self.program), Arc::clone(&self.program));
        let (dim, shown) = (to.coordinates.len(), to.names.len());
        // Where Stan refuses, there is nothing to show.
        let show = move |theta: &[f64], shown: &mut [f64]| {
            if to.constrain(theta, shown).is_err() {
                shown.fill(f64::NAN);
            }
        };
        let hide = move |shown: &[f64], theta: &mut [f64]| {
            if from.unconstrain(shown, theta).is_err() {
                theta.fill(f64::NAN);
            }
        };
        Some(Units::between(dim, shown, show, hide))
    }
}
