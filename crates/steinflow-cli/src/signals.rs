//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second for an end at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// What a signal has asked for.
#[derive(Clone, Default)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    /// 128 + the signal, by custom; 0 as long as there was none.
    code: Arc<AtomicU8>,
}

impl Interrupt {
    /// From now on the first signal raises the flag and says `promise`; at the second one `abandon` is called and
    /// the process ends.
    pub fn listen(promise: String, abandon: impl Fn() + Send + 'static) -> Self {
        let interrupt = Self::default();
        let own = interrupt.clone();
        on_signal(move |code| {
            own.code.store(code, Ordering::Relaxed);
            if own.raised.swap(true, Ordering::Relaxed) {
                abandon();
                std::process::exit(i32::from(code));
            }
            tell!("stopping after this step, {promise}");
        });
        interrupt
    }

    /// Up once a signal has come.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.raised)
    }

    /// The exit code of the signal that came, if one did.
    pub fn exit_code(&self) -> Option<u8> {
        Some(self.code.load(Ordering::Relaxed)).filter(|&code| code != 0)
    }
}

/// Calls `handle` with the exit code of every SIGINT and SIGTERM, in a thread of its own.
#[cfg(unix)]
pub fn on_signal(mut handle: impl FnMut(u8) + Send + 'static) {
    use signal_hook::consts::{SIGINT, SIGTERM};
    match signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
        Ok(mut signals) => {
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    handle(u8::try_from(128 + signal).unwrap_or(u8::MAX));
                }
            });
        }
        Err(error) => warn(&error),
    }
}

/// Calls `handle` with the exit code of every Ctrl-C, in a thread of its own.
#[cfg(not(unix))]
pub fn on_signal(mut handle: impl FnMut(u8) + Send + 'static) {
    if let Err(error) = ctrlc::set_handler(move || handle(crate::error::Error::INTERRUPTED)) {
        warn(&error);
    }
}

fn warn(error: &dyn std::fmt::Display) {
    tell!("warning: Ctrl-C will lose what is not in a checkpoint: {error}");
}

/// From now on a file that grows beyond the limit of the shell (`ulimit -f`) is an error like any other,
/// and not the end of the process.
pub fn survive_large_files() {
    #[cfg(unix)]
    if let Err(error) =
        signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))
    {
        warn(&error);
    }
}
