//! One connection of the engine, between its stack and the socket of the other half.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time;

use bentpipe_base::{Duration, Instant};
use bentpipe_host::{Id, Stack};
use bentpipe_tcp::Connection;
use bentpipe_wire::Ends;
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::bucket::Gate;
use crate::half::{Answer, Carriage, Carried, Control, Ending, Half, HalfRequest, OnEnd, Telemetry};
use crate::last_bytes::{Delivery, LOOK_INTERVAL, LastBytes};
use crate::shared::Inbox;
use crate::sockets;

/// Bytes of the first read of a turn (chosen): a small message must not take the memory of a large one.
const FIRST_PIECE: usize = 16 << 10;
/// Most bytes of one read or write (chosen).
const LARGEST_PIECE: usize = 256 << 10;
/// Bytes of one direction before the next connection has its turn (chosen).
const TURN: usize = 1 << 20;
/// Interval at which the state of a connection is noted for the relay (chosen).
const NOTE_INTERVAL: Duration = Duration::from_millis(250);

/// Messages to a thread.
pub(crate) enum Message {
    /// Opens a connection: by its own SYN, or by answering `syn`.
    Open { request: Box<HalfRequest>, syn: Option<Box<[u8]>>, answer: Answer },
    /// Move the bytes between an established connection and a socket.
    Carry { id: Id, carriage: Carriage },
    /// Reset a connection.
    Abort(Id),
    /// Register all connections with the packet filter again.
    Register,
    /// End the thread.
    Stop,
}

/// The part of a connection that the relay holds as well: it controls the connection by messages and reads its counts.
pub(crate) struct SharedState {
    id: Id,
    inbox: Arc<Inbox<Message>>,
    sent: AtomicU64,
    received: AtomicU64,
    held: AtomicU64,
    telemetry: Mutex<Telemetry>,
}

impl Control for SharedState {
    fn carry(&self, carriage: Carriage) {
        self.inbox.send(Message::Carry { id: self.id, carriage });
    }

    fn abort(&self) {
        self.inbox.send(Message::Abort(self.id));
    }

    fn telemetry(&self) -> Telemetry {
        *self.telemetry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn carried(&self) -> Carried {
        let of = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed);
        Carried { sent: of(&self.sent), received: of(&self.received), held: of(&self.held) }
    }
}

impl SharedState {
    pub fn new(id: Id, inbox: Arc<Inbox<Message>>) -> Self {
        let (sent, received, held) = Default::default();
        Self { id, inbox, sent, received, held, telemetry: Mutex::default() }
    }
}

/// The socket of the other half, whose bytes are moved.
pub(crate) struct Stream {
    pub socket: Arc<OwnedFd>,
    on_end: OnEnd,
    /// True if there may be bytes to read.
    pub readable: bool,
    /// True if there may be room to write.
    pub writable: bool,
    /// Nothing more will be read from the socket.
    ended: bool,
    /// True if the end of the far end's direction was passed on to the socket.
    passed: bool,
    /// True after an error of the socket. Bytes that it received before are still passed on.
    pub socket_reset: bool,
    /// True after an error of the engine's connection. Bytes that arrived before are still passed on.
    pub engine_reset: bool,
    /// Progress with the bytes that arrived before a reset.
    last_bytes: LastBytes,
    /// Shared rates to the far end, and from the far end.
    gates: [Option<Gate>; 2],
    /// Bytes moved from the socket, and into it.
    moved: [u64; 2],
}

/// Stage of a connection.
pub(crate) enum Stage {
    /// The connection is being established.
    Opening(Answer),
    /// The connection is established, and waits for the socket of the other half.
    Waiting,
    /// The connection failed while it waited. Bytes that had arrived before are still passed on.
    Failed,
    /// The bytes of the connection are being moved.
    Carrying(Stream),
}

/// A connection.
pub(crate) struct Session {
    pub shared: Arc<SharedState>,
    /// Addresses and ports; the local ones are those of the host that the engine represents.
    pub ends: Ends,
    pub stage: Stage,
    /// True if the connection is in the list of those with another turn.
    pub again: bool,
    /// Time of its next step, if known.
    pub alarm: Option<time::Instant>,
    noted_at: Instant,
    noted_bytes: u64,
}

