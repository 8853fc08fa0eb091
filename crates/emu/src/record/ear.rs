use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

use nix::cmsg_space;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use nix::sys::time::{TimeSpec, TimeValLike};

use super::now_ns;

/// A socket that says when packets came to this machine. A process that was not running then would find out later, of several at
/// once, and take a train that spread over a link for one that did not.
#[derive(Debug)]
pub(super) struct Ear(pub UdpSocket);

/// A packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub len: usize,
    pub from: SocketAddr,
    /// Nanoseconds since 1970, by the kernel.
    pub at_ns: u64,
}

impl Ear {
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        Ok(Self(socket))
    }

    pub fn hear(&self, into: &mut [u8]) -> io::Result<Heard> {
        let mut pieces = [IoSliceMut::new(into)];
        let mut space = cmsg_space!(TimeSpec);
        let flags = MsgFlags::empty();
        let heard = recvmsg::<SockaddrStorage>(self.0.as_raw_fd(), &mut pieces, Some(&mut space), flags)?;
        let stamp = heard.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(at) => u64::try_from(at.num_nanoseconds()).ok(),
            _ => None,
        });
        let from = heard.address.as_ref().and_then(address).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Heard { len: heard.bytes, from, at_ns: stamp.unwrap_or_else(now_ns) })
    }
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|v4| SocketAddr::V4(SocketAddrV4::from(*v4)));
    v4.or_else(|| storage.as_sockaddr_in6().map(|v6| SocketAddr::V6(SocketAddrV6::from(*v6))))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_packet_came_when_it_came_however_late_one_asks() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            // A machine without IPv6 has nothing to show.
            let Ok(socket) = UdpSocket::bind(any) else { continue };
            let ear = Ear::new(socket).unwrap();
            let mouth = UdpSocket::bind(any).unwrap();
            let mut bytes = [0; 8];
            // The kernel needs a moment until it takes the time of packets for a new socket.
            let precise = (0..20).any(|_| {
                let before_ns = now_ns();
                mouth.send_to(&[1, 2, 3], ear.0.local_addr().unwrap()).unwrap();
                let after_ns = now_ns();
                std::thread::sleep(Duration::from_millis(50));
                let heard = ear.hear(&mut bytes).unwrap();
                assert_eq!((heard.len, heard.from), (3, mouth.local_addr().unwrap()));
                // To the loopback device it comes while it is sent.
                (before_ns..=after_ns).contains(&heard.at_ns)
            });
            assert!(precise);
        }
    }
}
