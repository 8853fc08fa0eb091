//! Sending end of STP: sends data and polls, and repairs the packets reported missing.

use std::collections::{BTreeSet, VecDeque};

use bentpipe_base::{Duration, Instant, Rate};

use super::{Options, Pdu};
use crate::outbox::{Fragment, Message, Outbox};
use crate::{Config, Progress};

/// Maximum number of data packets between two polls (MaxPD), unless that exceeds three polls per round trip.
const MAX_BETWEEN_POLLS: f64 = 25.0;
/// Poll interval without a round-trip time, and as a fraction of the round-trip time (STP: several polls per round trip; this
/// value is chosen here).
const POLL_WITHOUT_RTT: Duration = Duration::from_millis(750);
const POLL_LEAST: Duration = Duration::from_millis(50);
const POLLS_PER_RTT: u64 = 3;
/// Timer and number of attempts to open a connection (Timer_CC, MaxCC).
const OPEN_AGAIN: Duration = Duration::from_secs(1);
const OPEN_ATTEMPTS: u32 = 4;
/// Time of silence after which a connection counts as down (Timer_NO-RESPONSE). It is at least four round trips plus two
/// seconds.
const NO_RESPONSE: Duration = Duration::from_secs(7);
/// Poll interval of a connection that survives its silence (Timer_KEEP-ALIVE).
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// A sent data packet.
#[derive(Clone, Copy, Debug)]
struct Sent {
    fragment: Fragment,
    /// Number of the last poll before it.
    poll: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// To be opened, again at this time.
    Opening {
        attempts: u32,
        at: Instant,
    },
    Open,
    /// To be released, again at this time.
    Closing {
        attempts: u32,
        at: Instant,
    },
    Closed,
    Down(&'static str),
}

/// The sending end.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    options: Options,
    state: State,
    outbox: Outbox,
    /// VT(A): lowest number not acknowledged; `sent` holds the packets from it on.
    base: u64,
    sent: VecDeque<Sent>,
    /// VT(MS).
    limit: u64,
    /// Packets reported missing and not retransmitted since.
    missing: BTreeSet<u64>,
    /// VT(PS), and the data packets since.
    poll: u64,
    since_poll: u32,
    poll_at: Instant,
    cwnd: f64,
    ssthresh: f64,
    /// Time before which there is no second reduction.
    recovered_at: Instant,
    /// Time of the last arrival, or of the last idle time.
    heard_at: Instant,
    /// True if the peer is silent.
    silent: bool,
    /// Number of the last poll sent before the silence ended.
    waited: u64,
    /// True if no further data will be written.
    finished: bool,
    /// Interval that spreads new packets over the time to the next report.
    spacing: Duration,
    next_new_at: Instant,
    progress: Progress,
}

impl Sender {
    /// Makes an end that opens a connection at the first data.
    pub fn new(config: Config, options: Options) -> Self {
        Self {
            config,
            options,
            state: State::Opening { attempts: 0, at: Instant::FAR_FUTURE },
            outbox: Outbox::default(),
            base: 0,
            sent: VecDeque::new(),
            limit: 0,
            missing: BTreeSet::new(),
            poll: 0,
            since_poll: 0,
            poll_at: Instant::FAR_FUTURE,
            cwnd: f64::from(config.initial_window),
            ssthresh: f64::INFINITY,
            recovered_at: Instant::ZERO,
            heard_at: Instant::ZERO,
            silent: false,
            waited: 0,
            finished: false,
            spacing: Duration::ZERO,
            next_new_at: Instant::ZERO,
            progress: Progress::default(),
        }
    }

    pub(crate) fn write(&mut self, now: Instant, message: Message) {
        self.outbox.push(message);
        if self.state == (State::Opening { attempts: 0, at: Instant::FAR_FUTURE }) {
            self.state = State::Opening { attempts: 0, at: now };
        }
    }

    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    pub(crate) fn progress(&self) -> Progress {
        let failed = if let State::Down(reason) = self.state { Some(reason) } else { None };
        let all_acknowledged = self.sent.is_empty() && self.outbox.is_empty();
        Progress { failed, all_acknowledged, ..self.progress }
    }

    fn next(&self) -> u64 {
        self.base + self.sent.len() as u64
    }

    /// Returns the number of acknowledged data packets.
    pub(crate) fn acknowledged_packets(&self) -> u64 {
        self.base
    }

