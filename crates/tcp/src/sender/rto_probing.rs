//! RTO probes: before a timeout is believed, one segment tests if data or only ACKs were lost (acknowledgement error
//! notification, TCP-STAR section 3.3). The algorithm decides on them, or the engine for an algorithm without own probes.

use bentpipe_cc::{Path, ProbeKind, Timeout};

use super::findings::Findings;
use super::rto_probe::{Origin, RtoProbe, TimeoutResponse};
use super::scoreboard::Mark;
use super::{Abilities, Sender};
use crate::SpuriousTimeout;
use crate::context::Context;

impl Sender {
    /// Decides the response to a timeout, or to an answer of an RTO probe without progress.
    pub(super) fn react_to_timeout(&mut self, cx: &Context, answered: bool, path: &Path) -> TimeoutResponse {
        let rto_probe = self.rto_probe.take();
        let by_engine = rto_probe.is_some_and(|rto_probe| rto_probe.is_of_engine());
        if by_engine && answered {
            // The expiry that caused the probe now counts as real.
            self.silence.rto_probes -= 1;
        } else if let Some(kind) = self.engine_rto_probe(cx) {
            self.silence.rto_probes += 1;
            self.remember_probe(kind, Origin::Engine);
            return TimeoutResponse::Probe(kind);
        }
        let timeout = Timeout {
            consecutive: self.silence.believed(),
            outstanding: self.board.outstanding(),
            answered: answered && !by_engine,
        };
        let probes = self.algorithm.has(Abilities::TIMEOUT_PROBES);
        match probes.then(|| self.algorithm.cc.timeout_probe(&timeout, path)).flatten() {
            Some(kind) => {
                self.remember_probe(kind, Origin::Algorithm);
                TimeoutResponse::Probe(kind)
            }
            None => TimeoutResponse::Retransmit(self.algorithm.cc.on_rto(&timeout, path)),
        }
    }

    /// Returns the RTO probe of the engine as configured, unless a timeout was believed or enough probes are unanswered.
    fn engine_rto_probe(&self, cx: &Context) -> Option<ProbeKind> {
        let SpuriousTimeout::Aen { probe, max_probes, .. } = cx.config.sender.spurious_timeout else {
            return None;
        };
        let may = !self.algorithm.has(Abilities::TIMEOUT_PROBES)
            && self.silence.rto_probes < max_probes
            && self.silence.timeouts == self.silence.rto_probes + 1;
        may.then(|| probe.kind())
    }

    fn remember_probe(&mut self, kind: ProbeKind, origin: Origin) {
        let newest = self.board.back_index().and_then(|index| self.board.get(index));
        let newest_sacked = newest.is_some_and(|record| record.has(Mark::SACKED));
        self.rto_probe = Some(RtoProbe::new(origin, kind, self.board.outstanding(), newest_sacked));
    }

    /// Sends the RTO probe out of order.
    pub(super) fn send_rto_probe(&mut self, kind: ProbeKind) {
        match kind {
            ProbeKind::AckPath => self.extra.ask = true,
            ProbeKind::Newest => self.extra.again = self.board.back_index(),
            ProbeKind::Dummy | ProbeKind::Outstanding(_) | ProbeKind::Hole => {
                self.extra.again = Some(self.board.front_index());
            }
        }
    }

    /// Handles an ACK while an RTO probe is outstanding. Only its acknowledgement counts, not the peer's data and window.
    #[cold]
    pub(super) fn on_rto_probe_answer(&mut self, cx: &mut Context, rto_probe: RtoProbe, findings: &Findings) {
        if findings.advanced {
            self.rto_probe = None;
            self.rtt.reset_back_off();
            self.rtt.widen(self.rtt.srtt, &cx.config.sender.rto);
            // The wait for the answer does not count as idle time.
            self.last_sent = cx.now;
            if rto_probe.is_of_engine() {
                self.resume(cx, rto_probe, findings);
            }
        } else if self.is_answer(rto_probe, findings) {
            self.retransmission_timeout(cx, true);
        }
    }

    /// True if an ACK without progress answers the probe; otherwise it left the peer before the probe arrived.
    fn is_answer(&self, rto_probe: RtoProbe, findings: &Findings) -> bool {
        if !rto_probe.shows_in_sack() || !self.recovery.uses_sack() {
            return findings.duplicate || findings.progress.sacked > 0;
        }
        let newest = self.board.back_index().and_then(|index| self.board.get(index));
        newest.is_some_and(|record| record.has(Mark::SACKED))
    }

    /// Handles an ACK with progress: the data had arrived, and only ACKs were lost or late. A probe that was the only outstanding
    /// segment may have repaired a loss, unless the peer reports it as a duplicate.
    fn resume(&mut self, cx: &Context, rto_probe: RtoProbe, findings: &Findings) {
        if rto_probe.may_repair_all() && !findings.dsack {
            let path = self.path(cx.now);
            let timeout = Timeout { consecutive: 1, outstanding: 1, answered: false };
            // Nothing is left to retransmit.
            self.algorithm.cc.on_rto(&timeout, &path);
        } else if matches!(cx.config.sender.spurious_timeout, SpuriousTimeout::Aen { paced: true, .. }) {
            // Pacing lasts until the first segment sent from now on is acknowledged.
            self.spaced_until = self.nxt + 1;
        }
    }
}
