//! The catalogue: every sampler that has a name, as a pair of dynamics and field.
//!
//! Names are what the command line and the Python package speak. Anything here can be put together
//! by hand from [`crate::dynamics`] and [`crate::field`]; the catalogue has no privilege.

mod parameters;
mod step_size;

pub use parameters::{Parameter, Parameters};

use crate::dynamics::{Dynamics, Langevin, Riemannian, Sghmc, Sgnht, Sgrhmc, ThirdOrder};
use crate::field::{Diffusion, Drift, Estimator, Field, Lawgd, LogRatio, ProductSpace, Stein};
use crate::kernel::Kernel;
use crate::{Error, LogDensity, Real, Result};

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
    /// Blob estimate of ∇log ρ.
    Blob,
    /// Blob, repulsion by A alone.
    BlobStarred,
    /// Kernel density estimate of ∇log ρ.
    Gfsd,
    /// ∇log ρ from smoothed functions: K⁻¹B.
    Gfsf,
    /// Stein gradient estimator: (K + ηI)⁻¹B.
    SteinGradient,
    /// Stein with the correlated noise that makes it exact.
    Product,
    /// Stein with independent noise: biased.
    Spos,
    /// SPOS with correlated and independent noise: exact.
    SposExact,
    /// Drift alone: modes, not samples.
    Drift,
    /// LAWGD: the inverse generator on a grid; one or two dimensions.
    Lawgd,
}

impl DynamicsKind {
    const ALL: [Self; 6] = [
        Self::Langevin,
        Self::Riemannian,
        Self::Sghmc,
        Self::Sgrhmc,
        Self::Sgnht,
        Self::ThirdOrder,
    ];

    /// The parameters this dynamics has.
    fn parameters(self) -> &'static [Parameter] {
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

    /// Whether there are auxiliary variables, and so something to split and to resample.
    pub fn has_momentum(self) -> bool {
        !matches!(self, Self::Langevin | Self::Riemannian)
    }

    /// Whether C depends on the state, for which there is no product-space noise.
    fn curl_varies(self) -> bool {
        matches!(self, Self::Sgrhmc | Self::Sgnht)
    }

    fn build<T: Real>(self, parameters: &Parameters) -> Box<dyn Dynamics<T>> {
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

    /// The name of its diffusion.
    fn name(self) -> &'static str {
        match self {
            Self::Langevin => "ld",
            Self::Riemannian => "sgrld",
            Self::Sghmc => "sghmc",
            Self::Sgrhmc => "sgrhmc",
            Self::Sgnht => "sgnht",
            Self::ThirdOrder => "third-order",
        }
    }

    /// f, in the paper's symbols.
    pub fn drift(self) -> &'static str {
        match self {
            Self::Langevin => "f = ∇log π",
            Self::Riemannian => "f = G⁻¹∇log π + ∇·G⁻¹",
            Self::Sghmc => "θ' = r/σ², r' = ∇log π − A r/σ²",
            Self::Sgrhmc => "θ' = G^-½ r/σ², r' = G^-½∇log π − G⁻¹r/σ² + ∇·G^-½",
            Self::Sgnht => "θ' = r/σ², r' = ∇log π − ξ⊙r/σ², ξ' = (r⊙r/σ² − 1)/(μσ²)",
            Self::ThirdOrder => "θ' = r/σ², r' = ∇log π + γu/σᵤ², u' = −γr/σ² − A u/σᵤ²",
        }
    }

    fn reference(self) -> &'static str {
        match self {
            Self::Langevin => "Welling & Teh 2011",
            Self::Riemannian => "Girolami & Calderhead 2011",
            Self::Sghmc => "Chen, Fox & Guestrin 2014",
            Self::Sgrhmc => "Ma, Chen & Fox 2015",
            Self::Sgnht => "Ding et al. 2014",
            Self::ThirdOrder => "Mou et al. 2021",
        }
    }
}

