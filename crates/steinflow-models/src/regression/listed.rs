//! Regressions by name: how a family is listed, and what it makes of a table.

use steinflow::Real;

use super::{Design, Family, Fitted, Prior, Regression};
use crate::toy::Gaussian;
use crate::{Model, ModelInfo, ModelSpec, Result};

/// A family with a place in the catalogue.
pub trait Listed: Family {
    /// What it is called.
    const NAME: &'static str;
    /// A few words.
    const TITLE: &'static str;
    /// The density.
    const FORMULA: &'static str;
    /// Where it comes from.
    const REFERENCE: &'static str = "textbook";
    /// The options that it takes, by `with_options!`.
    const OPTIONS: &'static [&'static str];

    /// Whether a table without a single feature is of no use to it.
    const NEEDS_FEATURES: bool = true;

    /// What it makes of a table.
    fn observe(design: Design, spec: &ModelSpec) -> Result<Observed<Self>>;

    /// The posterior of a design without groups, under a normal prior, where it is Gaussian.
    fn closed_form(
        &self,
        design: &Design,
        target: &[f64],
        prior_sd: f64,
    ) -> Result<Option<Gaussian>> {
        let _ = (design, target, prior_sd);
        Ok(None)
    }
}

/// A table as a family sees it.
pub struct Observed<F> {
    pub(super) family: F,
    pub(super) design: Design,
    pub(super) target: Vec<f64>,
    /// What is added to every predictor.
    pub(super) base: f64,
}

impl<T: Real, F: Listed> Regression<T, F> {
    /// The family's posterior on a design, by the options of a model.
    pub(super) fn of(design: Design, spec: &ModelSpec) -> Result<Self> {
        let Observed { family, design, target, base } = F::observe(design, spec)?;
        let prior = Prior::of(spec, design.names().len() * family.predictors())?;
        let is_plain = !prior.is_horseshoe && design.terms().is_empty();
        let posterior = is_plain.then(|| family.closed_form(&design, &target, prior.sd));
        let posterior = posterior.transpose()?.flatten();
        Ok(Self::assemble(design, family, prior, &target, base).with_closed_form(posterior))
    }
}

/// How a family is listed.
pub(crate) const fn entry<F: Listed>() -> ModelInfo
where
    Fitted: From<(Design, F)>,
{
    ModelInfo {
        name: F::NAME,
        title: F::TITLE,
        formula: F::FORMULA,
        reference: F::REFERENCE,
        options: F::OPTIONS,
        single: build::<f32, F>,
        double: build::<f64, F>,
    }
}

fn build<T: Real, F: Listed>(spec: &ModelSpec) -> Result<Box<dyn Model<T>>>
where
    Fitted: From<(Design, F)>,
{
    Ok(Box::new(Regression::<T, F>::of(Design::of(spec, F::NEEDS_FEATURES)?, spec)?))
}
