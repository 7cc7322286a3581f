//! A step size for a method and a target, where nobody has chosen one.

use super::{FieldKind, Method};

impl Method {
    /// A step size for a target whose sharpest direction has curvature L: a fraction of 1/L for
    /// first-order flows, of σ/√L with momentum, and never more than suits a density of unit scale.
    /// [`crate::integrator::sharpness()`] gives L.
    pub fn default_step_size(&self, sigma: f64, sharpness: f64) -> f64 {
        // Where the score is averaged over neighbours, motion is slower and bears longer steps.
        let averaged =
            matches!(self.field, FieldKind::Stein | FieldKind::SteinStarred | FieldKind::Product);
        if self.field == FieldKind::Lawgd {
            // Every perturbation decays at rate 1, whatever the target.
            return 0.1;
        }
        let structure = self.dynamics.structure();
        let momentum = structure.blocks() > 1;
        let (most, fraction) = match (momentum, structure.diffusion_varies(), averaged) {
            (false, false, false) => (0.01, 0.2),
            (false, true, true) => (0.05, 0.1),
            (false, true, false) => (0.005, 0.02),
            (true, _, true) | (false, false, true) => (0.1, 1.0),
            (true, _, false) => (0.05, 0.3),
        };
        let sharpness = sharpness.max(1e-12);
        let stable = if momentum { sigma / sharpness.sqrt() } else { 1.0 / sharpness };
        let size: f64 = (fraction * stable).min(most);
        // Two digits: nobody needs more of a default, and configs are read by people.
        let unit = 10f64.powf(size.log10().floor() - 1.0);
        format!("{:.2e}", (size / unit).floor() * unit).parse().unwrap_or(size)
    }
}
