use alloc::sync::Arc;
use std::sync::Mutex;

use super::*;
use crate::{BackOff, Custom, Feedback, REGISTRY, Sleeper};

const BYTES: u32 = 1200;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(1000 + millis)
}

/// A transport whose ACKs have a round trip of 100 ms.
struct Wire {
    control: PacketControl,
    next: u64,
}

impl Wire {
    fn new(name: &str, initial_window: u32) -> Self {
        let algorithm = Algorithm::from_name(name).expect("it is registered");
        Self::over(&algorithm, Settings { initial_window, ..Settings::default() })
    }

    fn over(algorithm: &Algorithm, settings: Settings) -> Self {
        let mut control = PacketControl::new(algorithm, &settings).expect("it fits");
        control.established(at(0), Some(Duration::from_millis(100)));
        Self { control, next: 0 }
    }

    fn send(&mut self, millis: u64, packets: u64) {
        for _ in 0..packets {
            self.control.on_sent(at(millis), self.next, BYTES).expect("numbers rise");
            self.next += 1;
        }
    }

    fn ack_with(&mut self, millis: u64, (acked, lost): (&[u64], &[u64]), marks: u32) {
        acked.iter().for_each(|number| self.control.on_acked(*number));
        lost.iter().for_each(|number| self.control.on_lost(*number));
        let rtt = Some(Duration::from_millis(100));
        self.control.end_ack(at(millis), AckInfo { rtt, app_limited: false, marks });
    }

    fn ack(&mut self, millis: u64, acked: &[u64], lost: &[u64]) {
        self.ack_with(millis, (acked, lost), 0);
    }

    fn cwnd(&self) -> f64 {
        self.control.state().cwnd
    }
}

#[test]
fn who_needs_probes_fields_or_own_retransmissions_is_refused() {
    let need = |name: &str| {
        let algorithm = Algorithm::from_name(name).expect("it is registered");
        PacketControl::new(&algorithm, &Settings::default()).err().map(|refused| refused.need)
    };
    for (name, expected) in [
        ("peach", Some(Need::Probes)),
        ("swift", Some(Need::Probes)),
        ("rcs", Some(Need::Probes)),
        ("xcp", Some(Need::ReceiverHalf)),
        ("tfrc", Some(Need::ReceiverHalf)),
        ("real", Some(Need::ReceiverHalf)),
        ("dvegas", Some(Need::ReceiverHalf)),
        ("westwood-br", Some(Need::OwnRetransmissions)),
        ("fast-start", Some(Need::OwnRetransmissions)),
        ("vegas", None),
        ("star", None),
        ("prague", None),
    ] {
        assert_eq!(need(name), expected, "{name}");
    }
    assert!(
        REGISTRY.iter().all(|entry| need(entry.name).is_none() == supported().any(|e| e.name == entry.name))
    );
    let refused = Refused { algorithm: "swift", need: Need::Probes };
    let text = refused.to_string();
    assert_eq!(
        text,
        "`swift` does not run over a packet transport: it needs probes and the receiver's replies to them"
    );
}

#[test]
fn settled_and_unknown_packets_are_ignored_and_counted() {
    let mut wire = Wire::new("reno", 10);
    wire.send(0, 3);
    wire.ack(100, &[0, 0, 7], &[0, 9]);
    assert_eq!((wire.control.ignored(), wire.control.in_flight()), (4, 2400));
    wire.ack(100, &[], &[1, 1]);
    wire.ack(100, &[1, 2], &[]);
    assert_eq!((wire.control.ignored(), wire.control.in_flight()), (6, 0));
}

#[test]
fn a_discarded_packet_is_neither_delivered_nor_lost() {
    let (mut wire, log) = recorded();
    wire.send(0, 2);
    wire.control.on_discarded(0);
    wire.control.on_discarded(0);
    wire.ack(100, &[1], &[]);
    let (ack, path) = log.acks.lock().unwrap()[0];
    assert_eq!((ack.lost, path.delivered, path.in_flight), (0, 1200, 0));
    assert_eq!((wire.control.ignored(), log.causes.lock().unwrap().len()), (1, 0));
}

