//! Test of messages: each mistake has place, key, what was found, what is accepted and a suggestion.

mod common;

use common::{WORLD, read, set, world_with};

/// The message for [`WORLD`] with one line replaced.
fn message(line: &str, instead: &str) -> String {
    read(&world_with(line, instead)).unwrap_err()
}

#[test]
fn the_world_is_without_mistakes() {
    read(WORLD).unwrap();
}

#[test]
fn an_unknown_key() {
    assert_eq!(
        message("delay-one-way", "delay"),
        "world.toml:4:7: link.satellite.delay-one-way: found nothing, accepted: a time of 0 or more such as \"275 ms\" \
         (ns, us, ms, s, min, h)\n\
         world.toml:7:1: link.satellite.delay: found an unknown key, accepted: between, modem, rate, delay-one-way, \
         jitter, queue, loss, handover-loss, arq, fec, outages, preserve-order, reordering, duplication, corruption, medium, reverse; did you mean `delay-one-way`?"
    );
    assert_eq!(
        message("[flow.bulk]", "[flows.bulk]"),
        "world.toml:10:2: flows: found an unknown key, accepted: title, duration, measure, seed, routing, tcp, constellation, node, link, flow; did you \
         mean `flow`?"
    );
}

#[test]
fn headers_of_tcp_for_a_flow_over_udp() {
    let flow = "[flow.bulk]\ntransport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1 Mbit/s\" }\ntcp = { header = \"40 bytes\" }";
    let text = message("[flow.bulk]", flow);
    assert!(text.ends_with(
        "flow.bulk.tcp.header: found headers of TCP for a flow over \"udp\", accepted: transport = { kind = \"udp\", header = \"28 bytes\" }"
    ), "{text}");
}

#[test]
fn a_code_without_parity_or_beside_repetition() {
    assert_eq!(
        message("[flow.bulk]", "[link.satellite.fec]\nk = 20\nn = 20\n[flow.bulk]"),
        "world.toml:12:5: link.satellite.fec.n: found 20, accepted: more than k"
    );
    let both = "[link.satellite]\nfec = \"reed-solomon\"\narq = \"selective-repeat\"";
    assert_eq!(
        message("[link.satellite]", both),
        "world.toml:5:7: link.satellite.fec: found parity beside arq, accepted: one of arq and fec"
    );
}

#[test]
fn bursts_of_loss_at_handovers_that_the_delay_does_not_have() {
    assert_eq!(
        message("[flow.bulk]", "[link.satellite.handover-loss]\nrate = 0.3\nafter = \"1 s\"\n[flow.bulk]"),
        "world.toml:10:1: link.satellite.handover-loss: found a delay without such steps, accepted: off, or a `delay-one-way` \
         with steps of at least `jump` (0 s)"
    );
}

#[test]
fn a_wrong_unit() {
    assert_eq!(
        message("10 Mbit/s", "10 Mbps"),
        "world.toml:6:8: link.satellite.rate: found \"10 Mbps\", accepted: a rate above 0 such as \"10 Mbit/s\" \
         (bit/s, kbit/s, Mbit/s, Gbit/s); did you mean \"10 Mbit/s\"?"
    );
}

#[test]
fn a_wrong_type() {
    assert_eq!(
        message("\"10 s\"", "10"),
        "world.toml:1:12: duration: found 10, accepted: a time above 0 such as \"275 ms\" (ns, us, ms, s, min, h)"
    );
    assert_eq!(
        message("[tcp]", "[tcp]\nrto = \"1 s\""),
        "world.toml:9:7: tcp.rto: found \"1 s\", accepted: a table with initial, floor, margin, ceiling, tick, each-sample, restart-on-sacks"
    );
    assert_eq!(
        message("[node.near]", "[node]\nnear = 3\n[node.extra]"),
        "world.toml:3:8: node.near: found 3, accepted: a table with kind, count"
    );
}

const SKY: &str = r#"
duration = "60 s"
[constellation.sky]
kind = "walker-delta"
altitude = "550 km"
inclination = "53 deg"
planes = 72
satellites-per-plane = 22
elevation-mask = "25 deg"
ground = { rate = "10 Mbit/s" }
between = { rate = "1 Gbit/s" }
[node.here]
kind = "ground-station"
latitude = "50 deg"
longitude = "0 deg"
[node.there]
kind = "ground-station"
latitude = "40 deg"
longitude = "-70 deg"
[flow.bulk]
from = "here"
to = "there"
"#;