    /// True if the receiver's window blocks pending data; answers to polls report new room.
    fn lacks_credit(&self) -> bool {
        !self.outbox.is_empty() && self.next() >= self.limit
    }

    fn poll_period(&self) -> Duration {
        if self.silent {
            return KEEP_ALIVE;
        }
        self.progress.srtt.map_or(POLL_WITHOUT_RTT, |srtt| (srtt / POLLS_PER_RTT).max(POLL_LEAST))
    }

    fn gives_up_at(&self) -> Instant {
        if self.silent {
            return Instant::FAR_FUTURE;
        }
        let srtt = self.progress.srtt.unwrap_or(Duration::ZERO);
        self.heard_at + NO_RESPONSE.max(srtt * 4 + Duration::from_secs(2))
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        match self.state {
            State::Opening { at, .. } | State::Closing { at, .. } => at,
            State::Down(_) | State::Closed => Instant::FAR_FUTURE,
            State::Open => {
                let leaves = self.has_room() || !self.missing.is_empty();
                let new = if leaves { self.next_new_at } else { Instant::FAR_FUTURE };
                let waiting = match (self.sent.is_empty(), self.lacks_credit()) {
                    (false, _) => self.poll_at.min(self.gives_up_at()),
                    (true, true) => self.poll_at,
                    (true, false) => Instant::FAR_FUTURE,
                };
                new.min(waiting)
            }
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Opening { attempts: OPEN_ATTEMPTS.., at }
                if at <= now && !self.options.outage_tolerant =>
            {
                self.state = State::Down("no answer");
            }
            State::Closing { attempts: OPEN_ATTEMPTS, at } if at <= now => self.state = State::Closed,
            State::Open if !self.sent.is_empty() && self.gives_up_at() <= now => {
                self.progress.timeouts += 1;
                if self.options.outage_tolerant {
                    self.silent = true;
                    self.ssthresh = (self.cwnd / 2.0).max(2.0);
                    self.cwnd = 1.0;
                    self.poll_at = now;
                } else {
                    self.state = State::Down("no response");
                }
            }
            _ => {}
        }
    }

    pub(crate) fn handle(&mut self, now: Instant, pdu: &Pdu) {
        match (self.state, pdu) {
            (State::Opening { .. }, Pdu::BeginAck { limit }) => {
                (self.state, self.limit, self.heard_at) = (State::Open, *limit, now);
            }
            (State::Closing { .. }, Pdu::EndAck) => self.state = State::Closed,
            (State::Open, Pdu::Gap { base, limit, gap }) => {
                self.hear(now);
                self.acknowledge(*base, *limit);
                self.miss(now, *gap, u64::MAX);
            }
            (State::Open, Pdu::Status { base, limit, poll, echo, gaps }) => {
                self.hear(now);
                if *poll > self.waited {
                    self.sample(now.since(*echo));
                }
                let acknowledged = self.acknowledge(*base, *limit);
                let lost = gaps.iter().filter(|gap| self.miss(now, **gap, *poll)).count();
                if lost == 0 {
                    self.grow(acknowledged as f64);
                }
                if self.options.rate.is_none() {
                    // Spreads the allowed packets until the next report.
                    let room = (self.cwnd as u64).saturating_sub(self.sent.len() as u64).max(1);
                    self.spacing = self.poll_period() / room;
                    self.next_new_at = now;
                }
            }
            _ => {}
        }
        let is_over = self.finished && self.sent.is_empty() && self.outbox.is_empty();
        if is_over && self.state == State::Open {
            self.state = State::Closing { attempts: 0, at: now };
        }
    }

    fn hear(&mut self, now: Instant) {
        self.heard_at = now;
        if self.silent {
            self.silent = false;
            // Losses during the outage are not new congestion. Polls that waited for its end yield no round-trip time.
            self.waited = self.poll;
            self.recovered_at = now + self.progress.srtt.unwrap_or(POLL_WITHOUT_RTT);
            self.poll_at = self.poll_at.min(now + self.poll_period());
        }
    }

    fn sample(&mut self, rtt: Duration) {
        let srtt = self.progress.srtt.map_or(rtt, |srtt| srtt * 7 / 8 + rtt / 8);
        self.progress.srtt = Some(srtt);
    }

