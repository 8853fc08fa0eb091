//! Losses found by RACK (RFC 8985).

use bentpipe_base::{Duration, Instant};

use super::Sender;
use super::rack::AckTiming;
use super::scoreboard::{AgeVerdict, Progress};
use crate::Config;

impl Sender {
    /// RACK's part of an ACK. Returns how many segments are newly lost.
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

    /// A segment that was marked lost was only late, so the path reorders.
    #[cold]
    pub(super) fn note_late_original(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.saw_reordering();
        }
    }

    /// Step 5: everything sent a reordering window before the newest delivery is lost.
    pub(super) fn rack_detect(&mut self, now: Instant, config: &Config) -> (u32, Option<Instant>) {
        let Some(rack) = self.rack.as_deref().copied() else { return (0, None) };
        let Some(rtt) = rack.rtt() else { return (0, None) };
        let wait = rtt + self.reordering_window(config);
        self.board.mark_lost_by_time(|sent_at, end| {
            if !rack.has_overtaken(sent_at, end) {
                AgeVerdict::Unknown
            } else if now >= sent_at + wait {
                AgeVerdict::Lost
            } else {
                AgeVerdict::LostAt(sent_at + wait)
            }
        })
    }

    /// How long after its departure a segment is lost if something that left later has arrived. Before anything has, the smoothed round
    /// trip of the handshake stands for that of the newest delivery.
    pub(super) fn rack_window(&self, config: &Config) -> Duration {
        let rtt = self.rack.as_ref().and_then(|rack| rack.rtt());
        rtt.unwrap_or(self.rtt.srtt) + self.reordering_window(config)
    }

    fn reordering_window(&self, config: &Config) -> Duration {
        let proven = !self.episode.is_open() || self.board.sacked() >= config.dup_thresh;
        self.rack.as_ref().map_or(Duration::ZERO, |rack| rack.reordering_window(&self.rtt, proven))
    }
}