/// The message for [`SKY`] with one piece replaced.
fn sky_message(piece: &str, instead: &str) -> String {
    assert!(SKY.contains(piece), "{piece}");
    read(&SKY.replacen(piece, instead, 1)).unwrap_err()
}

#[test]
fn a_sky_that_cannot_be() {
    read(SKY).unwrap();
    assert_eq!(
        sky_message("planes = 72", "planes = 0"),
        "world.toml:6:10: constellation.sky.planes: found 0, accepted: a whole number of 1 or more"
    );
    assert_eq!(
        sky_message("\"50 deg\"", "50"),
        "world.toml:13:12: node.here.latitude: found 50, accepted: an angle from -360 deg to 360 deg such as \"37.9 deg\" or \"-122.3 deg\"; did you \
         mean \"50 deg\"?"
    );
    assert_eq!(
        sky_message("\"50 deg\"", "\"-95 deg\""),
        "world.toml:13:12: node.here.latitude: found -95, accepted: degrees from -90 to 90"
    );
    assert_eq!(
        sky_message("\"50 deg\"", "\"78.2 deg\""),
        "world.toml:13:12: node.here.latitude: found 78.2 deg, accepted: a place over which satellites of \"sky\" rise above 25 deg"
    );
    assert_eq!(
        sky_message("\"53 deg\"", "\"253 deg\""),
        "world.toml:5:15: constellation.sky.inclination: found 253, accepted: degrees from 0 to 180"
    );
    assert_eq!(
        sky_message("between =", "links = \"none\"\n#"),
        "world.toml:2:16: constellation.sky.gateway: found none, accepted: a station that is a gateway, since bent pipes \
         connect others only to those"
    );
    assert_eq!(
        sky_message(
            "elevation-mask",
            "handover = { kind = \"hysteresis\", margin = \"-1 deg\" }\nelevation-mask"
        ),
        "world.toml:8:44: constellation.sky.handover.margin: found -1, accepted: degrees from 0 to 90"
    );
    let two = SKY.replacen(
        "[node.here]",
        "[constellation.other]\nelevation-mask = \"25 deg\"\naltitude = \"1 km\"\n\
        inclination = \"9 deg\"\nplanes = 1\nsatellites-per-plane = 1\nground = { rate = \"1 Mbit/s\" }\n\
        between = { rate = \"1 Mbit/s\" }\n[node.here]",
        1,
    );
    assert!(
        read(&two)
            .unwrap_err()
            .contains("constellation.other: found another constellation, accepted: one constellation")
    );
    let lonely = "duration = \"1 s\"\n[node.here]\nkind = \"ground-station\"\nlatitude = \"1 deg\"\nlongitude = \"1 deg\"";
    assert_eq!(
        read(lonely).unwrap_err(),
        "world.toml:3:8: node.here.kind: found a ground station without a constellation, accepted: a constellation"
    );
}

#[test]
fn a_satellite_that_cannot_be_a_host() {
    let message = |node: &str| {
        let text = format!("{SKY}\n[node.computer]\nkind = \"satellite\"\n{node}");
        read(&text.replace("to = \"there\"", "to = \"computer\"")).map(drop).unwrap_err()
    };
    let accepted = "the name of a satellite that flies, its catalogue number, or its index from 0";
    assert_eq!(
        message("satellite = \"72-0\""),
        format!("world.toml:25:13: node.computer.satellite: found \"72-0\", accepted: {accepted}")
    );
    assert_eq!(
        message("satellite = \"3-1\"\n[node.other]\nkind = \"satellite\"\nsatellite = \"67\""),
        "world.toml:28:13: node.other.satellite: found \"67\", accepted: a satellite of which no other node is the host"
    );
    let count = message("satellite = \"3-1\"\ncount = 2");
    assert!(
        count.contains("node.computer.count: found 2, accepted: 1: a ground station is one place"),
        "{count}"
    );
    assert!(message("").contains("node.computer.satellite"));
    let alone = "duration = \"1 s\"\n[node.computer]\nkind = \"satellite\"\nsatellite = \"3-1\"\n";
    let found = "node.computer.kind: found a satellite without a constellation, accepted: a constellation";
    assert!(read(alone).unwrap_err().contains(found));
}

