//! Worked examples of the paper's figures, segment by segment, over a simulated path.

use std::collections::{BTreeSet, VecDeque};

use super::*;
use crate::parts::probe_peer::Answers;
use crate::parts::prober::episode::asked;
use crate::{
    Accounting, Ack, Cause, ConnectionEvent, Loss, Path, PeerProbes, Phase, ProbeMoment, ProbeReply, Timeout,
    Undo, fixture,
};

const MSS: u64 = fixture::MSS as u64;
const RTT: Duration = Duration::from_millis(550);
/// Receive window of the paper, in segments.
const RWND: u32 = 64;

/// The receiver's answer, which arrives one round trip after the segment left.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// Next segment number expected by the receiver.
    expects: u32,
    /// Number of new segments that did not advance `expects`.
    sacked: u32,
    /// Tag of the dummy, if this is a reply to one.
    reply: Option<ProbeTag>,
}

/// One sender, one receiver, and a path with a delay of one round trip and no queue. Units are segments. Recovery is NewReno's.
struct World {
    now: Instant,
    peach: Peach,
    rtt: Duration,
    una: u32,
    nxt: u32,
    unsent: u32,
    duplicates: u32,
    recover: Option<u32>,
    timed_out: bool,
    rto_at: Instant,
    data_sent: u32,
    /// Segments received.
    received: BTreeSet<u32>,
    understands_dummies: bool,
    under_way: VecDeque<(Instant, Answer)>,
    /// Loss model: for the n-th dummy, and for each transmission of a data segment.
    loses_dummy: fn(usize) -> bool,
    lost_data: Vec<u32>,
    dummies: Vec<Instant>,
    data: Vec<(Instant, u32)>,
    fast_retransmits: u32,
}

impl World {
    fn new(config: Config) -> Self {
        let mut world = Self {
            now: Instant::ZERO,
            peach: Peach::new(config, &fixture::start(2.0)),
            rtt: RTT,
            una: 0,
            nxt: 0,
            unsent: 100_000,
            duplicates: 0,
            recover: None,
            timed_out: false,
            rto_at: Instant::FAR_FUTURE,
            data_sent: 0,
            received: BTreeSet::new(),
            understands_dummies: true,
            under_way: VecDeque::new(),
            loses_dummy: |_| false,
            lost_data: Vec::new(),
            dummies: Vec::new(),
            data: Vec::new(),
            fast_retransmits: 0,
        };
        world.peach.on_event(ConnectionEvent::Established, &world.path());
        world
    }

    /// Makes an established connection: segment 100 of a window of 30 is lost. Its 29 successors are answered at intervals of RTT
    /// / 30 (Figs. 7 and 9).
    fn figure_7(config: Config) -> Self {
        let mut world = Self::new(config);
        let spacing = RTT / 30;
        world.rtt = spacing * 30;
        world.peach.state = State::Avoidance;
        world.peach.cwnd = 30.0;
        world.una = 100;
        world.nxt = 130;
        world.received = (0..100).chain(101..130).collect();
        world.under_way = (1..30)
            .map(|j| (Instant::ZERO + spacing * j, Answer { expects: 100, sacked: 1, reply: None }))
            .collect();
        world.restart_timer();
        world
    }

    fn path(&self) -> Path {
        Path {
            now: self.now,
            srtt: self.rtt,
            min_rtt: self.rtt,
            rto: self.rtt * 2,
            in_flight: self.in_flight(),
            outstanding: self.nxt - self.una,
            receive_window: RWND,
            snd_una: 1 + u64::from(self.una) * MSS,
            snd_nxt: 1 + u64::from(self.nxt) * MSS,
            unsent: u64::from(self.unsent) * MSS,
            peer_probes: PeerProbes::Agreed,
            ..fixture::path()
        }
    }

    /// Returns RFC 6675's pipe for the single loss of these tests: segments reported by ACKs are not in flight.
    fn in_flight(&self) -> u32 {
        let ordinary = |answer: &Answer| answer.reply.is_none();
        self.under_way.iter().filter(|(_, answer)| ordinary(answer)).count() as u32
    }

    fn restart_timer(&mut self) {
        self.rto_at = if self.una == self.nxt { Instant::FAR_FUTURE } else { self.now + self.path().rto };
    }

