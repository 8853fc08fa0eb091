//! Logical processes, and packets followed ahead of time, change nothing: results and observations are those of the same world executed
//! event by event. Observing changes nothing either.

mod common;

use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bentpipe_base::{Duration, Instant, Rate, Rng};
use bentpipe_cc::{Algorithm, CongestionControl, Custom, Start};
use bentpipe_net::{Limit, LinkConfig, LossConfig, LossModel, QueueConfig, RedConfig, Schedule};
use bentpipe_outcome::{LinkEvent, Observer, Passing};
use bentpipe_scenario::{FlowGroup, Scenario, Traffic, Transport, builtin};
use bentpipe_sim::{RunOptions, RunResult, run, run_observed};
use bentpipe_tcp::{Config, DelayedAck, Recovery};
use bentpipe_trace::Event;
use bentpipe_traffic::on_off::{self, Spacing};
use common::{Dumbbell, drop_tail, flows, hosts, links, ms, paper_tcp, router, under_satellites};

fn pick<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

fn random_tcp(rng: &mut Rng) -> Config {
    paper_tcp(pick(rng, &[4, 16, 64])).with(|config| {
        config.sender.recovery = pick(rng, &[Recovery::Sack, Recovery::NewReno, Recovery::Rack]);
        config.receiver.delayed_ack = pick(rng, &[DelayedAck::Off, Config::default().receiver.delayed_ack]);
        config.timestamps = rng.chance(0.5);
    })
}

fn random_flows(rng: &mut Rng, number: u32) -> FlowGroup {
    let bursts = on_off::Config { rate: Rate::from_mbps(1), ..on_off::Config::default() };
    let traffic = match rng.below(7) {
        0..=2 => Traffic::Bulk,
        3 | 4 => Traffic::File { bytes: 1 + rng.below(300_000) },
        5 => Traffic::Cbr {
            rate: Rate::from_bps(200_000),
            packet_bytes: 1000,
            spacing: pick(rng, &[Spacing::Even, Spacing::Uniform]),
        },
        _ => Traffic::OnOff(bursts),
    };
    let over_tcp = rng.chance(0.5);
    let mut group = flows(&format!("group{number}"), 2 + rng.below(5) as u32, traffic, random_tcp(rng));
    if matches!(group.traffic, Traffic::OnOff(_)) && over_tcp {
        group.transport = Transport::Tcp;
    }
    group.stagger = pick(rng, &[Duration::ZERO, ms(1000)]);
    group.start = pick(rng, &[Duration::ZERO, ms(1000)]);
    group
}

/// There are enough packets in a round trip for hosts to run ahead. Rates and delays are so round, and hosts so few, that much happens at the same time.
fn random_world(seed: u64) -> Scenario {
    let mut rng = Rng::stream(seed, "ahead");
    let rng = &mut rng;
    let satellite = pick(rng, &[200, 273]);
    let rates = [10, 20, 50].map(Rate::from_mbps);
    let mut dumbbell = Dumbbell::geo(1 + rng.below(13) as u32, (pick(rng, &rates), pick(rng, &rates)), 5);
    dumbbell.access.delay_one_way =
        LinkConfig::new(rates[0], pick(rng, &[ms(0), ms(1), ms(20)]), drop_tail(1)).delay_one_way;
    dumbbell.access.queue = drop_tail(pick(rng, &[3, 100_000]));
    let red = RedConfig { limit: Limit::Packets(50), ..RedConfig::default() };
    let queue = match rng.below(3) {
        0 => QueueConfig::Red(red),
        _ => drop_tail(pick(rng, &[2, 10, 50])),
    };
    dumbbell.satellite = LinkConfig::new(pick(rng, &rates), ms(satellite), queue);
    let lossy = |probability| LossConfig::all(LossModel::Packet { probability });
    if rng.chance(0.5) {
        dumbbell.satellite.loss = lossy(pick(rng, &[0.001, 0.05]));
    }
    if rng.chance(0.3) {
        dumbbell.access.loss = lossy(0.01);
    }
    let groups = (1..=1 + rng.below(3) as u32).map(|number| random_flows(rng, number)).collect();
    let mut scenario = dumbbell.scenario(Duration::from_secs_f64(3.0 + 10.0 * rng.uniform()), groups);
    if rng.chance(0.3) {
        // A second satellite behind the first: packets of several links meet twice.
        scenario.nodes.push(router("far"));
        scenario.nodes.push(hosts("others", 2));
        scenario.links[2].from = "far".to_owned();
        scenario.links.push(links("second", ("east", "far"), dumbbell.satellite.clone()));
        scenario.links.push(links("side", ("others", "east"), dumbbell.access.clone()));
        let mut side = flows("side", 2, Traffic::Bulk, random_tcp(rng));
        side.from = "others".to_owned();
        scenario.flows.push(side);
    }
    scenario.seed = seed;
    scenario
}

