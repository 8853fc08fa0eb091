//! TCP PBS: the start sends a whole initial window and copies of it. A loss that the link reports as an error does not reduce
//! the window.
//!
//! H. Xu, S. Wu, "A Priority-Based TCP Congestion Control Strategy in Satellite IP Networks", IEEE ICCCAS 2005.
//!
//! | TCP-Peach, TCP-Swift | here                              | unit     |
//! |----------------------|-----------------------------------|----------|
//! | `cwnd`, `ssthresh`   | `Windows` of the prober           | segments |
//! | `rwnd`               | [`Path::receive_window`]          | segments |
//! | IW                   | `Law::first_window`               | segments |
//! | τ                    | `Train::tau`                      | time     |
//! | `adsn`               | `Recovery::allowed` of the prober | probes   |
//! | `wdsn`               | `ignored` of the prober           | replies  |
//! | `swift_wep_recv`     | `expands_until`                   | bytes    |
//! | explicit error notification (EEN) | [`Notice::Spoilt`], `errors` | bytes |
//!
//! `parts/prober.rs` implements Accelerative Start and Expeditious Recovery. This file adds the first window, the order of
//! copies, the growth after start and recovery, and the error notification. `papers/pbs.md` lists the reconstructed parts.

use alloc::boxed::Box;

use bentpipe_base::{Extension, Instant, Notice};
use serde::{Deserialize, Serialize};

use crate::parts::notices::Notices;
use crate::parts::prober::{Inquirer, Law, Terms, Words};
pub use crate::parts::{mode::Mode, prober::Form};
use crate::{
    Ack, CongestionControl, Entry, Family, Path, ProbeKind, ReceiverHalf, SENDER_ONLY, Start, Windows,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "pbs",
    title: "Accelerative Start, Expeditious Recovery, and a link that says which losses are errors",
    paper: "Xu, Wu, IEEE ICCCAS",
    year: 2005,
    needs_receiver: true,
    receiver: Some(RECEIVER),
    needs_routers: true,
    family: Family::Probes,
    advice: "For links that report which losses are errors. Without reports, as here, it probes after every loss. With receive windows of several hundred segments, as here, its flows share evenly only with `max-probes = 64`.",
    ..SENDER_ONLY
};

/// Parameters of TCP PBS.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Literal paper or safe variant. The safe variant counts replies only in the episode of their probes, and bounds the
    /// probes. The flight size bounds its window at a loss.
    pub mode: Mode,
    /// Quantity that the window is compared with in Expeditious Recovery.
    pub form: Form,
    /// Believe the link's notifications of errors.
    pub error_notification: bool,
    /// Maximum number of probes per Accelerative Start and per recovery, whatever the receive window.
    pub max_probes: u32,
    /// Count the duplicates that an unmodified receiver reports (RFC 2883) as replies.
    pub dsack_replies: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::Paper,
            form: Form::Inflation,
            error_notification: true,
            max_probes: 1024,
            dsack_replies: true,
        }
    }
}

impl Config {
    /// A TCP PBS sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(Inquirer::new(Pbs::new(*self), start.initial_ssthresh))
    }
}

/// The receiver half of TCP PBS: repeats the link's notifications on its ACKs.
pub const RECEIVER: ReceiverHalf = ReceiverHalf { number: 4, build: || Box::new(Notices::default()) };

/// Maximum number of notifications in the sender's memory.
const REMEMBERED: usize = 8;

/// PBS's additions to a prober.
#[derive(Clone, Debug)]
struct Pbs {
    config: Config,
    /// Segments copied so far.
    copied: u32,
    /// Time until which an ACK opens the window as in slow start.
    starts_until: Instant,
    /// End of the data sent when the last recovery ended. Before its acknowledgement each ACK opens the window by one segment.
    expands_until: Option<u64>,
    /// Sequence numbers of segments that the link discarded as erroneous, with the time of the notification.
    errors: [(u64, Instant); REMEMBERED],
    next_error: usize,
}

