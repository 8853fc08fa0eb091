//! An arriving packet: whose it is, and what becomes of it if it is nobody's.

use bentpipe_base::{Flags, Instant};
use bentpipe_tcp::State;
use bentpipe_wire::{Arrived, Datagram, Ends, Header, Offload, Sum, TooBig, unwrapped};

use std::net::SocketAddr;

use super::{Answer, Id, MOST_ANSWERS, Request, Stack};

/// Protocol number of TCP.
const TCP: u8 = 6;

/// Whether a segment asks for a connection.
fn is_opening(header: &Header) -> bool {
    header.flags.contains(Flags::SYN) && !header.flags.intersects(Flags::ACK | Flags::RST)
}

impl Stack {
    /// Takes a packet of the device, without its virtio header.
    pub fn handle_packet(&mut self, now: Instant, offload: &Offload, packet: &[u8]) {
        let Ok(datagram) = Datagram::read(packet) else {
            self.counters.ignored += 1;
            return;
        };
        // Fragments are not put together: we never send packets that a router may cut, and neither do our peers.
        let ours = self.config.transparent || self.config.addresses.contains(&datagram.destination);
        if datagram.fragment || !ours {
            self.counters.ignored += 1;
            return;
        }
        if datagram.protocol == TCP {
            self.take_tcp(now, (offload, packet), &datagram);
        } else {
            self.take_report(now, &datagram);
        }
    }

    fn take_tcp(&mut self, now: Instant, (offload, packet): (&Offload, &[u8]), datagram: &Datagram) {
        let addresses = (datagram.source, datagram.destination);
        let sum = || Sum::pseudo_header(addresses, TCP, datagram.payload.len());
        if !offload.is_trusted() && !Header::checksum_holds(sum(), datagram.payload) {
            self.counters.corrupt += 1;
            return;
        }
        let Ok((mut header, payload)) = Header::read(datagram.payload) else {
            self.counters.ignored += 1;
            return;
        };
        // The option leaves room for fixed headers only (RFC 6691); the engine counts payload.
        if let (Some(mss), Some(_)) = (&mut header.options.mss, header.options.timestamps) {
            *mss = mss.saturating_sub(12).max(1);
        }
        let ends = Ends {
            local: SocketAddr::new(datagram.destination, header.destination_port),
            remote: SocketAddr::new(datagram.source, header.source_port),
        };
        let arrived = Arrived::of(datagram, payload.len());
        if let Some(id) = self.by_ends.get(&ends).copied() {
            if !self.begins_anew(id, &header) {
                return self.take_segment((now, id), (&header, arrived), payload);
            }
            self.forget(id);
        }
        if self.config.transparent && is_opening(&header) {
            let dscp = datagram.dscp;
            return self.take_request(Request {
                ends,
                dscp,
                header,
                arrived,
                offload: *offload,
                packet: packet.into(),
            });
        }
        self.take_stranger(now, &ends, (&header, arrived), payload);
    }

    /// A SYN with a later number ends a connection in TIME-WAIT (RFC 9293 section 3.10.7.4).
    fn begins_anew(&self, id: Id, header: &Header) -> bool {
        let peer = &self.peers[id];
        let near = peer.near();
        peer.engine.state() == State::TimeWait
            && !peer.owned
            && is_opening(header)
            && (self.config.transparent || self.listeners.contains_key(&peer.ends.local.port()))
            && unwrapped(peer.conversation.peer_initial, header.seq, near.peer) > near.peer
    }

    pub(super) fn take_segment(
        &mut self,
        (now, id): (Instant, Id),
        header: (&Header, Arrived),
        payload: &[u8],
    ) {
        let spare = self.config.limits.bytes.saturating_sub(self.held_bytes);
        match self.peers[id].receive(now, header, payload, spare) {
            Some(grown) => self.held_bytes += grown,
            None => self.counters.over_limit += 1,
        }
        self.reports_are_full |= self.peers[id].engine.reports_are_full();
        self.touch(id);
    }

    /// A segment for a connection that does not exist and cannot be asked for.
    fn take_stranger(
        &mut self,
        now: Instant,
        ends: &Ends,
        (header, arrived): (&Header, Arrived),
        payload: &[u8],
    ) {
        let listens = self.listeners.contains_key(&ends.local.port());
        if header.flags.contains(Flags::RST) {
            return;
        }
        if listens && is_opening(header) {
            self.take_syn(now, ends, (header, arrived));
            return;
        }
        if listens
            && header.flags.contains(Flags::ACK)
            && !header.flags.contains(Flags::SYN)
            && let Some(id) = self.redeem(now, ends, header)
        {
            self.take_segment((now, id), (header, arrived), payload);
            return;
        }
        self.refuse(ends, header, payload.len());
    }

    /// RFC 9293 section 3.10.7.1.
    pub(super) fn refuse(&mut self, ends: &Ends, header: &Header, len: usize) {
        self.counters.refused += 1;
        let answer = if header.flags.contains(Flags::ACK) {
            Header { seq: header.ack, flags: Flags::RST, ..Header::default() }
        } else {
            let of = |flag| u32::from(header.flags.contains(flag));
            let taken = len as u32 + of(Flags::SYN) + of(Flags::FIN);
            Header {
                ack: header.seq.wrapping_add(taken),
                flags: Flags::RST | Flags::ACK,
                ..Header::default()
            }
        };
        self.answer(*ends, answer);
    }

    pub(super) fn answer(&mut self, ends: Ends, header: Header) {
        if self.answers.len() < MOST_ANSWERS {
            self.answers.push_back(Answer { ends, header });
        }
    }

    /// A router may report that a packet of ours did not fit. It must show one that is under way (RFC 5927 section 4.1).
    fn take_report(&mut self, now: Instant, datagram: &Datagram) {
        let Ok(Some(report)) = TooBig::read(datagram) else {
            self.counters.ignored += 1;
            return;
        };
        let Some(peer) = self.by_ends.get(&report.ends).and_then(|id| self.peers.get_mut(*id)) else {
            self.counters.ignored += 1;
            return;
        };
        let una = peer.engine.oldest_unacknowledged();
        let seq = unwrapped(peer.conversation.initial, report.seq, una);
        if (una..peer.engine.next_to_send()).contains(&seq) {
            peer.path.learn(now, report.mtu, report.ends.remote.is_ipv6());
        } else {
            self.counters.ignored += 1;
        }
    }
}
