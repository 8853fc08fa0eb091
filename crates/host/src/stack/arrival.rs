//! Arriving packets: assignment to connections, and answers to packets without a connection.

use bentpipe_base::{Flags, Instant, precedes};
use bentpipe_tcp::State;
use bentpipe_wire::{
    Arrived, Datagram, Ends, Header, IcmpError, IcmpErrorKind, Offload, Sum, unwrapped, wrapped,
};

use std::net::SocketAddr;

use super::tcp_packet::TcpPacket;
use super::{Answer, Id, MOST_ANSWERS, REUSE_DISTANCE, Request, Stack};

/// IP protocol number of TCP.
const TCP: u8 = 6;

/// Packet of the device with its parsed IP header.
struct ArrivedPacket<'a> {
    offload: &'a Offload,
    packet: &'a [u8],
    datagram: Datagram<'a>,
}

/// True if the segment requests a connection.
fn is_opening(header: &Header) -> bool {
    header.flags.contains(Flags::SYN) && !header.flags.intersects(Flags::ACK | Flags::RST)
}

impl Stack {
    /// Handles a packet of the device, without its virtio header.
    pub fn handle_packet(&mut self, now: Instant, offload: &Offload, packet: &[u8]) {
        self.now = self.now.max(now);
        let Ok(datagram) = Datagram::read(packet) else {
            self.counters.ignored += 1;
            return;
        };
        // Fragments are not reassembled: packets of this stack and of current TCPs have the don't-fragment bit.
        let ours = self.config.transparent || self.config.addresses.contains(&datagram.destination);
        if datagram.fragment || !ours {
            self.counters.ignored += 1;
            return;
        }
        if datagram.protocol == TCP {
            self.take_tcp(now, &ArrivedPacket { offload, packet, datagram });
        } else {
            self.take_report(now, &datagram);
        }
    }

    fn take_tcp(&mut self, now: Instant, arrived: &ArrivedPacket) {
        let ArrivedPacket { offload, packet, datagram } = arrived;
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
        if header.flags.contains(Flags::SYN) {
            // Without the option the default MSS applies (RFC 9293 section 3.7.1, MUST-15).
            header.options.mss.get_or_insert(if datagram.source.is_ipv6() { 1220 } else { 536 });
        }
        let ends = Ends {
            local: SocketAddr::new(datagram.destination, header.destination_port),
            remote: SocketAddr::new(datagram.source, header.source_port),
        };
        let arrived = Arrived::of(datagram, payload.len());
        let segment = TcpPacket { header: &header, arrived, payload };
        let mut above = None;
        if let Some(id) = self.by_ends.get(&ends).copied() {
            if !self.begins_anew(id, &header) {
                return self.take_segment(now, id, segment);
            }
            above = Some(self.detach(now, id));
        }
        if self.config.transparent && is_opening(&header) {
            let dscp = datagram.dscp;
            return self.take_request(Request {
                ends,
                dscp,
                header,
                arrived,
                above,
                offload: **offload,
                packet: (*packet).into(),
            });
        }
        self.take_unmatched(now, &ends, segment);
        self.number_above(&ends, above);
    }

    /// True if a SYN may replace this connection: any SYN a closed one, a newer SYN one in TIME-WAIT (RFC 6191 section 2). Newer is
    /// a SYN with a later timestamp, or with a timestamp where the connection had none. In other cases, and with an equal
    /// timestamp, a higher sequence number decides.
    fn begins_anew(&self, id: Id, header: &Header) -> bool {
        let endpoint = &self.endpoints[id];
        let near = endpoint.near();
        let over = match endpoint.engine.state() {
            State::Closed => true,
            State::TimeWait => {
                // A number far below the first one of the connection is also lower.
                let higher = precedes(wrapped(endpoint.conversation.peer_initial, near.peer), header.seq);
                match (endpoint.engine.peer_timestamp(), header.options.timestamps) {
                    (Some(last), Some((new, _))) if new != last => precedes(last, new),
                    (None, Some(_)) => true,
                    _ => higher,
                }
            }
            _ => false,
        };
        let listens = self.config.transparent || self.listeners.contains_key(&endpoint.ends.local.port());
        over && listens && is_opening(header)
    }

