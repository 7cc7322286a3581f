//! Settings that we trust for a model, where the user has made no choice of their own.

use steinflow::ensemble::Moves;
use steinflow::method::{DynamicsKind, FieldKind, Method, Parameter, Value as ParameterValue};
use steinflow::run::{affordable_particles, resting_particles, resting_steps};
use steinflow::settings::{NumberOrWord, NumbersOrWord, Value};
use steinflow_models::NETWORK;

use crate::{Phase, Settings};

/// The model without arguments: the paper's toy.
pub const DEFAULT_MODEL: &str = "tri-crescent";

/// The method without a choice: an ensemble that needs no settings.
pub const AUTO: &str = "auto";

/// The methods with an accept step: their names, their moves, and what they are.
pub const ADJUSTED: [(&str, Moves, &str); 4] = [
    (AUTO, Moves::Turning, "Hamiltonian moves with bends, and jumps between modes"),
    ("hmc", Moves::Turning, "Hamiltonian moves alone: C with fresh momenta"),
    ("mala", Moves::Langevin, "one leapfrog with fresh momenta: A"),
    ("ghmc", Moves::Persistent, "one leapfrog with momenta that persist: A and C"),
];

/// The method for minibatches of any other target than a network: without an accept step.
const WITH_MINIBATCHES: &str = "sghmc";

/// Particles of a network, as in the paper.
const NETWORK_PARTICLES: usize = 20;
const NETWORK_STEPS: u64 = 5000;

/// Fills in the method of a model, and with the method that is recommended for the model its steps as well, if
/// nothing was said about them; `rows` is how many rows of data the model has.
pub fn apply(model: &str, rows: usize, settings: &mut Settings) {
    if settings.method.is_none() && settings.batch_size.is_some() && model != NETWORK {
        settings.precondition.get_or_insert_with(|| "rms".to_owned());
    }
    let by_default = match model {
        NETWORK => "sgnht-stein",
        _ if settings.batch_size.is_some() => WITH_MINIBATCHES,
        _ => AUTO,
    };
    let recommended = match model {
        DEFAULT_MODEL => "sgrhmc-stein",
        _ => by_default,
    };
    let method = settings.method.get_or_insert_with(|| by_default.to_owned());
    let steps_are_open = settings.phase.is_none()
        && settings.step_size.is_none()
        && settings.eta.is_none()
        && settings.integrator.is_none();
    if method != recommended || !steps_are_open {
        return;
    }
    if model == DEFAULT_MODEL && settings.steps.is_none() {
        settings.phase = Some(toy_phases());
    }
    let friction = settings.parameters.number(Parameter::Friction);
    let friction_is_open = friction.is_none() && settings.alpha.is_none();
    let is_scaled = settings.precondition.as_deref().is_none_or(|rule| rule == "rms");
    if model == NETWORK && friction_is_open && is_scaled {
        fit_network(rows, settings);
    }
}

/// Steps above the integrator's local stability limit throw particles over the barriers, smaller
/// ones let them settle.
fn toy_phases() -> Vec<Phase> {
    let phase = |integrator: &str, step_size: &str| Phase {
        integrator: integrator.to_owned(),
        step_size: step_size.to_owned(),
        steps: 300,
    };
    vec![phase("euler", "1.3"), phase("splitting", "0.5")]
}

