use bentpipe_base::{Duration, Rate};
use bentpipe_traffic::browser;
use bentpipe_traffic::on_off::{self, Spacing, Times};
use bentpipe_traffic::web::Model;

use super::media;
use crate::form::{Form, Keys, Shorthand};
use crate::model::{Idle, Streaming, Traffic};
use crate::unit::{Bytes, FACTOR, FEW, FLAG, RATE, SHAPE, TIME, TIME_ABOVE_ZERO, Words};

/// Traffic of a flow's application; sizes in segments mean `mss` bytes each.
pub(super) fn traffic(form: &mut Form<'_>, traffic: &mut Traffic, mss: u32) {
    form.variant(traffic, name, each(), |form, traffic| match traffic {
        Traffic::Bulk => {}
        Traffic::File { bytes } => form.required("size", bytes, &Bytes::or_segments(mss).down_to_one()),
        Traffic::Pages { bytes, idle, fresh_connection } => {
            form.required("page", bytes, &Bytes::or_segments(mss).down_to_one());
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
    });
}

/// Returns the name of a kind.
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

/// Returns traffic of each kind.
fn each() -> Vec<Traffic> {
    vec![
        Traffic::Bulk,
        Traffic::File { bytes: 1 },
        Traffic::Pages { bytes: 1, idle: Idle::Fixed(Duration::ZERO), fresh_connection: true },
        Traffic::Cbr { rate: Rate::from_bps(1), packet_bytes: 1000, spacing: Spacing::Even },
        Traffic::OnOff(on_off::Config::default()),
        Traffic::Video { video: Default::default(), stream: Streaming::default() },
        media::no_frames(),
        media::voice(),
        Traffic::Web(browser::Config::default()),
        Traffic::Adaptive(Default::default()),
        Traffic::Ftp(Default::default()),
    ]
}

const SPACINGS: Words<Spacing> =
    Words(&[("even", Spacing::Even), ("uniform", Spacing::Uniform), ("exponential", Spacing::Exponential)]);

const IDLE_SHORTHAND: Shorthand = Shorthand { word: None, number: Some("fixed"), list: None };

const IDLE_KINDS: &[Keys] = &[("fixed", &["fixed"]), ("exponential", &["exponential-mean"])];

fn idle(form: &mut Form<'_>, idle: &mut Idle) {
    let (current, time) = match *idle {
        Idle::Fixed(time) => ("fixed", time),
        Idle::Exponential(mean) => ("exponential", mean),
    };
    form.implied_kinds(current, IDLE_KINDS, |form, kind| {
        *idle = match kind {
            "exponential" => Idle::Exponential(time),
            _ => Idle::Fixed(time),
        };
        match idle {
            Idle::Fixed(time) => form.field("fixed", time, &TIME),
            Idle::Exponential(mean) => form.field("exponential-mean", mean, &TIME),
        }
    });
}

fn on_off(form: &mut Form<'_>, config: &mut on_off::Config) {
    form.field("rate", &mut config.rate, &RATE);
    form.field("packet", &mut config.packet_bytes, &Bytes::PACKET);
    form.field("on", &mut config.on, &TIME_ABOVE_ZERO);
    form.field("off", &mut config.off, &TIME);
    let name = |times: &Times| if *times == Times::Exponential { "exponential" } else { "pareto" };
    // The default shape of ns-2.
    let each = vec![Times::Exponential, Times::Pareto { shape: 1.5 }];
    form.table("times", Shorthand::KIND, |form| {
        form.variant(&mut config.times, name, each, |form, times| {
            if let Times::Pareto { shape } = times {
                form.field("shape", shape, &SHAPE);
            }
        });
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