#[test]
fn numbers_must_rise_and_may_skip() {
    let mut wire = Wire::new("reno", 10);
    assert_eq!(wire.control.on_sent(at(0), 5, BYTES), Ok(()));
    assert_eq!(wire.control.on_sent(at(0), 5, BYTES), Err(NotRising { number: 5, least: 6 }));
    assert!(wire.control.on_sent(at(0), u64::MAX, BYTES).is_err());
    assert_eq!(wire.control.in_flight(), 1200);
    assert_eq!(wire.control.on_sent(at(0), 100, BYTES), Ok(()));
}

#[test]
fn an_episode_reduces_once_and_data_sent_later_opens_the_next() {
    let mut wire = Wire::new("reno", 20);
    wire.send(0, 20);
    wire.ack(100, &[3], &[0]);
    assert_eq!(wire.cwnd(), 10.0, "half of 20 in flight");
    wire.ack(101, &[6], &[1, 2]);
    assert_eq!(wire.cwnd(), 10.0, "the same episode");
    wire.send(110, 5);
    wire.ack(200, &[7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19], &[4, 5]);
    assert_eq!(wire.cwnd(), 10.0, "the last packets of before");
    wire.ack(210, &[23], &[20]);
    assert_eq!(wire.cwnd(), 10.0, "the repairs of 4 and 5 leave now");
    wire.send(211, 3);
    wire.ack(311, &[25], &[]);
    assert_eq!(wire.cwnd(), 3.0, "half of 21, 22, 24 to 26 and the lost 20");
}

#[test]
fn losses_after_the_end_of_an_ack_and_those_of_a_timer_open_an_episode() {
    for by_timer in [false, true] {
        let mut wire = Wire::new("reno", 20);
        wire.send(0, 20);
        if !by_timer {
            wire.ack(100, &[3], &[]);
        }
        wire.control.on_lost(0);
        wire.control.end_losses(at(100));
        assert!(wire.cwnd() <= 10.5, "{}", wire.cwnd());
        assert_eq!(wire.control.window() - wire.control.in_flight(), 1200, "one datagram may leave at once");
    }
}

#[test]
fn the_reduction_is_spread_over_a_round_trip() {
    let mut wire = Wire::new("reno", 20);
    wire.send(0, 20);
    wire.ack(100, &[3], &[0]);
    let mut sent = 0;
    for number in (1..20).filter(|number| *number != 3) {
        wire.ack(101 + number, &[number], &[]);
        while wire.control.window() >= wire.control.in_flight() + u64::from(BYTES) {
            wire.send(101 + number, 1);
            sent += 1;
        }
    }
    assert!((9..=11).contains(&sent), "{sent} packets for a window of 10");
    assert_eq!(wire.control.in_flight() / 1200, sent);
}

#[test]
fn marks_reduce_once_per_window_and_a_loss_of_the_same_window_not_again() {
    let mut wire = Wire::new("reno", 20);
    wire.send(0, 20);
    wire.ack_with(100, (&[0], &[]), 1);
    assert_eq!(wire.cwnd(), 10.0);
    wire.ack_with(101, (&[1, 4], &[]), 2);
    wire.ack(102, &[5], &[2]);
    assert_eq!(wire.cwnd(), 10.0 + 1.0 / 10.0, "grown by one ACK without marks");
}

#[test]
fn a_spurious_episode_is_undone_once() {
    let mut wire = Wire::new("cubic", 20);
    wire.send(0, 20);
    wire.ack(100, &[3], &[0]);
    assert!(wire.cwnd() < 20.0);
    wire.control.on_spurious(at(110));
    assert!(wire.cwnd() >= 20.0);
    wire.ack(120, &[6], &[1]);
    let reduced = wire.cwnd();
    assert!(reduced < 20.0, "losses count again");
    wire.ack_with(130, (&[7], &[]), 1);
    wire.control.on_persistent_congestion(at(140));
    wire.control.on_spurious(at(150));
    assert_eq!(wire.cwnd(), 1.0, "a timeout in recovery counts as real");
}

