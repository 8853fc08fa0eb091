//! Connections over one UDP socket, in real time.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bentpipe_host::{Interest, Ready};
use bentpipe_quic::Control;
use bytes::BytesMut;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use noq_proto::{
    ClientConfig, ConnectError, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig,
    EndpointEvent, FourTuple, Incoming, ServerConfig, Transmit,
};
use noq_udp::{RecvMeta, UdpSocketState};

use super::certificate::NAME;
use super::live::Live;

/// Buffers for received datagrams. Each has room for all datagrams that the kernel joins.
const BUFFERS: usize = 8;
const BUFFER_BYTES: usize = 1 << 16;
/// Datagrams that leave at once; more would be a burst that a slow link drops.
const MOST_JOINED: usize = 10;
/// Times that datagrams are read before packets are sent again, so that acknowledgements are not delayed.
const READS: usize = 8;
/// Buffer of the socket in the kernel: datagrams that arrive during one turn.
const SOCKET_BUFFER: usize = 4 << 20;

/// A socket with its connections.
pub struct Wire {
    socket: UdpSocket,
    udp: UdpSocketState,
    endpoint: Endpoint,
    pub connections: Vec<(ConnectionHandle, Live)>,
    /// Handshakes that clients began.
    pub incoming: VecDeque<Incoming>,
    /// Datagrams that the socket has not taken.
    unsent: Option<Transmit>,
    send_buffer: Vec<u8>,
    read_buffer: Vec<u8>,
    /// True if a host answered that no program has the port.
    pub is_refused: bool,
}

impl Wire {
    /// Makes the socket of a client of `remote`.
    pub fn client(remote: SocketAddr, mtu: u16) -> io::Result<Self> {
        let any = if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
        socket.connect(remote)?;
        Self::new(socket, None, mtu)
    }

