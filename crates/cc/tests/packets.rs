//! Every algorithm over a transport that numbers its packets: random events, and a link of known capacity.

#[allow(dead_code)]
#[path = "../examples/packet_transport.rs"]
mod toy;

use bentpipe_base::{Duration, Instant, Notice, Rate};
use bentpipe_cc::packets::{AckInfo, PacketControl, Settings, supported};
use bentpipe_cc::{Algorithm, PathMemory};
use proptest::prelude::*;
use toy::{Link, Sender};

const RTT: Duration = Duration::from_millis(600);
/// Limit of timer events at one instant.
const TOO_MANY_WAKE_UPS: u32 = 10_000;

fn start() -> Instant {
    Instant::ZERO + Duration::from_secs(1)
}

fn control(name: &str, settings: &Settings) -> PacketControl {
    let algorithm = Algorithm::from_name(name).expect("it is registered");
    PacketControl::new(&algorithm, settings).expect("it is supported")
}

/// Sends over a link with a buffer of one bandwidth-delay product. Returns the goodput in Mbit/s.
fn goodput(name: &str, mbps: u64, loss: f64, seconds: u64) -> f64 {
    let rate = Rate::from_mbps(mbps);
    let mut link = Link::new(rate, RTT, rate.bytes_in(RTT));
    link.loss = loss;
    let mut control = control(name, &Settings::default());
    control.established(start(), Some(RTT));
    let mut sender = Sender::new(control);
    sender.run(&mut link, start(), start() + Duration::from_secs(seconds));
    assert_eq!(sender.control.ignored(), 0);
    sender.acked_bytes as f64 * 8.0 / seconds as f64 / 1e6
}

#[test]
fn without_losses_the_link_is_full_and_never_fuller() {
    for name in ["reno", "cubic", "bbr3"] {
        let goodput = goodput(name, 10, 0.0, 120);
        assert!((8.5..=10.0).contains(&goodput), "{name}: {goodput} of 10 Mbit/s");
    }
}

/// Mean rates of the papers for random losses: RFC 3649 section 2 for Reno, RFC 9438 section 5.2 for CUBIC.
#[test]
fn one_percent_of_losses_bounds_laws_of_loss_and_not_a_model() {
    let per_window = 1200.0 * 8.0 / 0.6 / 1e6;
    let reno = per_window * (1.5_f64 / 0.01).sqrt();
    let cubic = per_window * 1.054 * (0.6_f64 / 0.01).powf(0.75);
    for (name, expected) in [("reno", reno), ("cubic", cubic)] {
        let goodput = goodput(name, 10, 0.01, 600);
        assert!(
            (0.6 * expected..1.4 * expected).contains(&goodput),
            "{name}: {goodput}, expected {expected}"
        );
    }
    let goodput = goodput("bbr3", 10, 0.01, 120);
    assert!((7.0..=9.9).contains(&goodput), "bbr3: {goodput}: at most the 99 % that arrive");
}

#[test]
fn every_algorithm_delivers_over_a_lossy_link_in_any_datagram_size() {
    for entry in supported() {
        let mut link = Link::new(Rate::from_mbps(10), RTT, 750_000);
        link.loss = 0.01;
        let mut control =
            control(entry.name, &Settings { memory: Some(PathMemory::new()), ..Settings::default() });
        control.established(start(), Some(RTT));
        let mut sender = Sender::new(control);
        let mut now = start();
        for bytes in [1200, 1452, 9000, 1200, 500] {
            let before = (sender.control.window(), sender.control.pacing_rate());
            let least = bytes.max(sender.datagram);
            sender.control.set_datagram_bytes(bytes);
            sender.datagram = bytes;
            let after = (sender.control.window(), sender.control.pacing_rate());
            let small = sender.control.state().cwnd * 1200.0 < f64::from(least);
            assert!(small || after == before, "{}: {before:?} {after:?}", entry.name);
            let acked = sender.acked_bytes;
            let end = now + Duration::from_secs(60);
            sender.run(&mut link, now, end);
            now = end;
            let mbps = (sender.acked_bytes - acked) as f64 * 8.0 / 60e6;
            assert!((0.02..=10.0).contains(&mbps), "{}: {mbps} Mbit/s with {bytes} bytes", entry.name);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send {
        packets: u8,
        bytes: u16,
    },
    Acknowledge {
        packets: u8,
        from: u8,
        lost_before: bool,
        app_limited: bool,
        marks: u8,
        rtt_ms: Option<u16>,
    },
    Lose {
        packets: u8,
        from: u8,
        persistent: bool,
    },
    Unknown(u64),
    Spurious,
    Datagram(u16),
    Notice(bool),
    Passes {
        ms: u16,
    },
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..40_u8, 1..1500_u16).prop_map(|(packets, bytes)| Step::Send { packets, bytes }),
        6 => (0..40_u8, 0..4_u8, any::<bool>(), any::<bool>(), 0..3_u8, proptest::option::of(0..5000_u16)).prop_map(
            |(packets, from, lost_before, app_limited, marks, rtt_ms)| Step::Acknowledge {
                packets, from, lost_before, app_limited, marks, rtt_ms
            }
        ),
        2 => (1..40_u8, 0..4_u8, any::<bool>())
            .prop_map(|(packets, from, persistent)| Step::Lose { packets, from, persistent }),
        1 => any::<u64>().prop_map(Step::Unknown),
        1 => Just(Step::Spurious),
        1 => (1..9000_u16).prop_map(Step::Datagram),
        1 => any::<bool>().prop_map(Step::Notice),
        4 => (0..5000_u16).prop_map(|ms| Step::Passes { ms }),
        1 => Just(Step::Close),
    ]
}

