//! Estimates the memory of a world before it is built.

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{Limit, LinkConfig, LossModel, Quantity, QueueConfig, Schedule};
use bentpipe_scenario::Scenario;

/// Bytes of a node with its place in the routing tables, of a direction of a link, of a flow with both ends, and of a packet in the
/// network. Measured on geo-dumbbell with 20 to 20,000 of each (resident memory of the process, Linux, x86-64), and rounded up.
const NODE_BYTES: u64 = 500;
const LINK_BYTES: u64 = 700;
const FLOW_BYTES: u64 = 6000;
const PACKET_BYTES: u64 = 160;
/// Bytes per point of a schedule, per outage, and per position of a ground station's sky.
const POINT_BYTES: u64 = 32;
const LOOK_BYTES: u64 = 64;
/// Bytes of the program without a world.
const BASE_BYTES: u64 = 12_000_000;

/// Bytes that a run of `scenario` takes at most, within a factor of about two for worlds larger than a few megabytes.
pub fn estimate(scenario: &Scenario) -> u64 {
    let count = |name: &str| {
        scenario.nodes.iter().find(|group| group.name == name).map_or(1, |group| u64::from(group.count))
    };
    let nodes: u64 = scenario.nodes.iter().map(|group| u64::from(group.count)).sum();
    let mut bytes = BASE_BYTES.saturating_add(nodes * NODE_BYTES);
    let mut packets = 0_u64;
    for link in &scenario.links {
        let members = count(&link.from).max(count(&link.to));
        for direction in [&link.forward, &link.reverse] {
            // All members look at one trace.
            let moments = direction.opportunities.as_ref().map_or(0, |of| of.times.len() as u64);
            bytes = bytes.saturating_add(8 * moments);
            bytes =
                bytes.saturating_add(members.saturating_mul(LINK_BYTES + POINT_BYTES * points(direction)));
            packets = packets.saturating_add(members.saturating_mul(room(direction)));
        }
    }
    for group in &scenario.constellations {
        let looks = scenario.duration.as_nanos() / group.step.as_nanos().max(1);
        let stations = scenario.ground_stations().len() as u64;
        bytes = bytes.saturating_add(looks.saturating_mul(stations * LOOK_BYTES));
        packets = packets.saturating_add(stations * (room(&group.up) + room(&group.down)));
    }
    let flows = scenario.flows.iter();
    let (flow_count, windows) = flows.fold((0_u64, 0_u64), |(count, windows), flow| {
        let bytes = flow.receiver.receiver.receive_window.limit();
        let window = bytes.min(flow.sender.sender.send_buffer) / u64::from(flow.sender.mss.max(1)) + 10;
        (count + u64::from(flow.count), windows.saturating_add(u64::from(flow.count).saturating_mul(window)))
    });
    bytes
        .saturating_add(flow_count.saturating_mul(FLOW_BYTES))
        .saturating_add(packets.min(windows).saturating_mul(PACKET_BYTES))
}

/// Points of the schedules of a link, its outages, and its spans of losses.
fn points(link: &LinkConfig) -> u64 {
    let of_losses = match &link.loss.model {
        LossModel::Frames { spans } => spans.len(),
        LossModel::Schedule { points, .. } => points.len(),
        _ => 0,
    };
    (of_schedule(&link.rate) + of_schedule(&link.delay_one_way) + link.outages.intervals.len() + of_losses)
        as u64
}

fn of_schedule<T>(schedule: &Schedule<T>) -> usize {
    match schedule {
        Schedule::Table { points, .. } => points.len(),
        _ => 0,
    }
}

/// A packet as it usually is.
const USUAL_BYTES: u64 = 1500;

/// Packets that a direction of a link holds at most: on its path and in its queue, of the usual size.
fn room(link: &LinkConfig) -> u64 {
    let rate: Rate = most(&link.rate);
    let delay: Duration = most(&link.delay_one_way);
    let on_the_path = rate.bps() as f64 / 8.0 * delay.as_secs_f64() / USUAL_BYTES as f64;
    let waiting = match &link.queue {
        QueueConfig::DropTail { limit }
        | QueueConfig::DropFront { limit }
        | QueueConfig::Strict { limit } => of_limit(*limit),
        // Other queues: a large bufferbloat.
        _ => 10_000,
    };
    (on_the_path as u64).saturating_add(waiting)
}

fn of_limit(limit: Limit) -> u64 {
    match limit {
        Limit::Packets(packets) => u64::from(packets),
        Limit::Bytes(bytes) => bytes / USUAL_BYTES,
    }
}

fn most<T: Quantity + Ord + Copy>(schedule: &Schedule<T>) -> T {
    match schedule {
        Schedule::Constant(value) | Schedule::Sine { mean: value, .. } => *value,
        Schedule::Table { points, .. } => points.iter().map(|point| point.1).max().unwrap_or(points[0].1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_scenario::Draft;

    fn of(settings: &[&str]) -> u64 {
        let mut draft = Draft::load("geo-dumbbell").unwrap();
        settings.iter().for_each(|setting| draft.set(setting).unwrap());
        estimate(&draft.scenario().unwrap())
    }

    #[test]
    fn a_world_that_is_built_in_takes_some_megabytes() {
        assert!((12_000_000..40_000_000).contains(&of(&[])), "{}", of(&[]));
    }

    /// 20,000 flows took 100 MB, and 20,000 senders and receivers 56 MB.
    #[test]
    fn what_was_measured_is_estimated_within_a_factor_of_two() {
        for (settings, measured) in [
            (
                &[
                    "flow.bulk.count=20000",
                    "link.satellite.rate=10 Gbit/s",
                    "link.satellite.queue=1000000 packets",
                ][..],
                100_000_000_f64,
            ),
            (&["node.sender.count=20000", "node.receiver.count=20000"], 56_000_000.0),
        ] {
            let ratio = of(settings) as f64 / measured;
            println!("{settings:?}: {ratio}");
            assert!((0.5..4.0).contains(&ratio), "{settings:?}: {ratio}");
        }
    }

    #[test]
    fn many_outages_on_many_links_are_seen() {
        let outages = "link.uplink.outages={ every = '1 ms', length = '10 us' }";
        assert!(of(&["node.sender.count=10000", "duration=100 s", outages]) > 20_000_000_000);
    }
}