    /// Handles the acknowledgement of all packets below `base`. Returns their number.
    fn acknowledge(&mut self, base: u64, limit: u64) -> u64 {
        let acknowledged = base.min(self.next()).saturating_sub(self.base);
        self.sent.drain(..acknowledged as usize);
        self.base += acknowledged;
        self.missing = self.missing.split_off(&self.base);
        self.limit = self.limit.max(limit);
        acknowledged
    }

    /// Handles a reported gap: packets sent before the answered poll are retransmitted. Returns true if there are any.
    fn miss(&mut self, now: Instant, gap: (u64, u64), poll: u64) -> bool {
        let range = gap.0.max(self.base)..gap.1.min(self.next());
        let before = self.missing.len();
        for number in range {
            if self.sent[(number - self.base) as usize].poll < poll {
                self.missing.insert(number);
            }
        }
        let lost = self.missing.len() > before;
        if lost && now >= self.recovered_at && self.options.rate.is_none() {
            self.ssthresh = (self.cwnd / 2.0).max(2.0);
            self.cwnd = self.ssthresh;
            self.recovered_at = now + self.progress.srtt.unwrap_or(POLL_WITHOUT_RTT);
        }
        lost
    }

    /// Grows the window by TCP's law for newly acknowledged packets.
    fn grow(&mut self, acknowledged: f64) {
        // An unused window does not grow.
        if self.outbox.is_empty() {
            return;
        }
        self.cwnd += if self.cwnd < self.ssthresh { acknowledged } else { acknowledged / self.cwnd };
        self.cwnd = self.cwnd.min(f64::from(self.config.window));
    }