impl FieldKind {
    /// The fields that go with any dynamics, in the order they are listed.
    const OVER_ANY: [Self; 9] = [
        Self::Diffusion,
        Self::Stein,
        Self::SteinStarred,
        Self::Blob,
        Self::BlobStarred,
        Self::Gfsd,
        Self::Gfsf,
        Self::SteinGradient,
        Self::Product,
    ];

    /// Whether particles feel each other through a kernel.
    pub fn has_kernel(self) -> bool {
        !matches!(self, Self::Diffusion | Self::Drift | Self::Lawgd)
    }

    /// Whether there is noise.
    pub fn is_random(self) -> bool {
        matches!(self, Self::Diffusion | Self::Product | Self::Spos | Self::SposExact)
    }

    fn parameters(self) -> &'static [Parameter] {
        use Parameter::{Adapt, Cells, NoiseStrength, Regulariser, Smoothing, SolveMemory};
        match self {
            Self::Gfsf => &[SolveMemory],
            Self::SteinGradient => &[Regulariser, SolveMemory],
            Self::Product => &[Adapt],
            Self::Spos => &[NoiseStrength],
            Self::SposExact => &[NoiseStrength, Adapt],
            Self::Lawgd => &[Cells, Smoothing],
            _ => &[],
        }
    }

    /// How −∇log ρ is estimated, by the fields that do.
    fn estimator(self, parameters: &Parameters) -> Option<Estimator> {
        let memory_limit = parameters.solve_memory;
        match self {
            Self::Blob | Self::BlobStarred => Some(Estimator::Blob),
            Self::Gfsd => Some(Estimator::KernelDensity),
            Self::Gfsf => Some(Estimator::SteinGradient { regulariser: 0.0, memory_limit }),
            Self::SteinGradient => {
                let regulariser = parameters.regulariser;
                Some(Estimator::SteinGradient { regulariser, memory_limit })
            }
            _ => None,
        }
    }

    /// What an N×N solve of the field takes, in bytes; 0 where there is none.
    pub fn solve_memory(self, parameters: &Parameters, particles: usize) -> u64 {
        self.estimator(parameters).map_or(0, |estimator| estimator.memory(particles))
    }

    /// How f becomes a motion.
    pub fn formula(self) -> &'static str {
        match self {
            Self::Diffusion => "dz = f dt + √(2A) dW",
            Self::Stein => "v = E[k f + (A + C)∇₂k]",
            Self::SteinStarred => "v = E[k f + A∇₂k]",
            Self::Blob => "v = (A + C)(∇log π + u), u = Σⱼ∇₂k (1/κᵢ + 1/κⱼ)",
            Self::BlobStarred => "v = (A + C)∇log π + ∇·C + A u, u = Σⱼ∇₂k (1/κᵢ + 1/κⱼ)",
            Self::Gfsd => "v = (A + C)(∇log π + u), u = Σⱼ∇₂k/κᵢ",
            Self::Gfsf => "v = (A + C)(∇log π + u), u = K⁻¹Σⱼ∇₂k",
            Self::SteinGradient => "v = (A + C)(∇log π + u), u = (K + ηI)⁻¹Σⱼ∇₂k",
            Self::Product => "dz = E[k f + (A + C)∇₂k] dt + √(2Ã) dW, Ãᵢⱼ = kᵢⱼ(Aᵢ + Aⱼ)/2N",
            Self::Spos => "dz = (E[k f + ∇₂k] + σ²f) dt + √(2σ²) dW",
            Self::SposExact => "dz = (E[k f + ∇₂k] + σ²f) dt + √(2K/N + 2σ²) dW",
            Self::Drift => "dz = f dt",
            Self::Lawgd => "v = −M∇φ, −𝒜φ = ρ/π − 1, 𝒜g = (1/π)∇·(πM∇g)",
        }
    }

    /// A heading for the methods of this field.
    pub fn title(self) -> &'static str {
        match self {
            Self::Diffusion => "Diffusions: independent chains with noise",
            Self::Stein => "Stein (GSVGD): deterministic, interacting",
            Self::SteinStarred => "Stein*: repulsion by A only; the particles never stop",
            Self::Blob => "Blob: deterministic, interacting",
            Self::BlobStarred => "Blob*: repulsion by A only; the particles never stop",
            Self::Gfsd => "GFSD: smoothed density",
            Self::Gfsf => "GFSF: smoothed functions, one N×N solve per velocity",
            Self::SteinGradient => "Stein gradient estimator: GFSF with a regulariser",
            Self::Product => "Product space: Stein with the noise that makes it exact for every N",
            Self::Spos => "SPOS: Stein with independent noise; biased",
            Self::SposExact => "SPOS, corrected: exact for every N",
            Self::Drift => "Deep ensembles: independent descents to modes, not samples",
            Self::Lawgd => "LAWGD: KL falls at the rate χ²; one or two dimensions",
        }
    }

    fn reference(self) -> &'static str {
        match self {
            Self::Blob | Self::BlobStarred => "Chen et al. 2018, Liu et al. 2019",
            Self::Gfsd | Self::Gfsf => "Liu et al. 2019",
            Self::SteinGradient => "Li & Turner 2018",
            Self::Spos => "Zhang et al. 2020",
            Self::Drift => "Lakshminarayanan et al. 2017",
            Self::Lawgd => "Chewi et al. 2020",
            _ => "Shen, Heinonen & Kaski 2021",
        }
    }
}