    /// Delivers the segment at once; the answer arrives one round trip later.
    fn put_on_the_line(&mut self, segment: u32, dummy: Option<ProbeTag>) {
        let expected = |received: &BTreeSet<u32>| (0..).find(|n| !received.contains(n)).unwrap();
        let new = self.received.insert(segment);
        let expects = expected(&self.received);
        let sacked = u32::from(new && expects <= segment);
        let reply = dummy.filter(|_| self.understands_dummies);
        self.under_way.push_back((self.now + self.rtt, Answer { expects, sacked, reply }));
    }

    fn send_data(&mut self, segment: u32) {
        self.data.push((self.now, segment));
        self.data_sent += 1;
        match self.lost_data.iter().position(|&lost| lost == segment) {
            Some(i) => drop(self.lost_data.remove(i)),
            None => self.put_on_the_line(segment, None),
        }
        if self.rto_at == Instant::FAR_FUTURE {
            self.rto_at = self.now + self.path().rto;
        }
    }

    fn transmit(&mut self) {
        loop {
            let window = self.peach.window().min(f64::from(RWND)) as u32;
            // As in the paper, there is no limited transmit: before a loss is detected, both counts agree.
            let held = match (self.peach.requirements().accounting, self.recover) {
                (Accounting::Own, Some(_)) => self.in_flight(),
                _ => self.nxt - self.una,
            };
            if window <= held || self.unsent == 0 || self.nxt >= self.una + RWND {
                break;
            }
            self.nxt += 1;
            self.unsent -= 1;
            self.send_data(self.nxt - 1);
        }
        let data_sent = core::mem::take(&mut self.data_sent);
        let moment = ProbeMoment { data_sent, sent_newest: data_sent > 0 };
        while let Some(probe) = self.peach.next_probe(&moment, &self.path()) {
            if !(self.loses_dummy)(self.dummies.len()) {
                self.put_on_the_line(self.nxt - 1, Some(probe.tag));
            }
            self.dummies.push(self.now);
        }
    }

    fn retransmit_oldest(&mut self) {
        self.rto_at = self.now + self.path().rto;
        self.send_data(self.una);
    }

    fn handle_answer(&mut self, answer: Answer) {
        let acked = answer.expects.saturating_sub(self.una);
        let phase = match (self.recover, self.timed_out) {
            (None, _) => Phase::Open,
            (Some(_), true) => Phase::Loss,
            (Some(_), false) => Phase::Recovery,
        };
        let ends_episode = self.recover.is_some_and(|recover| answer.expects >= recover);
        let mut ack = Ack { acked, sacked: answer.sacked, phase, ends_episode, ..fixture::ack(acked) };
        if acked > 0 {
            self.una = answer.expects;
            self.duplicates = 0;
            self.restart_timer();
            if ends_episode {
                self.recover = None;
            } else if phase != Phase::Open {
                self.retransmit_oldest();
            }
            self.peach.on_ack(&ack, &self.path());
        } else if answer.reply.is_none() {
            let trusted = ack.sacked > 0 || !self.peach.distrusts_duplicates();
            self.duplicates += u32::from(trusted);
            if self.duplicates == 3 && self.recover.is_none() {
                ack.phase = Phase::Recovery;
                self.detect_loss();
            }
            self.peach.on_ack(&ack, &self.path());
        }
        if let Some(tag) = answer.reply {
            self.peach.on_probe_acked(&ProbeReply { tag, acked, phase }, &self.path());
        }
        self.transmit();
    }

    fn detect_loss(&mut self) {
        let loss = fixture::loss(self.nxt - self.una);
        self.peach.on_loss(&loss, &self.path());
        self.recover = Some(self.nxt);
        self.timed_out = false;
        self.fast_retransmits += 1;
        self.retransmit_oldest();
    }

    fn handle_timeout(&mut self) {
        let timeout = Timeout { consecutive: 1, outstanding: self.nxt - self.una, answered: false };
        self.peach.on_rto(&timeout, &self.path());
        self.recover = Some(self.nxt);
        self.timed_out = true;
        self.retransmit_oldest();
        self.transmit();
    }

