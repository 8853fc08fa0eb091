//! Middleboxes: each packet on the path is passed to them; they forward, change or absorb it.

use bentpipe_base::{EcnField, Segment};
use bentpipe_check::HostEvent;
use bentpipe_middlebox::{Connection, Direction, Emission, Passing, Spoilt, Verdict};
use bentpipe_scenario::{LinkId, Reveals};

use crate::network::hop::Here;
use crate::network::middleboxes::MiddleboxNode;
use crate::observe::monitor::Monitor;
use crate::packet::handle::{Marks, PacketHandle};
use crate::packet::pool::PacketContents;
use crate::scheduler::target::Target;
use crate::simulation::Simulation;

/// Access of a middlebox to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sight {
    /// The middlebox reads and writes the header.
    Open,
    /// The middlebox can match data and acknowledgements, and write nothing.
    Matches,
    /// The middlebox sees only that there is a packet.
    Sealed,
}

impl<M: Monitor> Simulation<M> {
    /// Returns the access of a middlebox to a packet to an end.
    fn sight(&self, id: u32, to: u32) -> Sight {
        let flow = self.hosts.ends[to as usize].flow;
        match self.applications.flows[flow as usize].reveals {
            None => Sight::Open,
            Some(Reveals::Hashes(_) | Reveals::Mapping)
                if self.network.middleboxes.nodes[id as usize].middlebox.works_on_copies() =>
            {
                Sight::Matches
            }
            Some(_) => Sight::Sealed,
        }
    }

    /// Passes a packet to a middlebox; returns true if the packet is forwarded.
    pub(crate) fn serve(&mut self, id: u32, handle: &mut PacketHandle, onward: LinkId) -> bool {
        let port = self.network.port(onward, self.scheduler.now);
        let mut contents = self.network.pool.get(handle.index());
        if handle.has(Marks::CONGESTED) {
            contents.segment.ecn = EcnField::Congested;
        }
        let plain = handle.has(Marks::PLAIN);
        let forward = if plain { handle.has(Marks::DATA) } else { contents.to % 2 == 1 };
        let sight = if plain { Sight::Open } else { self.sight(id, contents.to) };
        let mut seen = match sight {
            Sight::Open | Sight::Matches => contents.segment,
            Sight::Sealed => sealed(&contents.segment),
        };
        let mut passing = Passing {
            connection: (!plain && sight != Sight::Sealed).then(|| connection(&contents)),
            direction: if forward { Direction::Forward } else { Direction::Reverse },
            segment: &mut seen,
            size: handle.size(),
            port,
        };
        let mut out = std::mem::take(&mut self.network.middleboxes.emissions);
        let middlebox = &mut self.network.middleboxes.nodes[id as usize].middlebox;
        let verdict = middlebox.handle(self.scheduler.now, &mut passing, &mut out);
        match sight {
            Sight::Open => contents.segment = seen,
            // The outer header of IP is everyone's, and its mark is handed on to the inner one (RFC 6040).
            Sight::Matches | Sight::Sealed => contents.segment.ecn = seen.ecn,
        }
        self.network.pool.replace(handle.index(), &contents);
        if !plain {
            let copy = handle.marks() & Marks::COPY;
            handle.set_marks(copy | Marks::of(&contents.segment));
        }
        self.send_for(id, &mut out);
        self.network.middleboxes.emissions = out;
        if verdict == Verdict::Absorb {
            self.network.pool.release(handle.index());
        }
        verdict == Verdict::Forward
    }

    /// Passes a damaged packet to the middlebox at the end of the link.
    pub(crate) fn show_spoilt(&mut self, link: LinkId, handle: &PacketHandle) {
        let node = self.network.routes.head(link);
        let Some(id) = self.network.middleboxes.at(node) else { return };
        // The `to` of a plain packet is no end.
        let contents = self.network.pool.get(handle.index());
        if handle.has(Marks::PLAIN)
            || self.hosts.ends[contents.to as usize].incarnation != contents.incarnation
        {
            return;
        }
        if self.sight(id, contents.to) != Sight::Open {
            return;
        }
        let forward = contents.to % 2 == 1;
        let spoilt = Spoilt {
            connection: connection(&contents),
            direction: if forward { Direction::Forward } else { Direction::Reverse },
            segment: &contents.segment,
        };
        let mut out = std::mem::take(&mut self.network.middleboxes.emissions);
        self.network.middleboxes.nodes[id as usize].middlebox.handle_spoilt(
            self.scheduler.now,
            &spoilt,
            &mut out,
        );
        self.send_for(id, &mut out);
        self.network.middleboxes.emissions = out;
    }

    /// The timer of a middlebox expires.
    pub(crate) fn wake_middlebox(&mut self, id: u32) {
        let middlebox = &mut self.network.middleboxes.nodes[id as usize].middlebox;
        let mut out = std::mem::take(&mut self.network.middleboxes.emissions);
        if middlebox.next_timeout() <= self.scheduler.now {
            middlebox.handle_timeout(self.scheduler.now, &mut out);
        }
        self.send_for(id, &mut out);
        self.network.middleboxes.emissions = out;
    }

    /// Sends the packets of a middlebox, and schedules its next timeout.
    pub(crate) fn send_for(&mut self, id: u32, out: &mut Vec<Emission>) {
        for emission in out.drain(..) {
            let forward = emission.direction == Direction::Forward;
            let to = 2 * (emission.connection.0 as u32) + u32::from(forward);
            let end = &self.hosts.ends[to as usize];
            if u64::from(end.incarnation) != emission.connection.0 >> 32 {
                // The connection is over, and another one uses its place.
                continue;
            }
            let incarnation = end.incarnation;
            let index = self.network.pool.put(&PacketContents {
                to,
                incarnation,
                sent_at: self.scheduler.now,
                segment: emission.segment,
            });
            let MiddleboxNode { node, exits, .. } = &self.network.middleboxes.nodes[id as usize];
            let exit = 2 * end.leg_id + u32::from(!forward);
            let (size, label) =
                (end.header_bytes + emission.segment.len, self.hosts.ends[to as usize ^ 1].label);
            let place = (index, exits[exit as usize]);
            let handle = PacketHandle::new(place, size, label, Marks::of(&emission.segment));
            let here = Here { node: *node, served: true };
            self.monitor.end(
                self.scheduler.key,
                to ^ 1,
                HostEvent::Forged { packet: index, segment: emission.segment },
            );
            self.go(handle, here);
        }
        // After a segment changed the state, the timeout may be in the past.
        let next =
            self.network.middleboxes.nodes[id as usize].middlebox.next_timeout().max(self.scheduler.now);
        self.scheduler.schedule(Target::Middlebox(id), next);
    }
}

/// Returns the readable part of an encrypted packet.
fn sealed(segment: &Segment) -> Segment {
    let Segment { len, ecn, low_priority, .. } = *segment;
    Segment { len, ecn, low_priority, ..Segment::default() }
}

/// Returns the connection of a packet to an end: the pair of ends, and its incarnation.
fn connection(contents: &PacketContents) -> Connection {
    Connection(u64::from(contents.incarnation) << 32 | u64::from(contents.to >> 1))
}
