//! Test of links whose rate, delay and loss come from files.

mod common;

use std::fs;
use std::path::Path;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{Interpolation, Jitter, JitterDistribution, LinkConfig, LossModel, Outage, Schedule};
use bentpipe_orbit::Place;
use bentpipe_scenario::{Draft, Scenario};
use common::world_with;

const CSV: &str = "t,down,up,rtt,lost\n10,80,8,40,0\n11,0,9,60,1.5\n12.5,90,10,50,0\n";

const RECORDED: &str = r#"
rate = { file = "link.csv", column = "down", unit = "Mbit/s", repeat-every = "end" }
loss = { file = "link.csv", column = "lost", unit = "%" }
"#;

/// Loads a scenario in a folder together with the file that it names.
fn world(text: &str, file: (&str, &str), arguments: &[String]) -> Result<Scenario, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(file.0), file.1).unwrap();
    let path = folder.path().join("world.toml");
    fs::write(&path, text).unwrap();
    let read = |path: &Path| {
        let mut draft = Draft::load(path.to_str().unwrap())?;
        arguments.iter().try_for_each(|argument| draft.set(argument))?;
        draft.scenario()
    };
    let read = read(&path).map_err(|error| error.to_string());
    read.map_err(|error| error.replace(folder.path().to_str().unwrap(), "FOLDER"))
}

fn recorded(csv: &str) -> Result<Scenario, String> {
    let text = world_with("rate = \"10 Mbit/s\"\n", RECORDED);
    let delay = "delay-one-way = { file = \"link.csv\", column = \"rtt\", unit = \"ms\", factor = 0.5, \
                 interpolation = \"linear\" }\n[link.satellite.reverse.rate]\ncolumn = \"up\"";
    world(&text.replacen("delay-one-way = \"250 ms\"", delay, 1), ("link.csv", csv), &[])
}

#[test]
fn columns_become_schedules() {
    let link = recorded(CSV).unwrap().links.remove(0);
    let (ms, seconds) = (Duration::from_millis, Duration::from_secs);
    let rates = |pairs: [(u64, u64); 2]| pairs.map(|(at, mbps)| (ms(at), Rate::from_mbps(mbps))).to_vec();
    let forward = Schedule::Table {
        points: rates([(0, 80), (2500, 90)]),
        interpolation: Interpolation::Step,
        repeat_every: Some(seconds(4)),
    };
    assert_eq!(link.forward.rate, forward);
    let at = |millis| Instant::ZERO + ms(millis);
    assert_eq!(
        link.forward.outages.intervals[..2],
        [(1000, 2500), (5000, 6500)].map(|(from, to)| Outage { from: at(from), to: at(to) })
    );
    let delays = [(0, 20), (1000, 30), (2500, 25)].map(|(at, delay)| (ms(at), ms(delay))).to_vec();
    let delay = Schedule::Table { points: delays, interpolation: Interpolation::Linear, repeat_every: None };
    assert_eq!((&link.forward.delay_one_way, &link.reverse.delay_one_way), (&delay, &delay));
    let LossModel::Schedule { points, .. } = &link.forward.loss.model else { panic!("{link:?}") };
    assert_eq!(*points, [(ms(0), 0.0), (ms(1000), 0.015), (ms(2500), 0.0)]);
    let Schedule::Table { points, .. } = &link.reverse.rate else { panic!("{link:?}") };
    assert_eq!(points.len(), 3, "the way back is never out");
    assert!(link.reverse.outages.intervals.is_empty());
}

#[test]
fn mistakes_stand_where_the_file_has_them() {
    let error = recorded(&CSV.replace("90", "fast").replace("1.5", "150")).unwrap_err();
    assert_eq!(
        error,
        "FOLDER/link.csv:4:6: link.satellite.rate.file: found \"fast Mbit/s\", accepted: a rate above 0 such as \"10 Mbit/s\" (bit/s, kbit/s, \
         Mbit/s, Gbit/s)\n\
         FOLDER/link.csv:3:11: link.satellite.loss.file: found \"150 %\", accepted: a probability from 0 to 1 such as 1e-4"
    );
    let error = recorded(&CSV.replace("down", "fall")).unwrap_err();
    assert_eq!(
        error,
        "FOLDER/link.csv:1:1: link.satellite.rate.file: found no column \"down\", accepted: \"t\", \"fall\", \"up\", \"rtt\", \"lost\", or a number \
         from 1 to 5"
    );
    let error = recorded("t,down,up,rtt,lost\n0,0,1,1,0\n").unwrap_err();
    assert!(error.contains("link.csv:1:1: link.satellite.rate.file: found only zeros"), "{error}");
    let text = world_with("rate = \"10 Mbit/s\"", "rate = { file = \"none.csv\", column = \"x\" }");
    let error = world(&text, ("link.csv", CSV), &[]).unwrap_err();
    assert!(error.starts_with("FOLDER/world.toml:6:"), "{error}");
    assert!(
        error.contains("link.satellite.rate.file: found \"none.csv\", accepted: a file (No such file"),
        "{error}"
    );
}