/// Results of a run, without the time that it took.
fn json(result: RunResult) -> String {
    assert_eq!(result.violations, [""; 0]);
    let mut outcome = result.outcome;
    outcome.wall_s = 0.0;
    serde_json::to_string_pretty(&outcome).expect("an outcome is plain data")
}

/// A hash of everything that an observer is told, in order.
#[derive(Default)]
struct Digest(DefaultHasher);

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl Observer for Digest {
    fn on_link(&mut self, at: Instant, event: LinkEvent, passing: &Passing<'_>) {
        let Passing { link, bytes, to_end, segment } = *passing;
        let event = match event {
            LinkEvent::Offered { waiting } => u64::from(waiting),
            LinkEvent::Dropped(cause) => 1 << 32 | cause as u64,
            LinkEvent::Delivered => 1 << 33,
        };
        let segment = segment.map(|segment| (segment.seq, segment.ack, segment.len, segment.window));
        (at, event, link, bytes, to_end, segment).hash(&mut self.0);
    }

    fn on_end(&mut self, at: Instant, end: u32, event: &Event) {
        write!(self, "{at:?} {end} {event:?}").expect("hashing does not fail");
    }

    fn on_fresh(&mut self, at: Instant, end: u32) {
        write!(self, "{at:?} {end} fresh").expect("hashing does not fail");
    }
}

/// Results of an observed and verified run, and the hash of the observations.
fn observed(scenario: &Scenario, event_by_event: bool) -> (String, u64) {
    let mut digest = Digest::default();
    let options = RunOptions { verify: true, event_by_event, ..RunOptions::default() };
    let result = run_observed(scenario, &options, &mut digest).expect("a world");
    (json(result), digest.0.finish())
}

/// True if results depend on the kind of execution, the number of threads, or an observer.
fn shows(scenario: &Scenario) -> bool {
    let silent = |threads| {
        let options = RunOptions { threads: NonZeroUsize::new(threads), ..RunOptions::default() };
        json(run(scenario, &options).expect("a world"))
    };
    let (alone, seen) = (silent(1), observed(scenario, false));
    [2, 3].into_iter().any(|threads| silent(threads) != alone)
        || alone != seen.0
        || seen != observed(scenario, true)
}

/// The same world with satellites so close that its hosts take turns at every event; packets still run ahead.
fn with_close_satellites(mut scenario: Scenario) -> Scenario {
    let delay = ms(pick(&mut Rng::stream(scenario.seed, "close"), &[1, 5, 20]));
    for link in scenario.links.iter_mut().filter(|link| ["satellite", "second"].contains(&&*link.name)) {
        for direction in [&mut link.forward, &mut link.reverse] {
            direction.delay_one_way = Schedule::Constant(delay);
        }
    }
    scenario
}

/// Seeds of worlds in which it shows.
fn different(world: impl Fn(u64) -> Scenario) -> Vec<u64> {
    let seeds = std::env::var("BENTPIPE_AHEAD_WORLDS").map_or(60, |worlds| worlds.parse().expect("a number"));
    (0..seeds).filter(|seed| shows(&world(*seed))).collect()
}

#[test]
fn nobody_can_tell_from_the_results_whether_hosts_were_ahead_of_the_clock() {
    assert_eq!(different(random_world), [0; 0], "seeds of worlds");
}

