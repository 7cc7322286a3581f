//! What somebody may set, by flag, in a config or by keyword, under the same names; everything is
//! optional.

use std::io::Read as _;
use std::path::Path;

use steinflow::settings::{NumberOrWord, NumbersOrWord, Value};
use steinflow_models::ModelSpec;

use crate::{Error, GivenParameters, Phase, Result};

steinflow::settings! {
    /// Settings as given. [`Config::resolve`](crate::Config::resolve) fills in the rest.
    pub struct Settings {
        ..spec: ModelSpec,
        ..parameters: GivenParameters,
        "Method" {
            /// How to sample: `auto`, or a name of `steinflow methods` [default: auto; sgnht-stein for bnn;
            /// sghmc with minibatches].
            method: String as "NAME",
            /// Number of particles, or of chains [default: for auto 64 up to 10 dimensions and 100 above;
            /// 20 for bnn by sgnht-stein; after a warm-up 400 to 1000 for svgd, and 800 for sghmc-stein and
            /// third-order-stein; 100 elsewhere].
            particles: usize as "N",
            /// Effective draws that auto, hmc, mala and ghmc go on for, of every coordinate and its square
            /// [default: 2000].
            effective: u64 as "DRAWS",
            /// Gradients that they may use for each particle, warm-up included [default: 3000].
            gradients: u64 as "COUNT",
            /// Let an ensemble find where the mass is before the first step of another method, and
            /// move in the coordinates that it has learnt; step sizes are then in units of the posterior
            /// [default: true for targets whose start is not known to be good, unless particles are
            /// given; false elsewhere].
            warm_up: bool as "true|false",
        }
        "Kernel" {
            /// Profile of the kernel: `se` (squared exponential) or `imq` [default: se].
            kernel: String as "NAME",
            /// What the kernel sees: `joint` state, `product` of blocks, or `theta` [default: joint as
            /// in the paper; theta for models with data, whose posteriors are narrower than the
            /// momenta, but for bnn].
            kernel_on: String as "VIEW",
            /// median-log, liu-wang, numpyro, median, white or white:F (F times median-log of N(0, I)),
            /// a number, or one number per block separated by commas [default: median-log; after a
            /// warm-up white:10 for svgd, white:4 for sghmc-stein and third-order-stein].
            bandwidth: NumbersOrWord as "RULE",
            /// Strength c of an affine part c(1 + x·y) added to the kernel, which gives resting particles
            /// the mean and covariance of the posterior, and lets those of a flow mix fast; made for
            /// warmed-up runs [default: 1 for svgd, sghmc-stein and third-order-stein after a warm-up,
            /// 0 elsewhere].
            affine: f64 as "C",
        }
        "Steps" {
            /// Number of steps of a method other than auto [default: 1000; 5000 for bnn by sgnht-stein;
            /// after a warm-up 100 for svgd, 300 for sghmc-stein and third-order-stein].
            steps: u64 as "K",
            /// Step size ε: a number, or `linear:FROM:TO`, `cosine:FROM:TO`, `polynomial:A:B:GAMMA` for
            /// A (B + k)^-GAMMA [default: from the method and the target's curvature at the start].
            step_size: NumberOrWord as "EPS",
            /// Learning rate η instead of a step size: ε = σ√η with momentum, ε = η without.
            eta: f64 as "ETA",
            /// Momentum decay α instead of a friction: A = ασ²/ε.
            alpha: f64 as "ALPHA",
            /// euler, splitting, midpoint-splitting, midpoint-drift, implicit-drift, adagrad, rmsprop or
            /// adam [default: splitting with momentum, euler without; after a warm-up adam for svgd,
            /// implicit-drift for sghmc-stein and third-order-stein].
            integrator: String as "NAME",
            /// A phase of the run instead of steps, step size and integrator, as
            /// INTEGRATOR:EPSxSTEPS; repeat for further phases, e.g. euler:1.3x300 and then
            /// splitting:0.5x300.
            phase: Vec<Phase> as "PHASE",
            /// Learn the scale of every coordinate from the gradients and move in those: `rms` or
            /// `none` [default: rms for bnn and with minibatches, none elsewhere].
            precondition: String as "RULE",
            /// Stop learning scales after this many gradients [default: never].
            precondition_hold: u64 as "COUNT",
            /// Draw the auxiliary variables afresh every so many steps.
            resample_every: u64 as "STEPS",
            /// Draw them afresh after this much time instead, ±20 % [default: 10 for sghmc-stein and
            /// third-order-stein after a warm-up].
            resample_time: f64 as "T",
            /// Accept or refuse every stretch between fresh auxiliary variables as a whole, for all particles
            /// together: for sghmc-stein and third-order-stein without friction, by implicit-drift
            /// [default: true for those after a warm-up, false elsewhere].
            accept: bool as "true|false",
            /// Collect samples of all particles from this step on.
            collect_from: u64 as "STEP",
            /// Collect at every so many steps [default: the steps between resamplings, or 1].
            collect_every: u64 as "STEPS",
        }
        "Run" {
            /// Bring as many points as particles to rest, a small set with equal weights: 60 to 100 gradients a point
            /// more, after a warm-up or by auto, from representative samples, with which they are compared
            /// [default: true for sghmc-stein and third-order-stein after a warm-up].
            points: bool as "true|false",
            /// Evaluate the likelihood on this many rows of the data at a time [default: all; 100, or
            /// all if fewer, for bnn].
            batch_size: usize as "ROWS",
            /// Seed of every random number [default: 0].
            seed: u64 as "SEED",
            /// f64 or f32, or tf32 for f32 with faster and less accurate kernel sums on a GPU [default: f64;
            /// f32 for bnn].
            precision: String as "TYPE",
            /// Where particles are kept: cpu, cuda, cuda:1 for the second GPU of `steinflow devices`, or auto for
            /// a GPU if there is one and it is faster; what does not run there is refused [default: cpu].
            device: String as "NAME",
            /// Mean of the starting particles: one number, or one per coordinate separated by commas
            /// [default: the model's; auto finds its own start].
            start_mean: Vec<f64> as "MEAN",
            /// Standard deviation of the starting particles [default: as for the mean].
            start_sd: f64 as "SD",
            /// What to do with a non-finite score: `stop`, `freeze` the particle, or `shrink` the step
            /// [default: stop; shrink for bnn by sgnht-stein].
            non_finite: String as "POLICY",
            /// Compare the gradient with differences of the log density before the run and after it; not
            /// with minibatches [default: true].
            check_gradient: bool as "true|false",
            /// Stop after this many seconds, keeping everything so far.
            budget: f64 as "SECONDS",
            /// Stop once the root-mean-square velocity is below this.
            tolerance: f64 as "V",
            /// Record every so many steps in the trace [default: what gives about 1000 rows].
            trace_every: u64 as "STEPS",
        }
    }
}