    /// Handles all events up to and including `end`.
    fn run_until(&mut self, end: Instant) {
        loop {
            let arrival = self.under_way.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
            let wake = self.peach.wake_at();
            let next = arrival.min(wake).min(self.rto_at);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            if arrival == next {
                let (_, answer) = self.under_way.pop_front().unwrap();
                self.handle_answer(answer);
            } else if wake == next {
                self.peach.on_wake(&self.path());
                self.transmit();
            } else {
                self.handle_timeout();
            }
        }
    }

    fn start(config: Config) -> Self {
        let mut world = Self::new(config);
        world.transmit();
        world
    }
}

fn at(span: Duration) -> Instant {
    Instant::ZERO + span
}

fn just_before(span: Duration) -> Instant {
    at(span) - Duration::from_nanos(1)
}

fn safe() -> Config {
    Config { mode: Mode::Safe, ..Config::default() }
}

/// Table I: duration of slow start for LEO, MEO and GEO at 1, 10 and 155 Mbit/s, with segments of 1000 bytes.
#[test]
fn table_1() {
    for (rtt_ms, durations_s) in
        [(50, [0.182, 0.348, 0.546]), (250, [1.491, 2.322, 3.310]), (550, [3.907, 5.734, 7.909])]
    {
        for (mbps, expected) in [1, 10, 155].into_iter().zip(durations_s) {
            let span = slow_start_duration(Duration::from_millis(rtt_ms), Rate::from_mbps(mbps), 8000.0);
            assert!((span.as_secs_f64() - expected).abs() < 0.0006, "{rtt_ms} ms {mbps} Mbit/s: {span}");
        }
    }
}

/// Fig. 2 and equation (2): 63 dummies, evenly spaced over one round trip.
#[test]
fn sudden_start_spreads_its_dummies_over_a_round_trip() {
    let mut world = World::start(Config::default());
    world.run_until(at(RTT * 3));
    let tau = Duration::from_nanos(8_593_750);
    let expected: Vec<Instant> = (1..64).map(|i| at(tau * i)).collect();
    assert_eq!(world.dummies, expected);
}

/// Fig. 3, upper plot: the window is one segment for a round trip, and full before the second ends.
#[test]
fn sudden_start_opens_the_window_in_two_round_trips() {
    let mut world = World::start(Config::default());
    let tau = RTT / 64;
    world.run_until(just_before(RTT));
    assert_eq!(world.peach.window(), 1.0);
    world.run_until(at(RTT));
    assert_eq!((world.peach.window(), world.data.len()), (2.0, 3));
    for k in 1..=62 {
        world.run_until(at(RTT + tau * k));
        assert_eq!(world.peach.window(), 2.0 + k as f64);
        assert_eq!(world.data.len() as u64, 3 + k, "each reply lets one segment leave");
    }
    world.run_until(at(RTT * 5));
    assert_eq!(world.peach.window(), 64.0);
}

/// Fig. 3, lower plot: a(t), the acknowledged data, just before each whole round trip.
#[test]
fn sudden_start_delivers_64_segments_per_round_trip_from_the_second_on() {
    let mut world = World::start(Config::default());
    let acknowledged: Vec<u32> = (2..=6)
        .map(|k| {
            world.run_until(just_before(RTT * k));
            world.una
        })
        .collect();
    assert_eq!(acknowledged, [1, 65, 129, 193, 257]);
}

#[test]
fn a_file_of_50_segments_takes_less_than_three_round_trips() {
    let mut world = World::new(Config::default());
    world.unsent = 50;
    world.transmit();
    world.run_until(at(RTT * 4));
    let last_leaves = RTT + RTT / 64 * 47;
    assert_eq!(*world.data.last().unwrap(), (at(last_leaves), 49));
    assert_eq!(world.una, 50);
    assert!((last_leaves + RTT).as_secs_f64() < 1.5040);
}