    fn has_room(&self) -> bool {
        let fits = self.options.rate.is_some() || (self.sent.len() as f64) < self.cwnd.max(1.0);
        !self.outbox.is_empty() && self.next() < self.limit && fits && !self.silent
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Pdu> {
        match &mut self.state {
            State::Down(_) | State::Closed => None,
            State::Opening { attempts, at } => {
                if *at > now || (*attempts >= OPEN_ATTEMPTS && !self.options.outage_tolerant) {
                    return None;
                }
                (*attempts, *at) = (*attempts + 1, now + OPEN_AGAIN);
                self.count_control(Pdu::Begin)
            }
            State::Closing { attempts, at } => {
                if *at > now || *attempts == OPEN_ATTEMPTS {
                    return None;
                }
                (*attempts, *at) = (*attempts + 1, now + OPEN_AGAIN);
                self.count_control(Pdu::End)
            }
            State::Open => self.repeat(now).or_else(|| self.ask(now)).or_else(|| self.send_new(now)),
        }
    }

    fn repeat(&mut self, now: Instant) -> Option<Pdu> {
        if self.options.rate.is_some() && self.next_new_at > now {
            return None;
        }
        let number = self.missing.pop_first()?;
        let sent = &mut self.sent[(number - self.base) as usize];
        sent.poll = self.poll;
        let fragment = sent.fragment;
        self.since_poll += 1;
        self.progress.sent_packets += 1;
        self.progress.repeated_packets += 1;
        let pdu = Pdu::Data { number, fragment };
        if let Some(rate) = self.options.rate {
            self.next_new_at = now + rate.time_for(u64::from(pdu.bytes()));
        }
        Some(pdu)
    }

    fn ask(&mut self, now: Instant) -> Option<Pdu> {
        let many = f64::from(self.since_poll) >= MAX_BETWEEN_POLLS.max(self.cwnd / POLLS_PER_RTT as f64);
        // A poll directly follows the initial window, because no round-trip time is known.
        let first = self.poll == 0 && !self.sent.is_empty() && !self.has_room();
        let due = (!self.sent.is_empty() || self.lacks_credit()) && self.poll_at <= now;
        if !(many || first || due) {
            return None;
        }
        (self.poll, self.since_poll, self.poll_at) = (self.poll + 1, 0, now + self.poll_period());
        self.count_control(Pdu::Poll { poll: self.poll, next: self.next(), stamp: now })
    }

    fn send_new(&mut self, now: Instant) -> Option<Pdu> {
        if !self.has_room() || self.next_new_at > now {
            return None;
        }
        let fragment = self.outbox.fragment(self.config.packet_bytes)?;
        if self.sent.is_empty() {
            self.heard_at = now;
            self.poll_at = now + self.poll_period();
        }
        let number = self.next();
        self.sent.push_back(Sent { fragment, poll: self.poll });
        self.since_poll += 1;
        self.progress.sent_packets += 1;
        let pdu = Pdu::Data { number, fragment };
        let takes = |rate: Rate| rate.time_for(u64::from(pdu.bytes()));
        self.next_new_at = now + self.options.rate.map_or(self.spacing, takes);
        Some(pdu)
    }

    fn count_control(&mut self, pdu: Pdu) -> Option<Pdu> {
        self.progress.control_packets += 1;
        self.progress.control_bytes += u64::from(pdu.bytes());
        Some(pdu)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Receiver;
    use super::*;

    const CONFIG: Config = Config { packet_bytes: 1000, initial_window: 10, window: 128 };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn number(pdu: &Pdu) -> Option<u64> {
        if let Pdu::Data { number, .. } = pdu { Some(*number) } else { None }
    }

    /// Makes an open connection with ten packets sent.
    fn begun() -> (Sender, Receiver, Vec<Pdu>) {
        let (mut sender, mut receiver) = (Sender::new(CONFIG, Options::default()), Receiver::new(CONFIG));
        sender.write(at(0), Message { number: 0, stream: 0, bytes: 10_000 });
        receiver.handle(&sender.poll_transmit(at(0)).unwrap());
        sender.handle(at(500), &receiver.poll_transmit().unwrap());
        let pdus = std::iter::from_fn(|| sender.poll_transmit(at(500))).collect();
        (sender, receiver, pdus)
    }

    #[test]
    fn a_gap_reported_twice_is_repeated_once() {
        let (mut sender, mut receiver, pdus) = begun();
        let (data, poll): (Vec<_>, Vec<_>) = pdus.into_iter().partition(|pdu| number(pdu).is_some());
        assert_eq!((data.len(), poll.len()), (10, 1));
        for pdu in data.iter().filter(|pdu| !matches!(number(pdu), Some(4 | 5))) {
            receiver.handle(pdu);
        }
        let report = receiver.poll_transmit().unwrap();
        assert!(matches!(report, Pdu::Gap { base: 4, gap: (4, 6), .. }), "{report:?}");
        receiver.handle(&poll[0]);
        let status = receiver.poll_transmit().unwrap();
        assert!(matches!(&status, Pdu::Status { gaps, .. } if *gaps == [(4, 6)]), "{status:?}");
        // The report arrives first; the status answers a poll sent before the retransmissions.
        sender.handle(at(1000), &report);
        let repeated: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(at(1000))).collect();
        assert_eq!(repeated.iter().filter_map(number).collect::<Vec<_>>(), [4, 5]);
        sender.handle(at(1001), &status);
        assert_eq!(sender.poll_transmit(at(1001)).as_ref().and_then(number), None);
        // The retransmissions are also lost: the next status lists them again.
        let mut polls = std::iter::from_fn(|| sender.poll_transmit(at(1800)));
        let second = polls.find(|pdu| matches!(pdu, Pdu::Poll { .. })).unwrap();
        receiver.handle(&second);
        sender.handle(at(2300), &receiver.poll_transmit().unwrap());
        let again: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(at(2300))).collect();
        assert_eq!(again.iter().filter_map(number).collect::<Vec<_>>(), [4, 5]);
        again.iter().for_each(|pdu| receiver.handle(pdu));
        assert_eq!(std::iter::from_fn(|| receiver.poll_delivery()).count(), 10);
    }

    #[test]
    fn a_lost_tail_is_found_by_a_poll() {
        let (mut sender, mut receiver, pdus) = begun();
        pdus.iter().filter(|pdu| number(pdu) != Some(9)).for_each(|pdu| receiver.handle(pdu));
        sender.handle(at(1000), &receiver.poll_transmit().unwrap());
        assert_eq!(sender.poll_transmit(at(1000)).as_ref().and_then(number), Some(9));
        assert!(!sender.progress().all_acknowledged);
    }

