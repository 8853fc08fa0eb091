//! Test that a proxy has the same keys in a scenario and on a real link.

use std::fs;

use bentpipe_scenario::deployment::{Deployment, FqCodel};
use bentpipe_scenario::{Datapath, Draft, NodeKind, Opening, ProxyConfig, Scenario, Side, Split};

const INTERFACES: &str = "[interfaces]\nclients = \"eth0\"\nsatellite = \"sat0\"\n";

fn scenario(keys: &str) -> Result<Scenario, String> {
    let world = format!(
        "duration = \"10 s\"\n[node.server]\n[node.vsat]\n[node.hub]\nkind = \"proxy\"\n{keys}\n\
         [link.lan]\nbetween = [\"server\", \"hub\"]\nrate = \"100 Mbit/s\"\ndelay-one-way = \"1 ms\"\n\
         [link.satellite]\nbetween = [\"hub\", \"vsat\"]\nrate = \"10 Mbit/s\"\ndelay-one-way = \"275 ms\"\n\
         [flow.bulk]\nfrom = \"server\"\nto = \"vsat\"\ncc = \"cubic\"\n"
    );
    Draft::parse("world.toml", &world).unwrap().scenario().map_err(|error| error.to_string())
}

fn proxy(scenario: &Scenario) -> ProxyConfig {
    let hub = scenario.nodes.iter().find(|node| node.name == "hub").unwrap();
    let NodeKind::Proxy(config) = &hub.kind else { panic!("{:?}", hub.kind) };
    ProxyConfig::clone(config)
}

fn deployment(class: &str) -> Result<Deployment, String> {
    let text = format!("{INTERFACES}[[class]]\n{class}");
    Deployment::parse("pep.toml", &text).map_err(|error| error.to_string())
}

#[test]
fn the_same_table_says_the_same_in_a_scenario_and_on_a_real_link() {
    for keys in [
        "",
        "satellite = { datapath = \"engine\", cc = \"star\", rate-limit = \"20 Mbit/s\" }\nclients = \"cubic\"\nbuffer = \"auto\"\nsyn = \"early\"",
        "satellite = \"kernel:bbr\"\nbuffer = \"4 MB\"\nsyn = \"server-first\"",
        "satellite = { cc = { name = \"peach\", mode = \"safe\" }, datapath = \"engine\" }",
    ] {
        let simulated = proxy(&scenario(keys).unwrap()).split;
        assert_eq!(simulated, deployment(keys).unwrap().classes[0].split, "{keys}");
    }
}

#[test]
fn a_name_of_linux_is_simulated_by_the_algorithm_that_it_stands_for() {
    for (name, algorithm) in [("kernel:bbr", "bbr"), ("bp_star", "star"), ("kernel:bp_hybla", "hybla")] {
        let side = proxy(&scenario(&format!("satellite = \"{name}\"")).unwrap()).split.satellite;
        assert_eq!(side.algorithm().unwrap().0.name(), algorithm);
    }
    let reno = Side { cc: "kernel:reno".into(), ..Side::default() };
    assert_eq!(reno.algorithm().unwrap().1, None, "Linux repairs by SACK and RACK whatever the algorithm");
    assert_eq!(Side::default().algorithm(), None, "that of the flow");
}

#[test]
fn a_class_of_a_file_becomes_that_of_every_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pep.toml");
    let classes = "[[class]]\nmatch = \"22\"\nproxy = false\n[[class]]\nname = \"web\"\nsatellite = { cc = \"hybla\", datapath = \"engine\" }\n\
                   [[class]]\nname = \"rest\"\nsatellite = \"bbr\"\nsyn = \"early\"\n";
    fs::write(&path, format!("{INTERFACES}{classes}")).unwrap();
    let path = path.to_str().unwrap();
    let with = |class: Option<&str>| {
        let mut draft = Draft::load("geo-vsat").unwrap();
        draft.set_proxies(path, class).map_err(|error| error.to_string())?;
        draft.scenario().map_err(|error| error.to_string())
    };
    let web = Split {
        satellite: Side { cc: "hybla".into(), datapath: Datapath::Engine, ..Side::default() },
        ..Split::default()
    };
    assert_eq!(proxy(&with(None).unwrap()).split, web);
    assert_eq!(proxy(&with(Some("rest")).unwrap()).split.syn, Opening::Early);
    let mistake = with(Some("rets")).unwrap_err();
    assert!(mistake.contains("found \"rets\"") && mistake.contains("web, rest"), "{mistake}");
    let mistake = Draft::load("geo").unwrap().set_proxies(path, None).unwrap_err().to_string();
    assert!(mistake.contains("found no proxy"), "{mistake}");
    let mut made = Draft::load("geo-vsat").unwrap();
    made.set("node.beam.kind=proxy").unwrap();
    made.set_proxies(path, None).unwrap();
    let made = made.scenario().unwrap();
    let beam = made.nodes.iter().find(|node| node.name == "beam").unwrap();
    assert!(matches!(&beam.kind, NodeKind::Proxy(config) if config.split == web), "{:?}", beam.kind);
}

