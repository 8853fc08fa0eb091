//! Verdicts from results.

use std::fmt;

use bentpipe_lab::Summary;
use serde::{Serialize, Serializer};

use crate::check::{Check, Clause, Expr, Order, Relation, Several};
use crate::measure::Measured;
use crate::results::{At, PerSeed, Results, known};
use crate::units::Units;

/// Verdict on a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The claim holds at every place with 95 % confidence.
    Holds,
    /// The runs do not decide: the 95 % confidence interval contains the bound.
    Tied,
    /// The claim is false with 95 % confidence.
    Fails,
    /// The claim cannot be checked.
    NotTestable,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "HOLDS",
            Self::Tied => "TIED",
            Self::Fails => "FAILS",
            Self::NotTestable => "NOT-TESTABLE",
        })
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A verdict with the numbers that support it.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// Verdict on the claim.
    pub verdict: Verdict,
    /// Measured values: means with half widths of their 95 % confidence intervals.
    pub measured: String,
}

/// Judges a check under every choice of the open parameters; the default configuration is the first.
pub fn judge(check: &Check<Measured>, results: &Results) -> Vec<Judged> {
    let of_choice = |choice: usize| {
        let judged: Vec<Judged> =
            check.clauses.iter().flat_map(|clause| judge_clause(clause, results, choice)).collect();
        // Marks the parts that do not hold, if there are several.
        let marked = |one: &Judged| match one.verdict {
            Verdict::Holds => one.measured.clone(),
            _ if judged.len() == 1 => one.measured.clone(),
            verdict => format!("{} ({verdict})", one.measured),
        };
        let measured = judged.iter().map(marked).collect::<Vec<_>>().join("; ");
        Judged { verdict: worst(judged.iter().map(|one| one.verdict)), measured }
    };
    (0..results.grid.choices.len()).map(of_choice).collect()
}

impl Verdict {
    /// Rank of a verdict in a conjunction: the highest rank decides.
    fn rank(self) -> u8 {
        match self {
            Self::Holds => 0,
            Self::Tied => 1,
            Self::Fails => 2,
            Self::NotTestable => 3,
        }
    }
}

/// Returns the worst verdict, which is that of the conjunction.
pub fn worst(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    verdicts.max_by_key(|verdict| verdict.rank()).unwrap_or(Verdict::NotTestable)
}

fn judge_clause(clause: &Clause<Measured>, results: &Results, choice: usize) -> Vec<Judged> {
    let wanted = |place: &usize| {
        let Some(filter) = &clause.place else { return true };
        results.grid.places[*place].is_some_and(|position| filter.values.hold(position))
    };
    let places: Vec<usize> = (0..results.grid.places.len()).filter(wanted).collect();
    let along = Along { results, choice, places: &places };
    match &clause.relation {
        Relation::Rises(expr) => vec![along.trend(expr, 1.0)],
        Relation::Falls(expr) => vec![along.trend(expr, -1.0)],
        Relation::Flat(expr, within) => vec![along.flat(expr, *within)],
        Relation::Peaks(expr, at) => vec![along.peak(expr, *at)],
        relation => along.at_each(relation),
    }
}

/// Part of the axis, for one choice.
struct Along<'a> {
    results: &'a Results,
    choice: usize,
    places: &'a [usize],
}

