//! Texts at the nodes and links of a picture.

use bentpipe_base::{Duration, Rate};
use bentpipe_net::{LinkConfig, LossModel, QueueConfig, Schedule};
use bentpipe_scenario::{ConstellationGroup, NodeGroup, NodeKind, Orbits, Position, Radio, Scenario};

use crate::number::rate_unit;

/// Flows named at a node; of more there is a count.
const NAMED_FLOWS: usize = 3;

/// Lines below the name of a node.
pub fn node(scenario: &Scenario, group: &NodeGroup) -> Vec<String> {
    let mut lines = vec![group.kind.name().replace('-', " ")];
    if let NodeKind::GroundStation(Position { place, way, gateway, .. }) = &group.kind {
        let sides = |degrees: f64, [plus, minus]: [char; 2]| {
            format!("{}° {}", number(degrees.abs()), if degrees < 0.0 { minus } else { plus })
        };
        lines.push(format!(
            "{}, {}",
            sides(place.latitude_deg, ['N', 'S']),
            sides(place.longitude_deg, ['E', 'W'])
        ));
        lines.extend((!way.is_empty()).then(|| "moves".to_owned()));
        lines.extend(gateway.then(|| "gateway: sees all in view".to_owned()));
    }
    if let NodeKind::Satellite(satellite) = &group.kind {
        lines.push(satellite.clone());
    }
    let flows = |verb: &str, at: fn(&bentpipe_scenario::FlowGroup) -> &str| {
        let names = scenario.flows.iter().filter(|flow| at(flow) == group.name);
        let names: Vec<String> = names.map(|flow| counted(&flow.name, flow.count)).collect();
        let more = names.len().saturating_sub(NAMED_FLOWS);
        let mut lines: Vec<String> =
            names.into_iter().take(NAMED_FLOWS).map(|name| format!("{verb} {name}")).collect();
        lines.extend((more > 0).then(|| format!("{verb} {more} groups more")));
        lines
    };
    lines.extend(flows("sends", |flow| &flow.from));
    lines.extend(flows("receives", |flow| &flow.to));
    lines
}

/// Lines below the name of a constellation of `satellites` satellites.
pub fn constellation(group: &ConstellationGroup, satellites: usize) -> Vec<String> {
    let mut lines = vec![match &group.orbits {
        Orbits::Shell(shell) => format!("{satellites} satellites in {} planes", shell.planes),
        Orbits::Geostationary(_) => format!("{satellites} geostationary"),
        Orbits::Elements { .. } => format!("{satellites} satellites by elements"),
    }];
    if let Orbits::Shell(shell) = &group.orbits {
        lines.push(format!("{} km, {}°", number(shell.altitude_km), number(shell.inclination_deg)));
    }
    match &group.links {
        Some(_) => {
            lines.push("from satellite to satellite:".into());
            lines.push(rate(&group.between.rate));
            lines.push(queue(&group.between.queue));
            lines.push(loss(&group.between));
        }
        None => lines.push("bent pipes".into()),
    }
    lines
}

/// `name × 20`.
pub fn counted(name: &str, count: u32) -> String {
    if count == 1 { name.to_owned() } else { format!("{name} × {count}") }
}

