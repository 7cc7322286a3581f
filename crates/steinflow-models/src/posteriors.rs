//! Posteriors as people have them: real or simulated data in their natural units, a prior, a
//! likelihood, and parameters on the unconstrained scale.
//!
//! Nothing is standardised: years run from 1947, wages are in dollars, rivers in millions of cubic
//! metres, so standard deviations of parameters span ten orders of magnitude. None has a closed
//! form; `experiments/posteriors` holds means and standard deviations from long runs. Half of the set
//! is [`Half::Open`]: constants of samplers may be chosen on it. The other is kept
//! [`Half::Apart`]: it only judges.
//!
//! ```
//! use steinflow_models::{Describe, posteriors};
//!
//! let posterior = posteriors::find("eight-schools-centred").expect("in the set").build();
//! assert_eq!(posterior.parameter_names()[..3], ["mu", "log tau", "theta[1]"]);
//! ```

mod binary;
mod counts;
mod curves;
mod densities;
mod hierarchical;
mod processes;
mod regression;
mod simulation;
mod time_series;

use densities::Number;
use simulation::Draws;
use steinflow::target::{Autodiff, DualNum, GenericLogDensity, PerParticle};
use steinflow::{LogDensity, MatMut, MatRef, Matrix, Minibatch, Real};

use crate::checks::require_shapes;
use crate::{Describe, Start};

/// Whether constants of a sampler may be chosen on a posterior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Constants may be chosen on it.
    Open,
    /// It only judges.
    Apart,
}

/// One entry of the set.
#[derive(Clone, Copy, Debug)]
pub struct PosteriorInfo {
    /// What [`find`] finds it by.
    pub name: &'static str,
    /// Data and model, in a line.
    pub description: &'static str,
    /// Halves alternate in the order of names; they were dealt before any result was seen.
    pub half: Half,
    build: fn() -> Posterior,
}

impl PosteriorInfo {
    /// Makes the posterior, with its data.
    pub fn build(&self) -> Posterior {
        (self.build)()
    }
}

/// The posterior of that name.
pub fn find(name: &str) -> Option<&'static PosteriorInfo> {
    all().iter().find(|info| info.name == name)
}

