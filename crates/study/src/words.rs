//! Checks as English sentences, for readers who do not know the language of checks.

use bentpipe_lab::number::short;

use crate::check::{Check, Clause, Expr, Fold, Operation, Order, Quantity, Relation, Several, Values};
use crate::measure::MOMENTS;

impl Check {
    /// Returns the check as a sentence without its period: `where loss is 1e-3 or more: the goodput of peach is above
    /// that of reno`.
    pub fn words(&self) -> String {
        self.clauses.iter().map(Clause::words).collect::<Vec<_>>().join("; and ")
    }
}

impl Clause {
    fn words(&self) -> String {
        let relation = self.relation.words();
        match &self.place {
            None => relation,
            Some(place) => format!("where {} is {}: {relation}", place.axis, place.values.words()),
        }
    }
}

impl Values {
    fn words(&self) -> String {
        match self {
            Self::Listed(listed) => {
                listed.iter().map(|value| number(*value)).collect::<Vec<_>>().join(" or ")
            }
            Self::Bounded(Order::Above, bound) => format!("more than {}", number(*bound)),
            Self::Bounded(Order::Below, bound) => format!("less than {}", number(*bound)),
            Self::Bounded(Order::AtLeast, bound) => format!("{} or more", number(*bound)),
            Self::Bounded(Order::AtMost, bound) => format!("{} or less", number(*bound)),
        }
    }
}

/// Formats a number of the check: 5, 0.01, 1e-6.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        small if small < 0.01 => format!("{value:e}"),
        _ => value.to_string(),
    }
}

/// Formats a margin in percent.
fn per_cent(part: f64) -> String {
    format!("{} %", short(100.0 * part).trim_end_matches('0').trim_end_matches('.'))
}

impl Relation {
    fn words(&self) -> String {
        match self {
            Self::Compare(a, order, b) => {
                let order = match order {
                    Order::Above => "above",
                    Order::Below => "below",
                    Order::AtLeast => "at least",
                    Order::AtMost => "at most",
                };
                format!("{} is {order} {}", a.words(), b.beside(a))
            }
            Self::Near(a, b, within) => {
                format!("{} is within {} of {}", a.words(), per_cent(*within), b.beside(a))
            }
            Self::Within(a, low, high) => {
                format!("{} is between {} and {}", a.words(), number(*low), number(*high))
            }
            Self::Rises(a) => format!("{} grows along the axis", a.words()),
            Self::Falls(a) => format!("{} shrinks along the axis", a.words()),
            Self::Flat(a, within) => {
                format!(
                    "no two values along the axis of {} differ by more than {}",
                    a.words(),
                    per_cent(*within)
                )
            }
            Self::Peaks(a, at) => format!("{} is largest where the axis is at {}", a.words(), number(*at)),
        }
    }
}

impl Expr {
    fn words(&self) -> String {
        match self {
            Self::Number(value) => number(*value),
            Self::Quantity(quantity) => quantity.words(),
            Self::Both(a, operation, b) => {
                let operation = match operation {
                    Operation::Add => "plus",
                    Operation::Subtract => "minus",
                    Operation::Multiply => "times",
                    Operation::Divide => "over",
                };
                format!("{} {operation} {}", a.part(), b.part_beside(a))
            }
            Self::OverAxis(fold, inner) => {
                let fold = match fold {
                    Fold::Highest => "the largest along the axis of",
                    Fold::Lowest => "the smallest along the axis of",
                    Fold::Average => "the mean along the axis of",
                };
                format!("{fold} {}", inner.part())
            }
            Self::OfSeveral(several, all) => {
                let several = match several {
                    Several::Max => "the largest of ",
                    Several::Min => "the smallest of ",
                    Several::Log2 => "the binary logarithm of ",
                    Several::Abs => "the magnitude of ",
                };
                let (first, rest) = all.split_first().expect("the grammar wants one at least");
                let rest = rest.iter().map(|one| one.beside(first));
                let all: Vec<String> = std::iter::once(first.words()).chain(rest).collect();
                format!("{several}{}", all.join(", "))
            }
        }
    }

    /// Returns the expression in words, in brackets if it has several parts.
    fn part(&self) -> String {
        match self {
            Self::Both(..) => format!("({})", self.words()),
            _ => self.words(),
        }
    }

    fn part_beside(&self, first: &Self) -> String {
        match self {
            Self::Both(..) => format!("({})", self.words()),
            _ => self.beside(first),
        }
    }

    /// Returns the quantity relative to `first`: "that of" another arm if the metric is the same.
    fn beside(&self, first: &Self) -> String {
        let alike = |a: &Quantity, b: &Quantity| a.metric == b.metric && a.selectors == b.selectors;
        match (self, first.leading(), self.leading()) {
            (Self::Quantity(own), Some(other), _) if alike(own, other) => format!("that of {}", own.arm),
            (Self::OfSeveral(Several::Max | Several::Min, all), Some(other), _)
                if all.iter().all(|one| matches!(one, Self::Quantity(own) if alike(own, other))) =>
            {
                let arms: Vec<&str> =
                    all.iter().filter_map(|one| Some(one.leading()?.arm.as_str())).collect();
                let which =
                    if matches!(self, Self::OfSeveral(Several::Max, _)) { "largest" } else { "smallest" };
                format!("the {which} of those of {}", arms.join(", "))
            }
            _ => self.words(),
        }
    }

