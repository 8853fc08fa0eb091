//! Start, supervision and end of the proxy.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bentpipe_host::Device;
use bentpipe_scenario::deployment::Deployment;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};

use crate::counters;
use crate::doctor;
use crate::early_demux;
use crate::engine;
use crate::error::Error;
use crate::interceptor::{self, Interceptor};
use crate::lines;
use crate::marks::{Kind, Marks};
use crate::metrics::Reason;
use crate::outside::{self, Found, Outside};
use crate::places::Count;
use crate::privileges;
use crate::probe;
use crate::relay::{self, Relay};
use crate::rules::{self, Installed, Target};
use crate::shared::{Descriptors, Inbox, Resources, Shared};
use crate::slot::{self, Held};
use crate::sockets::Listeners;
use crate::watch::Watch;

/// Interval between two checks of the limits (chosen).
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Least time between two probes (chosen).
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum time between two probes while rules drop only the engine's packets, and do not change (chosen: a probe without an answer
/// takes 1 s).
const ENGINE_PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// Interval at which unused memory is returned to the system (chosen).
const TRIM_INTERVAL: Duration = Duration::from_secs(10);

/// Runs the proxy of the configuration in the file at `path` until SIGTERM or SIGINT; SIGHUP reads the file again. With `take_over` a
/// proxy that runs in this network namespace gets no new connections, and ends with its last connection.
///
/// # Errors
///
/// [`Error`] if the proxy cannot be started; then nothing of it remains, and an older proxy continues.
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
    let resources = Resources { slot: held.slot, descriptors, engine, lines: sender, relays };
    let shared = Arc::new(Shared::new(deployment, resources));
    if let Some((file, _, reports)) = lines {
        lines::write(file, reports, Arc::clone(&shared))?;
    }
    doctor::warn_of_interfaces(&shared.deployment());
    let mut daemon = Daemon::start(shared, held)?;
    if let Some(older) = older {
        slot::take_over(older).map_err(Error::at("the older proxy does not hand over"))?;
        eprintln!("bentpipe: took over; the older proxy finishes its connections");
    }
    daemon.serve_metrics()?;
    let state = match daemon.obstacle {
        None => "proxying",
        Some(_) => "not proxying until a probe passes",
    };
    eprintln!("bentpipe: {state}; SIGHUP reads {path} again, SIGTERM ends");
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
    outside: Outside,
    /// Obstacle outside of the proxy because of which new connections are forwarded untouched.
    obstacle: Option<Reason>,
    /// Time of the last probe.
    probed: Instant,
    /// True if rules of other programs have changed since then.
    probe_wanted: bool,
    /// Rules at the time of the last probe.
    probed_rules: String,
    /// Removes the rules when it is dropped.
    _installed: Installed,
    /// SYNs are diverted only while it exists.
    device: Device,
    held: Held,
}

/// Installs the rules and the routes of a slot, and begins to watch them.
fn install(deployment: &Deployment, target: Target) -> Result<(Installed, Outside), Error> {
    let before = early_demux::original()?;
    // Proxies that were killed have left their rules behind.
    rules::clean()?;
    rules::remove(target.slot)?;
    // If a part cannot be installed, dropping this removes the other parts.
    let installed = Installed(target.slot);
    let outside = Outside::install(deployment, target, before)?;
    Ok((installed, outside))
}

