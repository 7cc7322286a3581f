//! A run, read back from its folder.

use std::path::Path;

use steinflow::Matrix;
use steinflow::diagnostics::{Course, StopRule};
use steinflow::dynamics::{Dynamics, Structure};
use steinflow::run::{Samples, Standing, WarmMoments};
use steinflow_io::Values;
use steinflow_io::record::{self, FinishedRun, Table, column};
use steinflow_models::network::NetworkFit;
use steinflow_models::{Model, NETWORK};

use crate::error::Result;
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
    pub stop_rule: Option<StopRule>,
    pub warm_moments: Option<WarmMoments>,
    /// Evaluations of all particles.
    pub gradients: u64,
}

impl PastRun {
    pub fn read(folder: &Path) -> Result<Self> {
        let run = FinishedRun::open(folder)?;
        let settings = Settings::parse(&run.path(record::CONFIG), &run.config()?)?;
        let config = Config::resolve(settings)?;
        let spec = config.spec().clone();
        let model: Box<dyn Model<f64>> = if spec.name() == NETWORK {
            Box::new(NetworkFit::<f64>::new(&spec)?.network)
        } else {
            steinflow_models::build::<f64>(&spec)?
        };
        let names = model.parameter_names();
        let dynamics = config.dynamics::<f64>();
        let structure = dynamics.structure(model.dim());
        let own =
            record::state_columns(&structure.block_names(), (&names, &model.coordinate_names()));
        let units = model.units();
        let hidden = |shown: Matrix<f64>| match &units {
            Some(units) => units.hide(&shown),
            None => shown,
        };
        let state = hidden(run.table(record::PARTICLES)?.matrix(&own)?);
        let draws = run
            .filled_table(record::SAMPLES)?
            .map(|table| samples(&table, hidden(table.matrix(&names)?), state.rows()))
            .transpose()?;
        let course = course(&run.table(record::TRACE)?)?;
        let summary = run.summary()?;
        let warm_moments = summary.warm_up.map(|draws| WarmMoments {
            draws: draws.draws,
            mean: draws.mean,
            sd: draws.sd,
            standing: Standing::named(&draws.standing),
        });
        let stop_rule = summary.ensemble.map(|ensemble| StopRule {
            is_met: ensemble.done,
            reasons: ensemble.reasons,
            effective: ensemble.effective,
            rhat: ensemble.rhat,
            drift: ensemble.drift,
        });
        Ok(Self {
            config,
            model,
            dynamics,
            structure,
            state,
            draws,
            course,
            stop_rule,
            warm_moments,
            gradients: summary.gradients,
        })
    }

    /// The draws where there are any, otherwise the last particles, as they are shown.
    pub fn shown(&self) -> Matrix<f64> {
        let sample = self.sample();
        self.model.units().map_or_else(|| sample.clone(), |units| units.show(&sample))
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

fn samples(table: &Table, theta: Matrix<f64>, chains: usize) -> Result<Samples<f64>> {
    let steps = table.column(column::STEP)?.counts().into_iter().step_by(chains).collect();
    Ok(Samples::resume(0, 1, chains, steps, theta)?)
}

fn course(table: &Table) -> Result<Course> {
    // Runs of earlier versions have no discrepancy.
    let ksd = table.find(column::KSD).map(Values::numbers).unwrap_or_default();
    Ok(Course {
        log_densities: table.column(column::MEAN_LOG_DENSITY)?.numbers(),
        discrepancies: ksd.into_iter().filter(|x| !x.is_nan()).collect(),
    })
}
