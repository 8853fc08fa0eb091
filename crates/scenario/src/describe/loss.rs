use bentpipe_base::Duration;
use bentpipe_net::{LooConfig, LossConfig, LossModel, LutzConfig};

use crate::form::{Form, Shorthand};
use crate::tree::{Node, Value};
use crate::unit::{
    Codec, DECIBEL, DECIBEL_FROM_ZERO, FACTOR, FLAG, OrWord, PROBABILITY, Refused, TIME, TIME_ABOVE_ZERO,
};

use super::recorded;
use super::schedule::Points;
use crate::series::Series;

/// Accepts `"none"`, a packet loss rate, or a table.
pub(super) const SHORTHAND: Shorthand =
    Shorthand { number: Some("rate"), list: Some("table"), ..Shorthand::KIND };

/// Transmission errors of a link. `series` holds the file of a schedule's points, if a file is allowed.
pub(super) fn loss(form: &mut Form<'_>, loss: &mut LossConfig, series: Option<&mut Option<Series>>) {
    let files = series.is_some();
    let each = each(rate(&loss.model));
    form.choose(&mut loss.model, LossModel::name, each, |form, model| {
        self::model(form, model);
        if files && matches!(model, LossModel::Schedule { .. }) {
            form.also_has(recorded::KEYS);
            if form.lists() {
                recorded::list_keys(form);
            }
        }
    });
    let mut nowhere = None;
    let series = series.unwrap_or(&mut nowhere);
    match &mut loss.model {
        LossModel::Schedule { points, repeat_every } if files && recorded::is_meant(form, series) => {
            let read = |value: &Value| PROBABILITY.read(value).map(Some);
            let accepted = Codec::<f64>::accepted(&PROBABILITY);
            recorded::series(form, points, repeat_every, series, (&read, &accepted));
        }
        _ if form.lists() => {}
        model => {
            *series = None;
            self::model(form, model);
        }
    }
    form.field("data-only", &mut loss.data_only, &FLAG);
}

fn model(form: &mut Form<'_>, model: &mut LossModel) {
    match model {
        LossModel::None => {}
        LossModel::Packet { probability }
        | LossModel::Bit { probability }
        | LossModel::Byte { probability } => form.field("rate", probability, &PROBABILITY),
        LossModel::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
            form.field("good-to-bad", good_to_bad, &PROBABILITY);
            form.field("bad-to-good", bad_to_good, &PROBABILITY);
            form.field("loss-good", loss_good, &PROBABILITY);
            form.field("loss-bad", loss_bad, &PROBABILITY);
        }
        LossModel::Bursts { probability, mean_packets } => {
            form.field("rate", probability, &PROBABILITY);
            form.field("mean-burst", mean_packets, &FACTOR);
        }
        LossModel::Schedule { points, repeat_every } => {
            form.field("table", points, &Points(&PROBABILITY));
            form.field("repeat-every", repeat_every, &OrWord("never", TIME_ABOVE_ZERO));
        }
        LossModel::Lutz(config) => lutz(form, config),
        LossModel::Loo(config) => loo(form, config),
        // Losses from modem and weather are described under `modem` and `weather`.
        LossModel::Frames { .. } => {}
        LossModel::List { numbers } => form.field("packets", numbers, &Numbers),
        LossModel::Trace { lost, repeat } => {
            form.field("lost", lost, &Flags);
            form.field("repeat", repeat, &FLAG);
        }
    }
}

fn lutz(form: &mut Form<'_>, lutz: &mut LutzConfig) {
    form.field("margin", &mut lutz.margin_db, &DECIBEL);
    form.field("good-mean", &mut lutz.good_mean, &TIME_ABOVE_ZERO);
    form.field("bad-mean", &mut lutz.bad_mean, &TIME_ABOVE_ZERO);
    form.field("rice", &mut lutz.rice_db, &DECIBEL);
    form.field("shadow-mean", &mut lutz.shadow_mean_db, &DECIBEL);
    form.field("shadow-deviation", &mut lutz.shadow_deviation_db, &DECIBEL_FROM_ZERO);
    form.field("coherence", &mut lutz.coherence, &TIME);
}

