use bentpipe_base::Duration;
use bentpipe_cc::{TimeoutProbe, careful_resume};
use bentpipe_tcp::{
    AckCounting, AckDelay, AckPace, Config, DelayedAck, EcnMode, KeepAlive, Pacing, ReceiveWindow, Recovery,
    Restore, RtoBounds, SpuriousTimeout, WindowValidation,
};

use crate::form::{Form, Shorthand};
use crate::unit::{
    Bytes, COUNT, Count, FACTOR, FLAG, FlagOrWord, Initial, OrWord, PROBABILITY, SEGMENTS,
    SEGMENTS_FROM_ZERO, Segments, TIME, TIME_ABOVE_ZERO, Words,
};

/// Loss recovery methods, keyed by name.
pub(crate) const RECOVERIES: &[(&str, Recovery)] = &[
    ("reno", Recovery::Reno),
    ("newreno", Recovery::NewReno),
    ("sack", Recovery::Sack),
    ("rack", Recovery::Rack),
    ("snack", Recovery::Snack),
];

const AEN_PROBE: Words<TimeoutProbe> = Words(&[
    ("newest", TimeoutProbe::Newest),
    ("oldest", TimeoutProbe::Oldest),
    ("keepalive", TimeoutProbe::Keepalive),
]);

const RESTORE: Words<Restore> = Words(&[("ssthresh", Restore::Threshold), ("both", Restore::Both)]);

const WINDOW_VALIDATION: Words<WindowValidation> = Words(&[
    ("off", WindowValidation::Off),
    ("restart", WindowValidation::Restart),
    ("rfc7661", WindowValidation::Rfc7661),
]);

const ACK_COUNTING: Words<AckCounting> =
    Words(&[("segments", AckCounting::Segments), ("acks", AckCounting::Acks)]);

const ECN: FlagOrWord<EcnMode> =
    FlagOrWord { off: EcnMode::Off, on: EcnMode::Classic, word: ("accurate", EcnMode::Accurate) };

/// Keys of a `tcp` table, except the header size, which belongs to the flow. Sizes in segments mean segments of
/// `mss` bytes, the sender's size, for the receiver too.
pub(super) fn tcp(form: &mut Form<'_>, config: &mut Config, mss: u32) {
    form.field("mss", &mut config.mss, &Bytes::PACKET);
    form.field("least-mss", &mut config.least_mss, &Bytes::PACKET);
    loss_recovery(form, config);
    options(form, config);
    sending(form, config, mss);
    form.table("receive-window", WINDOW_SHORTHAND, |form| {
        receive_window(form, &mut config.receive_window, mss);
    });
    form.table("delayed-ack", DELAYED_ACK_SHORTHAND, |form| delayed_ack(form, &mut config.delayed_ack));
    form.field("best-effort", &mut config.best_effort, &OrWord("off", TIME_ABOVE_ZERO));
    form.table("ack-delay", Shorthand::KIND, |form| ack_delay(form, &mut config.ack_delay));
    life(form, config);
}

fn loss_recovery(form: &mut Form<'_>, config: &mut Config) {
    form.field("recovery", &mut config.recovery, &Words(RECOVERIES));
    form.field("prr", &mut config.prr, &FLAG);
    form.field("undo", &mut config.undo, &FLAG);
    form.field("limited-transmit", &mut config.limited_transmit, &FLAG);
    form.field("dup-thresh", &mut config.dup_thresh, &COUNT);
    form.table("rto", Shorthand::NONE, |form| rto(form, &mut config.rto));
    form.table("spurious-timeout", Shorthand::KIND, |form| {
        spurious_timeout(form, &mut config.spurious_timeout)
    });
}

fn options(form: &mut Form<'_>, config: &mut Config) {
    form.field("dsack", &mut config.dsack, &FLAG);
    form.field("timestamps", &mut config.timestamps, &FLAG);
    form.field("window-scaling", &mut config.window_scaling, &FLAG);
    form.field("ecn", &mut config.ecn, &ECN);
    form.field("probe-replies", &mut config.probe_replies, &FLAG);
}

