//! Test that the output of `show` reads back to the same world after any change.

use bentpipe_scenario::{Draft, Scenario, builtin, list, resolve_cc};
use proptest::prelude::*;

fn check_round_trip(scenario: &Scenario) {
    let text = scenario.to_toml();
    let again = Draft::parse(&scenario.name, &text).and_then(|draft| draft.scenario());
    let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(&again, scenario, "{text}");
    assert_eq!(again.to_toml(), text);
}

#[test]
fn built_in_scenarios() {
    for summary in list() {
        check_round_trip(&builtin(&summary.name).unwrap());
    }
}

#[test]
fn a_world_without_flows() {
    let text = "title = \"Nobody sends\"\nduration = \"1 s\"";
    check_round_trip(&Draft::parse("empty", text).unwrap().scenario().unwrap());
}

#[test]
fn every_algorithm_with_its_parameters() {
    for name in bentpipe_scenario::algorithm_names() {
        let mut draft = Draft::load("geo-fairness").unwrap();
        draft.set_cc(&name).unwrap();
        let scenario = draft.scenario().unwrap();
        check_round_trip(&scenario);
        assert_eq!(scenario.flows[0].sender.sender.cc, resolve_cc(&name).unwrap().0);
    }
}

#[test]
fn encryption_and_helpers() {
    for changes in [
        &["flow.bulk.esp=opaque"][..],
        &["flow.bulk.esp={ kind = 'hashes', overhead = '38 bytes', hash = '12 bytes' }"],
        &["flow.bulk.esp=mapping", "flow.bulk.esp.overhead=40 bytes"],
        &["flow.bulk.plain-receiver=true"],
        &["node.gateway.kind=wtcp", "node.gateway.buffer=1 MB"],
        &["node.gateway={ kind = 'fuzzy', room = '80 packets', tells = 'sender', drops = true, most = 1 }"],
        &["node.gateway={ kind = 'snoop', dies-at = '20 s' }"],
        &["link.satellite.reverse.medium={ kind = 'aloha', detection = false }"],
        &[
            "flow.bulk.traffic={ kind = 'voice' }",
            "flow.bulk.transport={ kind = 'admission', threshold = 0.05 }",
        ],
    ] {
        let mut draft = Draft::load("geo-dumbbell").unwrap();
        changes.iter().for_each(|change| draft.set(change).unwrap());
        check_round_trip(&draft.scenario().unwrap_or_else(|error| panic!("{changes:?}: {error}")));
    }
}

#[test]
fn encryption_is_for_tcp() {
    let mut draft = Draft::load("geo-dumbbell").unwrap();
    draft.set("flow.bulk.esp=opaque").unwrap();
    draft.set("flow.bulk.transport=stp").unwrap();
    let refused = draft.scenario().unwrap_err().to_string();
    assert!(refused.contains("encapsulation of \"stp\"") && refused.contains("\"tcp\""), "{refused}");
}

#[test]
fn every_default_is_spelled_out() {
    let text = builtin("geo-dumbbell").unwrap().to_toml();
    for line in [
        "queue = { kind = \"threshold\", limit = \"50 packets\", theta = 3 }",
        "reverse = { queue = { kind = \"drop-tail\", limit = \"100000 packets\" } }",
        "receive-window = { kind = \"fixed\", size = \"64 segments\" }",
        "retries = 15",
        "outages = { intervals = [], effect = \"pause\" }",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} is missing in\n{text}");
    }
    let rto = [
        "[tcp.rto]",
        "initial = \"1 s\"",
        "floor = \"1 s\"",
        "margin = \"0 s\"",
        "ceiling = \"60 s\"",
        "tick = \"1 ms\"",
        "each-sample = false",
        "restart-on-sacks = false",
        "",
    ];
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.windows(rto.len()).any(|shown| shown == rto), "{rto:?} is missing in\n{text}");
}

#[test]
fn only_what_differs_is_said_of_the_other_flows() {
    let mut draft = Draft::load("geo-fairness").unwrap();
    draft.set("flow.newreno.tcp.recovery=rack").unwrap();
    draft.set("flow.newreno.receiver.tcp.delayed-ack=off").unwrap();
    let text = draft.scenario().unwrap().to_toml();
    assert!(text.contains("\ntcp = { recovery = \"rack\" }\n"), "{text}");
    assert!(text.contains("\nreceiver = { tcp = { delayed-ack = \"off\" } }\n"), "{text}");
}

/// The receiver has the values of the flow's own `tcp`. It still differs from its sender, whose algorithm includes a
/// recovery.
#[test]
fn a_receiver_is_compared_with_its_sender_alone() {
    let mut draft = Draft::load("geo-fairness").unwrap();
    draft.set("flow.newreno.receiver.tcp.recovery=rack").unwrap();
    draft.set("flow.newreno.tcp.recovery=rack").unwrap();
    let scenario = draft.scenario().unwrap();
    assert!(scenario.to_toml().contains("\nreceiver = { tcp = { recovery = \"rack\" } }\n"));
    check_round_trip(&scenario);
}