#[test]
fn a_packet_delivery_trace_takes_the_place_of_the_rate() {
    let text = world_with("rate = \"10 Mbit/s\"", "rate = { deliveries = \"down.trace\" }");
    let link = world(&text, ("down.trace", "1\n3\n3\n10\n"), &[]).unwrap().links.remove(0);
    let opportunities = link.forward.opportunities.clone().unwrap();
    assert_eq!(*opportunities.times, [1, 3, 3, 10].map(Duration::from_millis));
    assert!(opportunities.repeat && (opportunities.bytes, opportunities.overhead) == (1504, 4));
    assert_eq!(link.forward.rate, opportunities.rate());
    let plain = world(&text, ("down.trace", "1\n"), &["link.satellite.rate=5 Mbit/s".into()]).unwrap();
    assert_eq!(plain.links[0].forward.opportunities, None);
    assert_eq!(plain.links[0].forward.rate, Schedule::Constant(Rate::from_mbps(5)));
    let error = world(&text, ("down.trace", "1\n0\nx\n"), &[]).unwrap_err();
    assert!(error.starts_with("FOLDER/down.trace:2:1: link.satellite.rate.deliveries: found 0"), "{error}");
    assert!(error.contains("\nFOLDER/down.trace:3:1: "), "{error}");
    let beside = text.replacen("[tcp]", "arq = \"selective-repeat\"\n[tcp]", 1);
    let error = world(&beside, ("down.trace", "1\n"), &[]).unwrap_err();
    assert!(
        error.contains("link.satellite.opportunities: found recorded opportunities beside arq"),
        "{error}"
    );
}

#[test]
fn what_comes_from_a_file_is_shown_as_that_and_reads_back() {
    let mut draft = Draft::load("leo-recorded").unwrap();
    draft.set("link.satellite.reverse.rate={ deliveries = '12mbit.trace' }").unwrap();
    let scenario = draft.scenario().unwrap();
    let text = scenario.to_toml();
    assert!(text.len() < 10_000 && text.contains("file = \"leo-recorded.csv\""), "{text}");
    assert!(text.contains("deliveries = \"12mbit.trace\", repeat = true"), "{text}");
    assert_eq!(Draft::parse("leo-recorded", &text).and_then(|draft| draft.scenario()).unwrap(), scenario);
}

#[test]
fn measured_jitter_is_a_sorted_column_of_a_file() {
    let jitter =
        "jitter = { file = \"link.csv\", column = \"rtt\", unit = \"ms\", factor = 0.5, missing = [40] }";
    let text = world_with("rate = \"10 Mbit/s\"", &format!("rate = \"10 Mbit/s\"\n{jitter}"));
    let link = world(&text, ("link.csv", "t,rtt\n0,60\n3,40\n2,50\n"), &[]).unwrap().links.remove(0);
    let ms = Duration::from_millis;
    let delays = [25, 30].map(ms).into();
    let jitter = Some(Jitter { distribution: JitterDistribution::Table { delays }, correlation: 0.0 });
    assert_eq!([&link.forward.jitter, &link.reverse.jitter], [&jitter, &jitter]);
    let error = world(&text, ("link.csv", "t,rtt\n0,60\n3,slow\n"), &[]).unwrap_err();
    assert!(
        error.starts_with("FOLDER/link.csv:3:3: link.satellite.jitter.file: found \"slow ms\""),
        "{error}"
    );
}