/// The whole set, in the order of names.
pub fn all() -> &'static [PosteriorInfo] {
    const fn open(
        name: &'static str,
        description: &'static str,
        build: fn() -> Posterior,
    ) -> PosteriorInfo {
        PosteriorInfo { name, description, half: Half::Open, build }
    }
    const fn apart(
        name: &'static str,
        description: &'static str,
        build: fn() -> Posterior,
    ) -> PosteriorInfo {
        PosteriorInfo { half: Half::Apart, ..open(name, description, build) }
    }
    const ALL: &[PosteriorInfo] = &[
        open(
            "airline-seasonal",
            "monthly airline passengers 1949–1960: trend in the year, seasons, AR(1) errors",
            differentiated::<time_series::Airline>,
        ),
        apart(
            "beetles-probit",
            "Bliss's beetles killed by carbon disulphide: probit in the log dose",
            differentiated::<binary::Beetles>,
        ),
        open(
            "challenger-logistic",
            "O-ring failures of 23 shuttle flights: logistic in the temperature in °F",
            differentiated::<binary::Challenger>,
        ),
        apart(
            "claims-poisson",
            "insurance claims with exposure: Poisson in age, horsepower and year",
            differentiated::<counts::Claims>,
        ),
        open(
            "coal-change-point",
            "coal-mining disasters 1851–1961: Poisson with one change, summed over its year",
            differentiated::<counts::Coal>,
        ),
        apart(
            "commute-multinomial",
            "car, bus or bicycle: multinomial logit in distance and income",
            differentiated::<binary::Commute>,
        ),
        open(
            "credit-saturated-logistic",
            "almost separable defaults: logistic in income and debt in dollars",
            differentiated::<binary::Credit>,
        ),
        apart(
            "dose-response",
            "fluorescence against concentration: logistic curve of four parameters",
            differentiated::<curves::DoseResponse>,
        ),
        open(
            "eight-schools-centred",
            "effects of coaching in eight schools, centred: a funnel",
            differentiated::<hierarchical::SchoolsCentred>,
        ),
        apart(
            "eight-schools-non-centred",
            "effects of coaching in eight schools, non-centred",
            differentiated::<hierarchical::SchoolsNonCentred>,
        ),
        open(
            "faithful-mixture",
            "waiting times between eruptions: two normals with ordered means",
            differentiated::<processes::Faithful>,
        ),
        apart(
            "gp-latent-poisson",
            "counts along a road: Poisson with a latent Gaussian process",
            by_hand::<processes::LatentPoisson>,
        ),
        open(
            "gp-regression",
            "ozone through a day: hyperparameters of a Gaussian process",
            differentiated::<processes::Ozone>,
        ),
        apart(
            "hare-lynx-ode",
            "pelts of hares and lynxes 1900–1920: Lotka–Volterra equations",
            differentiated::<curves::HareLynx>,
        ),
        open(
            "horseshoe-regression",
            "15 features of which 3 matter: regularised horseshoe",
            by_hand::<regression::Horseshoe>,
        ),
        apart(
            "influenza-sir",
            "influenza in a boarding school: SIR equations, negative binomial counts",
            differentiated::<curves::Influenza>,
        ),
        open(
            "insect-sprays",
            "insects under six sprays: Poisson with rates from a common law, centred",
            differentiated::<counts::Sprays>,
        ),
        apart(
            "item-response",
            "30 pupils and 10 questions: two-parameter logistic model",
            by_hand::<hierarchical::ItemResponse>,
        ),
        open(
            "leukaemia-weibull",
            "weeks in remission of 42 patients: Weibull with censoring",
            differentiated::<curves::Leukaemia>,
        ),
        apart(
            "longley-linear",
            "Longley's macroeconomic table: linear, raw and almost collinear",
            differentiated::<regression::Longley>,
        ),
        open(
            "markets-garch",
            "300 daily returns in percent: GARCH(1, 1)",
            differentiated::<time_series::Garch>,
        ),
        apart(
            "markets-stochastic-volatility",
            "100 weekly returns in percent: stochastic volatility, centred",
            by_hand::<time_series::StochasticVolatility>,
        ),
        open(
            "measurement-error",
            "harvest against rain that gauges measure with error: errors in variables",
            differentiated::<regression::MeasurementError>,
        ),
        apart(
            "nile-local-level",
            "flow of the Nile 1871–1970: random walk plus noise, by the Kalman filter",
            differentiated::<time_series::Nile>,
        ),
        open(
            "orange-trees-growth",
            "circumference of five orange trees in mm: logistic growth, varying asymptotes",
            differentiated::<curves::OrangeTrees>,
        ),
        apart(
            "pumps",
            "failures of ten pumps: Poisson with rates from a learned Gamma",
            differentiated::<counts::Pumps>,
        ),
        open(
            "puromycin-michaelis-menten",
            "speed of an enzyme against concentration: Michaelis–Menten curve",
            differentiated::<curves::Puromycin>,
        ),
        apart(
            "radon-centred",
            "radon in 20 counties: varying intercepts with uranium, centred",
            differentiated::<hierarchical::RadonCentred>,
        ),
        open(
            "radon-slopes-non-centred",
            "radon in 12 counties: correlated intercepts and slopes, non-centred",
            differentiated::<hierarchical::RadonSlopes>,
        ),
        apart(
            "ratings-ordinal",
            "stars of hotels: cumulative logit in price and age",
            differentiated::<binary::Ratings>,
        ),
        open(
            "regimes-hidden-markov",
            "wet and dry weeks: two hidden states, by the forward algorithm",
            differentiated::<time_series::Regimes>,
        ),
        apart(
            "reservoir-ar2",
            "level of a reservoir in mm: AR(2) with an intercept",
            differentiated::<time_series::Reservoir>,
        ),
        open(
            "spread-heteroscedastic",
            "spending on food against income: mean and log noise both linear",
            differentiated::<regression::Spread>,
        ),
        apart(
            "stack-loss-student",
            "Brownlee's stack loss: linear with Student-t noise of learned shape",
            differentiated::<regression::StackLoss>,
        ),
        open(
            "tumours-beta-binomial",
            "tumours in litters against dose in mg: beta-binomial",
            differentiated::<binary::Tumours>,
        ),
        apart(
            "wages-linear",
            "wages in dollars against year, age and schooling: linear, learned noise",
            differentiated::<regression::Wages>,
        ),
        open(
            "warp-breaks-negative-binomial",
            "breaks of yarn against wool and tension: negative binomial",
            differentiated::<counts::WarpBreaks>,
        ),
    ];
    ALL
}

