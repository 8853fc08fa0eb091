//! How the proxy is started, watched and ended.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bentpipe_scenario::deployment::Deployment;
use bentpipe_system::nft;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};

use crate::doctor;
use crate::early_demux;
use crate::engine;
use crate::error::Error;
use crate::interceptor::{self, Interceptor};
use crate::lines;
use crate::metrics::Reason;
use crate::privileges;
use crate::relay::{self, Relay};
use crate::rules::{self, Target};
use crate::shared::{Descriptors, Inbox, Resources, Shared};
use crate::slot::{self, Held, Slot};
use crate::sockets::Listeners;
use crate::watch::Watch;

/// How often limits are checked (chosen).
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// How often unused memory is returned to the system (chosen).
const TRIM_INTERVAL: Duration = Duration::from_secs(10);

/// Runs the proxy of the configuration in the file at `path` until SIGTERM or SIGINT; SIGHUP reads the file again. With `take_over` a proxy that
/// runs already in this network namespace gets no new connections from then on, and ends when its last one has ended.
///
/// # Errors
/// [`Error`] if it cannot be started; then nothing of it is left behind, and a proxy that ran already goes on.
pub fn run(path: &str, deployment: Deployment, take_over: bool) -> Result<(), Error> {
    let signals = catch_signals()?;
    let lines = deployment.watch.connections.as_deref().map(lines::open).transpose()?;
    let descriptors = descriptors(&deployment)?;
    privileges::give_up(deployment.workings.user.as_deref())?;
    doctor::refuse_missing_algorithms(&deployment)?;
    let relays = deployment.workings.threads.map_or_else(cores, |threads| threads as usize);
    let sender = lines.as_ref().map(|(_, sender, _)| sender.clone());
    let (held, older) = slot::hold(take_over)?;
    let engine =
        (engine::threads(&deployment) > 0).then(|| engine::start(held.slot, &deployment)).transpose()?;
    let resources = Resources { descriptors, engine, lines: sender, relays };
    let shared = Arc::new(Shared::new(deployment, resources));
    if let Some((file, _, reports)) = lines {
        lines::write(file, reports, Arc::clone(&shared))?;
    }
    let mut daemon = Daemon::start(shared, held)?;
    if let Some(older) = older {
        slot::take_over(older).map_err(Error::at("the older proxy does not hand over"))?;
        eprintln!("bentpipe: took over; the older proxy finishes its connections");
    }
    daemon.serve_metrics()?;
    eprintln!("bentpipe: proxying; SIGHUP reads {path} again, SIGTERM ends");
    daemon.supervise(path, &signals)
}

/// Blocks signals so that they can be waited for instead of ending the process.
fn catch_signals() -> Result<SigSet, Error> {
    let signals: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect();
    signals.thread_block().map_err(|error| Error::at("signals")(error.into()))?;
    Ok(signals)
}

/// Raises the limit of descriptors as far as permitted.
fn descriptors(deployment: &Deployment) -> Result<Descriptors, Error> {
    let failed = |error: nix::Error| Error::at("the limit of descriptors")(error.into());
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    let most = if setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() { hard } else { soft };
    let descriptors = Descriptors(most);
    if descriptors.allow(deployment) == 0 {
        return Err(Error::Missing(format!(
            "{most} descriptors are too few for a proxy; allow more (ulimit -n 65536, or LimitNOFILE= in the systemd unit)"
        )));
    }
    Ok(descriptors)
}

/// A thread and its inbox.
type Worker<T> = (JoinHandle<io::Result<()>>, Arc<Inbox<T>>);

struct Daemon {
    shared: Arc<Shared>,
    relays: Vec<Worker<relay::Message>>,
    interceptor: Option<Worker<interceptor::Message>>,
    watch: Option<Watch>,
    /// Removes the rules when it is dropped.
    _installed: Installed,
    held: Held,
}

/// The rules of a slot that are installed.
struct Installed(Slot);

impl Installed {
    fn install(deployment: &Deployment, target: Target) -> Result<Self, Error> {
        // A proxy that was killed has left its rules behind.
        rules::clean_others(target.slot)?;
        let before = early_demux::original()?;
        // If a part cannot be installed, dropping this removes the other parts.
        let installed = Self(target.slot);
        rules::install(deployment, target, &before)?;
        early_demux::switch_off()?;
        Ok(installed)
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        if let Err(error) = rules::remove(self.0) {
            eprintln!(
                "bentpipe: the rules could not be removed: {error}; remove them with `bentpipe pep clean`"
            );
        }
    }
}

impl Daemon {
    fn start(shared: Arc<Shared>, held: Held) -> Result<Self, Error> {
        let deployment = shared.deployment();
        let mut ports = None;
        let mut relays = Vec::new();
        for number in 0..shared.memory.len() {
            let listeners = Listeners::open(ports).map_err(Error::at("a transparent socket"))?;
            ports = Some(listeners.ports);
            let (relay, inbox) =
                Relay::new(Arc::clone(&shared), number, listeners.sockets).map_err(Error::at("epoll"))?;
            relays.push((spawn(format!("relay-{number}"), move || relay.run())?, inbox));
        }
        let inboxes = relays.iter().map(|(_, inbox)| Arc::clone(inbox)).collect();
        let (interceptor, inbox) = Interceptor::open(held.slot, Arc::clone(&shared), inboxes)?;
        let interceptor = Some((spawn("interceptor".into(), move || interceptor.run())?, inbox));
        let ports = ports.expect("there is at least one thread");
        let _installed = Installed::install(&deployment, Target { slot: held.slot, ports })?;
        Ok(Self { _installed, held, shared, relays, interceptor, watch: None })
    }