/// Fig. 7: the window takes the values 30, 15, 42, 15, 30.
#[test]
fn rapid_recovery_after_a_link_error() {
    let mut world = World::figure_7(Config::default());
    let tick = |j: u64| at(RTT / 30 * j);
    let mut expect = |j: u64, cwnd: f64, outstanding: u32, dummies: usize| {
        world.run_until(tick(j));
        let seen = (world.peach.window(), world.nxt - world.una, world.dummies.len());
        assert_eq!(seen, (cwnd, outstanding, dummies), "after {j} thirtieths of a round trip");
    };
    expect(2, 30.0, 30, 0);
    for j in 3..=17 {
        expect(j, 13.0 + j as f64, 30, 2 * (j as usize - 2));
    }
    for j in 18..=29 {
        expect(j, 13.0 + j as f64, 13 + j as u32, 30);
    }
    expect(29, 42.0, 42, 30);
    expect(33, 15.0, 15, 30);
    expect(39, 15.0, 15, 30);
    expect(47, 30.0, 30, 30);
    world.run_until(tick(48));
    assert!((world.peach.window() - (30.0 + 1.0 / 30.0)).abs() < 1e-12);
    assert_eq!(world.peach.wdsn, 0);
}

/// Fig. 6: no data for half a round trip, then the rate before the loss. After the recovery, another pause of a quarter.
#[test]
fn rapid_recovery_sends_half_a_window_less() {
    let mut world = World::figure_7(Config::default());
    world.run_until(at(RTT / 30 * 62));
    let tick = |segment| {
        let (time, _) = world.data.iter().find(|(_, sent)| *sent == segment).unwrap();
        time.as_nanos() / (RTT / 30).as_nanos()
    };
    assert_eq!(tick(100), 3, "the retransmission");
    assert_eq!((tick(130), tick(141)), (18, 29));
    assert_eq!((tick(142), tick(144)), (33, 33), "the three segments that detection held back");
    assert_eq!((tick(145), tick(159)), (40, 47), "two per thirtieth");
}

/// Fig. 9: the congested router drops every second dummy, and Peach's window equals Reno's.
#[test]
fn rapid_recovery_after_congestion() {
    let mut world = World::figure_7(Config::default());
    world.loses_dummy = |n| n % 2 == 1;
    world.run_until(at(RTT / 30 * 47));
    assert_eq!((world.peach.window(), world.peach.wdsn), (15.0, 0));
}

/// The paper's text has only both ends; between them the window is cwnd0/2 + max(0, m - wdsn).
#[test]
fn each_reply_beyond_wdsn_restores_one_segment() {
    for cwnd0 in 4..=64_u32 {
        let half = cwnd0 / 2;
        for replies in 0..=2 * half {
            let mut world = World::figure_7(Config::default());
            world.peach.cwnd = f64::from(cwnd0) + 0.7;
            let loss = fixture::loss(cwnd0);
            world.peach.on_loss(&loss, &world.path());
            let full = Ack { phase: Phase::Recovery, ends_episode: true, ..fixture::ack(cwnd0) };
            world.peach.on_ack(&full, &world.path());
            let reply = ProbeReply { tag: ProbeTag(world.peach.epoch), acked: 0, phase: Phase::Open };
            for _ in 0..replies {
                world.peach.on_probe_acked(&reply, &world.path());
            }
            let expected = f64::from(half + replies.saturating_sub(half));
            assert_eq!(world.peach.window(), expected, "cwnd0 {cwnd0}, {replies} replies");
            assert!(world.peach.window() <= f64::from(cwnd0));
        }
    }
}

/// RFC 6675 counts the duplicates before the third, so data leaves earlier and four dummies are not sent.
#[test]
fn the_pipe_form_spends_26_dummies() {
    let mut world = World::figure_7(Config { form: Form::Pipe, ..Config::default() });
    world.run_until(at(RTT / 30 * 29));
    assert_eq!((world.peach.window(), world.dummies.len()), (15.0, 26));
    world.run_until(at(RTT / 30 * 45));
    assert_eq!(world.peach.window(), 26.0);
}