/// A posterior of the set: a [`Model`](crate::Model) in either precision. It is evaluated in `f64`.
pub struct Posterior {
    parameters: Vec<String>,
    density: Box<dyn LogDensity<f64>>,
}

impl std::fmt::Debug for Posterior {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut structure = formatter.debug_struct("Posterior");
        structure.field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

impl<T: Real> LogDensity<T> for Posterior {
    fn dim(&self) -> usize {
        self.parameters.len()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        _rows: Option<&Minibatch>,
        log_density: &mut [T],
        mut score: MatMut<'_, T>,
    ) -> steinflow::Result<()> {
        let (rows, cols) = (theta.rows(), theta.cols());
        require_shapes(self.parameters.len(), theta, log_density, score.rows(), score.cols())?;
        let wide = Matrix::from_fn(rows, cols, |i, j| theta.row(i)[j].as_f64());
        let (mut values, mut scores) = (vec![0.0; rows], Matrix::zeros(rows, cols));
        self.density.evaluate(wide.as_ref(), None, &mut values, scores.as_mut())?;
        for (to, from) in log_density.iter_mut().zip(values) {
            *to = T::of(from);
        }
        for (to, &from) in score.as_mut_slice().iter_mut().zip(scores.as_slice()) {
            *to = T::of(from);
        }
        Ok(())
    }
}

impl Describe for Posterior {
    fn parameter_names(&self) -> Vec<String> {
        self.parameters.clone()
    }

    /// Every posterior is finite at 0, and few are near it.
    fn start(&self) -> Start {
        Start::around_zero(self.parameters.len(), 1.0)
    }
}

/// The data and the parameters of a posterior.
trait Experiment: Send + Sync + Sized + 'static {
    /// The data: copied from the literature, or simulated with `draws`.
    fn observe(draws: &mut Draws) -> Self;

    /// One name for every coordinate of θ.
    fn parameters(&self) -> Vec<String>;
}

/// An experiment whose score follows from its log density.
trait Generic: Experiment {
    /// Log prior and log likelihood, with the Jacobians of constrained parameters, up to a constant.
    fn log_density<D: Number>(&self, theta: &[D]) -> D;
}

/// An experiment with too many parameters for one forward pass each.
trait ByHand: Experiment {
    /// Adds ∇log π(θ) to `score`, which is 0, and returns log π(θ).
    fn log_density_and_score(&self, theta: &[f64], score: &mut [f64]) -> f64;
}

struct Differentiable<G> {
    experiment: G,
    dim: usize,
}

impl<G: Generic> GenericLogDensity for Differentiable<G> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn log_density<D: DualNum<Primitive = f64> + Copy>(&self, theta: &[D]) -> D {
        self.experiment.log_density(theta)
    }
}

fn differentiated<G: Generic>() -> Posterior {
    let experiment = G::observe(&mut Draws::new());
    let parameters = experiment.parameters();
    let density = Autodiff::new(Differentiable { experiment, dim: parameters.len() });
    Posterior { parameters, density: Box::new(density) }
}

fn by_hand<H: ByHand>() -> Posterior {
    let experiment = H::observe(&mut Draws::new());
    let parameters = experiment.parameters();
    let evaluate = move |theta: &[f64], score: &mut [f64]| {
        score.fill(0.0);
        experiment.log_density_and_score(theta, score)
    };
    let density = PerParticle::new(parameters.len(), evaluate);
    Posterior { parameters, density: Box::new(density) }
}

/// Names in one string, separated by commas.
fn names(list: &str) -> Vec<String> {
    list.split(", ").map(str::to_owned).collect()
}

/// `name[1]`, …, `name[count]`.
fn numbered(name: &str, count: usize) -> impl Iterator<Item = String> {
    (1..=count).map(move |i| format!("{name}[{i}]"))
}