/// η = 3e-4 and α = 0.1 in preconditioned coordinates. Particles of a network are far apart, so that
/// of the mean over N only each one's own share is left: steps are N times as long. They grow to that
/// over the first tenth, because some starts are thrown far away by full steps, and decay over the
/// second half to a tenth of η. The noise of a minibatch grows with the data, and with many rows full
/// steps run away: above 10⁴ rows they shrink with the root of the number.
fn fit_network(rows: usize, settings: &mut Settings) {
    const MANY_ROWS: f64 = 1e4;
    let particles = *settings.particles.get_or_insert(NETWORK_PARTICLES);
    let root_eta = 3e-4_f64.sqrt();
    let shrink = (MANY_ROWS / rows.max(1) as f64).sqrt().min(1.0);
    let rounded = |step: f64| (1e4 * step).round() / 1e4;
    let step = rounded(particles as f64 * root_eta * shrink);
    let (first, last) = (rounded(step * 0.1), rounded(step * 0.1_f64.sqrt()));
    let friction = (100.0 * 0.1 / root_eta).round() / 100.0;
    settings.parameters.put(Parameter::Friction, ParameterValue::Number(friction));
    settings.non_finite.get_or_insert_with(|| "shrink".to_owned());
    let steps = settings.steps.take().unwrap_or(NETWORK_STEPS);
    let (growing, decaying) = (steps / 10, steps / 2);
    let phase =
        |step_size: String, steps| Phase { integrator: "splitting".to_owned(), step_size, steps };
    let mut phases = vec![
        phase(format!("linear:{first}:{step}"), growing),
        phase(step.to_string(), steps - growing - decaying),
        phase(format!("linear:{step}:{last}"), decaying),
    ];
    phases.retain(|phase| phase.steps > 0);
    settings.phase = Some(phases);
}

fn resting_phase(particles: usize, dim: usize, steps: Option<u64>) -> Phase {
    let (default, [first, last]) = resting_steps(particles, dim);
    Phase {
        integrator: "adam".to_owned(),
        step_size: format!("linear:{first}:{last}"),
        steps: steps.unwrap_or(default),
    }
}

/// Particles of a flow. What is smooth over a kernel moves fast, and the rest hardly: that is left to how well
/// as many stand for all draws of the warm-up.
fn flowing_particles(dim: usize) -> usize {
    800.min(affordable_particles(dim))
}

/// What the deterministic methods are best run with where the target is near N(0, I): settings that an
/// independent study measured on forty posteriors, with more particles, wider kernels at rest and an accept
/// step. Only what is open is filled in.
pub fn in_learnt_coordinates(method: &Method, dim: usize, settings: &mut Settings) {
    let steps_are_open = settings.phase.is_none()
        && settings.step_size.is_none()
        && settings.eta.is_none()
        && settings.integrator.is_none();
    let word = |setting: &mut Option<String>, word: &str| {
        setting.get_or_insert_with(|| word.to_owned());
    };
    let rule = |setting: &mut Option<NumbersOrWord>, rule: &str| {
        setting.get_or_insert_with(|| NumbersOrWord(rule.to_owned()));
    };
    match (method.dynamics, method.field) {
        // To rest: an affine part gives the mean and covariance of any Gaussian.
        (DynamicsKind::Langevin, FieldKind::Stein) => {
            settings.affine.get_or_insert(1.0);
            rule(&mut settings.bandwidth, "white:10");
            let particles = *settings.particles.get_or_insert(resting_particles(dim));
            if steps_are_open {
                settings.phase = Some(vec![resting_phase(particles, dim, settings.steps.take())]);
            }
        }
        // Never to rest: without friction and with fresh momenta the flow preserves π of all particles.
        (DynamicsKind::Sghmc | DynamicsKind::ThirdOrder, FieldKind::Stein) => {
            settings.particles.get_or_insert(flowing_particles(dim));
            word(&mut settings.kernel_on, "theta");
            // Means and covariances are what has to mix.
            settings.affine.get_or_insert(1.0);
            rule(&mut settings.bandwidth, "white:4");
            if settings.alpha.is_none() {
                settings.parameters.fill(Parameter::Friction, ParameterValue::Number(0.0));
            }
            if method.dynamics == DynamicsKind::ThirdOrder {
                settings.parameters.fill(Parameter::Gamma, ParameterValue::Number(0.3));
            }
            let unit = ParameterValue::Word("lambda".to_owned());
            settings.parameters.fill(Parameter::TimeUnit, unit);
            if settings.resample_every.is_none() {
                settings.resample_time.get_or_insert(10.0);
            }
            if steps_are_open {
                settings.step_size = Some(NumberOrWord("0.3".to_owned()));
                word(&mut settings.integrator, "implicit-drift");
                if can_accept(settings) {
                    settings.accept.get_or_insert(true);
                }
                let steps = *settings.steps.get_or_insert(300);
                if settings.collect_from.is_none() && settings.collect_every.is_none() {
                    // After the first stretch; neighbours are alike.
                    settings.collect_from = Some((steps / 9).min(33));
                    settings.collect_every = Some(3);
                    settings.points.get_or_insert(true);
                }
            }
        }
        _ => {}
    }
}