/// Two copies follow each new segment allowed by PRR, up to the number of segments in the window.
#[test]
fn copies_beside_data_follow_new_segments() {
    let config = Config { form: Form::BesideData, ..Config::default() };
    let mut world = World::figure_7(config);
    let path = Path { outstanding: 30, ..world.path() };
    world.peach.on_loss(&fixture::loss(30), &path);
    let mut ask = |data_sent, sent_newest| {
        asked(&mut world.peach, &ProbeMoment { data_sent, sent_newest }, &path).len()
    };
    assert_eq!([ask(1, false), ask(2, true), ask(2, true)], [0, 2, 0], "none after the retransmission");
    let mut sent = 2;
    for _ in 0..20 {
        world.peach.on_ack(&Ack { phase: Phase::Recovery, ..fixture::ack(0) }, &path);
        sent += asked(&mut world.peach, &ProbeMoment { data_sent: 1, sent_newest: true }, &path).len();
    }
    assert_eq!((sent, world.peach.requirements().accounting), (30, Accounting::Pipe));
}

/// Fig. 1: no ACK of the lost segment until t_Retr + RTO causes Sudden Start.
#[test]
fn a_lost_retransmission_ends_in_sudden_start() {
    let mut world = World::figure_7(Config::default());
    world.lost_data = vec![100];
    let retransmitted = at(RTT / 30 * 3);
    world.run_until(retransmitted + world.path().rto - Duration::from_nanos(1));
    assert_eq!(world.peach.snapshot().phase, "rapid-recovery");
    world.run_until(retransmitted + world.path().rto);
    assert_eq!((world.peach.snapshot().phase, world.peach.window()), ("sudden-start", 1.0));
    let dummies_before = world.dummies.len();
    world.run_until(retransmitted + world.path().rto + RTT);
    assert_eq!(world.dummies.len() - dummies_before, 63);
    world.run_until(retransmitted + world.path().rto + RTT * 3);
    assert_eq!((world.peach.window(), world.peach.snapshot().phase), (64.0, "congestion-avoidance"));
}

#[test]
fn a_partial_ack_deflates_and_stays() {
    let mut world = World::figure_7(Config::default());
    world.received.remove(&110);
    world.run_until(at(RTT / 30 * 29));
    let inflated = world.peach.window();
    world.run_until(at(RTT / 30 * 33));
    // Segments 100 to 110 are acknowledged: ten segments, nine of the inflation.
    assert_eq!((world.una, world.peach.window()), (110, inflated - 9.0));
    assert_eq!(world.peach.snapshot().phase, "rapid-recovery");
    world.run_until(at(RTT / 30 * 64));
    assert_eq!(world.peach.snapshot().phase, "congestion-avoidance");
    assert_eq!(world.fast_retransmits, 1);
}

#[test]
fn the_first_new_ack_may_end_the_recovery_as_in_the_paper() {
    let config = Config { recovery_ends: RecoveryEnds::FirstAck, ..Config::default() };
    let mut world = World::figure_7(config);
    world.received.remove(&110);
    world.run_until(at(RTT / 30 * 33));
    assert_eq!((world.peach.snapshot().phase, world.peach.window()), ("congestion-avoidance", 15.0));
}

#[test]
fn a_receiver_without_the_change_gets_reno() {
    let mut world = World::new(Config::default());
    world.peach.peer = Peer::Unknown;
    world.understands_dummies = false;
    world.transmit();
    world.run_until(at(RTT * 2));
    let dummies = world.dummies.len();
    assert!(world.peach.peer_is_plain());
    world.run_until(at(RTT * 12));
    assert_eq!(world.dummies.len(), dummies, "no dummy after the verdict");
    assert_eq!(world.fast_retransmits, 0, "duplicates that answer dummies are no loss");
    assert_eq!(world.peach.window(), 64.0);
    assert!(!world.peach.distrusts_duplicates());
}

#[test]
fn a_receiver_is_asked_twice_at_most() {
    let mut world = World::new(Config::default());
    world.peach.peer = Peer::Unknown;
    world.loses_dummy = |_| true;
    world.transmit();
    world.run_until(at(RTT * 4));
    assert_eq!(world.peach.peer, Peer::Asked { silent: 1, answers: Answers::OVER });
    world.unsent = 1;
    world.handle_timeout();
    world.run_until(world.now + RTT * 4);
    assert_eq!(world.peach.peer, Peer::Plain);
    assert_eq!(world.dummies.len(), 2 * 63);
}

