//! Sockets of the proxy, which have addresses of other hosts.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use bentpipe_scenario::deployment::{Side, Split};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use crate::half::{Half, Telemetry};
use crate::keepalive::Keepalive;
use crate::packet::Tuple;
use crate::sight::{Manner, Way};
use crate::slot::Slot;

/// Priority that marks SYNs which are forwarded untouched for the packet filter.
pub(crate) const PASSING: &str = "6270:1";
const PASSING_NUMBER: i32 = 0x6270_0001;
/// First priority for the packet filter of sockets whose SYNs are controlled: one leaves for each SYN of a client.
const ASKING: i32 = 0x6270_0002;
/// Smallest and largest maximum segment size that Linux accepts for a socket (`TCP_MIN_MSS`, `MAX_TCP_WINDOW`).
const MSS: std::ops::RangeInclusive<u16> = 88..=32_767;
/// Connections that may wait to be accepted by a thread (chosen).
const BACKLOG: i32 = 16_384;

/// Ports of the listening sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ports {
    /// Port at 127.0.0.1.
    pub v4: u16,
    /// Port at ::1; none where there is no IPv6.
    pub v6: Option<u16>,
}

/// Listening sockets of one thread. Those of several threads share ports, and the kernel distributes connections among them.
pub(crate) struct Listeners {
    pub sockets: Vec<Socket>,
    pub ports: Ports,
}

impl Listeners {
    /// Opens them at the ports of other threads, or at free ports.
    /// `mark` is that of what they send.
    pub fn open(shared: Option<Ports>, mark: u32) -> io::Result<Self> {
        let (sockets, ports) = listen(shared, mark)?;
        Ok(Self { sockets, ports })
    }
}

/// One socket for each IP version.
fn listen(shared: Option<Ports>, mark: u32) -> io::Result<(Vec<Socket>, Ports)> {
    let v4 = listener((Ipv4Addr::LOCALHOST, shared.map_or(0, |ports| ports.v4)).into(), mark)?;
    let wants_v6 = shared.is_none_or(|ports| ports.v6.is_some());
    let port = shared.and_then(|ports| ports.v6).unwrap_or(0);
    let v6 = wants_v6.then(|| listener((Ipv6Addr::LOCALHOST, port).into(), mark)).transpose();
    // A kernel without IPv6, or with IPv6 switched off.
    let v6 = match v6 {
        Err(error) if lacks_v6(&error) => None,
        other => other?,
    };
    let ports = Ports { v4: port_of(&v4)?, v6: v6.as_ref().map(port_of).transpose()? };
    Ok(([Some(v4), v6].into_iter().flatten().collect(), ports))
}

fn lacks_v6(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL))
}

fn port_of(socket: &Socket) -> io::Result<u16> {
    socket
        .local_addr()?
        .as_socket()
        .map(|address| address.port())
        .ok_or_else(|| io::ErrorKind::Unsupported.into())
}

fn listener(address: SocketAddr, mark: u32) -> io::Result<Socket> {
    let socket = transparent(address)?;
    socket.set_mark(mark)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// A socket that may have any address.
fn transparent(address: SocketAddr) -> io::Result<Socket> {
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    match address {
        SocketAddr::V4(_) => set(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_TRANSPARENT, 1)?,
        SocketAddr::V6(_) => {
            set(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 1)?;
            socket.set_only_v6(true)?;
        }
    }
    // If this process ends, a peer that has not received everything gets a RST instead of a FIN. Accepted sockets inherit this.
    socket.set_linger(Some(Duration::ZERO))?;
    Ok(socket)
}

/// Begins a connection to the server from the client's address.
pub(crate) fn dial(tuple: Tuple, side: &Side, buffer: Option<u64>, manner: Manner) -> io::Result<OwnedFd> {
    let socket = transparent(tuple.server)?;
    prepare(&socket, side, buffer)?;
    mark_class(&socket, tuple.server, manner.dscp)?;
    socket.set_mark(manner.way.mark)?;
    if manner.bound {
        bind_to_interface(&socket, manner.way.out)?;
    }
    if let Some(mss) = manner.mss.filter(|mss| MSS.contains(mss)) {
        set(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_MAXSEG, i32::from(mss))?;
    }
    if let Some(slot) = manner.asks {
        set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY, asking_number(slot))?;
    }
    socket.bind(&tuple.client.into())?;
    match socket.connect(&tuple.server.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(socket.into())
}

fn asking_number(slot: Slot) -> i32 {
    ASKING + i32::from(slot.0)
}

/// The priority of SYNs of which one leaves for each SYN of a client, as the packet filter writes it.
pub(crate) fn asking(slot: Slot) -> String {
    let number = asking_number(slot);
    format!("{:x}:{:x}", number >> 16, number & 0xffff)
}

/// Gives the socket of a half that is established the priority that its code point stands for.
pub(crate) fn stop_asking(socket: &OwnedFd, server: SocketAddr, dscp: u8) -> io::Result<()> {
    let socket = SockRef::from(socket);
    set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY, 0i32)?;
    if dscp != 0 && server.is_ipv4() {
        // Linux chooses the priority when the code point changes.
        socket.set_tos_v4(0)?;
        mark_class(&socket, server, dscp)?;
    }
    Ok(())
}

