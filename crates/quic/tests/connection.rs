//! Two ends with a path of constant delay between them.

use std::sync::Arc;
use std::time;

use bentpipe_base::{Duration, Instant};
use bentpipe_cc::Algorithm;
use bentpipe_cc::packets::{PacketControl, Settings};
use bentpipe_quic::{Config, Control, End, Factory, LEAST_PAYLOAD, Side};
use bentpipe_transports::Message;
use bentpipe_transports::datagram::{Datagram, DatagramEnd, Options, Reply, Request};
use noq_proto::congestion::ControllerFactory;

const DELAY: Duration = Duration::from_millis(275);

fn config(seed: u64, resumes: bool) -> Config {
    Config {
        control: Control::StackCubic,
        initial_window: 12_000,
        segment: 1448,
        payload: 1472,
        receive_window: 1 << 20,
        options: Options { resumes, ..Options::default() },
        seed,
    }
}

/// Two ends, the packets between them, and the log of all that left: the time, the side and the bytes.
struct Pair {
    ends: [End; 2],
    flying: Vec<(Instant, usize, Datagram)>,
    log: Vec<(Instant, usize, Datagram)>,
    now: Instant,
}

impl Pair {
    fn new(config: &Config) -> Self {
        let ends = [Side::Client, Side::Server].map(|side| End::new(side, config));
        Self { ends, flying: Vec::new(), log: Vec::new(), now: Instant::ZERO }
    }

    fn transmit(&mut self) {
        for (side, end) in self.ends.iter_mut().enumerate() {
            while let Some(datagram) = end.poll_transmit(self.now) {
                self.flying.push((self.now + DELAY, 1 - side, datagram.clone()));
                self.log.push((self.now, side, datagram));
            }
        }
    }