/// Whether a joint accept step fits what somebody has set.
fn can_accept(settings: &Settings) -> bool {
    let lambda = Some(Value::Text("lambda".to_owned()));
    settings.parameters.number(Parameter::Friction) == Some(0.0)
        && settings.kernel_on.as_deref() == Some("theta")
        && settings.parameters.get("time_unit") == lambda
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(model: &str, rows: usize, text: &str) -> Settings {
        let mut settings = toml::from_str(text).unwrap();
        apply(model, rows, &mut settings);
        settings
    }

    #[test]
    fn a_network_gets_steps_that_grow_stay_and_decay() {
        let settings = preset(NETWORK, 1000, "");
        assert_eq!(settings.method.as_deref(), Some("sgnht-stein"));
        assert_eq!(settings.particles, Some(20));
        let sizes: Vec<&str> =
            settings.phase.as_ref().unwrap().iter().map(|phase| &*phase.step_size).collect();
        assert_eq!(sizes, ["linear:0.0346:0.3464", "0.3464", "linear:0.3464:0.1095"]);
        for steps in [1, 2, 9, 10, 5001] {
            let settings = preset(NETWORK, 1000, &format!("steps = {steps}"));
            assert_eq!(
                settings.phase.as_ref().unwrap().iter().map(|phase| phase.steps).sum::<u64>(),
                steps
            );
        }
    }

    #[test]
    fn longer_steps_for_more_particles_and_shorter_ones_for_many_rows() {
        let plateau = |rows, text| preset(NETWORK, rows, text).phase.unwrap()[1].step_size.clone();
        assert_eq!(plateau(1000, "particles = 100"), "1.7321");
        assert_eq!(plateau(10_000, ""), "0.3464");
        assert_eq!(plateau(40_000, ""), "0.1732");
    }

    #[test]
    fn what_the_user_chooses_is_left_alone() {
        for text in [
            "method = 'svgd'",
            "step-size = 0.1",
            "eta = 1e-4",
            "integrator = 'euler'",
            "friction = 1.0",
            "precondition = 'none'",
        ] {
            let settings = preset(NETWORK, 1000, text);
            assert!(settings.phase.is_none() && settings.particles.is_none(), "{text}");
        }
        let short = preset(DEFAULT_MODEL, 0, "steps = 10\nmethod = 'sgrhmc-stein'");
        assert!(short.phase.is_none());
        assert_eq!(preset(DEFAULT_MODEL, 0, "method = 'sgrhmc-stein'").phase.unwrap().len(), 2);
        assert_eq!(preset("banana", 0, "").method.as_deref(), Some(AUTO));
        assert_eq!(preset("", 50, "batch-size = 5").method.as_deref(), Some("sghmc"));
    }

    #[test]
    fn flows_without_friction_get_an_accept_step_and_others_none() {
        let resolved = |text: &str| {
            let mut settings: Settings = toml::from_str(text).unwrap();
            let method = Method::named("sghmc-stein").unwrap();
            in_learnt_coordinates(&method, 3, &mut settings);
            settings
        };
        let open = resolved("");
        assert_eq!((open.accept, open.points, open.particles), (Some(true), Some(true), Some(800)));
        for text in ["friction = 0.1", "kernel-on = 'joint'", "time-unit = 'n'", "alpha = 0.1"] {
            assert_eq!(resolved(text).accept, None, "{text}");
        }
        assert_eq!(resolved("accept = false").accept, Some(false));
        assert_eq!(resolved("particles = 30").particles, Some(30));
    }

    #[test]
    fn particles_grow_with_the_dimension_until_pairs_cost_too_much() {
        let dimensions = [1, 10, 20, 50, 200, 5000];
        assert_eq!(dimensions.map(resting_particles), [400, 500, 1000, 1000, 1000, 100]);
        assert_eq!(dimensions.map(flowing_particles), [800, 800, 800, 800, 800, 100]);
        let steps = |particles| resting_phase(particles, 50, None).steps;
        assert_eq!([100, 499, 500, 1000].map(steps), [100, 100, 60, 60]);
    }
}
