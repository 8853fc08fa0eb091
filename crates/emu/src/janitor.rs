//! A process that takes back what was changed on the host, however the emulation ends.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

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
        let asked = writeln!(self.line, "{}", addresses.number);
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
}

impl Drop for Janitor {
    fn drop(&mut self) {
        // Whoever has gone already needs neither.
        let _ = self.line.shutdown(Shutdown::Both);
        let _ = waitpid(self.process, None);
    }
}

/// The life of the janitor: a request, its answer, and the end of the one who asked.
fn serve(line: UnixStream) -> io::Result<()> {
    let mut reader = BufReader::new(line.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let Ok(number) = request.trim().parse() else { return Ok(()) };
    let addresses = Addresses { number };
    let answer = match host::open(&addresses) {
        Ok(()) => "done".to_owned(),
        Err(Error::Missing(why)) => format!("missing {why}"),
        Err(error) => format!("failed {error}").replace('\n', "; "),
    };
    let told = writeln!(&line, "{answer}");
    if told.is_ok() {
        let _ = reader.read_line(&mut request);
    }
    host::close(&addresses);
    Ok(())
}