fn sending(form: &mut Form<'_>, config: &mut Config, mss: u32) {
    form.field("ack-counting", &mut config.ack_counting, &ACK_COUNTING);
    form.field("initial-window", &mut config.initial_window, &Initial);
    form.field("initial-ssthresh", &mut config.initial_ssthresh, &OrWord("infinite", Segments));
    form.field("max-burst", &mut config.max_burst, &OrWord("off", SEGMENTS));
    form.field("nagle", &mut config.nagle, &FLAG);
    form.table("pacing", Shorthand::KIND, |form| pacing(form, &mut config.pacing));
    form.field("window-validation", &mut config.window_validation, &WINDOW_VALIDATION);
    form.table("careful-resume", Shorthand::KIND, |form| resume(form, &mut config.careful_resume));
    form.field("send-buffer", &mut config.send_buffer, &Bytes::or_segments(mss));
}

fn life(form: &mut Form<'_>, config: &mut Config) {
    form.table("keep-alive", Shorthand::KIND, |form| keep_alive(form, &mut config.keep_alive));
    form.field("user-timeout", &mut config.user_timeout, &OrWord("off", TIME_ABOVE_ZERO));
    form.field("retries", &mut config.retries, &Count::FROM_ZERO);
    form.field("syn-retries", &mut config.syn_retries, &Count::FROM_ZERO);
    form.field("time-wait", &mut config.time_wait, &TIME);
    form.field("fin-wait-2", &mut config.fin_wait_2, &TIME_ABOVE_ZERO);
    form.field("orphan-timeout", &mut config.orphan_timeout, &TIME_ABOVE_ZERO);
}

fn rto(form: &mut Form<'_>, rto: &mut RtoBounds) {
    form.field("initial", &mut rto.initial, &TIME_ABOVE_ZERO);
    form.field("floor", &mut rto.floor, &TIME_ABOVE_ZERO);
    form.field("margin", &mut rto.margin, &TIME);
    form.field("ceiling", &mut rto.ceiling, &TIME_ABOVE_ZERO);
    form.field("tick", &mut rto.tick, &TIME_ABOVE_ZERO);
    form.field("each-sample", &mut rto.each_sample, &FLAG);
    form.field("restart-on-sacks", &mut rto.restart_on_sacks, &FLAG);
}

fn spurious_timeout(form: &mut Form<'_>, doubt: &mut SpuriousTimeout) {
    let name = |doubt: &SpuriousTimeout| match doubt {
        SpuriousTimeout::Off => "off",
        SpuriousTimeout::FRto => "f-rto",
        SpuriousTimeout::Eifel => "eifel",
        SpuriousTimeout::Enhanced { .. } => "enhanced",
        SpuriousTimeout::Aen { .. } => "aen",
    };
    let each = vec![
        SpuriousTimeout::Off,
        SpuriousTimeout::FRto,
        SpuriousTimeout::Eifel,
        SpuriousTimeout::ENHANCED,
        SpuriousTimeout::AEN,
    ];
    form.variant(doubt, name, each, |form, doubt| match doubt {
        SpuriousTimeout::Enhanced { fraction, restore } => {
            form.field("fraction", fraction, &PROBABILITY);
            form.field("restore", restore, &RESTORE);
        }
        SpuriousTimeout::Aen { probe, max_probes, paced } => {
            form.field("probe", probe, &AEN_PROBE);
            form.field("max-probes", max_probes, &COUNT);
            form.field("paced", paced, &FLAG);
        }
        _ => {}
    });
}