/// A target and a window `[(low, high), …]` that holds nearly all of it.
#[derive(Clone, Copy)]
pub struct Region<'a> {
    /// π.
    pub target: &'a dyn LogDensity<f64>,
    /// Limits per coordinate.
    pub window: &'a [(f64, f64)],
}

/// A sampler with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// The name.
    pub name: String,
    /// (A, C).
    pub dynamics: DynamicsKind,
    /// The field.
    pub field: FieldKind,
}

impl Method {
    fn new(dynamics: DynamicsKind, field: FieldKind) -> Self {
        let base = dynamics.name();
        let name = match (dynamics, field) {
            (_, FieldKind::Diffusion) => base.to_owned(),
            (DynamicsKind::Langevin, FieldKind::Stein) => "svgd".to_owned(),
            (DynamicsKind::Riemannian, FieldKind::Stein) => "rsvgd".to_owned(),
            (DynamicsKind::Langevin, FieldKind::Product) => "svgd-product".to_owned(),
            (DynamicsKind::Riemannian, FieldKind::Product) => "rsvgd-product".to_owned(),
            (_, FieldKind::Spos) => "spos".to_owned(),
            (_, FieldKind::SposExact) => "spos-exact".to_owned(),
            (_, FieldKind::Drift) => "de".to_owned(),
            (DynamicsKind::Langevin, FieldKind::Lawgd) => "lawgd".to_owned(),
            (_, FieldKind::Lawgd) => format!("{base}-lawgd"),
            _ => {
                let suffix = match field {
                    FieldKind::Stein => "stein",
                    FieldKind::SteinStarred => "stein-alt",
                    FieldKind::Blob => "blob",
                    FieldKind::BlobStarred => "blob-alt",
                    FieldKind::Gfsd => "gfsd",
                    FieldKind::Gfsf => "gfsf",
                    FieldKind::SteinGradient => "sge",
                    _ => "product",
                };
                match dynamics {
                    DynamicsKind::Langevin => suffix.to_owned(),
                    _ => format!("{base}-{suffix}"),
                }
            }
        };
        Self { name, dynamics, field }
    }