/// Changes of a direction of a link.
fn link_change() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "rate=[[\"0 s\", \"10 Mbit/s\"], [\"20 s\", \"5 Mbit/s\"]]",
        "rate={ mean = \"10 Mbit/s\", amplitude = \"1234567 bit/s\", period = \"1 h\", phase = \"7 ns\" }",
        "delay-one-way.table=[[\"0 s\", \"5 ms\"], [\"1 s\", \"8.59375 ms\"]]",
        "queue=33 kB",
        "queue=fq-codel",
        "queue={ kind = \"fq-codel\", fair-by = \"destination\" }",
        "queue={ kind = \"red\", min-threshold = \"0.5 packets\", ecn = true }",
        "queue.kind=codel",
        "queue={ kind = \"pie\", target = \"100 ms\", alpha = 0.0625, burst = \"0 s\", ecn = true }",
        "queue={ kind = \"dualpi2\", target = \"20 ms\", max-rtt = \"600 ms\", step = \"2 ms\", coupling = 3 }",
        "queue={ ordinary = \"9 packets\", low = \"1 packet\" }",
        "loss=none",
        "loss.rate=1e-7",
        "loss={ good-to-bad = 1e-3, bad-to-good = 0.25 }",
        "loss={ packets = [1, 100], data-only = true }",
        "loss={ kind = \"bursts\", rate = 0.01, mean-burst = 7 }",
        "loss=[[\"0 s\", 0.0], [\"2 s\", 0.5]]",
        "loss={ margin = \"7.5 dB\", rice = \"-2 dB\" }",
        "loss={ kind = \"loo\", multipath = \"-9 dB\" }",
        "loss={ lost = \"0010\", repeat = true }",
        "medium=slotted-aloha",
        "medium={ kind = \"cf-dama\", requests = \"fixed\", slots = 20 }",
        "arq=selective-repeat",
        "arq.retries=77",
        "fec=reed-solomon",
        "fec={ k = 7, n = 9, flush = \"1.234567 ms\" }",
        "medium.replicas=3",
        "modem=dvb-s2",
        "modem={ kind = \"dvb-s2x\", modcod = \"64apsk 5/6\", symbol-rate = \"1234567 Bd\" }",
        "modem.margin=1.5 dB",
        "weather={ rain = [[\"1 s\", \"0 mm/h\"], [\"9 s\", \"33.5 mm/h\"]], polarisation = \"vertical\" }",
        "weather={ attenuation = [[\"0 s\", \"2 dB\"]] }",
        "outages=[[\"1 s\", \"2 s\"], [\"3 s\", \"4 s\"]]",
        "outages={ every = \"9 s\", length = \"1 s\", effect = \"blind\" }",
        "reordering={ probability = 0.01, extra-max = \"30 ms\" }",
        "jitter=5 ms",
        "jitter={ kind = \"log-normal\", mean = \"3 ms\", deviation = \"1.5 ms\", correlation = 0.25 }",
        "jitter={ kind = \"pareto\", mean = \"3 ms\", deviation = \"1.5 ms\" }",
        "delay-one-way=[[\"0 s\", \"9 ms\"], [\"7 s\", \"12 ms\"]]",
        "duplication=0.5",
        "corruption=0.5",
        "preserve-order=false",
    ])
}

/// Changes of `geo-fairness`, whose flow groups are `bulk` and `newreno`.
fn change() -> impl Strategy<Value = String> {
    let link = link_change();
    let tcp = prop::sample::select(vec![
        "mss=536 bytes",
        "header=40 bytes",
        "recovery=rack",
        "receive-window=auto",
        "receive-window=77777 bytes",
        "receive-window.limit=3 MB",
        "delayed-ack=off",
        "delayed-ack.quick=16 segments",
        "pacing={ slow-start-gain = 2.5 }",
        "pacing=off",
        "initial-window=rfc6928",
        "initial-ssthresh=17.25 segments",
        "max-burst=4 segments",
        "keep-alive.probes=3",
        "user-timeout=90 s",
        "window-validation=rfc7661",
        "spurious-timeout=eifel",
        "spurious-timeout=enhanced",
        "spurious-timeout={ restore = \"both\" }",
        "spurious-timeout={ kind = \"aen\", probe = \"keepalive\", paced = false }",
        "rto.tick=100 ms",
    ]);
    let flow = prop::sample::select(vec![
        "cc=cubic",
        "cc=cubic+newreno",
        "cc={ name = \"cubic\", beta = 0.85 }",
        "cc=reno",
        "count=7",
        "start=1.5 s",
        "traffic={ size = \"1 MB\" }",
        "traffic={ page = \"50 segments\", idle = \"5 s\" }",
        "traffic={ kind = \"cbr\", rate = \"100 kbit/s\" }",
    ]);
    let link_of = prop::sample::select(vec!["link.satellite", "link.satellite.reverse", "link.bulk-uplink"]);
    let tcp_of =
        prop::sample::select(vec!["tcp", "flow.bulk.tcp", "flow.newreno.tcp", "flow.newreno.receiver.tcp"]);
    let flow_of = prop::sample::select(vec!["flow.bulk", "flow.newreno"]);
    prop_oneof![
        (link_of, link).prop_map(|(path, key)| format!("{path}.{key}")),
        (tcp_of, tcp).prop_map(|(path, key)| format!("{path}.{key}")),
        (flow_of, flow).prop_map(|(path, key)| format!("{path}.{key}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_changes_that_make_a_world(changes in prop::collection::vec(change(), 1..12)) {
        let mut draft = Draft::load("geo-fairness").unwrap();
        for change in &changes {
            draft.set(change).unwrap();
        }
        // Some changes contradict each other, and a receiver has no header size.
        if let Ok(scenario) = draft.scenario() {
            check_round_trip(&scenario);
        }
    }
}
