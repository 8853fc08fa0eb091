//! One end of a connection: the stack, its streams, and the data in them.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;

use bentpipe_base::{Instant, Rng};
use bentpipe_transports::datagram::{Datagram, DatagramEnd};
use bentpipe_transports::{Fragment, Message, Progress};
use bytes::{Bytes, BytesMut};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, FourTuple, PathId,
    StreamEvent, StreamId,
};

use crate::clock::{from_stack, span, to_stack};
use crate::config::{Config, Side};
use crate::random::{endpoint_config, id};

/// Address of the server. The simulator routes packets itself, so all flows use the same addresses.
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);
/// Address of the client.
const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 50_000);

/// Payload of all streams.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// One end of a connection.
pub struct End {
    side: Side,
    endpoint: Endpoint,
    client: ClientConfig,
    rng: Rng,
    live: Option<(ConnectionHandle, Box<Connection>)>,
    /// Messages that are not written completely, in the order of their streams.
    outbox: VecDeque<(Message, Option<StreamId>)>,
    /// Streams that are not acknowledged completely.
    unfinished: u64,
    deliveries: VecDeque<Fragment>,
    next_timeout: Instant,
    /// Datagrams that the endpoint sends itself.
    responses: VecDeque<Datagram>,
    progress: Progress,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("End").field("side", &self.side).finish_non_exhaustive()
    }
}

impl End {
    /// Makes an end. A client connects with its first message.
    pub fn new(side: Side, config: &Config) -> Self {
        let seed = Rng::stream(config.seed, if side == Side::Client { "client" } else { "server" }).bits();
        let server = (side == Side::Server).then(|| Arc::new(config.server()));
        Self {
            side,
            endpoint: Endpoint::new(Arc::new(endpoint_config(seed, config.payload)), server, true),
            client: config.client(),
            rng: Rng::stream(seed, "quic.connections"),
            live: None,
            outbox: VecDeque::new(),
            unfinished: 0,
            deliveries: VecDeque::new(),
            next_timeout: Instant::FAR_FUTURE,
            responses: VecDeque::new(),
            progress: Progress::default(),
            buffer: Vec::new(),
        }
    }

    fn connect(&mut self, now: Instant) {
        let mut config = self.client.clone();
        let id = id(&mut self.rng);
        config.initial_dst_cid_provider(Arc::new(move || id));
        match self.endpoint.connect(to_stack(now), config, SERVER, "server") {
            Ok((handle, connection)) => self.live = Some((handle, Box::new(connection))),
            Err(_) => self.progress.failed = Some("cannot connect"),
        }
    }

