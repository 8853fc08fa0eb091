//! Data written by the application.

/// Largest sequence number accepted from the wire or for an application.
pub(crate) const MAX_SEQ: u64 = 1 << 62;

/// State of the writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Writer {
    /// Not waiting: its last write fitted.
    Satisfied,
    /// Waiting: its last write was partial, and it is notified of new room.
    Blocked,
    /// Endless: it always has more data, and is not asked.
    Endless,
}

/// The stream of the application, which occupies sequence numbers from 1 on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// Sequence number after the last byte written.
    pub end: u64,
    /// True after the application closed: a FIN follows its data.
    pub finished: bool,
    pub(super) writer: Writer,
}

impl Default for Stream {
    fn default() -> Self {
        Self { end: 1, finished: false, writer: Writer::Satisfied }
    }
}

impl Stream {
    /// Returns the bytes that may be written, if everything from `una` on is kept in a buffer of
    /// `capacity` bytes.
    pub fn room(&self, una: u64, capacity: u64) -> u64 {
        if self.finished {
            return 0;
        }
        capacity.saturating_sub(self.buffered(una.max(1))).min(MAX_SEQ - self.end)
    }

    /// Returns the bytes written and not acknowledged.
    pub fn buffered(&self, una: u64) -> u64 {
        self.end.saturating_sub(una)
    }

    /// Accepts up to `bytes` bytes, limited by `room`; returns their number.
    pub fn write(&mut self, bytes: u64, room: u64) -> u64 {
        let taken = bytes.min(room);
        self.end += taken;
        if self.writer != Writer::Endless {
            self.writer = if taken < bytes { Writer::Blocked } else { Writer::Satisfied };
        }
        taken
    }

    /// Returns the sequence number after the last one to send, the FIN's included, as far as known.
    pub fn end_with_fin(&self) -> u64 {
        self.end + u64::from(self.finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_is_cut_short_blocks_the_writer_and_the_end_leaves_no_room() {
        let mut stream = Stream::default();
        assert_eq!((stream.write(300, 1000), stream.writer), (300, Writer::Satisfied));
        assert_eq!((stream.write(900, stream.room(1, 1000)), stream.writer), (700, Writer::Blocked));
        assert_eq!(stream.room(501, 1000), 500);
        stream.finished = true;
        assert_eq!((stream.room(1001, 1000), stream.end_with_fin()), (0, 1002));
    }
}
