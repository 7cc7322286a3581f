//! One run: from its settings, or from a checkpoint of it, to its folder.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use steinflow::diagnostics::{StopRule, Verdict};
use steinflow::run::{Ended, Outcome};
use steinflow::{LogDensity, Real};
use steinflow_io::record::{self, Diagnosis, Summary};
use steinflow_io::{CheckpointFile, RunFolder, Unfinished, write_checkpoint, write_json};
use steinflow_models::network::NetworkFit;
use steinflow_models::{Model, NETWORK};
use steinflow_mpi::Number;

use crate::args::OutputArguments;
use crate::changes::inputs;
use crate::checkpoints::{Every, Record, Recorder, Writer};
use crate::diagnose::verdict;
use crate::error::{Error, Result};
use crate::files;
use crate::live::Live;
use crate::memory;
use crate::network::Report;
use crate::progress::Progress;
use crate::ranks;
use crate::report;
use crate::signals::Interrupt;
use crate::summary;
use steinflow_config::Config;

/// Where a run starts.
pub enum Start {
    Afresh,
    From(CheckpointFile),
}

/// A run to be made.
pub struct Job<'a> {
    pub config: Config,
    pub out: PathBuf,
    /// Replace what an earlier run has left there.
    pub force: bool,
    /// Whether that was this very run.
    pub is_resumed: bool,
    pub start: Start,
    pub output: &'a OutputArguments,
}

/// What a run has come to.
struct Found<'a, T: Real> {
    model: &'a dyn Model<T>,
    /// The model's density, evaluated by whoever has shared the run.
    target: &'a dyn LogDensity<T>,
    network: Option<&'a NetworkFit<T>>,
    outcome: &'a Outcome<T>,
    record: &'a Record<T>,
}

