//! The TUN device through which a stack of our own stands beside the kernel's.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::str::FromStr;

use bentpipe_wire::VIRTIO_HEADER_LEN;
use tun_rs::{DeviceBuilder, SyncDevice};

/// A small network between the kernel and us: `10.105.0.2/30` is our address, and the kernel takes the first other one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// Our address.
    pub own: IpAddr,
    /// Bits that the addresses of the network have in common.
    pub prefix: u8,
}

/// Text that is no [`Network`].
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "found `{0}`, accepted: the address of a host that is neither loopback nor multicast, with the length of its prefix, of a network with \
     at least two hosts: 10.105.0.2/30 or fd62:656e::2/126"
)]
pub struct NoNetwork(String);

/// Why no packet of ours gets to an address: the kernel drops it without a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unreachable {
    /// Only what is sent within the host itself may go there.
    #[error("loopback addresses take nothing from a device")]
    Loopback,
    /// `0.0.0.0` and `::` stand for any address.
    #[error("no host has that address")]
    Unspecified,
    /// Multicast and broadcast addresses belong to many hosts.
    #[error("TCP goes to one host, not to many")]
    Many,
    /// Addresses of one link hold on that link only, and ours leads to the kernel alone.
    #[error("link-local addresses are not forwarded")]
    LinkLocal,
    /// The address is our own.
    #[error("that is our own address")]
    Own,
}

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let parse = || {
            let (own, prefix) = text.split_once('/')?;
            let network = Self { own: own.parse().ok()?, prefix: prefix.parse().ok()? };
            let longest = if network.own.is_ipv4() { 30 } else { 126 };
            let fits =
                (8..=longest).contains(&network.prefix) && network.ends().all(|end| end != network.own);
            (fits && routable(network.own).is_ok()).then_some(network)
        };
        parse().ok_or_else(|| NoNetwork(text.to_owned()))
    }
}

/// Whether packets from a device to `address`, or with that source, are forwarded or delivered at all.
fn routable(address: IpAddr) -> Result<(), Unreachable> {
    let (broadcast, link_local) = match address {
        IpAddr::V4(address) => (address.is_broadcast(), false),
        IpAddr::V6(address) => (false, address.is_unicast_link_local()),
    };
    if address.is_loopback() {
        Err(Unreachable::Loopback)
    } else if address.is_unspecified() {
        Err(Unreachable::Unspecified)
    } else if address.is_multicast() || broadcast {
        Err(Unreachable::Many)
    } else if link_local {
        Err(Unreachable::LinkLocal)
    } else {
        Ok(())
    }
}

impl Network {
    /// Checks that packets of ours can get to `remote`, as far as its address tells.
    ///
    /// # Errors
    /// [`Unreachable`] if the kernel would drop all of them.
    pub fn check_reach(&self, remote: IpAddr) -> Result<(), Unreachable> {
        routable(remote)?;
        if remote == self.own {
            return Err(Unreachable::Own);
        }
        if self.ends().any(|end| end == remote) { Err(Unreachable::Many) } else { Ok(()) }
    }

    /// The first and the last address of an IPv4 network, which belong to no host.
    fn ends(&self) -> impl Iterator<Item = IpAddr> {
        let ends = match self.own {
            IpAddr::V4(own) => {
                let hosts = u32::MAX >> self.prefix;
                let first = own.to_bits() & !hosts;
                Some([first, first | hosts].map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits))))
            }
            IpAddr::V6(_) => None,
        };
        ends.into_iter().flatten()
    }

    /// The kernel's address: the first host of the network that is not us.
    pub fn kernel(&self) -> IpAddr {
        match self.own {
            IpAddr::V4(own) => {
                let first = (own.to_bits() & (u32::MAX << (32 - self.prefix))) + 1;
                let address = if first == own.to_bits() { first + 1 } else { first };
                Ipv4Addr::from_bits(address).into()
            }
            IpAddr::V6(own) => {
                let first = (own.to_bits() & (u128::MAX << (128 - self.prefix))) + 1;
                let address = if first == own.to_bits() { first + 1 } else { first };
                Ipv6Addr::from_bits(address).into()
            }
        }
    }
}

/// Configuration of a device.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// Its name; the kernel chooses one if there is none.
    pub name: Option<String>,
    /// Networks, at most one of each IP version; none if the stack behind it stands for other hosts.
    pub networks: Vec<Network>,
    /// Largest packet in bytes.
    pub mtu: u16,
}

/// Why there is no device, in words for the user: what is missing and how to get it.
#[derive(Debug, thiserror::Error)]
pub enum NoDevice {
    /// This process may not make network devices.
    #[error(
        "a TUN device needs the privilege to make network devices: run it as root (sudo bentpipe ...), with the capability \
         CAP_NET_ADMIN, or in a network of its own (unshare --map-root-user --net bentpipe ...)"
    )]
    Privilege,
    /// The kernel has no TUN.
    #[error("there is no /dev/net/tun; load the kernel module (modprobe tun)")]
    NoTun,
    /// The kernel refuses the device, for example because another one has its name or address.
    #[error("the TUN device cannot be made: {0}")]
    Other(io::Error),
}