#[test]
fn a_reply_settles_the_question() {
    let mut world = World::new(Config::default());
    world.peach.peer = Peer::Unknown;
    world.transmit();
    world.run_until(at(RTT + RTT / 64));
    assert_eq!(world.peach.peer, Peer::Replies);
    world.run_until(at(RTT * 3));
    assert_eq!(world.peach.window(), 64.0);
}

/// The fallback, and the ablation without Rapid Recovery: RFC 5681, whose window restarts from 15 + 3.
#[test]
fn fast_recovery_peaks_at_44() {
    let mut world = World::figure_7(Config { rapid_recovery: false, ..Config::default() });
    world.run_until(at(RTT / 30 * 29));
    assert_eq!((world.peach.window(), world.peach.snapshot().phase), (44.0, "fast-recovery"));
    world.run_until(at(RTT / 30 * 33));
    assert_eq!((world.peach.window(), world.dummies.len()), (15.0, 0));
}

#[test]
fn without_sudden_start_there_is_slow_start() {
    let mut world = World::start(Config { sudden_start: false, ..Config::default() });
    world.run_until(at(RTT * 3));
    assert_eq!((world.peach.window(), world.dummies.len()), (16.0, 0));
    assert_eq!(world.peach.snapshot().phase, "slow-start");
    world.run_until(at(RTT * 8));
    assert_eq!(world.peach.window(), 64.0);
}

#[test]
fn a_loss_stops_the_dummies_of_sudden_start() {
    let mut world = World::start(Config::default());
    world.run_until(at(RTT / 2));
    let dummies = world.dummies.len();
    world.peach.on_loss(&fixture::loss(4), &world.path());
    world.transmit();
    world.run_until(just_before(RTT));
    assert_eq!(world.dummies.len(), dummies);
}

#[test]
fn safe_mode_ignores_replies_to_an_earlier_episode() {
    let stale = |config| {
        let mut world = World::figure_7(config);
        world.run_until(at(RTT / 30 * 33));
        let tag = ProbeTag(world.peach.epoch.wrapping_sub(1));
        world.peach.wdsn = 0;
        world.peach.on_probe_acked(&ProbeReply { tag, acked: 0, phase: Phase::Open }, &world.path());
        world.peach.window()
    };
    assert_eq!(stale(safe()), 15.0);
    assert_eq!(stale(Config::default()), 16.0);
}

#[test]
fn safe_mode_sends_no_more_dummies_than_data_is_left() {
    for (unsent, max_probes, expected) in [(50, 1024, 49), (1, 1024, 0), (500, 1024, 63), (500, 20, 20)] {
        let mut world = World::new(Config { max_probes, ..safe() });
        world.unsent = unsent;
        world.transmit();
        world.run_until(at(RTT * 2));
        assert_eq!(world.dummies.len(), expected, "{unsent} segments, at most {max_probes}");
    }
}

/// A proxy holds one segment of the server at the start, and receives the others during it.
#[test]
fn safe_mode_sends_dummies_for_data_that_come_while_the_start_lasts() {
    let mut world = World::new(safe());
    world.unsent = 1;
    world.transmit();
    world.run_until(at(RTT / 4));
    assert_eq!(world.dummies.len(), 0);
    world.unsent = 500;
    world.run_until(at(RTT));
    assert_eq!(world.dummies.len(), 47, "63 less the 16 of the first quarter");
}

#[test]
fn safe_mode_takes_the_flight_for_the_window() {
    let after = |config| {
        let mut world = World::figure_7(config);
        world.peach.on_loss(&fixture::loss(20), &world.path());
        world.peach.window()
    };
    assert_eq!(after(safe()), 10.0);
    assert_eq!(after(Config::default()), 15.0);
}

#[test]
fn safe_mode_spaces_the_burst_at_the_end_of_a_recovery() {
    let mut world = World::figure_7(safe());
    world.run_until(at(RTT / 30 * 33));
    let rate = world.peach.spacing().rate().unwrap().bytes_per_s();
    let expected = 2.0 * 15.0 * 1000.0 / world.rtt.as_secs_f64();
    assert!((rate - expected).abs() < 1.0, "twice the window per round trip: {rate}");
    world.run_until(at(RTT / 30 * 41));
    assert_eq!(world.peach.spacing().rate(), None, "a reply opened the window");
}

