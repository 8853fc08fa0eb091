//! One end of a connection.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Rng, WindowState};
use bentpipe_transports::datagram::{Datagram, DatagramEnd, Reply, Request};
use bentpipe_transports::{Fragment, Message, Progress};
use bytes::{Bytes, BytesMut};
use noq_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId, DatagramEvent, Endpoint,
    EndpointEvent, Event, FourTuple, Incoming, PathId, StreamEvent,
};

use crate::clock::{from_stack, span, to_stack};
use crate::config::{Config, Control, Side};
use crate::control::{Shared, lock};
use crate::random::{endpoint_config, id};
use crate::streams::Streams;
use crate::watched::Seen;

/// Address of the server. The simulator routes packets itself, so all flows use the same addresses.
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);
/// Address of the client.
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 50_000);

/// One end of a connection. A client connects with its first data, and again with new data after a connection has ended.
pub struct End {
    side: Side,
    endpoint: Endpoint,
    client: ClientConfig,
    rng: Rng,
    live: Option<(ConnectionHandle, Box<Connection>)>,
    streams: Streams,
    control: Control,
    seen: Arc<Seen>,
    /// Bytes of the largest datagram.
    payload: usize,
    /// Bytes of a segment in traces.
    segment: u32,
    window: Option<WindowState>,
    next_timeout: Instant,
    /// True if there is nothing to send until the next event.
    is_quiet: bool,
    /// Identifiers in the first packets of all connections. A late copy of such a packet begins no other connection.
    accepted: Vec<ConnectionId>,
    /// Datagrams that the endpoint sends itself.
    responses: VecDeque<Datagram>,
    /// Stream frames sent and received.
    frames: [u64; 2],
    /// Packets lost in former connections.
    lost_before: u64,
    progress: Progress,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("End").field("side", &self.side).finish_non_exhaustive()
    }
}

impl End {
    /// Makes an end.
    pub fn new(side: Side, config: &Config) -> Self {
        let config = &Config { control: config.control.for_another_end(), ..config.clone() };
        let seed = Rng::stream(config.seed, if side == Side::Client { "client" } else { "server" }).bits();
        let seen = Arc::new(Seen::default());
        let server = (side == Side::Server).then(|| Arc::new(config.server(seen.clone())));
        Self {
            side,
            endpoint: Endpoint::new(Arc::new(endpoint_config(seed, config.payload)), server, true),
            client: config.client(seen.clone()),
            rng: Rng::stream(seed, "quic.connections"),
            live: None,
            streams: Streams::default(),
            control: config.control.clone(),
            seen,
            payload: config.payload.into(),
            segment: config.segment,
            window: None,
            next_timeout: Instant::FAR_FUTURE,
            is_quiet: true,
            accepted: Vec::new(),
            responses: VecDeque::new(),
            frames: [0; 2],
            lost_before: 0,
            progress: Progress::default(),
            buffer: Vec::new(),
        }
    }

    fn connect(&mut self, now: Instant) {
        let mut config = self.client.clone();
        let id = id(&mut self.rng);
        config.initial_dst_cid_provider(Arc::new(move || id));
        let made = self.endpoint.connect(to_stack(now), config, SERVER, "server");
        let (handle, connection) = made.expect("address, version and name are valid");
        self.begin(handle, connection);
    }

    /// Replaces the connection.
    fn begin(&mut self, handle: ConnectionHandle, connection: Connection) {
        self.drop_connection();
        self.live = Some((handle, Box::new(connection)));
        self.frames = [0; 2];
    }

