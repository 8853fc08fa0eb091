//! Detection of round trips, by sequence numbers or by the delivered count at transmission. For algorithms and transports.

use crate::Path;

/// A round that ends with the first ACK of data sent after the previous round ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// Next new sequence number at the start of the round.
    mark: u64,
}

impl Round {
    /// True if the ACK just processed ends a round.
    pub fn ends(&mut self, path: &Path) -> bool {
        let over = path.snd_una > self.mark;
        if over {
            self.mark = path.snd_nxt;
        }
        over
    }
}

/// A round that ends when a segment sent after the previous round's end is delivered. It also ends while a hole blocks the
/// cumulative ACK (draft-ietf-ccwg-bbr section 5.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeliveryRound {
    /// Number of ended rounds.
    pub count: u64,
    /// Delivered bytes at the start of the round.
    mark: u64,
}

impl DeliveryRound {
    /// True if `prior_delivered` of the newest delivered segment ends a round. The next round begins with `delivered`.
    pub fn ends(&mut self, prior_delivered: u64, delivered: u64) -> bool {
        let over = prior_delivered >= self.mark;
        if over {
            self.count += 1;
            self.mark = delivered;
        }
        over
    }

    /// Starts a round now, without counting the previous one.
    pub fn restart(&mut self, delivered: u64) {
        self.mark = delivered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_round_of_deliveries_ends_with_a_segment_that_left_in_it() {
        let mut round = DeliveryRound::default();
        assert!(round.ends(0, 1000));
        assert!(!round.ends(999, 2000));
        assert!(round.ends(1000, 2500));
        round.restart(5000);
        assert!(!round.ends(4999, 6000));
        assert_eq!(round.count, 2);
    }

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
