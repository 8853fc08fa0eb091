//! Probes and their replies.

/// Bytes that a message needs; the rest is padding.
pub(super) const LEN: usize = 64;

/// First bytes of every message: name and version.
const MAGIC: [u8; 4] = *b"BPR1";

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// One packet, answered at once.
    Probe,
    /// One of a train of packets sent back to back, answered by as many when the last one arrives.
    Train {
        /// Packets of the train.
        packets: u8,
    },
    /// The answer to a probe.
    Reply,
    /// One of the answers to a train.
    Echo {
        /// Which of them, from 0.
        index: u8,
        /// How many there are.
        of: u8,
        /// Packets of the train from the first that arrived to the last.
        distance: u8,
    },
}

/// A probe or its reply. All times are nanoseconds since 1970 on the sender's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Message {
    pub kind: Kind,
    /// Tells one client's run from another.
    pub session: u64,
    /// Number of the probe, from 0.
    pub number: u32,
    /// When the client sent the probe.
    pub sent_ns: u64,
    /// When the server received it; in a reply.
    pub received_ns: u64,
    /// When the server sent the reply; in a reply.
    pub replied_ns: u64,
    /// In a reply, which of the 64 probes before this one the server has received, the latest in the lowest bit; in an echo, when the first packet
    /// of the train was received.
    pub before: u64,
}

impl Message {
    /// Reads a message; `None` if the bytes are none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LEN] = bytes.first_chunk()?;
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|n| bytes[at + n]));
        let kind = match bytes[4..8] {
            [0, ..] => Kind::Probe,
            [1, packets, ..] if packets > 0 => Kind::Train { packets },
            [2, ..] => Kind::Reply,
            [3, index, of, distance] => Kind::Echo { index, of, distance },
            _ => return None,
        };
        (bytes[..4] == MAGIC).then(|| Self {
            kind,
            number: u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            session: word(16),
            sent_ns: word(24),
            received_ns: word(32),
            replied_ns: word(40),
            before: word(48),
        })
    }

    /// Writes it to the beginning of `bytes`, of which there are at least [`LEN`].
    pub fn write(&self, bytes: &mut [u8]) {
        let kind = match self.kind {
            Kind::Probe => [0, 0, 0, 0],
            Kind::Train { packets } => [1, packets, 0, 0],
            Kind::Reply => [2, 0, 0, 0],
            Kind::Echo { index, of, distance } => [3, index, of, distance],
        };
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&kind);
        bytes[8..12].copy_from_slice(&self.number.to_be_bytes());
        bytes[12..16].fill(0);
        let words = [self.session, self.sent_ns, self.received_ns, self.replied_ns, self.before, 0];
        for (n, word) in words.iter().enumerate() {
            bytes[16 + 8 * n..24 + 8 * n].copy_from_slice(&word.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let echo = Kind::Echo { index: 1, of: 9, distance: 8 };
        for kind in [Kind::Probe, Kind::Train { packets: 9 }, Kind::Reply, echo] {
            let message =
                Message { kind, session: 1, number: 2, sent_ns: 3, received_ns: 4, replied_ns: 5, before: 6 };
            let mut bytes = [7; 100];
            message.write(&mut bytes);
            assert_eq!(Message::read(&bytes), Some(message));
            assert_eq!(Message::read(&bytes[..LEN - 1]), None);
            bytes[0] = 0;
            assert_eq!(Message::read(&bytes), None);
        }
        assert_eq!(Message::read(&[0; LEN]), None);
    }
}