    #[test]
    fn silence_ends_the_connection() {
        let (mut sender, ..) = begun();
        assert_eq!(sender.gives_up_at(), at(7500));
        sender.handle_timeout(at(7499));
        assert_eq!(sender.progress().failed, None);
        sender.handle_timeout(at(7500));
        assert_eq!(sender.progress().failed, Some("no response"));
        assert_eq!((sender.next_timeout(), sender.poll_transmit(at(8000))), (Instant::FAR_FUTURE, None));
        let mut unheard = Sender::new(CONFIG, Options::default());
        unheard.write(at(0), Message { number: 0, stream: 0, bytes: 1 });
        for second in 0..4 {
            assert_eq!(unheard.poll_transmit(at(1000 * second)), Some(Pdu::Begin));
        }
        unheard.handle_timeout(at(4000));
        assert_eq!(unheard.progress().failed, Some("no answer"));
    }

    #[test]
    fn what_is_finished_is_released() {
        let (mut sender, mut receiver, pdus) = begun();
        sender.finish();
        pdus.iter().for_each(|pdu| receiver.handle(pdu));
        sender.handle(at(1000), &receiver.poll_transmit().unwrap());
        assert!(sender.progress().all_acknowledged);
        assert_eq!(sender.poll_transmit(at(1000)), Some(Pdu::End));
        // The first poll is lost, the second is answered.
        assert_eq!((sender.next_timeout(), sender.poll_transmit(at(1999))), (at(2000), None));
        receiver.handle(&sender.poll_transmit(at(2000)).unwrap());
        sender.handle(at(2500), &receiver.poll_transmit().unwrap());
        assert_eq!((sender.state, sender.next_timeout()), (State::Closed, Instant::FAR_FUTURE));
    }

    #[test]
    fn at_a_rate_losses_slow_nothing_down() {
        let options = Options { rate: Some(Rate::from_bps(1_028 * 8 * 100)), ..Options::default() };
        let mut sender = Sender::new(CONFIG, options);
        sender.write(at(0), Message { number: 0, stream: 0, bytes: 1_000_000 });
        sender.poll_transmit(at(0)).unwrap();
        sender.handle(at(500), &Pdu::BeginAck { limit: 128 });
        // One packet of 1028 bytes every 10 ms.
        let mut sent = Vec::new();
        let mut data = |sender: &mut Sender, ms| {
            let pdus = std::iter::from_fn(|| sender.poll_transmit(at(ms)));
            sent.extend(pdus.filter_map(|pdu| number(&pdu)).map(|number| (ms, number)));
        };
        for ms in 500..550 {
            data(&mut sender, ms);
        }
        let (base, limit, gap) = (0, 128, (0, 2));
        sender.handle(at(550), &Pdu::Gap { base, limit, gap });
        for ms in 550..590 {
            data(&mut sender, ms);
        }
        let expected =
            [(500, 0), (510, 1), (520, 2), (530, 3), (540, 4), (550, 0), (560, 1), (570, 5), (580, 6)];
        assert_eq!(sent, expected);
    }

    #[test]
    fn an_outage_is_outlasted_by_polls_and_begins_with_one_packet() {
        let options = Options { outage_tolerant: true, ..Options::default() };
        let (mut sender, mut receiver) = (Sender::new(CONFIG, options), Receiver::new(CONFIG));
        sender.write(at(0), Message { number: 0, stream: 0, bytes: 100_000 });
        receiver.handle(&sender.poll_transmit(at(0)).unwrap());
        sender.handle(at(500), &receiver.poll_transmit().unwrap());
        let pdus: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(at(500))).collect();
        sender.handle_timeout(at(7500));
        assert_eq!((sender.progress().failed, sender.cwnd), (None, 1.0));
        let polls = [7500, 9499, 9500].map(|ms| sender.poll_transmit(at(ms)).is_some());
        assert_eq!(polls, [true, false, true]);
        pdus.iter().filter(|pdu| number(pdu).is_some()).for_each(|pdu| receiver.handle(pdu));
        let (poll, stamp) = (sender.poll, at(9500));
        receiver.handle(&Pdu::Poll { poll, next: 10, stamp });
        sender.handle(at(10_000), &receiver.poll_transmit().unwrap());
        let pdus: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(at(10_000))).collect();
        assert_eq!(pdus.iter().filter_map(number).collect::<Vec<_>>(), [10]);
    }

    #[test]
    fn reports_are_small() {
        let fragment = Fragment { message: 0, stream: 0, bytes: 1000 };
        assert_eq!(Pdu::Data { number: 0, fragment }.bytes(), 1028);
        let status = Pdu::Status { base: 0, limit: 0, poll: 0, echo: at(0), gaps: vec![(1, 2)] };
        assert_eq!(status.bytes(), 48);
    }
}
