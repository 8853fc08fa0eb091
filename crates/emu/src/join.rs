//! A further command in the place of the command of a running emulation.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sched::{CloneFlags, setns};
use nix::unistd::{Pid, chroot, fchdir};

use crate::children::cannot_run;
use crate::error::Error;
use crate::processes::{self, NetworkId};
use crate::session::{COMMAND_DEVICE, HOST_VARIABLE, refuse_nesting};

/// Start of the variables that tell a program of its emulation.
const VARIABLES: &[u8] = b"BENTPIPE_";

/// The first process of the command of a running emulation.
struct Running {
    process: Pid,
    /// Process of the emulation, its parent.
    emulation: Pid,
    /// Its variables that begin with [`VARIABLES`].
    variables: Vec<(OsString, OsString)>,
}

/// Replaces the calling process by `command` in the network of a running emulation: that of the process `emulation`, or the only
/// one. The command ends with the emulation at the latest.
///
/// # Errors
/// The reason why the command did not start: no such emulation, several of them, no rights, or no such program.
pub fn join(emulation: Option<u32>, command: &[OsString]) -> Result<std::convert::Infallible, Error> {
    refuse_nesting()?;
    let all = running();
    let wanted: Vec<&Running> = all
        .iter()
        .filter(|one| emulation.is_none_or(|wanted| i64::from(wanted) == i64::from(one.emulation.as_raw())))
        .collect();
    let one = match wanted.as_slice() {
        [one] => *one,
        several => return Err(Error::Request(refusal(several.len(), emulation, &all))),
    };
    let (program, arguments) =
        command.split_first().ok_or_else(|| Error::Request("there is no command to run".into()))?;
    enter(one.process).map_err(Error::at(format!("cannot enter the emulation {}", one.emulation)))?;
    let failed = Command::new(program).args(arguments).envs(one.variables.iter().cloned()).exec();
    Err(cannot_run(&program.to_string_lossy(), failed))
}

fn refusal(found: usize, wanted: Option<u32>, all: &[Running]) -> String {
    let found = match (found, wanted) {
        (0, Some(process)) => format!("no emulation with the process number {process}"),
        (0, None) => "no running emulation".to_owned(),
        (several, _) => format!("{several} running emulations"),
    };
    let accepted = match all {
        [] => "one that this user may enter; begin it with `bentpipe emulate SCENARIO -- COMMAND`".to_owned(),
        all => all.iter().map(|one| format!("--join {}", one.emulation)).collect::<Vec<_>>().join(", "),
    };
    format!("--join: found {found}, accepted: {accepted}")
}

/// Returns the command of each running emulation that this user may look into.
fn running() -> Vec<Running> {
    let mut all: Vec<Running> = processes::all().filter_map(command_of_emulation).collect();
    all.sort_by_key(|one| one.emulation);
    all
}

/// Returns the process if it is in the network of an emulated command and its parent is not.
fn command_of_emulation(process: Pid) -> Option<Running> {
    let read = |file: &str| fs::read(format!("/proc/{process}/{file}")).ok();
    let environment = read("environ")?;
    let variables: Vec<_> = environment
        .split(|byte| *byte == 0)
        .filter(|variable| variable.starts_with(VARIABLES))
        .filter_map(|variable| {
            let at = variable.iter().position(|byte| *byte == b'=')?;
            let text = |part: &[u8]| OsStr::from_bytes(part).to_owned();
            Some((text(&variable[..at]), text(&variable[at + 1..])))
        })
        .collect();
    let devices = String::from_utf8(read("net/dev")?).ok()?;
    let device = |line: &str| line.trim_start().starts_with(&format!("{COMMAND_DEVICE}:"));
    // Programs that set up the network have none of the variables, but perhaps others with the same beginning.
    let is_told = variables.iter().any(|(name, _)| name == HOST_VARIABLE);
    if !is_told || !devices.lines().any(device) {
        return None;
    }
    let status = String::from_utf8(read("status")?).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
    let emulation = Pid::from_raw(parent);
    let outside = NetworkId::of(emulation) != NetworkId::of(process);
    outside.then_some(Running { process, emulation, variables })
}

/// Moves this process, which has one thread, into the user, network and mount namespaces of `process`.
fn enter(process: Pid) -> io::Result<()> {
    let open = |of: &str, name: &str| File::open(format!("/proc/{of}/{name}"));
    let process = process.to_string();
    let (root, folder) = (open(&process, "root")?, std::env::current_dir()?);
    let all = ["ns/user", "ns/net", "ns/mnt"]
        .map(|name| Ok::<_, io::Error>((open("self", name)?, open(&process, name)?)));
    let mut entered = false;
    for pair in all {
        let (own, its) = pair?;
        // Entering one's own user namespace is an error.
        entered = own.metadata()?.ino() != its.metadata()?.ino();
        if entered {
            setns(its.as_fd(), CloneFlags::empty())?;
        }
    }
    // A process that enters a mount namespace is at its root folder, even if `process` has another one by `chroot`.
    if entered {
        fchdir(root.as_fd())?;
        chroot(".")?;
        std::env::set_current_dir(folder)?;
    }
    Ok(())
}