impl Along<'_> {
    fn values(&self, expr: &Expr<Measured>, place: usize) -> PerSeed {
        self.results.evaluate(expr, At { place, choice: self.choice })
    }

    /// Returns `loss = 0.001: `, the label before the values of a place.
    fn label(&self, place: usize) -> String {
        match (&self.results.axis, self.results.grid.places[place]) {
            (Some(axis), Some(position)) if self.places.len() > 1 => {
                format!("{axis} {}: ", written(position))
            }
            _ => String::new(),
        }
    }

    fn at_each(&self, relation: &Relation<Measured>) -> Vec<Judged> {
        if self.places.is_empty() {
            return vec![nothing_there()];
        }
        // A relation independent of the place is judged once.
        let over_axis = self.places.len() > 1 && self.is_constant(relation);
        let places = if over_axis { &self.places[..1] } else { self.places };
        let at = |place: &usize| {
            let mut judged = self.judge_at(relation, *place);
            if !over_axis {
                judged.measured.insert_str(0, &self.label(*place));
            }
            judged
        };
        places.iter().map(at).collect()
    }

    fn is_constant(&self, relation: &Relation<Measured>) -> bool {
        let first = self.places[0];
        let same = |expr: &Expr<Measured>| {
            self.places.iter().all(|place| self.values(expr, *place) == self.values(expr, first))
        };
        relation.sides().all(same)
    }

    fn judge_at(&self, relation: &Relation<Measured>, place: usize) -> Judged {
        match relation {
            Relation::Compare(a, order, b) => self.compare_at(a, *order, b, place),
            Relation::Near(a, b, within) => {
                let (a, b) = (self.values(a, place), self.values(b, place));
                let units = Units::of(relation.sides(), &[&a, &b]);
                let measured = format!("{} ~ {}{}", units.number(&a), units.number(&b), units.name());
                Judged { verdict: near(&a, &b, *within), measured }
            }
            Relation::Within(a, low, high) => {
                let a = self.values(a, place);
                let units = Units::of(relation.sides(), &[&a]);
                let (from, to) = (units.bound(*low), units.bound(*high));
                let measured = format!("{} in {from}..{to}{}", units.number(&a), units.name());
                Judged { verdict: within(&a, *low, *high), measured }
            }
            _ => nothing_there(),
        }
    }

    /// Compares two expressions, of which one may be the largest of several. A value above the largest of each seed is above it
    /// with certainty. Otherwise the pairs are compared one by one and the deciding pair is shown: the largest of noisy values
    /// exceeds each of their means.
    fn compare_at(&self, a: &Expr<Measured>, order: Order, b: &Expr<Measured>, place: usize) -> Judged {
        let (_, all) = self.compare_pair(a, order, b, place);
        if all.verdict == Verdict::Holds {
            return all;
        }
        let (left, right) = match order {
            Order::Above | Order::AtLeast => (a.each_of(Several::Min), b.each_of(Several::Max)),
            Order::Below | Order::AtMost => (a.each_of(Several::Max), b.each_of(Several::Min)),
        };
        let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
        let judged = pairs.map(|(a, b)| self.compare_pair(a, order, b, place));
        let decides = judged.min_by(|(margin, one), (other_margin, other)| {
            other.verdict.rank().cmp(&one.verdict.rank()).then(margin.total_cmp(other_margin))
        });
        decides.map_or_else(nothing_there, |(_, judged)| judged)
    }

    /// Returns the margin of the order of two values, and the text about them.
    fn compare_pair(
        &self,
        a: &Expr<Measured>,
        order: Order,
        b: &Expr<Measured>,
        place: usize,
    ) -> (f64, Judged) {
        let sides = [a, b];
        let (a, b) = (self.values(a, place), self.values(b, place));
        let units = Units::of(sides.into_iter(), &[&a, &b]);
        let measured = format!("{} {order} {}{}", units.number(&a), units.number(&b), units.name());
        (margin(&a, order, &b), Judged { verdict: compare(&a, order, &b), measured })
    }

    /// Returns the values along the axis, each with its remark.
    fn shown_along(
        &self,
        expr: &Expr<Measured>,
        all: &[PerSeed],
        remark: impl Fn(usize) -> &'static str,
    ) -> String {
        let units = Units::of(std::iter::once(expr), &all.iter().collect::<Vec<_>>());
        let one = |(index, (place, values)): (usize, (&usize, &PerSeed))| {
            format!("{}{}{}{}", self.label(*place), units.number(values), units.name(), remark(index))
        };
        self.places.iter().zip(all).enumerate().map(one).collect::<Vec<_>>().join("; ")
    }

    fn along(&self, expr: &Expr<Measured>) -> Vec<PerSeed> {
        self.places.iter().map(|place| self.values(expr, *place)).collect()
    }

    /// Judges a trend: no step may go the wrong way, and the last value must differ from the first, both with 95 % confidence.
    fn trend(&self, expr: &Expr<Measured>, sign: f64) -> Judged {
        let all = self.along(expr);
        let (Some(first), Some(last)) = (all.first(), all.last()) else { return nothing_there() };
        let order = if sign > 0.0 { Order::Above } else { Order::Below };
        let ends = compare(last, order, first);
        let wrong = |at: usize| at > 0 && compare(&all[at], order, &all[at - 1]) == Verdict::Fails;
        let verdict =
            if (0..all.len()).any(wrong) { worst([ends, Verdict::Fails].into_iter()) } else { ends };
        let remark = |at: usize| if wrong(at) { " (goes the other way)" } else { "" };
        Judged { verdict, measured: self.shown_along(expr, &all, remark) }
    }

    /// Tests the equivalence of every pair of places: no difference may exceed `within` times the largest mean.
    fn flat(&self, expr: &Expr<Measured>, within: f64) -> Judged {
        let all = self.along(expr);
        let means: Option<Vec<f64>> = all.iter().map(|values| Summary::of(&known(values)).mean).collect();
        let Some(means) = means.filter(|means| !means.is_empty()) else { return nothing_there() };
        let room = within * means.iter().copied().fold(f64::MIN, f64::max).abs();
        let pairs = all.iter().enumerate().flat_map(|(n, a)| all[n + 1..].iter().map(move |b| (a, b)));
        let verdicts: Vec<Verdict> = pairs.map(|(a, b)| equivalent(difference(a, b), room)).collect();
        let verdict = if verdicts.is_empty() { Verdict::Holds } else { worst(verdicts.into_iter()) };
        Judged { verdict, measured: self.shown_along(expr, &all, |_| "") }
    }

    fn peak(&self, expr: &Expr<Measured>, at: f64) -> Judged {
        let all = self.along(expr);
        let Some(place) =
            self.results.grid.place(at).and_then(|at| self.places.iter().position(|p| *p == at))
        else {
            return nothing_there();
        };
        let verdict_at = |at: usize| match at == place {
            true => Verdict::Holds,
            false => compare(&all[place], Order::Above, &all[at]),
        };
        let verdict = worst((0..all.len()).filter(|at| *at != place).map(verdict_at));
        let remark = |at: usize| match verdict_at(at) {
            Verdict::Fails => " (above the peak)",
            Verdict::Tied => " (perhaps above the peak)",
            _ => "",
        };
        Judged { verdict, measured: self.shown_along(expr, &all, remark) }
    }
}