impl From<io::Error> for NoDevice {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Privilege,
            io::ErrorKind::NotFound => Self::NoTun,
            _ => Self::Other(error),
        }
    }
}

/// Packets that the kernel queues for us (chosen: more than a tenth of a second of 1 Gbit/s).
const QUEUE: u32 = 10_000;

/// A TUN device with offloads. It disappears when this is dropped.
pub struct Device {
    tun: SyncDevice,
}

impl Device {
    /// Makes the device, gives the kernel its addresses and switches it on.
    ///
    /// # Errors
    /// [`NoDevice`] says what this machine lacks.
    pub fn new(config: &DeviceConfig) -> Result<Self, NoDevice> {
        let mut builder = DeviceBuilder::new().mtu(config.mtu).with(|builder| {
            builder.offload(true);
        });
        if let Some(name) = &config.name {
            builder = builder.name(name);
        }
        for network in &config.networks {
            builder = match network.kernel() {
                IpAddr::V4(address) => builder.ipv4(address, network.prefix, None),
                IpAddr::V6(address) => builder.ipv6(address, network.prefix),
            };
        }
        let tun = builder.build_sync()?;
        tun.set_nonblocking(true)?;
        match tun.set_tx_queue_len(QUEUE) {
            // In a user namespace a queue cannot be lengthened; the usual one will do.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            other => other?,
        }
        Ok(Self { tun })
    }

    /// Reads one packet behind its virtio header. [`BUFFER`](Self::BUFFER) bytes are always enough.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.tun.recv(into)
    }

    /// Hands a packet behind its virtio header to the kernel.
    ///
    /// # Errors
    /// Those of the kernel: a packet that it does not take is lost, like any other.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        self.tun.send(packet).map(|_| ())
    }

    /// Hands a packet in pieces, its virtio header in the first, to the kernel.
    ///
    /// # Errors
    /// Those of the kernel: a packet that it does not take is lost, like any other.
    pub fn write_pieces(&self, packet: &[IoSlice<'_>]) -> io::Result<()> {
        self.tun.send_vectored(packet).map(|_| ())
    }

    /// Bytes of the largest packet with its virtio header.
    pub const BUFFER: usize = VIRTIO_HEADER_LEN + 65_575;
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as `tun`, which the result borrows through `self`.
        unsafe { BorrowedFd::borrow_raw(self.tun.as_raw_fd()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_takes_the_first_other_address() {
        let kernel = |text: &str| text.parse::<Network>().unwrap().kernel().to_string();
        assert_eq!(kernel("10.105.0.2/30"), "10.105.0.1");
        assert_eq!(kernel("10.105.0.1/24"), "10.105.0.2");
        assert_eq!(kernel("fd62:656e::2/126"), "fd62:656e::1");
    }

    #[test]
    fn addresses_that_no_stack_of_ours_can_have_are_refused() {
        let malformed = ["10.0.0.1", "10.0.0.1/31", "x/8", "10.0.0.1/0", "fd62::1/127"];
        let unfit = ["127.0.0.2/30", "::1/126", "0.0.0.0/8", "224.0.0.1/30", "ff02::1/64", "fe80::2/64"];
        let no_host = ["10.105.0.0/30", "10.105.0.3/30", "255.255.255.255/30"];
        for wrong in malformed.iter().chain(&unfit).chain(&no_host) {
            assert!(wrong.parse::<Network>().unwrap_err().to_string().contains(wrong), "{wrong}");
        }
    }

    #[test]
    fn destinations_that_the_kernel_drops_are_known() {
        let check =
            |own: &str, remote: &str| own.parse::<Network>().unwrap().check_reach(remote.parse().unwrap());
        let (four, six) = ("10.105.0.2/30", "fd62:656e::2/126");
        for (own, remote, why) in [
            (four, "127.0.0.1", Unreachable::Loopback),
            (four, "127.9.9.9", Unreachable::Loopback),
            (six, "::1", Unreachable::Loopback),
            (four, "0.0.0.0", Unreachable::Unspecified),
            (six, "::", Unreachable::Unspecified),
            (four, "224.0.0.1", Unreachable::Many),
            (four, "255.255.255.255", Unreachable::Many),
            (four, "10.105.0.3", Unreachable::Many),
            (four, "10.105.0.0", Unreachable::Many),
            (six, "ff02::1", Unreachable::Many),
            (six, "fe80::1", Unreachable::LinkLocal),
            (four, "10.105.0.2", Unreachable::Own),
            (six, "fd62:656e::2", Unreachable::Own),
        ] {
            assert_eq!(check(own, remote), Err(why), "{remote}");
        }
        for (own, remote) in
            [(four, "10.105.0.1"), (four, "192.0.2.1"), (four, "10.105.0.5"), (six, "2001:db8::1")]
        {
            assert_eq!(check(own, remote), Ok(()), "{remote}");
        }
    }
}
