//! Timeouts that are questioned before they are believed (TCP-STAR section 3.3): by an algorithm, or by the engine for it.

use bentpipe_cc::star::AenProbe;
use bentpipe_cc::{Path, ProbeKind, RtoAction, Timeout};

use super::Sender;
use super::ack::Step;
use super::scoreboard::Mark;
use crate::SpuriousTimeout;
use crate::context::Context;

/// Who asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asker {
    Algorithm,
    Engine,
}

/// A question under way: one segment, and nothing else until it is answered or times out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    asker: Asker,
    kind: ProbeKind,
    /// Segments outstanding when it was asked.
    outstanding: u32,
    /// The newest segment had been SACKed before: its arrival is no news.
    newest_sacked: bool,
}

impl Sender {
    /// What is done about a timeout, or about the answer that showed no progress.
    pub(super) fn judge_timeout(&mut self, cx: &Context, answered: bool, path: &Path) -> RtoAction {
        let asked = self.asked.take();
        let by_engine = asked.is_some_and(|asked| asked.asker == Asker::Engine);
        if by_engine && answered {
            // The expiry that asked is believed now.
            self.questions -= 1;
        } else if let Some(kind) = self.engine_asks(cx) {
            self.questions += 1;
            self.ask(kind, Asker::Engine);
            return RtoAction::ProbeFirst(kind);
        }
        let timeout = Timeout {
            consecutive: self.timeouts - self.questions,
            outstanding: self.board.outstanding(),
            answered: answered && !by_engine,
        };
        let action = self.cc.on_rto(&timeout, path);
        if let RtoAction::ProbeFirst(kind) = action {
            self.ask(kind, Asker::Algorithm);
        }
        action
    }

    /// The engine questions a timeout if it is configured to, until one was believed or enough questions went unanswered.
    fn engine_asks(&self, cx: &Context) -> Option<ProbeKind> {
        let SpuriousTimeout::Aen { probe, max_probes, .. } = cx.config.spurious_timeout else { return None };
        let may = !self.wants.questions && self.questions < max_probes && self.timeouts == self.questions + 1;
        may.then_some(match probe {
            AenProbe::Newest => ProbeKind::Newest,
            AenProbe::Oldest => ProbeKind::Outstanding(0),
            AenProbe::Keepalive => ProbeKind::AckPath,
        })
    }

    fn ask(&mut self, kind: ProbeKind, asker: Asker) {
        let newest = self.board.back_index().and_then(|index| self.board.get(index));
        self.asked = Some(Asked {
            asker,
            kind,
            outstanding: self.board.outstanding(),
            newest_sacked: newest.is_some_and(|record| record.has(Mark::SACKED)),
        });
    }

    /// Puts the question on the wire.
    pub(super) fn send_question(&mut self, kind: ProbeKind) {
        match kind {
            ProbeKind::AckPath => self.window_probe = true,
            ProbeKind::Newest => self.question = self.board.back_index(),
            ProbeKind::Dummy | ProbeKind::Outstanding(_) | ProbeKind::Hole => {
                self.question = Some(self.board.front_index());
            }
        }
    }

    /// What an ACK says to the question whether the timeout was one. The peer's data and windows say nothing.
    pub(super) fn take_answer(&mut self, cx: &mut Context, asked: Asked, step: &Step) {
        if step.advanced {
            self.asked = None;
            self.rtt.reset_back_off();
            self.rtt.widen(self.rtt.srtt, &cx.config.rto);
            // To wait for an answer was not to be idle.
            self.last_sent = cx.now;
            if asked.asker == Asker::Engine {
                self.resume(cx, asked, step);
            }
        } else if self.answers(asked, step) {
            self.retransmission_timeout(cx, true);
        }
    }

    /// Whether an ACK that does not advance answers, or left the peer before the question arrived there.
    fn answers(&self, asked: Asked, step: &Step) -> bool {
        if asked.kind != ProbeKind::Newest || !self.recovery.uses_sack() || asked.newest_sacked {
            return step.duplicate || step.progress.sacked > 0;
        }
        let newest = self.board.back_index().and_then(|index| self.board.get(index));
        newest.is_some_and(|record| record.has(Mark::SACKED))
    }

    /// An ACK advanced: the data had arrived, and only ACKs were lost or late. A question that was the only segment outstanding
    /// may have repaired what it asked about, unless it came back as a duplicate.
    fn resume(&mut self, cx: &Context, asked: Asked, step: &Step) {
        if asked.outstanding == 1 && asked.kind != ProbeKind::AckPath && !step.dsack {
            let path = self.path(cx.now);
            let timeout = Timeout { consecutive: 1, outstanding: 1, answered: false };
            // Nothing is left to retransmit.
            self.cc.on_rto(&timeout, &path);
        } else if matches!(cx.config.spurious_timeout, SpuriousTimeout::Aen { paced: true, .. }) {
            // Until the first segment sent from now on is acknowledged.
            self.spaced_until = self.nxt + 1;
        }
    }
}