    /// Runs until a time; the path loses every packet from `dead_from` on.
    fn run(&mut self, until: Instant, dead_from: Instant) {
        self.transmit();
        loop {
            let arrival = self.flying.first().map_or(Instant::FAR_FUTURE, |(at, ..)| *at);
            let timer = self.ends.iter().map(|end| end.next_timeout()).min().unwrap();
            if arrival.min(timer) > until {
                self.now = until;
                return;
            }
            self.now = arrival.min(timer);
            if arrival == self.now {
                let (_, side, datagram) = self.flying.remove(0);
                if self.now < dead_from {
                    self.ends[side].handle(self.now, datagram);
                }
            } else {
                for end in self.ends.iter_mut().filter(|end| end.next_timeout() <= timer) {
                    end.handle_timeout(timer);
                }
            }
            self.transmit();
        }
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Sends a message of `bytes` and returns the time of its last byte.
fn delivered(pair: &mut Pair, bytes: u64) -> Option<Instant> {
    pair.ends[0].write(Instant::ZERO, Message { number: 0, stream: 0, bytes });
    let mut arrived = 0;
    for millis in (0..20_000).step_by(5) {
        pair.run(at(millis), Instant::FAR_FUTURE);
        arrived += std::iter::from_fn(|| pair.ends[1].poll_delivery())
            .map(|part| u64::from(part.bytes))
            .sum::<u64>();
        if arrived == bytes {
            return Some(at(millis));
        }
    }
    None
}

#[test]
fn the_handshake_has_the_round_trips_and_sizes_of_tls() {
    let mut pair = Pair::new(&config(1, false));
    // One round trip, then half of one for the data. The stack paces the four packets of the server's flight, 27 ms apart.
    let arrival = delivered(&mut pair, 1_000).unwrap();
    assert!((at(825)..at(825 + 4 * 27)).contains(&arrival), "{arrival:?}");
    assert_eq!(pair.log[0].2.bytes.len(), usize::from(LEAST_PAYLOAD));
    let flight = pair.log.iter().filter(|(left, side, _)| *side == 1 && *left < at(500));
    let flight: usize = flight.map(|(.., datagram)| datagram.bytes.len()).sum();
    // The server may send three times what it received before the client has proved its address.
    assert!((2_500..=3 * usize::from(LEAST_PAYLOAD)).contains(&flight), "{flight}");
}

#[test]
fn a_resumed_connection_carries_data_in_the_first_flight() {
    let mut pair = Pair::new(&config(1, true));
    let arrival = delivered(&mut pair, 1_000).unwrap();
    assert!((at(275)..at(275 + 2 * 27)).contains(&arrival), "{arrival:?}");
}

#[test]
fn the_seed_decides_every_byte() {
    let log = |seed| {
        let mut pair = Pair::new(&config(seed, false));
        delivered(&mut pair, 100_000).unwrap();
        pair.log
    };
    assert_eq!(log(1), log(1));
    assert_ne!(log(1)[0].2.bytes, log(2)[0].2.bytes);
}

#[test]
fn a_reply_has_the_size_that_its_request_asks_for() {
    let mut pair = Pair::new(&config(1, false));
    for (number, reply) in [(7, 20_000), (9, 1)] {
        pair.ends[0].ask(Instant::ZERO, Request { number, bytes: 300, reply });
    }
    pair.run(at(5_000), Instant::FAR_FUTURE);
    let mut sums = [0; 10];
    while let Some(reply) = pair.ends[0].poll_reply() {
        let Reply::Arrived { number, bytes } = reply else { panic!("{reply:?}") };
        sums[number as usize] += bytes;
    }
    assert_eq!((sums[7], sums[9]), (20_000, 1));
}

#[test]
fn a_message_that_dies_with_its_connection_is_not_acknowledged() {
    let mut pair = Pair::new(&config(1, false));
    pair.ends[0].write(Instant::ZERO, Message { number: 0, stream: 0, bytes: 100_000 });
    pair.run(at(60_000), at(900));
    let progress = pair.ends[0].progress();
    assert_eq!((progress.failed, progress.all_acknowledged), (Some("timed out"), false));
}

#[test]
fn requests_fail_with_their_connection_and_the_next_one_opens_another() {
    let mut pair = Pair::new(&config(1, false));
    pair.ends[0].ask(Instant::ZERO, Request { number: 3, bytes: 300, reply: 100_000 });
    pair.run(at(60_000), at(900));
    let failed = std::iter::from_fn(|| pair.ends[0].poll_reply()).last();
    assert_eq!(failed, Some(Reply::Failed { number: 3 }));
    let now = at(60_000);
    pair.ends[0].ask(now, Request { number: 4, bytes: 300, reply: 10 });
    pair.run(at(70_000), Instant::FAR_FUTURE);
    let replies: Vec<_> = std::iter::from_fn(|| pair.ends[0].poll_reply()).collect();
    assert_eq!(replies, [Reply::Arrived { number: 4, bytes: 10 }]);
}

#[test]
fn the_controller_has_the_window_and_the_rate_of_its_algorithm() {
    for name in ["cubic", "hybla", "bbr3", "zenith"] {
        let algorithm = Algorithm::from_name(name).unwrap();
        let settings = Settings { datagram_bytes: 1_200, initial_window: 20, ..Settings::default() };
        let mut model = PacketControl::new(&algorithm, &settings).unwrap();
        let factory = Arc::new(Factory::new(algorithm, settings).unwrap());
        let begin = time::Instant::now();
        let mut controller = factory.build(begin, 1_200);
        assert_eq!(controller.window(), 24_000);
        let instant = |time: time::Instant| at(time.duration_since(begin).as_millis() as u64);
        for number in 0..20 {
            controller.on_packet_sent(begin, 1_200, number);
            model.on_sent(instant(begin), number, 1_200).unwrap();
        }
        let later = begin + time::Duration::from_millis(600);
        // The stack reports neither the twelve packets whose keys it discarded nor their loss.
        controller.on_packet_lost(1_200, 2, later);
        model.on_lost(2);
        controller.on_congestion_event(later, begin, false, false, 1_200, 2);
        model.end_losses(instant(later));
        controller.on_end_acks(later, 7 * 1_200, false, None);
        (0..13).filter(|number| *number != 2).for_each(|number| model.on_discarded(number));
        model.established(instant(later), None);
        model.end_ack(instant(later), Default::default());
        assert_eq!(controller.window(), model.window(), "{name}");
        let rate = model.pacing_rate().map(|rate| (rate.bps() / 8).max(1));
        assert_eq!(controller.metrics().pacing_rate, rate, "{name}");
    }
}

#[test]
fn each_end_tells_the_state_of_its_own_algorithm() {
    let factory = Factory::new(Algorithm::from_name("hybla").unwrap(), Settings::default()).unwrap();
    let mut pair = Pair::new(&Config { control: Control::Own(Box::new(factory)), ..config(1, false) });
    delivered(&mut pair, 1_000_000).unwrap();
    let [sender, receiver] = pair.ends.each_mut().map(|end| end.take_window().unwrap().ssthresh);
    assert_ne!(sender, receiver, "each has measured its own first packets");
}

#[test]
fn an_algorithm_that_needs_more_than_packet_numbers_is_refused() {
    let refused = Factory::new(Algorithm::from_name("peach").unwrap(), Settings::default()).unwrap_err();
    assert_eq!(refused.algorithm, "peach");
}

#[test]
fn a_late_copy_of_the_first_packet_begins_no_other_connection() {
    let mut pair = Pair::new(&config(1, false));
    pair.ends[0].write(Instant::ZERO, Message { number: 0, stream: 0, bytes: 2_000_000 });
    pair.run(at(5_000), Instant::FAR_FUTURE);
    let first = pair.log[0].2.clone();
    pair.ends[1].handle(at(5_000), first);
    pair.run(at(30_000), Instant::FAR_FUTURE);
    let arrived: u32 = std::iter::from_fn(|| pair.ends[1].poll_delivery()).map(|part| part.bytes).sum();
    assert_eq!(arrived, 2_000_000);
}
