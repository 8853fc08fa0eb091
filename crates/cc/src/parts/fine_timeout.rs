//! Vegas's fine-grained timeout.

use bentpipe_base::{Duration, Instant};

use super::epoch::SMALLEST;
use crate::{Ack, EarlyRetransmit, Path, Sent, Windows};

/// The fine-grained timeout. It retransmits an overdue segment on the first or second duplicate, or on the ACK after a
/// retransmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FineTimeout {
    /// The present timeout.
    pub timeout: Duration,
    /// Number of ACKs after a retransmission that may reveal another loss.
    worried: u32,
    /// Time of the last reduction, and the data sent by then.
    cut_at: Instant,
    cut_nxt: u64,
    /// Segment retransmitted last.
    again: Option<u64>,
    /// True if the previous ACK was a duplicate.
    duplicate: bool,
}

impl FineTimeout {
    pub fn new() -> Self {
        Self {
            timeout: Duration::MAX,
            worried: 0,
            cut_at: Instant::ZERO,
            cut_nxt: 0,
            again: None,
            duplicate: false,
        }
    }

    /// Updates the timeout `17/16 (srtt + 2 rttvar)` at every sample.
    pub fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.duplicate = ack.acked == 0;
        if ack.rtt.is_some() {
            self.timeout = (path.srtt + path.rttvar * 2).mul_f64(17.0 / 16.0);
        }
    }

    pub fn sent(&mut self, sent: &Sent) {
        if sent.retransmission {
            self.again = Some(sent.seq);
        }
    }

    /// True if the oldest outstanding segment was already retransmitted.
    fn is_repeated(&self, path: &Path) -> bool {
        self.again.is_some_and(|seq| seq >= path.snd_una)
    }

    /// Handles a loss detected by duplicates. Returns the new window; it is unchanged if the segment left before the last
    /// cut.
    pub fn lost(&mut self, windows: &Windows, path: &Path) -> f64 {
        let paid = path.snd_una < self.cut_nxt && !self.is_repeated(path);
        let left = if paid { windows.cwnd } else { self.cut(windows, path) };
        self.worry(path);
        left
    }

    /// Returns 3/4 of the window, or half if the retransmission was lost.
    fn cut(&mut self, windows: &Windows, path: &Path) -> f64 {
        let repeated = self.is_repeated(path);
        self.mark_cut(path);
        let usable = windows.cwnd.min(f64::from(path.receive_window));
        match usable {
            ..=3.0 => SMALLEST,
            w if repeated => w / 2.0,
            w => w - w / 4.0,
        }
    }

    /// Records a window reduction: losses of segments already in flight cause no further cut.
    pub fn mark_cut(&mut self, path: &Path) {
        self.cut_at = path.now;
        self.cut_nxt = path.snd_nxt;
    }

    /// Expects further losses after a retransmission on duplicates.
    fn worry(&mut self, path: &Path) {
        self.worried = path.outstanding.min(2);
        let factor = if self.is_repeated(path) { 2.0 } else { 9.0 / 8.0 };
        self.timeout = self.timeout.mul_f64(factor);
    }

    /// Checks after an ACK if the oldest segment must be retransmitted. Cuts the window if the last cut came before the
    /// segment left.
    pub fn early_retransmit(
        &mut self,
        windows: &mut Windows,
        oldest_sent: Instant,
        path: &Path,
    ) -> EarlyRetransmit {
        let expired = path.now.since(oldest_sent) >= self.timeout;
        if self.duplicate && expired {
            if self.cut_at < oldest_sent {
                windows.cwnd = self.cut(windows, path).min(windows.cwnd);
                windows.ssthresh = SMALLEST;
            }
            self.worry(path);
        } else if self.duplicate || self.worried == 0 {
            return EarlyRetransmit::None;
        } else {
            self.worried = if expired { self.worried - 1 } else { 0 };
        }
        if expired { EarlyRetransmit::Oldest } else { EarlyRetransmit::None }
    }
}
