//! Closed form of a window's transmission over an asymmetric link, compared with simulated windows (P. Papadimitriou, V. Tsaoussidis,
//! *Evaluating TCP Mechanisms for Real-Time Streaming over Satellite Links*, equations 1 to 8).

/// Limit of the time between two windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    RoundTrip,
    Data,
    Acks,
}

/// The path, in bits per second, bytes and seconds.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    pub packet_bytes: f64,
    pub ack_bytes: f64,
    pub forward_bps: f64,
    pub back_bps: f64,
    pub delay_one_way_s: f64,
    /// Segments per ACK, and the maximum delay of an ACK.
    pub delayed: Option<(f64, f64)>,
}

impl Rounds {
    /// 5 Mbit/s there, 256 kbit/s back, a quarter of a second each.
    pub fn papers(packet_bytes: f64, ack_bytes: f64) -> Self {
        let (forward_bps, back_bps, delay_one_way_s) = (5e6, 256e3, 0.25);
        Self { packet_bytes, ack_bytes, forward_bps, back_bps, delay_one_way_s, delayed: None }
    }

    /// Equation 1: the data of a window.
    pub fn data_s(&self, window: f64) -> f64 {
        8.0 * self.packet_bytes * window / self.forward_bps
    }

    /// Equations 2 and 8: its ACKs.
    pub fn acks_s(&self, window: f64) -> f64 {
        let acks = self.delayed.map_or(window, |(every, _)| (window / every).ceil());
        8.0 * self.ack_bytes * acks / self.back_bps
    }

    /// Equations 4 and 7: the round trip of a single packet.
    pub fn round_trip_s(&self) -> f64 {
        let ack = 8.0 * self.ack_bytes / self.back_bps;
        let waits = self.delayed.map_or(0.0, |(_, wait)| wait);
        2.0 * self.delay_one_way_s + self.data_s(1.0) + ack + waits
    }

    /// Equation 5: from one window to the next, and by what. The earlier of equals limits.
    pub fn period(&self, window: f64) -> (f64, Bound) {
        let (round_trip, data, acks) = (self.round_trip_s(), self.data_s(window), self.acks_s(window));
        if round_trip >= data.max(acks) {
            (round_trip, Bound::RoundTrip)
        } else if data >= acks {
            (data, Bound::Data)
        } else {
            (acks, Bound::Acks)
        }
    }
}