    /// All methods, field by field.
    pub fn all() -> Vec<Self> {
        use FieldKind::{BlobStarred, Drift, Lawgd, Product, Spos, SposExact, SteinStarred};
        let mut all = Vec::new();
        for field in FieldKind::OVER_ANY {
            for dynamics in DynamicsKind::ALL {
                let has_curl = dynamics.has_momentum();
                let fits = match field {
                    // Without a curl the starred variant is the plain one.
                    SteinStarred | BlobStarred => has_curl,
                    Product => !dynamics.curl_varies(),
                    _ => true,
                };
                if fits {
                    all.push(Self::new(dynamics, field));
                }
            }
        }
        all.extend([Spos, SposExact].map(|field| Self::new(DynamicsKind::Langevin, field)));
        all.push(Self::new(DynamicsKind::Sghmc, Drift));
        // Its grid is over θ alone.
        let on_theta = [DynamicsKind::Langevin, DynamicsKind::Riemannian];
        all.extend(on_theta.map(|dynamics| Self::new(dynamics, Lawgd)));
        all
    }

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
        let all = Self::all();
        match all.iter().find(|method| method.name == name) {
            Some(method) => Ok(method.clone()),
            None => Err(Error::unknown("method", name, all.iter().map(|m| m.name.as_str()))),
        }
    }

    /// (A, C) with these parameters.
    pub fn build_dynamics<T: Real>(&self, parameters: &Parameters) -> Box<dyn Dynamics<T>> {
        self.dynamics.build(parameters)
    }

    /// The field with these parameters, and a kernel where it has one.
    ///
    /// LAWGD looks at its target beforehand, over a window that holds nearly all of π: `region` is
    /// the target and the window. Other fields ignore it.
    pub fn build_field<T: Real>(
        &self,
        kernel: Kernel,
        parameters: &Parameters,
        region: Option<Region<'_>>,
    ) -> Result<Box<dyn Field<T>>> {
        let &Parameters { noise_strength, adapt, smoothing, cells, .. } = parameters;
        if let Some(estimator) = self.field.estimator(parameters) {
            return Ok(Box::new(match self.field {
                FieldKind::BlobStarred => LogRatio::starred(kernel, estimator),
                _ => LogRatio::new(kernel, estimator),
            }));
        }
        Ok(match self.field {
            FieldKind::Diffusion => Box::new(Diffusion),
            FieldKind::SteinStarred => Box::new(Stein::starred(kernel)),
            FieldKind::Product => Box::new(ProductSpace::new(kernel, adapt)),
            FieldKind::Spos => Box::new(ProductSpace::spos(kernel, noise_strength)),
            FieldKind::SposExact => {
                Box::new(ProductSpace::spos_exact(kernel, noise_strength, adapt))
            }
            FieldKind::Drift => Box::new(Drift),
            FieldKind::Lawgd => {
                let Some(Region { target, window }) = region else {
                    let remedy = "it works on a grid: say over which window of the target";
                    return Err(Error::setting("field", "LAWGD without a window", remedy));
                };
                let plane = target.dim() > 1;
                let cells = cells.unwrap_or(if plane { 64 } else { 1000 });
                let dynamics = self.dynamics.build::<f64>(parameters);
                let field = Lawgd::new(target, &*dynamics, window, cells)?;
                // On a line LAWGD is exact; in the plane particles lock into a lattice without it.
                match smoothing.unwrap_or(if plane { 0.1 } else { 0.0 }) {
                    0.0 => Box::new(field),
                    time => Box::new(field.smoothed(time)?),
                }
            }
            _ => Box::new(Stein::new(kernel)),
        })
    }

    /// The parameters it has: its dynamics', then its field's.
    pub fn parameters(&self) -> Vec<Parameter> {
        [self.dynamics.parameters(), self.field.parameters()].concat()
    }

    /// Where it comes from.
    pub fn reference(&self) -> &'static str {
        match (self.dynamics, self.field) {
            (_, FieldKind::Diffusion) => self.dynamics.reference(),
            (DynamicsKind::Langevin, FieldKind::Stein) => "Liu & Wang 2016",
            (DynamicsKind::Riemannian, FieldKind::Stein) => "Liu & Zhu 2018",
            _ => self.field.reference(),
        }
    }

    /// The method in the paper's symbols.
    pub fn formula(&self) -> String {
        format!("{};  {}", self.field.formula(), self.dynamics.drift())
    }
}