/// Settings of which one takes the place of the others.
const RIVALS: [(&[&str], &[&str]); 6] = [
    (&["formula"], &["target", "features", "categorical"]),
    (&["resample_every"], &["resample_time"]),
    (&["phase"], &["steps", "step_size", "eta", "integrator"]),
    (&["step_size"], &["eta"]),
    (&["friction"], &["alpha"]),
    (&["test_fraction"], &["split", "split_file"]),
];

/// A starting mean for every weight of a large network fits.
const MOST_BYTES: u64 = 64 << 20;

impl Settings {
    /// Reads a TOML file.
    pub fn read(path: &Path) -> Result<Self> {
        let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > MOST_BYTES {
            let message = format!("it has more than {} MiB, so it is no config", MOST_BYTES >> 20);
            return Err(Error::Wrong { path: path.to_owned(), message });
        }
        Self::parse(path, &text)
    }

    /// Reads the text of a TOML file.
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|error| {
            let message = error.to_string().trim_end().to_owned();
            Error::Wrong { path: path.to_owned(), message }
        })
    }

    /// Sets what has this name, written with `_` or `-`. An error says what to do.
    pub fn put(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let name = name.replace('-', "_");
        match self.set(&name, value) {
            Some(Ok(())) => Ok(()),
            Some(Err(remedy)) => Err(format!("{name} is {value}: {remedy}")),
            None => {
                let names = Self::table().into_iter().map(|setting| setting.name);
                Err(steinflow::Error::unknown("setting", &name, names).to_string())
            }
        }
    }

    /// These settings, with those of `other` where they are not set. Of settings that exclude each
    /// other, those of `other` give way.
    #[must_use]
    pub fn or(mut self, mut other: Self) -> Self {
        let has = |names: &[&str]| names.iter().any(|name| self.get(name).is_some());
        for (one, others) in RIVALS {
            if has(one) {
                for name in others {
                    other.clear(name);
                }
            }
            if has(others) {
                for name in one {
                    other.clear(name);
                }
            }
        }
        for (setting, value) in other.given() {
            if self.get(setting.name).is_none() {
                let set = self.set(setting.name, &value);
                debug_assert_eq!(set, Some(Ok(())), "what is written reads back");
            }
        }
        self
    }
}