#[test]
fn persistent_congestion_is_a_timeout_and_an_ack_of_later_data_ends_it() {
    let mut wire = Wire::new("reno", 20);
    wire.send(0, 20);
    for number in 0..20 {
        wire.control.on_lost(number);
    }
    wire.control.on_persistent_congestion(at(900));
    assert_eq!((wire.control.window(), wire.control.in_flight()), (1200, 0));
    assert_eq!(wire.control.state().ssthresh, 10.0, "half of what was in flight");
    wire.send(900, 1);
    wire.ack(1000, &[20], &[]);
    assert_eq!(wire.cwnd(), 2.0);
}

#[test]
fn a_new_datagram_size_leaves_window_and_rate_in_bytes() {
    let mut wire = Wire::new("bbr3", 10);
    let before = (wire.control.window(), wire.control.pacing_rate());
    assert!(before.1.is_some());
    wire.control.set_datagram_bytes(1452);
    assert_eq!((wire.control.window(), wire.control.pacing_rate()), before);
    assert_eq!(wire.control.burst() % 1452, 0);
    wire.control.set_datagram_bytes(65_000);
    assert_eq!(wire.control.window(), 65_000, "room for one");
    assert!(wire.control.departure(at(1), 65_500).is_some(), "even larger, with nothing in flight");
}

#[test]
fn a_packet_that_stays_in_flight_does_not_hold_the_memory_of_others() {
    let mut wire = Wire::new("reno", 10);
    wire.send(0, 1);
    for number in 1..100_000 {
        wire.send(number, 1);
        wire.ack(number + 1, &[number], &[]);
        assert!(wire.control.ledger.len() <= 20);
    }
    assert_eq!(wire.control.in_flight(), 1200);
}

/// Calls that an algorithm received.
#[derive(Clone, Default)]
struct Log {
    acks: Arc<Mutex<Vec<(Ack, Path)>>>,
    events: Arc<Mutex<Vec<ConnectionEvent>>>,
    causes: Arc<Mutex<Vec<Cause>>>,
    fields: Arc<Mutex<Vec<Extension>>>,
}

struct Recorder(Log, Requirements);

impl CongestionControl for Recorder {
    fn window(&self) -> f64 {
        100.0
    }
    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.0.acks.lock().unwrap().push((*ack, *path));
    }
    fn on_loss(&mut self, loss: &Loss, _: &Path) {
        self.0.causes.lock().unwrap().push(loss.cause);
    }
    fn on_rto(&mut self, _: &Timeout, _: &Path) -> BackOff {
        BackOff::Double
    }
    fn spacing(&self) -> Spacing {
        Spacing::at(Some(Rate::from_mbps(8)))
    }
    fn requirements(&self) -> Requirements {
        self.1
    }
    fn on_event(&mut self, event: ConnectionEvent, _: &Path) {
        self.0.events.lock().unwrap().push(event);
    }
    fn feedback(&mut self) -> Option<&mut dyn Feedback> {
        Some(self)
    }
    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        Some(self)
    }
}

impl Feedback for Recorder {
    fn receiver(&self) -> u8 {
        0
    }
    fn on_feedback(&mut self, fields: &Extension, _: &Path) {
        self.0.fields.lock().unwrap().push(*fields);
    }
}

impl Sleeper for Recorder {
    fn wake_at(&self) -> Instant {
        at(7)
    }
    fn on_wake(&mut self, _: &Path) -> Wake {
        Wake::AskForAck
    }
}

fn recorded() -> (Wire, Log) {
    recorded_by(Requirements { accounting: Accounting::Own, ..Requirements::default() })
}

fn recorded_by(requirements: Requirements) -> (Wire, Log) {
    let log = Log::default();
    let inner = log.clone();
    let algorithm =
        Algorithm::Custom(Custom::new("recorder", move |_| Box::new(Recorder(inner.clone(), requirements))));
    (Wire::over(&algorithm, Settings::default()), log)
}

