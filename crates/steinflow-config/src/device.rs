//! Where the particles of a run are kept: on this machine's processor, or on a GPU.
//!
//! The processor is what is meant where nothing is written, so that configs of earlier runs still say the same.

use steinflow::Error as LibraryError;
use steinflow::method::FieldKind;
use steinflow_cuda::{Cuda, devices};

use crate::{Result, Settings, Way};

/// How much there is to do in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub steps: u64,
    pub particles: usize,
    pub dim: usize,
    /// Rows of data that a gradient reads.
    pub rows: usize,
    /// Whether a GPU has to ask the processor for gradients.
    pub is_hosts: bool,
}

impl Work {
    /// Seconds on this machine's processor, by what 16 threads took (`benches/README.md`): 2.5 ps for every pair and
    /// coordinate of interacting particles, of which 45 more stand for the kernel itself; and 45 Gflop/s a thread for
    /// the gradients of a likelihood.
    fn on_processor(self, interacts: bool) -> f64 {
        self.steps as f64 * self.pairs(interacts) * 40e-12 / threads() + self.gradients_on_host()
    }

    fn gradients_on_host(self) -> f64 {
        self.steps as f64 * self.likelihood() / 45e9 / threads()
    }

    /// Operations of a gradient.
    fn likelihood(self) -> f64 {
        self.particles as f64 * self.rows as f64 * self.dim as f64 * 6.0
    }

    /// Seconds on a GPU: what opening it and compiling for it take, 40 µs a step, and 0.04 ps.
    fn on_gpu(self, interacts: bool) -> f64 {
        let gradients = if self.is_hosts {
            self.gradients_on_host()
        } else {
            self.steps as f64 * self.likelihood() / 15e12
        };
        1.5 + self.steps as f64 * (40e-6 + self.pairs(interacts) * 0.04e-12) + gradients
    }

    fn pairs(self, interacts: bool) -> f64 {
        if interacts { (self.particles as f64).powi(2) * (self.dim as f64 + 45.0) } else { 0.0 }
    }
}

fn threads() -> f64 {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64
}

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
            let interacts = match way {
                Way::Flow { method, .. } => {
                    !matches!(method.field, FieldKind::Diffusion | FieldKind::Drift)
                }
                Way::Auto { .. } => false,
            };
            let is_faster = work.on_gpu(interacts) < work.on_processor(interacts);
            (runs && is_faster && is_there()).then_some(0)
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

#[cfg(test)]
mod tests {
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
    fn little_work_stays_and_much_goes() {
        let work = |steps, particles, dim, rows| super::Work {
            steps,
            particles,
            dim,
            rows,
            is_hosts: false,
        };
        let goes = |work: super::Work, interacts: bool| {
            work.on_gpu(interacts) < work.on_processor(interacts)
        };
        assert!(!goes(work(1000, 100, 2, 0), true));
        assert!(goes(work(1000, 100_000, 2, 0), true));
        assert!(!goes(work(1000, 100_000, 2, 0), false));
        // The paper's network, and one of a thousand particles.
        assert!(!goes(work(5000, 20, 753, 100), true));
        assert!(goes(work(5000, 1000, 4653, 100), true));
        // Gradients on many rows are no faster where the processor makes them.
        let many_rows = work(2000, 1000, 54, 100_000);
        assert!(goes(many_rows, false));
        assert!(!goes(super::Work { is_hosts: true, ..many_rows }, false));
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
