//! A process that ends the programs of an emulation and restores the host's settings, even after a crash of the
//! emulation.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, setsid};

use crate::error::Error;
use crate::host::{self, Addresses};
use crate::processes::NetworkId;

/// Handle of the cleanup process. The cleanup begins when the handle is dropped or its process dies.
#[derive(Debug)]
pub(crate) struct CleanupProcess {
    socket: UnixStream,
    process: Pid,
}

impl CleanupProcess {
    /// Starts the process. The calling process must have one thread.
    pub fn start() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        // SAFETY: the process has one thread, so no other thread holds a lock that the child needs.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Self { socket: ours, process: child }),
            ForkResult::Child => {
                drop(ours);
                // In its own session the process does not receive the SIGINT of Ctrl-C.
                let _ = setsid();
                let outcome = serve(theirs);
                // SAFETY: ends the child without the parent's exit handlers.
                unsafe { libc::_exit(i32::from(outcome.is_err())) }
            }
        }
    }

    /// Connects the emulation to the network of the host.
    pub fn open_host(&mut self, addresses: &Addresses) -> Result<(), Error> {
        let asked = writeln!(self.socket, "{OPEN} {}", addresses.number);
        let mut answer = String::new();
        asked
            .and_then(|()| BufReader::new(&self.socket).read_line(&mut answer))
            .map_err(Error::at("the process that opens the way to the host"))?;
        match answer.trim().split_once(' ') {
            Some(("missing", why)) => Err(Error::Missing(why.to_owned())),
            Some((_, why)) => {
                Err(Error::at("no way to the network of this host")(io::Error::other(why.to_owned())))
            }
            None => Ok(()),
        }
    }

    /// Registers a network whose processes end with the emulation.
    pub fn register(&mut self, network: NetworkId) -> io::Result<()> {
        writeln!(self.socket, "{NETWORK} {}", network.0)
    }
}

impl Drop for CleanupProcess {
    fn drop(&mut self) {
        // This fails if the process has already ended.
        let _ = self.socket.shutdown(Shutdown::Both);
        let _ = waitpid(self.process, None);
    }
}

/// Request to connect the emulation to the host's network, with the number of the emulation.
const OPEN: &str = "open";
/// Request to register a network, with the number of its [`NetworkId`].
const NETWORK: &str = "network";

/// Serves requests until the emulation has ended, then cleans up.
fn serve(socket: UnixStream) -> io::Result<()> {
    let (mut opened, mut networks) = (None, Vec::new());
    for request in BufReader::new(socket.try_clone()?).lines() {
        // An incomplete line means that the emulation has ended.
        let Ok(request) = request else { break };
        match request.split_once(' ') {
            Some((OPEN, number)) => {
                let Ok(number) = number.parse() else { break };
                let addresses = Addresses { number };
                let answer = match host::open(&addresses) {
                    Ok(()) => {
                        opened = Some(addresses);
                        "done".to_owned()
                    }
                    Err(Error::Missing(why)) => format!("missing {why}"),
                    Err(error) => format!("failed {error}").replace('\n', "; "),
                };
                if writeln!(&socket, "{answer}").is_err() {
                    break;
                }
            }
            Some((NETWORK, number)) => networks.extend(number.parse().map(NetworkId)),
            _ => break,
        }
    }
    networks.into_iter().for_each(NetworkId::end_processes);
    if let Some(addresses) = opened {
        host::close(&addresses);
    }
    Ok(())
}
