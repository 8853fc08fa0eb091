//! Advertised window: right edge, reading by the application, auto-tuned receive buffer.

use bentpipe_base::{Duration, Instant};

use super::{AckDue, NEVER_ADVERTISED, Receiver, Tuning};
use crate::{Config, ReceiveWindow};

impl Receiver {
    /// Handles a departing ACK: none is due any more. Returns the window to advertise in bytes.
    pub fn acknowledged(&mut self, config: &Config) -> u32 {
        self.due = AckDue::No;
        self.unreported = 0;
        self.unacked_bytes = 0;
        // A host that only sends repeats the same acknowledgement.
        let again = self.last_ack == self.nxt
            && self.edge == self.read_to.saturating_add(self.buffer)
            && self.advertised != NEVER_ADVERTISED;
        if !again {
            self.last_ack = self.nxt;
            self.advertised = self.advertise(config);
        }
        self.advertised
    }

    /// Advances the right edge, never back, by at least a full segment or half of the buffer (silly window avoidance, RFC 9293
    /// section 3.8.6.2.2).
    fn advertise(&mut self, config: &Config) -> u32 {
        let target = self.read_to.saturating_add(self.buffer);
        let step = u64::from(config.mss).min(self.buffer / 2);
        if target >= self.edge + step {
            self.edge = target;
        }
        let unit = (1_u64 << self.scale) - 1;
        let window = ((self.edge.saturating_sub(self.nxt) + unit) >> self.scale).min(65_535) << self.scale;
        self.grant(window)
    }

    fn grant(&mut self, window: u64) -> u32 {
        self.granted = self.granted.max(self.nxt.max(1) + window);
        self.widest = self.widest.max(window);
        window as u32
    }

    /// Handles a departing SYN-ACK, which acknowledges the peer's SYN.
    pub fn note_acknowledged(&mut self) {
        self.last_ack = self.nxt;
    }

    /// Returns the window of a SYN, which is never scaled.
    pub fn syn_window(&mut self) -> u32 {
        let window = self.buffer.min(65_535);
        self.edge = self.nxt.max(1) + window;
        self.grant(window)
    }

    /// Delivers up to `limit` bytes to the application. Returns true if the window opened enough to inform the peer.
    pub fn read(&mut self, limit: u64, config: &Config) -> (u64, bool) {
        let bytes = self.readable().min(limit);
        self.read_to += bytes;
        let advertised = self.edge.saturating_sub(self.nxt);
        let possible = self.read_to.saturating_add(self.buffer).saturating_sub(self.nxt);
        // A peer whose window was nearly closed is informed at once; others learn it from the next ACK.
        let starved =
            advertised < u64::from(config.mss) && possible >= u64::from(config.mss).min(self.buffer / 2);
        (bytes, bytes > 0 && starved)
    }

    /// Grows an auto-tuned buffer once per round trip.
    pub fn tune(&mut self, now: Instant, rtt: Duration, config: &Config) {
        let ReceiveWindow::Auto { limit, .. } = config.receiver.receive_window else { return };
        if self.buffer >= limit || now.since(self.tuning.since) < rtt {
            return;
        }
        let taken = self.read_to - self.tuning.read_at_since;
        if self.tuning.read_at_since > 0 {
            // Twice the bytes read per round trip allow slow start to double; another factor of two keeps one window in reserve.
            self.buffer = self.buffer.max(taken.saturating_mul(4)).min(limit);
        }
        self.tuning = Tuning { since: now, read_at_since: self.read_to };
    }
}
