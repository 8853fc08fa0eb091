//! Other spellings of units, with their meanings. Only exact equivalents are suggested: the nearest spelling may differ by a
//! factor.

/// A spelling, the accepted unit, and the factor between them.
type Habit = (&'static str, &'static str, f64);

const HABITS: &[Habit] = &[
    ("bps", "bit/s", 1.0),
    ("b/s", "bit/s", 1.0),
    ("bits/s", "bit/s", 1.0),
    ("bit", "bit/s", 1.0),
    ("kbps", "kbit/s", 1.0),
    ("Kbps", "kbit/s", 1.0),
    ("kb/s", "kbit/s", 1.0),
    ("kbit", "kbit/s", 1.0),
    ("kbits/s", "kbit/s", 1.0),
    ("Kbit/s", "kbit/s", 1.0),
    ("Mbps", "Mbit/s", 1.0),
    ("mbps", "Mbit/s", 1.0),
    ("Mb/s", "Mbit/s", 1.0),
    ("Mbit", "Mbit/s", 1.0),
    ("mbit", "Mbit/s", 1.0),
    ("Mbits/s", "Mbit/s", 1.0),
    ("mbit/s", "Mbit/s", 1.0),
    ("Gbps", "Gbit/s", 1.0),
    ("gbps", "Gbit/s", 1.0),
    ("Gb/s", "Gbit/s", 1.0),
    ("Gbit", "Gbit/s", 1.0),
    ("gbit", "Gbit/s", 1.0),
    ("gbit/s", "Gbit/s", 1.0),
    ("Tbit/s", "Gbit/s", 1000.0),
    ("B/s", "bit/s", 8.0),
    ("kB/s", "kbit/s", 8.0),
    ("KB/s", "kbit/s", 8.0),
    ("MB/s", "Mbit/s", 8.0),
    ("MBps", "Mbit/s", 8.0),
    ("GB/s", "Gbit/s", 8.0),
    ("sec", "s", 1.0),
    ("secs", "s", 1.0),
    ("second", "s", 1.0),
    ("seconds", "s", 1.0),
    ("msec", "ms", 1.0),
    ("millisecond", "ms", 1.0),
    ("milliseconds", "ms", 1.0),
    ("usec", "us", 1.0),
    ("µs", "us", 1.0),
    ("μs", "us", 1.0),
    ("nsec", "ns", 1.0),
    ("m", "min", 1.0),
    ("mins", "min", 1.0),
    ("minute", "min", 1.0),
    ("minutes", "min", 1.0),
    ("hr", "h", 1.0),
    ("hour", "h", 1.0),
    ("hours", "h", 1.0),
    ("d", "h", 24.0),
    ("day", "h", 24.0),
    ("days", "h", 24.0),
    ("octets", "bytes", 1.0),
    ("KB", "kB", 1.0),
    ("kilobytes", "kB", 1.0),
    ("megabytes", "MB", 1.0),
    ("gigabytes", "GB", 1.0),
    ("TB", "GB", 1000.0),
    ("kiB", "KiB", 1.0),
    ("kib", "KiB", 1.0),
    ("mib", "MiB", 1.0),
    ("gib", "GiB", 1.0),
    ("seg", "segments", 1.0),
    ("segs", "segments", 1.0),
    ("mss", "segments", 1.0),
    ("p", "packets", 1.0),
    ("pkt", "packets", 1.0),
    ("pkts", "packets", 1.0),
    ("pckts", "packets", 1.0),
    ("°", "deg", 1.0),
    ("degree", "deg", 1.0),
    ("degrees", "deg", 1.0),
    ("m", "km", 1e-3),
    ("kilometres", "km", 1.0),
    ("kilometers", "km", 1.0),
    ("miles", "km", 1.609_344),
    ("db", "dB", 1.0),
    ("Hz", "MHz", 1e-6),
    ("kHz", "MHz", 1e-3),
    ("Ghz", "GHz", 1.0),
    ("Mhz", "MHz", 1.0),
    ("baud", "Bd", 1.0),
    ("kbaud", "kBd", 1.0),
    ("Mbaud", "MBd", 1.0),
    ("Msym/s", "MBd", 1.0),
    ("mm", "mm/h", 1.0),
];

/// Returns `number unit` converted to one of `units`; `None` for an unknown spelling.
pub(super) fn meant<'a>(
    number: f64,
    unit: &str,
    units: impl Iterator<Item = &'a str> + Clone,
) -> Option<String> {
    let ours = |habit: &&Habit| habit.0 == unit && units.clone().any(|name| name == habit.1);
    HABITS.iter().find(ours).map(|(_, name, factor)| format!("{} {name}", number * factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_means_the_same_is_suggested() {
        let rates = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
        let meant = |number, unit| super::meant(number, unit, rates.into_iter());
        assert_eq!(meant(1.0, "MB/s").as_deref(), Some("8 Mbit/s"));
        assert_eq!(meant(10.0, "Mbps").as_deref(), Some("10 Mbit/s"));
        for unit in ["MB", "ms", "mb", "e300 Gbit/s", "x", "mB/s"] {
            assert_eq!(meant(1.0, unit), None, "{unit}");
        }
    }

    #[test]
    fn no_habit_is_a_unit_of_ours_of_the_same_kind() {
        for (index, (habit, unit, _)) in HABITS.iter().enumerate() {
            assert_ne!(habit, unit);
            let twice = HABITS[..index].iter().any(|other| (other.0, other.1) == (*habit, *unit));
            assert!(!twice, "{habit}");
        }
    }
}
