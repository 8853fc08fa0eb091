use std::collections::{BTreeMap, VecDeque};

use bentpipe_base::{Duration, Instant};

use super::Chunk;
use crate::outbox::Fragment;
use crate::ranges::Ranges;
use crate::{Config, Progress};

const SACK_DELAY: Duration = Duration::from_millis(200);
/// Maximum number of gaps in a SACK: more do not fit into a packet of 1500 bytes, and do not occur
/// together.
const SACK_GAPS: usize = 100;

/// Fragments of a stream that wait for earlier ones.
#[derive(Clone, Default, Debug)]
struct Stream {
    next: u64,
    waiting: BTreeMap<u64, Fragment>,
}

/// The receiving end.
#[derive(Clone, Debug)]
pub struct Receiver {
    window: u64,
    /// True after the cookie has returned.
    is_open: bool,
    arrived: Ranges,
    streams: BTreeMap<u8, Stream>,
    delivered: VecDeque<Fragment>,
    out: VecDeque<(u8, Chunk)>,
    /// Data chunks since the last SACK, the time of the next SACK, and its path: that of the last
    /// chunk.
    unacknowledged: u32,
    sack_at: Instant,
    last_port: u8,
    progress: Progress,
}

impl Receiver {
    /// Makes an end that waits for an association.
    pub fn new(config: Config) -> Self {
        Self {
            window: u64::from(config.window),
            is_open: false,
            arrived: Ranges::default(),
            streams: BTreeMap::new(),
            delivered: VecDeque::new(),
            out: VecDeque::new(),
            unacknowledged: 0,
            sack_at: Instant::FAR_FUTURE,
            last_port: 0,
            progress: Progress::default(),
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    pub(crate) fn poll_delivery(&mut self) -> Option<Fragment> {
        self.delivered.pop_front()
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<(u8, Chunk)> {
        let (port, chunk) = self.out.pop_front()?;
        self.progress.control_packets += 1;
        self.progress.control_bytes += u64::from(chunk.bytes());
        Some((port, chunk))
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.sack_at
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.sack_at <= now {
            self.sack();
        }
    }

    pub(crate) fn handle(&mut self, now: Instant, port: u8, chunk: &Chunk) {
        match *chunk {
            Chunk::Init => self.out.push_back((port, Chunk::InitAck)),
            Chunk::CookieEcho => {
                self.is_open = true;
                self.out.push_back((port, Chunk::CookieAck));
            }
            Chunk::Heartbeat { stamp } => self.out.push_back((port, Chunk::HeartbeatAck { echo: stamp })),
            Chunk::Data { tsn, place, fragment } if self.is_open => {
                self.last_port = port;
                let is_fresh = !self.arrived.contains(tsn);
                if is_fresh && tsn < self.arrived.cumulative() + self.window {
                    self.arrived.insert(tsn);
                    self.take(place, fragment);
                }
                self.unacknowledged += 1;
                let has_gap = self.arrived.above().next().is_some();
                if !is_fresh || has_gap || self.unacknowledged >= 2 {
                    self.sack();
                } else {
                    self.sack_at = now + SACK_DELAY;
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, place: Option<u64>, fragment: Fragment) {
        self.progress.fresh_packets += 1;
        let Some(place) = place else { return self.delivered.push_back(fragment) };
        let stream = self.streams.entry(fragment.stream).or_default();
        stream.waiting.insert(place, fragment);
        while let Some(fragment) = stream.waiting.remove(&stream.next) {
            stream.next += 1;
            self.delivered.push_back(fragment);
        }
    }

    fn sack(&mut self) {
        (self.unacknowledged, self.sack_at) = (0, Instant::FAR_FUTURE);
        let held = self.arrived.above().take(SACK_GAPS).collect();
        let (cumulative, window) = (self.arrived.cumulative(), self.window);
        self.out.push_back((self.last_port, Chunk::Sack { cumulative, held, window }));
    }
}
