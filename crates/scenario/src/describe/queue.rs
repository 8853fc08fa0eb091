use bentpipe_net::{
    CoDelConfig, DualPi2Config, FairBy, FqCoDelConfig, Limit, PieConfig, QueueConfig, RedConfig,
};

use crate::form::{Form, Shorthand};
use crate::unit::{
    AT_LEAST_ONE, Bytes, Count, FACTOR, FEW, FLAG, Level, LevelIn, PART, PROBABILITY, ROOM, TIME,
    TIME_ABOVE_ZERO, Words,
};

/// Accepts `"50 packets"`, the name of a kind, or a table.
pub(super) const SHORTHAND: Shorthand = Shorthand { number: Some("limit"), ..Shorthand::KIND };

const FAIR_BY: Words<FairBy> =
    Words(&[("flow", FairBy::Flow), ("source", FairBy::Source), ("destination", FairBy::Destination)]);

/// Keys of a link's queue.
pub(super) fn queue(form: &mut Form<'_>, queue: &mut QueueConfig) {
    let each = each(room(queue));
    form.variant(queue, QueueConfig::name, each, |form, queue| match queue {
        QueueConfig::DropTail { limit }
        | QueueConfig::DropFront { limit }
        | QueueConfig::PushOut { limit }
        | QueueConfig::Strict { limit } => {
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
        QueueConfig::Pie(config) => pie(form, config),
        QueueConfig::DualPi2(config) => dual_pi2(form, config),
    });
}

/// Returns a queue of each kind with this limit.
fn each(limit: Limit) -> Vec<QueueConfig> {
    vec![
        QueueConfig::DropTail { limit },
        QueueConfig::DropFront { limit },
        // With this threshold the results of the TCP-Peach paper are reproduced.
        QueueConfig::Threshold { limit, low_priority_threshold: 3 },
        QueueConfig::PushOut { limit },
        QueueConfig::Strict { limit },
        QueueConfig::Priority { ordinary: limit, low: limit },
        QueueConfig::Red(RedConfig { limit, ..RedConfig::default() }),
        QueueConfig::CoDel { limit, codel: CoDelConfig::default() },
        QueueConfig::FqCoDel(fq_codel_with(limit)),
        QueueConfig::Pie(PieConfig { limit, ..PieConfig::default() }),
        QueueConfig::DualPi2(DualPi2Config { limit, ..DualPi2Config::default() }),
    ]
}

fn room(queue: &QueueConfig) -> Limit {
    match queue {
        QueueConfig::DropTail { limit }
        | QueueConfig::DropFront { limit }
        | QueueConfig::Threshold { limit, .. }
        | QueueConfig::PushOut { limit }
        | QueueConfig::Strict { limit }
        | QueueConfig::Priority { ordinary: limit, .. }
        | QueueConfig::CoDel { limit, .. } => *limit,
        QueueConfig::Red(red) => red.limit,
        QueueConfig::Pie(pie) => pie.limit,
        QueueConfig::DualPi2(dual) => dual.limit,
        QueueConfig::FqCoDel(fq_codel) => Limit::Packets(fq_codel.limit_packets),
    }
}

/// Returns FQ-CoDel with this limit, which it counts only in packets.
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
    form.field("fair-by", &mut fq_codel.fair_by, &FAIR_BY);
    form.field("queues", &mut fq_codel.queues, &FEW);
    form.field("quantum", &mut fq_codel.quantum_bytes, &Bytes::ANY);
    codel(form, &mut fq_codel.codel);
}

fn pie(form: &mut Form<'_>, pie: &mut PieConfig) {
    form.field("limit", &mut pie.limit, &ROOM);
    form.field("target", &mut pie.target, &TIME_ABOVE_ZERO);
    form.field("update", &mut pie.update, &TIME_ABOVE_ZERO);
    form.field("alpha", &mut pie.alpha, &FACTOR);
    form.field("beta", &mut pie.beta, &FACTOR);
    form.field("burst", &mut pie.burst, &TIME);
    form.field("ecn", &mut pie.ecn, &FLAG);
}

fn dual_pi2(form: &mut Form<'_>, dual: &mut DualPi2Config) {
    form.field("limit", &mut dual.limit, &ROOM);
    form.field("target", &mut dual.target, &TIME_ABOVE_ZERO);
    form.field("max-rtt", &mut dual.max_rtt, &TIME_ABOVE_ZERO);
    form.field("step", &mut dual.step, &TIME);
    form.field("coupling", &mut dual.coupling, &AT_LEAST_ONE);
    form.field("classic-share", &mut dual.classic_share, &PART);
}