/// Formats a place of the axis: 5, 0.01, 1e-6.
fn written(position: f64) -> String {
    if position != 0.0 && position.abs() < 0.001 { format!("{position:e}") } else { position.to_string() }
}

fn nothing_there() -> Judged {
    Judged { verdict: Verdict::NotTestable, measured: "nothing was measured there".into() }
}

/// Returns mean and half width of the 95 % interval of the differences per seed; `None` for a single seed.
fn difference(a: &PerSeed, b: &PerSeed) -> Option<(f64, f64)> {
    let pairs = a.iter().zip(b).filter_map(|(a, b)| Some((*a)? - (*b)?));
    let summary = Summary::of(&pairs.collect::<Vec<_>>());
    Some((summary.mean?, summary.ci95.unwrap_or(0.0)))
}

/// Returns the relative margin of the order, minus the interval.
fn margin(a: &PerSeed, order: Order, b: &PerSeed) -> f64 {
    let Some((mean, half)) = difference(a, b) else { return f64::MIN };
    let scale = Summary::of(&known(b)).mean.unwrap_or(0.0).abs().max(f64::MIN_POSITIVE);
    (order.sign() * mean - half) / scale
}

/// Compares two values: the whole interval must lie on the right side of zero. Zero itself satisfies only "at least" and "at
/// most".
fn compare(a: &PerSeed, order: Order, b: &PerSeed) -> Verdict {
    let Some((mean, half)) = difference(a, b) else { return Verdict::NotTestable };
    let mean = order.sign() * mean;
    let holds = match order {
        Order::Above | Order::Below => mean - half > 0.0,
        Order::AtLeast | Order::AtMost => mean - half >= 0.0,
    };
    match holds {
        true => Verdict::Holds,
        false if mean + half >= 0.0 => Verdict::Tied,
        false => Verdict::Fails,
    }
}