impl Job<'_> {
    /// Runs it. The folder of the unfinished run is claimed once the request is known to be sound,
    /// and before any work is done.
    pub fn run(self, claim: impl FnOnce() -> Result<Unfinished>) -> Result<ExitCode> {
        if self.config.is_f32 { self.run_in::<f32>(claim) } else { self.run_in::<f64>(claim) }
    }

    fn run_in<T: Number>(self, claim: impl FnOnce() -> Result<Unfinished>) -> Result<ExitCode> {
        let config = &self.config;
        let spec = config.spec().clone();
        let fit = (spec.name() == NETWORK).then(|| NetworkFit::<T>::new(&spec)).transpose()?;
        let built;
        let model: &dyn Model<T> = if let Some(fit) = &fit {
            &fit.network
        } else {
            built = steinflow_models::build::<T>(&spec)?;
            &*built
        };
        memory::check::<T>(config, model.dim(), 0)?;
        // Declared before the sampler, which borrows them.
        let (mut record, mut unfinished, mut writer);
        let (mut sampler, helpers) = ranks::sampler(config, model, self.output.threads)?;
        let mut checkpoint = None;
        match &self.start {
            Start::Afresh => record = Record::new(config, model.dim()),
            Start::From(file) => {
                let run = file.decode::<T>()?;
                record = Record::resume(config, model.dim(), &run)?;
                sampler = sampler.resume_from(run.checkpoint.clone());
                checkpoint = Some(run.checkpoint);
            }
        }
        sampler.check()?;
        let text = config.to_toml();
        let live = match self.output.live {
            Some(port) => {
                let name = self.out.file_name().unwrap_or_default().to_string_lossy().into_owned();
                Some(Live::start(port, name, config, model, fit.is_some())?)
            }
            None => None,
        };
        if !self.output.quiet {
            let of_network = fit.as_ref().map(|fit| fit.data.notes().to_vec());
            for note in of_network.unwrap_or_else(|| model.notes()) {
                tell!("{note}");
            }
            announce_solve(config);
            for notice in config.notices(model) {
                tell!("{notice}");
            }
        }
        // Before there is a folder to see, so that whoever sees it can send a signal.
        let partial = Arc::new(OnceLock::new());
        let interrupt = self.listen(helpers.is_some(), Arc::clone(&partial));
        unfinished = claim()?;
        let mut folder = RunFolder::create(&self.out, self.force)?;
        if self.is_resumed {
            folder = folder.replacing_leftovers();
        }
        let _ = partial.set(folder.partial_path().to_owned());
        let every = self.output.checkpoint_every.unwrap_or_default();
        let inputs = inputs(config);
        let first = checkpoint.map(|checkpoint| {
            let (step, mut bytes) = (checkpoint.step, Vec::new());
            let run = record.saved_run(&text, &inputs, checkpoint);
            write_checkpoint(&run, &mut bytes).map(|()| (step, bytes))
        });
        let first = first.transpose().map_err(steinflow_io::Error::from)?;
        // From here on the run can be taken up from this folder alone.
        unfinished.begin(
            text.as_bytes(),
            first.as_ref().map(|(step, bytes)| (*step, bytes.as_slice())),
        )?;
        drop(first);
        writer = Writer::new(&unfinished, every, (text, inputs), interrupt.flag());
        sampler = sampler
            .interrupt(interrupt.flag())
            .observe(Recorder { record: &mut record, writer: &mut writer });
        if !self.output.quiet {
            let what = format!("{} on {}", config.method, config.model);
            sampler = sampler.observe(Progress::new(&what));
        }
        if let Some(live) = &live {
            tell!("follow the run at {}", live.address());
            sampler = sampler.observe(live.watch());
        }
        let outcome = match (sampler.run(), interrupt.exit_code()) {
            (Err(error @ steinflow::Error::Interrupted { .. }), Some(code)) => {
                tell!("{error}");
                self.say_how_to_go_on();
                return Ok(ExitCode::from(code));
            }
            (outcome, _) => outcome.inspect_err(|_| self.say_how_to_go_on())?,
        };
        if outcome.ended == Ended::Interrupted && every != Every::Never {
            // First of all, for what comes now may take longer than whoever sent the signal waits.
            writer.write(&record, outcome.checkpoint.clone());
        }
        drop(live);
        let over_ranks = helpers.as_ref().map(|helpers| helpers.target(model));
        let target: &dyn LogDensity<T> =
            over_ranks.as_ref().map_or(&model, |target| target as &dyn LogDensity<T>);
        let network = fit.as_ref();
        let result = Found { model, target, network, outcome: &outcome, record: &record };
        let summary =
            self.publish(folder, &writer, &result).inspect_err(|_| self.say_how_to_go_on())?;
        unfinished.remove();
        if self.output.report
            && let Err(error) = report::write_into(&self.out)
        {
            // The run is whole without it.
            tell!("warning: there is no page: {error}");
        }
        summary::print(&summary, &self.out, self.output.json)?;
        Ok(self.farewell(&outcome, &interrupt, summary.diagnosis.as_ref()))
    }

    /// Puts the folder of the run in its place.
    fn publish<T: Real>(
        &self,
        mut folder: RunFolder,
        writer: &Writer<'_>,
        result: &Found<'_, T>,
    ) -> Result<Summary> {
        let &Found { model, outcome, record, .. } = result;
        let (config, samples) = (&self.config, record.samples.as_ref());
        let report =
            result.network.map(|fit| Report::new(config, fit, outcome, samples, self.output.quiet));
        let mut verdict = self.judge(result);
        if let (Some(verdict), Some(report)) = (&mut verdict, &report) {
            verdict.headline += &report.in_a_sentence();
        }
        let (summary, left_out) =
            summary::summarise(config, model, outcome, samples, report.as_ref(), verdict.clone());
        let found =
            files::Found { outcome, trace: &record.trace, samples, frames: record.frames.as_ref() };
        folder.write(record::CONFIG, writer.config.as_bytes())?;
        files::write(&mut folder, config, model, &found, &summary, report.as_ref())?;
        if let Some(csv) = left_out {
            folder.write(record::PREDICTIONS, csv.as_bytes())?;
        }
        if let Some(verdict) = &verdict {
            folder.write_with(record::DIAGNOSIS, |file| write_json(verdict, file))?;
        }
        if writer.every != Every::Never {
            let checkpoint = outcome.checkpoint.clone();
            let run = record.saved_run(&writer.config, &writer.inputs, checkpoint);
            folder.write_with(record::CHECKPOINT, |file| Ok(write_checkpoint(&run, file)?))?;
        }
        if let Some(checksum) = folder.checksum(record::SUMMARY) {
            // Without the note a run that is killed before its folder goes is only made once more.
            let _ = writer.folder.note_end(checksum);
        }
        folder.commit()?;
        Ok(summary)
    }

    /// Whether the particles can be believed. A verdict that cannot be had is no reason to lose the run.
    fn judge<T: Real>(&self, result: &Found<'_, T>) -> Option<Diagnosis> {
        let &Found { model, target, outcome, record, .. } = result;
        let rule = outcome.report.as_ref().map(StopRule::from);
        let left = verdict::Left {
            particles: (&outcome.state, &outcome.structure),
            course: &record.trace.rows().into(),
            draws: record.samples.as_ref(),
            stop_rule: rule.as_ref(),
            warm_moments: outcome.warm_moments.as_ref(),
            gradients: outcome.gradients,
        };
        match verdict::judge_through(&self.config, model, target, &left) {
            Ok(diagnosis) => Some(diagnosis),
            Err(error) => {
                tell!("warning: there is no verdict: {error}");
                None
            }
        }
    }

    /// From now on a signal ends the run in good order; a second one ends it at once.
    fn listen(&self, is_shared: bool, partial: Arc<OnceLock<PathBuf>>) -> Interrupt {
        let (run, is_resumed) = (self.out.clone(), self.is_resumed);
        let promise = if is_shared {
            let resume = format!("`steinflow resume {}`", run.display());
            format!("if mpirun waits for it; if not, go on from the last checkpoint with {resume}")
        } else {
            "keeping everything so far; again to stop at once".to_owned()
        };
        Interrupt::listen(promise, move || {
            // Without it, the place may be another process's.
            let Some(partial) = partial.get() else { return };
            // The run may just be writing into it, and cannot once it is gone.
            while partial.exists() && std::fs::remove_dir_all(partial).is_err() {
                std::thread::yield_now();
            }
            if is_resumed || Unfinished::exists(&run) {
                tell!("stopped; go on with `steinflow resume {}`", run.display());
            } else {
                Unfinished::discard(&run);
            }
        })
    }

    /// After a failure: what was done until the last checkpoint is not lost.
    fn say_how_to_go_on(&self) {
        if Unfinished::exists(&self.out) {
            let run = self.out.display();
            tell!("the last checkpoint is kept: go on from it with `steinflow resume {run}`");
        }
    }

    fn farewell<T>(
        &self,
        outcome: &Outcome<T>,
        interrupt: &Interrupt,
        diagnosis: Option<&Diagnosis>,
    ) -> ExitCode {
        if outcome.ended != Ended::Interrupted {
            let Some(required) = self.output.require else { return ExitCode::SUCCESS };
            let rank = |verdict| Verdict::ALL.iter().position(|&other| other == verdict);
            let found = diagnosis.and_then(Diagnosis::verdict);
            if found.is_some_and(|found| rank(found) <= rank(required)) {
                return ExitCode::SUCCESS;
            }
            let found = found.map_or("none", Verdict::name);
            tell!("the verdict is {found}, and {} was required", required.name());
            return ExitCode::from(Error::DOUBTED);
        }
        let (steps, run) = (outcome.steps, self.out.display());
        if self.output.checkpoint_every == Some(Every::Never) {
            tell!("interrupted after step {steps}; everything so far is kept");
        } else {
            tell!("interrupted after step {steps}; go on with `steinflow resume {run}`");
        }
        ExitCode::from(interrupt.exit_code().unwrap_or(Error::INTERRUPTED))
    }
}

/// Says what an N×N solve will take before it starts.
fn announce_solve(config: &Config) {
    let Some((method, parameters)) = config.flow() else { return };
    let bytes = method.field.solve_memory(parameters, config.particles);
    if bytes > 0 {
        let mebibytes = bytes.div_ceil(1 << 20);
        tell!("{} solves an N×N system at every velocity: {mebibytes} MiB", method.name);
    }
}