/// Result of moving bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moved {
    /// Nothing more can be moved until the socket or the stack is ready.
    Waits,
    /// Another turn follows at once.
    GoesOn,
    /// Another turn follows at this time.
    Until(time::Instant),
    /// Both directions have ended.
    Over,
    /// A half has failed, and nothing more can be passed on to the other one.
    Broken,
}

impl Stream {
    pub fn new(carriage: Carriage) -> Self {
        let Carriage { socket, on_end, reset_after, gates } = carriage;
        Self {
            socket,
            on_end,
            readable: true,
            writable: true,
            ended: false,
            passed: false,
            socket_reset: false,
            engine_reset: false,
            last_bytes: LastBytes::new(time::Instant::now(), reset_after),
            gates,
            moved: [0; 2],
        }
    }

    /// Drops the socket, and reports the end of the connection to the relay.
    pub fn end(self, ending: Ending) {
        let Self { socket, on_end, .. } = self;
        drop(socket);
        on_end(ending);
    }

    /// Moves bytes from the socket to the far end.
    fn send(&mut self, now: Instant, stack: &mut Stack, id: Id) -> Moved {
        let (mut moved, mut piece) = (0, FIRST_PIECE);
        while self.readable && !self.ended && !self.engine_reset {
            if moved >= TURN {
                return Moved::GoesOn;
            }
            let allowed = match self.allowed_to_send(piece) {
                Ok(bytes) => bytes,
                Err(at) => return Moved::Until(at),
            };
            let (mut got, mut asked) = (Err(Errno::AGAIN), 0);
            let room = stack.fill(now, id, allowed, |pieces| {
                asked = pieces.iter().map(|piece| piece.len()).sum();
                got = rustix::io::readv(&self.socket, pieces);
                got.unwrap_or(0)
            });
            if room.is_none() {
                // The stack reports when there is room.
                return Moved::Waits;
            }
            match got {
                Ok(0) => self.end_of_socket(now, stack, id),
                Ok(bytes) => {
                    moved += bytes;
                    self.moved[0] += bytes as u64;
                    note_sent(&mut self.gates[0], bytes);
                    piece = if bytes == asked { (piece * 4).min(LARGEST_PIECE) } else { piece };
                }
                Err(Errno::AGAIN) => self.readable = false,
                Err(Errno::INTR) => {}
                Err(_) => (self.socket_reset, self.ended) = (true, true),
            }
        }
        Moved::Waits
    }

    /// Handles the end of the socket's bytes. A reset is passed on as a reset after them, not as a FIN.
    fn end_of_socket(&mut self, now: Instant, stack: &mut Stack, id: Id) {
        self.ended = true;
        if !self.socket_reset {
            stack.close(now, id);
        }
    }

    /// Bytes that may be read from the socket, at most a `piece`, or when the shared rate allows some.
    fn allowed_to_send(&mut self, piece: usize) -> Result<usize, time::Instant> {
        let Some(gate) = &mut self.gates[0] else { return Ok(piece) };
        // If no bytes wait, a read shows if the stream has ended.
        match rustix::io::ioctl_fionread(&self.socket) {
            Ok(waiting) if waiting > 0 => gate.allow(piece.min(waiting as usize), time::Instant::now()),
            _ => Ok(piece),
        }
    }

    /// Moves bytes from the far end to the socket.
    fn receive(&mut self, now: Instant, stack: &mut Stack, id: Id) -> Moved {
        let mut moved = 0;
        while self.writable && !self.passed && !self.socket_reset {
            let Some(connection) = stack.connection(id) else { return Moved::Broken };
            let readable = connection.readable() as usize;
            if readable == 0 {
                if connection.peer_closed() && !self.engine_reset {
                    self.passed = true;
                    sockets::end(&self.socket);
                }
                break;
            }
            if moved >= TURN {
                return Moved::GoesOn;
            }
            let mut most = LARGEST_PIECE.min(readable);
            if let Some(gate) = &mut self.gates[1] {
                match gate.allow(most, time::Instant::now()) {
                    Ok(bytes) => most = bytes,
                    Err(at) => return Moved::Until(at),
                }
            }
            let mut put = Err(Errno::AGAIN);
            let passed = stack.drain(now, id, most, |pieces| {
                put =
                    rustix::net::sendmsg(&self.socket, pieces, &mut Default::default(), SendFlags::NOSIGNAL);
                put.unwrap_or(0)
            });
            moved += passed;
            self.moved[1] += passed as u64;
            note_sent(&mut self.gates[1], passed);
            match put {
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.writable = false,
                Err(_) => self.socket_reset = true,
            }
        }
        Moved::Waits
    }