#[test]
fn elements_that_are_none() {
    let elements =
        |file: &str| SKY.replacen("walker-delta", "elements", 1).replacen("altitude = \"550 km\"", file, 1);
    let without = ["inclination = \"53 deg\"\n", "planes = 72\n", "satellites-per-plane = 22\n"];
    let message = |file: &str| {
        let text = without.iter().fold(elements(file), |text, line| text.replacen(line, "", 1));
        read(&text).map(drop).unwrap_err()
    };
    let missing = message("file = \"no-such.tle\"");
    assert!(
        missing.starts_with("world.toml:4:8: constellation.sky.file: found \"no-such.tle\" ("),
        "{missing}"
    );
    assert!(
        missing.ends_with("accepted: a file of two-line elements or OMM, or \"starlink-shell\""),
        "{missing}"
    );
    let path = std::env::temp_dir().join(format!("bentpipe-mistakes-{}.tle", std::process::id()));
    let line = "1 00005U 58002B   00179.78495062  .00000023  00000-0  28098-4 0  4754";
    std::fs::write(&path, format!("{line}\n2 00005\n")).unwrap();
    let bad = message(&format!("file = {:?}", path.to_str().unwrap()));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        bad,
        "world.toml:4:8: constellation.sky.file: found line 1: found checksum 4, but the line adds up to 3, accepted: elements \
         that fly"
    );
}

#[test]
fn nothing_where_something_must_be() {
    assert_eq!(
        message("to = \"far\"\n", ""),
        "world.toml:10:7: flow.bulk.to: found nothing, accepted: a text in quotes"
    );
}

#[test]
fn impossible_values() {
    let end = |line: &str, instead: &str| {
        let message = message(line, instead);
        message.split_once(": found ").unwrap().1.to_owned()
    };
    assert_eq!(
        end("\"250 ms\"", "\"-250 ms\""),
        "\"-250 ms\", accepted: a time of 0 or more such as \"275 ms\" (ns, us, ms, s, min, h)"
    );
    assert_eq!(
        end("\"250 ms\"", "\"250 ms\"\nqueue = \"0 packets\""),
        "\"0 packets\", accepted: at least 1 packet or byte, such as \"50 packets\" or \"64 KiB\""
    );
    assert_eq!(
        end("10 Mbit/s", "0 Mbit/s"),
        "\"0 Mbit/s\", accepted: a rate above 0 such as \"10 Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s)"
    );
    assert_eq!(
        end("[tcp]", "[tcp]\nreceive-window = \"999 bytes\""),
        "\"999 bytes\", accepted: at least 1 segment, which is 1000 bytes, such as \"64 segments\" (segments, bytes, \
         kB, MB, GB, KiB, MiB, GiB)"
    );
    assert_eq!(
        end("\"250 ms\"", "\"250 ms\"\nloss = { rate = 1.5 }"),
        "1.5, accepted: a probability from 0 to 1 such as 1e-4"
    );
    assert_eq!(end("\"far\"\ncc", "\"far\"\ncount = 0\ncc"), "0, accepted: a whole number of 1 or more");
}

#[test]
fn a_key_of_another_kind() {
    assert_eq!(
        message("\"250 ms\"", "\"250 ms\"\nqueue = { kind = \"drop-tail\", theta = 3 }"),
        "world.toml:8:31: link.satellite.queue.theta: found a key that belongs to \"threshold\", accepted: kind, limit"
    );
    assert_eq!(
        message("\"250 ms\"", "\"250 ms\"\nqueue = \"drop-tale\""),
        "world.toml:8:9: link.satellite.queue: found \"drop-tale\", accepted: \"drop-tail\", \"drop-front\", \"threshold\", \
         \"push-out\", \"strict\", \"priority\", \"red\", \"codel\", \"fq-codel\", \"pie\", \"dualpi2\"; did you mean \"drop-tail\"?"
    );
}

#[test]
fn an_unknown_algorithm() {
    let message = message("\"reno\"", "\"renno\"");
    assert!(
        message.starts_with("world.toml:13:6: flow.bulk.cc: found \"renno\", accepted: reno, "),
        "{message}"
    );
    assert!(message.ends_with("; did you mean \"reno\"?"), "{message}");
}

