//! Terminals that share a channel, and links in the weather, under whole worlds.

use bentpipe_net::{LossModel, Schedule};
use bentpipe_outcome::{MediumOutcome, Outcome};
use bentpipe_scenario::Draft;
use bentpipe_sim::{RunOptions, run};

fn outcome(scenario: &str, changes: &[&str]) -> Outcome {
    let mut draft = Draft::load(scenario).unwrap();
    for change in changes {
        draft.set(change).unwrap();
    }
    let scenario = draft.scenario().unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions { verify: true, ..RunOptions::default() };
    let result = run(&scenario, &options).unwrap();
    assert!(result.violations.is_empty(), "{:?}", result.violations);
    result.outcome
}

fn medium(outcome: &Outcome) -> &MediumOutcome {
    let [medium] = outcome.media.as_slice() else { panic!("one shared channel") };
    medium
}

const SCHEMES: &[&str] = &["tdma", "tdma-dama", "cf-dama", "aloha", "slotted-aloha", "crdsa"];

#[test]
fn a_star_of_vsats_works_over_every_access_scheme_and_is_the_same_every_time() {
    for scheme in SCHEMES {
        let scheme = format!("link.spot.reverse.medium={scheme}");
        let one = outcome("geo-vsat", &[&scheme, "duration=15 s"]);
        let two = outcome("geo-vsat", &[&scheme, "duration=15 s"]);
        let json = |outcome: Outcome| {
            serde_json::to_string(&Outcome { wall_s: 0.0, ..outcome }).expect("an outcome has a JSON form")
        };
        let shared = medium(&one);
        assert!(one.totals.goodput_bps > 50_000.0, "{scheme}: {}", one.totals.goodput_bps);
        assert!(
            shared.carried_packets > 100 && shared.carried_packets <= shared.offered_packets,
            "{shared:?}"
        );
        // The sums over the members' links equal the counters of the channel; the rest waits or is in flight.
        let links =
            one.links.iter().filter(|link| link.name.starts_with("spot") && link.direction == "reverse");
        let delivered: u64 = links.map(|link| link.delivered_packets).sum();
        assert!(delivered <= shared.carried_packets, "{scheme}: {delivered}");
        assert!(shared.carried_packets - delivered < 2_000 * 26 / 100, "{scheme}: {delivered}");
        assert_eq!(json(one), json(two), "{scheme}");
    }
}

/// ACKs wait for a slot, so the time of a handshake is that of the path and the access.
#[test]
fn access_delay_is_part_of_the_round_trip() {
    let file = "flow.bulk.traffic={ kind = \"file\", size = \"1 segments\" }";
    let time = |scheme: &str| {
        let scheme = format!("link.spot.reverse.medium={scheme}");
        let changes = [
            file,
            &scheme,
            "flow.bulk.count=1",
            "flow.bulk.stagger=0 s",
            "link.spot.loss=none",
            "node.hub.kind=router",
        ];
        outcome("geo-vsat", &changes).flows[0].completion_s.unwrap()
    };
    // Two round trips of 50 + 250 + 250 + 50 ms: SYN and data leave the server, their answers come back through the channel.
    let own = time("none");
    assert!((1.2..1.22).contains(&own), "{own}");
    // A free slot comes within a frame of 24 ms, in each of the two.
    let free = time("cf-dama");
    assert!(free > own && free < own + 2.0 * 0.03, "{free}, {own}");
    // On demand, the first waits for a superframe and a round trip of 500 ms; its slots are still there for the second one.
    let demand = time("tdma-dama");
    assert!((0.5..1.3).contains(&(demand - own)), "{demand}, {own}");
}

#[test]
fn a_shared_channel_carries_no_more_than_its_rate() {
    // Five terminals send up: data on the shared channel.
    let up = [
        "flow.bulk.from=vsat",
        "flow.bulk.to=server",
        "duration=60 s",
        "flow.bulk.cc=cubic",
        "tcp.recovery=sack",
    ];
    let result = outcome("geo-vsat", &up);
    let shared = medium(&result);
    let most = 2e6 * 0.9 * 80.0 / 84.0;
    assert!(shared.carried_bps <= most && shared.carried_bps > 0.5 * most, "{shared:?}");
    assert!(shared.demand_slots > 10 * shared.free_slots_used / 10, "{shared:?}");
    let least = result.flows.iter().map(|flow| flow.goodput_bps).fold(f64::MAX, f64::min);
    assert!(least > 0.02 * result.totals.goodput_bps, "everyone gets a share: {least}");
}

