use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

use nix::cmsg_space;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use nix::sys::time::{TimeSpec, TimeValLike};

use super::now_ns;

/// A socket with the kernel's arrival time of each packet. A process that is not scheduled at the arrival reads
/// several packets at once later, so its own clock cannot measure the dispersion of a packet train.
#[derive(Debug)]
pub(super) struct StampedSocket(pub UdpSocket);

/// A received packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub len: usize,
    pub from: SocketAddr,
    /// Arrival time at the kernel, in nanoseconds since 1970.
    pub at_ns: u64,
}

impl StampedSocket {
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        Ok(Self(socket))
    }

    pub fn receive(&self, into: &mut [u8]) -> io::Result<Received> {
        let mut pieces = [IoSliceMut::new(into)];
        let mut space = cmsg_space!(TimeSpec);
        let flags = MsgFlags::empty();
        let received = recvmsg::<SockaddrStorage>(self.0.as_raw_fd(), &mut pieces, Some(&mut space), flags)?;
        let stamp = received.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(at) => u64::try_from(at.num_nanoseconds()).ok(),
            _ => None,
        });
        let from = received.address.as_ref().and_then(address).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Received { len: received.bytes, from, at_ns: stamp.unwrap_or_else(now_ns) })
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
            // Without IPv6 there is nothing to test.
            let Ok(socket) = UdpSocket::bind(any) else { continue };
            let receiver = StampedSocket::new(socket).unwrap();
            let sender = UdpSocket::bind(any).unwrap();
            let mut bytes = [0; 8];
            // The kernel starts to record arrival times shortly after the socket exists.
            let precise = (0..20).any(|_| {
                let before_ns = now_ns();
                sender.send_to(&[1, 2, 3], receiver.0.local_addr().unwrap()).unwrap();
                let after_ns = now_ns();
                std::thread::sleep(Duration::from_millis(50));
                let received = receiver.receive(&mut bytes).unwrap();
                assert_eq!((received.len, received.from), (3, sender.local_addr().unwrap()));
                // On the loopback device a packet arrives while it is sent.
                (before_ns..=after_ns).contains(&received.at_ns)
            });
            assert!(precise);
        }
    }
}
