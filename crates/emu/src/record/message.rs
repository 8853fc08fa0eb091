//! Probes and their replies.

/// Bytes that a message needs; the rest is padding.
pub(super) const LEN: usize = 64;

/// First bytes of every message: name and version.
const MAGIC: [u8; 4] = *b"BPR1";

/// Kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A single packet, answered at once.
    Probe,
    /// A packet of a train, sent back to back. When the last one arrives, the server answers with as many packets.
    Train {
        /// Number of packets of the train.
        packets: u8,
    },
    /// The answer to a probe.
    Reply,
    /// One of the packets that answer a train.
    Echo {
        /// Its number, from 0.
        index: u8,
        /// Their total number.
        of: u8,
        /// Number of the train's packets from the first arrived one to the last.
        distance: u8,
    },
}

/// A probe or its reply. All times are nanoseconds since 1970 on the sender's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Message {
    pub kind: Kind,
    /// Identifies the run of a client.
    pub session: u64,
    /// Number of the probe, from 0.
    pub number: u32,
    /// Departure of the probe at the client.
    pub sent_ns: u64,
    /// Arrival at the server; in a reply.
    pub received_ns: u64,
    /// Departure of the reply at the server; in a reply.
    pub replied_ns: u64,
    /// In a reply: bit mask of the 64 previous probes that the server received, the latest in the lowest bit. In an
    /// echo: arrival of the train's first packet.
    pub before: u64,
}

impl Message {
    /// Parses a message; `None` if the bytes are not a message.
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

    /// Writes the message to the beginning of `bytes`, which must have at least [`LEN`].
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