#[test]
fn parameters_of_an_algorithm() {
    let end = |cc: &str| message("cc = \"reno\"", cc).split_once("flow.bulk.cc").unwrap().1.to_owned();
    let unknown = end("cc = { name = \"cubic\", betta = 0.5 }");
    assert!(unknown.starts_with(".betta: found an unknown parameter, accepted: c, beta, "), "{unknown}");
    assert!(unknown.ends_with("; did you mean `beta`?"), "{unknown}");
    assert_eq!(end("cc = { name = \"cubic\", beta = true }"), ".beta: found true, accepted: a number");
    assert_eq!(
        end("cc = { name = \"cubic\", beta = 1.5 }"),
        ".beta: found 1.5, accepted: a value that fits (1.5 is not between 0 and 1)"
    );
    assert_eq!(
        end("[flow.bulk.cc]\nname = \"cubic\"\nhystart = 1"),
        ".hystart: found 1, accepted: true or false"
    );
}

#[test]
fn names_of_nodes() {
    assert_eq!(
        message("to = \"far\"", "to = \"farr\""),
        "world.toml:12:6: flow.bulk.to: found no host \"farr\", accepted: near, far; did you mean \"far\"?"
    );
    assert_eq!(
        message("[\"near\", \"far\"]", "[\"near\", \"gateway\"]"),
        "world.toml:5:11: link.satellite.between: found no node \"gateway\", accepted: near, far"
    );
    assert_eq!(
        message("[node.far]", "[node.far]\nkind = \"router\""),
        "world.toml:13:6: flow.bulk.to: found the router \"far\", accepted: near"
    );
    assert_eq!(
        message("[node.far]", "[node.Far]"),
        "world.toml:3:7: node.Far: found \"Far\", accepted: a name of small letters, digits, - and _"
    );
}

#[test]
fn the_same_name_twice() {
    let message = message("[node.far]", "[node.near]");
    assert_eq!(
        message,
        "world.toml:3:7: found `near]`, which is not TOML (duplicate key), accepted: lines such as `key = \"value\"` and \
         `[table]`"
    );
}

#[test]
fn groups_that_do_not_pair() {
    let text = world_with("[node.near]\n[node.far]", "[node.near]\ncount = 3\n[node.far]\ncount = 2");
    assert_eq!(
        read(&text).unwrap_err(),
        "world.toml:7:11: link.satellite.between: found 3 nodes \"near\" and 2 nodes \"far\", accepted: two groups of \
         nodes of equal count, or one of them a single node"
    );
}

#[test]
fn no_route() {
    let accepted = "accepted: two hosts joined by a link, or by links through routers";
    let island =
        world_with("[node.far]", "[node.far]\n[node.island]").replace("to = \"far\"", "to = \"island\"");
    assert_eq!(
        read(&island).unwrap_err(),
        format!("world.toml:11:7: flow.bulk: found no route from near to island, {accepted}")
    );
    let pairs = world_with("[node.near]\n[node.far]", "[node.near]\ncount = 3\n[node.far]\ncount = 3");
    let crossed = pairs
        .replace("from = \"near\"", "from = \"near\"\ncount = 2")
        .replace("to = \"far\"", "to = \"near\"");
    assert_eq!(
        read(&crossed).unwrap_err(),
        format!("world.toml:12:7: flow.bulk: found no route from near.0 to near.0, {accepted}")
    );
}

#[test]
fn schedules_and_outages_out_of_order() {
    assert_eq!(
        message(
            "\"10 Mbit/s\"",
            "[[\"0 s\", \"1 Mbit/s\"], [\"9 s\", \"2 Mbit/s\"], [\"5 s\", \"1 Mbit/s\"]]"
        ),
        "world.toml:6:8: link.satellite.rate.points: found 5 s after 9 s, accepted: strictly ascending times"
    );
    assert_eq!(
        message("\"250 ms\"", "\"250 ms\"\noutages = [[\"4 s\", \"3 s\"]]"),
        "world.toml:8:11: link.satellite.outages.intervals: found from 4.000000000 s to 3.000000000 s, accepted: outages \
         that end after they begin"
    );
}