    /// Ends the connection and its streams.
    fn drop_connection(&mut self) {
        self.progress.srtt = self.smoothed_rtt().or(self.progress.srtt);
        let Some((handle, mut live)) = self.live.take() else { return };
        self.lost_before += live.path_stats(PathId::ZERO).map_or(0, |stats| stats.lost_packets);
        self.streams.fail();
        if !live.is_drained() {
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
    }

    /// Sends data of the application, over a new connection if there is none.
    fn offer(&mut self, now: Instant) {
        if self.live.is_none() && self.side == Side::Client {
            self.connect(now);
        }
        self.settle();
    }

    /// Handles all events of the stack, then writes.
    fn settle(&mut self) {
        self.is_quiet = false;
        while let Some((handle, live)) = &mut self.live {
            if let Some(event) = live.poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    live.handle_event(answer);
                }
                continue;
            }
            let Some(event) = live.poll() else { break };
            self.react(event);
        }
        if let Some((_, live)) = &mut self.live {
            self.streams.write(live);
        }
    }

    fn react(&mut self, event: Event) {
        let Some((_, live)) = &mut self.live else { return };
        let is_server = self.side == Side::Server;
        match event {
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = live.streams().accept(dir) {
                    self.streams.read(live, id, is_server);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.streams.read(live, id, is_server),
            Event::Stream(StreamEvent::Finished { id }) => self.streams.note_acknowledged(id),
            Event::ConnectionLost { reason } => self.lose(&reason),
            _ => {}
        }
    }

    /// The connection ended. That of a client without pending data ends unnoticed.
    fn lose(&mut self, reason: &ConnectionError) {
        if self.side == Side::Client && !self.streams.are_acknowledged() {
            let timed_out = matches!(reason, ConnectionError::TimedOut);
            self.progress.failed = Some(if timed_out { "timed out" } else { "reset" });
        }
        self.drop_connection();
    }

    /// Returns the algorithm of the present connection, if it is one of Bentpipe's.
    fn algorithm(&self) -> Option<Shared> {
        if let Control::Own(factory) = &self.control { factory.newest() } else { None }
    }

    /// Notes the next timeout and the progress, when there is nothing to send.
    fn rest(&mut self, now: Instant) {
        self.is_quiet = true;
        let next = self.live.as_mut().and_then(|(_, live)| live.poll_timeout());
        let next = next.map_or(Instant::FAR_FUTURE, from_stack);
        self.progress.srtt = self.smoothed_rtt().or(self.progress.srtt);
        self.progress.timeouts = self.seen.timeouts();
        self.progress.all_acknowledged = self.progress.failed.is_none() && self.streams.are_acknowledged();
        let own = self.algorithm().map_or(Instant::FAR_FUTURE, |algorithm| lock(&algorithm).timeout());
        self.next_timeout = next.min(own).max(now);
    }

    /// Returns the stream frames that were sent and received since the last call, and counts losses.
    fn new_frames(&mut self) -> [u64; 2] {
        let stats = self.live.as_mut().and_then(|(_, live)| live.path_stats(PathId::ZERO));
        let now = stats.map_or(self.frames, |stats| [stats.frame_tx.stream, stats.frame_rx.stream]);
        let lost = stats.map_or(0, |stats| stats.lost_packets);
        // A lost packet without data is not among those sent.
        self.progress.repeated_packets = (self.lost_before + lost).min(self.progress.sent_packets);
        let before = std::mem::replace(&mut self.frames, now);
        [now[0].saturating_sub(before[0]), now[1].saturating_sub(before[1])]
    }

    fn packed(&mut self, size: usize, is_data: bool) -> Datagram {
        let mut bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(self.payload));
        bytes.truncate(size);
        Datagram { bytes, is_data }
    }

    fn respond(&mut self, size: usize) {
        let datagram = self.packed(size, false);
        self.responses.push_back(datagram);
    }

    fn accept(&mut self, now: Instant, incoming: Incoming) {
        if self.accepted.contains(&incoming.orig_dst_cid()) {
            return self.endpoint.ignore(incoming);
        }
        self.accepted.push(incoming.orig_dst_cid());
        match self.endpoint.accept(incoming, to_stack(now), &mut self.buffer, None) {
            Ok((handle, connection)) => self.begin(handle, connection),
            Err(error) => {
                if let Some(response) = error.response {
                    self.respond(response.size);
                }
            }
        }
    }

    fn smoothed_rtt(&self) -> Option<Duration> {
        self.live.as_ref().and_then(|(_, live)| live.rtt(PathId::ZERO)).map(span)
    }

    /// Returns the state of the congestion control in segments.
    fn state(&self) -> Option<WindowState> {
        let metrics = self.live.as_ref()?.1.congestion_state(PathId::ZERO)?.metrics();
        let segments = |bytes: u64| bytes as f64 / f64::from(self.segment);
        let own = self.algorithm().map(|algorithm| lock(&algorithm).state());
        let ssthresh = metrics.ssthresh.filter(|bytes| *bytes < u64::MAX).map_or(f64::INFINITY, segments);
        let scale = self.payload as f64 / f64::from(self.segment);
        Some(WindowState {
            cwnd: segments(metrics.congestion_window),
            ssthresh: own.map_or(ssthresh, |own| own.ssthresh * scale),
            pacing_bps: metrics.pacing_rate.unwrap_or(0).saturating_mul(8),
            phase: own.map_or("", |own| own.phase),
        })
    }
}

impl DatagramEnd for End {
    fn write(&mut self, now: Instant, message: Message) {
        self.streams.send(message);
        self.offer(now);
    }

    fn ask(&mut self, now: Instant, request: Request) {
        self.streams.ask(request);
        self.offer(now);
    }

    fn handle(&mut self, now: Instant, datagram: Datagram) {
        let remote = if self.side == Side::Client { SERVER } else { CLIENT };
        let path = FourTuple::from_remote(remote);
        let bytes = BytesMut::from(Bytes::from(datagram.bytes));
        self.buffer.clear();
        match self.endpoint.handle(to_stack(now), path, None, bytes, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((_, live)) = self.live.as_mut().filter(|(live, _)| *live == handle) {
                    live.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
            Some(DatagramEvent::Response(response)) => self.respond(response.size),
            None => {}
        }
        let [_, received] = self.new_frames();
        self.progress.fresh_packets += u64::from(received > 0);
        self.settle();
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some((_, live)) = &mut self.live {
            self.control.handle_timeout(to_stack(now), live);
            live.handle_timeout(to_stack(now));
        }
        self.settle();
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if let Some(response) = self.responses.pop_front() {
            return Some(response);
        }
        if self.is_quiet {
            return None;
        }
        self.buffer.clear();
        let (at, one) = (to_stack(now), NonZeroUsize::MIN);
        let transmit = self.live.as_mut().and_then(|(_, live)| live.poll_transmit(at, one, &mut self.buffer));
        let Some(transmit) = transmit else {
            self.rest(now);
            return None;
        };
        let is_data = self.new_frames()[0] > 0;
        let progress = &mut self.progress;
        if is_data {
            progress.sent_packets += 1;
        } else {
            progress.control_packets += 1;
            progress.control_bytes += transmit.size as u64;
        }
        Some(self.packed(transmit.size, is_data))
    }

    fn poll_delivery(&mut self) -> Option<Fragment> {
        self.streams.deliveries.pop_front()
    }

    fn poll_reply(&mut self) -> Option<Reply> {
        self.streams.replies.pop_front()
    }

    fn next_timeout(&self) -> Instant {
        self.next_timeout
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn take_rtt(&mut self) -> Option<(Duration, Duration)> {
        let sample = self.seen.take_rtt()?;
        self.smoothed_rtt().map(|smoothed| (sample, smoothed))
    }

    fn take_window(&mut self) -> Option<WindowState> {
        let state = self.state().filter(|state| self.window != Some(*state))?;
        self.window = Some(state);
        Some(state)
    }
}
