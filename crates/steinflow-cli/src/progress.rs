//! Progress bars on the terminal, one of them an observer; invisible when nobody watches.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use steinflow::run::{EnsembleView, Observer, Snapshot};
use steinflow::{Real, Result};

/// Between two looks at particles that are far away.
const PAUSE: Duration = Duration::from_millis(200);

pub struct Progress {
    bar: ProgressBar,
    last: Instant,
}

/// A bar that counts to a length it is yet to be given.
pub fn bar(what: &str, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    // What does not fit the terminal is cut off at the end, where the least is lost.
    let style =
        ProgressStyle::with_template("{prefix} [{bar:12}] {pos}/{len} eta {eta} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
    ProgressBar::new(0).with_style(style).with_prefix(what.to_owned())
}

impl Progress {
    pub fn new(what: &str) -> Self {
        Self { bar: bar(what, false), last: Instant::now() }
    }
}

impl<T: Real> Observer<T> for Progress {
    /// A bar that is drawn now and then needs no particles in between.
    fn is_due(&mut self, step: u64, total_steps: u64) -> bool {
        let is_due = step == total_steps || self.last.elapsed() >= PAUSE;
        if is_due {
            self.last = Instant::now();
        }
        is_due
    }

    fn observe(&mut self, at: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        if let Some(ensemble) = &at.ensemble {
            self.bar.set_length(100);
            self.bar.set_position((100.0 * ensemble.share()) as u64);
            self.bar.set_message(described(ensemble));
            return Ok(ControlFlow::Continue(()));
        }
        if self.bar.length() != Some(at.total_steps) {
            self.bar.set_length(at.total_steps);
            // Time left is judged by the steps of this process.
            self.bar.set_position(at.step);
            self.bar.reset_eta();
        }
        self.bar.set_position(at.step);
        if let Some(speed) = at.velocity_norm
            && (at.step.is_multiple_of(64) || at.step == at.total_steps)
        {
            self.bar.set_message(format!("|v| {speed:.1e}"));
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// What an ensemble is at, in a few words.
fn described(ensemble: &EnsembleView) -> String {
    let (found, wanted) = ensemble.effective;
    match ensemble.rhat {
        Some(rhat) => {
            let stage = ensemble.stage.name();
            format!("{stage}: {found:.0} of {wanted:.0} draws, R̂ {rhat:.2}")
        }
        None => ensemble.stage.name().to_owned(),
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