#[test]
fn bytes_are_counted_in_segments_and_positions_in_bytes() {
    let (mut wire, log) = recorded();
    for (number, bytes) in [(0, 1200), (1, 600), (2, 600), (3, 3600), (4, 50)] {
        wire.control.on_sent(at(0), number, bytes).unwrap();
    }
    for (millis, numbers) in [(100, vec![0]), (101, vec![1]), (102, vec![2]), (103, vec![3]), (104, vec![4])]
    {
        wire.ack(millis, &numbers, &[]);
    }
    let log = log.acks.lock().unwrap();
    let acked: Vec<_> = log.iter().map(|(ack, _)| (ack.acked, ack.delivered_bytes)).collect();
    assert_eq!(acked, [(1, 1200), (1, 600), (1, 600), (3, 3600), (1, 50)]);
    let positions: Vec<_> = log.iter().map(|(_, path)| (path.snd_una, path.snd_nxt)).collect();
    assert_eq!(positions, [(1201, 6051), (1801, 6051), (2401, 6051), (6001, 6051), (6051, 6051)]);
    let in_flight: Vec<_> = log.iter().map(|(_, path)| path.in_flight).collect();
    assert_eq!(in_flight, [5, 4, 4, 1, 0], "rounded up");
    let rate = log[3].0.rate.expect("a round trip has passed");
    assert_eq!((rate.delivered, rate.interval), (6000, Duration::from_millis(103)));
}