fn pacing(form: &mut Form<'_>, pacing: &mut Pacing) {
    let name = |pacing: &Pacing| match pacing {
        Pacing::Algorithm => "algorithm",
        Pacing::Off => "off",
        Pacing::Window { .. } => "window",
    };
    form.variant(pacing, name, vec![Pacing::Algorithm, Pacing::Off, Pacing::WINDOW], |form, pacing| {
        if let Pacing::Window { slow_start_gain, avoidance_gain } = pacing {
            form.field("slow-start-gain", slow_start_gain, &FACTOR);
            form.field("avoidance-gain", avoidance_gain, &FACTOR);
        }
    });
}

const WINDOW_SHORTHAND: Shorthand = Shorthand { number: Some("size"), ..Shorthand::KIND };

fn receive_window(form: &mut Form<'_>, window: &mut ReceiveWindow, mss: u32) {
    let name = |window: &ReceiveWindow| match window {
        ReceiveWindow::Fixed(_) => "fixed",
        ReceiveWindow::Auto { .. } => "auto",
    };
    let each = vec![ReceiveWindow::Fixed(window.limit()), Config::default().receive_window];
    let codec = Bytes::or_segments(mss);
    form.variant(window, name, each, |form, window| match window {
        ReceiveWindow::Fixed(size) => form.field("size", size, &codec),
        ReceiveWindow::Auto { initial, limit } => {
            form.field("initial", initial, &codec);
            form.field("limit", limit, &codec);
        }
    });
}

const DELAYED_ACK_SHORTHAND: Shorthand = Shorthand { number: Some("every"), ..Shorthand::KIND };

fn delayed_ack(form: &mut Form<'_>, delayed_ack: &mut DelayedAck) {
    let name = |delayed_ack: &DelayedAck| match delayed_ack {
        DelayedAck::Off => "off",
        DelayedAck::On { .. } => "on",
    };
    let each = vec![DelayedAck::Off, Config::default().delayed_ack];
    form.variant(delayed_ack, name, each, |form, delayed_ack| {
        if let DelayedAck::On { every, timer, quick, after_duplicate } = delayed_ack {
            form.field("every", every, &SEGMENTS);
            form.field("timer", timer, &TIME_ABOVE_ZERO);
            form.field("quick", quick, &SEGMENTS_FROM_ZERO);
            form.field("after-duplicate", after_duplicate, &SEGMENTS_FROM_ZERO);
        }
    });
}

fn ack_delay(form: &mut Form<'_>, delay: &mut AckDelay) {
    let name = |delay: &AckDelay| match delay {
        AckDelay::Auto => "auto",
        AckDelay::Counted => "counted",
        AckDelay::Paced(_) => "rtt",
    };
    let each = vec![AckDelay::Auto, AckDelay::Counted, AckDelay::Paced(AckPace::default())];
    form.variant(delay, name, each, |form, delay| {
        if let AckDelay::Paced(AckPace { part, floor, ceiling }) = delay {
            form.field("part", part, &FACTOR);
            form.field("floor", floor, &TIME_ABOVE_ZERO);
            form.field("ceiling", ceiling, &TIME_ABOVE_ZERO);
        }
    });
}

pub(crate) fn resume(form: &mut Form<'_>, resume: &mut Option<careful_resume::Config>) {
    form.option(resume, ["off", "on"], careful_resume::Config::default(), |form, on| {
        form.field("lifetime", &mut on.lifetime, &TIME_ABOVE_ZERO);
        form.field("max-jump", &mut on.max_jump, &OrWord("off", Bytes::at_least(1)));
    });
}

fn keep_alive(form: &mut Form<'_>, keep_alive: &mut Option<KeepAlive>) {
    let seconds = Duration::from_secs;
    // Defaults of RFC 9293 and of most hosts.
    let usual = KeepAlive { idle: seconds(7200), interval: seconds(75), probes: 9 };
    form.option(keep_alive, ["off", "on"], usual, |form, on| {
        form.field("idle", &mut on.idle, &TIME_ABOVE_ZERO);
        form.field("interval", &mut on.interval, &TIME_ABOVE_ZERO);
        form.field("probes", &mut on.probes, &COUNT);
    });
}
