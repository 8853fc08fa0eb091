//! Sender whose window law writes fields into its segments and reads the answers of routers or of the receiver (XCP, P-XCP,
//! BA-TCP, TCP Real).

use bentpipe_base::{Extension, Rate};

use crate::{
    Accounting, BackOff, Classic, CongestionControl, Feedback, Path, ReceiverHalf, Requirements, Rule, Sent,
    Spacing, Timeout, Windows, forward,
};

/// A window law that exchanges fields with routers or with the receiver.
pub(crate) trait Exchange: Rule {
    /// Receiver half that the peer must run.
    const RECEIVER: ReceiverHalf;

    /// Returns the fields of a data segment that leaves.
    fn stamp(&mut self, windows: &Windows, sent: &Sent, path: &Path) -> Extension;

    /// Handles the fields of an ACK.
    fn on_fields(&mut self, windows: &mut Windows, fields: &Extension, path: &Path);

    /// Handles a timeout. Default: the reaction of [`Classic`].
    fn on_rto(classic: &mut Classic<Self>, timeout: &Timeout, path: &Path) -> BackOff {
        classic.on_rto(timeout, path)
    }

    /// Pacing rate, if the law sets one.
    fn pacing(&self) -> Option<Rate> {
        None
    }
}

/// The sender of such a law.
#[derive(Clone, Debug)]
pub(crate) struct Exchanging<R> {
    pub classic: Classic<R>,
}

impl<R: Exchange> Exchanging<R> {
    /// Makes a sender with these initial windows.
    pub fn new(windows: Windows, rule: R) -> Self {
        Self { classic: Classic::new(windows, rule) }
    }
}

impl<R: Exchange> CongestionControl for Exchanging<R> {
    forward!(classic: window, on_ack, on_loss, on_undo, on_event, snapshot);

    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff {
        R::on_rto(&mut self.classic, timeout, path)
    }

    fn spacing(&self) -> Spacing {
        Spacing::at(self.classic.rule.pacing())
    }

    fn requirements(&self) -> Requirements {
        Requirements { accounting: Accounting::Own, ..Requirements::default() }
    }

    fn feedback(&mut self) -> Option<&mut dyn Feedback> {
        Some(self)
    }
}

impl<R: Exchange> Feedback for Exchanging<R> {
    fn receiver(&self) -> u8 {
        R::RECEIVER.number
    }

    fn stamp(&mut self, sent: &Sent, path: &Path) -> Extension {
        let Classic { windows, rule, .. } = &mut self.classic;
        rule.stamp(windows, sent, path)
    }

    fn on_feedback(&mut self, fields: &Extension, path: &Path) {
        let Classic { windows, rule, .. } = &mut self.classic;
        rule.on_fields(windows, fields, path);
    }
}
