//! How particles moved over a run: from crescent to crescent, and how far at once.

use steinflow_models::Parts;

use super::flow::Flow;

pub struct Moves {
    /// The share of particles that were outside of the crescent they began in at any step.
    pub left: f64,
    /// Changes from one crescent to another, per particle.
    pub changes: f64,
    /// The step of the last of them, if there is one.
    pub last_change: Option<usize>,
    /// The longest way of a particle in one step.
    pub longest: f64,
}

impl Moves {
    pub fn of(flow: &Flow, parts: &Parts) -> Self {
        let count = flow.particles();
        let crescents = |step: usize| -> Vec<usize> {
            let places = flow.places(step);
            (0..count).map(|i| parts.classify(places.row(i))).collect()
        };
        let home = crescents(0);
        let mut before = home.clone();
        let mut has_left = vec![false; count];
        let (mut changes, mut last_change, mut longest) = (0, None, 0.0_f64);
        for step in 1..=flow.steps() {
            let now = crescents(step);
            for i in 0..count {
                has_left[i] |= now[i] != home[i];
                if now[i] != before[i] {
                    changes += 1;
                    last_change = Some(step);
                }
                let ((x, y), (a, b)) = (flow.place(step - 1, i), flow.place(step, i));
                longest = longest.max((a - x).hypot(b - y));
            }
            before = now;
        }
        let left = has_left.iter().filter(|&&has_left| has_left).count();
        let share = |part: usize| part as f64 / count as f64;
        Self { left: share(left), changes: share(changes), last_change, longest }
    }
}
