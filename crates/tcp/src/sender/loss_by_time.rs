//! Loss detection by RACK (RFC 8985).

use bentpipe_base::{Duration, Instant};

use super::Sender;
use super::rack::AckTiming;
use super::scoreboard::{AgeVerdict, Progress};
use crate::Config;

impl Sender {
    /// Runs RACK for an ACK. Returns the number of newly lost segments.
    pub(super) fn rack_on_ack(
        &mut self,
        progress: &Progress,
        seen: AckTiming,
        dsack: bool,
        config: &Config,
    ) -> (u32, Option<Instant>) {
        let rack = self.rack.get_or_insert_default();
        if progress.newest.is_some() {
            rack.update(progress, seen);
            rack.note_reordering(progress, progress.highest);
        }
        if dsack {
            rack.widen(self.una, self.nxt);
        }
        self.rack_detect(seen.now, config)
    }

    /// Records that a segment marked lost was only late: the path reorders.
    #[cold]
    pub(super) fn note_late_original(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.saw_reordering();
        }
    }

    /// Step 5: segments sent a reordering window or more before the newest delivered one are lost.
    pub(super) fn rack_detect(&mut self, now: Instant, config: &Config) -> (u32, Option<Instant>) {
        let Some(rack) = self.rack.as_deref().copied() else { return (0, None) };
        let Some(rtt) = rack.rtt() else { return (0, None) };
        let wait = rtt + self.reordering_window(config);
        self.board.mark_lost_by_time(|record| {
            if !rack.has_overtaken(record.order) {
                AgeVerdict::Unknown
            } else if now >= record.sent_at + wait {
                AgeVerdict::Lost
            } else {
                AgeVerdict::LostAt(record.sent_at + wait)
            }
        })
    }

    /// Returns the time after its departure when a segment is lost, if a later one has arrived. Before the first delivery, the
    /// handshake's smoothed RTT is used.
    pub(super) fn rack_window(&self, config: &Config) -> Duration {
        let rtt = self.rack.as_ref().and_then(|rack| rack.rtt());
        rtt.unwrap_or(self.rtt.srtt) + self.reordering_window(config)
    }

    fn reordering_window(&self, config: &Config) -> Duration {
        let proven = !self.episode.is_open() || self.board.sacked() >= config.sender.dup_thresh;
        self.rack.as_ref().map_or(Duration::ZERO, |rack| rack.reordering_window(&self.rtt, proven))
    }
}
