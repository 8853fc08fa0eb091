//! One emulation from start to end.

use std::ffi::OsString;
use std::io::{self, Write};
use std::iter;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bentpipe_system::ip;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, geteuid};
use std::os::fd::AsFd;

use crate::capture::Recorder;
use crate::children::{self, ServerPlace, Servers};
use crate::cleanup::CleanupProcess;
use crate::device::{Device, KERNEL_QUEUE};
use crate::driver::Driver;
use crate::error::Error;
use crate::host::{Addresses, Place};
use crate::http::{HttpServer, Remote};
use crate::names;
use crate::namespace::{self, Namespace};
use crate::path::{LEAST_MTU_OF_IPV6, Path};
use crate::processes::{self, NetworkId};
use crate::shared::{Shared, Snapshot};

/// Name of the only device of the command.
pub(crate) const COMMAND_DEVICE: &str = "bentpipe";

/// Configuration of an emulation.
pub struct EmulationConfig {
    /// The links.
    pub path: Path,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Shell commands that start servers on the far side of the path. If there are any and the process is not
    /// privileged, the command cannot reach the host's network.
    pub servers: Vec<OsString>,
    /// File for the command's packets, as pcapng.
    pub capture: Option<Box<dyn Write + Send>>,
    /// HTTP server that can change links during the emulation, if wanted.
    pub remote: Option<Remote>,
}

/// Result of an emulation.
#[derive(Debug)]
pub struct Outcome {
    /// Exit code of the command, or 128 plus the number of the signal that ended it.
    pub code: u8,
    /// State at the end.
    pub snapshot: Snapshot,
    /// Packets missing in the capture, because the disk was too slow.
    pub missed_by_capture: u64,
}

/// Variable of a program in an emulation: the address of the far host.
pub(crate) const HOST_VARIABLE: &str = "BENTPIPE_HOST";

/// Approximate interval of the calls of `watch` (chosen).
const WATCH_EVERY_MS: u16 = 250;

/// Runs the command over the path until it ends, and calls `watch` with the state in intervals.
///
/// The calling process must have one thread. Without privileges it enters a new user namespace.
///
/// # Errors
/// [`Error`] if something is missing on this machine, or the command cannot start.
pub fn run(config: EmulationConfig, mut watch: impl FnMut(&Snapshot)) -> Result<Outcome, Error> {
    refuse_nesting()?;
    let signals = Signals::catch()?;
    let mut world = World::build(&config.servers, config.path.mtu)?;
    let shared = Arc::new(Shared::new().map_err(|error| Error::at("eventfd")(error.into()))?);
    let mut driver = Driver::new(config.path.clone(), world.take_devices(), Arc::clone(&shared))?;
    if let Some(out) = config.capture {
        driver.record(Recorder::start(out).map_err(Error::at("cannot start a thread"))?);
    }
    let http_server =
        config.remote.map(|remote| HttpServer::open(remote, config.path, Arc::clone(&shared))).transpose()?;
    let emulator = start(driver)?;
    let network = world.command_side.id().map_err(Error::at("network namespace"))?;
    let code = world
        .start(&config.command)
        .and_then(|child| wait_for((child, network), &signals, || watch(&shared.snapshot())));
    if let Some(http_server) = http_server {
        http_server.close();
    }
    shared.stop();
    let (snapshot, recorder) = emulator.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let missed = recorder.map_or(Ok(0), Recorder::finish).map_err(Error::at("cannot write the capture"))?;
    Ok(Outcome { code: code?, snapshot, missed_by_capture: missed })
}

/// Refuses an emulation within an emulation, because devices, addresses and routes would collide.
pub(crate) fn refuse_nesting() -> Result<(), Error> {
    match std::env::var(HOST_VARIABLE) {
        Ok(host) => Err(Error::Request(format!(
            "found an emulation within an emulation ({HOST_VARIABLE} is {host}), accepted: one at a time; a path over several links is one \
             scenario with all of them"
        ))),
        Err(_) => Ok(()),
    }
}

fn start(driver: Driver) -> Result<JoinHandle<(Snapshot, Option<Recorder>)>, Error> {
    let work = || {
        raise_priority();
        driver.run()
    };
    thread::Builder::new().name("emulator".into()).spawn(work).map_err(Error::at("cannot start a thread"))
}

/// Gives the calling thread real-time priority and precise timers, if permitted.
fn raise_priority() {
    // Without either, the meter shows late packets.
    let _ = nix::sys::prctl::set_timerslack(1);
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: `priority` is a valid parameter that outlives the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const priority) };
}

/// Two network namespaces with a device each, and the cleanup process.
struct World {
    command_side: Namespace,
    addresses: Addresses,
    devices: Option<[Device; 2]>,
    reaches_host: bool,
    _cleanup: CleanupProcess,
}