    /// Frees the addresses and ports of an ended connection; its owner may still query it. Returns a sequence number above all
    /// that it used.
    pub(super) fn detach(&mut self, now: Instant, id: Id) -> u32 {
        let endpoint = &mut self.endpoints[id];
        let above = endpoint.numbers_end().wrapping_add(REUSE_DISTANCE);
        self.by_ends.remove(&endpoint.ends);
        endpoint.engine.abort(now);
        self.touch(id);
        above
    }

    /// Raises the initial sequence number of a new connection above all numbers of the previous one between these ends (RFC 1122
    /// section 4.2.2.13). A fast connection may have used numbers faster than the clock for initial numbers.
    pub(super) fn number_above(&mut self, ends: &Ends, above: Option<u32>) {
        let new = self.by_ends.get(ends).and_then(|id| self.endpoints.get_mut(*id));
        if let (Some(above), Some(endpoint)) = (above, new)
            && precedes(endpoint.conversation.initial, above)
        {
            endpoint.conversation.initial = above;
        }
    }

    pub(super) fn take_segment(&mut self, now: Instant, id: Id, packet: TcpPacket) {
        let endpoint = &self.endpoints[id];
        let mut incoming = endpoint.incoming(packet.header, packet.arrived);
        let growth = endpoint.growth(&incoming);
        if growth > 0 && growth > self.accounts.spare(endpoint) {
            self.counters.over_limit += 1;
            if !incoming.drop_payload(endpoint.engine.oldest_unacknowledged()) {
                return;
            }
        }
        self.endpoints[id].receive(now, &incoming, packet.payload);
        self.reports_are_full |= self.endpoints[id].engine.reports_are_full();
        self.touch(id);
    }

    /// Handles a segment without a connection.
    fn take_unmatched(&mut self, now: Instant, ends: &Ends, packet: TcpPacket) {
        let header = packet.header;
        let listens = self.listeners.contains_key(&ends.local.port());
        if header.flags.contains(Flags::RST) {
            return;
        }
        if listens && is_opening(header) {
            self.take_syn(now, ends, packet);
            return;
        }
        if listens && !header.flags.intersects(Flags::ACK | Flags::SYN) {
            // LISTEN drops any other segment (RFC 9293 section 3.10.7.2).
            self.counters.ignored += 1;
            return;
        }
        if listens
            && header.flags.contains(Flags::ACK)
            && !header.flags.contains(Flags::SYN)
            && let Some(id) = self.redeem(now, ends, header)
        {
            self.take_segment(now, id, packet);
            return;
        }
        self.refuse(ends, header, packet.payload.len());
    }

    /// Answers a segment without a connection by RFC 9293 section 3.10.7.1.
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

    /// Handles an ICMP report about a packet of this stack.
    fn take_report(&mut self, now: Instant, datagram: &Datagram) {
        let report = IcmpError::read(datagram).ok().flatten();
        if !report.is_some_and(|report| self.apply_report(now, &report)) {
            self.counters.ignored += 1;
        }
    }

    /// Applies a report if it quotes a packet that is in flight (RFC 5927 section 4.1).
    fn apply_report(&mut self, now: Instant, report: &IcmpError) -> bool {
        let Some(id) = self.by_ends.get(&report.ends).copied() else { return false };
        let endpoint = &mut self.endpoints[id];
        let una = endpoint.engine.oldest_unacknowledged();
        let seq = unwrapped(endpoint.conversation.initial, report.seq, una);
        if !(una..endpoint.engine.next_to_send()).contains(&seq) {
            return false;
        }
        match report.kind {
            IcmpErrorKind::TooBig { mtu } => {
                if let Some(mtu) = endpoint.learn_mtu(now, mtu) {
                    self.known_hosts.remember_mtu(now, report.ends.remote.ip(), mtu);
                }
            }
            IcmpErrorKind::Unreachable => endpoint.engine.handle_unreachable(now),
            IcmpErrorKind::Temporary => endpoint.engine.handle_temporary_error(),
        }
        self.touch(id);
        true
    }
}