#[test]
fn impossible_channels_are_refused_where_they_are_written() {
    let refused = |change: &str| {
        let mut draft = Draft::load("geo-vsat").unwrap();
        draft.set(change).unwrap();
        let error = draft.scenario().unwrap_err();
        let mistake = &error.mistakes()[0];
        format!("{}: {}, not {}", mistake.key, mistake.found, mistake.accepted)
    };
    assert_eq!(
        refused("link.spot.reverse.medium.slots=0"),
        "link.spot.reverse.medium.slots: 0, not at least 1 slot in a frame"
    );
    assert_eq!(
        refused("link.spot.reverse.medium={ kind = \"tdma\", slots = 4 }"),
        "link.spot.reverse.medium.slots: 4 slots for 5 terminals, not at least one slot for each terminal"
    );
    assert_eq!(
        refused("link.spot.medium=aloha"),
        "link.spot.medium: aloha, not a medium in the direction that leads to a single node"
    );
    assert_eq!(
        refused("link.spot.reverse.queue=codel"),
        "link.spot.reverse.queue.kind: codel, not drop-tail at the terminals of a shared medium"
    );
    assert!(refused("link.spot.reverse.medium=cf-dema").contains("\"cf-dama\""));
}

/// Goodput of a stream that would fill any carrier, between two times, from runs that end at them.
fn goodput_between(from: u64, to: u64, change: &str) -> f64 {
    let flood = "flow.bulk.traffic={ kind = \"cbr\", rate = \"20 Mbit/s\", packet = \"1500 bytes\" }";
    let bits = |end: u64| {
        let end = format!("duration={end} s");
        let result = outcome(
            "vsat-rain",
            &[&end, change, flood, "flow.bulk.count=1", "link.satellite.queue=50 packets"],
        );
        result.totals.goodput_bps * result.simulated_s
    };
    (bits(to) - bits(from)) / (to - from) as f64
}

#[test]
fn goodput_follows_the_modulation_and_code_of_the_weather() {
    // 5 MBd, and bits to a symbol as the standard says; 1472 of 1500 bytes are payload.
    let carrier = |efficiency: f64| 5e6 * efficiency * 1472.0 / 1500.0;
    let clear = goodput_between(10, 20, "seed=1") / carrier(2.966_728);
    assert!((clear - 1.0).abs() < 0.002, "{clear}");
    // 6 dB less for good: QPSK 4/5 needs 4.68 dB, and 1 dB of margin and hysteresis to climb there.
    let rain = "link.satellite.weather={ attenuation = [[\"0 s\", \"6 dB\"]] }";
    let faded = goodput_between(10, 20, rain) / carrier(1.587_196);
    assert!((faded - 1.0).abs() < 0.002, "{faded}");
    // 20 dB less from 12 s on: even QPSK 1/4 loses every frame.
    let storm = "link.satellite.weather={ attenuation = [[\"5 s\", \"0 dB\"], [\"12 s\", \"20 dB\"]] }";
    assert_eq!(goodput_between(14, 20, storm), 0.0);
}

/// Checks the numbers in the scenario's comment about the shower.
#[test]
fn the_shower_of_vsat_rain_takes_the_carrier_down_the_ladder_and_for_a_while_away() {
    let scenario = Draft::load("vsat-rain").unwrap().scenario().unwrap();
    let satellite = &scenario.links.iter().find(|link| link.name == "satellite").unwrap().forward;
    let Schedule::Table { points, .. } = &satellite.rate else { panic!("a rate that varies") };
    let rates: Vec<u64> = points.iter().map(|(_, rate)| rate.bps()).collect();
    assert_eq!(
        (rates[0], rates.iter().min()),
        (5_000_000 * 48_328 / 16_290, Some(&(5_000_000 * 15_928 / 32_490)))
    );
    assert_eq!(rates.last(), rates.first(), "it comes back");
    let LossModel::Frames { spans } = &satellite.loss.model else { panic!("frames that are lost") };
    let ends = spans.iter().skip(1).map(|span| span.from).chain([scenario.duration]);
    let lengths = spans.iter().zip(ends).map(|(span, end)| (span.loss, (end - span.from).as_secs_f64()));
    let out: f64 = lengths.filter(|(loss, _)| *loss > 0.5).map(|(_, length)| length).sum();
    assert!((5.0..60.0).contains(&out), "out for {out} s");
}
