use bentpipe_base::Instant;

use super::backlog::Backlog;
use super::codel::CoDel;
use super::drop_front::DropFront;
use super::dual_pi2::DualPi2;
use super::fq_codel::FqCoDel;
use super::pie::Pie;
use super::priority::Priority;
use super::push_out::PushOut;
use crate::ledger::{Ledger, Verdict};
use crate::packet::Packet;

/// Queue that decides when the transmitter becomes free, and holds its packets until then.
#[derive(Clone, Debug)]
pub(crate) enum Held<P> {
    PushOut(PushOut<P>),
    DropFront(DropFront<P>),
    Priority(Priority<P>),
    CoDel(CoDel<P>),
    FqCoDel(FqCoDel<P>),
    Pie(Pie<P>),
    DualPi2(DualPi2<P>),
}

impl<P: Packet> Held<P> {
    /// Offers a packet; it or others that make room for it may be dropped into the ledger.
    pub fn enqueue(&mut self, now: Instant, packet: P, ledger: &mut Ledger<P>) -> Verdict {
        match self {
            Self::PushOut(queue) => queue.enqueue(now, packet, ledger),
            Self::DropFront(queue) => queue.enqueue(now, packet, ledger),
            Self::Priority(queue) => queue.enqueue(now, packet, ledger),
            Self::CoDel(queue) => queue.enqueue(now, packet, ledger),
            Self::FqCoDel(queue) => queue.enqueue(now, packet, ledger),
            Self::Pie(queue) => queue.enqueue(now, packet, ledger),
            Self::DualPi2(queue) => queue.enqueue(now, packet, ledger),
        }
    }

    /// Returns the packet whose transmission starts at `now`; `None` only if the queue is
    /// empty.
    pub fn dequeue(&mut self, now: Instant, ledger: &mut Ledger<P>) -> Option<P> {
        match self {
            Self::PushOut(queue) => queue.dequeue(),
            Self::DropFront(queue) => queue.dequeue(),
            Self::Priority(queue) => queue.dequeue(),
            Self::CoDel(queue) => queue.dequeue(now, ledger),
            Self::FqCoDel(queue) => queue.dequeue(now, ledger),
            Self::Pie(queue) => queue.dequeue(now),
            Self::DualPi2(queue) => queue.dequeue(now, ledger),
        }
    }

    pub fn backlog(&self) -> Backlog {
        match self {
            Self::PushOut(queue) => queue.backlog(),
            Self::DropFront(queue) => queue.backlog(),
            Self::Priority(queue) => queue.backlog(),
            Self::CoDel(queue) => queue.backlog(),
            Self::FqCoDel(queue) => queue.backlog(),
            Self::Pie(queue) => queue.backlog(),
            Self::DualPi2(queue) => queue.backlog(),
        }
    }
}
