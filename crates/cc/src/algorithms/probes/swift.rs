//! TCP-Swift: probes are copies of outstanding data. The window grows with every data ACK of the round trip after a recovery.
//!
//! K.-F. Leung, K. L. Yeung, "TCP-Swift: An End-Host Enhancement Scheme for TCP over Satellite IP Networks",
//! IEEE Symposium on Computers and Communications (ISCC), 2004.
//!
//! | paper             | here                                    | unit     |
//! |-------------------|-----------------------------------------|----------|
//! | `cwnd`            | `Windows::cwnd` of the prober           | segments |
//! | `rwnd`            | [`Path::receive_window`]                | segments |
//! | `T` of Fig. 2     | `Train::tau`                            | time     |
//! | `aosn`            | `Recovery::allowed` of the prober       | probes   |
//! | `wdsn`            | `ignored` of the prober                 | replies  |
//! | `pipe`            | [`Path::in_flight`], one more in [`Form::Listing`] | segments |
//! | `apsn`, `nss`, `maxburst` | what the engine sends; its `max_burst` | segments |
//! | `HighACK`         | [`Path::snd_una`]                       | bytes    |
//! | `ndupacks`        | the engine's duplicate threshold        | ACKs     |
//! | `swift_wep_recv`, `tSeq` | `expands_until`                  | bytes    |
//!
//! `parts/prober.rs` implements Speedy Start (section III-A, Fig. 2) and Speedy Recovery (III-B, Fig. 3). This file adds the
//! choice of the copied segment, and the congestion window increment function of the window expanding period. Fig. 3 is corrupted
//! in the available copy: `papers/swift.md` explains its reading.

use alloc::boxed::Box;

use bentpipe_base::Rng;
use serde::{Deserialize, Serialize};

use crate::parts::prober::{Inquirer, Law, Terms, Words};
pub use crate::parts::{mode::Mode, prober::Form};
use crate::{Ack, CongestionControl, Entry, Family, Path, ProbeKind, SENDER_ONLY, Start, Windows};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "swift",
    title: "Speedy Start and Speedy Recovery: low-priority copies of outstanding segments ask, and repair",
    paper: "Leung, Yeung, IEEE ISCC",
    year: 2004,
    needs_receiver: true,
    needs_routers: true,
    in_kernel: true,
    family: Family::Probes,
    advice: "As TCP-Peach, with more goodput at low error rates. Not for small queues shared with NewReno, from which it takes far more than TCP-Peach does.",
    ..SENDER_ONLY
};

/// Parameters of TCP-Swift.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Literal paper or safe variant. The safe variant counts replies only in the episode of their probes, and bounds the probes.
    /// The flight size bounds its window at a loss.
    pub mode: Mode,
    /// Quantity that the window is compared with in Speedy Recovery.
    pub form: Form,
    /// Open the window by one segment per partial ACK: one of three readings of a line in Fig. 3.
    pub partial_increment: bool,
    /// Count data ACKs of the window expanding period only after a reply has proved spare capacity. If false, Swift does not
    /// halve its window even at congestion.
    pub wep_gate: bool,
    /// Limit the window expanding period to the window before the loss.
    pub wep_cap: bool,
    /// Maximum number of probes per Speedy Start and per recovery, whatever the receive window.
    pub max_probes: u32,
    /// Count the duplicates that an unmodified receiver reports (RFC 2883) as replies.
    pub dsack_replies: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::Paper,
            form: Form::Listing,
            partial_increment: false,
            wep_gate: false,
            wep_cap: false,
            max_probes: 1024,
            dsack_replies: true,
        }
    }
}

impl Config {
    /// A TCP-Swift sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(Inquirer::new(Swift::new(*self, start), start.initial_ssthresh))
    }
}

/// Swift's additions to a prober.
#[derive(Clone, Debug)]
struct Swift {
    config: Config,
    /// Initial window of the host.
    initial_window: f64,
    rng: Rng,
    /// End of the data sent when the last recovery ended. Its ACK ends the window expanding period.
    expands_until: Option<u64>,
    /// Window before the last loss.
    cwnd0: f64,
    /// True if a reply opened the window since the last loss.
    spare: bool,
}

