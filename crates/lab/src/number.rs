//! Numbers as people read them.

use crate::stats::Summary;

/// The unit of rates in tables and reports, and how many bits per second it is: one for all, so that numbers can be compared.
pub const RATE_UNIT: (f64, &str) = (1e6, "Mbit/s");

/// A rate of a link scaled to a unit that suits it: divisor and unit.
pub fn rate_unit(largest: f64) -> (f64, &'static str) {
    match largest {
        x if x >= 1e9 => (1e9, "Gbit/s"),
        x if x >= 1e6 => (1e6, "Mbit/s"),
        x if x >= 1e3 => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    }
}

/// A number with three or four digits that matter.
pub fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        x if x >= 1000.0 => format!("{value:.0}"),
        x if x >= 100.0 => format!("{value:.1}"),
        x if x >= 1.0 => format!("{value:.2}"),
        x if x >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

/// `7.91 ± 0.05`, both with the same decimals; without the interval if there is none or every value is the same.
pub fn plus_minus(summary: Summary, divisor: f64) -> String {
    let varies = summary.min != summary.max;
    let summary = Summary { ci95: summary.ci95.filter(|_| varies), ..summary };
    match (summary.mean.map(|mean| mean / divisor), summary.ci95.map(|ci| ci / divisor)) {
        (Some(mean), Some(ci)) if mean.abs() >= 0.001 && mean.abs() < 1e6 => {
            let decimals = match mean.abs() {
                x if x >= 100.0 => 1,
                x if x >= 1.0 => 2,
                _ => 4,
            };
            format!("{mean:.decimals$} ± {ci:.decimals$}")
        }
        (Some(mean), Some(ci)) => format!("{} ± {}", short(mean), short(ci)),
        (Some(mean), None) => short(mean),
        _ => "–".into(),
    }
}

/// A p-value with the digits that matter.
pub(crate) fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".into() } else { format!("{p:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_needs_values_that_differ() {
        let shown = |values: &[f64]| plus_minus(Summary::of(values), 1.0);
        assert_eq!([shown(&[]), shown(&[8.4]), shown(&[8.4; 5])], ["–", "8.40", "8.40"]);
        assert_eq!(shown(&[8.0, 8.0, 8.3]), "8.10 ± 0.43");
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 1234.5, 123.45, 7.123, 0.01234, 1e-5].map(short);
        assert_eq!(shown, ["0", "1234", "123.5", "7.12", "0.0123", "1.00e-5"]);
    }
}
