//! The command, and the servers on the far side of the path.

use std::collections::BTreeSet;
use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};

use crate::error::Error;
use crate::namespace::Namespace;

/// Maximum time until a server listens (chosen).
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts `command` in `namespace`. The kernel sends it `signal` if this process dies. The command sees the file
/// `resolver` as `/etc/resolv.conf`.
pub(crate) fn spawn(
    mut command: Command,
    namespace: &Namespace,
    signal: Signal,
    resolver: Option<&Path>,
) -> Result<Child, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = || Error::at(format!("cannot run {program}"));
    let inside = namespace.try_clone().map_err(failed())?;
    let resolver = resolver.map(|path| CString::new(path.as_os_str().as_encoded_bytes())).transpose();
    let resolver = resolver.map_err(|error| failed()(error.into()))?;
    let enter = move || {
        SigSet::empty().thread_set_mask()?;
        prctl::set_pdeathsig(signal)?;
        inside.enter()?;
        if let Some(resolver) = &resolver {
            unshare(CloneFlags::CLONE_NEWNS)?;
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, c"/", None::<&str>, private, None::<&str>)?;
            mount(
                Some(resolver.as_c_str()),
                c"/etc/resolv.conf",
                None::<&str>,
                MsFlags::MS_BIND,
                None::<&str>,
            )?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls and nothing else; it neither allocates nor locks.
    unsafe { command.pre_exec(enter) };
    command.spawn().map_err(|error| cannot_run(&program, error))
}

/// Returns the error for a program that did not start.
pub(crate) fn cannot_run(program: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::Request(format!("{program}: there is no such program")),
        io::ErrorKind::PermissionDenied => Error::Request(format!("{program}: permission denied")),
        _ => Error::at(format!("cannot run {program}"))(error),
    }
}

/// Returns the exit code that a shell would report for this status.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(1)
}

/// Namespace and environment of the servers.
pub(crate) struct ServerPlace<'a> {
    pub namespace: &'a Namespace,
    /// Environment variables.
    pub environment: &'a [(&'static str, String)],
    /// Devices of the namespace before the first server starts.
    pub devices: [&'a str; 2],
}

/// Servers on the far side of the path.
#[derive(Debug, Default)]
pub(crate) struct Servers(Vec<Child>);

impl Servers {
    /// Starts each of the shell commands, and waits until it listens.
    pub fn start(commands: &[OsString], place: ServerPlace) -> Result<(), Error> {
        let ServerPlace { namespace, environment, devices } = place;
        let mut servers = Self::default();
        for command in commands {
            let mut shell = Command::new("sh");
            // In its own process group, Ctrl-C at the terminal does not end the server before the command.
            shell.arg("-c").arg(command).envs(environment.iter().cloned()).process_group(0);
            // The command alone uses standard output.
            let output = io::stderr().as_fd().try_clone_to_owned().map_err(Error::at("standard error"))?;
            shell.stdout(output);
            servers.0.push(spawn(shell, namespace, Signal::SIGKILL, None)?);
            servers.wait_for_last(command, namespace, devices)?;
        }
        Ok(())
    }

    /// Waits until one more socket listens, or one more user-space TCP stack has a device; at most for [`PATIENCE`].
    fn wait_for_last(
        &mut self,
        command: &OsString,
        namespace: &Namespace,
        devices: [&str; 2],
    ) -> Result<(), Error> {
        let name = command.to_string_lossy();
        let wanted = self.0.len();
        let Some(child) = self.0.last_mut() else { return Ok(()) };
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            // The shell of a server that runs in the background exits with success.
            let ended = child.try_wait().map_err(Error::at(name.clone()))?;
            if let Some(status) = ended.filter(|status| !status.success()) {
                return Err(Error::Request(format!("--listen '{name}': ended at once, {status}")));
            }
            let listen = namespace.run(|| listening() + stacks(devices));
            if listen.map_err(Error::at(name.clone()))? >= wanted {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        eprintln!("bentpipe: '{name}' does not listen yet; the emulation continues");
        Ok(())
    }
}

/// Returns the number of listening TCP sockets and bound UDP sockets in the caller's network namespace.
fn listening() -> usize {
    let lines = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    let in_state = |file: &str, state: &str| {
        lines(file).lines().skip(1).filter(|line| line.split_whitespace().nth(3) == Some(state)).count()
    };
    // States TCP_LISTEN and TCP_CLOSE; UDP sockets without a peer have the latter.
    ["tcp", "tcp6"].iter().map(|file| in_state(file, "0A")).sum::<usize>()
        + ["udp", "udp6"].iter().map(|file| in_state(file, "07")).sum::<usize>()
}

/// Returns the number of other devices in the caller's network namespace. Each belongs to a user-space TCP stack,
/// whose sockets are not visible.
fn stacks(devices: [&str; 2]) -> usize {
    let routes = fs::read_to_string("/proc/thread-self/net/route").unwrap_or_default();
    let named = routes.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    // An unreachable route has a star instead of a device.
    let others: BTreeSet<&str> = named.filter(|name| *name != "*" && !devices.contains(name)).collect();
    others.len()
}
