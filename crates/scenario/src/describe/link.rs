use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{
    ArqConfig, FecConfig, HandoverLoss, Interpolation, LinkConfig, LossConfig, LossModel, Outage,
    OutageEffect, Outages, QueueConfig, Reordering, Schedule,
};

use bentpipe_weather::{Acm, Coding, Weather};

use super::{access, jitter, loss, queue, radio, schedule};
use crate::error::Mistake;
use crate::form::{Form, Keys, Named, Shorthand};
use crate::model::{LinkGroup, Radio};
use crate::series::{Recordings, Series};
use crate::tree::{Node, Value};
use crate::unit::{
    COUNT, Codec, FEW, FLAG, Names, OrWord, PROBABILITY, RATE, Refused, TIME, TIME_ABOVE_ZERO, Words,
};

impl Named for LinkGroup {
    fn named(name: &str) -> Self {
        let direction = LinkConfig::new(Rate::ZERO, Duration::ZERO, QueueConfig::default());
        let (from, to) = (String::new(), String::new());
        let radio = [Radio::default(), Radio::default()];
        Self { name: name.to_owned(), from, to, forward: direction.clone(), reverse: direction, radio }
    }
    fn name(&self) -> &str {
        &self.name
    }
}

/// Table `[link.<name>]`; `duration` is the scenario's, up to which repeated outages continue.
pub(super) fn link(form: &mut Form<'_>, link: &mut LinkGroup, duration: Duration) {
    let mut between = (link.from.clone(), link.to.clone());
    form.required("between", &mut between, &Names);
    (link.from, link.to) = between;
    let [forward, reverse] = &mut link.radio;
    direction(form, &mut link.forward, forward, duration);
    if form.reads() {
        link.reverse = link.forward.clone();
        *reverse = forward.clone();
    }
    form.differing("reverse", |form| direction(form, &mut link.reverse, reverse, duration));
    // After both directions: gaps in the recording of one direction are no outages of the other.
    for (config, radio) in [(&mut link.forward, &link.radio[0]), (&mut link.reverse, &link.radio[1])] {
        if let (Form::Read(reading), Err(all)) =
            (&mut *form, radio.recordings.add_gaps(&mut config.outages, duration))
            && let Some(node) = reading.get("rate")
        {
            let accepted = format!("a file that makes at most 1000000 of them in {duration}, not {all}");
            reading.refuse("rate", node, accepted, None);
        }
    }
}

fn direction(form: &mut Form<'_>, link: &mut LinkConfig, radio: &mut Radio, duration: Duration) {
    // A direction with only its own rate has no modem.
    if form.has("rate") && !form.has("modem") {
        radio.modem = None;
    }
    form.table("modem", Shorthand::KIND, |form| radio::modem(form, &mut radio.modem));
    if radio.modem.is_none() {
        radio.weather = Weather::Clear;
    } else {
        // The weather determines the link's rate and losses.
        link.opportunities = None;
        let Recordings { delay_one_way, jitter, .. } = std::mem::take(&mut radio.recordings);
        radio.recordings = Recordings { delay_one_way, jitter, ..Recordings::default() };
    }
    if form.lists() {
        form.table("weather", Shorthand::KIND, |form| radio::weather(form, &mut radio.weather));
        radio.modem = None;
    }
    match &radio.modem {
        Some(modem) => {
            form.table("weather", Shorthand::KIND, |form| radio::weather(form, &mut radio.weather));
            let possible = modem.validate().is_ok() && radio.weather.validate().is_ok();
            let interval = match &modem.coding {
                Coding::Adaptive(acm) => acm.interval,
                Coding::Fixed(_) => Acm::default().interval,
            };
            if form.reads() && possible && !at_least_part(form, "modem", interval, duration) {
                modem.plan(&radio.weather, duration).apply(link);
            }
        }
        None => {
            let accepted = Codec::<Rate>::accepted(&RATE);
            form.required_table("rate", schedule::SHORTHAND, &accepted, |form| {
                schedule::rate(form, link, &mut radio.recordings);
            });
        }
    }
    let accepted = Codec::<Duration>::accepted(&TIME);
    form.required_table("delay-one-way", schedule::SHORTHAND, &accepted, |form| {
        schedule::delay(form, &mut link.delay_one_way, &mut radio.recordings.delay_one_way);
    });
    jitter::jitter(form, &mut link.jitter, &mut radio.recordings.jitter);
    queue(form, link);
    if radio.modem.is_none() {
        loss(form, link, Some(&mut radio.recordings.loss));
    }
    handover_loss_at_jumps(form, link);
    form.table("arq", Shorthand::KIND, |form| arq(form, &mut link.arq));
    form.table("fec", Shorthand::KIND, |form| fec(form, &mut link.fec));
    form.table("outages", OUTAGES_SHORTHAND, |form| outages(form, &mut link.outages, duration));
    form.field("preserve-order", &mut link.preserve_order, &FLAG);
    form.table("reordering", Shorthand::KIND, |form| reordering(form, &mut link.reordering));
    form.field("duplication", &mut link.duplicate_probability, &PROBABILITY);
    form.field("corruption", &mut link.corrupt_probability, &PROBABILITY);
    form.table("medium", Shorthand::KIND, |form| access::access(form, &mut radio.medium));
}