impl World {
    fn build(servers: &[OsString], mtu: u16) -> Result<Self, Error> {
        let mut cleanup = CleanupProcess::start().map_err(Error::at("cannot start a process"))?;
        let privileged = geteuid().is_root();
        let reaches_host = privileged && servers.is_empty();
        if !privileged {
            if servers.is_empty() {
                eprintln!(
                    "bentpipe: without root only servers of --listen 'COMMAND' are on the far side; with root (sudo) the network of this host is reachable"
                );
            }
            namespace::become_administrator().map_err(forbidden)?;
        }
        let beyond = if reaches_host { Namespace::current() } else { Namespace::create() };
        let (beyond, command_side) = (beyond.map_err(forbidden)?, Namespace::create().map_err(forbidden)?);
        // Processes in the host's network do not belong to the emulation.
        for network in iter::once(&command_side).chain((!reaches_host).then_some(&beyond)) {
            let registered = network.id().and_then(|network| cleanup.register(network));
            registered.map_err(Error::at("the process that ends programs"))?;
        }
        let (addresses, outer) = outer_device(&beyond, mtu)?;
        let inner =
            command_side.run(|| Device::new(COMMAND_DEVICE, mtu)).and_then(|made| made).map_err(forbidden)?;
        let set_up = |namespace: &Namespace, work: &(dyn Fn() -> Result<(), Error> + Sync)| {
            namespace.run(work).map_err(forbidden)?
        };
        let ipv6 = mtu >= LEAST_MTU_OF_IPV6;
        set_up(&beyond, &|| configure_beyond(&addresses, reaches_host, ipv6))?;
        set_up(&command_side, &|| configure_command_side(&addresses, ipv6))?;
        if reaches_host {
            cleanup.open_host(&addresses)?;
        }
        let devices = ["lo", &addresses.device()];
        let environment = environment(&addresses, Place::Beyond);
        let place = ServerPlace { namespace: &beyond, environment: &environment, devices };
        Servers::start(servers, place)?;
        let devices = Some([inner, outer]);
        Ok(Self { command_side, addresses, devices, reaches_host, _cleanup: cleanup })
    }

    /// Makes the devices: command's side and far host.
    fn take_devices(&mut self) -> [Device; 2] {
        self.devices.take().expect("they are taken once")
    }

    fn start(&mut self, command: &[OsString]) -> Result<Child, Error> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| Error::Request("there is no command to run".into()))?;
        let mut command = Command::new(program);
        command.args(arguments);
        command.envs(environment(&self.addresses, Place::Command));
        let resolver = self.reaches_host.then(names::resolver_configuration).flatten();
        if resolver.as_ref().is_some_and(String::is_empty) {
            eprintln!(
                "bentpipe: names cannot be resolved: /etc/resolv.conf has only name servers on this host"
            );
        }
        let file = resolver.filter(|text| !text.is_empty()).map(|text| temporary(&text)).transpose();
        let file = file.map_err(Error::at("a file for name servers"))?;
        let path = file.as_ref().map(tempfile::NamedTempFile::path);
        children::spawn(command, &self.command_side, Signal::SIGTERM, path)
    }
}

/// Returns the environment variables of programs at `place`: addresses of the far host, of a user-space TCP stack,
/// and of the stack at the other end.
fn environment(addresses: &Addresses, place: Place) -> [(&'static str, String); 5] {
    let other = match place {
        Place::Command => Place::Beyond,
        Place::Beyond => Place::Command,
    };
    let [peer_v4, peer_v6] = addresses.stack(other);
    [
        (HOST_VARIABLE, addresses.host_v4()),
        ("BENTPIPE_HOST6", addresses.host_v6()),
        ("BENTPIPE_ADDRESS", addresses.stacks(place)),
        ("BENTPIPE_PEER", peer_v4),
        ("BENTPIPE_PEER6", peer_v6),
    ]
}

fn temporary(text: &str) -> io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    let file = tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o644)).tempfile()?;
    std::fs::write(file.path(), text)?;
    Ok(file)
}

/// Makes the device at the far end, with the first free number on this machine.
fn outer_device(beyond: &Namespace, mtu: u16) -> Result<(Addresses, Device), Error> {
    for number in 0..=u8::MAX {
        let addresses = Addresses { number };
        match beyond.run(|| Device::new(&addresses.device(), mtu)).and_then(|made| made) {
            Ok(device) => return Ok((addresses, device)),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(forbidden(error)),
        }
    }
    Err(Error::Missing("256 emulations run on this machine already".into()))
}

