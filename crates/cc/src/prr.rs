//! Proportional rate reduction (RFC 9937), for any transport.
//!
//! The unit of all counts is the transport's choice: segments or bytes.

/// Proportional rate reduction. It spreads a reduction over a round trip. Once the flight is below ssthresh, it repairs no faster
/// than segments leave the network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prr {
    /// Amount in flight just before the detection of the loss (`RecoverFS`).
    flight: u64,
    /// Amount delivered since then (`prr_delivered`).
    delivered: u64,
    /// Amount sent since then (`prr_out`).
    out: u64,
    /// Amount that may leave now (`sndcnt`).
    budget: u64,
}

/// Properties of an ACK for PRR.
#[derive(Clone, Copy, Debug)]
pub struct PrrAck {
    /// Amount newly delivered.
    pub delivered: u64,
    /// True if the ACK advanced and showed no further loss.
    pub safe: bool,
    /// Size of a full segment: 1 if the unit is the segment.
    pub segment: u64,
}

impl Prr {
    /// Begins a recovery with `flight` in flight just before the detection of the loss. `budget` may leave before the next ACK.
    pub fn begin(flight: u64, budget: u64) -> Self {
        Self { flight: flight.max(1), budget, ..Self::default() }
    }

    /// Returns the amount that may leave now.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Handles an ACK, after which `in_flight` is in flight.
    pub fn on_ack(&mut self, ack: PrrAck, in_flight: u64, ssthresh: u64) {
        let PrrAck { delivered, safe, segment } = ack;
        if delivered == 0 {
            return;
        }
        self.delivered += delivered;
        let owed = self.delivered.saturating_sub(self.out);
        self.budget = if in_flight > ssthresh {
            let due = (u128::from(self.delivered) * u128::from(ssthresh)).div_ceil(u128::from(self.flight));
            (due as u64).saturating_sub(self.out)
        } else {
            let growth = if safe { segment } else { 0 };
            (ssthresh - in_flight).min(owed.max(delivered) + growth)
        };
        if self.out == 0 {
            self.budget = self.budget.max(segment);
        }
    }

    /// Handles the departure of `amount`.
    pub fn sent(&mut self, amount: u64) {
        self.out += amount;
        self.budget = self.budget.saturating_sub(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loses one of 20 segments and halves the window. Every ACK of one segment allows half a segment on average.
    fn sent_in_a_round_trip(segment: u64) -> u64 {
        let mut prr = Prr::begin(20 * segment, 0);
        let (mut in_flight, mut sent) = (19 * segment, 0);
        for _ in 0..19 {
            in_flight -= segment;
            prr.on_ack(PrrAck { delivered: segment, safe: true, segment }, in_flight, 10 * segment);
            while prr.budget() >= segment {
                prr.sent(segment);
                in_flight += segment;
                sent += 1;
            }
        }
        sent
    }

    #[test]
    fn a_round_trip_of_acks_sends_the_reduced_window_in_any_unit() {
        assert_eq!(sent_in_a_round_trip(1), 10);
        assert_eq!(sent_in_a_round_trip(1200), 10);
    }

    #[test]
    fn the_first_ack_permits_one_segment() {
        let mut prr = Prr::begin(100, 0);
        prr.on_ack(PrrAck { delivered: 1, safe: false, segment: 1 }, 98, 1);
        assert_eq!(prr.budget(), 1);
    }
}
