//! `--live`: a page on this machine alone that follows a run for as long as it lasts.
//!
//! The run shares what it has ten times a second at most and never waits for anybody; all else is
//! done by threads of the server, which nobody waits for either.

mod http;
mod watch;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

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

/// Browsers open several connections; more than these are closed at once.
const MOST_CONNECTIONS: usize = 16;
/// How often the server looks for a visitor, and for the end of the run.
const LOOK: Duration = Duration::from_millis(20);

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
    connections: AtomicUsize,
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
        let moments = model.exact_moments();
        let points = Points { dim: model.dim(), columns: Vec::new(), ..Points::default() };
        let backdrop = match &moments {
            _ if is_network => Backdrop::default(),
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
            seen: Mutex::new(Seen::new(config, names, !is_network)),
            is_over: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
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
        while !self.is_over() {
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(LOOK);
                continue;
            };
            if self.connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                self.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let own = Arc::clone(self);
            std::thread::spawn(move || {
                // A visitor who goes away in the middle is nobody's trouble.
                let _ = own.serve(&stream, port);
                own.connections.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }

    fn serve(&self, stream: &TcpStream, port: u16) -> std::io::Result<()> {
        http::prepare(stream)?;
        let asked = http::read_head(stream, || self.is_over())
            .and_then(|head| http::understand(&head, port));
        let response = match asked {
            Ok(Resource::Page) => Response::html(Page::live(self.run()).html()),
            Ok(Resource::State) => Response::json(Page::live(self.run()).state()),
            Err(refusal) => refusal.into(),
        };
        http::answer(stream, &response)
    }

    /// The run as it is now.
    fn run(&self) -> Run {
        let seen = self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        seen.onto(self.run.clone(), self.exact.as_deref())
    }
}