/// Keys of a link whose delay is computed from the geometry.
pub(super) fn medium(form: &mut Form<'_>, link: &mut LinkConfig) {
    rate(form, link);
    queue(form, link);
    loss(form, link, None);
}

/// Keys of a link between a ground station and a satellite.
pub(super) fn ground(form: &mut Form<'_>, link: &mut LinkConfig, recordings: &mut Recordings) {
    medium(form, link);
    jitter::jitter(form, &mut link.jitter, &mut recordings.jitter);
    handover_loss(form, link, false);
}

fn rate(form: &mut Form<'_>, link: &mut LinkConfig) {
    form.required_table("rate", schedule::SHORTHAND, &Codec::<Rate>::accepted(&RATE), |form| {
        schedule::schedule(form, &mut link.rate, &RATE);
    });
}

fn queue(form: &mut Form<'_>, link: &mut LinkConfig) {
    if form.is_bare("queue") {
        link.queue = QueueConfig::default();
    }
    form.table("queue", queue::SHORTHAND, |form| queue::queue(form, &mut link.queue));
}

fn loss(form: &mut Form<'_>, link: &mut LinkConfig, series: Option<&mut Option<Series>>) {
    let of_modem = matches!(link.loss.model, LossModel::Frames { .. });
    if of_modem || form.is_bare("loss") {
        link.loss = LossConfig { handover: link.loss.handover.take(), ..LossConfig::default() };
    }
    form.table("loss", loss::SHORTHAND, |form| loss::loss(form, &mut link.loss, series));
}

/// Losses near the handovers of a link, which are the jumps of its delay.
fn handover_loss_at_jumps(form: &mut Form<'_>, link: &mut LinkConfig) {
    handover_loss(form, link, true);
    let (Form::Read(reading), Some(handover)) = (form, &mut link.loss.handover) else { return };
    handover.find(&link.delay_one_way);
    let node = ["handover-loss", "delay-one-way"].into_iter().find_map(|key| reading.get(key));
    // A run may end before the first step.
    let one_value = matches!(&link.delay_one_way, Schedule::Table { points, interpolation: Interpolation::Step, .. } if points.len() == 1);
    if let Some(node) = node.filter(|_| handover.handovers.is_empty() && !one_value) {
        reading.report.add(Mistake {
            place: node.place.clone(),
            key: reading.path_of("handover-loss"),
            found: "a delay without such steps".to_owned(),
            accepted: format!("off, or a `delay-one-way` with steps of at least `jump` ({})", handover.jump),
            suggestion: None,
        });
    }
}

fn handover_loss(form: &mut Form<'_>, link: &mut LinkConfig, has_jumps: bool) {
    form.table("handover-loss", Shorthand::KIND, |form| {
        form.option(&mut link.loss.handover, ["off", "burst"], HandoverLoss::default(), |form, burst| {
            form.required("rate", &mut burst.probability, &PROBABILITY);
            form.field("share", &mut burst.share, &PROBABILITY);
            form.field("before", &mut burst.before, &TIME);
            form.field("after", &mut burst.after, &TIME);
            if has_jumps {
                form.field("jump", &mut burst.jump, &TIME);
            }
        });
    });
}

const OUTAGES_SHORTHAND: Shorthand = Shorthand { word: None, number: None, list: Some("intervals") };

const EFFECTS: Words<OutageEffect> = Words(&[
    ("pause", OutageEffect::Pause),
    ("cut", OutageEffect::Cut),
    ("cut-path", OutageEffect::CutPath),
    ("blind", OutageEffect::Blind),
]);