/// Tests equivalence: the whole interval of the difference must lie within the margin.
fn equivalent(difference: Option<(f64, f64)>, margin: f64) -> Verdict {
    let Some((mean, half)) = difference else { return Verdict::NotTestable };
    match mean.abs() {
        distance if distance + half <= margin => Verdict::Holds,
        distance if distance - half <= margin => Verdict::Tied,
        _ => Verdict::Fails,
    }
}

fn near(a: &PerSeed, b: &PerSeed, part: f64) -> Verdict {
    equivalent(difference(a, b), part * Summary::of(&known(b)).mean.unwrap_or(0.0).abs())
}

/// Tests that the whole interval lies between the bounds.
fn within(a: &PerSeed, low: f64, high: f64) -> Verdict {
    let summary = Summary::of(&known(a));
    let Some(mean) = summary.mean else { return Verdict::NotTestable };
    let half = summary.ci95.unwrap_or(0.0);
    if mean - half >= low && mean + half <= high {
        Verdict::Holds
    } else if mean + half >= low && mean - half <= high {
        Verdict::Tied
    } else {
        Verdict::Fails
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn judged(check: &str) -> Vec<Judged> {
        judge(&example::check(check), &example::results())
    }

    /// Returns the verdict of the default configuration.
    fn verdict(check: &str) -> Verdict {
        judged(check)[0].verdict
    }

    /// Example: `a` is 10, 20, 30 at x = 1, 2, 3, and `b` is 5 more, each ± 1 over three seeds. With the second choice `b` is 5
    /// less.
    #[test]
    fn orders_are_judged_by_the_interval_of_the_paired_differences() {
        assert_eq!(verdict("at x = 1, 2: v(a) < v(c)"), Verdict::Holds);
        assert_eq!(verdict("v(c) < v(a)"), Verdict::Fails);
        assert_eq!(verdict("v(a) > v(noisy)"), Verdict::Tied);
        assert_eq!(verdict("v(a) >= v(a)"), Verdict::Holds);
        assert_eq!(verdict("v(a) > v(a)"), Verdict::Tied);
    }

    /// At x = 1, `noisy` is 10 ± 9.94, and its difference from `a` is 0 ± 7.45.
    #[test]
    fn no_relation_holds_on_its_mean_alone() {
        let noisy = |check: &str| verdict(&format!("at x = 1: v(noisy) {check}"));
        assert_eq!([noisy(">= v(a)"), noisy("+ 8 >= v(a)")], [Verdict::Tied, Verdict::Holds]);
        assert_eq!([noisy("~ v(a) within 70%"), noisy("~ v(a) within 80%")], [Verdict::Tied, Verdict::Holds]);
        assert_eq!(noisy("- 12 ~ v(a) within 20%"), Verdict::Fails);
        assert_eq!(
            [noisy("in 5..15"), noisy("in 0..20"), noisy("in 21..30")],
            [Verdict::Tied, Verdict::Holds, Verdict::Fails]
        );
    }

    /// The product is 103 at x = 1 and 403 at x = 2; their difference is 300 ± 124.
    #[test]
    fn flat_is_a_test_of_equivalence() {
        let flat = |part: &str| verdict(&format!("at x <= 2: v(noisy) * v(a) is flat within {part}"));
        assert_eq!([flat("110%"), flat("70%"), flat("40%")], [Verdict::Holds, Verdict::Tied, Verdict::Fails]);
    }

    /// `b` is 5 above `a` with the default choice and 5 below it with the other.
    #[test]
    fn every_choice_has_a_verdict_and_numbers_of_its_own() {
        let found = judged("at x = 1: v(b) > v(a)");
        assert_eq!([found[0].verdict, found[1].verdict], [Verdict::Holds, Verdict::Fails]);
        assert_eq!(found[0].measured, "15.00 ± 2.48 > 10.00 ± 2.48");
        assert_eq!(found[1].measured, "5.00 ± 2.48 > 10.00 ± 2.48");
    }

    #[test]
    fn trends_peaks_and_numbers() {
        assert_eq!(verdict("v(a) rises"), Verdict::Holds);
        assert_eq!(verdict("v(a) falls"), Verdict::Fails);
        assert_eq!(verdict("v(a) is flat within 70%"), Verdict::Holds);
        assert_eq!(verdict("v(a) is flat within 50%"), Verdict::Fails);
        assert_eq!(verdict("v(a) peaks at 3"), Verdict::Holds);
        assert_eq!(verdict("v(a) peaks at 1"), Verdict::Fails);
        assert_eq!(verdict("at x = 2: v(a) in 17..23"), Verdict::Holds);
        assert_eq!(verdict("at x = 2: v(a) ~ 2 * v(a, x=1) within 20%"), Verdict::Holds);
        assert_eq!(verdict("highest(v(a)) / lowest(v(a)) in 2..4"), Verdict::Holds);
        assert_eq!(verdict("v(a) > w(a)"), Verdict::NotTestable);
        assert_eq!(verdict("at x > 3: v(a) > 0"), Verdict::NotTestable);
    }

    #[test]
    fn the_part_that_does_not_hold_is_marked() {
        let measured = |check: &str| judged(check)[0].measured.clone();
        assert_eq!(
            measured("at x = 1: v(a) > 0 and at x = 1: v(a) > v(c)"),
            "10.00 ± 2.48 > 0; 10.00 ± 2.48 > 11.00 ± 2.48 (FAILS)"
        );
        assert_eq!(measured("at x = 1: v(a) > v(c)"), "10.00 ± 2.48 > 11.00 ± 2.48", "there is only one");
        assert!(measured("v(a) falls").contains("x 2: 20.00 ± 2.48 (goes the other way); x 3"));
        assert!(measured("v(a) peaks at 2").ends_with("x 3: 30.00 ± 2.48 (above the peak)"));
    }

    /// Both noisy quantities have the mean of `a`, but in each seed one of them is above it.
    #[test]
    fn the_largest_of_several_is_compared_one_by_one() {
        assert_eq!(verdict("at x = 1: 20 >= max(v(noisy), 2 * v(a) - v(noisy))"), Verdict::Holds);
        assert_eq!(verdict("at x = 1: 0.5 * min(v(noisy), 2 * v(a) - v(noisy)) >= 0"), Verdict::Holds);
        assert_eq!(verdict("min(v(c), v(c) + 1) > max(v(a), v(a) - 1)"), Verdict::Holds);
        assert_eq!(verdict("v(a) > max(v(c), v(a) - 1)"), Verdict::Fails);
        assert_eq!(verdict("max(v(a), v(c)) < v(c) + 1"), Verdict::Holds);
        let found = judged("at x = 2: 11 < 2 * min(v(c), v(a))");
        assert_eq!(found[0].measured.split(" ± ").next(), Some("11.00 < 40.00"), "the pair that decides");
    }

    #[test]
    fn places_are_named_as_a_person_writes_them() {
        let all = [0.0, 1e-6, 0.001, 0.005, 2.0, 10.4].map(written);
        assert_eq!(all, ["0", "1e-6", "0.001", "0.005", "2", "10.4"]);
    }

    #[test]
    fn an_expression_is_evaluated_seed_by_seed() {
        let results = example::results();
        let at = At { place: 1, choice: 0 };
        let check = example::check("v(a) - v(a, x=1) + 1 > 0");
        let Relation::Compare(expr, ..) = &check.clauses[0].relation else { panic!() };
        let values = results.evaluate(expr, at);
        assert_eq!(values, [Some(11.0); 3]);
    }
}