#[test]
fn what_makes_no_sense_in_a_simulation_is_refused_by_name() {
    for (keys, key, found) in [
        ("match = { ports = \"80\" }", "node.hub.match", "an unknown key"),
        ("proxy = true", "node.hub.proxy", "an unknown key"),
        ("satellite = \"kernel:lp\"", "node.hub.satellite.cc", "\"kernel:lp\""),
        (
            "satellite = { cc = { name = \"peach\", moode = \"safe\" } }",
            "node.hub.satellite.cc.moode",
            "an unknown parameter",
        ),
        ("clients = { datapath = \"engine\" }", "node.hub.clients.datapath", "\"engine\""),
        ("syn = \"late\"", "node.hub.syn", "\"late\""),
    ] {
        let mistake = scenario(keys).unwrap_err();
        assert!(mistake.contains(key) && mistake.contains(&format!("found {found}")), "{mistake}");
    }
    let mistake = deployment("name = \"a\"\nquic = \"reject\"").unwrap_err();
    let expected = "pep.toml:6:8: class.1.quic: found \"reject\", accepted: \"forward\", \"refuse\"";
    assert!(mistake.contains(expected), "{mistake}");
    let queue = |keys: &str| deployment(&format!("[satellite-queue]\nkind = \"fq-codel\"\n{keys}"));
    let mistake = queue("rate = \"18\"").unwrap_err();
    assert!(mistake.contains("pep.toml:7:8: satellite-queue.rate: found \"18\""), "{mistake}");
    assert!(queue("target = \"0 s\"").is_err() && queue("limit = \"1 MB\"").is_err());
    assert_eq!(queue("").unwrap().queue, Some(FqCodel::default()));
    let mistake = deployment("satellite = { cc = { name = \"bbr\", mode = \"safe\" } }").unwrap_err();
    assert!(mistake.contains("class.1.satellite.cc.mode: found an unknown key"), "{mistake}");
}

/// RFC 9959, in a simulation and on a real link; the kernel does not have it.
#[test]
fn careful_resume_is_one_of_the_engine() {
    let keys = "satellite = { datapath = \"engine\", cc = \"cubic\", careful-resume = { kind = \"on\", lifetime = \"2 h\" } }";
    for side in [
        scenario(keys).map(|world| world.nodes),
        scenario(&keys.replace("datapath = \"engine\", ", "")).map(|world| world.nodes),
    ] {
        assert!(format!("{side:?}").contains("careful_resume: Some"), "{side:?}");
    }
    let class = deployment(keys).unwrap().classes.remove(0);
    assert_eq!(class.split.satellite.careful_resume.unwrap().lifetime.as_secs_f64(), 7200.0);
    let mistake = deployment(&keys.replace("engine", "kernel")).unwrap_err();
    assert!(mistake.contains("careful-resume") && mistake.contains("datapath = \"engine\""), "{mistake}");
}

#[test]
fn what_is_shown_is_read_as_the_same() {
    let keys = "satellite = { cc = { name = \"peach\", mode = \"safe\" }, rate-limit = \"20 Mbit/s\" }\nclients = \"bbr\"\nsyn = \"early\"";
    let world = scenario(keys).unwrap();
    let again = Draft::parse("world.toml", &world.to_toml()).unwrap().scenario().unwrap();
    assert_eq!(proxy(&again), proxy(&world));
}