/// Outages listed one by one, or repeated with a fixed length.
const OUTAGE_KINDS: &[Keys] =
    &[("listed", &["intervals", "effect"]), ("repeated", &["every", "length", "first", "effect"])];

fn outages(form: &mut Form<'_>, outages: &mut Outages, duration: Duration) {
    form.implied_kinds("listed", OUTAGE_KINDS, |form, kind| match kind {
        "repeated" => {
            let (mut every, mut length, mut first) = (duration, Duration::ZERO, None);
            form.required("every", &mut every, &TIME_ABOVE_ZERO);
            form.required("length", &mut length, &TIME_ABOVE_ZERO);
            form.field("first", &mut first, &OrWord("every", TIME));
            if at_least_part(form, "every", every, duration) {
                return;
            }
            let [from, until] = [first.unwrap_or(every), duration].map(|time| Instant::ZERO + time);
            outages.intervals = Outages::every(every, length, from..until).intervals;
        }
        _ => form.field("intervals", &mut outages.intervals, &Intervals),
    });
    form.field("effect", &mut outages.effect, &EFFECTS);
}

/// Maximum number of repetitions of an event in a run.
const MOST_TIMES: u64 = 1_000_000;

/// Returns true and reports a mistake if the interval `every` of `key` is too small a fraction of
/// `duration`.
pub(super) fn at_least_part(form: &mut Form<'_>, key: &str, every: Duration, duration: Duration) -> bool {
    let least = Duration::from_nanos(duration.as_nanos().div_ceil(MOST_TIMES));
    let Form::Read(reading) = form else { return false };
    let Some(node) = reading.get(key).filter(|_| every < least) else { return false };
    let accepted = format!("at least {least} between two, for {MOST_TIMES} times in {duration} at most");
    reading.refuse(key, node, accepted, None);
    true
}

/// Codec of `[[begin, end], ...]`.
pub(super) struct Intervals;

impl Codec<Vec<Outage>> for Intervals {
    fn read(&self, value: &Value) -> Result<Vec<Outage>, Refused> {
        let Value::List(items) = value else { return Err(Refused::default()) };
        items.iter().map(interval).collect()
    }
    fn show(&self, typed: &Vec<Outage>) -> Value {
        let time = |instant: Instant| Node::computed(TIME.show(&instant.since(Instant::ZERO)));
        let pair = |outage: &Outage| Node::computed(Value::List(vec![time(outage.from), time(outage.to)]));
        Value::List(typed.iter().map(pair).collect())
    }
    fn accepted(&self) -> String {
        "pairs of begin and end such as [[\"10 s\", \"12 s\"]]".to_owned()
    }
}

fn interval(item: &Node) -> Result<Outage, Refused> {
    let Value::List(pair) = &item.value else { return Err(Refused::default()) };
    let [from, to] = pair.as_slice() else { return Err(Refused::default()) };
    let time = |node: &Node| -> Result<Duration, Refused> { TIME.read(&node.value) };
    Ok(Outage { from: Instant::ZERO + time(from)?, to: Instant::ZERO + time(to)? })
}

fn arq(form: &mut Form<'_>, arq: &mut Option<ArqConfig>) {
    form.option(arq, ["off", "selective-repeat"], ArqConfig { retries: 5 }, |form, arq| {
        form.field("retries", &mut arq.retries, &COUNT);
    });
}

fn fec(form: &mut Form<'_>, fec: &mut Option<FecConfig>) {
    // Default with 10 % parity, which repairs 1 % loss and bursts of two packets.
    let usual = FecConfig { k: 18, n: 20, flush: Duration::from_millis(50) };
    form.option(fec, ["off", "reed-solomon"], usual, |form, code| {
        form.field("k", &mut code.k, &FEW);
        form.field("n", &mut code.n, &FEW);
        form.field("flush", &mut code.flush, &TIME);
    });
}

fn reordering(form: &mut Form<'_>, reordering: &mut Option<Reordering>) {
    let none = Reordering { probability: 0.0, extra_min: Duration::ZERO, extra_max: Duration::ZERO };
    form.option(reordering, ["off", "random"], none, |form, random| {
        form.required("probability", &mut random.probability, &PROBABILITY);
        form.field("extra-min", &mut random.extra_min, &TIME);
        form.required("extra-max", &mut random.extra_max, &TIME);
    });
}