    /// Makes the socket of a server for both IP versions, or for IPv4 on a host without IPv6.
    pub fn server(port: u16, config: Arc<ServerConfig>, mtu: u16) -> io::Result<Self> {
        let socket = match UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)) {
            Err(error) if error.raw_os_error() == Some(Errno::EAFNOSUPPORT as i32) => {
                UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?
            }
            socket => socket?,
        };
        Self::new(socket, Some(config), mtu)
    }

    fn new(socket: UdpSocket, server: Option<Arc<ServerConfig>>, mtu: u16) -> io::Result<Self> {
        let udp = UdpSocketState::new((&socket).into())?;
        // A smaller buffer works, with more losses.
        let _ = udp.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER);
        let _ = udp.set_send_buffer_size((&socket).into(), SOCKET_BUFFER);
        let mut config = EndpointConfig::default();
        config.max_udp_payload_size(mtu).map_err(io::Error::other)?;
        Ok(Self {
            endpoint: Endpoint::new(Arc::new(config), server, !udp.may_fragment()),
            socket,
            udp,
            connections: Vec::new(),
            incoming: VecDeque::new(),
            unsent: None,
            send_buffer: Vec::new(),
            read_buffer: vec![0; BUFFERS * BUFFER_BYTES],
            is_refused: false,
        })
    }

    /// Begins a connection.
    pub fn connect(
        &mut self,
        config: ClientConfig,
        remote: SocketAddr,
        control: Control,
    ) -> Result<(), ConnectError> {
        let (handle, connection) = self.endpoint.connect(Instant::now(), config, remote, NAME)?;
        self.connections.push((handle, Live::new(connection, control, remote)));
        Ok(())
    }

    /// Accepts a handshake with this configuration.
    pub fn accept(&mut self, incoming: Incoming, config: Arc<ServerConfig>, control: Control) {
        let peer = incoming.remote_address();
        let mut buffer = Vec::new();
        match self.endpoint.accept(incoming, Instant::now(), &mut buffer, Some(config)) {
            Ok((handle, connection)) => {
                self.connections.push((handle, Live::new(connection, control, peer)));
            }
            Err(error) => {
                if let Some(answer) = error.response {
                    self.answer(&answer, &buffer);
                }
            }
        }
    }

    /// Refuses a handshake.
    pub fn refuse(&mut self, incoming: Incoming) {
        let mut buffer = Vec::new();
        let answer = self.endpoint.refuse(incoming, &mut buffer);
        self.answer(&answer, &buffer);
    }

    /// Sends a datagram of no connection, if the socket takes it now.
    fn answer(&self, transmit: &Transmit, contents: &[u8]) {
        let _ = self.udp.try_send((&self.socket).into(), &datagram(transmit, contents));
    }

    /// Sends all pending packets, then waits for a datagram, a timer, one of the files, or `at_most`. Then it handles the arrivals.
    pub fn turn(&mut self, at_most: Duration, interest: Interest<'_>) -> io::Result<Ready> {
        self.flush();
        let ready = self.wait(at_most, interest)?;
        self.take()?;
        let now = Instant::now();
        for (_, live) in &mut self.connections {
            live.control.handle_timeout(now, &mut live.connection);
            live.connection.handle_timeout(now);
        }
        self.settle();
        Ok(ready)
    }

    /// Sends all pending packets that the socket takes.
    pub fn flush(&mut self) {
        self.settle();
        for at in 0..self.connections.len() {
            loop {
                if self.unsent.is_none() {
                    self.send_buffer.clear();
                    let most = self.udp.max_gso_segments().min(MOST_JOINED.try_into().expect("above zero"));
                    let live = &mut self.connections[at].1;
                    self.unsent = live.connection.poll_transmit(Instant::now(), most, &mut self.send_buffer);
                }
                let Some(transmit) = &self.unsent else { break };
                let sent = self.udp.try_send((&self.socket).into(), &datagram(transmit, &self.send_buffer));
                match sent {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => self.is_refused = true,
                    // A datagram that the kernel refuses counts as sent. The stack finds its loss.
                    _ => {}
                }
                self.unsent = None;
            }
        }
    }

    /// Handles all events of the stack. Connections that are over leave the list when the caller removes them.
    fn settle(&mut self) {
        let Self { endpoint, connections, .. } = self;
        for (handle, live) in connections {
            while let Some(event) = live.connection.poll_endpoint_events() {
                if let Some(answer) = endpoint.handle_event(*handle, event) {
                    live.connection.handle_event(answer);
                }
            }
            live.handle_events();
        }
    }

    /// Removes a connection, after its last packets have left.
    pub fn remove(&mut self, at: usize) -> Live {
        self.flush();
        let (handle, live) = self.connections.remove(at);
        if !live.connection.is_drained() {
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
        live
    }

    fn wait(&self, at_most: Duration, interest: Interest<'_>) -> io::Result<Ready> {
        let timers = self.connections.iter().flat_map(|(_, live)| {
            [live.connection.poll_timeout(), live.control.timeout()].into_iter().flatten()
        });
        let next = timers.min().map(|at| at.saturating_duration_since(Instant::now()));
        let mut flags = PollFlags::POLLIN;
        flags.set(PollFlags::POLLOUT, self.unsent.is_some());
        let wait = next.map_or(at_most, |next| next.min(at_most));
        interest.wait(PollFd::new(self.socket.as_fd(), flags), wait)
    }

    fn take(&mut self) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.read_buffer);
        let mut result = Ok(());
        for _ in 0..READS {
            let mut meta = [RecvMeta::default(); BUFFERS];
            let mut parts = buffer.chunks_mut(BUFFER_BYTES).map(IoSliceMut::new);
            let mut slices: [_; BUFFERS] =
                std::array::from_fn(|_| parts.next().expect("the buffer has them"));
            let read = match self.udp.recv((&self.socket).into(), &mut slices, &mut meta) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    self.is_refused = true;
                    continue;
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            };
            for (meta, bytes) in meta.iter().zip(buffer.chunks(BUFFER_BYTES)).take(read) {
                for datagram in bytes[..meta.len].chunks(meta.stride.max(1)) {
                    self.handle(meta, datagram);
                }
            }
        }
        self.read_buffer = buffer;
        result
    }

    fn handle(&mut self, meta: &RecvMeta, datagram: &[u8]) {
        let ecn = meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
        let path = FourTuple::new(meta.addr, meta.dst_ip);
        let mut answer = Vec::new();
        match self.endpoint.handle(Instant::now(), path, ecn, BytesMut::from(datagram), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((_, live)) = self.connections.iter_mut().find(|(known, _)| *known == handle) {
                    live.connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.incoming.push_back(incoming),
            Some(DatagramEvent::Response(response)) => self.answer(&response, &answer),
            None => {}
        }
    }
}

/// Returns what the socket sends.
fn datagram<'a>(transmit: &Transmit, contents: &'a [u8]) -> noq_udp::Transmit<'a> {
    noq_udp::Transmit {
        destination: transmit.destination,
        ecn: transmit.ecn.and_then(|ecn| noq_udp::EcnCodepoint::from_bits(ecn as u8)),
        contents: &contents[..transmit.size],
        segment_size: transmit.segment_size,
        src_ip: transmit.src_ip,
    }
}
