//! TUN device that connects this user-space stack with the kernel.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::str::FromStr;

use bentpipe_wire::VIRTIO_HEADER_LEN;
use tun_rs::{DeviceBuilder, SyncDevice};

/// Small network between the kernel and this stack: in `10.105.0.2/30` that is the stack's address, and the kernel has
/// the first other one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// Address of this stack.
    pub own: IpAddr,
    /// Prefix length of the network.
    pub prefix: u8,
}

/// Error for text that is not a [`Network`].
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "found `{0}`, accepted: the address of a host that is neither loopback nor multicast, with the length of its prefix, of a network with \
     at least two hosts: 10.105.0.2/30 or fd62:656e::2/126"
)]
pub struct NoNetwork(String);

/// Reason why the kernel silently drops all packets to an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unreachable {
    /// Loopback addresses are reachable only within the host.
    #[error("packets for a loopback address never reach a device")]
    Loopback,
    /// `0.0.0.0` and `::` stand for any address.
    #[error("no host has that address")]
    Unspecified,
    /// Multicast and broadcast addresses belong to several hosts.
    #[error("TCP goes to one host, not to many")]
    Many,
    /// Link-local addresses are valid only on their link, and this link leads only to the kernel.
    #[error("link-local addresses are not forwarded")]
    LinkLocal,
    /// The address is the stack's own.
    #[error("that is the address of this program")]
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

/// Checks that the kernel forwards or delivers packets to `address` and packets with that source.
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
    /// Checks by its address that `remote` is reachable from this stack.
    ///
    /// # Errors
    /// [`Unreachable`] if the kernel would drop all packets.
    pub fn check_reach(&self, remote: IpAddr) -> Result<(), Unreachable> {
        routable(remote)?;
        if remote == self.own {
            return Err(Unreachable::Own);
        }
        if self.ends().any(|end| end == remote) { Err(Unreachable::Many) } else { Ok(()) }
    }

    /// Returns the first and the last address of an IPv4 network, which belong to no host.
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

    /// Returns the kernel's address: the first host address that is not the stack's.
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
    /// Name of the device; the kernel chooses one if `None`.
    pub name: Option<String>,
    /// Networks, at most one per IP version; empty for a transparent stack.
    pub networks: Vec<Network>,
    /// Maximum packet size in bytes.
    pub mtu: u16,
}

/// Reason why the device is unavailable, with a message for the user about the remedy.
#[derive(Debug, thiserror::Error)]
pub enum NoDevice {
    /// The process lacks the privilege to create network devices.
    #[error(
        "a TUN device needs the privilege to make network devices: run it as root (sudo bentpipe ...), with the capability \
         CAP_NET_ADMIN, or in a network of its own (unshare --map-root-user --net bentpipe ...)"
    )]
    Privilege,
    /// The kernel has no TUN support.
    #[error("there is no /dev/net/tun; load the kernel module (modprobe tun)")]
    NoTun,
    /// The kernel refuses the device, for example because its name or address is in use.
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

/// Queue length of the device in packets (chosen: more than 0.1 s at 1 Gbit/s).
const QUEUE: u32 = 10_000;

/// TUN device with offloads. Dropping it removes the device.
pub struct Device {
    tun: SyncDevice,
}

impl Device {
    /// Creates the device, assigns the kernel's addresses and enables it.
    ///
    /// # Errors
    /// [`NoDevice`] with the reason.
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
            // A user namespace does not permit a longer queue; the default is kept.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            other => other?,
        }
        Ok(Self { tun })
    }

    /// Reads one packet with its virtio header. [`BUFFER`](Self::BUFFER) bytes are always enough.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is no packet.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.tun.recv(into)
    }

    /// Passes a packet with its virtio header to the kernel.
    ///
    /// # Errors
    /// The errors of the kernel: a refused packet is lost.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        self.tun.send(packet).map(|_| ())
    }

    /// Passes a packet in pieces to the kernel; the first piece begins with the virtio header.
    ///
    /// # Errors
    /// The errors of the kernel: a refused packet is lost.
    pub fn write_pieces(&self, packet: &[IoSlice<'_>]) -> io::Result<()> {
        self.tun.send_vectored(packet).map(|_| ())
    }

    /// Bytes of the largest packet with its virtio header.
    pub const BUFFER: usize = VIRTIO_HEADER_LEN + 65_575;
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open while `tun` exists, which the result borrows through `self`.
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