impl Swift {
    fn new(config: Config, start: &Start) -> Self {
        let rng = Rng::stream(start.seed, "swift");
        let initial_window = start.initial_window;
        Self { config, initial_window, rng, expands_until: None, cwnd0: f64::INFINITY, spare: false }
    }

    /// True if this ACK belongs to the window expanding period (Fig. 3: `ACK <= swift_wep_recv`).
    fn expands(&mut self, path: &Path) -> bool {
        let Some(end) = self.expands_until else { return false };
        if path.snd_una >= end {
            self.expands_until = None;
        }
        path.snd_una <= end && (self.spare || !self.config.wep_gate)
    }
}

impl Law for Swift {
    fn words(&self) -> Words {
        Words { start: "speedy-start", recovery: "speedy-recovery" }
    }

    fn terms(&self) -> Terms {
        let Config { mode, form, max_probes, dsack_replies, .. } = self.config;
        Terms { mode, form, max_probes, dsack_replies }
    }

    fn first_window(&self, _path: &Path) -> f64 {
        if self.config.form == Form::BesideData { self.initial_window } else { 1.0 }
    }

    /// Returns the segment to copy. With data it is the segment just sent. Section III-A: "chosen randomly from the set of
    /// packets/segments that have been sent but not-yet-acknowledged".
    fn pick(&mut self, path: &Path) -> ProbeKind {
        if self.config.form == Form::BesideData {
            return ProbeKind::Newest;
        }
        ProbeKind::Outstanding(self.rng.below(u64::from(path.outstanding)) as u32)
    }

    /// Congestion window increment function, section III-B: one segment per ACK until `swift_wep_recv` is acknowledged.
    fn growth(&mut self, windows: &Windows, ack: &Ack, path: &Path) -> f64 {
        let avoidance = (f64::from(ack.counted) / windows.cwnd).min(1.0);
        let limit = if self.config.wep_cap { self.cwnd0 - windows.cwnd } else { f64::INFINITY };
        if self.expands(path) { limit.clamp(avoidance, 1.0) } else { avoidance }
    }

    fn partial_growth(&self) -> f64 {
        f64::from(u8::from(self.config.partial_increment))
    }

    fn loses(&mut self, cwnd0: f64) {
        self.expands_until = None;
        self.cwnd0 = cwnd0;
        self.spare = false;
    }

    fn recovers(&mut self, path: &Path) {
        self.expands_until = Some(path.snd_nxt);
    }