#[test]
fn text_that_is_no_toml() {
    assert_eq!(
        message("duration = \"10 s\"", "duration = 10 s"),
        "world.toml:1:12: found `10 s`, which is not TOML (string values must be quoted, expected literal string), \
         accepted: lines such as `key = \"value\"` and `[table]`"
    );
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = WORLD.replace("10 Mbit/s", "fast").replace("250 ms", "long").replace("reno", "fastest");
    assert_eq!(read(&text).unwrap_err().lines().count(), 3);
}

/// Checks that the flow with this traffic and further keys is refused with these words.
fn refused(cases: &[(&str, &str)]) {
    for (traffic, expected) in cases {
        let found = message("cc = \"reno\"", &format!("cc = \"reno\"\ntraffic = {traffic}"));
        assert!(found.contains(expected), "{traffic}: {found}");
    }
}

#[test]
fn traffic_that_cannot_be() {
    refused(&[
        (
            "{ kind = \"video\", group = \"IBX\" }",
            "found \"IBX\", accepted: a group of pictures, one letter I, P or B",
        ),
        (
            "{ kind = \"video\", frame-rate = 4 }",
            "traffic.threshold: found 200 ms at 4 frames a second, accepted: at least",
        ),
        (
            "{ kind = \"adaptive\", ladder = [\"2 Mbit/s\", \"1 Mbit/s\"] }",
            "accepted: rates above 0 in ascending order",
        ),
        (
            "{ kind = \"adaptive\", buffer = \"3 s\" }",
            "traffic.buffer: found 3 s for segments of 4 s, accepted: room",
        ),
        (
            "{ kind = \"adaptive\", player = { reservoir = 0.6 } }",
            "found a reservoir of 0.6 and a cushion of 0.525",
        ),
        (
            "{ kind = \"on-off\", packet = \"20 bytes\" }",
            "found 20 bytes with 28 of headers, accepted: a packet larger",
        ),
        (
            "{ kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"20 bytes\" }",
            "traffic.packet: found 20 bytes with 28 of headers, accepted: a packet larger than its headers",
        ),
        ("{ kind = \"on-off\", times = { shape = 1.0 } }", "accepted: a number of 1.01 or more such as 1.5"),
        ("{ kind = \"web\", model = \"choi\" }", "accepted: \"choi-limb\", \"mah\", \"surge\", \"ns2\""),
        (
            "{ kind = \"frames\", sizes = \"no-such.txt\" }",
            "found \"no-such.txt\", accepted: a file with one frame size",
        ),
    ]);
}

#[test]
fn transports_that_cannot_be() {
    refused(&[
        (
            "{ kind = \"voice\" }\ntransport = \"tcp\"",
            "found \"tcp\" under traffic of kind \"voice\", accepted: \"udp\"",
        ),
        (
            "\"bulk\"\nsecond-path = \"near\"",
            "second-path: found a second path under \"tcp\", accepted: \"sctp\"",
        ),
        (
            "\"bulk\"\ntransport = \"sctp\"\nsecond-path = \"near\"",
            "second-path: found the host \"near\", accepted: a router",
        ),
        (
            "\"bulk\"\ntransport = \"dup\"",
            "found \"dup\", accepted: \"tcp\", \"udp\", \"tfrc\", \"admission\", \"stp\", \"sctp\", \"dtn\", \"petra\", \"quic\"; did you mean \"udp\"?",
        ),
        (
            "\"bulk\"\ntransport = { kind = \"dtn\", bundle = \"1 MB\", store = \"100 kB\" }",
            "transport.store: found 100000 bytes for bundles of 1000000, accepted: room for a bundle",
        ),
        (
            "\"bulk\"\ntransport = { kind = \"dtn\", lifetime = \"0 s\" }",
            "transport.lifetime: found \"0 s\", accepted: a time above 0",
        ),
        (
            "\"bulk\"\ntransport = { kind = \"dtn\", convergence = \"lpt\" }",
            "found \"lpt\", accepted: \"ltp\", \"udp\", \"tcp\"; did you mean \"ltp\"?",
        ),
        ("\"bulk\"\ntransport = { kind = \"stp\", unordered = true }", "unordered"),
        (
            "\"bulk\"\ntransport = { kind = \"petra\", retention = \"0 bytes\" }",
            "transport.retention: found \"0 bytes\", accepted:",
        ),
        (
            "\"bulk\"\ntransport = { kind = \"petra\", confirm-after = \"0 s\" }",
            "transport.confirm-after: found \"0 s\", accepted: a time above 0",
        ),
        (
            "\"bulk\"\n[node.relay]\nkind = \"relay-entity\"\nlow = 0.9",
            "node.relay.low: found 0.9 with high = 0.9, accepted: less than high",
        ),
        (
            "\"bulk\"\n[node.relay]\nkind = \"relay-entity\"\ndies-at = \"soon\"",
            "node.relay.dies-at: found \"soon\", accepted:",
        ),
        ("{ kind = \"voice\" }\ntransport = \"dtn\"", "found \"dtn\" under traffic of kind \"voice\""),
    ]);
}