#[test]
fn handovers_are_the_steps_of_each_direction() {
    let keys = "rate = \"10 Mbit/s\"\nhandover-loss = { rate = 0.3, before = \"50 ms\", jump = \"2 ms\" }\n\
                delay-one-way = { table = [[\"0 s\", \"9 ms\"], [\"7 s\", \"12 ms\"], [\"8 s\", \"13 ms\"]], repeat-every = \"15 s\" }\n\
                reverse = { delay-one-way = [[\"0 s\", \"9 ms\"], [\"4 s\", \"20 ms\"]] }";
    let text = world_with("rate = \"10 Mbit/s\"", keys);
    let text =
        text.lines().filter(|line| *line != "delay-one-way = \"250 ms\"").collect::<Vec<_>>().join("\n");
    let link = world(&text, ("link.csv", ""), &[]).unwrap().links.remove(0);
    let handovers =
        |link: LinkConfig| link.loss.handover.map(|burst| (burst.handovers, burst.repeat_every)).unwrap();
    let s = Duration::from_secs;
    assert_eq!(handovers(link.forward), (vec![s(7), s(15)], Some(s(15))));
    // A list of points keeps the period of the other direction.
    assert_eq!(handovers(link.reverse), (vec![s(4), s(15)], Some(s(15))));
}

/// Two stations over Iridium, whose satellites have the links of a file.
fn over(links: &str, settings: &[&str]) -> Result<Scenario, String> {
    let text = include_str!("../scenarios/leo-iridium.toml");
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let text = text.lines().map(|line| {
        if line.starts_with("links = ") {
            "links = { file = \"isls.txt\" }".to_owned()
        } else {
            line.to_owned()
        }
    });
    world(&text.collect::<Vec<_>>().join("\n"), ("isls.txt", links), &settings)
}

#[test]
fn links_between_satellites_may_come_from_a_file() {
    let in_plane = (0..66).map(|a| (a, a / 11 * 11 + (a + 1) % 11));
    let across = (0..55).map(|a| (a, a + 11));
    let text: String = in_plane.chain(across).map(|(a, b)| format!("{a} {b}\n")).collect();
    let scenario = over(&text.replace("0 1\n", "0, 1, 2 Mbit/s\n"), &[]).unwrap();
    let group = &scenario.constellations[0];
    let constellation = group.fly(scenario.duration).unwrap();
    assert_eq!(constellation.rate_between(1, 0), Some(Rate::from_mbps(2)));
    let sky = group.sky(&constellation, &scenario.ground_stations()).unwrap();
    assert!(sky.are_linked(0, 1) && sky.are_linked(0, 10) && sky.are_linked(0, 11) && !sky.are_linked(0, 2));
    let error = over("0 1\n0 x\n", &[]).unwrap_err();
    let expected = "FOLDER/isls.txt:2:3: constellation.iridium.links.file: found \"x\", accepted: a number from 0 to 65, a catalogue number or a name";
    assert_eq!(error, expected);
    let error = over("0, 1, fast\n", &[]).unwrap_err();
    assert!(
        error.starts_with("FOLDER/isls.txt:1:7: constellation.iridium.links.file: found \"fast\""),
        "{error}"
    );
}

#[test]
fn a_station_may_move_and_fail() {
    let way =
        "node.boston.way=[[\"1 h\", \"48 deg\", \"-50 deg\", \"11 km\"], [\"2 h\", \"51 deg\", \"-30 deg\"]]";
    let settings = [way, "node.boston.outages=[[\"1 min\", \"2 min\"]]", "node.boston.altitude=500 m"];
    let mut draft = Draft::load("leo-iridium").unwrap();
    settings.iter().for_each(|setting| draft.set(setting).unwrap());
    let scenario = draft.scenario().unwrap();
    let station = scenario.ground_stations().into_iter().find(|station| station.name == "boston").unwrap();
    let place = |latitude_deg, longitude_deg, altitude_km| Place { latitude_deg, longitude_deg, altitude_km };
    let hour = Duration::from_secs(3600);
    assert_eq!(station.way, [(hour, place(48.0, -50.0, 11.0)), (hour * 2, place(51.0, -30.0, 0.0))]);
    assert_eq!(station.place.altitude_km, 0.5);
    let minute = Instant::ZERO + Duration::from_secs(60);
    assert_eq!(station.outages, [minute..minute + Duration::from_secs(60)]);
    let mut again = Draft::parse("again.toml", &scenario.to_toml()).unwrap().scenario().unwrap();
    again.name = scenario.name.clone();
    assert_eq!(again.nodes, scenario.nodes);
    draft.set("node.boston.way=[[\"0 s\", \"48 deg\", \"-50 deg\"]]").unwrap();
    let error = draft.scenario().unwrap_err().to_string();
    assert!(
        error.contains("node.boston.way: found 0 s after 0 s, accepted: ascending times above 0 s"),
        "{error}"
    );
}
