//! `--set KEY=VALUE` reaches every kind of key.

mod common;

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{Limit, LossModel, QueueConfig, Schedule};
use bentpipe_scenario::{Draft, Scenario, builtin, list};
use bentpipe_tcp::{DelayedAck, ReceiveWindow, Recovery};
use common::set;

fn dumbbell(arguments: &[&str]) -> Scenario {
    let mut draft = Draft::load("geo-dumbbell").unwrap();
    for argument in arguments {
        draft.set(argument).unwrap();
    }
    draft.scenario().unwrap_or_else(|error| panic!("{error}"))
}

fn refused(argument: &str) -> String {
    set(&[argument]).unwrap_err()
}

#[test]
fn top_level_keys() {
    let scenario = dumbbell(&["duration=60 s", "seed=7", "title=A test"]);
    assert_eq!(scenario.duration, Duration::from_secs(60));
    assert_eq!((scenario.seed, scenario.title.as_str()), (7, "A test"));
}

/// A run may end before the first change of a link.
#[test]
fn every_built_in_world_may_be_short() {
    for name in list().into_iter().map(|world| world.name) {
        let mut draft = Draft::load(&name).unwrap();
        draft.set("duration=100 ms").unwrap();
        draft.scenario().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn counts() {
    let scenario = dumbbell(&["flow.bulk.count=40", "node.sender.count=30"]);
    assert_eq!(scenario.flows[0].count, 40);
    assert_eq!(scenario.nodes[0].count, 30);
}

#[test]
fn a_loss_rate_turns_packet_loss_on() {
    let loss = |scenario: &Scenario| scenario.links[0].forward.loss.model.clone();
    let none = set(&[]).unwrap();
    assert_eq!(loss(&none), LossModel::None);
    let packet = LossModel::Packet { probability: 1e-4 };
    assert_eq!(loss(&set(&["link.satellite.loss.rate=1e-4"]).unwrap()), packet);
    assert_eq!(loss(&set(&["link.satellite.loss=none", "link.satellite.loss.rate=1e-4"]).unwrap()), packet);
    assert_eq!(loss(&set(&["link.satellite.loss=1e-4"]).unwrap()), packet);
    let bit = set(&["link.satellite.loss.kind=bit", "link.satellite.loss.rate=1e-7"]).unwrap();
    assert_eq!(loss(&bit), LossModel::Bit { probability: 1e-7 });
    let satellite = dumbbell(&["link.satellite.loss.rate=1e-4"]).links[1].clone();
    assert_eq!(satellite.forward.loss.model, packet);
    assert!(satellite.forward.loss.data_only);
}

#[test]
fn another_kind_of_queue_forgets_what_only_the_old_one_had() {
    let queue = |arguments: &[&str]| dumbbell(arguments).links[1].forward.queue.clone();
    let limit = Limit::Packets(50);
    assert_eq!(queue(&[]), QueueConfig::Threshold { limit, low_priority_threshold: 3 });
    assert_eq!(queue(&["link.satellite.queue.kind=drop-tail"]), QueueConfig::DropTail { limit });
    assert_eq!(queue(&["link.satellite.queue.kind=strict"]), QueueConfig::Strict { limit });
    let limit = Limit::Packets(80);
    assert_eq!(
        queue(&["link.satellite.queue.limit=80 packets", "link.satellite.queue.theta=1"]),
        QueueConfig::Threshold { limit, low_priority_threshold: 1 }
    );
}

#[test]
fn one_direction_of_a_link() {
    let scenario = set(&["link.satellite.reverse.rate=256 kbit/s", "link.satellite.rate=5 Mbit/s"]).unwrap();
    let link = &scenario.links[0];
    assert_eq!(link.forward.rate, Schedule::Constant(Rate::from_mbps(5)));
    assert_eq!(link.reverse.rate, Schedule::Constant(Rate::from_bps(256_000)));
    assert_eq!(link.reverse.delay_one_way, link.forward.delay_one_way);
}

#[test]
fn values_are_toml_where_they_can_be() {
    let scenario = set(&[
        "link.satellite.rate=[[\"0 s\", \"10 Mbit/s\"], [\"20 s\", \"5 Mbit/s\"]]",
        "link.satellite.queue={ kind = \"codel\", target = \"50 ms\", interval = \"550 ms\" }",
        "link.satellite.preserve-order=false",
    ])
    .unwrap();
    let link = &scenario.links[0].forward;
    assert!(matches!(&link.rate, Schedule::Table { points, .. } if points.len() == 2));
    assert_eq!(link.queue.name(), "codel");
    assert!(!link.preserve_order);
}

#[test]
fn connections_by_default_by_group_and_by_end() {
    let scenario = set(&[
        "tcp.receive-window=64 segments",
        "tcp.delayed-ack=off",
        "flow.bulk.tcp.recovery=sack",
        "flow.bulk.cc=cubic",
        "flow.bulk.receiver.tcp.delayed-ack.timer=200 ms",
    ])
    .unwrap();
    let flow = &scenario.flows[0];
    assert_eq!(flow.sender.receiver.receive_window, ReceiveWindow::Fixed(64_000));
    assert_eq!(
        (flow.sender.sender.recovery, flow.receiver.sender.recovery),
        (Recovery::Sack, Recovery::Sack)
    );
    assert_eq!(flow.sender.receiver.delayed_ack, DelayedAck::Off);
    let DelayedAck::On { timer, .. } = flow.receiver.receiver.delayed_ack else {
        panic!("a timer turns it on")
    };
    assert_eq!(timer, Duration::from_millis(200));
}

#[test]
fn segments_are_those_of_the_flow_even_if_the_default_counts_them() {
    let scenario = set(&["tcp.receive-window=64 segments", "flow.bulk.tcp.mss=500 bytes"]).unwrap();
    assert_eq!(scenario.flows[0].receiver.receiver.receive_window, ReceiveWindow::Fixed(32_000));
}

#[test]
fn algorithms_and_their_parameters() {
    let scenario = set(&["flow.bulk.cc=cubic", "flow.bulk.cc.beta=0.5"]).unwrap();
    let flow = &scenario.flows[0];
    assert_eq!(flow.cc, "cubic");
    let bentpipe_cc::Algorithm::Cubic(cubic) = &flow.sender.sender.cc else {
        panic!("{:?}", flow.sender.sender.cc)
    };
    assert_eq!(cubic.beta, 0.5);
    let renamed = set(&["flow.bulk.cc={ name = \"cubic\", beta = 0.5 }", "flow.bulk.cc=newreno"]).unwrap();
    assert_eq!(renamed.flows[0].sender.sender.recovery, Recovery::NewReno);
}

#[test]
fn cc_changes_the_groups_under_comparison_only() {
    let mut draft = Draft::load("geo-fairness").unwrap();
    draft.set_cc("cubic").unwrap();
    let scenario = draft.scenario().unwrap();
    let names: Vec<_> = scenario.flows.iter().map(|flow| (flow.name.as_str(), flow.cc.as_str())).collect();
    assert_eq!(names, [("bulk", "cubic"), ("newreno", "newreno")]);
    assert_eq!(scenario.flows[0].sender.sender.recovery, Recovery::Sack, "as the scenario's tcp table says");

    let mut typed = builtin("geo-fairness").unwrap();
    typed.set_algorithm(bentpipe_cc::Algorithm::from_name("cubic").unwrap());
    assert_eq!(typed, scenario);
}

#[test]
fn cc_keeps_the_parameters_of_the_command_line_and_forgets_those_of_the_file() {
    let file = common::world_with("cc = \"reno\"", "cc = { name = \"cubic\", c = 0.8, beta = 0.6 }");
    let mut draft = Draft::parse("world.toml", &file).unwrap();
    draft.set("flow.bulk.cc.beta=0.5").unwrap();
    draft.set_cc("cubic+sack").unwrap();
    let scenario = draft.scenario().unwrap();
    let bentpipe_cc::Algorithm::Cubic(cubic) = &scenario.flows[0].sender.sender.cc else { panic!("cubic") };
    assert_eq!((cubic.c, cubic.beta), (0.4, 0.5));
    assert_eq!(scenario.flows[0].sender.sender.recovery, Recovery::Sack);
}

#[test]
fn cc_refuses_what_it_cannot_do() {
    let mut draft = Draft::load("geo-fairness").unwrap();
    assert!(draft.set_cc("cubik").unwrap_err().to_string().ends_with("; did you mean \"cubic\"?"));
    draft.set("flow.bulk.fixed=true").unwrap();
    assert_eq!(
        draft.set_cc("cubic").unwrap_err().to_string(),
        "--cc cubic: flow: found no flow group under comparison, accepted: a scenario with a flow group that is not `fixed`"
    );
}

#[test]
fn mistakes_name_the_argument() {
    assert_eq!(
        refused("link.satelite.loss.rate=1e-4"),
        "--set link.satelite.loss.rate=1e-4: link.satelite: found an unknown link, accepted: satellite; did you mean \
         `satellite`?"
    );
    assert_eq!(
        refused("link.satellite.loss.rte=1e-4"),
        "--set link.satellite.loss.rte=1e-4: link.satellite.loss.rte: found an unknown key, accepted: kind, data-only"
    );
    assert_eq!(
        refused("duration=soon"),
        "--set duration=soon: duration: found \"soon\", accepted: a time above 0 such as \"275 ms\" (ns, us, ms, s, min, h)"
    );
    assert_eq!(
        refused("duration"),
        "--set duration: found `duration`, accepted: KEY=VALUE such as `duration=60 s` or `link.satellite.loss.rate=1e-4`"
    );
    assert_eq!(
        refused("flow.bulk.to=island"),
        "--set flow.bulk.to=island: flow.bulk.to: found no host \"island\", accepted: near, far"
    );
    assert_eq!(
        refused("tcp.rto.floor=70 s"),
        "--set tcp.rto.floor=70 s: tcp.rto.floor: found a floor of 70 s above the ceiling of 60 s, accepted: a floor of \
         at most the ceiling"
    );
    let duration = refused("duration.unit=s");
    assert!(
        duration.starts_with("--set duration.unit=s: duration: found a table, accepted: a time"),
        "{duration}"
    );
}
