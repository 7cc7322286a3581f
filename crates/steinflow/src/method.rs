//! The catalogue: every sampler that has a name, as a pair of dynamics and field.
//!
//! Names are what the command line and the Python package speak. Anything here can be put together
//! by hand from [`crate::dynamics`] and [`crate::field`]; the catalogue has no privilege.

mod dynamics_kind;
mod field_kind;
mod parameters;
mod step_size;

pub use dynamics_kind::DynamicsKind;
pub(crate) use dynamics_kind::{About, Catalogued};
pub use field_kind::FieldKind;
pub use parameters::{Kind, Parameter, Parameters, Value};

use crate::dynamics::Dynamics;
use crate::field::{Diffusion, Drift, Estimator, Field, Lawgd, LogRatio, ProductSpace, Stein};
use crate::kernel::Kernel;
use crate::{Error, LogDensity, Real, Result};

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
        let (about, suffix) = (dynamics.about(), field.name());
        let own_name = about.derandomised.map(|(name, _)| name);
        let name = match (field, own_name) {
            (FieldKind::Diffusion, _) => about.name.to_owned(),
            (FieldKind::Stein, Some(own)) => own.to_owned(),
            (FieldKind::Product, Some(own)) => format!("{own}-{suffix}"),
            (FieldKind::Drift, _) => "de".to_owned(),
            // Fields that were published for Langevin dynamics have their bare name there.
            _ if dynamics == DynamicsKind::Langevin => suffix.to_owned(),
            _ => format!("{}-{suffix}", about.name),
        };
        Self { name, dynamics, field }
    }

    /// Whether a field makes a method of a dynamics.
    fn fits(dynamics: DynamicsKind, field: FieldKind) -> bool {
        let structure = dynamics.structure();
        match field {
            FieldKind::Diffusion
            | FieldKind::Stein
            | FieldKind::Blob
            | FieldKind::Gfsd
            | FieldKind::Gfsf
            | FieldKind::SteinGradient
            | FieldKind::Product => true,
            // Without a curl the starred variant is the plain one.
            FieldKind::SteinStarred | FieldKind::BlobStarred => structure.has_curl(),
            FieldKind::Spos | FieldKind::SposExact => dynamics == DynamicsKind::Langevin,
            FieldKind::Drift => dynamics == DynamicsKind::Sghmc,
            // Its grid is over θ alone.
            FieldKind::Lawgd => structure.blocks() == 1,
        }
    }

    /// All methods, field by field.
    pub fn all() -> Vec<Self> {
        let pairs = FieldKind::ALL
            .iter()
            .flat_map(|&field| DynamicsKind::ALL.iter().map(move |&dynamics| (dynamics, field)));
        pairs
            .filter(|&(dynamics, field)| Self::fits(dynamics, field))
            .map(|(dynamics, field)| Self::new(dynamics, field))
            .collect()
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
        let &Parameters { noise_strength, adapt, regulariser, .. } = parameters;
        let memory_limit = parameters.solve_memory;
        let stein = |stein: Stein| -> Box<dyn Field<T>> {
            let stein = stein.curl(parameters.curl).time_unit(parameters.time_unit);
            Box::new(match parameters.interactions {
                Some(others) => stein.interactions(others),
                None => stein,
            })
        };
        let product = |product: ProductSpace| -> Box<dyn Field<T>> {
            Box::new(match parameters.interactions {
                Some(others) => product.interactions(others),
                None => product,
            })
        };
        Ok(match self.field {
            FieldKind::Diffusion => Box::new(Diffusion),
            FieldKind::Stein => stein(Stein::new(kernel)),
            FieldKind::SteinStarred => stein(Stein::starred(kernel)),
            FieldKind::Blob => Box::new(LogRatio::new(kernel, Estimator::Blob)),
            FieldKind::BlobStarred => Box::new(LogRatio::starred(kernel, Estimator::Blob)),
            FieldKind::Gfsd => Box::new(LogRatio::new(kernel, Estimator::KernelDensity)),
            FieldKind::Gfsf => {
                let estimator = Estimator::SteinGradient { regulariser: 0.0, memory_limit };
                Box::new(LogRatio::new(kernel, estimator))
            }
            FieldKind::SteinGradient => {
                let estimator = Estimator::SteinGradient { regulariser, memory_limit };
                Box::new(LogRatio::new(kernel, estimator))
            }
            FieldKind::Product => product(ProductSpace::new(kernel, adapt)),
            FieldKind::Spos => product(ProductSpace::spos(kernel, noise_strength)),
            FieldKind::SposExact => {
                product(ProductSpace::spos_exact(kernel, noise_strength, adapt))
            }
            FieldKind::Drift => Box::new(Drift),
            FieldKind::Lawgd => self.build_lawgd(parameters, region)?,
        })
    }

    fn build_lawgd<T: Real>(
        &self,
        parameters: &Parameters,
        region: Option<Region<'_>>,
    ) -> Result<Box<dyn Field<T>>> {
        let Some(Region { target, window }) = region else {
            let remedy = "it works on a grid: say over which window of the target";
            return Err(Error::setting("field", "LAWGD without a window", remedy));
        };
        let plane = target.dim() > 1;
        let cells = parameters.cells.unwrap_or(if plane { 64 } else { 1000 });
        let dynamics = self.dynamics.build::<f64>(parameters);
        let field = Lawgd::new(target, &*dynamics, window, cells)?;
        // On a line LAWGD is exact; in the plane particles lock into a lattice without it.
        Ok(match parameters.smoothing.unwrap_or(if plane { 0.1 } else { 0.0 }) {
            0.0 => Box::new(field),
            time => Box::new(field.smoothed(time)?),
        })
    }

    /// The parameters it has: its dynamics', then its field's.
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut own = [self.dynamics.parameters(), self.field.parameters()].concat();
        // A constant C has one form.
        own.retain(|&parameter| {
            parameter != Parameter::Curl || self.dynamics.structure().curl_varies()
        });
        own
    }

    /// Where it comes from.
    pub fn reference(&self) -> &'static str {
        let about = self.dynamics.about();
        match (self.field, about.derandomised) {
            (FieldKind::Diffusion, _) => about.reference,
            (FieldKind::Stein, Some((_, reference))) => reference,
            _ => self.field.reference(),
        }
    }

    /// The method in the paper's symbols.
    pub fn formula(&self) -> String {
        format!("{};  {}", self.field.formula(), self.dynamics.drift())
    }
}
