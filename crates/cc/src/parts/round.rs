//! Round trips, told apart by sequence numbers.

use crate::Path;

/// A round ends with the first ACK of something sent after the previous round ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Round {
    /// Next new sequence number when the round began.
    mark: u64,
}

impl Round {
    /// True if the ACK that the path has just taken ends a round.
    pub fn ends(&mut self, path: &Path) -> bool {
        let over = path.snd_una > self.mark;
        if over {
            self.mark = path.snd_nxt;
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_round_lasts_from_a_mark_to_the_first_ack_beyond_it() {
        let mut round = Round::default();
        let mut ack = |snd_una, snd_nxt| round.ends(&Path { snd_una, snd_nxt, ..fixture::path() });
        assert!(ack(1001, 5001), "the first ACK ends the handshake's round");
        assert!(!ack(2001, 6001));
        assert!(!ack(5001, 9001), "all that was outstanding, but nothing sent since");
        assert!(ack(6001, 10_001));
        assert!(!ack(10_001, 14_001));
    }
}
