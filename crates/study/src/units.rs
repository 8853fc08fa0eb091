//! Units of the numbers in a relation: data rates use a suitable unit, other numbers none.

use bentpipe_lab::Summary;
use bentpipe_lab::number::{plus_minus, rate_unit, short};

use crate::check::{Expr, Operation, Several, alike};
use crate::measure::Measured;
use crate::results::{PerSeed, known};

/// Unit of all numbers of a relation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Units {
    divisor: f64,
    name: &'static str,
}

impl Units {
    /// Chooses the unit that suits the largest of these values.
    pub fn of<'a>(mut sides: impl Iterator<Item = &'a Expr<Measured>>, values: &[&PerSeed]) -> Self {
        if sides.find_map(power_of_rate) != Some(1) {
            return Self { divisor: 1.0, name: "" };
        }
        let means = values.iter().filter_map(|values| Summary::of(&known(values)).mean);
        let (divisor, name) = rate_unit(means.map(f64::abs).fold(0.0, f64::max));
        Self { divisor, name }
    }

    /// Returns a mean with its interval, or without one if all seeds agree.
    pub fn number(self, values: &PerSeed) -> String {
        let known = known(values);
        match known.first() {
            Some(first) if known.iter().all(|value| alike(*value, *first)) => self.bound(*first),
            _ => plus_minus(Summary::of(&known), self.divisor),
        }
    }

    /// Returns a bound of the check.
    pub fn bound(self, value: f64) -> String {
        short(value / self.divisor)
    }

    /// Returns the unit with a space before it; empty without a unit.
    pub fn name(self) -> String {
        if self.name.is_empty() { String::new() } else { format!(" {}", self.name) }
    }
}

/// Returns the power of bit/s of an expression; `None` for a bare number, which fits any unit.
fn power_of_rate(expr: &Expr<Measured>) -> Option<i32> {
    match expr {
        Expr::Number(_) => None,
        Expr::Quantity(quantity) => Some(i32::from(quantity.measure.is_rate())),
        Expr::Both(a, operation, b) => {
            let (a, b) = (power_of_rate(a), power_of_rate(b));
            match operation {
                Operation::Add | Operation::Subtract => a.or(b),
                _ if a.is_none() && b.is_none() => None,
                Operation::Multiply => Some(a.unwrap_or(0) + b.unwrap_or(0)),
                Operation::Divide => Some(a.unwrap_or(0) - b.unwrap_or(0)),
            }
        }
        Expr::OverAxis(_, inner) => power_of_rate(inner),
        Expr::OfSeveral(Several::Log2, _) => Some(0),
        Expr::OfSeveral(_, all) => all.iter().find_map(power_of_rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Check;
    use crate::example;

    fn shown(check: &str, values: &[f64]) -> String {
        let check: Check<Measured> = example::check(check);
        let values: PerSeed = values.iter().copied().map(Some).collect();
        let units = Units::of(check.clauses[0].relation.sides(), &[&values]);
        units.number(&values) + &units.name()
    }

    #[test]
    fn rates_have_the_unit_that_suits_them() {
        let rates = [
            "goodput_bps(a) > goodput_bps(b)",
            "3 * goodput_bps(a) > 2",
            "1e6 < max(1, goodput_bps(a))",
            "goodput_bps(a) * v(a) / v(b) rises",
            "highest(goodput_bps(a) - 1) in 1..2",
        ];
        for check in rates {
            assert_eq!(shown(check, &[13e6, 15e6]), "14.00 ± 12.71 Mbit/s", "{check}");
        }
        assert_eq!(shown(rates[0], &[450e3]), "450.0 kbit/s");
        assert_eq!(shown(rates[0], &[450e3; 3]), "450.0 kbit/s");
        assert_eq!(shown(rates[0], &[0.0]), "0 bit/s");
    }

    #[test]
    fn what_is_no_rate_stays_bare() {
        for check in
            ["goodput_bps(a) / goodput_bps(b) > 1", "v(a) > 1", "log2(goodput_bps(a)) > 1", "2 * 3 > 1"]
        {
            assert_eq!(shown(check, &[13e6]), "13000000", "{check}");
        }
    }
}
