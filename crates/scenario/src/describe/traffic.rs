use bentpipe_base::{Duration, Rate};

use crate::form::{Form, Kind, Shorthand};
use crate::model::{Idle, Traffic};
use crate::unit::{Bytes, FLAG, RATE, SEGMENTS, TIME};

const KINDS: &[Kind] = &[
    Kind { name: "bulk", keys: &[] },
    Kind { name: "file", keys: &["size"] },
    Kind { name: "pages", keys: &["page", "idle", "fresh-connection"] },
    Kind { name: "cbr", keys: &["rate", "packet"] },
];

/// `"bulk"`, or a table.
pub(super) const SHORTHAND: Shorthand = Shorthand { word: Some("kind"), number: None, list: None };

/// What the application of a flow sends, in segments of `mss` bytes.
pub(super) fn traffic(form: &mut Form<'_>, traffic: &mut Traffic, mss: u32) {
    let current = name(traffic);
    let kind = form.kind(current, KINDS);
    if kind != current {
        *traffic = of_kind(kind);
    }
    match traffic {
        Traffic::Bulk => {}
        Traffic::File { bytes } => form.required("size", bytes, &Bytes::or_segments(mss).down_to_one()),
        Traffic::Pages { segments, idle, fresh_connection } => {
            form.required("page", segments, &SEGMENTS);
            form.table("idle", IDLE_SHORTHAND, |form| self::idle(form, idle));
            form.field("fresh-connection", fresh_connection, &FLAG);
        }
        Traffic::Cbr { rate, packet_bytes } => {
            form.required("rate", rate, &RATE);
            form.field("packet", packet_bytes, &Bytes::ANY);
        }
    }
}

fn name(traffic: &Traffic) -> &'static str {
    match traffic {
        Traffic::Bulk => "bulk",
        Traffic::File { .. } => "file",
        Traffic::Pages { .. } => "pages",
        Traffic::Cbr { .. } => "cbr",
    }
}

fn of_kind(kind: &str) -> Traffic {
    match kind {
        "file" => Traffic::File { bytes: 1 },
        "pages" => Traffic::Pages { segments: 1, idle: Idle::Fixed(Duration::ZERO), fresh_connection: true },
        "cbr" => Traffic::Cbr { rate: Rate::from_bps(1), packet_bytes: 1000 },
        _ => Traffic::Bulk,
    }
}

const IDLE_SHORTHAND: Shorthand = Shorthand { word: None, number: Some("fixed"), list: None };

const IDLE_KINDS: &[Kind] =
    &[Kind { name: "fixed", keys: &["fixed"] }, Kind { name: "exponential", keys: &["exponential-mean"] }];

fn idle(form: &mut Form<'_>, idle: &mut Idle) {
    let (current, time) = match *idle {
        Idle::Fixed(time) => ("fixed", time),
        Idle::Exponential(mean) => ("exponential", mean),
    };
    *idle = match form.implied_kind(current, IDLE_KINDS) {
        "exponential" => Idle::Exponential(time),
        _ => Idle::Fixed(time),
    };
    match idle {
        Idle::Fixed(time) => form.field("fixed", time, &TIME),
        Idle::Exponential(mean) => form.field("exponential-mean", mean, &TIME),
    }
}