#[test]
fn a_file_of_frames_stands_beside_its_scenario() {
    let folder = std::env::temp_dir().join(format!("bentpipe-frames-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("film.txt"), "I 3000\nB 500\n").unwrap();
    let instead = "cc = \"reno\"\ntraffic = { kind = \"frames\", sizes = \"film.txt\" }";
    let text = world_with("cc = \"reno\"", instead);
    let path = folder.join("world.toml");
    let scenario = bentpipe_scenario::Draft::parse(path.to_str().unwrap(), &text).unwrap().scenario();
    std::fs::remove_dir_all(&folder).unwrap();
    match &scenario.unwrap().flows[0].traffic {
        bentpipe_scenario::Traffic::Frames { recording, file, .. } => {
            assert_eq!((recording.mean_bytes(), file.as_str()), (1750.0, "film.txt"));
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the suggestion for a value of `key`, if there is one.
fn suggested(key: &str, value: &str) -> Option<String> {
    let message = set(&[&format!("{key}={value}")]).unwrap_err();
    Some(message.split_once("; did you mean ")?.1.trim_end_matches('?').to_owned())
}

#[test]
fn only_what_means_the_same_is_suggested() {
    let rate = "link.satellite.rate";
    assert_eq!(suggested(rate, "1 MB/s").as_deref(), Some("\"8 Mbit/s\""));
    assert_eq!(suggested(rate, "10 Mbps").as_deref(), Some("\"10 Mbit/s\""));
    assert_eq!(suggested("link.satellite.loss.rate", "1%").as_deref(), Some("0.01"));
    assert_eq!(suggested("link.satellite.queue.limit", "50 pkts").as_deref(), Some("\"50 packets\""));
    for (key, value) in [
        (rate, "1e300 Gbit/s"),
        (rate, "10 ms"),
        ("link.satellite.queue.limit", "100 km"),
        ("duration", "3 MB"),
    ] {
        assert_eq!(suggested(key, value), None, "{key} = {value}");
    }
    for (theirs, ours) in [("bandwidth", "rate"), ("latency", "delay-one-way"), ("buffer", "queue")] {
        assert_eq!(
            suggested(&format!("link.satellite.{theirs}"), "1").as_deref(),
            Some(&*format!("`{ours}`"))
        );
    }
}

#[test]
fn every_quantity_has_a_limit_that_the_message_names() {
    for (setting, limit) in [
        ("duration=87601 h", "at most \"87600 h\""),
        ("link.satellite.rate=1e300 Gbit/s", "at most \"10000 Gbit/s\""),
        ("link.satellite.queue.limit=1e9 packets", "at most \"10000000 packets\""),
        ("flow.bulk.count=1000000000", "at most 10000000"),
        ("node.near.count=1000001", "at most 1000000"),
        ("tcp.mss=1000000 bytes", "at most \"65535 bytes\""),
        ("tcp.mss=65500 bytes", "packets of at most 65535 bytes"),
        ("tcp.send-buffer=2000000 GB", "at most \"1000000 GB\""),
        ("tcp.initial-window=99999999 segments", "at most \"10000000 segments\""),
        (
            "flow.bulk.traffic={ kind = 'cbr', rate = '1 Mbit/s', packet = '10 MB' }",
            "at most \"65535 bytes\"",
        ),
        ("link.satellite.outages={ every = '2 ns', length = '1 ns' }", "1000000 times in 10 s at most"),
        ("link.satellite.queue={ kind = 'fq-codel', queues = 100000 }", "at most 65536"),
    ] {
        let message = set(&[setting]).unwrap_err();
        assert!(message.contains(limit), "{setting}: {message}");
    }
    let steps = sky_message("elevation-mask", "step = \"1 ns\"\nelevation-mask");
    assert!(
        steps.contains("constellation.sky.step") && steps.contains("a millionth of the duration"),
        "{steps}"
    );
    let many: String = (0..10_001).map(|n| format!("[node.n{n}]\n")).collect();
    let message = read(&world_with("[node.near]", &format!("{many}[node.near]"))).unwrap_err();
    assert!(message.contains("node: found 10003 of them, accepted: at most 10000"), "{message}");
}

#[test]
fn groups_need_names() {
    assert!(
        set(&["node=5"])
            .unwrap_err()
            .contains("node: found 5, accepted: tables with names of your own, [node.NAME]")
    );
}

#[test]
fn what_nobody_reads_to_its_end_is_cut() {
    let message = set(&[&format!("link.satellite.rate={}", "x".repeat(200_000))]).unwrap_err();
    assert!(message.len() < 2000 && message.contains("(200002 bytes in all)"), "{} bytes", message.len());
    for long in [
        "x".repeat(200_000),
        format!("{}=3", "x".repeat(200_000)),
        format!("flow.{}.cc=reno", "x".repeat(200_000)),
    ] {
        let message = set(&[&long]).unwrap_err();
        assert!(message.len() < 2000, "{} bytes", message.len());
    }
    let message = bentpipe_scenario::resolve_cc(&"x".repeat(200_000)).unwrap_err().to_string();
    assert!(message.len() < 2000 && message.contains("(200000 bytes in all)"), "{} bytes", message.len());
    let message = read(&format!("duration = {}\n", "x".repeat(200_000))).unwrap_err();
    assert!(message.len() < 10_000, "{} bytes", message.len());
}

#[test]
fn what_does_not_fit_quic_is_refused() {
    let quic = |more: &str| message("cc = \"reno\"", &format!("transport = \"quic\"\n{more}"));
    let full = "tcp = { mss = \"1448 bytes\" }";
    let text = quic(&format!("cc = \"peach\"\n{full}"));
    assert!(text.contains("flow.bulk.cc: found `peach` does not run over a packet transport"), "{text}");
    assert!(text.contains("quic:cubic, quic:newreno"), "{text}");
    let text = quic(&format!("cc = \"cubic+sack\"\n{full}"));
    assert!(text.contains("found \"cubic+sack\": QUIC has its own loss recovery"), "{text}");
    let text = quic("cc = \"cubic\"");
    assert!(text.contains("tcp.mss: found 1052 bytes for a packet with its headers, over QUIC"), "{text}");
    let text = quic("tcp = { mss = \"1448 bytes\", undo = false }");
    assert!(text.contains("flow.bulk.tcp.undo: found an option of TCP for a flow over QUIC"), "{text}");
    assert!(text.contains("accepted: mss, header, initial-window, receive-window"), "{text}");
    let text = quic("tcp = { mss = \"1448 bytes\", initial-window = \"2 segments\" }");
    assert!(
        text.contains("initial-window: found 2 segments over QUIC, accepted: at least 10 segments"),
        "{text}"
    );
    let text = message("cc = \"reno\"", "cc = \"quic:cubic\"");
    assert!(text.contains("flow.bulk.cc: found \"quic:cubic\" without QUIC"), "{text}");
    let text = quic(&format!("cc = {{ name = \"quic:cubic\", beta = 0.7 }}\n{full}"));
    assert!(text.contains("flow.bulk.cc.beta: found an unknown key"), "{text}");
}

#[test]
fn the_controls_of_the_quic_stack_are_names_of_flows_over_quic() {
    let flow = "transport = { kind = \"quic\", zero-rtt = true }\ncc = \"quic:newreno\"\ntcp = { mss = \"1448 bytes\" }";
    let scenario = read(&world_with("cc = \"reno\"", flow)).unwrap();
    assert_eq!(scenario.flows[0].cc, "quic:newreno");
    assert!(scenario.flows[0].options.quic.resumes);
}
