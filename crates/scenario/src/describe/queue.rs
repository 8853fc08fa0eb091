use bentpipe_net::{CoDelConfig, FqCoDelConfig, Limit, QueueConfig, RedConfig};

use crate::form::{Form, Kind, Shorthand};
use crate::unit::{Bytes, Count, FEW, FLAG, Level, LevelIn, PROBABILITY, ROOM, TIME_ABOVE_ZERO};

const KINDS: &[Kind] = &[
    Kind { name: "drop-tail", keys: &["limit"] },
    Kind { name: "threshold", keys: &["limit", "theta"] },
    Kind { name: "push-out", keys: &["limit"] },
    Kind { name: "strict", keys: &["limit"] },
    Kind { name: "priority", keys: &["ordinary", "low"] },
    Kind {
        name: "red",
        keys: &[
            "limit",
            "min-threshold",
            "max-threshold",
            "max-probability",
            "weight",
            "mean-packet",
            "gentle",
            "ecn",
        ],
    },
    Kind { name: "codel", keys: &["limit", "target", "interval", "ecn"] },
    Kind { name: "fq-codel", keys: &["limit", "queues", "quantum", "target", "interval", "ecn"] },
];

/// `"50 packets"`, the name of a kind, or a table.
pub(super) const SHORTHAND: Shorthand = Shorthand { word: Some("kind"), number: Some("limit"), list: None };

/// The queue of a link.
pub(super) fn queue(form: &mut Form<'_>, queue: &mut QueueConfig) {
    let kind = form.kind(queue.name(), KINDS);
    if kind != queue.name() {
        *queue = of_kind(kind, room(queue));
    }
    match queue {
        QueueConfig::DropTail { limit } | QueueConfig::PushOut { limit } | QueueConfig::Strict { limit } => {
            form.field("limit", limit, &ROOM);
        }
        QueueConfig::Threshold { limit, low_priority_threshold } => {
            form.field("limit", limit, &ROOM);
            form.field("theta", low_priority_threshold, &Count::FROM_ZERO);
        }
        QueueConfig::Priority { ordinary, low } => {
            form.field("ordinary", ordinary, &ROOM);
            form.field("low", low, &ROOM);
        }
        QueueConfig::Red(config) => red(form, config),
        QueueConfig::CoDel { limit, codel: config } => {
            form.field("limit", limit, &ROOM);
            codel(form, config);
        }
        QueueConfig::FqCoDel(config) => fq_codel(form, config),
    }
}

/// A queue of another kind with as much room.
fn of_kind(kind: &str, limit: Limit) -> QueueConfig {
    match kind {
        // The threshold with which the results of the TCP-Peach paper are met.
        "threshold" => QueueConfig::Threshold { limit, low_priority_threshold: 3 },
        "push-out" => QueueConfig::PushOut { limit },
        "strict" => QueueConfig::Strict { limit },
        "priority" => QueueConfig::Priority { ordinary: limit, low: limit },
        "red" => QueueConfig::Red(RedConfig { limit, ..RedConfig::default() }),
        "codel" => QueueConfig::CoDel { limit, codel: CoDelConfig::default() },
        "fq-codel" => QueueConfig::FqCoDel(fq_codel_with(limit)),
        _ => QueueConfig::DropTail { limit },
    }
}

fn room(queue: &QueueConfig) -> Limit {
    match queue {
        QueueConfig::DropTail { limit }
        | QueueConfig::Threshold { limit, .. }
        | QueueConfig::PushOut { limit }
        | QueueConfig::Strict { limit }
        | QueueConfig::Priority { ordinary: limit, .. }
        | QueueConfig::CoDel { limit, .. } => *limit,
        QueueConfig::Red(red) => red.limit,
        QueueConfig::FqCoDel(fq_codel) => Limit::Packets(fq_codel.limit_packets),
    }
}

/// FQ-CoDel counts its room in packets only.
fn fq_codel_with(limit: Limit) -> FqCoDelConfig {
    let default = FqCoDelConfig::default();
    match limit {
        Limit::Packets(limit_packets) => FqCoDelConfig { limit_packets, ..default },
        Limit::Bytes(_) => default,
    }
}

fn red(form: &mut Form<'_>, red: &mut RedConfig) {
    form.field("limit", &mut red.limit, &ROOM);
    let mut lower = (red.min_threshold, red.unit);
    form.field("min-threshold", &mut lower, &Level);
    (red.min_threshold, red.unit) = lower;
    form.field("max-threshold", &mut red.max_threshold, &LevelIn(red.unit));
    form.field("max-probability", &mut red.max_probability, &PROBABILITY);
    form.field("weight", &mut red.weight, &PROBABILITY);
    form.field("mean-packet", &mut red.mean_packet_bytes, &Bytes::PACKET);
    form.field("gentle", &mut red.gentle, &FLAG);
    form.field("ecn", &mut red.ecn, &FLAG);
}

fn codel(form: &mut Form<'_>, codel: &mut CoDelConfig) {
    form.field("target", &mut codel.target, &TIME_ABOVE_ZERO);
    form.field("interval", &mut codel.interval, &TIME_ABOVE_ZERO);
    form.field("ecn", &mut codel.ecn, &FLAG);
}

fn fq_codel(form: &mut Form<'_>, fq_codel: &mut FqCoDelConfig) {
    form.field("limit", &mut fq_codel.limit_packets, &ROOM);
    form.field("queues", &mut fq_codel.queues, &FEW);
    form.field("quantum", &mut fq_codel.quantum_bytes, &Bytes::ANY);
    codel(form, &mut fq_codel.codel);
}
