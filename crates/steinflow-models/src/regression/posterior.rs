//! A regression: a design, a prior of its coefficients and a family, which together are a target, with
//! parameters that are shown in the units of the table.

use std::sync::Arc;

use steinflow::target::DeviceSource;
use steinflow::{LogDensity, MatMut, MatRef, Matrix, Minibatch, Real};

use super::groups::Groups;
use super::predictor::Predictor;
use super::{Design, Family, Fitted, Prior, START_SD};
use crate::data::Scaling;
use crate::toy::Gaussian;
use crate::{Describe, Moments, Start, Units};

/// The posterior of a regression.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression<T, F> {
    predictor: Predictor<T>,
    design: Design,
    layout: Arc<Layout<F>>,
    /// Where there is a closed form.
    posterior: Option<Gaussian>,
}

/// How θ is laid out, and what becomes of it in the units of the table.
#[derive(Clone, Debug, PartialEq)]
struct Layout<F> {
    prior: Prior,
    groups: Groups,
    family: F,
    /// Of the features.
    scalings: Vec<Scaling>,
    has_intercept: bool,
    /// What is added to every predictor.
    base: f64,
}

impl<T: Real, F: Family> Regression<T, F> {
    /// `target` is as the family wants it; `base` is added to every predictor.
    pub(super) fn assemble(
        design: Design,
        family: F,
        mut prior: Prior,
        target: &[f64],
        base: f64,
    ) -> Self {
        let offset: Vec<f64> = match design.offset() {
            Some((_, offset)) => offset.iter().map(|x| base + x).collect(),
            None if base == 0.0 => Vec::new(),
            None => vec![base; target.len()],
        };
        // Where no feature and no group matters.
        let mut slopes = if offset.is_empty() { vec![0.0; target.len()] } else { offset.clone() };
        if !design.terms().is_empty() || prior.is_horseshoe {
            let start = family.start();
            family.log_likelihood(&mut slopes, target, &start, &mut vec![0.0; start.len()]);
        }
        prior.look_at(design.rows(), &slopes);
        let groups = Groups::new(design.terms(), &slopes, family.units().1);
        let predictor = Predictor::new(&design, target, &offset, family.looks_at_targets());
        let (scalings, columns) = (design.scalings().to_vec(), design.names().len());
        let has_intercept = columns > scalings.len();
        let layout = Arc::new(Layout { prior, groups, family, scalings, has_intercept, base });
        Self { predictor, design, layout, posterior: None }
    }

    /// With the closed form that it has.
    pub(super) fn with_closed_form(self, posterior: Option<Gaussian>) -> Self {
        Self { posterior, ..self }
    }

    /// The data as the model sees it.
    pub fn design(&self) -> &Design {
        &self.design
    }
}

impl<F: Family> Layout<F> {
    fn dim(&self) -> usize {
        self.prior.dim() + self.groups.dim() + self.family.extra_names().len()
    }

    /// From θ to the units of the table, in place.
    fn show(&self, theta: &mut [f64]) {
        let (own, rest) = theta.split_at_mut(self.prior.dim());
        let (effects, extras) = rest.split_at_mut(self.groups.dim());
        self.prior.show(own);
        self.groups.show(effects);
        let ((mean, sd), mut shift) = (self.family.units(), 0.0);
        let first = usize::from(self.has_intercept);
        for line in own[..self.prior.coefficients].chunks_exact_mut(first + self.scalings.len()) {
            shift = 0.0;
            for (coefficient, scaling) in line[first..].iter_mut().zip(&self.scalings) {
                *coefficient *= sd / scaling.sd;
                shift += *coefficient * scaling.mean;
            }
            if self.has_intercept {
                line[0] = mean + self.base + sd * line[0] - shift;
            }
        }
        self.family.show(extras, shift);
    }

    /// The way back.
    fn hide(&self, shown: &mut [f64]) {
        let (own, rest) = shown.split_at_mut(self.prior.dim());
        let (effects, extras) = rest.split_at_mut(self.groups.dim());
        self.groups.hide(effects);
        let ((mean, sd), mut shift) = (self.family.units(), 0.0);
        let first = usize::from(self.has_intercept);
        for line in own[..self.prior.coefficients].chunks_exact_mut(first + self.scalings.len()) {
            shift = 0.0;
            for (coefficient, scaling) in line[first..].iter_mut().zip(&self.scalings) {
                shift += *coefficient * scaling.mean;
                *coefficient *= scaling.sd / sd;
            }
            if self.has_intercept {
                line[0] = (line[0] - mean - self.base + shift) / sd;
            }
        }
        self.prior.hide(own);
        self.family.hide(extras, shift);
    }
}

impl<T: Real, F: Family> LogDensity<T> for Regression<T, F> {
    fn dim(&self) -> usize {
        self.layout.dim()
    }

    fn data_rows(&self) -> usize {
        self.predictor.data_rows()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        rows: Option<&Minibatch>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> steinflow::Result<()> {
        let Layout { prior, groups, family, .. } = &*self.layout;
        let parts = (prior, groups, family);
        self.predictor.evaluate(parts, theta, rows, log_density, score)
    }

    fn device_source(&self) -> Option<DeviceSource> {
        let Prior { sd, is_horseshoe, .. } = self.layout.prior;
        let is_plain = !is_horseshoe && self.layout.groups.is_empty();
        let code = self.layout.family.device_code().filter(|_| is_plain)?;
        self.predictor.device_source(code, sd)
    }
}

impl<T: Real, F: Family> Describe for Regression<T, F>
where
    Fitted: From<(Design, F)>,
{
    fn parameter_names(&self) -> Vec<String> {
        let (layout, columns) = (&self.layout, self.design.names());
        let lines = layout.family.line_names();
        let mut names: Vec<String> = match lines.as_slice() {
            [] => columns.to_vec(),
            lines => lines
                .iter()
                .flat_map(|line| columns.iter().map(move |name| format!("{line}: {name}")))
                .collect(),
        };
        names.extend(layout.prior.further_names());
        names.extend(layout.groups.names());
        names.extend(layout.family.extra_names());
        names
    }

    fn start(&self) -> Start {
        let mut mean = vec![0.0; self.layout.prior.dim() + self.layout.groups.dim()];
        mean.extend(self.layout.family.start());
        Start { mean, sd: START_SD }
    }

    fn units(&self) -> Option<Units> {
        let (to, from) = (Arc::clone(&self.layout), Arc::clone(&self.layout));
        let is_affine =
            !to.prior.is_horseshoe && to.groups.is_empty() && to.family.extra_names().is_empty();
        Some(Units::new(to.dim(), is_affine, move |x| to.show(x), move |x| from.hide(x)))
    }

    fn exact_moments(&self) -> Option<Moments> {
        self.posterior.as_ref()?.exact_moments()
    }

    fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        self.posterior.as_ref()?.exact_sample(count, seed)
    }

    fn notes(&self) -> Vec<String> {
        self.design.notes().to_vec()
    }

    fn fitted(&self) -> Option<Fitted> {
        let fitted = Fitted::from((self.design.clone(), self.layout.family.clone()));
        Some(fitted.with_parameters(self.parameter_names()))
    }
}