fn configure_beyond(addresses: &Addresses, reaches_host: bool, ipv6: bool) -> Result<(), Error> {
    let device = addresses.device();
    let mut lines = vec![
        format!("address add {}/30 dev {device}", addresses.host_v4()),
        format!("link set {device} {}", quiet(ipv6)),
        format!("link set {device} up"),
    ];
    if ipv6 {
        lines.push(format!("address add {}/64 dev {device} nodad", addresses.host_v6()));
    }
    let [stacks_v4, _] = addresses.stack_networks(Place::Command);
    lines.push(format!("route add {stacks_v4} dev {device}"));
    if !reaches_host {
        lines.extend(unreachable_routes(addresses, Place::Beyond));
        lines.push("link set lo up".into());
        namespace::open_ports().map_err(Error::at("cannot open ports"))?;
    }
    Ok(ip(&[], &lines)?)
}

/// Returns the settings of a device that sends no solicitations and reports over the path.
fn quiet(ipv6: bool) -> String {
    // Below the MTU of IPv6 the device has no addresses of IPv6, and refuses settings for them.
    let addresses = if ipv6 { "addrgenmode none " } else { "" };
    format!("txqueuelen {KERNEL_QUEUE} {addresses}multicast off")
}

fn configure_command_side(addresses: &Addresses, ipv6: bool) -> Result<(), Error> {
    namespace::open_ports().map_err(Error::at("cannot open ports"))?;
    let mut lines = vec![
        "link set lo up".into(),
        format!("address add {}/30 dev {COMMAND_DEVICE}", addresses.command_v4()),
        format!("link set {COMMAND_DEVICE} {}", quiet(ipv6)),
        format!("link set {COMMAND_DEVICE} up"),
        format!("route add default via {} dev {COMMAND_DEVICE}", addresses.host_v4()),
    ];
    if ipv6 {
        lines.push(format!("address add {}/64 dev {COMMAND_DEVICE} nodad", addresses.command_v6()));
        lines.push(format!("route add default via {} dev {COMMAND_DEVICE}", addresses.host_v6()));
    }
    lines.extend(unreachable_routes(addresses, Place::Command));
    Ok(ip(&[], &lines)?)
}

/// Adds routes that keep packets to networks without a stack from returning over the path.
fn unreachable_routes(addresses: &Addresses, place: Place) -> [String; 2] {
    addresses.stack_networks(place).map(|network| format!("route add unreachable {network}"))
}

/// Adds the probable reason and the remedy to an error of the kernel.
fn forbidden(error: io::Error) -> Error {
    let why = match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM | Errno::EACCES) if geteuid().is_root() => {
            "this machine does not let root make network namespaces and devices; in a container, give it the capabilities \
             SYS_ADMIN and NET_ADMIN and the device /dev/net/tun"
        }
        Some(Errno::EPERM | Errno::EACCES | Errno::ENOSPC | Errno::EUSERS) => {
            "this machine does not let users make user namespaces or open /dev/net/tun; run it as root (sudo), or see \
             user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns in sysctl"
        }
        Some(Errno::ENOENT | Errno::ENODEV) => {
            "there is no /dev/net/tun; load the kernel module: modprobe tun"
        }
        _ => return Error::at("cannot make the emulated network")(error),
    };
    Error::Missing(format!("{why} ({error})"))
}

/// Signals that a descriptor receives instead of ending the process.
struct Signals(SignalFd);

impl Signals {
    fn catch() -> Result<Self, Error> {
        let caught = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD];
        let set: SigSet = caught.into_iter().collect();
        let descriptor = set
            .thread_block()
            .and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC));
        descriptor.map(Self).map_err(|error| Error::at("signals")(error.into()))
    }

    /// Returns the pending signals, and whether a process sent them. Signals of the terminal reach the command
    /// directly.
    fn pending(&self) -> Vec<(i32, bool)> {
        let next = || self.0.read_signal().ok().flatten();
        std::iter::from_fn(next).map(|info| (info.ssi_signo as i32, info.ssi_code <= 0)).collect()
    }
}

/// Waits until the command ends, and forwards signals to it and to its programs. Returns its exit code.
fn wait_for(
    (mut child, network): (Child, NetworkId),
    signals: &Signals,
    mut watch: impl FnMut(),
) -> Result<u8, Error> {
    let failed = || Error::at("cannot wait for the command");
    let process = Pid::from_raw(child.id() as i32);
    let mut asked = 0;
    loop {
        if let Some(status) = child.try_wait().map_err(failed())? {
            return Ok(children::exit_code(status));
        }
        let mut polled = [PollFd::new(signals.0.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, PollTimeout::from(WATCH_EVERY_MS)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(failed()(error.into())),
        }
        for (signal, from_process) in signals.pending() {
            let Ok(signal) = Signal::try_from(signal) else { continue };
            if signal == Signal::SIGCHLD {
                continue;
            }
            asked += u32::from(signal != Signal::SIGINT);
            if from_process || asked > 1 {
                let signal = if asked > 1 { Signal::SIGKILL } else { signal };
                let mut programs = network.processes();
                if !programs.contains(&process) {
                    // The process has moved to another network or ended; the next iteration detects it.
                    programs.push(process);
                }
                processes::send(signal, &programs);
            }
        }
        watch();
    }
}