/// Lets a socket send over the interface of this index only; over any one if it is 0.
fn bind_to_interface(socket: &Socket, index: u32) -> io::Result<()> {
    set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX, index as i32)
}

/// Configures the socket of a half. At most `buffer` bytes wait in it for being sent or acknowledged.
pub(crate) fn prepare(socket: &Socket, side: &Side, buffer: Option<u64>) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    // An urgent byte keeps its position in the stream, but is no longer marked urgent.
    socket.set_out_of_band_inline(true)?;
    if let Some(Keepalive { idle, interval, questions }) = Keepalive::of(side) {
        let keepalive = TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(questions);
        socket.set_tcp_keepalive(&keepalive)?;
    }
    if let Some(name) = side.kernel_cc() {
        socket.set_tcp_congestion(name.as_bytes())?;
    }
    if let Some(limit) = side.rate_limit {
        let bytes_per_s: u64 = limit.rate.bps() / 8;
        set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes_per_s)?;
    }
    if let Some(buffer) = buffer {
        // The kernel doubles this value for its own needs besides payload.
        let bytes = i32::try_from(buffer).unwrap_or(i32::MAX / 2);
        set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes)?;
    }
    Ok(())
}

/// Lets the kernel send by the congestion control of this name over `socket`, and over those that it accepts.
///
/// # Errors
/// Those of the kernel: it has no such algorithm, or this process may not use it.
pub fn choose_congestion_control(socket: impl AsFd, name: &str) -> io::Result<()> {
    SockRef::from(&socket.as_fd()).set_tcp_congestion(name.as_bytes())
}

/// Checks that the kernel has a congestion control and that this process may use it.
pub(crate) fn try_congestion_control(name: &str) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM.cloexec(), Some(Protocol::TCP))?;
    choose_congestion_control(&socket, name)
}

/// Sets TCP_NOTSENT_LOWAT of a half of the kernel to two bandwidth-delay products (measured), so that the sender always has data and
/// stores little more. The kernel bounds sent and unacknowledged data itself.
pub(crate) fn keep_unsent_below(half: &Half, telemetry: &Telemetry, split: &Split, last: &mut u32) {
    let Half::Kernel(socket) = half else { return };
    if telemetry.delivery_rate_bps == 0 {
        return;
    }
    let product = telemetry.delivery_rate_bps as f64 / 8.0 * telemetry.rtt_min.as_secs_f64();
    let bytes = u32::try_from(split.most_unsent(product as u64)).unwrap_or(u32::MAX);
    // The kernel reports the socket as writable each time this is set, so that a connection at rest would count as active.
    if bytes == std::mem::replace(last, bytes) {
        return;
    }
    // A kernel that refuses keeps as much as it likes.
    let _ = set(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes);
}

fn mark_class(socket: &Socket, address: SocketAddr, dscp: u8) -> io::Result<()> {
    if dscp == 0 {
        return Ok(());
    }
    let class = u32::from(dscp) << 2;
    match address {
        SocketAddr::V4(_) => socket.set_tos_v4(class),
        SocketAddr::V6(_) => socket.set_tclass_v6(class),
    }
}

/// A connection that a listening socket has accepted.
pub(crate) struct Accepted {
    pub socket: Socket,
    pub tuple: Tuple,
}

