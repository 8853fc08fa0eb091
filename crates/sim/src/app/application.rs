//! The application of a flow, as a scenario describes it.

use bentpipe_base::{Duration, Rng};
use bentpipe_scenario::{FlowGroup, Idle, Streaming, Traffic, Transport};
use bentpipe_traffic::adaptive::Player;
use bentpipe_traffic::browser::Browser;
use bentpipe_traffic::fetch::Fetcher;
use bentpipe_traffic::frames::Frames;
use bentpipe_traffic::mpeg::{Mpeg, Style};
use bentpipe_traffic::on_off::{self, OnOff, Spacing, Times};
use bentpipe_traffic::voice::{Listener, Talker};
use bentpipe_traffic::{
    Application, Cbr, Client, ClientApp, Judge, Pages, Playout, Rest, Source, SourceApp, Timeliness,
};

/// Returns the properties that all videos of a group share; `None` for other traffic.
pub(crate) fn style(group: &FlowGroup) -> Option<Style> {
    if let Traffic::Video { video, .. } = &group.traffic { Some(Style::new(video)) } else { None }
}

/// The application of a flow called `name` under a seed; its group has this style.
pub(crate) fn application(
    group: &FlowGroup,
    style: Option<&Style>,
    (seed, name): (u64, &str),
) -> Application {
    let stream = |what| Rng::stream(seed, &format!("flow.{name}.{what}"));
    let rng = || stream("traffic");
    let client = |client| Application::ClientApp(Box::new(ClientApp::new(client)));
    match &group.traffic {
        Traffic::Bulk => Application::Bulk,
        Traffic::File { bytes } => Application::File { bytes: *bytes },
        Traffic::Pages { bytes, idle, fresh_connection } => Application::Pages(Pages {
            bytes: *bytes,
            fresh_connection: *fresh_connection,
            rest: match idle {
                Idle::Fixed(rest) => Rest::Fixed(*rest),
                Idle::Exponential(mean) => Rest::Exponential(Box::new((*mean, stream("idle")))),
            },
        }),
        Traffic::Cbr { rate, packet_bytes, spacing } => {
            if group.transport == Transport::Udp && *spacing == Spacing::Even {
                return Application::Cbr(Cbr::new(*rate, *packet_bytes));
            }
            let (rate, packet_bytes, spacing, off) = (*rate, *packet_bytes, *spacing, Duration::ZERO);
            let (on, times) = (Duration::from_secs(1), Times::Exponential);
            bursts(group, &on_off::Config { rate, packet_bytes, on, off, times, spacing }, rng())
        }
        Traffic::OnOff(config) => bursts(group, config, rng()),
        Traffic::Video { stream, .. } => {
            let style = style.expect("a group of videos has a style").clone();
            watched(group, stream, Source::Mpeg(Mpeg::new(style, rng())))
        }
        Traffic::Frames { recording, frames_per_s, repeat, stream, .. } => {
            let frames = Frames::new(recording.clone(), *frames_per_s, *repeat);
            watched(group, stream, Source::Frames(frames))
        }
        Traffic::Voice { codec, suppress_silence, jitter_buffer } => {
            let talker = Talker::new(*codec, *suppress_silence, rng());
            let judge = Judge::Listener(Listener::new(*codec, *jitter_buffer));
            source(group, Source::Talker(talker), judge, false)
        }
        Traffic::Web(config) => client(Client::Browser(Browser::new(*config, rng()))),
        Traffic::Adaptive(config) => client(Client::Player(Player::new(config.clone()))),
        Traffic::Ftp(config) => client(Client::Fetcher(Fetcher::new(*config, rng()))),
    }
}

fn source(group: &FlowGroup, source: Source, judge: Judge, coalesces: bool) -> Application {
    Application::SourceApp(Box::new(SourceApp::new(source, judge, group.sender.mss, coalesces)))
}

/// Bursts and silences.
fn bursts(group: &FlowGroup, config: &on_off::Config, rng: Rng) -> Application {
    source(group, Source::OnOff(OnOff::new(config, group.headers(), rng)), Judge::Nobody, false)
}

/// A live video with a viewer.
fn watched(group: &FlowGroup, stream: &Streaming, video: Source) -> Application {
    let judge = Judge::Viewer(Timeliness::new(stream.threshold), Playout::new(stream.playout_delay));
    source(group, video, judge, stream.coalesce)
}