#[test]
fn an_idle_sender_starts_suddenly_if_the_peer_replies() {
    let mut world = World::figure_7(Config::default());
    world.peach.on_event(ConnectionEvent::Idle { restart: 4.0 }, &world.path());
    assert_eq!((world.peach.window(), world.peach.snapshot().phase), (1.0, "sudden-start"));
    let mut plain = World::figure_7(Config::default());
    plain.peach.peer = Peer::Plain;
    plain.peach.on_event(ConnectionEvent::Idle { restart: 4.0 }, &plain.path());
    assert_eq!(plain.peach.window(), 4.0);
}

#[test]
fn a_spurious_recovery_is_taken_back_and_its_dummies_count_for_nothing() {
    let mut world = World::figure_7(Config::default());
    world.run_until(at(RTT / 30 * 10));
    world.peach.on_undo(Undo::Reduction, &world.path());
    assert_eq!((world.peach.window(), world.peach.snapshot().phase), (30.0, "congestion-avoidance"));
    let reply = ProbeReply { tag: ProbeTag(world.peach.epoch), acked: 0, phase: Phase::Open };
    for _ in 0..30 {
        world.peach.on_probe_acked(&reply, &world.path());
    }
    assert_eq!(world.peach.window(), 30.0);
}

#[test]
fn a_mark_halves_without_dummies() {
    let mut world = World::figure_7(Config::default());
    let mark = Loss { cause: Cause::Mark, lost: 0, ..fixture::loss(30) };
    world.peach.on_loss(&mark, &world.path());
    assert_eq!((world.peach.window(), world.peach.snapshot().phase), (15.0, "congestion-avoidance"));
    assert_eq!(
        world.peach.next_probe(&ProbeMoment { data_sent: 0, sent_newest: false }, &world.path()),
        None
    );
}

#[test]
fn a_loss_without_an_episode_only_halves() {
    let mut world = World::figure_7(Config::default());
    world.peach.on_loss(&fixture::loss(30), &world.path());
    world.peach.on_ack(&fixture::ack(0), &world.path());
    assert_eq!((world.peach.window(), world.peach.snapshot().phase), (15.0, "congestion-avoidance"));
}

/// Acknowledges 90 segments per round-trip time in `rtts_ms`, with 30 always in flight. Returns the window after each time.
fn windows_over(avoidance: Avoidance, rtts_ms: &[u64]) -> Vec<f64> {
    let mut peach = World::new(Config { avoidance, ..Config::default() }).peach;
    (peach.state, peach.cwnd) = (State::Avoidance, 30.0);
    // One round trip after the handshake.
    let (mut now, mut acked) = (at(RTT), 0);
    let mut windows = Vec::new();
    for rtt in rtts_ms.iter().map(|millis| Duration::from_millis(*millis)) {
        for _ in 0..90 {
            (now, acked) = (now + rtt / 30, acked + 1);
            let snd_una = 1 + acked * MSS;
            let path = Path {
                now,
                snd_una,
                snd_nxt: snd_una + 29 * MSS,
                outstanding: 29,
                receive_window: RWND,
                ..fixture::path()
            };
            peach.on_ack(&Ack { rtt: Some(rtt), ..fixture::ack(1) }, &path);
        }
        windows.push(peach.cwnd);
    }
    windows
}

/// Without a queue the window grows by one per round trip. At 640 ms, 30 (1 - 550/640) = 4.2 segments are queued, more than
/// three: the window shrinks by one. At 600 ms it is 2.5. Each decision holds for the next round trip: the first at 640 ms still
/// grows, and the first after them shrinks.
#[test]
fn vegas_as_avoidance_holds_the_window_by_the_queue() {
    let [empty, full, right] = windows_over(Avoidance::Vegas, &[550, 640, 600])[..] else { unreachable!() };
    assert!((32.0..=33.1).contains(&empty), "{empty}");
    assert!((empty - 1.2..=empty - 1.0).contains(&full), "{full} after {empty}");
    assert!((full - 1.0..=full).contains(&right), "{right} after {full}");
    let reno = windows_over(Avoidance::Reno, &[550, 640, 600]);
    assert!(reno.is_sorted() && reno[2] > 36.0, "{reno:?}");
}
