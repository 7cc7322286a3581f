//! The catalogue: every sampler that has a name, as a pair of dynamics and field.
//!
//! Names are what the command line and the Python package speak. Anything here can be put together
//! by hand from [`crate::dynamics`] and [`crate::field`]; the catalogue has no privilege.

use crate::dynamics::metric::EnergyMetric;
use crate::dynamics::{Dynamics, Langevin, Riemannian, Sghmc, Sgnht, Sgrhmc, ThirdOrder};
use crate::field::{Diffusion, Field, Stein};
use crate::kernel::Kernel;
use crate::{Error, Real, Result};

/// Which dynamics (A, C) a method has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynamicsKind {
    /// A = I.
    Langevin,
    /// A = G⁻¹(θ).
    Riemannian,
    /// Momentum with friction.
    Sghmc,
    /// Momentum in a metric.
    Sgrhmc,
    /// Momentum with a thermostat.
    Sgnht,
    /// Momentum of momentum.
    ThirdOrder,
}

/// How a method moves its particles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Drift and noise; independent chains.
    Diffusion,
    /// De-randomised.
    Stein,
    /// De-randomised, repulsion by A alone.
    SteinStarred,
}

/// A setting that only some dynamics have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A.
    Friction,
    /// σ, standard deviation of the momentum.
    Sigma,
    /// μ, precision of the thermostat.
    Mu,
    /// γ, coupling of third-order dynamics.
    Gamma,
    /// σᵤ, standard deviation of the third-order variable.
    SigmaU,
    /// The metric G⁻¹.
    Metric,
}

impl Parameter {
    /// The name that flags and configs use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Friction => "friction",
            Self::Sigma => "sigma",
            Self::Mu => "mu",
            Self::Gamma => "gamma",
            Self::SigmaU => "sigma-u",
            Self::Metric => "metric",
        }
    }
}

/// The values of all parameters; a dynamics takes those it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// A.
    pub friction: f64,
    /// σ.
    pub sigma: f64,
    /// μ.
    pub mu: f64,
    /// γ.
    pub gamma: f64,
    /// σᵤ.
    pub sigma_u: f64,
    /// G⁻¹.
    pub metric: EnergyMetric,
}

impl Default for Parameters {
    fn default() -> Self {
        let metric = EnergyMetric::default();
        Self { friction: 1.0, sigma: 1.0, mu: 1.0, gamma: 1.0, sigma_u: 1.0, metric }
    }
}

impl Parameters {
    /// Checks that the parameters a dynamics has are in range.
    pub fn validate(&self, kind: DynamicsKind) -> Result<()> {
        for parameter in kind.parameters() {
            let (value, may_be_zero) = match parameter {
                Parameter::Friction => (self.friction, true),
                Parameter::Sigma => (self.sigma, false),
                Parameter::Mu => (self.mu, false),
                Parameter::Gamma => (self.gamma, false),
                Parameter::SigmaU => (self.sigma_u, false),
                Parameter::Metric => (self.metric.scale, false),
            };
            let in_range = value > 0.0 || (may_be_zero && value == 0.0);
            if !in_range || !value.is_finite() {
                let bound = if may_be_zero { "zero or positive" } else { "positive" };
                let remedy = format!("it must be {bound} and finite");
                return Err(Error::setting(parameter.name(), value, remedy));
            }
        }
        Ok(())
    }
}

impl DynamicsKind {
    /// The parameters this dynamics has.
    pub fn parameters(self) -> &'static [Parameter] {
        use Parameter::{Friction, Gamma, Metric, Mu, Sigma, SigmaU};
        match self {
            Self::Langevin => &[],
            Self::Riemannian => &[Metric],
            Self::Sghmc => &[Friction, Sigma],
            Self::Sgrhmc => &[Metric, Sigma],
            Self::Sgnht => &[Friction, Sigma, Mu],
            Self::ThirdOrder => &[Friction, Sigma, Gamma, SigmaU],
        }
    }

    /// Whether there are auxiliary variables, and so something to split.
    pub fn has_momentum(self) -> bool {
        !matches!(self, Self::Langevin | Self::Riemannian)
    }

    /// The dynamics with these parameters.
    pub fn build<T: Real>(self, parameters: &Parameters) -> Box<dyn Dynamics<T>> {
        let &Parameters { friction, sigma, mu, gamma, sigma_u, .. } = parameters;
        let (metric, variance) = (parameters.metric.clone(), sigma * sigma);
        match self {
            Self::Langevin => Box::new(Langevin::new()),
            Self::Riemannian => Box::new(Riemannian { metric }),
            Self::Sghmc => Box::new(Sghmc { friction, variance }),
            Self::Sgrhmc => Box::new(Sgrhmc { metric, variance }),
            Self::Sgnht => Box::new(Sgnht { friction, variance, thermostat_precision: mu }),
            Self::ThirdOrder => Box::new(ThirdOrder {
                friction,
                coupling: gamma,
                variance,
                variance_u: sigma_u * sigma_u,
            }),
        }
    }

    /// f, in the paper's symbols.
    fn drift(self) -> &'static str {
        match self {
            Self::Langevin => "f = ∇log π",
            Self::Riemannian => "f = G⁻¹∇log π + ∇·G⁻¹",
            Self::Sghmc => "θ' = r/σ², r' = ∇log π − A r/σ²",
            Self::Sgrhmc => "θ' = G^-½ r/σ², r' = G^-½∇log π − G⁻¹r/σ² + ∇·G^-½",
            Self::Sgnht => "θ' = r/σ², r' = ∇log π − ξ⊙r/σ², ξ' = (r⊙r/σ² − 1)/(μσ²)",
            Self::ThirdOrder => "θ' = r/σ², r' = ∇log π + γu/σᵤ², u' = −γr/σ² − A u/σᵤ²",
        }
    }
}

