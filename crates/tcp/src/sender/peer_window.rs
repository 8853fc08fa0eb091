//! The receive window of the peer.

use bentpipe_base::Segment;

/// Window as last advertised by the peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerWindow {
    /// Sequence and acknowledgement number of the last update (RFC 9293 SND.WL1, SND.WL2).
    seq: u64,
    ack: u64,
    /// Right edge: the first sequence number that must not be sent.
    pub edge: u64,
    /// Window in bytes. `largest` is the maximum ever advertised.
    pub bytes: u32,
    pub largest: u32,
    /// The window in whole segments.
    pub segments: u32,
}

impl PeerWindow {
    /// Makes the window of a SYN with sequence number `seq` that acknowledges `ack`, for segments of `mss`
    /// bytes.
    pub fn of_handshake(seq: u64, ack: u64, bytes: u32, mss: u32) -> Self {
        Self { seq, ack, edge: ack + u64::from(bytes), bytes, largest: bytes, segments: bytes / mss }
    }

    /// Updates the window from a segment that is newer than the last update.
    #[inline]
    pub fn update(&mut self, segment: &Segment, mss: u32) {
        let newer = self.seq < segment.seq || (self.seq == segment.seq && self.ack <= segment.ack);
        if !newer {
            return;
        }
        if self.bytes != segment.window {
            self.bytes = segment.window;
            self.segments = segment.window / mss;
        }
        self.largest = self.largest.max(segment.window);
        (self.seq, self.ack) = (segment.seq, segment.ack);
        self.edge = segment.ack + u64::from(segment.window);
    }

    pub fn is_closed(&self) -> bool {
        self.bytes == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9293, section 3.10.7.4: an overtaken segment does not restore its old window.
    #[test]
    fn an_older_segment_changes_nothing() {
        let mut peer = PeerWindow::of_handshake(0, 1, 4000, 1000);
        let window = |seq, ack, window| Segment { seq, ack, window, ..Segment::default() };
        peer.update(&window(1, 1001, 2500), 1000);
        assert_eq!((peer.edge, peer.segments, peer.largest), (3501, 2, 4000));
        for older in [window(0, 1001, 9000), window(1, 1000, 9000)] {
            peer.update(&older, 1000);
            assert_eq!((peer.edge, peer.bytes), (3501, 2500));
        }
    }
}
