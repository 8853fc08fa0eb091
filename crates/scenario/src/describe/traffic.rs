use bentpipe_base::{Duration, Rate};
use bentpipe_traffic::browser;
use bentpipe_traffic::on_off::{self, Spacing, Times};
use bentpipe_traffic::web::Model;

use super::media;
use crate::form::{Form, Kind, Shorthand};
use crate::model::{Idle, Streaming, Traffic};
use crate::unit::{Bytes, FACTOR, FEW, FLAG, RATE, SEGMENTS, SHAPE, TIME, TIME_ABOVE_ZERO, Words};

const KINDS: &[Kind] = &[
    Kind { name: "bulk", keys: &[] },
    Kind { name: "file", keys: &["size"] },
    Kind { name: "pages", keys: &["page", "idle", "fresh-connection"] },
    Kind { name: "cbr", keys: &["rate", "packet", "spacing"] },
    Kind { name: "on-off", keys: &["rate", "packet", "on", "off", "times"] },
    Kind {
        name: "video",
        keys: &["group", "frame-rate", "rate-factor", "playout-delay", "threshold", "coalesce"],
    },
    Kind {
        name: "frames",
        keys: &["sizes", "frame-rate", "repeat", "playout-delay", "threshold", "coalesce"],
    },
    Kind { name: "voice", keys: &["codec", "suppress-silence", "jitter-buffer"] },
    Kind { name: "web", keys: &["model", "connections", "persistent", "view-scale"] },
    Kind { name: "adaptive", keys: &["ladder", "segment", "buffer", "startup", "player", "length"] },
    Kind { name: "ftp", keys: &["mean-size", "deviation", "largest", "reading"] },
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
        Traffic::Cbr { rate, packet_bytes, spacing } => {
            form.required("rate", rate, &RATE);
            form.field("packet", packet_bytes, &Bytes::PACKET);
            form.field("spacing", spacing, &SPACINGS);
        }
        Traffic::OnOff(config) => on_off(form, config),
        Traffic::Video { video, stream } => {
            media::video(form, video);
            media::streaming(form, stream);
        }
        Traffic::Frames { .. } => media::frames(form, traffic),
        Traffic::Voice { codec, suppress_silence, jitter_buffer } => {
            form.field("codec", codec, &media::CODECS);
            form.field("suppress-silence", suppress_silence, &FLAG);
            form.field("jitter-buffer", jitter_buffer, &TIME);
        }
        Traffic::Web(config) => web(form, config),
        Traffic::Adaptive(config) => media::adaptive(form, config),
        Traffic::Ftp(config) => {
            let bytes = Bytes::or_segments(mss).down_to_one();
            form.field("mean-size", &mut config.mean_bytes, &bytes);
            form.field("deviation", &mut config.deviation_bytes, &Bytes::at_least(0));
            form.field("largest", &mut config.largest_bytes, &bytes);
            form.field("reading", &mut config.reading, &TIME);
        }
    }
}

/// The name of a kind.
pub(crate) fn name(traffic: &Traffic) -> &'static str {
    match traffic {
        Traffic::Bulk => "bulk",
        Traffic::File { .. } => "file",
        Traffic::Pages { .. } => "pages",
        Traffic::Cbr { .. } => "cbr",
        Traffic::OnOff(_) => "on-off",
        Traffic::Video { .. } => "video",
        Traffic::Frames { .. } => "frames",
        Traffic::Voice { .. } => "voice",
        Traffic::Web(_) => "web",
        Traffic::Adaptive(_) => "adaptive",
        Traffic::Ftp(_) => "ftp",
    }
}

fn of_kind(kind: &str) -> Traffic {
    match kind {
        "file" => Traffic::File { bytes: 1 },
        "pages" => Traffic::Pages { segments: 1, idle: Idle::Fixed(Duration::ZERO), fresh_connection: true },
        "cbr" => Traffic::Cbr { rate: Rate::from_bps(1), packet_bytes: 1000, spacing: Spacing::Even },
        "on-off" => Traffic::OnOff(on_off::Config::default()),
        "video" => Traffic::Video { video: Default::default(), stream: Streaming::default() },
        "frames" => media::no_frames(),
        "voice" => media::voice(),
        "web" => Traffic::Web(browser::Config::default()),
        "adaptive" => Traffic::Adaptive(Default::default()),
        "ftp" => Traffic::Ftp(Default::default()),
        _ => Traffic::Bulk,
    }
}

const SPACINGS: Words<Spacing> =
    Words(&[("even", Spacing::Even), ("uniform", Spacing::Uniform), ("exponential", Spacing::Exponential)]);

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

const TIMES_KINDS: &[Kind] =
    &[Kind { name: "exponential", keys: &[] }, Kind { name: "pareto", keys: &["shape"] }];

fn on_off(form: &mut Form<'_>, config: &mut on_off::Config) {
    form.field("rate", &mut config.rate, &RATE);
    form.field("packet", &mut config.packet_bytes, &Bytes::PACKET);
    form.field("on", &mut config.on, &TIME_ABOVE_ZERO);
    form.field("off", &mut config.off, &TIME);
    form.table("times", SHORTHAND, |form| {
        let times = &mut config.times;
        let current = if *times == Times::Exponential { "exponential" } else { "pareto" };
        let kind = form.kind(current, TIMES_KINDS);
        if kind != current {
            // The shape of ns-2.
            *times = if kind == "pareto" { Times::Pareto { shape: 1.5 } } else { Times::Exponential };
        }
        if let Times::Pareto { shape } = times {
            form.field("shape", shape, &SHAPE);
        }
    });
}

const MODELS: Words<Model> = Words(&[
    ("choi-limb", Model::ChoiLimb),
    ("mah", Model::Mah),
    ("surge", Model::Surge),
    ("ns2", Model::Ns2Web),
]);

fn web(form: &mut Form<'_>, config: &mut browser::Config) {
    form.field("model", &mut config.model, &MODELS);
    form.field("connections", &mut config.connections, &FEW);
    form.field("persistent", &mut config.persistent, &FLAG);
    form.field("view-scale", &mut config.view_scale, &FACTOR);
}