/// Describes one direction of a link; `moving` is the delay over a moving satellite.
pub fn link(config: &LinkConfig, radio: &Radio, moving: Option<&str>) -> Vec<String> {
    let rate = match (&radio.modem, &radio.medium) {
        (Some(modem), _) => {
            format!("{} MBd, weather: {}", number(modem.symbol_rate as f64 / 1e6), radio.weather.name())
        }
        (None, Some(access)) => format!("{} shared by {}", rate(&config.rate), access.name()),
        (None, None) => rate(&config.rate),
    };
    let delay = moving.map_or_else(|| delay(&config.delay_one_way), str::to_owned);
    // The modem makes the losses of the weather when the world is built.
    let loss = if radio.modem.is_some() { "loss by the weather".into() } else { loss(config) };
    let mut lines = vec![format!("{rate}, {delay}"), queue(&config.queue), loss];
    let outages = match config.outages.intervals.len() {
        0 => None,
        1 => Some("1 outage".to_owned()),
        many => Some(format!("{many} outages")),
    };
    let extras = [
        outages,
        config.arq.map(|_| "ARQ".to_owned()),
        config.fec.as_ref().map(|_| "parity packets".to_owned()),
        config.jitter.as_ref().map(|_| "jitter".to_owned()),
        config.loss.handover.as_ref().map(|_| "loss near handovers".to_owned()),
        config.reordering.as_ref().map(|_| "reordering".to_owned()),
        (config.duplicate_probability > 0.0).then(|| "duplication".to_owned()),
    ];
    let extras: Vec<String> = extras.into_iter().flatten().collect();
    lines.extend((!extras.is_empty()).then(|| extras.join(", ")));
    lines
}

fn rate(schedule: &Schedule<Rate>) -> String {
    let one = |rate: &Rate| {
        let unit = rate_unit(rate.bps() as f64);
        format!("{} {}", number(rate.bps() as f64 / unit.0), unit.1)
    };
    varying(schedule, one)
}

fn delay(schedule: &Schedule<Duration>) -> String {
    let one = |delay: &Duration| format!("{} ms", number(delay.as_secs_f64() * 1e3));
    varying(schedule, one)
}

fn varying<T: Copy + Ord>(schedule: &Schedule<T>, one: impl Fn(&T) -> String) -> String {
    match schedule {
        Schedule::Constant(value) => one(value),
        Schedule::Sine { mean, amplitude, .. } => format!("{} ± {}", one(mean), one(amplitude)),
        Schedule::Table { points, .. } => {
            let values = || points.iter().map(|(_, value)| value);
            match (values().min(), values().max()) {
                (Some(least), Some(most)) if least != most => format!("{} to {}", one(least), one(most)),
                (Some(only), _) => one(only),
                _ => String::new(),
            }
        }
    }
}

fn queue(queue: &QueueConfig) -> String {
    let room = match queue {
        QueueConfig::DropTail { limit }
        | QueueConfig::Threshold { limit, .. }
        | QueueConfig::DropFront { limit }
        | QueueConfig::PushOut { limit }
        | QueueConfig::Strict { limit }
        | QueueConfig::CoDel { limit, .. } => limit.to_string(),
        QueueConfig::Priority { ordinary, low } => format!("{ordinary} and {low}"),
        QueueConfig::Red(red) => red.limit.to_string(),
        QueueConfig::Pie(pie) => pie.limit.to_string(),
        QueueConfig::DualPi2(dual) => dual.limit.to_string(),
        QueueConfig::FqCoDel(config) => format!("{} packets", config.limit_packets),
    };
    format!("{}, {room}", queue.name())
}

fn loss(config: &LinkConfig) -> String {
    let share = |probability: f64| match probability {
        p if p >= 1e-3 => format!("{} %", number(100.0 * p)),
        p => format!("{p:e}"),
    };
    let what = match &config.loss.model {
        LossModel::None => return "no loss".into(),
        LossModel::Packet { probability }
        | LossModel::Bit { probability }
        | LossModel::Byte { probability }
            if *probability <= 0.0 =>
        {
            return "no loss".into();
        }
        LossModel::Packet { probability } => format!("{} lost", share(*probability)),
        LossModel::Bit { probability } => format!("{} of the bits wrong", share(*probability)),
        LossModel::Byte { probability } => format!("{} of the bytes wrong", share(*probability)),
        LossModel::Bursts { probability, mean_packets } => {
            format!("{} lost in bursts of {}", share(*probability), number(*mean_packets))
        }
        LossModel::Frames { .. } => "loss by the weather".into(),
        other => format!("loss: {}", other.name()),
    };
    if config.loss.data_only { format!("{what}, ACKs not") } else { what }
}

/// At most four digits that matter, no zeros at the end.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        x if x >= 1000.0 => 0,
        x if x >= 100.0 => 1,
        x if x >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
