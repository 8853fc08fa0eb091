//! BBR's core: send at the largest delivery rate of ten round trips, with one bandwidth-delay product or two in flight.

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::{Ack, CongestionControl, Loss, Path, RateSample, RtoAction, Timeout};

use crate::{close, fixture, live};

const ROUNDS: usize = 10;
/// Gains of PROBE_BW, one per round trip.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

struct Bbr {
    rates: [u64; ROUNDS],
    round: usize,
    round_ends: u64,
    bdp: f64,
}

impl Bbr {
    fn bottleneck(&self) -> u64 {
        self.rates.iter().copied().max().unwrap_or(0)
    }
}

impl CongestionControl for Bbr {
    fn window(&self) -> f64 {
        (2.0 * self.bdp).max(4.0)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let gain = CYCLE[self.round % CYCLE.len()];
        Some(Rate::from_bps((self.bottleneck() as f64 * gain) as u64))
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        let Some(sample) = ack.rate else { return };
        if sample.prior_delivered >= self.round_ends {
            self.round_ends = path.delivered;
            self.round += 1;
            self.rates[self.round % ROUNDS] = 0;
        }
        let slot = &mut self.rates[self.round % ROUNDS];
        if !sample.app_limited || sample.rate().bps() > *slot {
            *slot = sample.rate().bps().max(*slot);
        }
        let bytes = Rate::from_bps(self.bottleneck()).bytes_in(path.min_rtt);
        self.bdp = bytes as f64 / f64::from(path.mss);
    }

    fn on_loss(&mut self, _loss: &Loss, _path: &Path) {}

    fn on_rto(&mut self, _timeout: &Timeout, _path: &Path) -> RtoAction {
        self.bdp = 0.0;
        RtoAction::Retransmit { back_off: true }
    }
}

#[test]
fn two_bandwidth_delay_products_at_the_bottleneck_rate() {
    let mut bbr = Bbr { rates: [0; ROUNDS], round: 0, round_ends: 0, bdp: 0.0 };
    for round in 0..20_u64 {
        let sample = RateSample {
            delivered: if round == 15 { 1250 } else { 1000 },
            interval: Duration::from_millis(1),
            prior_delivered: round * 1000,
            app_limited: false,
            tx_in_flight: 10,
            lost: 0,
        };
        let path = Path { delivered: (round + 1) * 1000, ..fixture::path() };
        bbr.on_ack(&Ack { rate: Some(sample), ..fixture::ack(1) }, &path);
    }
    assert!(close(bbr.window(), 2.0 * 687.5));
    assert!(bbr.pacing_rate().unwrap() >= Rate::from_bps(7_500_000));
    live(&mut bbr);
}