    /// Returns this quantity, or the first of several.
    fn leading(&self) -> Option<&Quantity> {
        match self {
            Self::Quantity(quantity) => Some(quantity),
            _ => None,
        }
    }
}

impl Quantity {
    fn words(&self) -> String {
        let of = |key: &str| self.selector(key);
        let curve = match self.metric.as_str() {
            "cwnd" => "the window",
            "ssthresh" => "the threshold",
            "srtt" => "the smoothed round trip",
            "sent" => "the segments sent",
            "retransmitted" => "the retransmitted segments",
            "acked" => "the segments acknowledged",
            _ => return format!("{} of {}{}", metric(&self.metric), self.arm, self.rest(|_| false)),
        };
        let arm = &self.arm;
        let rest = self.rest(|key| MOMENTS.contains(&key) || matches!(key, "from" | "to"));
        let what = if let Some(time) = of("t") {
            format!("{curve} of {arm} at {time} s")
        } else if let Some(bound) = of("reaches") {
            let from = of("from").map_or(String::new(), |from| format!(" from {from} s on"));
            format!("the time at which {curve} of {arm} first reaches {bound}{from}")
        } else if let Some(after) = of("next") {
            format!("the time of the first change of {curve} of {arm} after {after} s")
        } else {
            let to = of("to").unwrap_or_default();
            let (word, from) = [
                ("rate", "per second"),
                ("lowest", "at its smallest"),
                ("highest", "at its largest"),
                ("mean", "on average"),
                ("jain", "as Jain's index of its flows' rates,"),
            ]
            .into_iter()
            .find_map(|(key, word)| Some((word, of(key)?)))
            .unwrap_or_default();
            format!("{curve} of {arm}, {word} between {from} and {to} s,")
        };
        what + &rest
    }

    /// Returns the parts of a name not yet mentioned: flow, link, place on the axis.
    fn rest(&self, is_said: impl Fn(&str) -> bool) -> String {
        let one = |(key, value): &(String, String)| match key.as_str() {
            "group" | "flow" => format!(" (its flow {value})"),
            "link" | "medium" => format!(" (on the link {value})"),
            axis => format!(" (where {axis} is {value})"),
        };
        self.selectors.iter().filter(|(key, _)| !is_said(key)).map(one).collect()
    }
}

/// Converts `goodput_segments_per_s` to "the goodput".
fn metric(name: &str) -> String {
    match name {
        "jain_index" => return "Jain's index".into(),
        "completion_s" => return "the time of a transfer".into(),
        "dropped_by_queue" => return "the number of packets that the queue drops".into(),
        "dropped_by_error" => return "the number of packets lost to errors".into(),
        _ => {}
    }
    let units = ["_segments_per_s", "_bps", "_ms", "_s"];
    let bare = units.iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name);
    let words: Vec<String> = bare.rsplit('.').map(|word| word.replace('_', " ")).collect();
    format!("the {}", words.join(" of the "))
}

#[cfg(test)]
mod tests {
    use crate::check::Check;

    fn words(check: &str) -> String {
        Check::parse(check).unwrap().words()
    }

    #[test]
    fn a_check_reads_as_a_sentence() {
        let cases = [
            ("goodput_bps(a) > goodput_bps(b)", "the goodput of a is above that of b"),
            (
                "at loss >= 1e-3: goodput_bps(a) >= 0.9 * goodput_bps(b)",
                "where loss is 1e-3 or more: the goodput of a is at least 0.9 times the goodput of b",
            ),
            (
                "goodput_bps(a) > max(goodput_bps(b), goodput_bps(c)) and jain_index(a) in 0.9..1",
                "the goodput of a is above the largest of those of b, c; and Jain's index of a is between 0.9 and 1",
            ),
            (
                "cwnd(b, reaches=64) - cwnd(a, reaches=64) in 1.9..2.5",
                "the time at which the window of b first reaches 64 minus that of a is between 1.9 and 2.5",
            ),
            (
                "sent(a, rate=1.15, to=1.63) ~ 116 within 10%",
                "the segments sent of a, per second between 1.15 and 1.63 s, is within 10 % of 116",
            ),
            (
                "cwnd(a, mean=1, to=3) > 5 and acked(a, jain=60, to=90, group=x) >= 0.97",
                "the window of a, on average between 1 and 3 s, is above 5; and the segments acknowledged of a, as Jain's index of its flows' rates, between 60 and 90 s, (its flow x) is at least 0.97",
            ),
            (
                "stream.real_time_index(a, loss=1e-3) is flat within 2.5%",
                "no two values along the axis of the real time index of the stream of a (where loss is 1e-3) differ by more than 2.5 %",
            ),
            (
                "dropped_by_queue(a, link=x) peaks at 10",
                "the number of packets that the queue drops of a (on the link x) is largest where the axis is at 10",
            ),
        ];
        for (check, sentence) in cases {
            assert_eq!(words(check), sentence);
        }
    }

    #[test]
    fn every_built_in_check_has_words() {
        for study in crate::load("all").unwrap() {
            for (name, claim) in &study.claim {
                if let Some(text) = claim.ground.check_text() {
                    let sentence = words(text);
                    assert!(sentence.len() > 10 && !sentence.contains("  "), "{name}: {sentence}");
                }
            }
        }
    }
}