fn loo(form: &mut Form<'_>, loo: &mut LooConfig) {
    form.field("margin", &mut loo.margin_db, &DECIBEL);
    form.field("direct-mean", &mut loo.direct_mean_db, &DECIBEL);
    form.field("direct-deviation", &mut loo.direct_deviation_db, &DECIBEL_FROM_ZERO);
    form.field("multipath", &mut loo.multipath_db, &DECIBEL);
    form.field("coherence", &mut loo.coherence, &TIME);
}

/// Returns a loss model of each kind; models with one rate use `rate`.
fn each(rate: f64) -> Vec<LossModel> {
    vec![
        LossModel::None,
        LossModel::Packet { probability: rate },
        LossModel::Bit { probability: rate },
        LossModel::Byte { probability: rate },
        LossModel::GilbertElliott { good_to_bad: 0.0, bad_to_good: 1.0, loss_good: 0.0, loss_bad: 1.0 },
        LossModel::Bursts { probability: rate, mean_packets: 5.0 },
        LossModel::Schedule { points: vec![(Duration::ZERO, rate)], repeat_every: None },
        LossModel::Lutz(LutzConfig::default()),
        LossModel::Loo(LooConfig::default()),
        LossModel::List { numbers: Vec::new() },
        LossModel::Trace { lost: Vec::new(), repeat: false },
    ]
}

fn rate(model: &LossModel) -> f64 {
    match model {
        LossModel::Packet { probability }
        | LossModel::Bit { probability }
        | LossModel::Byte { probability }
        | LossModel::Bursts { probability, .. } => *probability,
        _ => 0.0,
    }
}

/// Codec of packet numbers from 1, in ascending order.
struct Numbers;

impl Codec<Vec<u64>> for Numbers {
    fn read(&self, value: &Value) -> Result<Vec<u64>, Refused> {
        let Value::List(items) = value else { return Err(Refused::default()) };
        let number = |item: &Node| match item.value {
            Value::Whole(number) if number > 0 => Some(number as u64),
            _ => None,
        };
        let numbers: Vec<_> = items.iter().map(number).collect::<Option<_>>().ok_or_else(Refused::default)?;
        let ascending = numbers.windows(2).all(|pair| pair[0] < pair[1]);
        if ascending { Ok(numbers) } else { Err(Refused::default()) }
    }
    fn show(&self, typed: &Vec<u64>) -> Value {
        Value::List(typed.iter().map(|number| Node::computed(Value::Whole(*number as i64))).collect())
    }
    fn accepted(&self) -> String {
        "packet numbers from 1 in ascending order, such as [100, 117]".to_owned()
    }
}

/// Codec of a loss string: one character per packet, 0 (delivered) or 1 (lost).
struct Flags;

impl Codec<Vec<bool>> for Flags {
    fn read(&self, value: &Value) -> Result<Vec<bool>, Refused> {
        let Value::Text(text) = value else { return Err(Refused::default()) };
        let flag = |c: char| match c {
            '0' => Some(false),
            '1' => Some(true),
            _ => None,
        };
        let flags = text.chars().filter(|c| !c.is_whitespace()).map(flag).collect::<Option<Vec<_>>>();
        flags.filter(|flags| !flags.is_empty()).ok_or_else(Refused::default)
    }
    fn show(&self, typed: &Vec<bool>) -> Value {
        Value::Text(typed.iter().map(|lost| if *lost { '1' } else { '0' }).collect())
    }
    fn accepted(&self) -> String {
        "one digit for each packet, 0 if it arrives and 1 if it is lost, such as \"0000100\"".to_owned()
    }
}
