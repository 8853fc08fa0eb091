//! How large a packet the path takes: what routers say (RFC 1191, RFC 8201), and what their silence says (RFC 4821).

/// Largest packet to a peer, in bytes with IP header.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathLimit {
    mtu: u16,
    /// Timeouts in a row without progress.
    timeouts: u32,
    progress: u64,
}

/// Timeouts in a row before large packets are suspected to be what does not get through.
const SUSPICION: u32 = 2;
/// What nearly every path takes, tunnels included (RFC 8899 section 5.1.2), and what every path must.
const LADDER_V4: [u16; 2] = [1240, 576];
const LADDER_V6: [u16; 1] = [1280];
/// A router that says less than this lies, or lives in another century.
const LEAST_V4: u16 = 552;

impl PathLimit {
    pub const fn new(mtu: u16) -> Self {
        Self { mtu, timeouts: 0, progress: 0 }
    }

    /// Payload bytes that fit behind headers of so many bytes.
    pub fn room(&self, headers: usize) -> u32 {
        u32::from(self.mtu).saturating_sub(headers as u32).max(32)
    }

    /// Everything below `progress` is acknowledged.
    pub fn note_progress(&mut self, progress: u64) {
        if progress > self.progress {
            self.progress = progress;
            self.timeouts = 0;
        }
    }

    /// A retransmission timer expired.
    pub fn note_timeout(&mut self, is_v6: bool) {
        self.timeouts += 1;
        let ladder: &[u16] = if is_v6 { &LADDER_V6 } else { &LADDER_V4 };
        if self.timeouts.is_multiple_of(SUSPICION)
            && let Some(next) = ladder.iter().find(|next| **next < self.mtu)
        {
            self.mtu = *next;
        }
    }

    /// A router says how much it can forward.
    pub fn learn(&mut self, mtu: u32, is_v6: bool) {
        let least = if is_v6 { LADDER_V6[0] } else { LEAST_V4 };
        let mtu = u16::try_from(mtu).unwrap_or(u16::MAX).max(least);
        self.mtu = self.mtu.min(mtu);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_makes_packets_smaller_and_progress_keeps_them() {
        let mut limit = PathLimit::new(1500);
        limit.note_timeout(false);
        limit.note_progress(1000);
        limit.note_timeout(false);
        assert_eq!(limit.room(52), 1448, "one timeout is a loss like any other");
        limit.note_timeout(false);
        assert_eq!(limit.room(52), 1188);
        limit.note_timeout(false);
        limit.note_timeout(false);
        assert_eq!(limit.room(52), 524);
        (0..10).for_each(|_| limit.note_timeout(false));
        assert_eq!(limit.room(52), 524);
    }

    #[test]
    fn routers_can_lower_the_limit_within_reason() {
        let mut limit = PathLimit::new(1500);
        limit.learn(1400, false);
        limit.learn(9000, false);
        assert_eq!(limit.room(52), 1348);
        limit.learn(68, false);
        assert_eq!(limit.room(52), 500);
        let mut limit = PathLimit::new(1500);
        limit.learn(500, true);
        assert_eq!(limit.room(72), 1208);
    }
}