impl FieldKind {
    /// Whether particles feel each other, through a kernel.
    pub fn interacts(self) -> bool {
        self != Self::Diffusion
    }

    /// The field, with a kernel if it interacts.
    pub fn build<T: Real>(self, kernel: Kernel) -> Box<dyn Field<T>> {
        match self {
            Self::Diffusion => Box::new(Diffusion),
            Self::Stein => Box::new(Stein::new(kernel)),
            Self::SteinStarred => Box::new(Stein::starred(kernel)),
        }
    }

    /// How f becomes a motion.
    fn formula(self) -> &'static str {
        match self {
            Self::Diffusion => "dz = f dt + √(2A) dW",
            Self::Stein => "v = E[k f + (A + C)∇₂k]",
            Self::SteinStarred => "v = E[k f + A∇₂k]",
        }
    }
}

/// A sampler with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// The name.
    pub name: &'static str,
    /// (A, C).
    pub dynamics: DynamicsKind,
    /// The field.
    pub field: FieldKind,
    /// Where it comes from.
    pub reference: &'static str,
}

impl Method {
    /// Finds a method by its name; an unknown name gets the nearest one suggested.
    ///
    /// ```
    /// use steinflow::method::Method;
    /// assert!(Method::named("sghmc-stein")?.dynamics.has_momentum());
    /// let error = Method::named("sghmc-stien").unwrap_err();
    /// assert!(error.to_string().contains("did you mean `sghmc-stein`?"));
    /// # Ok::<(), steinflow::Error>(())
    /// ```
    pub fn named(name: &str) -> Result<Self> {
        METHODS
            .iter()
            .find(|method| method.name == name)
            .copied()
            .ok_or_else(|| Error::unknown("method", name, METHODS.iter().map(|m| m.name)))
    }

    /// The method in the paper's symbols.
    pub fn formula(&self) -> String {
        format!("{};  {}", self.field.formula(), self.dynamics.drift())
    }
}

const fn method(
    name: &'static str,
    dynamics: DynamicsKind,
    field: FieldKind,
    reference: &'static str,
) -> Method {
    Method { name, dynamics, field, reference }
}

const THIS_PAPER: &str = "Shen, Heinonen & Kaski 2021";

/// All methods.
pub const METHODS: &[Method] = &[
    method("ld", DynamicsKind::Langevin, FieldKind::Diffusion, "Welling & Teh 2011"),
    method("sgrld", DynamicsKind::Riemannian, FieldKind::Diffusion, "Girolami & Calderhead 2011"),
    method("sghmc", DynamicsKind::Sghmc, FieldKind::Diffusion, "Chen, Fox & Guestrin 2014"),
    method("sgrhmc", DynamicsKind::Sgrhmc, FieldKind::Diffusion, "Ma, Chen & Fox 2015"),
    method("sgnht", DynamicsKind::Sgnht, FieldKind::Diffusion, "Ding et al. 2014"),
    method("third-order", DynamicsKind::ThirdOrder, FieldKind::Diffusion, "Mou et al. 2021"),
    method("svgd", DynamicsKind::Langevin, FieldKind::Stein, "Liu & Wang 2016"),
    method("rsvgd", DynamicsKind::Riemannian, FieldKind::Stein, "Liu & Zhu 2018"),
    method("sghmc-stein", DynamicsKind::Sghmc, FieldKind::Stein, THIS_PAPER),
    method("sgrhmc-stein", DynamicsKind::Sgrhmc, FieldKind::Stein, THIS_PAPER),
    method("sgnht-stein", DynamicsKind::Sgnht, FieldKind::Stein, THIS_PAPER),
    method("third-order-stein", DynamicsKind::ThirdOrder, FieldKind::Stein, THIS_PAPER),
    method("sghmc-stein-alt", DynamicsKind::Sghmc, FieldKind::SteinStarred, THIS_PAPER),
    method("sgrhmc-stein-alt", DynamicsKind::Sgrhmc, FieldKind::SteinStarred, THIS_PAPER),
    method("sgnht-stein-alt", DynamicsKind::Sgnht, FieldKind::SteinStarred, THIS_PAPER),
    method("third-order-stein-alt", DynamicsKind::ThirdOrder, FieldKind::SteinStarred, THIS_PAPER),
];