#[test]
fn nor_whether_packets_were() {
    assert_eq!(different(|seed| with_close_satellites(random_world(seed))), [0; 0], "seeds of worlds");
}

/// Data and ACKs of many flows arrive at the satellite at the same nanosecond, and deadlines coincide with arrivals. Behind the far
/// satellite hosts run ahead of the clock; behind the close one only packets do.
#[test]
fn not_even_where_everything_happens_at_the_same_time() {
    for (acks, mbps, delay) in [
        (DelayedAck::Off, 16, 273),
        (Config::default().receiver.delayed_ack, 16, 273),
        (Config::default().receiver.delayed_ack, 10, 30),
    ] {
        let rate = Rate::from_mbps(mbps);
        let tcp = paper_tcp(16).with(|config| config.receiver.delayed_ack = acks);
        let groups = vec![
            flows("bulk", 12, Traffic::Bulk, tcp.clone()),
            flows("file", 12, Traffic::File { bytes: 50_000 }, tcp),
        ];
        let mut dumbbell = Dumbbell::geo(12, (rate, rate), 20);
        dumbbell.satellite.delay_one_way = Schedule::Constant(ms(delay));
        let scenario = dumbbell.scenario(Duration::from_secs(30), groups);
        assert!(!shows(&scenario));
    }
}

/// Hosts at the routers, and times that are multiples of each other: packets arrive at the very time at which others must go on.
#[test]
fn nor_where_packets_arrive_when_it_is_time_for_others_to_go_on() {
    let rate = Rate::from_mbps(8);
    let tcp =
        paper_tcp(16).with(|config| config.receiver.delayed_ack = Config::default().receiver.delayed_ack);
    let cbr = Traffic::Cbr { rate: Rate::from_bps(200_000), packet_bytes: 1000, spacing: Spacing::Even };
    let groups = vec![flows("bulk", 4, Traffic::Bulk, tcp.clone()), flows("cbr", 2, cbr, tcp)];
    let mut dumbbell = Dumbbell::geo(2, (rate, rate), 20);
    dumbbell.satellite.delay_one_way = Schedule::Constant(ms(2));
    dumbbell.access.delay_one_way = Schedule::Constant(ms(0));
    let scenario = dumbbell.scenario(Duration::from_secs(2), groups);
    assert!(!shows(&scenario));
}

/// Satellites take turns while packets are under way: those that were followed, and those on links that are given up.
#[test]
fn nor_where_the_routes_change() {
    for (name, secs) in [("leo-iridium", 100), ("leo-teledesic", 50), ("leo-starlink", 17)] {
        let mut scenario = builtin(name).expect("it is built in");
        scenario.duration = Duration::from_secs(secs);
        assert!(!shows(&scenario), "{name}");
    }
}

/// Flows with ways of their own are executed by threads of their own, and take over links from each other.
#[test]
fn nor_where_links_change_from_one_flow_to_another() {
    for seed in 0..12 {
        assert!(!shows(&under_satellites(seed)), "{seed}");
    }
}

/// All that wait for the failing thread end, too, and report the cause.
#[test]
fn an_algorithm_that_panics_on_one_of_two_threads_is_the_cause_that_is_told() {
    let build = |start: &Start| -> Box<dyn CongestionControl> {
        assert!(!start.seed.is_multiple_of(8), "on purpose");
        paper_tcp(16).sender.cc.build(start)
    };
    let config =
        paper_tcp(16).with(|config| config.sender.cc = Algorithm::Custom(Custom::new("broken", build)));
    let rate = Rate::from_mbps(16);
    let bulk = flows("bulk", 40, Traffic::Bulk, config);
    let scenario = Dumbbell::geo(40, (rate, rate), 20).scenario(Duration::from_secs(5), vec![bulk]);
    let options = RunOptions { threads: NonZeroUsize::new(2), ..RunOptions::default() };
    let panic = catch_unwind(AssertUnwindSafe(|| run(&scenario, &options))).expect_err("it panics");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
}
