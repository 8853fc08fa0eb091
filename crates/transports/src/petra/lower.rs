use std::collections::VecDeque;

use bentpipe_base::{Duration, Flags, Instant};

use super::Layer;
use super::stp_end::StpEnd;
use super::unit::{Content, Pdu, Unit};
use crate::counts::Counts;
use crate::stp;
use crate::tcp_end::TcpEnd;

/// Hop to a neighbour with at most one association at a time. A packet of another association is answered by a
/// reset.
#[derive(Debug)]
pub(super) struct Lower {
    layer: Layer,
    /// True if this agent opens the association and the neighbour listens.
    opens: bool,
    /// Number of the present or last association.
    generation: u64,
    end: Option<End>,
    resets: VecDeque<u64>,
    /// True if the association broke since the last query.
    broke: bool,
    pub counts: Counts,
}

enum End {
    Tcp(Box<TcpEnd<Unit>>),
    Stp(Box<StpEnd>),
}

impl std::fmt::Debug for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tcp(_) => "Tcp",
            Self::Stp(_) => "Stp",
        })
    }
}

macro_rules! each {
    ($self:expr, $end:ident => $call:expr) => {
        match $self {
            End::Tcp($end) => $call,
            End::Stp($end) => $call,
        }
    };
}

impl Lower {
    pub fn new(layer: Layer, opens: bool) -> Self {
        Self {
            layer,
            opens,
            generation: 0,
            end: None,
            resets: VecDeque::new(),
            broke: false,
            counts: Counts::default(),
        }
    }

    pub fn is_open(&self) -> bool {
        self.end.is_some()
    }

    /// Opens an association, and replaces any existing one.
    pub fn open(&mut self, now: Instant) {
        // Larger than any number that this agent may have forgotten.
        self.begin(now, self.generation.max(now.as_nanos()) + 1);
    }

    fn begin(&mut self, now: Instant, generation: u64) {
        self.retire();
        self.generation = generation;
        self.end = Some(match &self.layer {
            Layer::Tcp(config, header) => {
                let connects_at = self.opens.then_some(now);
                End::Tcp(Box::new(TcpEnd::new(config.clone(), *header, generation, connects_at)))
            }
            Layer::Stp { rate, packet_bytes, window } => {
                End::Stp(Box::new(StpEnd::new(self.opens, *rate, *packet_bytes, *window)))
            }
        });
    }

    /// Drops the association without informing the neighbour.
    pub fn retire(&mut self) {
        let Some(end) = self.end.take() else { return };
        self.counts += of_end(&end);
    }

    /// Drops the association and resets it at the neighbour.
    pub fn reset(&mut self) {
        if self.end.is_some() {
            self.resets.push_back(self.generation);
            self.retire();
        }
    }

    /// Drops all state, as after a crash.
    pub fn forget(&mut self) {
        self.retire();
        (self.generation, self.broke) = (0, false);
        self.resets.clear();
    }

    /// Returns true once after the association broke.
    pub fn take_break(&mut self) -> bool {
        std::mem::take(&mut self.broke)
    }

    /// True if it broke and that was not reported yet.
    pub fn has_broken(&self) -> bool {
        self.broke
    }

    fn fail(&mut self) {
        self.retire();
        self.broke = true;
    }

    /// Sends a unit to the neighbour; without an association it is discarded.
    pub fn offer(&mut self, now: Instant, unit: Unit) {
        match &mut self.end {
            Some(End::Tcp(end)) => end.offer(now, unit, unit.bytes()),
            Some(End::Stp(end)) => end.offer(now, unit),
            None => {}
        }
    }

    /// True if there is room for another unit.
    pub fn has_room(&self) -> bool {
        self.end.as_ref().is_some_and(|end| each!(end, end => end.has_room()))
    }

    /// Returns the bytes not acknowledged by the neighbour.
    pub fn backlog_bytes(&self) -> u64 {
        self.end.as_ref().map_or(0, |end| each!(end, end => end.backlog_bytes()))
    }

    pub fn handle(&mut self, now: Instant, pdu: &Pdu) {
        if pdu.content == Content::Reset {
            if pdu.generation == self.generation && self.end.is_some() {
                self.fail();
            }
            return;
        }
        if pdu.generation > self.generation && !self.opens && is_opening(&pdu.content) {
            self.begin(now, pdu.generation);
        }
        match &mut self.end {
            Some(end) if pdu.generation == self.generation => {
                match (end, &pdu.content) {
                    (End::Tcp(end), Content::Tcp { segment, units, .. }) => end.handle(now, segment, units),
                    (End::Stp(end), content) => end.handle(now, content),
                    _ => {}
                }
                self.look();
            }
            _ => self.resets.push_back(pdu.generation),
        }
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(end) = &mut self.end {
            each!(end, end => end.handle_timeout(now));
            self.look();
        }
    }

    /// Checks if the neighbour has stopped answering.
    fn look(&mut self) {
        let failed = match &mut self.end {
            Some(End::Tcp(end)) => {
                while end.poll_acknowledged().is_some() {}
                end.failed
            }
            Some(End::Stp(end)) => end.failed(),
            None => false,
        };
        if failed {
            self.fail();
        }
    }

    pub fn next_timeout(&self) -> Instant {
        self.end.as_ref().map_or(Instant::FAR_FUTURE, |end| each!(end, end => end.next_timeout()))
    }

    /// Returns the next unit from the neighbour.
    pub fn poll_unit(&mut self, now: Instant) -> Option<Unit> {
        match self.end.as_mut()? {
            End::Tcp(end) => end.poll_unit(now),
            End::Stp(end) => end.poll_unit(),
        }
    }

    pub fn poll_transmit(&mut self, now: Instant) -> Option<Pdu> {
        if let Some(generation) = self.resets.pop_front() {
            return Some(Pdu { generation, content: Content::Reset });
        }
        let content = match self.end.as_mut()? {
            End::Tcp(end) => {
                let header = end.header();
                let loaded = end.poll_transmit(now);
                loaded.map(|(segment, units)| Content::Tcp { segment, header, units })
            }
            End::Stp(end) => end.poll_transmit(now),
        };
        self.look();
        Some(Pdu { generation: self.generation, content: content? })
    }

    /// Returns the counters of all its associations.
    pub fn totals(&self) -> Counts {
        let mut totals = self.counts;
        if let Some(end) = &self.end {
            totals += of_end(end);
        }
        totals
    }

    pub fn srtt(&self) -> Option<Duration> {
        match self.end.as_ref()? {
            End::Tcp(end) => end.connection().srtt(),
            End::Stp(end) => end.sender().progress().srtt,
        }
    }
}

fn of_end(end: &End) -> Counts {
    match end {
        End::Tcp(end) => end.counts(),
        End::Stp(end) => {
            let (sender, receiver) = (end.sender().progress(), end.receiver().progress());
            Counts {
                sent_packets: sender.sent_packets,
                repeated_packets: sender.repeated_packets,
                fresh_packets: receiver.fresh_packets,
                timeouts: sender.timeouts,
                control_packets: sender.control_packets + receiver.control_packets,
                control_bytes: sender.control_bytes + receiver.control_bytes,
            }
        }
    }
}

/// True for the first packet of an association.
fn is_opening(content: &Content) -> bool {
    match content {
        Content::Tcp { segment, .. } => {
            segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK)
        }
        Content::Stp { from_opener, pdu, .. } => *from_opener && *pdu == stp::Pdu::Begin,
        Content::Reset => false,
    }
}
