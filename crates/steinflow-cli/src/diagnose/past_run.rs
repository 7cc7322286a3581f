//! A run, read back from its folder.

use std::collections::HashMap;
use std::path::Path;

use steinflow::Matrix;
use steinflow::diagnostics::Course;
use steinflow::dynamics::{Dynamics, Structure};
use steinflow::run::Samples;
use steinflow_io::{Column, Values, is_finished_run, read_parquet};
use steinflow_models::network::NetworkFit;
use steinflow_models::{Model, NETWORK};

use crate::error::{Error, Result};
use steinflow_config::Config;
use steinflow_config::Settings;

/// What a run has left, in double precision.
pub struct PastRun {
    pub config: Config,
    pub model: Box<dyn Model<f64>>,
    pub dynamics: Box<dyn Dynamics<f64>>,
    pub structure: Structure,
    /// The last particles z = (θ, r, …).
    pub state: Matrix<f64>,
    pub draws: Option<Samples<f64>>,
    pub course: Course,
}

impl PastRun {
    pub fn read(folder: &Path) -> Result<Self> {
        if !is_finished_run(folder) || !folder.join("config.toml").exists() {
            let found =
                if folder.exists() { "is not the folder of a run" } else { "does not exist" };
            return Err(Error::NotARun { path: folder.to_owned(), found: found.to_owned() });
        }
        let config = Config::resolve(Settings::read(&folder.join("config.toml"))?)?;
        let spec = config.spec().clone();
        let model: Box<dyn Model<f64>> = if spec.name() == NETWORK {
            Box::new(NetworkFit::<f64>::new(&spec)?.network)
        } else {
            steinflow_models::build::<f64>(&spec)?
        };
        let names = model.parameter_names();
        let dynamics = config.dynamics::<f64>();
        let structure = dynamics.structure(model.dim());
        let particles = Columns::read(folder, "particles.parquet")?;
        let own: Vec<String> = structure
            .block_names()
            .iter()
            .enumerate()
            .flat_map(|(block, of)| {
                names.iter().map(
                    move |name| {
                        if block == 0 { name.clone() } else { format!("{of}_{name}") }
                    },
                )
            })
            .collect();
        let state = particles.matrix(&own)?;
        let draws = if folder.join("samples.parquet").exists() {
            samples(&Columns::read(folder, "samples.parquet")?, &names, state.rows())?
        } else {
            None
        };
        let course = course(&Columns::read(folder, "trace.parquet")?)?;
        Ok(Self { config, model, dynamics, structure, state, draws, course })
    }

    /// The draws where there are any, otherwise the last particles.
    pub fn sample(&self) -> Matrix<f64> {
        let dim = self.structure.dim();
        self.draws.as_ref().map_or_else(
            || Matrix::from_fn(self.state.rows(), dim, |i, j| self.state.row(i)[j]),
            Samples::theta,
        )
    }
}

/// The columns of a file, by name.
pub struct Columns {
    path: std::path::PathBuf,
    columns: HashMap<String, Values>,
}

impl Columns {
    fn read(folder: &Path, name: &str) -> Result<Self> {
        Self::open(folder.join(name))
    }

    pub fn open(path: std::path::PathBuf) -> Result<Self> {
        let columns = read_parquet(&path)?.into_iter();
        let columns = columns.map(|Column { name, values }| (name, values)).collect();
        Ok(Self { path, columns })
    }

    fn numbers(&self, name: &str) -> Result<Vec<f64>> {
        let damaged = |message: String| Error::RunDamaged { path: self.path.clone(), message };
        match self.columns.get(name) {
            None => Err(damaged(format!("there is no column `{name}`"))),
            Some(Values::F64(values)) => Ok(values.clone()),
            Some(Values::F32(values)) => Ok(values.iter().map(|&x| f64::from(x)).collect()),
            Some(Values::U64(values)) => Ok(values.iter().map(|&x| x as f64).collect()),
        }
    }

    /// The columns `names`, a row a row.
    pub fn matrix(&self, names: &[String]) -> Result<Matrix<f64>> {
        let columns: Vec<Vec<f64>> =
            names.iter().map(|name| self.numbers(name)).collect::<Result<_>>()?;
        let rows = columns.first().map_or(0, Vec::len);
        Ok(Matrix::from_fn(rows, names.len(), |i, j| columns[j][i]))
    }
}

fn samples(columns: &Columns, names: &[String], chains: usize) -> Result<Option<Samples<f64>>> {
    let theta = columns.matrix(names)?;
    if theta.rows() == 0 {
        return Ok(None);
    }
    let steps: Vec<u64> =
        columns.numbers("step")?.iter().step_by(chains).map(|&step| step as u64).collect();
    Ok(Some(Samples::resume(0, 1, chains, steps, theta)?))
}

fn course(columns: &Columns) -> Result<Course> {
    // Runs of earlier versions have no discrepancy.
    let ksd = columns.numbers("ksd").unwrap_or_default();
    Ok(Course {
        log_densities: columns.numbers("mean_log_density")?,
        discrepancies: ksd.into_iter().filter(|x| !x.is_nan()).collect(),
    })
}
