//! Links that carry packets at recorded moments, under TCP and with all checkers.

mod common;

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{LinkConfig, Opportunities, QueueConfig};
use bentpipe_outcome::Outcome;
use bentpipe_scenario::{Scenario, Traffic, builtin};
use bentpipe_sim::{RunOptions, run};
use common::{Dumbbell, drop_tail, flows, hosts, links, ms, paper_tcp};

fn verified(scenario: &Scenario) -> Outcome {
    let result = run(scenario, &RunOptions { verify: true, ..RunOptions::default() }).expect("a world");
    assert_eq!(result.violations, [""; 0]);
    result.outcome
}

/// A bulk flow over a link of these opportunities, each of them for so many bytes.
fn over(millis: &[u32], queue: QueueConfig) -> Outcome {
    let opportunities = Opportunities::mahimahi(millis, true);
    let link = LinkConfig {
        rate: opportunities.rate(),
        opportunities: Some(opportunities),
        ..LinkConfig::new(Rate::from_mbps(1), ms(20), queue)
    };
    let world = Scenario {
        nodes: vec![hosts("senders", 1), hosts("receivers", 1)],
        links: vec![links("satellite", ("senders", "receivers"), link)],
        ..Dumbbell::geo(1, (Rate::from_mbps(10), Rate::from_mbps(10)), 50)
            .scenario(Duration::from_secs(20), vec![flows("bulk", 1, Traffic::Bulk, paper_tcp(200))])
    };
    verified(&world)
}

#[test]
fn a_bulk_flow_fills_the_opportunities() {
    // Packets of 1000 bytes and 4 of overhead share opportunities of 1504.
    for queue in [drop_tail(1000), QueueConfig::Strict { limit: bentpipe_net::Limit::Packets(1000) }] {
        let outcome = over(&[1], queue);
        let full = 1504.0 / 1004.0 * 960.0 * 8.0 * 1000.0;
        let share = outcome.totals.goodput_bps / full;
        assert!((0.95..=1.0).contains(&share), "{share}");
        assert!((0.95..=1.0).contains(&outcome.links[0].utilisation), "{:?}", outcome.links[0]);
    }
}

#[test]
fn moments_that_come_in_bursts_carry_as_much() {
    let bursts: Vec<u32> = std::iter::repeat_n(10, 10).chain(std::iter::repeat_n(20, 10)).collect();
    let outcome = over(&bursts, drop_tail(1000));
    let even = over(&[1], drop_tail(1000));
    let ratio = outcome.totals.goodput_bps / even.totals.goodput_bps;
    assert!((0.97..=1.01).contains(&ratio), "{ratio}");
}

#[test]
fn the_built_in_recording_is_a_world() {
    let scenario = Scenario { duration: Duration::from_secs(110), ..builtin("leo-recorded").unwrap() };
    let outcome = verified(&scenario);
    assert!(outcome.totals.goodput_bps > 1e6, "{}", outcome.totals.goodput_bps);
}