impl Daemon {
    fn start(shared: Arc<Shared>, held: Held) -> Result<Self, Error> {
        let deployment = shared.deployment();
        let mark = Marks::of(&deployment).value(Kind::Ours);
        let device = held.slot.open_device()?;
        let mut ports = None;
        let mut relays = Vec::new();
        for number in 0..shared.memory.len() {
            let listeners = Listeners::open(ports, mark).map_err(Error::at("a transparent socket"))?;
            ports = Some(listeners.ports);
            let (relay, inbox) =
                Relay::new(Arc::clone(&shared), number, listeners.sockets).map_err(Error::at("epoll"))?;
            relays.push((spawn(format!("relay-{number}"), move || relay.run())?, inbox));
        }
        let inboxes = relays.iter().map(|(_, inbox)| Arc::clone(inbox)).collect();
        let (interceptor, inbox) = Interceptor::open(held.slot, Arc::clone(&shared), inboxes)?;
        let interceptor = Some((spawn("interceptor".into(), move || interceptor.run())?, inbox));
        let ports = ports.expect("there is at least one thread");
        let (_installed, outside) = install(&deployment, Target { slot: held.slot, ports })?;
        outside::note_routes_by_arrival(&shared);
        let mut daemon = Self {
            shared,
            relays,
            interceptor,
            watch: None,
            outside,
            obstacle: None,
            probed: Instant::now(),
            probe_wanted: false,
            probed_rules: String::new(),
            _installed,
            device,
            held,
        };
        daemon.probe();
        daemon.divert(daemon.obstacle)?;
        Ok(daemon)
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
                None => self.check(),
                Some(Signal::SIGHUP) => self.reload(path),
                Some(_) => break,
            }
            if let Ok(newer) = self.held.requests.try_recv() {
                self.stop_diverting();
                self.watch = None;
                drop(newer);
                let active = self.shared.places.count().open;
                eprintln!("bentpipe: a newer proxy takes new connections; {active} are finished here");
                return self.drain(signals, None);
            }
            if let Some((thread, _)) = self.relays.iter().find(|(thread, _)| thread.is_finished()) {
                return Err(Error::Request(format!("a thread has ended: {:?}", thread.thread().name())));
            }
        }
        let patience = Duration::from_nanos(self.shared.deployment().workings.drain.as_nanos());
        let open = self.shared.places.count().open;
        eprintln!(
            "bentpipe: told to end: no new connections; {open} may finish within {} s",
            patience.as_secs()
        );
        self.drain(signals, Some(patience))
    }

    /// Lets new connections be forwarded untouched while a limit is reached, or while rules are missing that cannot be installed.
    fn check(&mut self) {
        self.look_outside();
        let shared = &self.shared;
        let (memory, limit) = (shared.memory(), shared.deployment().limits.memory);
        let (active, most) = (shared.places.count().open, shared.most_connections());
        shared.metrics.memory.set(i64::try_from(memory).unwrap_or(i64::MAX));
        // New connections are split again a tenth below the limit (chosen).
        let bypass = shared.bypass();
        let slack = if bypass.is_some() { 10 } else { u32::MAX };
        let wanted = if self.obstacle.is_some() {
            self.obstacle
        } else if active >= most - most / slack {
            Some(Reason::Connections)
        } else if memory >= limit - limit / u64::from(slack) {
            Some(Reason::Memory)
        } else {
            None
        };
        if wanted.is_some() != bypass.is_some() {
            let what = match wanted {
                None => "new connections are split again".to_owned(),
                Some(reason @ (Reason::Connections | Reason::Memory)) => {
                    format!("limit of {} reached: new connections are forwarded untouched", reason.word())
                }
                Some(reason) => format!("{}: new connections are forwarded untouched", reason.word()),
            };
            match self.divert(wanted) {
                Ok(()) => eprintln!("bentpipe: {what}; {active} connections, {memory} bytes of memory"),
                Err(error) => eprintln!("bentpipe: the rules could not be changed: {error}"),
            }
        }
    }

    /// Installs removed rules again, and probes when other rules may have changed.
    fn look_outside(&mut self) {
        let heard = self.outside.has_heard();
        self.probe_wanted |= heard && outside::rules_of_others() != self.probed_rules;
        if heard || self.outside.is_due() {
            self.restore();
        }
        let wanted = self.probe_wanted || self.obstacle == Some(Reason::Firewall);
        let obstructed = [true, false].into_iter().any(|is_v4| self.shared.is_engine_obstructed(is_v4));
        let since = self.probed.elapsed();
        if self.obstacle != Some(Reason::Rules)
            && (wanted && since >= PROBE_INTERVAL || obstructed && since >= ENGINE_PROBE_INTERVAL)
        {
            self.probe();
        }
    }

    fn restore(&mut self) {
        outside::note_routes_by_arrival(&self.shared);
        let diverting = self.shared.bypass().is_none();
        match self.outside.compare(&self.shared.deployment(), diverting) {
            Ok(Found::Restored) => {
                if let Some(engine) = &self.shared.engine {
                    engine.register();
                }
                eprintln!("bentpipe: rules or routes of the proxy were removed; they are installed again");
            }
            Ok(Found::Intact) => {}
            Err(error) => {
                if self.obstacle != Some(Reason::Rules) {
                    eprintln!(
                        "bentpipe: rules or routes of the proxy were removed, and cannot be installed again: {error}"
                    );
                }
                self.obstacle = Some(Reason::Rules);
                return;
            }
        }
        if self.obstacle == Some(Reason::Rules) {
            self.obstacle = None;
        }
    }

    /// Sends a probe through the path of proxied connections.
    fn probe(&mut self) {
        let once = || {
            probe::probe(&self.shared.deployment(), self.held.slot, &self.device).unwrap_or_else(|error| {
                eprintln!("bentpipe: the probe could not be made: {error}");
                Vec::new()
            })
        };
        let mut found = once();
        if !found.is_empty() {
            // A busy machine may have delayed the first one.
            found = once();
        }
        let (before, words) = (self.shared.obstacles(), probe::words(&found));
        if !words.is_empty() && words != before {
            eprintln!("bentpipe: {words}");
        }
        if words.is_empty() && !before.is_empty() {
            eprintln!("bentpipe: a probe has passed");
        }
        let stops_all = found.iter().any(|obstacle| !obstacle.is_of_engine());
        self.obstacle = stops_all.then_some(Reason::Firewall);
        let of_engine = [true, false]
            .map(|is_v4| found.iter().any(|obstacle| obstacle.is_of_engine() && obstacle.is_v4 == is_v4));
        self.shared.set_obstacles(words, of_engine);
        self.probed_rules = outside::rules_of_others();
        (self.probed, self.probe_wanted) = (Instant::now(), false);
    }

    /// Diverts new connections, or forwards them untouched for a reason.
    fn divert(&mut self, bypass: Option<Reason>) -> Result<(), Error> {
        self.shared.set_bypass(bypass);
        self.shared.metrics.bypassing.set(i64::from(bypass.is_some()));
        self.outside.install_rules(&self.shared.deployment(), bypass.is_none())
    }

    /// Accepts no more connections. If the rules cannot be changed, the interceptor passes SYNs on.
    fn stop_diverting(&mut self) {
        if let Err(error) = self.divert(Some(Reason::Draining)) {
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
            Ok(deployment) if deployment.workings.marks != self.shared.deployment().workings.marks => {
                eprintln!(
                    "bentpipe: {path}: another daemon.marks needs a restart; the old configuration goes on"
                );
            }
            Ok(deployment) => self.replace(path, deployment),
            Err(error) => eprintln!("{error}\nbentpipe: the old configuration goes on"),
        }
    }

    /// Takes another configuration, unless its rules cannot be installed.
    fn replace(&mut self, path: &str, deployment: Deployment) {
        let old = self.shared.deployment();
        // The counters belong to the classes of the old configuration.
        counters::collect(&self.shared);
        self.shared.replace_deployment(deployment);
        match self.divert(self.shared.bypass()) {
            Ok(()) => {
                let new = self.shared.deployment();
                if (new.queue, &new.interfaces) != (old.queue, &old.interfaces) {
                    self.outside.install_queues(&new);
                }
                outside::note_routes_by_arrival(&self.shared);
                doctor::warn_of_interfaces(&self.shared.deployment());
                eprintln!("bentpipe: {path} read again");
            }
            Err(error) => {
                self.shared.replace_deployment(Deployment::clone(&old));
                eprintln!("bentpipe: {path}: {error}\nbentpipe: the old configuration goes on");
            }
        }
    }

    /// Accepts no more connections, and waits until those that exist have ended: for `patience` at most, if there is a bound.
    fn drain(mut self, signals: &SigSet, patience: Option<Duration>) -> Result<(), Error> {
        self.stop_diverting();
        let begin = Instant::now();
        let waits = || patience.is_none_or(|patience| begin.elapsed() < patience);
        while self.shared.places.count() != Count::default() && waits() {
            if let Some(Signal::SIGTERM | Signal::SIGINT) = wait(signals, CHECK_INTERVAL) {
                break;
            }
            self.look_outside();
        }
        match self.shared.places.count() {
            Count { open: 0, .. } => eprintln!("bentpipe: all connections have ended"),
            Count { open, .. } => eprintln!("bentpipe: {open} connections are cut"),
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