    fn opens(&mut self) {
        self.spare = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::prober::episode::{self, Outcome};
    use crate::{Phase, Timeout, fixture};

    fn swift(config: Config) -> Swift {
        Swift::new(config, &fixture::start(10.0))
    }

    fn recovery(config: Config, each: usize) -> Outcome {
        episode::recovery(&mut episode::avoiding(swift(config), 30.0), each)
    }

    /// Fig. 2: a window of one, 63 copies of its segment, and a full window after their replies.
    #[test]
    fn speedy_start_opens_the_window_in_two_round_trips() {
        let mut prober = Inquirer::new(swift(Config::default()), f64::INFINITY);
        let probes = episode::train(&mut prober, &fixture::path());
        let tau = fixture::path().srtt / 64;
        let expected: Vec<_> = (1..64).map(|i| fixture::path().now + tau * i).collect();
        assert_eq!(probes.iter().map(|(path, _)| path.now).collect::<Vec<_>>(), expected);
        assert_eq!(prober.window(), 1.0);
        prober.on_ack(&fixture::ack(1), &fixture::path_at(0.55));
        for (_, probe) in probes {
            episode::reply(&mut prober, probe, Phase::Open);
        }
        assert_eq!(prober.window(), 64.0);
    }

    /// The host's initial window, and copies of the newest segment, if copies can only leave with data.
    #[test]
    fn beside_data_the_start_is_that_of_the_host() {
        let mut swift = swift(Config { form: Form::BesideData, ..Config::default() });
        assert_eq!(
            (swift.first_window(&fixture::path()), swift.pick(&fixture::path())),
            (10.0, ProbeKind::Newest)
        );
    }

    #[test]
    fn an_error_leads_beyond_the_window_before_it() {
        let outcome = recovery(Config::default(), 1);
        let expected = Outcome { probes: 26, new: 13, left: 4, after_replies: 26.0, after_data: 39.0 };
        assert_eq!(outcome, expected);
    }

    #[test]
    fn congestion_costs_next_to_nothing() {
        let outcome = recovery(Config::default(), 2);
        assert_eq!((outcome.after_replies, outcome.after_data), (15.0, 28.0));
    }

    /// Before a reply, a data ACK adds the growth of congestion avoidance: 13 of them less than one segment.
    #[test]
    fn the_gate_waits_for_a_reply_that_proves_capacity() {
        let config = Config { wep_gate: true, ..Config::default() };
        assert_eq!(libm::floor(recovery(config, 2).after_data), 15.0);
        assert_eq!(recovery(config, 1).after_data, 39.0);
    }

    #[test]
    fn the_cap_leads_back_and_not_beyond() {
        let outcome = recovery(Config { wep_cap: true, ..Config::default() }, 1);
        assert_eq!(libm::floor(outcome.after_data), 30.0);
    }

    #[test]
    fn the_window_expanding_period_ends_with_its_data() {
        let mut prober = episode::avoiding(swift(Config::default()), 30.0);
        let window = episode::recovery(&mut prober, 1).after_data;
        prober.on_ack(&fixture::ack(1), &Path { snd_una: 1 << 20, ..fixture::path() });
        assert_eq!(prober.window(), window + 1.0 / window);
    }

    #[test]
    fn a_loss_ends_the_window_expanding_period() {
        let mut swift = swift(Config::default());
        swift.recovers(&Path { snd_nxt: 1000, ..fixture::path() });
        swift.loses(20.0);
        assert!(!swift.expands(&fixture::path()));
    }

    #[test]
    fn a_timeout_ends_the_window_expanding_period() {
        let mut prober = episode::avoiding(swift(Config::default()), 30.0);
        prober.on_loss(&fixture::loss(30), &fixture::path());
        let full = Ack { phase: Phase::Recovery, ends_episode: true, ..fixture::ack(30) };
        prober.on_ack(&full, &Path { snd_nxt: 1 << 20, ..fixture::path() });
        prober.on_rto(&Timeout { consecutive: 1, outstanding: 9, answered: false }, &fixture::path());
        prober.on_ack(&Ack { phase: Phase::Loss, ..fixture::ack(1) }, &fixture::path());
        prober.on_ack(&fixture::ack(1), &fixture::path());
        assert_eq!(prober.window(), 2.5, "congestion avoidance");
    }

    #[test]
    fn a_partial_ack_opens_the_window_where_the_listing_is_read_so() {
        for (partial_increment, window) in [(false, 15.0), (true, 16.0)] {
            let config = Config { partial_increment, form: Form::Pipe, ..Config::default() };
            let mut prober = episode::avoiding(swift(config), 30.0);
            prober.on_loss(&fixture::loss(30), &fixture::path());
            prober.on_ack(&Ack { phase: Phase::Recovery, ..fixture::ack(3) }, &fixture::path());
            assert_eq!(prober.window(), window);
        }
    }

    #[test]
    fn copies_are_drawn_from_all_that_is_outstanding() {
        let mut swift = swift(Config::default());
        let path = Path { outstanding: 8, ..fixture::path() };
        let mut drawn = [0; 8];
        for _ in 0..800 {
            let ProbeKind::Outstanding(nth) = swift.pick(&path) else { panic!("no copy") };
            drawn[nth as usize] += 1;
        }
        assert!(drawn.iter().all(|times| (60..140).contains(times)), "{drawn:?}");
    }
}