    /// Handles all events of the stack, writes and reads.
    fn settle(&mut self, now: Instant) {
        loop {
            let Some((handle, connection)) = &mut self.live else { break };
            if let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
                continue;
            }
            let Some(event) = connection.poll() else { break };
            self.react(event);
        }
        self.write_streams();
        self.note_timeout(now);
    }

    fn react(&mut self, event: Event) {
        match event {
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = self.live.as_mut().and_then(|(_, live)| live.streams().accept(dir)) {
                    self.read(id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(id),
            Event::Stream(StreamEvent::Finished { .. }) => self.unfinished -= 1,
            Event::ConnectionLost { reason } => {
                self.progress.failed = Some(match reason {
                    noq_proto::ConnectionError::TimedOut => "timed out",
                    _ => "reset",
                });
            }
            _ => {}
        }
    }

    /// Delivers what a stream has received in order.
    fn read(&mut self, id: StreamId) {
        let Some((_, live)) = &mut self.live else { return };
        let mut stream = live.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let mut bytes = 0;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            bytes += chunk.bytes.len();
        }
        // The answer says whether a frame waits; the caller asks for packets anyway.
        let _ = chunks.finalize().should_transmit();
        if bytes > 0 {
            self.deliveries.push_back(Fragment { message: id.index(), stream: 0, bytes: bytes as u32 });
        }
    }

    /// Writes the messages to their streams, as far as the send window has room.
    fn write_streams(&mut self) {
        let Some((_, live)) = &mut self.live else { return };
        while let Some((message, stream)) = self.outbox.front_mut() {
            let opened = stream.or_else(|| live.streams().open(Dir::Uni));
            self.unfinished += u64::from(stream.is_none() && opened.is_some());
            *stream = opened;
            let Some(id) = opened else { return };
            let mut writer = live.send_stream(id);
            while message.bytes > 0 {
                let part = message.bytes.min(ZEROS.len() as u64) as usize;
                let Ok(written) = writer.write_chunks(&mut &mut [Bytes::from_static(&ZEROS[..part])][..])
                else {
                    return;
                };
                message.bytes -= written as u64;
            }
            // Fails only for a stream that the peer has stopped; no end does.
            let _ = writer.finish();
            self.outbox.pop_front();
        }
    }

    fn note_timeout(&mut self, now: Instant) {
        let next = self.live.as_mut().and_then(|(_, live)| live.poll_timeout());
        self.next_timeout = next.map_or(Instant::FAR_FUTURE, |at| from_stack(at).max(now));
    }

    /// Counts the data packets that the stack sent or received since the last call.
    fn counts(&mut self) -> (u64, u64) {
        let stats = self.live.as_mut().and_then(|(_, live)| live.path_stats(PathId::ZERO));
        stats.map_or((0, 0), |stats| (stats.frame_tx.stream, stats.frame_rx.stream))
    }

    fn packed(&mut self, size: usize, is_data: bool) -> Datagram {
        let bytes = self.buffer[..size].into();
        self.buffer.clear();
        Datagram { bytes, is_data }
    }

    fn accept(&mut self, now: Instant, incoming: noq_proto::Incoming) {
        match self.endpoint.accept(incoming, to_stack(now), &mut self.buffer, None) {
            Ok((handle, connection)) => self.live = Some((handle, Box::new(connection))),
            Err(error) => {
                if let Some(response) = error.response {
                    let datagram = self.packed(response.size, false);
                    self.responses.push_back(datagram);
                }
            }
        }
    }
}

impl DatagramEnd for End {
    fn write(&mut self, now: Instant, message: Message) {
        self.outbox.push_back((message, None));
        if self.live.is_none() && self.side == Side::Client {
            self.connect(now);
        }
        self.settle(now);
    }

    fn handle(&mut self, now: Instant, datagram: &Datagram) {
        let (_, before) = self.counts();
        let remote = if self.side == Side::Client { SERVER } else { CLIENT };
        let path = FourTuple::from_remote(remote);
        let bytes = BytesMut::from(&*datagram.bytes);
        self.buffer.clear();
        match self.endpoint.handle(to_stack(now), path, None, bytes, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((_, live)) = self.live.as_mut().filter(|(live, _)| *live == handle) {
                    live.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
            Some(DatagramEvent::Response(response)) => {
                let datagram = self.packed(response.size, false);
                self.responses.push_back(datagram);
            }
            None => {}
        }
        self.settle(now);
        self.progress.fresh_packets += u64::from(self.counts().1 > before);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some((_, live)) = &mut self.live {
            live.handle_timeout(to_stack(now));
        }
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if let Some(response) = self.responses.pop_front() {
            return Some(response);
        }
        let (before, _) = self.counts();
        self.buffer.clear();
        let (_, live) = self.live.as_mut()?;
        let transmit = live.poll_transmit(to_stack(now), NonZeroUsize::MIN, &mut self.buffer);
        let Some(transmit) = transmit else {
            // A wait for the pacer begins here.
            self.settle(now);
            return None;
        };
        let is_data = self.counts().0 > before;
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
        self.deliveries.pop_front()
    }

    fn next_timeout(&self) -> Instant {
        self.next_timeout
    }

    fn progress(&self) -> Progress {
        let srtt = self.live.as_ref().and_then(|(_, live)| live.rtt(PathId::ZERO)).map(span);
        let all_acknowledged = self.outbox.is_empty() && self.unfinished == 0;
        Progress { srtt, all_acknowledged, ..self.progress }
    }
}
