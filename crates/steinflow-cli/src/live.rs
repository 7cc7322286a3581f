//! `--live`: a page on this machine alone that follows a run for as long as it lasts.
//!
//! The run shares what it has ten times a second at most and never waits for anybody; all else is
//! done by threads of the server, which nobody waits for either.

mod http;
mod watch;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use steinflow::Real;
use steinflow_io::record::Summary;
use steinflow_io::report::{Page, Points, Run};
use steinflow_models::Model;

use crate::error::{Error, Result};
use crate::report::Backdrop;
use http::{Resource, Response};
use steinflow_config::Config;
use watch::Seen;

pub use watch::Watch;

/// Browsers open several connections. Where there are more than these, the oldest is closed: it is the
/// slowest, and whoever comes next is served.
const MOST_CONNECTIONS: usize = 16;
/// How often the server looks for a visitor, and for the end of the run. One visitor at a look: however
/// many ask, they cost the run little.
const LOOK: Duration = Duration::from_millis(20);
/// What was rendered is served again for so long, and for so many times what rendering took.
const FRESH: (Duration, u32) = (Duration::from_millis(100), 50);

/// The server of a run; it ends when this is dropped.
pub struct Live {
    port: u16,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    /// What does not change: the name, the settings, the target.
    run: Run,
    /// Exact mean and standard deviation of every coordinate, where they are known.
    exact: Option<Vec<(f64, f64)>>,
    seen: Mutex<Seen>,
    is_over: AtomicBool,
    /// Connections by their number, the oldest first.
    visitors: Mutex<VecDeque<(u64, TcpStream)>>,
    /// The page and its state as they were last rendered.
    rendered: [Mutex<Option<Rendered>>; 2],
}

struct Rendered {
    body: Arc<str>,
    at: Instant,
    /// How long it took.
    cost: Duration,
}

impl Live {
    /// Listens on the port, or on any that is free for 0.
    pub fn start<T: Real>(
        port: u16,
        name: String,
        config: &Config,
        model: &dyn Model<T>,
        is_network: bool,
    ) -> Result<Self> {
        let failed = |source| Error::Live { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let moments = model.shown_moments();
        let points = Points { dim: model.dim(), columns: Vec::new(), ..Points::default() };
        let backdrop = match &moments {
            _ if is_network || model.units().is_some() => Backdrop::default(),
            None if model.window().is_none() => Backdrop::default(),
            moments => {
                // Around the target, for there are no particles yet.
                let mean = moments.as_ref().map_or_else(|| model.start().mean, |m| m.mean.clone());
                let columns = mean.into_iter().map(|x| vec![x]).collect();
                Backdrop::new(model, &Points { columns, ..points })?
            }
        };
        let summary = Summary {
            steinflow_version: env!("CARGO_PKG_VERSION").to_owned(),
            model: config.model.clone(),
            method: config.method.clone(),
            particles: config.particles,
            ..Summary::default()
        };
        let run = Run {
            name,
            summary,
            config: config.to_toml(),
            density: backdrop.density,
            marginals: backdrop.marginals,
            ..Run::default()
        };
        let exact = moments.map(|exact| {
            let sd = |j: usize| exact.covariance.row(j)[j].sqrt();
            exact.mean.iter().enumerate().map(|(j, &mean)| (mean, sd(j))).collect()
        });
        let names = model.parameter_names();
        let shared = Arc::new(Shared {
            run,
            exact: exact.filter(|_| !is_network),
            seen: Mutex::new(Seen::new(config, names, model.units(), !is_network)),
            is_over: AtomicBool::new(false),
            visitors: Mutex::default(),
            rendered: Default::default(),
        });
        let own = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || own.accept(&listener, port));
        Ok(Self { port, shared, acceptor: Some(acceptor) })
    }

    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// The observer that shares what the run does.
    pub fn watch(&self) -> Watch {
        Watch::new(Arc::clone(&self.shared))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // It holds the port, looks up every few milliseconds, and waits for no visitor.
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener, port: u16) {
        let mut number = 0;
        while !self.is_over() {
            if let Ok((stream, _)) = listener.accept() {
                number += 1;
                self.admit(number, stream, port);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Serves a visitor in a thread of its own.
    fn admit(self: &Arc<Self>, number: u64, stream: TcpStream, port: u16) {
        let Ok(other) = stream.try_clone() else { return };
        let mut visitors = lock(&self.visitors);
        if visitors.len() >= MOST_CONNECTIONS
            && let Some((_, oldest)) = visitors.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        visitors.push_back((number, other));
        drop(visitors);
        let own = Arc::clone(self);
        let thread = std::thread::Builder::new().spawn(move || {
            // A visitor who goes away in the middle is nobody's trouble.
            let _ = own.serve(&stream, port);
            own.dismiss(number);
        });
        if thread.is_err() {
            self.dismiss(number);
        }
    }

    fn dismiss(&self, number: u64) {
        lock(&self.visitors).retain(|(own, _)| *own != number);
    }

    fn serve(&self, stream: &TcpStream, port: u16) -> std::io::Result<()> {
        http::prepare(stream)?;
        let asked = http::read_head(stream, || self.is_over())
            .and_then(|head| http::understand(&head, port));
        let response = match asked {
            Ok(Resource::Page) => Response::html(self.rendered(0, Page::html)),
            Ok(Resource::State) => Response::json(self.rendered(1, Page::state)),
            Err(refusal) => refusal.into(),
        };
        http::answer(stream, &response)
    }

    /// What `render` makes of the run, now or a moment ago; others who ask meanwhile wait for it.
    fn rendered(&self, place: usize, render: impl Fn(&Page) -> String) -> Arc<str> {
        let mut kept = lock(&self.rendered[place]);
        if let Some(Rendered { body, at, cost }) = &*kept
            && at.elapsed() < FRESH.0.max(*cost * FRESH.1)
        {
            return Arc::clone(body);
        }
        let begun = Instant::now();
        let body: Arc<str> = render(&Page::live(self.run())).into();
        *kept =
            Some(Rendered { body: Arc::clone(&body), at: Instant::now(), cost: begun.elapsed() });
        body
    }

    /// The run as it is now.
    fn run(&self) -> Run {
        let seen = lock(&self.seen).clone();
        seen.onto(self.run.clone(), self.exact.as_deref())
    }
}

/// What is behind it stays right whoever panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
