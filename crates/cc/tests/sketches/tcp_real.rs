//! TCP Real: the receiver measures the rate of each wave, the sender follows it (Tsaoussidis, Zhang, 2002).

use bentpipe_base::{Duration, Extension, Instant, Rate, Segment};
use bentpipe_cc::{Ack, CongestionControl, Loss, Path, Reflector, RtoAction, Sent, Timeout, Wants, Windows};

use crate::{close, fixture, live};

/// Headers of a data segment on the wire.
const HEADERS: u32 = 40;
const GAMMA: f64 = 0.125;

struct Real {
    windows: Windows,
    wave: u16,
    wave_first: u64,
    wave_size: u16,
    reference: f64,
    latest: f64,
    grows: bool,
}

impl Real {
    fn drop_of_rate(&self) -> f64 {
        if self.reference > 0.0 { (self.reference - self.latest) / self.reference } else { 0.0 }
    }

    fn next_wave(&mut self, path: &Path) {
        let drop = self.drop_of_rate();
        self.grows = drop <= 0.02;
        if drop > GAMMA {
            self.windows.cwnd = (self.windows.cwnd * (1.0 - GAMMA)).max(2.0);
        }
        self.reference = self.latest;
        self.wave = self.wave.wrapping_add(1);
        self.wave_first = path.snd_nxt;
        self.wave_size = self.windows.cwnd.min(f64::from(path.receive_window)) as u16;
    }
}

impl CongestionControl for Real {
    fn window(&self) -> f64 {
        self.windows.cwnd
    }

    fn wants(&self) -> Wants {
        Wants { feedback: 1, ..Wants::default() }
    }

    fn stamp(&mut self, sent: &Sent, path: &Path) -> Extension {
        let index = (sent.seq.saturating_sub(self.wave_first) / u64::from(path.mss)) as u16;
        Extension::Wave { id: self.wave, size: self.wave_size, index, limited: true }
    }

    fn on_feedback(&mut self, fields: &Extension, _path: &Path) {
        if let Extension::ReceiveRate { rate, valid: true, .. } = fields {
            self.latest = rate.bytes_per_s();
        }
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        if path.snd_una >= self.wave_first {
            self.next_wave(path);
        }
        if self.windows.in_slow_start() {
            self.windows.cwnd += f64::from(ack.acked);
        } else if self.grows {
            self.windows.cwnd += f64::from(ack.acked) / self.windows.cwnd;
        }
    }

    fn on_loss(&mut self, _loss: &Loss, _path: &Path) {
        // A rate that holds says that the loss was an error.
        if self.drop_of_rate() > GAMMA {
            self.windows.ssthresh = (self.windows.cwnd / 2.0).max(2.0);
            self.windows.cwnd = self.windows.ssthresh;
        }
    }

    fn on_rto(&mut self, _timeout: &Timeout, _path: &Path) -> RtoAction {
        self.windows.cwnd = 1.0;
        RtoAction::Retransmit { back_off: self.drop_of_rate() > GAMMA }
    }
}

#[derive(Default)]
struct Receiver {
    id: u16,
    first: Option<(u16, Instant)>,
    last: (u16, Instant),
    arrivals: u32,
    report: Extension,
}

impl Reflector for Receiver {
    fn on_data(&mut self, now: Instant, segment: &Segment, duplicate: bool) {
        let Extension::Wave { id, size, index, .. } = segment.extension else { return };
        if duplicate {
            return;
        }
        if id != self.id {
            *self = Self { id, report: self.report, ..Self::default() };
        }
        let (first, since) = *self.first.get_or_insert((index, now));
        self.last = (index, now);
        self.arrivals += 1;
        if index + 1 == size {
            let bytes = f64::from(index - first) * f64::from(segment.len + HEADERS);
            let rate = Rate::from_bytes_per_s(bytes / now.since(since).as_secs_f64());
            self.report = Extension::ReceiveRate { id, rate, valid: self.arrivals >= 3 };
        }
    }

    fn reply(&mut self, _now: Instant) -> Extension {
        self.report
    }
}

fn real() -> Real {
    let windows = Windows { cwnd: 40.0, ssthresh: 30.0 };
    Real { windows, wave: 0, wave_first: 0, wave_size: 0, reference: 1e5, latest: 1e5, grows: true }
}

#[test]
fn the_receiver_measures_the_span_of_a_wave_not_its_arrivals() {
    let mut receiver = Receiver::default();
    for index in [0, 1, 2, 4, 5, 6, 7_u16] {
        let extension = Extension::Wave { id: 1, size: 8, index, limited: true };
        let now = Instant::ZERO + Duration::from_micros(1664) * u64::from(index);
        receiver.on_data(now, &Segment { len: 1000, extension, ..Segment::default() }, false);
    }
    let Extension::ReceiveRate { rate, valid, .. } = receiver.reply(Instant::ZERO) else {
        panic!("no report")
    };
    assert!(valid && close(rate.bytes_per_s(), 625_000.0));
}

#[test]
fn the_sender_follows_the_rate() {
    for (rate, after) in [(99_000.0, 40.025), (95_000.0, 40.0), (80_000.0, 35.0)] {
        let mut real = real();
        let rate = Rate::from_bytes_per_s(rate);
        real.on_feedback(&Extension::ReceiveRate { id: 1, rate, valid: true }, &fixture::path());
        real.on_ack(&fixture::ack(1), &fixture::path());
        assert!(close(real.window(), after), "{rate}: {}", real.window());
        live(&mut real);
    }
}

#[test]
fn a_loss_at_a_steady_rate_is_an_error() {
    for (rate, after) in [(79_500.0, 35.0), (60_000.0, 17.5)] {
        let mut real =
            Real { windows: Windows { cwnd: 35.0, ssthresh: 30.0 }, reference: 8e4, latest: rate, ..real() };
        real.on_loss(&fixture::loss(35), &fixture::path());
        assert_eq!(real.window(), after);
    }
}
