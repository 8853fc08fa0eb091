//! TCP-Peach+: probes are NIL segments, copies of unacknowledged data, which also repair losses.
//!
//! I. F. Akyildiz, X. Zhang, J. Fang, "TCP-Peach+: Enhancement of TCP-Peach for Satellite IP Networks", IEEE Communications
//! Letters 6(7), 2002.
//!
//! | TCP-Peach, TCP-Swift | here                                | unit     |
//! |----------------------|-------------------------------------|----------|
//! | `cwnd`               | `Windows::cwnd` of the prober       | segments |
//! | `rwnd`               | [`Path::receive_window`]            | segments |
//! | τ                    | `Train::tau`                        | time     |
//! | `adsn`, `aosn`       | `Recovery::allowed` of the prober   | probes   |
//! | `wdsn`               | `ignored` of the prober             | replies  |
//! | `pipe`               | [`Path::in_flight`], one more in [`Form::Listing`] | segments |
//! | `apsn`, `nss`, `maxburst` | what the engine sends; its `max_burst` | segments |
//! | `HighACK`            | [`Path::snd_una`]                   | bytes    |
//!
//! `parts/prober.rs` implements Jump Start and Quick Recovery; this file selects the segments that become NIL segments. Only
//! the abstract was available: `papers/peach-plus.md` lists the reconstructed parts and their sources.

use alloc::boxed::Box;

use bentpipe_base::Rng;
use serde::{Deserialize, Serialize};

use crate::parts::prober::{Inquirer, Law, Terms, Words};
pub use crate::parts::{mode::Mode, prober::Form};
use crate::{CongestionControl, Entry, Family, Path, ProbeKind, SENDER_ONLY, Start};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "peach-plus",
    title: "Jump Start and Quick Recovery: low-priority NIL segments ask for spare capacity, and repair",
    paper: "Akyildiz, Zhang, Fang, IEEE Communications Letters 6(7)",
    year: 2002,
    needs_receiver: true,
    needs_routers: true,
    family: Family::Probes,
    advice: "As TCP-Peach, with probes that also repair losses: much more goodput at high error rates, and as fair.",
    ..SENDER_ONLY
};

/// Parameters of TCP-Peach+.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Literal paper or safe variant. The safe variant counts replies only in the episode of their probes, and bounds the
    /// probes. The flight size bounds its window at a loss.
    pub mode: Mode,
    /// Quantity that the window is compared with in Quick Recovery.
    pub form: Form,
    /// Outstanding segment that becomes a NIL segment.
    pub nil_order: NilOrder,
    /// Maximum number of probes per Jump Start and per recovery, whatever the receive window.
    pub max_probes: u32,
    /// Count the duplicates that an unmodified receiver reports (RFC 2883) as replies.
    pub dsack_replies: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::Paper,
            form: Form::Listing,
            nil_order: NilOrder::Random,
            max_probes: 1024,
            dsack_replies: true,
        }
    }
}

/// Outstanding segment that becomes a NIL segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NilOrder {
    /// A random one, with equal probability.
    Random,
    /// The oldest segment missing by SACK: only such copies always repair a loss.
    HolesFirst,
    /// The oldest first. In an episode all are copied once before any is copied again.
    LowestFirst,
}

impl Config {
    /// A TCP-Peach+ sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(Inquirer::new(PeachPlus::new(*self, start.seed), start.initial_ssthresh))
    }
}

/// Peach+'s additions to a prober.
#[derive(Clone, Debug)]
struct PeachPlus {
    config: Config,
    rng: Rng,
    /// Segments copied in this episode, for [`NilOrder::LowestFirst`].
    copied: u32,
}

impl PeachPlus {
    fn new(config: Config, seed: u64) -> Self {
        Self { config, rng: Rng::stream(seed, "peach-plus"), copied: 0 }
    }
}

impl Law for PeachPlus {
    fn words(&self) -> Words {
        Words { start: "jump-start", recovery: "quick-recovery" }
    }

    fn terms(&self) -> Terms {
        let Config { mode, form, max_probes, dsack_replies, .. } = self.config;
        Terms { mode, form, max_probes, dsack_replies }
    }

