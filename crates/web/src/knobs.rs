//! Check of a scenario, and the values that the page lets its user drag.

use bentpipe_base::{Duration, Rate};
use bentpipe_lab::report::Network;
use bentpipe_lab::{Place, check as check_world, check_memory};
use bentpipe_net::{Limit, LinkConfig, LossModel, QueueConfig, Schedule};
use bentpipe_scenario::{LinkGroup, Scenario};
use serde::Serialize;

use crate::world::{Refusal, World};

/// A scenario without mistakes.
#[derive(Serialize)]
pub struct Checked {
    title: String,
    seed: u64,
    duration_s: f64,
    /// Pictures of the network as SVG, one for wide and one for narrow windows.
    network: String,
    knobs: Vec<Knob>,
    /// Algorithms of the flows under comparison.
    cc: Vec<String>,
}

/// A value that the user can drag.
#[derive(Serialize)]
struct Knob {
    /// Path for `--set`.
    key: String,
    quantity: Quantity,
    /// Present value, in the base unit of the quantity.
    value: f64,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Quantity {
    /// Loss probability of a packet.
    LossRate,
    /// Bits per second.
    Rate,
    /// Seconds in one direction.
    Delay,
    /// Packets.
    Queue,
}

/// Checks a scenario.
pub fn check(world: &World) -> Result<Checked, Refusal> {
    let scenario = world.draft()?.scenario()?;
    check_world(&scenario, &Place::Senders)?;
    check_memory(&scenario, 1, None)?;
    let network = Network::of(&scenario)?.svg().map_err(|error| error.to_string())?;
    let mut cc: Vec<_> =
        scenario.flows.iter().filter(|flow| !flow.fixed).map(|flow| flow.cc.clone()).collect();
    cc.dedup();
    Ok(Checked {
        title: scenario.title.clone(),
        seed: scenario.seed,
        duration_s: scenario.duration.as_secs_f64(),
        network,
        knobs: bottleneck(&scenario).map(knobs).unwrap_or_default(),
        cc,
    })
}

/// Returns the link called `satellite`, or the slowest one of a constant rate.
fn bottleneck(scenario: &Scenario) -> Option<&LinkGroup> {
    let rate = |link: &&LinkGroup| match link.forward.rate {
        Schedule::Constant(rate) => rate.bps(),
        _ => u64::MAX,
    };
    let named = scenario.links.iter().find(|link| link.name == "satellite");
    named.or_else(|| scenario.links.iter().min_by_key(rate))
}

/// The values of a link that are constant.
fn knobs(link: &LinkGroup) -> Vec<Knob> {
    let LinkConfig { rate, delay_one_way, queue, loss, .. } = &link.forward;
    let knob =
        |name: &str, quantity, value| Knob { key: format!("link.{}.{name}", link.name), quantity, value };
    let loss = match &loss.model {
        LossModel::None => Some(0.0),
        LossModel::Packet { probability } => Some(*probability),
        _ => None,
    };
    let queue = match queue {
        QueueConfig::DropTail { limit: Limit::Packets(packets) }
        | QueueConfig::Threshold { limit: Limit::Packets(packets), .. } => Some(f64::from(*packets)),
        _ => None,
    };
    let loss = loss.map(|loss| knob("loss.rate", Quantity::LossRate, loss));
    let rate = constant(rate).map(|rate: Rate| knob("rate", Quantity::Rate, rate.bps() as f64));
    let delay = constant(delay_one_way)
        .map(|delay: Duration| knob("delay-one-way", Quantity::Delay, delay.as_secs_f64()));
    let queue = queue.map(|packets| knob("queue.limit", Quantity::Queue, packets));
    [loss, rate, delay, queue].into_iter().flatten().collect()
}

fn constant<T: Copy>(schedule: &Schedule<T>) -> Option<T> {
    match schedule {
        Schedule::Constant(value) => Some(*value),
        _ => None,
    }
}
