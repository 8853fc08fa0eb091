//! Detection of a receiver that replies to probes. The handshake agrees on it, or the sender tests it (TCP-Peach section III-A:
//! "can verify ... during the Sudden Start").

use bentpipe_base::Instant;

use crate::parts::mode::Mode;
use crate::{Ack, Path, PeerProbes};

/// Knowledge about the receiver's replies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Peer {
    /// No agreement in the handshake and no test yet.
    Unknown,
    /// Probes are out. `silent` earlier episodes had no result.
    Asked { silent: u32, answers: Answers },
    /// The receiver replies, or reports probes as duplicates (RFC 2883), which the engine treats as replies.
    Replies,
    /// The receiver answered a probe with a plain duplicate ACK. More such ACKs may arrive until `until`.
    Unmodified { until: Instant },
    /// The receiver does not reply: the sender stops probing.
    Plain,
}

/// Time limit for the answers to an episode's probes. After the limit it lies in the infinite future.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Answers {
    from: Instant,
    until: Instant,
}

impl Answers {
    pub const OVER: Self = Self { from: Instant::FAR_FUTURE, until: Instant::FAR_FUTURE };
}

/// Number of episodes without any answer after which the receiver counts as plain.
const SILENT_EPISODES: u32 = 2;

impl Peer {
    /// True if probes are useless with this receiver.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Plain | Self::Unmodified { .. })
    }

    /// True if duplicate ACKs without SACK blocks may answer probes, from a receiver that does not know them.
    pub fn blurs_duplicates(self) -> bool {
        matches!(self, Self::Asked { .. } | Self::Unmodified { .. })
    }

    /// Records a probe. All probes of an episode leave within one round trip, so the last reply arrives within two.
    pub fn ask(&mut self, path: &Path) {
        let silent = match *self {
            Self::Unknown => 0,
            Self::Asked { silent, answers: Answers::OVER } => silent,
            _ => return,
        };
        let from = path.now + path.min_rtt.min(path.srtt);
        let until = path.now + path.srtt * 2 + path.rto / 2;
        *self = Self::Asked { silent, answers: Answers { from, until } };
    }

    /// Returns true for the first duplicate ACK without SACK that answers a probe at a receiver without probe support. The
    /// caller then stops probing.
    pub fn suspect(&mut self, ack: &Ack, path: &Path) -> bool {
        let Self::Asked { answers, .. } = *self else { return false };
        if (ack.acked, ack.sacked) != (0, 0) || path.now < answers.from {
            return false;
        }
        *self = Self::Unmodified { until: path.now + path.srtt + path.rto / 2 };
        true
    }

    /// Handles a reply. Returns false if it proves nothing, because this path treats probes as ordinary traffic.
    pub fn answer(&mut self, mode: Mode, path: &Path) -> bool {
        let counts = !is_ordinary(mode, path);
        if counts {
            *self = Self::Replies;
        }
        counts
    }

    /// Returns true if this path treats probes as ordinary traffic. The caller then stops probing.
    pub fn distrust(&mut self, mode: Mode, path: &Path) -> bool {
        let news = is_ordinary(mode, path) && *self != Self::Plain;
        if news {
            *self = Self::Plain;
        }
        news
    }

    /// Returns the time of the next step of the test.
    pub fn verdict_at(self) -> Instant {
        match self {
            Self::Asked { answers, .. } => answers.until,
            Self::Unmodified { until } => until,
            Self::Unknown | Self::Replies | Self::Plain => Instant::FAR_FUTURE,
        }
    }

    /// Executes the step of the test that is due. Returns true if silence proved the receiver plain; the caller then stops
    /// probing.
    pub fn give_verdict(&mut self) -> bool {
        match *self {
            Self::Asked { silent, .. } if silent + 1 < SILENT_EPISODES => {
                *self = Self::Asked { silent: silent + 1, answers: Answers::OVER };
                false
            }
            Self::Asked { .. } => {
                *self = Self::Plain;
                true
            }
            Self::Unmodified { .. } => {
                *self = Self::Plain;
                false
            }
            Self::Unknown | Self::Replies | Self::Plain => false,
        }
    }
}

/// True in safe mode if the bottleneck does not know low priority. The papers assume that it does.
fn is_ordinary(mode: Mode, path: &Path) -> bool {
    mode == Mode::Safe && path.peer_probes == PeerProbes::Ordinary
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn replies_of_a_path_without_low_priority_end_the_asking_in_safe_mode() {
        let ordinary = Path { peer_probes: PeerProbes::Ordinary, ..fixture::path() };
        let mut peer = Peer::Replies;
        assert!(!peer.distrust(Mode::Safe, &fixture::path()) && !peer.distrust(Mode::Paper, &ordinary));
        assert!(peer.answer(Mode::Paper, &ordinary));
        assert!(peer.distrust(Mode::Safe, &ordinary) && !peer.distrust(Mode::Safe, &ordinary), "once");
        assert!(!peer.answer(Mode::Safe, &ordinary) && peer.is_plain(), "late replies change nothing");
    }

    #[test]
    fn two_silent_episodes_are_a_no() {
        let mut peer = Peer::Unknown;
        for last in [false, true] {
            peer.ask(&fixture::path());
            assert!(peer.blurs_duplicates());
            assert_eq!(peer.verdict_at(), fixture::path_at(2.0 * 0.55 + 0.5).now);
            assert_eq!((peer.give_verdict(), peer.is_plain()), (last, last));
        }
    }

    #[test]
    fn a_plain_duplicate_in_time_is_a_no() {
        let mut peer = Peer::Unknown;
        peer.ask(&fixture::path());
        let duplicate = fixture::ack(0);
        assert!(!peer.suspect(&duplicate, &fixture::path_at(0.5)), "before any answer can be back");
        assert!(peer.suspect(&duplicate, &fixture::path_at(0.55)));
        assert!(peer.is_plain() && peer.blurs_duplicates());
        assert!(!peer.give_verdict());
        assert_eq!(peer, Peer::Plain);
        assert!(!peer.blurs_duplicates());
    }

    #[test]
    fn what_is_settled_is_not_asked_again() {
        for mut peer in [Peer::Replies, Peer::Plain] {
            let before = peer;
            peer.ask(&fixture::path());
            assert!(!peer.suspect(&fixture::ack(0), &fixture::path_at(9.0)) && !peer.give_verdict());
            assert_eq!(peer, before);
        }
    }
}
