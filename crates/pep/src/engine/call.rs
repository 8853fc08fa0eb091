//! One connection of the engine, between its stack and the relay.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_base::{Duration, Instant};
use bentpipe_host::{Id, Stack};
use bentpipe_tcp::Connection;
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown};

use super::thread::Message;
use crate::half::{Answer, Control, Telemetry};
use crate::shared::Inbox;

/// Bytes moved at first, and at most, before it is looked whether there are more: a small message must not take the memory of a large one.
const FIRST_PIECE: usize = 16 << 10;
const LARGEST_PIECE: usize = 256 << 10;
/// Bytes of one direction before the next connection has its turn.
const TURN: usize = 1 << 20;
/// How often it is noted how a connection stands.
const NOTE_INTERVAL: Duration = Duration::from_millis(250);

/// What the relay holds of a connection beside the stream.
pub(crate) struct Standing {
    pub id: Id,
    pub inbox: Arc<Inbox<Message>>,
    pub was_reset: AtomicBool,
    telemetry: Mutex<Telemetry>,
}

impl Control for Standing {
    fn abort(&self) {
        self.inbox.send(Message::Abort(self.id));
    }

    fn was_reset(&self) -> bool {
        self.was_reset.load(Ordering::Acquire)
    }

    fn telemetry(&self) -> Telemetry {
        *self.telemetry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Standing {
    pub fn new(id: Id, inbox: Arc<Inbox<Message>>) -> Self {
        Self { id, inbox, was_reset: AtomicBool::new(false), telemetry: Mutex::default() }
    }
}

/// A connection whose stream the relay has.
pub(crate) struct Stream {
    pub socket: OwnedFd,
    /// The relay may have written something.
    pub readable: bool,
    /// The relay may have made room.
    pub writable: bool,
    /// The relay has ended its direction.
    ended: bool,
    /// The relay knows that the far end has ended its direction.
    passed: bool,
}

/// A connection.
pub(crate) struct Session {
    pub standing: Arc<Standing>,
    /// Until the connection is established.
    pub answer: Option<Answer>,
    /// From then on.
    pub stream: Option<Stream>,
    /// In the list of those that have more to do.
    pub again: bool,
    noted_at: Instant,
    noted_bytes: u64,
}

/// What became of moving bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moved {
    /// Something must happen first.
    Waits,
    /// There is more to do at once.
    GoesOn,
    /// Both directions have ended.
    Over,
    /// The relay is gone.
    Broken,
}

impl Stream {
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket, readable: true, writable: true, ended: false, passed: false }
    }

    /// From the relay to the far end.
    fn send(&mut self, now: Instant, stack: &mut Stack, id: Id) -> Moved {
        let (mut moved, mut piece) = (0, FIRST_PIECE);
        while self.readable && !self.ended {
            if moved >= TURN {
                return Moved::GoesOn;
            }
            let (mut got, mut asked) = (Err(Errno::AGAIN), 0);
            let room = stack.fill(now, id, piece, |pieces| {
                asked = pieces.iter().map(|piece| piece.len()).sum();
                got = rustix::io::readv(&self.socket, pieces);
                got.unwrap_or(0)
            });
            if room.is_none() {
                // The stack says when there is room.
                return Moved::Waits;
            }
            match got {
                Ok(0) => {
                    self.ended = true;
                    stack.close(now, id);
                }
                Ok(bytes) => {
                    moved += bytes;
                    piece = if bytes == asked { (piece * 4).min(LARGEST_PIECE) } else { piece };
                }
                Err(Errno::AGAIN) => self.readable = false,
                Err(Errno::INTR) => {}
                Err(_) => return Moved::Broken,
            }
        }
        Moved::Waits
    }

    /// From the far end to the relay.
    fn receive(&mut self, now: Instant, stack: &mut Stack, id: Id) -> Moved {
        let mut moved = 0;
        while self.writable && !self.passed {
            let Some(connection) = stack.connection(id) else { return Moved::Broken };
            if connection.readable() == 0 {
                if connection.peer_closed() {
                    self.passed = true;
                    // A relay that has closed its end need not know.
                    let _ = rustix::net::shutdown(&self.socket, Shutdown::Write);
                }
                break;
            }
            if moved >= TURN {
                return Moved::GoesOn;
            }
            let mut put = Err(Errno::AGAIN);
            moved += stack.drain(now, id, LARGEST_PIECE, |pieces| {
                put =
                    rustix::net::sendmsg(&self.socket, pieces, &mut Default::default(), SendFlags::NOSIGNAL);
                put.unwrap_or(0)
            });
            match put {
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.writable = false,
                Err(_) => return Moved::Broken,
            }
        }
        Moved::Waits
    }

    /// Moves bytes in both directions.
    pub fn turn(&mut self, now: Instant, stack: &mut Stack, id: Id) -> Moved {
        let both = [self.send(now, stack, id), self.receive(now, stack, id)];
        if both.contains(&Moved::Broken) {
            Moved::Broken
        } else if self.ended && self.passed {
            Moved::Over
        } else if both.contains(&Moved::GoesOn) {
            Moved::GoesOn
        } else {
            Moved::Waits
        }
    }
}

impl Session {
    pub fn new(standing: Standing, answer: Answer) -> Self {
        Self {
            standing: Arc::new(standing),
            answer: Some(answer),
            stream: None,
            again: false,
            noted_at: Instant::ZERO,
            noted_bytes: 0,
        }
    }

    /// Notes how the connection stands, not too often unless it is `over`.
    pub fn note(&mut self, now: Instant, connection: &Connection, over: bool) {
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
        *self.standing.telemetry.lock().unwrap_or_else(PoisonError::into_inner) = Telemetry {
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
