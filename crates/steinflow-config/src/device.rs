//! Where the particles of a run are kept: on this machine's processor, or on a GPU.
//!
//! The processor is what is meant where nothing is written, so that configs of earlier runs still say the same.

use steinflow::{Error as LibraryError, LogDensity, Real};
use steinflow_cuda::{Cuda, devices};

use crate::cost::Work;
use crate::{Config, Result, Settings, Way};

/// What somebody has asked for.
enum Asked {
    Cpu,
    Cuda(usize),
    Auto,
}

fn parse(name: &str) -> Result<Asked> {
    match name.split_once(':').unwrap_or((name, "0")) {
        ("cpu", "0") => Ok(Asked::Cpu),
        ("auto", "0") => Ok(Asked::Auto),
        ("cuda", number) => number.parse().map(Asked::Cuda).map_err(|_| {
            let remedy = "give the GPU's number after `cuda:`, as `steinflow devices` lists it";
            LibraryError::setting("device", name, remedy).into()
        }),
        _ => Err(LibraryError::unknown("device", name, ["cpu", "cuda", "auto"]).into()),
    }
}

/// The number of the GPU, if there is to be one; writes down what `auto` has chosen.
pub(crate) fn resolve(
    asked: Option<&str>,
    settings: &mut Settings,
    way: &Way,
    has_own_dynamics: bool,
    work: Work,
) -> Result<Option<usize>> {
    let chosen = match parse(asked.unwrap_or("cpu"))? {
        Asked::Cpu => None,
        Asked::Cuda(ordinal) => {
            if has_own_dynamics {
                let remedy = "dynamics of your own run on the CPU";
                return Err(LibraryError::setting("device", "cuda", remedy).into());
            }
            engine(ordinal, way)?;
            Some(ordinal)
        }
        Asked::Auto => {
            let runs = !has_own_dynamics && engine(0, way).is_ok();
            let is_there = || devices().is_ok_and(|found| !found.is_empty());
            (runs && work.is_for_gpu() && is_there()).then_some(0)
        }
    };
    settings.device = chosen.map(|ordinal| format!("cuda:{ordinal}"));
    Ok(chosen)
}

/// The engine of a method on a GPU, or why there is none.
pub(crate) fn engine(ordinal: usize, way: &Way) -> Result<Cuda> {
    match way {
        Way::Flow { method, parameters, kernel, .. } => {
            let kernel = kernel.clone().unwrap_or_default();
            Ok(Cuda::new(ordinal, method, parameters, kernel)?)
        }
        Way::Auto { .. } => {
            let remedy = "methods with an accept step run on the CPU; name another, such as svgd";
            Err(LibraryError::setting("device", "cuda", remedy).into())
        }
    }
}

impl Config {
    /// What a run on a GPU costs that could be spared: nothing where particles are kept by the processor.
    pub fn notices<T: Real>(&self, target: &(impl LogDensity<T> + ?Sized)) -> Vec<&'static str> {
        let mut notices = Vec::new();
        let Some(_) = self.device else { return notices };
        // In learnt coordinates, too, it is the processor that knows the target.
        let is_moved = matches!(self.way, Way::Flow { warm_up: true, .. });
        if is_moved || target.device_source().is_none() {
            notices.push(
                "this target is evaluated by the processor: particles travel at every gradient",
            );
        }
        let has_sums = self.flow().is_some_and(|(method, _)| method.field.has_kernel());
        if !self.is_f32 && has_sums {
            notices.push(
                "sums in double precision: --precision f32 is about six times as fast in few dimensions, and more in many",
            );
        }
        notices
    }
}

#[cfg(test)]
mod tests {
    use steinflow::target::PerParticle;

    use crate::{Config, Settings};

    fn resolve(text: &str) -> crate::Result<Config> {
        Config::resolve(Settings::parse(std::path::Path::new("test"), text)?)
    }

    #[test]
    fn a_processor_is_what_is_meant() {
        for text in ["method = 'svgd'", "method = 'svgd'\ndevice = 'cpu'", "device = 'cpu'"] {
            let config = resolve(text).unwrap();
            assert_eq!(config.device, None);
            assert!(!config.to_toml().contains("device"), "{}", config.to_toml());
        }
    }

    #[test]
    fn a_gpu_is_written_down() {
        let config = resolve("method = 'svgd'\ndevice = 'cuda:1'").unwrap();
        assert_eq!(config.device, Some(1));
        assert!(config.to_toml().contains("device = \"cuda:1\""));
        // With the defaults of a warm-up, and in a metric.
        for method in ["svgd", "sghmc-stein", "third-order-stein", "sgrhmc-stein", "rsvgd"] {
            let text = format!("model = 'banana'\nmethod = '{method}'\ndevice = 'cuda'");
            assert_eq!(resolve(&text).unwrap().device, Some(0), "{method}");
        }
        // Too little work for it, whether there is one or not.
        let config = resolve("method = 'svgd'\nparticles = 50\ndevice = 'auto'").unwrap();
        assert_eq!(config.device, None);
    }

    #[test]
    fn what_a_gpu_costs_is_said() {
        let banana = steinflow_models::toy::Banana::default();
        let own = PerParticle::new(2, |_: &[f64], _: &mut [f64]| 0.0);
        let found = |text: &str, is_own: bool| {
            let text = format!("model = 'banana'\nmethod = 'svgd'\nwarm-up = false\n{text}");
            let config = resolve(&text).unwrap();
            let said = if is_own { config.notices(&own) } else { config.notices::<f64>(&banana) };
            said.iter().map(|notice| notice.split(':').next().unwrap()).collect::<Vec<_>>()
        };
        let (host, double) =
            ("this target is evaluated by the processor", "sums in double precision");
        assert_eq!(found("device = 'cuda'", true), [host, double]);
        assert_eq!(found("device = 'cuda'", false), [double]);
        assert_eq!(found("device = 'cuda'\nprecision = 'f32'", true), [host]);
        assert!(found("device = 'cuda'\nprecision = 'f32'", false).is_empty());
        assert!(found("", true).is_empty());
    }

    #[test]
    fn what_does_not_run_there_is_refused() {
        for (text, expected) in [
            ("device = 'cuda'", "name another, such as svgd"),
            ("method = 'gfsf'\ndevice = 'cuda'", "method is gfsf: it does not run on a GPU"),
            ("method = 'svgd'\ninteractions = 9\ndevice = 'cuda'", "interactions is 9"),
            ("method = 'svgd'\ndevice = 'gpu'", "there is no device `gpu`"),
            ("method = 'svgd'\ndevice = 'cuda:x'", "give the GPU's number"),
            ("method = 'svgd'\nprecision = 'tf32'", "only on a GPU"),
        ] {
            let error = resolve(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
