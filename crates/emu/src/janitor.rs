//! A process that takes back what was changed on the host, and ends the servers that were started, however the emulation ends.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, setsid};

use crate::error::Error;
use crate::host::{self, Addresses};

/// Handle to the janitor: when it goes, even by a crash, the janitor tidies up.
#[derive(Debug)]
pub(crate) struct Janitor {
    line: UnixStream,
    process: Pid,
}

impl Janitor {
    /// Starts it. The calling process must have one thread.
    pub fn start() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        // SAFETY: the process has one thread, so the child finds no lock held by a thread that it does not have.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Self { line: ours, process: child }),
            ForkResult::Child => {
                drop(ours);
                // A session of its own: Ctrl-C at the terminal is not for it.
                let _ = setsid();
                let outcome = serve(theirs);
                // SAFETY: ends the process without the exit handlers of the parent, which are not the child's to run.
                unsafe { libc::_exit(i32::from(outcome.is_err())) }
            }
        }
    }

    /// Opens the way to the network of the host.
    pub fn open_host(&mut self, addresses: &Addresses) -> Result<(), Error> {
        let asked = writeln!(self.line, "{OPEN} {}", addresses.number);
        let mut answer = String::new();
        asked
            .and_then(|()| BufReader::new(&self.line).read_line(&mut answer))
            .map_err(Error::at("the process that opens the way to the host"))?;
        match answer.trim().split_once(' ') {
            Some(("missing", why)) => Err(Error::Missing(why.to_owned())),
            Some((_, why)) => {
                Err(Error::at("no way to the network of this host")(io::Error::other(why.to_owned())))
            }
            None => Ok(()),
        }
    }

    /// Has the process group of a server ended if nobody else can do it any more.
    pub fn mind_server(&mut self, leader: u32) -> io::Result<()> {
        writeln!(self.line, "{SERVER} {leader}")
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        // Whoever has gone already needs none of these.
        let _ = writeln!(self.line, "{ENDED} 0");
        let _ = self.line.shutdown(Shutdown::Both);
        let _ = waitpid(self.process, None);
    }
}

/// What it is told, each with a number: the emulation's to open the way to the host, the leader's of a server's process group, and any when
/// the servers have ended in order.
const OPEN: &str = "open";
const SERVER: &str = "server";
const ENDED: &str = "ended";

/// The life of the janitor: requests, an answer, and the end of the one who asked.
fn serve(line: UnixStream) -> io::Result<()> {
    let (mut opened, mut servers) = (None, Vec::new());
    for request in BufReader::new(line.try_clone()?).lines() {
        // A line that breaks off is an end as well.
        let Ok(request) = request else { break };
        match request.split_once(' ') {
            Some((OPEN, number)) => {
                let Ok(number) = number.parse() else { break };
                let addresses = Addresses { number };
                let answer = match host::open(&addresses) {
                    Ok(()) => "done".to_owned(),
                    Err(Error::Missing(why)) => format!("missing {why}"),
                    Err(error) => format!("failed {error}").replace('\n', "; "),
                };
                opened = Some(addresses);
                if writeln!(&line, "{answer}").is_err() {
                    break;
                }
            }
            Some((SERVER, leader)) => servers.extend(leader.parse::<i32>()),
            _ => servers.clear(),
        }
    }
    for leader in servers {
        // A group that has gone needs no signal.
        let _ = kill(Pid::from_raw(-leader), Signal::SIGKILL);
    }
    if let Some(addresses) = opened {
        host::close(&addresses);
    }
    Ok(())
}
