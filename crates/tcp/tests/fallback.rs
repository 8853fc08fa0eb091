//! Algorithms with a receiver half or with probes: used if the peer supports them, and with a fallback if not. Registration adds
//! an algorithm to these tests.

mod common;

use bentpipe_base::{Duration, Extension, Flags, Instant};
use bentpipe_cc::{Algorithm, Entry, REGISTRY};
use bentpipe_tcp::{Config, DelayedAck, InitialWindow, ReceiveWindow, Reflection};
use common::{Pair, ms};

const MSS: u32 = 1000;
const SEGMENTS: u64 = 400;
/// Round-trip time of the path.
const ROUND_TRIP: Duration = Duration::from_millis(500);

/// Support at the receiving end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Peer {
    /// TCP without reports of duplicates (RFC 2883), which could serve as replies.
    Plain,
    /// Support for the algorithm's requirements.
    Able,
}

struct Transfer {
    seconds: f64,
    probes_sent: u64,
    probes_acked: u64,
    /// True if the SYN requested support and the ACKs carried its fields.
    asked: bool,
    told: bool,
}

/// Sends a file of 400 segments over a lossless path with a BDP of 64 segments.
fn transfer(entry: &Entry, peer: Peer) -> Transfer {
    let common = Config::default().with(|config| {
        config.sender.cc = Algorithm::from_name(entry.name).expect("registered");
        config.mss = MSS;
        config.receiver.delayed_ack = DelayedAck::Off;
        config.sender.initial_window = InitialWindow::Segments(2);
        config.receiver.receive_window = ReceiveWindow::Fixed(64 * u64::from(MSS));
    });
    let half = entry.receiver.filter(|_| peer == Peer::Able);
    let server = common.clone().with(|config| {
        config.receiver.reflection = half.map(|half| Reflection { number: half.number, build: half.build });
        config.receiver.probe_replies = peer == Peer::Able;
        config.receiver.dsack = peer == Peer::Able;
    });
    let mut pair = Pair::new(common, server);
    pair.delay_one_way = ROUND_TRIP / 2;
    let begin = pair.now;
    pair.write(0, SEGMENTS * u64::from(MSS));
    while pair.delivered(1) < SEGMENTS * u64::from(MSS) {
        pair.run(ms(10));
        assert!(pair.now.since(begin) < Duration::from_secs(120), "{} with {peer:?} stalls", entry.name);
    }
    let seconds = pair.now.since(begin).as_secs_f64();
    pair.run(ROUND_TRIP);
    let stats = pair.ends[0].stats();
    let asks = |flags: Flags, feedback: u8| flags.contains(Flags::SYN) && feedback != 0;
    Transfer {
        seconds,
        probes_sent: stats.probes_sent,
        probes_acked: stats.probes_acked,
        asked: pair.log.iter().any(|(_, end, segment)| {
            *end == 0 && segment.syn_options.is_some_and(|options| asks(segment.flags, options.feedback))
        }),
        told: pair.log.iter().any(|(_, end, segment)| *end == 1 && segment.extension != Extension::None),
    }
}

fn with_a_half_or_probes() -> impl Iterator<Item = &'static Entry> {
    REGISTRY.iter().filter(|entry| entry.needs_receiver)
}

#[test]
fn a_plain_receiver_costs_at_most_four_round_trips_over_reno() {
    let reno = transfer(&REGISTRY[0], Peer::Plain);
    assert_eq!(REGISTRY[0].name, "reno");
    for entry in with_a_half_or_probes() {
        let plain = transfer(entry, Peer::Plain);
        // RCS has no slow start: n segments take sqrt(2 n) round trips.
        let no_slow_start = (2.0 * SEGMENTS as f64).sqrt() * ROUND_TRIP.as_secs_f64();
        let base = if entry.name == "rcs" { no_slow_start } else { reno.seconds };
        let bound = base + 4.0 * ROUND_TRIP.as_secs_f64();
        assert!(entry.works_with_plain_receiver, "{}", entry.name);
        assert!(plain.seconds <= bound, "{}: {} s, Reno {} s", entry.name, plain.seconds, reno.seconds);
        assert!(!plain.told && plain.probes_acked == 0, "{}: told by nobody", entry.name);
        assert_eq!(plain.asked, entry.receiver.is_some(), "{}", entry.name);
    }
}

#[test]
fn an_able_receiver_is_heard() {
    for entry in with_a_half_or_probes() {
        let able = transfer(entry, Peer::Able);
        if let Some(half) = entry.receiver {
            // Some receiver halves answer only after the network has sent a notice.
            let speaks = (half.build)().reply(Instant::ZERO) != Extension::None;
            assert!(able.asked && able.told >= speaks, "{}", entry.name);
        } else if able.probes_sent > 0 {
            assert!(able.probes_acked > 0, "{}", entry.name);
        }
    }
}