    /// Serves metrics. The address may have been in use by an older proxy until now.
    fn serve_metrics(&mut self) -> Result<(), Error> {
        if let Some(address) = self.shared.deployment().watch.listen {
            let inboxes = self.relays.iter().map(|(_, inbox)| Arc::clone(inbox)).collect();
            self.watch = Some(Watch::serve(address, Arc::clone(&self.shared), inboxes)?);
        }
        Ok(())
    }

    /// Checks limits and waits for signals.
    fn supervise(mut self, path: &str, signals: &SigSet) -> Result<(), Error> {
        let mut trimmed = Instant::now();
        loop {
            if trimmed.elapsed() >= TRIM_INTERVAL {
                trimmed = Instant::now();
                return_memory();
            }
            match wait(signals, CHECK_INTERVAL) {
                None => self.check_limits(),
                Some(Signal::SIGHUP) => self.reload(path),
                Some(_) => break,
            }
            if let Ok(newer) = self.held.requests.try_recv() {
                self.divert(Some(Reason::Draining));
                self.watch = None;
                drop(newer);
                let active = self.shared.active.load(Ordering::Relaxed);
                eprintln!("bentpipe: a newer proxy takes new connections; {active} are finished here");
                return self.drain(signals, None);
            }
            if let Some((thread, _)) = self.relays.iter().find(|(thread, _)| thread.is_finished()) {
                return Err(Error::Request(format!("a thread has ended: {:?}", thread.thread().name())));
            }
        }
        let patience = Duration::from_nanos(self.shared.deployment().workings.drain.as_nanos());
        self.drain(signals, Some(patience))
    }

    /// Lets new connections be forwarded untouched while a limit is reached.
    fn check_limits(&mut self) {
        let shared = &self.shared;
        let (memory, limit) = (shared.memory(), shared.deployment().limits.memory);
        let (active, most) = (shared.active.load(Ordering::Relaxed), shared.most_connections());
        shared.metrics.memory.set(i64::try_from(memory).unwrap_or(i64::MAX));
        // New connections are split again a tenth below the limit (chosen).
        let bypass = shared.bypass();
        let slack = if bypass.is_some() { 10 } else { u32::MAX };
        let wanted = if active >= most - most / slack {
            Some(Reason::Connections)
        } else if memory >= limit - limit / u64::from(slack) {
            Some(Reason::Memory)
        } else {
            None
        };
        if wanted.is_some() != bypass.is_some() {
            let what = wanted.map_or("new connections are split again".to_owned(), |reason| {
                format!("limit of {} reached: new connections are forwarded untouched", reason.word())
            });
            eprintln!("bentpipe: {what}; {active} connections, {memory} bytes of memory");
            self.divert(wanted);
        }
    }

    /// Diverts new connections, or forwards them untouched for a reason.
    fn divert(&mut self, bypass: Option<Reason>) {
        self.shared.set_bypass(bypass);
        self.shared.metrics.bypassing.set(i64::from(bypass.is_some()));
        let deployment = bypass.is_none().then(|| self.shared.deployment());
        if let Err(error) = nft(&rules::divert(self.held.slot, deployment.as_deref())).map_err(Error::from) {
            eprintln!("bentpipe: the rules could not be changed: {error}");
        }
    }

    /// Reads the configuration again for new connections. A wrong file changes nothing.
    fn reload(&mut self, path: &str) {
        match Deployment::load(path) {
            Ok(deployment) if engine::threads(&deployment) > 0 && self.shared.engine.is_none() => {
                eprintln!(
                    "bentpipe: {path}: the first class with datapath = \"engine\" needs a restart; the old configuration goes on"
                );
            }
            Ok(deployment) if let Err(error) = doctor::refuse_missing_algorithms(&deployment) => {
                eprintln!("bentpipe: {path}: {error}\nbentpipe: the old configuration goes on");
            }
            Ok(deployment) => {
                self.shared.replace_deployment(deployment);
                self.divert(self.shared.bypass());
                eprintln!("bentpipe: {path} read again");
            }
            Err(error) => eprintln!("{error}\nbentpipe: the old configuration goes on"),
        }
    }

    /// Accepts no more connections, and waits until those that exist have ended: for `patience` at most, if there is a bound.
    fn drain(mut self, signals: &SigSet, patience: Option<Duration>) -> Result<(), Error> {
        self.divert(Some(Reason::Draining));
        let begin = Instant::now();
        let waits = || patience.is_none_or(|patience| begin.elapsed() < patience);
        while self.shared.active.load(Ordering::Relaxed) > 0 && waits() {
            if let Some(Signal::SIGTERM | Signal::SIGINT) = wait(signals, CHECK_INTERVAL) {
                break;
            }
        }
        if let Some((thread, inbox)) = self.interceptor.take() {
            inbox.send(interceptor::Message::Stop);
            let _ = thread.join();
        }
        for (_, inbox) in &self.relays {
            inbox.send(relay::Message::Stop);
        }
        Ok(())
    }
}

/// Returns freed memory to the system. By itself the allocator keeps freed memory that lies between blocks in use.
fn return_memory() {
    // SAFETY: it may be called at any time, from any thread.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn spawn(
    name: String,
    work: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Result<JoinHandle<io::Result<()>>, Error> {
    thread::Builder::new().name(name).spawn(work).map_err(Error::at("cannot start a thread"))
}

/// Waits for a signal, for `patience` at most.
fn wait(signals: &SigSet, patience: Duration) -> Option<Signal> {
    let timeout =
        libc::timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
    // SAFETY: both arguments are valid and outlive the call; the third is optional.
    let number = unsafe { libc::sigtimedwait(signals.as_ref(), std::ptr::null_mut(), &raw const timeout) };
    Signal::try_from(number).ok()
}
