//! Slots of the proxies in a network namespace: one proxy takes new connections, and an older one may finish those that it has.
//!
//! An abstract socket holds a slot. The name of the socket belongs to the network namespace and is free again when the process ends. All that a
//! proxy installs has names and numbers of its slot, so that two proxies do not disturb each other.

use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use bentpipe_host::{Device, DeviceConfig};
use rustix::net::sockopt::socket_peercred;

use crate::error::Error;
use crate::reverse_path;

/// Most proxies at a time.
pub(crate) const SLOTS: u8 = 2;
/// Message of a newer proxy to an older one.
const FINISH: &[u8] = b"finish\n";
/// Maximum time of an older proxy to stop diverting (chosen).
const PATIENCE: Duration = Duration::from_secs(5);

/// Number of a slot, which is part of the names of its resources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(pub u8);

impl Slot {
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SLOTS).map(Self)
    }

    /// Opens the TUN device that shows that this process lives. Only packets of the probe pass it.
    pub fn open_device(self) -> Result<Device, Error> {
        let name = self.device();
        let config = DeviceConfig { name: Some(name.to_owned()), networks: Vec::new(), mtu: 1500 };
        let device = Device::new(&config).map_err(|error| Error::Missing(error.to_string()))?;
        reverse_path::loosen(name)?;
        Ok(device)
    }

    /// Name of the table of the packet filter.
    pub fn table(self) -> &'static str {
        ["bentpipe-pep", "bentpipe-pep-2"][usize::from(self.0)]
    }

    /// Name of the TUN device that is there while its proxy runs.
    pub fn device(self) -> &'static str {
        ["bp-pep0", "bp-pep1"][usize::from(self.0)]
    }

    fn address(self) -> SocketAddr {
        SocketAddr::from_abstract_name(format!("bentpipe-pep/{}", self.0)).expect("a short name")
    }

    /// The proxy that holds it, if there is one.
    pub fn holder(self) -> Option<UnixStream> {
        UnixStream::connect_addr(&self.address()).ok()
    }
}

/// A slot that is held, and the requests of newer proxies.
pub(crate) struct Held {
    pub slot: Slot,
    /// Newer proxies that take over; each waits until its stream is closed.
    pub requests: Receiver<UnixStream>,
}

/// Holds a free slot. With `take_over` another proxy may run, whose slot is returned.
///
/// # Errors
/// [`Error::Request`] if there is no room beside the others.
pub(crate) fn hold(take_over: bool) -> Result<(Held, Option<Slot>), Error> {
    let others: Vec<(Slot, UnixStream)> =
        Slot::all().filter_map(|slot| Some((slot, slot.holder()?))).collect();
    if let Some((_, other)) = others.first()
        && (!take_over || others.len() >= usize::from(SLOTS))
    {
        let process = socket_peercred(other).map_or(0, |peer| peer.pid.as_raw_nonzero().get());
        let what = if take_over {
            "two proxies run already in this network namespace, of which one finishes its connections: end it, or wait"
        } else {
            "a proxy runs already in this network namespace: end it, or let it finish its connections while this one takes new ones (--take-over)"
        };
        return Err(Error::Request(format!("{what}; it is process {process}")));
    }
    let is_free = |free: &Slot| others.iter().all(|(slot, _)| slot != free);
    let free = Slot::all().find(is_free).expect("others hold fewer");
    let listener = UnixListener::bind_addr(&free.address()).map_err(Error::at("the slot of a proxy"))?;
    let (sender, requests) = channel();
    let listen = move || {
        for stream in listener.incoming().flatten() {
            if says_finish(&stream) && sender.send(stream).is_err() {
                return;
            }
        }
    };
    let failed = Error::at("cannot start a thread");
    thread::Builder::new().name("slot".into()).spawn(listen).map_err(failed)?;
    Ok((Held { slot: free, requests }, others.last().map(|(slot, _)| *slot)))
}

/// True if a newer proxy requests that this one finish. Only root and the user of this process may; a process that only checks if the
/// slot is held sends nothing.
fn says_finish(mut stream: &UnixStream) -> bool {
    let permitted = socket_peercred(stream)
        .is_ok_and(|peer| peer.uid.is_root() || peer.uid.as_raw() == nix::unistd::getuid().as_raw());
    let mut said = [0; FINISH.len()];
    let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
    permitted && stream.read_exact(&mut said).is_ok() && said == *FINISH
}

/// Asks an older proxy to take no more connections. Returns when it has stopped, or if it has ended.
pub(crate) fn take_over(older: Slot) -> io::Result<()> {
    // A new connection: the older proxy waits only a moment for the request.
    let Some(mut older) = older.holder() else { return Ok(()) };
    older.write_all(FINISH)?;
    older.set_read_timeout(Some(PATIENCE))?;
    older.read_exact(&mut [0]).or_else(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Ok(()),
        _ => Err(error),
    })
}