/// The next connection.
pub(crate) fn accept(listener: &Socket) -> io::Result<Accepted> {
    let (socket, client) = listener.accept()?;
    socket.set_nonblocking(true)?;
    let server = socket.local_addr()?;
    let (Some(client), Some(server)) = (client.as_socket(), server.as_socket()) else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let tuple = Tuple { client: plain(client), server: plain(server) };
    Ok(Accepted { socket, tuple })
}

/// The address without flow label and scope, which do not identify connections.
fn plain(address: SocketAddr) -> SocketAddr {
    (address.ip(), address.port()).into()
}

/// Makes a connection end with a RST when its socket is closed.
pub(crate) fn reset(socket: &impl AsFd) {
    // A closed socket needs no RST.
    let _ = SockRef::from(&socket.as_fd()).set_linger(Some(Duration::ZERO));
}

/// Sends a FIN: everything for this peer has been written, and arrives even if the socket is closed now.
pub(crate) fn end(socket: &impl AsFd) {
    let socket = SockRef::from(socket);
    // If the peer is gone, no RST is needed.
    let _ = socket.set_linger(None).and_then(|()| socket.shutdown(Shutdown::Write));
}

/// Sets a socket option that `socket2` does not have.
pub(crate) fn set<T>(socket: RawFd, level: i32, name: i32, value: T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is a plain number that outlives the call, and `length` is its size.
    let done = unsafe { libc::setsockopt(socket, level, name, (&raw const value).cast(), length) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The source address that this machine uses towards `host`, in packets with a mark.
pub(crate) fn address_towards(host: IpAddr, mark: u32) -> io::Result<IpAddr> {
    let any: IpAddr =
        if host.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    SockRef::from(&socket).set_mark(mark)?;
    // Nothing is sent; the port is that of no protocol.
    socket.connect((host, 9))?;
    Ok(socket.local_addr()?.ip())
}

/// Sends whole IP packets with foreign source addresses.
pub(crate) struct RawSender {
    v4: Socket,
    v6: Option<Socket>,
}

impl RawSender {
    pub fn open() -> io::Result<Self> {
        let raw = |domain: Domain| {
            Socket::new(
                domain,
                Type::from(libc::SOCK_RAW).nonblocking().cloexec(),
                Some(Protocol::from(libc::IPPROTO_RAW)),
            )
        };
        let v6 = match raw(Domain::IPV6) {
            Err(error) if lacks_v6(&error) => None,
            other => Some(other?),
        };
        Ok(Self { v4: raw(Domain::IPV4)?, v6 })
    }

    /// Sends with this mark.
    pub fn marked(mark: u32) -> io::Result<Self> {
        let sender = Self::open()?;
        sender.sockets().try_for_each(|socket| socket.set_mark(mark))?;
        Ok(sender)
    }

    /// Sends SYNs that are passed on untouched.
    pub fn passing() -> io::Result<Self> {
        let sender = Self::open()?;
        let set =
            |socket: &Socket| set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY, PASSING_NUMBER);
        sender.sockets().try_for_each(set)?;
        Ok(sender)
    }

    /// Sends SYNs of which one leaves for each SYN of a client.
    pub fn asking(slot: Slot) -> io::Result<Self> {
        let sender = Self::open()?;
        let number = asking_number(slot);
        let set = |socket: &Socket| set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY, number);
        sender.sockets().try_for_each(set)?;
        Ok(sender)
    }

    fn sockets(&self) -> impl Iterator<Item = &Socket> {
        [Some(&self.v4), self.v6.as_ref()].into_iter().flatten()
    }

    fn socket_for(&self, to: SocketAddr) -> io::Result<&Socket> {
        match to {
            SocketAddr::V4(_) => Ok(&self.v4),
            SocketAddr::V6(_) => self.v6.as_ref().ok_or(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sends `packet` to the host at `to`, without a guarantee of delivery.
    pub fn send(&self, packet: &[u8], to: SocketAddr) -> io::Result<()> {
        let address = SockAddr::from(SocketAddr::new(to.ip(), 0));
        self.socket_for(to)?.send_to(packet, &address).map(drop)
    }

    /// Sends `packet` on this way.
    pub fn send_on(&self, way: Way, packet: &[u8], to: SocketAddr) -> io::Result<()> {
        let socket = self.socket_for(to)?;
        socket.set_mark(way.mark)?;
        bind_to_interface(socket, way.out)?;
        self.send(packet, to)
    }
}