    /// Moves bytes in both directions.
    pub fn turn(&mut self, now: Instant, stack: &mut Stack, id: Id) -> Moved {
        let both = [self.send(now, stack, id), self.receive(now, stack, id)];
        let later = both.into_iter().filter_map(|moved| match moved {
            Moved::Until(at) => Some(at),
            _ => None,
        });
        if both.contains(&Moved::Broken) {
            Moved::Broken
        } else if both.contains(&Moved::GoesOn) {
            Moved::GoesOn
        } else if self.socket_reset || self.engine_reset {
            self.pass_reset(stack, id, later.min())
        } else if self.ended && self.passed {
            Moved::Over
        } else {
            later.min().map_or(Moved::Waits, Moved::Until)
        }
    }

    /// After the failure of one half, the other one fails when it has delivered the earlier bytes. The relay waits for the bytes in the
    /// socket.
    fn pass_reset(&mut self, stack: &Stack, id: Id, later: Option<time::Instant>) -> Moved {
        let Some(connection) = stack.connection(id) else { return Moved::Broken };
        let delivery = match (self.socket_reset, self.engine_reset) {
            (true, true) => Delivery::default(),
            (true, false) => Delivery {
                acknowledged: connection.acknowledged_bytes(),
                left: connection.unacknowledged_bytes() + u64::from(!self.ended),
            },
            (false, _) => Delivery { acknowledged: self.moved[1], left: connection.readable() },
        };
        let now = time::Instant::now();
        if self.last_bytes.are_over(delivery, now) {
            return Moved::Broken;
        }
        let look = now + LOOK_INTERVAL;
        Moved::Until(later.map_or(look, |later| later.min(look)))
    }
}

fn note_sent(gate: &mut Option<Gate>, bytes: usize) {
    if let Some(gate) = gate {
        gate.note_sent(bytes, time::Instant::now());
    }
}

impl Session {
    pub fn new(shared: SharedState, ends: Ends, answer: Answer) -> Self {
        Self {
            shared: Arc::new(shared),
            ends,
            stage: Stage::Opening(answer),
            again: false,
            alarm: None,
            noted_at: Instant::ZERO,
            noted_bytes: 0,
        }
    }

    /// Notes that the connection is established, and reports it to the relay once.
    pub fn establish(&mut self) {
        if matches!(self.stage, Stage::Opening(_))
            && let Stage::Opening(answer) = std::mem::replace(&mut self.stage, Stage::Waiting)
        {
            answer(Ok(Half::Engine(Arc::clone(&self.shared) as Arc<dyn Control>)));
        }
    }

    /// Notes the state of the connection for the relay: once in [`NOTE_INTERVAL`], and when it is `over`.
    pub fn note(&mut self, now: Instant, connection: &Connection, over: bool) {
        if let Stage::Carrying(stream) = &self.stage {
            let [sent, received] = stream.moved;
            self.shared.sent.store(sent, Ordering::Relaxed);
            self.shared.received.store(received, Ordering::Relaxed);
            let held = connection.unacknowledged_bytes() + connection.readable();
            self.shared.held.store(held, Ordering::Relaxed);
        }
        let since = now.since(self.noted_at);
        if since < NOTE_INTERVAL && !over {
            return;
        }
        let acked_bytes = connection.acknowledged_bytes();
        let rate = (acked_bytes - self.noted_bytes) as f64 * 8.0 / since.as_secs_f64().max(1e-3);
        (self.noted_at, self.noted_bytes) = (now, acked_bytes);
        let std = |duration: Option<Duration>| {
            std::time::Duration::from_nanos(duration.map_or(0, Duration::as_nanos))
        };
        let stats = connection.stats();
        *self.shared.telemetry.lock().unwrap_or_else(PoisonError::into_inner) = Telemetry {
            srtt: std(connection.srtt()),
            rtt_min: std(connection.min_rtt()),
            cwnd: connection.window_state().cwnd as u32,
            acked_bytes,
            received_bytes: stats.delivered_bytes + connection.readable(),
            retransmitted_segments: stats.retransmitted_segments,
            delivery_rate_bps: rate as u64,
            queued_bytes: connection.unacknowledged_bytes(),
        };
    }
}
