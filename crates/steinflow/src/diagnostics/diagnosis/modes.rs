//! What the search around the particles says: modes that they miss, or have the wrong shares of, and mass further out.

use super::examination::short;
use super::{Evidence, Fault, Findings, Subject};
use crate::Real;
use crate::diagnostics::ModeWeight;
use crate::diagnostics::modes::{PROBES as MOST_PROBES, largest_mass_beyond};

/// A difference between a mode's share of the particles and its weight that does not matter.
const NEGLIGIBLE_WEIGHT: f64 = 0.06;

impl<T: Real> Subject<'_, T> {
    pub(super) fn look_at_modes(&self, found: &mut Findings) {
        let weights = self.modes.map_or(&[][..], |modes| &modes.weights);
        if weights.len() > 1 {
            let off = |mode: &ModeWeight| {
                let error = 3.0 * mode.log_error * mode.weight * (1.0 - mode.weight);
                (mode.share - mode.weight).abs() - error
            };
            let largest = weights.iter().map(off).fold(f64::NEG_INFINITY, f64::max);
            found.note(Fault::WrongWeights, !(largest <= NEGLIGIBLE_WEIGHT));
            found.evidence.push(Evidence {
                name: "weights of modes",
                value: largest,
                expected: format!("at most {NEGLIGIBLE_WEIGHT}"),
                passed: Some(!found.has(Fault::WrongWeights)),
                meaning: "how far a mode's share of the particles is from its weight, by log density \
                          and entropy, beyond what is uncertain",
            });
        }
        self.look_at_missing_mass(found);
    }

    pub(super) fn look_at_missing_mass(&self, found: &mut Findings) {
        let Some(search) = self.search else { return };
        found.note(Fault::MissingMode, search.unvisited.is_some());
        found.evidence.push(Evidence {
            name: "probes in modes without particles",
            value: search.share,
            expected: "0".to_owned(),
            passed: Some(!found.has(Fault::MissingMode)),
            meaning: "share of points that climbed from around the particles to a place that a valley \
                      separates from all tops that particles climb to",
        });
        if search.probes < MOST_PROBES {
            found.evidence.push(Evidence {
                name: "probes that climbed",
                value: search.probes as f64,
                expected: format!("up to {MOST_PROBES}"),
                passed: None,
                meaning: "as many as the evaluations that a verdict may take sufficed for",
            });
        }
        let allowed = largest_mass_beyond(self.theta.rows());
        let is_missing = search.beyond.is_some();
        found.note(Fault::MissingMass, is_missing);
        found.evidence.push(Evidence {
            name: "probability beyond all particles",
            value: search.mass_beyond,
            expected: format!("at most {}", short(allowed)),
            passed: Some(!is_missing),
            meaning: "what lies further out than the outermost particle, at least, by importance sampling; \
                      little of it is much too where it would add half of the variance",
        });
    }
}