/// A transport that does anything, also what none would do.
struct Storm {
    control: PacketControl,
    name: &'static str,
    now: Instant,
    in_flight: Vec<u64>,
    next: u64,
    datagram: u32,
}

impl Storm {
    fn new(name: &'static str) -> Self {
        let memory = Some(PathMemory::new());
        let control = control(name, &Settings { ecn: true, memory, ..Settings::default() });
        Self { control, name, now: start(), in_flight: Vec::new(), next: 0, datagram: 1200 }
    }

    fn take(&mut self, from: u8, packets: u8) -> Vec<u64> {
        let from = usize::from(from).min(self.in_flight.len());
        let to = (from + usize::from(packets)).min(self.in_flight.len());
        self.in_flight.drain(from..to).collect()
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Send { packets, bytes } => self.send(packets, u32::from(bytes).min(self.datagram)),
            Step::Acknowledge { packets, from, lost_before, app_limited, marks, rtt_ms } => {
                let acked = self.take(from, packets);
                acked.iter().for_each(|number| self.control.on_acked(*number));
                if lost_before {
                    let lost = self.take(0, from);
                    lost.iter().for_each(|number| self.control.on_lost(*number));
                }
                let rtt = rtt_ms.map(|ms| Duration::from_millis(ms.into()));
                self.control.end_ack(self.now, AckInfo { rtt, app_limited, marks: marks.into() });
            }
            Step::Lose { packets, from, persistent } => {
                let lost = self.take(from, packets);
                lost.iter().for_each(|number| self.control.on_lost(*number));
                if persistent {
                    self.control.on_persistent_congestion(self.now);
                } else {
                    self.control.end_losses(self.now);
                }
            }
            Step::Unknown(number) if !self.in_flight.contains(&number) => {
                let before = self.control.ignored();
                self.control.on_acked(number);
                self.control.on_lost(number);
                assert_eq!(self.control.ignored(), before + 2);
            }
            Step::Unknown(number) => assert!(self.control.on_sent(self.now, number, 1).is_err()),
            Step::Spurious => self.control.on_spurious(self.now),
            Step::Datagram(bytes) => {
                self.datagram = bytes.into();
                self.control.set_datagram_bytes(self.datagram);
            }
            Step::Notice(outage) => {
                self.control.on_notice(self.now, if outage { Notice::Outage } else { Notice::Restored })
            }
            Step::Passes { ms } => self.pass(Duration::from_millis(ms.into())),
            Step::Close => self.control.close(self.now),
        }
        self.check();
    }

    fn send(&mut self, packets: u8, bytes: u32) {
        for _ in 0..packets {
            if self.control.departure(self.now, bytes) != Some(self.now) {
                break;
            }
            self.control.on_sent(self.now, self.next, bytes).expect("numbers rise");
            self.in_flight.push(self.next);
            self.next += 1;
        }
    }

    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        let mut at_this_instant = 0;
        while self.control.timeout() <= end {
            let at = self.control.timeout().max(self.now);
            at_this_instant = if at == self.now { at_this_instant + 1 } else { 0 };
            assert!(at_this_instant < TOO_MANY_WAKE_UPS, "{}: wakes up again and again at {at:?}", self.name);
            self.now = at;
            self.control.on_timeout(at);
        }
        self.now = end;
    }

    fn check(&self) {
        let (window, least) = (self.control.window(), u64::from(self.datagram));
        let most = self.control.in_flight() + (u64::from(u32::MAX) * 1200).max(least);
        assert!((least..=most).contains(&window), "{}: a window of {window} bytes", self.name);
        assert!(self.control.burst() >= least, "{}", self.name);
        assert_ne!(self.control.pacing_rate(), Some(Rate::ZERO), "{}", self.name);
        let sound = self.control.state().cwnd >= 1.0 && self.control.state().cwnd.is_finite();
        assert!(sound, "{}: {:?}", self.name, self.control);
    }

    /// With nothing in flight, a packet leaves within a minute.
    fn finish(&mut self) {
        let all = self.take(0, u8::MAX);
        all.iter().chain(&self.in_flight).for_each(|number| self.control.on_lost(*number));
        self.control.on_persistent_congestion(self.now);
        let ready = self.control.departure(self.now, self.datagram).expect("nothing is in flight");
        let wait = ready.since(self.now).as_secs_f64();
        assert!(wait < 60.0, "{}: {wait} s, {:?}", self.name, self.control);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_algorithm_survives_any_transport(steps in proptest::collection::vec(step(), 1..200)) {
        for entry in supported() {
            let mut storm = Storm::new(entry.name);
            storm.control.established(storm.now, Some(RTT));
            steps.iter().for_each(|step| storm.apply(*step));
            storm.finish();
        }
    }

    /// Data before the handshake is complete (0-RTT).
    #[test]
    fn the_handshake_may_come_late(steps in proptest::collection::vec(step(), 1..40)) {
        for entry in supported() {
            let mut storm = Storm::new(entry.name);
            steps.iter().for_each(|step| storm.apply(*step));
            storm.control.established(storm.now, None);
            steps.iter().for_each(|step| storm.apply(*step));
            storm.finish();
        }
    }
}
