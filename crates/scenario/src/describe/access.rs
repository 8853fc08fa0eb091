use bentpipe_mac::{
    Access, AlohaConfig, CfDamaConfig, CrdsaConfig, DamaConfig, Frame, RequestStrategy, SchedulerPlace,
    SlottedAlohaConfig,
};

use crate::form::{Form, Kind, Shorthand};
use crate::unit::{Bytes, Count, FEW, FLAG, PROBABILITY, TIME, TIME_ABOVE_ZERO, Words};

const KINDS: &[Kind] = &[
    Kind { name: "none", keys: &[] },
    Kind { name: "tdma", keys: &["frame", "slots", "overhead", "header"] },
    Kind {
        name: "tdma-dama",
        keys: &["frame", "slots", "overhead", "header", "superframe", "idle-superframes", "request-loss"],
    },
    Kind {
        name: "cf-dama",
        keys: &[
            "frame",
            "slots",
            "overhead",
            "header",
            "requests",
            "minislots",
            "request-limit",
            "request-loss",
            "scheduler",
        ],
    },
    Kind { name: "aloha", keys: &["header", "timeout", "mean-backoff", "retries", "detection"] },
    Kind { name: "slotted-aloha", keys: &["slot", "guard", "header", "timeout", "backoff-limit", "retries"] },
    Kind {
        name: "crdsa",
        keys: &[
            "frame",
            "slots",
            "overhead",
            "header",
            "replicas",
            "iterations",
            "timeout",
            "backoff-limit",
            "retries",
        ],
    },
];

/// The name of an access scheme, or a table.
pub(super) const SHORTHAND: Shorthand = Shorthand { word: Some("kind"), number: None, list: None };

const STRATEGIES: Words<RequestStrategy> = Words(&[
    ("combined", RequestStrategy::Combined),
    ("piggyback", RequestStrategy::Piggyback),
    ("random", RequestStrategy::Random),
    ("fixed", RequestStrategy::Fixed),
]);

const PLACES: Words<SchedulerPlace> =
    Words(&[("hub", SchedulerPlace::Hub), ("onboard", SchedulerPlace::Onboard)]);

/// The access scheme of a shared link; none if every member of the group has a channel of its own.
pub(super) fn access(form: &mut Form<'_>, access: &mut Option<Access>) {
    let current = access.as_ref().map_or("none", Access::name);
    let kind = form.kind(current, KINDS);
    if kind != current {
        *access = of_kind(kind);
    }
    match access {
        None => {}
        Some(Access::Tdma(config)) => frame(form, config),
        Some(Access::Dama(config)) => {
            frame(form, &mut config.frame);
            form.field("superframe", &mut config.superframe, &FEW);
            form.field("idle-superframes", &mut config.idle_superframes, &FEW);
            form.field("request-loss", &mut config.request_loss, &PROBABILITY);
        }
        Some(Access::CfDama(config)) => {
            frame(form, &mut config.frame);
            form.field("requests", &mut config.strategy, &STRATEGIES);
            form.field("minislots", &mut config.minislots, &FEW);
            form.field("request-limit", &mut config.request_limit, &FEW);
            form.field("request-loss", &mut config.request_loss, &PROBABILITY);
            form.field("scheduler", &mut config.scheduler, &PLACES);
        }
        Some(Access::Aloha(config)) => {
            form.field("header", &mut config.header, &Bytes::PACKET);
            form.field("timeout", &mut config.timeout, &TIME_ABOVE_ZERO);
            form.field("mean-backoff", &mut config.mean_backoff, &TIME);
            form.field("retries", &mut config.retries, &Count::FROM_ZERO);
            form.field("detection", &mut config.detection, &FLAG);
        }
        Some(Access::SlottedAloha(config)) => {
            form.field("slot", &mut config.slot_bytes, &Bytes::PACKET);
            form.field("guard", &mut config.guard, &TIME);
            form.field("header", &mut config.header, &Bytes::PACKET);
            form.field("timeout", &mut config.timeout, &TIME_ABOVE_ZERO);
            form.field("backoff-limit", &mut config.backoff_limit, &Count::FROM_ZERO);
            form.field("retries", &mut config.retries, &Count::FROM_ZERO);
        }
        Some(Access::Crdsa(config)) => {
            frame(form, &mut config.frame);
            form.field("replicas", &mut config.replicas, &FEW);
            form.field("iterations", &mut config.iterations, &FEW);
            form.field("timeout", &mut config.timeout, &TIME_ABOVE_ZERO);
            form.field("backoff-limit", &mut config.backoff_limit, &Count::FROM_ZERO);
            form.field("retries", &mut config.retries, &Count::FROM_ZERO);
        }
    }
}

/// An access scheme with its defaults.
fn of_kind(kind: &str) -> Option<Access> {
    Some(match kind {
        "tdma" => Access::Tdma(Frame::default()),
        "tdma-dama" => Access::Dama(DamaConfig::default()),
        "cf-dama" => Access::CfDama(CfDamaConfig::default()),
        "aloha" => Access::Aloha(AlohaConfig::default()),
        "slotted-aloha" => Access::SlottedAloha(SlottedAlohaConfig::default()),
        "crdsa" => Access::Crdsa(CrdsaConfig::default()),
        _ => return None,
    })
}

fn frame(form: &mut Form<'_>, frame: &mut Frame) {
    form.field("frame", &mut frame.length, &TIME_ABOVE_ZERO);
    form.field("slots", &mut frame.slots, &Count::FROM_ZERO);
    form.field("overhead", &mut frame.overhead, &PROBABILITY);
    form.field("header", &mut frame.header, &Bytes::PACKET);
}
