//! Status of a running emulation.

use std::io::{self, IsTerminal, Write};

use bentpipe_emu::{LinkState, Snapshot};
use bentpipe_net::LinkStats;

use crate::args::StatusPlace;

/// Shows the status on the terminal of standard error.
#[derive(Debug)]
pub struct Status {
    place: StatusPlace,
    /// Time and delivered bytes of the bottleneck, up and down, when the status was last shown.
    last: (f64, [u64; 2]),
}

impl Status {
    /// Returns a status that shows nothing without a terminal.
    pub fn new(wanted: StatusPlace, quiet: bool) -> Self {
        let place = match wanted {
            _ if quiet || !io::stderr().is_terminal() => StatusPlace::Off,
            // If the command writes to the same terminal, a status line would disturb it.
            StatusPlace::Auto if io::stdout().is_terminal() => StatusPlace::Title,
            StatusPlace::Auto => StatusPlace::Line,
            chosen => chosen,
        };
        Self { place, last: (0.0, [0, 0]) }
    }

    /// Shows the state.
    pub fn show(&mut self, snapshot: &Snapshot) {
        let ((Some(up), Some(down)), true) =
            ((bottleneck(&snapshot.up), bottleneck(&snapshot.down)), snapshot.at_s > self.last.0)
        else {
            return;
        };
        let (before, bytes) = self.last;
        let passed = [up.stats.delivered_bytes, down.stats.delivered_bytes];
        let rate = |n: usize| 8.0 * (passed[n] - bytes[n]) as f64 / (snapshot.at_s - before);
        let text = format!("down {}  |  up {}", describe(down, rate(1)), describe(up, rate(0)));
        self.last = (snapshot.at_s, passed);
        match self.place {
            StatusPlace::Line => write(&format!("\r{text}\x1b[K")),
            StatusPlace::Title => write(&format!("\x1b]2;{text}\x07")),
            StatusPlace::Auto | StatusPlace::Off => {}
        }
    }

    /// Removes the status.
    pub fn clear(self) {
        match self.place {
            StatusPlace::Line => write("\r\x1b[K"),
            StatusPlace::Title => write("\x1b]2;\x07"),
            StatusPlace::Auto | StatusPlace::Off => {}
        }
    }
}

/// A closed terminal needs no status.
fn write(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Returns the slowest link.
fn bottleneck(links: &[LinkState]) -> Option<&LinkState> {
    links.iter().min_by_key(|link| link.rate_bps)
}

fn describe(link: &LinkState, rate_bps: f64) -> String {
    let (mbps, of) = (rate_bps / 1e6, link.rate_bps as f64 / 1e6);
    let (delay, waiting) = (link.delay_one_way_ms, link.waiting_packets);
    format!("{mbps:.2} of {of:.2} Mbit/s, {delay:.1} ms, {waiting} waiting, {}", drops(&link.stats))
}

/// Returns the drops of a link by cause.
pub fn drops(stats: &LinkStats) -> String {
    let causes = [
        (stats.dropped_by_queue, "queue"),
        (stats.dropped_low_priority, "low priority"),
        (stats.dropped_by_error, "errors"),
        (stats.dropped_by_outage, "outages"),
    ];
    let named: Vec<_> =
        causes.iter().filter(|(n, _)| *n > 0).map(|(n, cause)| format!("{n} {cause}")).collect();
    if named.is_empty() { "none dropped".to_owned() } else { format!("dropped: {}", named.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_named_by_their_cause() {
        assert_eq!(drops(&LinkStats::default()), "none dropped");
        let stats = LinkStats { dropped_by_queue: 3, dropped_by_outage: 1, ..LinkStats::default() };
        assert_eq!(drops(&stats), "dropped: 3 queue, 1 outages");
    }
}