impl Pbs {
    fn new(config: Config) -> Self {
        Self {
            config,
            copied: 0,
            starts_until: Instant::ZERO,
            expands_until: None,
            errors: [(u64::MAX, Instant::ZERO); REMEMBERED],
            next_error: 0,
        }
    }
}

impl Law for Pbs {
    fn words(&self) -> Words {
        Words { start: "accelerative-start", recovery: "expeditious-recovery" }
    }

    fn terms(&self) -> Terms {
        let Config { mode, form, max_probes, dsack_replies, .. } = self.config;
        Terms { mode, form, max_probes, dsack_replies }
    }

    /// Returns each outstanding segment in turn.
    fn pick(&mut self, _path: &Path) -> ProbeKind {
        let nth = self.copied;
        self.copied = self.copied.wrapping_add(1);
        ProbeKind::Outstanding(nth)
    }

    /// Initial window of RFC 3390.
    fn first_window(&self, path: &Path) -> f64 {
        let mss = path.mss.max(1);
        let bytes = mss.saturating_mul(4).min(4380.max(mss.saturating_mul(2)));
        f64::from(bytes / mss)
    }

    fn growth(&mut self, windows: &Windows, ack: &Ack, path: &Path) -> f64 {
        if path.now < self.starts_until {
            return f64::from(ack.counted);
        }
        if let Some(end) = self.expands_until {
            if path.snd_una >= end {
                self.expands_until = None;
            }
            if path.snd_una <= end {
                return 1.0;
            }
        }
        (f64::from(ack.counted) / windows.cwnd).min(1.0)
    }

    /// Starts a train; congestion avoidance begins two round trips later.
    fn starts(&mut self, path: &Path) {
        self.starts_until = path.now + path.srtt * 2;
    }

    fn loses(&mut self, _cwnd0: f64) {
        self.starts_until = Instant::ZERO;
        self.expands_until = None;
    }

    fn recovers(&mut self, path: &Path) {
        self.expands_until = Some(path.snd_nxt);
    }

    /// True if the link reported an error of the oldest segment within the last RTO.
    fn excuses(&self, path: &Path) -> bool {
        self.errors.iter().any(|(seq, heard)| *seq == path.snd_una && path.now.since(*heard) <= path.rto)
    }

    fn feedback(&self) -> u8 {
        if self.config.error_notification { RECEIVER.number } else { 0 }
    }

