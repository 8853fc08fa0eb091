use bentpipe_net::{LossConfig, LossModel};

use crate::form::{Form, Kind, Shorthand};
use crate::tree::{Node, Value};
use crate::unit::{Codec, FLAG, PROBABILITY, Refused};

const KINDS: &[Kind] = &[
    Kind { name: "none", keys: &["data-only"] },
    Kind { name: "packet", keys: &["rate", "data-only"] },
    Kind { name: "bit", keys: &["rate", "data-only"] },
    Kind { name: "byte", keys: &["rate", "data-only"] },
    Kind {
        name: "gilbert-elliott",
        keys: &["good-to-bad", "bad-to-good", "loss-good", "loss-bad", "data-only"],
    },
    Kind { name: "list", keys: &["packets", "data-only"] },
    Kind { name: "trace", keys: &["lost", "repeat", "data-only"] },
];

/// `"none"`, a packet loss rate, or a table.
pub(super) const SHORTHAND: Shorthand = Shorthand { word: Some("kind"), number: Some("rate"), list: None };

/// Transmission errors of a link.
pub(super) fn loss(form: &mut Form<'_>, loss: &mut LossConfig) {
    let kind = form.kind(loss.model.name(), KINDS);
    if kind != loss.model.name() {
        loss.model = of_kind(kind, rate(&loss.model));
    }
    match &mut loss.model {
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
        LossModel::List { numbers } => form.field("packets", numbers, &Numbers),
        LossModel::Trace { lost, repeat } => {
            form.field("lost", lost, &Flags);
            form.field("repeat", repeat, &FLAG);
        }
    }
    form.field("data-only", &mut loss.data_only, &FLAG);
}

/// A loss model of another kind; a rate stays what it was.
fn of_kind(kind: &str, rate: f64) -> LossModel {
    match kind {
        "packet" => LossModel::Packet { probability: rate },
        "bit" => LossModel::Bit { probability: rate },
        "byte" => LossModel::Byte { probability: rate },
        "gilbert-elliott" => {
            LossModel::GilbertElliott { good_to_bad: 0.0, bad_to_good: 1.0, loss_good: 0.0, loss_bad: 1.0 }
        }
        "list" => LossModel::List { numbers: Vec::new() },
        "trace" => LossModel::Trace { lost: Vec::new(), repeat: false },
        _ => LossModel::None,
    }
}

fn rate(model: &LossModel) -> f64 {
    match model {
        LossModel::Packet { probability }
        | LossModel::Bit { probability }
        | LossModel::Byte { probability } => *probability,
        _ => 0.0,
    }
}

/// Packet numbers, from 1, ascending.
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

/// One flag per packet, written as a string of 0 (delivered) and 1 (lost).
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