    fn pick(&mut self, path: &Path) -> ProbeKind {
        match self.config.nil_order {
            NilOrder::Random => ProbeKind::Outstanding(self.rng.below(u64::from(path.outstanding)) as u32),
            NilOrder::HolesFirst => ProbeKind::Hole,
            NilOrder::LowestFirst => {
                let nth = self.copied;
                self.copied = self.copied.wrapping_add(1);
                ProbeKind::Outstanding(nth)
            }
        }
    }

    /// Twice the number of ignored replies, as in TCP-Peach: the window never exceeds the one before the loss.
    fn allowance(&self, cwnd0: u32) -> u32 {
        2 * (cwnd0 / 2)
    }

    fn loses(&mut self, _cwnd0: f64) {
        self.copied = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::prober::episode::{self, Outcome};
    use crate::{Ack, Phase, fixture};

    fn recovery(config: Config, each: usize) -> Outcome {
        episode::recovery(&mut episode::avoiding(PeachPlus::new(config, 1), 30.0), each)
    }

    #[test]
    fn jump_start_opens_the_window_in_two_round_trips() {
        let mut prober = Inquirer::new(PeachPlus::new(Config::default(), 1), f64::INFINITY);
        let probes = episode::train(&mut prober, &fixture::path());
        assert_eq!((probes.len(), prober.window()), (63, 1.0));
        prober.on_ack(&fixture::ack(1), &fixture::path_at(0.55));
        for (_, probe) in probes {
            assert_eq!(probe.kind, ProbeKind::Outstanding(0), "only one segment is outstanding");
            episode::reply(&mut prober, probe, Phase::Open);
        }
        assert_eq!(prober.window(), 64.0);
    }

    /// Four of 30 allowed NIL segments are not sent, so an error restores a window of 26.
    #[test]
    fn quick_recovery_after_an_error() {
        let outcome = recovery(Config::default(), 1);
        assert_eq!((outcome.probes, outcome.new, outcome.left, outcome.after_replies), (26, 13, 4, 26.0));
        assert!(outcome.after_data < 27.0, "no window expanding period");
    }

    #[test]
    fn quick_recovery_with_the_pipe_of_rfc_6675() {
        let outcome = recovery(Config { form: Form::Pipe, ..Config::default() }, 1);
        assert_eq!((outcome.probes, outcome.new, outcome.after_replies), (24, 14, 24.0));
    }

    #[test]
    fn quick_recovery_after_congestion() {
        assert_eq!(recovery(Config::default(), 2).after_replies, 15.0);
    }

    /// Two losses in a window halve it once, and NIL segments continue until both are repaired.
    #[test]
    fn a_partial_ack_stays_in_recovery() {
        let mut prober = episode::avoiding(PeachPlus::new(Config::default(), 1), 30.0);
        let path = Path { outstanding: 20, ..fixture::path() };
        prober.on_loss(&fixture::loss(30), &path);
        prober.on_ack(&Ack { phase: Phase::Recovery, ..fixture::ack(10) }, &path);
        assert_eq!((prober.window(), prober.snapshot().phase), (15.0, "quick-recovery"));
        assert_eq!(episode::drain(&mut prober, 0, &path).len(), 2);
    }

    #[test]
    fn an_odd_window_keeps_its_pairs_whole() {
        assert_eq!(PeachPlus::new(Config::default(), 1).allowance(31), 30);
    }

    #[test]
    fn orders() {
        let path = Path { outstanding: 4, ..fixture::path() };
        let mut lowest = PeachPlus::new(Config { nil_order: NilOrder::LowestFirst, ..Config::default() }, 1);
        assert_eq!([lowest.pick(&path), lowest.pick(&path)], [0, 1].map(ProbeKind::Outstanding));
        lowest.loses(4.0);
        assert_eq!(lowest.pick(&path), ProbeKind::Outstanding(0));
        let mut holes = PeachPlus::new(Config { nil_order: NilOrder::HolesFirst, ..Config::default() }, 1);
        assert_eq!(holes.pick(&path), ProbeKind::Hole);
    }
}