    fn hears(&mut self, fields: &Extension, path: &Path) -> bool {
        let Extension::Notice(Notice::Spoilt(seq)) = *fields else { return false };
        if self.errors.iter().all(|(known, _)| *known != seq) {
            self.errors[self.next_error] = (seq, path.now);
            self.next_error = (self.next_error + 1) % REMEMBERED;
        }
        seq == path.snd_una
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Feedback;
    use crate::parts::prober::episode::{self, Outcome};
    use crate::{BackOff, Phase, Timeout, fixture};
    use bentpipe_base::Duration;

    fn pbs() -> Pbs {
        Pbs::new(Config::default())
    }

    const TIMEOUT: Timeout = Timeout { consecutive: 1, outstanding: 30, answered: false };

    #[test]
    fn initial_windows() {
        for (mss, window) in [(1000, 4.0), (1460, 3.0), (512, 4.0)] {
            assert_eq!(pbs().first_window(&Path { mss, ..fixture::path() }), window, "{mss}");
        }
    }

    #[test]
    fn accelerative_start_opens_the_window_in_two_round_trips() {
        let mut prober = Inquirer::new(pbs(), f64::INFINITY);
        let probes = episode::train(&mut prober, &fixture::path());
        assert_eq!(probes.len(), 60);
        assert_eq!(probes[0].0.now, Instant::ZERO + Duration::from_nanos(8_593_750));
        let kinds: Vec<_> = probes[..5].iter().map(|(_, probe)| probe.kind).collect();
        assert_eq!(kinds, [0, 1, 2, 3, 4].map(ProbeKind::Outstanding), "modulo the four outstanding");
        for _ in 0..4 {
            prober.on_ack(&fixture::ack(1), &fixture::path_at(0.55));
        }
        assert_eq!(prober.window(), 8.0, "as slow start");
        for (_, probe) in probes {
            episode::reply(&mut prober, probe, Phase::Open);
        }
        assert_eq!(prober.window(), 64.0);
    }

    #[test]
    fn congestion_avoidance_after_two_round_trips() {
        let mut law = pbs();
        law.starts(&fixture::path());
        let windows = Windows { cwnd: 10.0, ssthresh: f64::INFINITY };
        assert_eq!(law.growth(&windows, &fixture::ack(2), &fixture::path_at(1.09)), 2.0);
        assert_eq!(law.growth(&windows, &fixture::ack(2), &fixture::path_at(1.11)), 0.2);
    }

    #[test]
    fn an_unexplained_loss_is_asked_about() {
        let outcome = episode::recovery(&mut episode::avoiding(pbs(), 30.0), 1);
        let expected = Outcome { probes: 30, new: 12, left: 0, after_replies: 30.0, after_data: 42.0 };
        assert_eq!(outcome, expected);
    }

    #[test]
    fn a_notified_error_costs_nothing() {
        let mut prober = episode::avoiding(pbs(), 30.0);
        let path = Path { snd_una: 5000, outstanding: 30, ..fixture::path() };
        prober.on_feedback(&Extension::Notice(Notice::Spoilt(5000)), &path);
        prober.on_loss(&fixture::loss(30), &path);
        assert_eq!(prober.snapshot().phase, "expeditious-recovery");
        prober.on_ack(&Ack { phase: Phase::Recovery, ..fixture::ack(0) }, &path);
        assert_eq!(prober.window(), 33.0, "inflated by the three duplicates");
        assert!(episode::drain(&mut prober, 0, &path).is_empty());
        let full = Ack { phase: Phase::Recovery, ends_episode: true, ..fixture::ack(30) };
        prober.on_ack(&full, &path);
        assert_eq!(prober.window(), 30.0);
    }

    #[test]
    fn a_late_notification_takes_the_cut_back() {
        let mut prober = episode::avoiding(pbs(), 30.0);
        let path = Path { snd_una: 5000, outstanding: 30, ..fixture::path() };
        prober.on_loss(&fixture::loss(30), &path);
        prober.on_feedback(&Extension::Notice(Notice::Spoilt(4000)), &path);
        assert_eq!(prober.window(), 15.0, "another segment");
        prober.on_feedback(&Extension::Notice(Notice::Spoilt(5000)), &path);
        prober.on_ack(&Ack { phase: Phase::Recovery, ..fixture::ack(0) }, &path);
        assert!(prober.window() >= 30.0);
        assert!(episode::drain(&mut prober, 0, &path).is_empty());
    }

    #[test]
    fn a_timeout_starts_over_unless_it_was_an_error() {
        let path = Path { snd_una: 5000, ..fixture::path() };
        let mut prober = episode::avoiding(pbs(), 30.0);
        assert_eq!(prober.on_rto(&TIMEOUT, &path), BackOff::Double);
        assert_eq!((prober.window(), prober.snapshot().phase), (1.0, "accelerative-start"));
        let mut prober = episode::avoiding(pbs(), 30.0);
        prober.on_feedback(&Extension::Notice(Notice::Spoilt(5000)), &path);
        assert_eq!(prober.on_rto(&TIMEOUT, &path), BackOff::Keep);
        assert_eq!(prober.window(), 30.0);
        let later = Path { now: path.now + path.rto * 2, ..path };
        assert_eq!(prober.on_rto(&TIMEOUT, &later), BackOff::Double);
    }
}