#[test]
fn losses_are_reported_with_the_next_ack_and_an_application_that_paused_does_not_fill_the_window() {
    let (mut wire, log) = recorded();
    wire.send(0, 5);
    wire.ack(100, &[4], &[]);
    wire.control.on_lost(0);
    wire.control.end_losses(at(100));
    wire.control.on_acked(1);
    wire.control.end_ack(at(101), AckInfo { app_limited: true, ..AckInfo::default() });
    wire.send(102, 1);
    wire.ack(202, &[5], &[]);
    let log = log.acks.lock().unwrap();
    assert_eq!(log.iter().map(|(ack, _)| ack.lost).collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!(log.iter().map(|(ack, _)| ack.window_limited).collect::<Vec<_>>(), [true, false, true]);
    let phases: Vec<_> = log.iter().map(|(ack, _)| (ack.phase, ack.ends_episode)).collect();
    use crate::Phase::{Open, Recovery};
    assert_eq!(phases, [(Open, false), (Recovery, false), (Recovery, true)]);
    assert!(log[2].0.rate.expect("a sample").app_limited);
}

#[test]
fn a_pause_and_the_end_are_told() {
    let (mut wire, log) = recorded();
    wire.send(0, 1);
    wire.ack(100, &[0], &[]);
    wire.send(5000, 1);
    wire.send(15_000, 1);
    wire.control.close(at(5001));
    wire.ack(5100, &[1, 2], &[]);
    wire.control.close(at(5101));
    let (idle, closed) = (ConnectionEvent::Idle { restart: 10.0 }, ConnectionEvent::Closed);
    assert_eq!(
        log.events.lock().unwrap()[..],
        [ConnectionEvent::Established, idle, ConnectionEvent::Abandoned, closed]
    );
}

#[test]
fn a_scalable_algorithm_gets_the_number_of_marks_and_others_one_reduction() {
    for (scalable, counted, causes) in [(true, 1, vec![]), (false, 0, vec![Cause::Mark])] {
        let (mut wire, log) = recorded_by(Requirements { scalable, ..Requirements::default() });
        wire.send(0, 5);
        wire.ack_with(100, (&[0, 1, 2], &[]), 2);
        wire.ack_with(101, (&[3], &[]), 1);
        let ack = log.acks.lock().unwrap()[0].0;
        assert_eq!((ack.acked, ack.counted, ack.marks, ack.ecn_echo), (3, counted, 2, true));
        assert_eq!(*log.causes.lock().unwrap(), causes);
        assert_eq!(wire.control.is_scalable(), scalable);
    }
}

#[test]
fn packets_leave_at_the_rate_and_late_wake_ups_are_made_up_for() {
    let (mut wire, _) = recorded();
    let mut now = at(0);
    while let Some(due) = wire.control.departure(now, BYTES) {
        if due > now {
            now = due + Duration::from_millis(4);
            continue;
        }
        let millis = now.since(at(0)).as_nanos() / 1_000_000;
        wire.send(millis, 1);
    }
    let millis = now.since(at(0)).as_millis_f64();
    assert_eq!(wire.next, 100, "the whole window");
    assert!((110.0..=125.0).contains(&millis), "{millis} ms for 99 packets of 1.2 ms");
}

#[test]
fn a_window_is_paced_faster_than_it_is_acknowledged_unless_switched_off() {
    let wire = Wire::new("reno", 10);
    let rate = wire.control.pacing_rate().expect("paced").bps();
    assert_eq!(rate, 2 * 10 * 1200 * 8 * 10, "two windows per round trip of 100 ms");
    let algorithm = Algorithm::from_name("reno").unwrap();
    let wire = Wire::over(&algorithm, Settings { paced: false, ..Settings::default() });
    assert_eq!(wire.control.pacing_rate(), None);
}

#[test]
fn notices_of_the_link_and_timers_reach_the_algorithm() {
    let (mut wire, log) = recorded();
    wire.control.on_notice(at(1), Notice::Outage);
    assert_eq!(log.fields.lock().unwrap()[..], [Extension::Notice(Notice::Outage)]);
    assert_eq!((wire.control.timeout(), wire.control.on_timeout(at(7))), (at(7), Wake::AskForAck));
    let mut without = Wire::new("reno", 10);
    without.control.on_notice(at(1), Notice::Outage);
    assert_eq!(
        (without.control.timeout(), without.control.on_timeout(at(7))),
        (Instant::FAR_FUTURE, Wake::Quiet)
    );
}

#[test]
fn one_segment_leaves_in_eight_round_trips_whatever_the_rate() {
    let mut wire = Wire::new("bbr3", 10);
    for number in 0..20 {
        wire.control.on_sent(at(number * 1000), number, 1).unwrap();
        wire.ack(number * 1000 + 100, &[number], &[]);
    }
    assert_eq!(wire.control.pacing_rate().map(Rate::bps), Some(1200 * 8 * 10 / 8));
}

#[test]
fn more_segments_than_32_bits_count_are_no_overflow() {
    let (mut wire, log) = recorded();
    let settings = Settings { datagram_bytes: 1, ..Settings::default() };
    let recorder = log.clone();
    let requirements = Requirements { accounting: Accounting::Own, ..Requirements::default() };
    let algorithm = Algorithm::Custom(Custom::new("recorder", move |_| {
        Box::new(Recorder(recorder.clone(), requirements))
    }));
    wire.control = PacketControl::new(&algorithm, &settings).expect("it needs nothing");
    (0..4).for_each(|number| wire.control.on_sent(at(0), number, u32::MAX).unwrap());
    wire.ack(100, &[0], &[]);
    wire.ack(101, &[1], &[2]);
    wire.ack(102, &[3], &[]);
    let acks = log.acks.lock().unwrap();
    let counts: Vec<_> = acks.iter().map(|(ack, path)| (ack.acked, ack.lost, path.in_flight)).collect();
    let most = u32::MAX;
    assert_eq!(counts, [(most, 0, most), (most, most, most), (most, 0, 0)]);
}

/// RFC 9959: the second connection jumps from ten datagrams to half of what the first one carried in a round trip.
#[test]
fn careful_resume_works_over_packets() {
    let memory = PathMemory::new();
    let settings = || Settings {
        memory: Some(memory.clone()),
        careful_resume: Some(careful_resume::Config::default()),
        ..Settings::default()
    };
    let cubic = Algorithm::from_name("cubic").expect("it is registered");
    // Each round sends what the window allows, without regard to pacing, and all of it arrives.
    let run = |rounds: u64| {
        let mut wire = Wire::over(&cubic, settings());
        let windows = (0..rounds).map(|round| {
            let packets =
                (wire.control.window() / u64::from(BYTES)) - wire.control.in_flight() / u64::from(BYTES);
            let first = wire.next;
            wire.send(100 * round, packets);
            (first..wire.next).for_each(|number| wire.ack(100 * (round + 1), &[number], &[]));
            wire.cwnd()
        });
        let windows: Vec<f64> = windows.collect();
        wire.control.close(at(100 * (rounds + 1)));
        windows
    };
    let first = run(7);
    assert_eq!(first[0], 20.0);
    let saved = memory.capacity().expect("it was saved");
    assert_eq!(
        saved.bytes,
        320 * u64::from(BYTES),
        "10, 20, 40, 80, 160, 320, and a round that has not ended"
    );
    let second = run(2);
    assert_eq!(second[0], 160.0, "half of it");
    assert!(second[1] >= 160.0, "validated: {second:?}");
}
