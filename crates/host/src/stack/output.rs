//! Conversion of segments to packets. With segmentation offload a packet holds several segments. If the path MTU is below a
//! segment's size, the segment becomes several packets.

use std::io::IoSlice;

use bentpipe_base::{Extension, Flags, Instant, Probe, Segment};
use bentpipe_tcp::Transmit;
use bentpipe_wire::{
    Ends, Header, IpFields, Offload, Packet, Payload, Segmentation, VIRTIO_HEADER_LEN, complete_checksum,
};

use super::endpoint::Endpoint;
use super::stream_buffer::CHUNK;

/// Bytes of a padded timestamps option.
pub const TIMESTAMPS_LEN: u32 = 12;
/// Maximum IP packet size by the length field of IPv4.
const LARGEST: u32 = 65_535;
/// Flags allowed only on the last of the segments in a packet.
const LAST_ONLY: Flags = Flags::FIN.union(Flags::PSH);

/// Range of the stream of an endpoint.
#[derive(Clone, Copy, Debug)]
struct Part {
    seq: u64,
    len: usize,
}

/// Next packet of an endpoint.
struct NextPacket {
    /// Segment that it carries, or the first part of it.
    segment: Segment,
    header: Header,
    /// Payload bytes.
    len: u32,
    /// Size of the payload pieces that the device cuts; `None` if the device does not complete checksums.
    unit: Option<u32>,
}

impl Endpoint {
    /// Appends the next packet. Returns false if nothing can leave now.
    pub fn next_packet(&mut self, now: Instant, offload: bool, out: &mut Vec<u8>) -> bool {
        let Some(part) = self.next_headers(now, offload, out) else { return false };
        self.append_payload(part, out);
        true
    }

    /// Passes the next packet to `send` in pieces, the first in `head`. Returns false if nothing can leave now.
    pub fn send_next(&mut self, now: Instant, head: &mut Vec<u8>, send: impl FnOnce(&[IoSlice<'_>])) -> bool {
        let Some(part) = self.next_headers(now, true, head) else { return false };
        if self.sending.holds(part.seq, part.len) {
            let mut pieces = [IoSlice::new(&[]); 2 + LARGEST as usize / CHUNK + 1];
            let mut count = 1;
            self.sending.visit(part.seq, part.len, |piece| {
                pieces[count] = IoSlice::new(piece);
                count += 1;
            });
            pieces[0] = IoSlice::new(head);
            send(&pieces[..count]);
        } else {
            self.append_payload(part, head);
            send(&[IoSlice::new(head)]);
        }
        true
    }

    /// Appends a range of the stream.
    fn append_payload(&self, part: Part, out: &mut Vec<u8>) {
        let end = out.len() + part.len;
        // Bytes no longer stored were acknowledged. Only a probe repeats them, and the peer drops them, so zeros suffice.
        self.sending.append_to(part.seq, part.len, out);
        out.resize(end, 0);
    }

    /// Appends the headers of the next packet. Returns the stream range that follows them.
    fn next_headers(&mut self, now: Instant, offload: bool, out: &mut Vec<u8>) -> Option<Part> {
        let mut first = self.held.take().or_else(|| self.next_segment(now))?;
        if !self.knows_probes {
            // A peer that did not permit probes ignores the option, which would make a full segment exceed the path MTU.
            first.probe = Probe::No;
        }
        let mut header = self.conversation.header(&first);
        let headers = self.ends.ip_header_len() + header.len();
        let larger = self.path.probe(now, first.seq..first.seq + u64::from(first.len), headers);
        let room = larger.unwrap_or_else(|| self.path.room(headers));
        // A path MTU probe is a separate packet.
        let (len, closing) = match offload && larger.is_none() {
            true => self.gather(now, first, LARGEST - headers as u32),
            false => (first.len, Flags::empty()),
        };
        self.path.note_sent(first.seq + u64::from(len));
        // A probe must be answered once, so it is never split: bytes without room beside its option are left out.
        let len = if first.probe == Probe::No { len } else { len.min(room) };
        let whole = Segment { len, flags: first.flags | closing, ..first };
        let now_len = if offload && larger.is_none() { len } else { len.min(room) };
        header.flags = whole.flags;
        if now_len < len {
            header.flags -= LAST_ONLY;
            let seq = first.seq + u64::from(now_len);
            self.held = Some(Segment { seq, len: len - now_len, ..whole });
        }
        // Segments of the negotiated size, or of the path's smaller size.
        let unit = offload.then_some(first.len.min(room));
        Some(self.append_headers(NextPacket { segment: whole, header, len: now_len, unit }, out))
    }

    fn next_segment(&mut self, now: Instant) -> Option<Segment> {
        let mut segment = Segment::default();
        (self.engine.transmit_into(now, &mut segment) != Transmit::Nothing).then_some(segment)
    }

    /// Takes segments that continue `first` and differ in nothing else. Returns the payload bytes of all, and the flags that only
    /// the last may have.
    fn gather(&mut self, now: Instant, first: Segment, largest: u32) -> (u32, Flags) {
        let (mut len, mut last, mut closing) = (first.len, first.len, Flags::empty());
        while last == first.len && closing.is_empty() && may_continue(&first) {
            let Some(next) = self.next_segment(now) else { break };
            let follows = next.seq == first.seq + u64::from(len) && (1..=first.len).contains(&next.len);
            if !follows || len + next.len > largest || !continues(&first, &next) {
                self.held = Some(next);
                break;
            }
            len += next.len;
            last = next.len;
            closing = next.flags & LAST_ONLY;
        }
        (len, closing)
    }

    /// Appends the headers of a packet, and its payload if the device does not complete checksums. Returns the payload that
    /// follows.
    fn append_headers(&mut self, packet: NextPacket, out: &mut Vec<u8>) -> Part {
        let NextPacket { segment, header: tcp, len, unit } = packet;
        self.identification = self.identification.wrapping_add(1);
        let mut ip = IpFields::of(&segment, self.identification);
        if !segment.low_priority {
            ip.dscp = self.dscp;
        }
        let ip_len = self.ends.ip_header_len();
        if let Some(unit) = unit {
            let segmentation = match (len > unit, self.ends.remote.is_ipv6()) {
                (false, _) => Segmentation::None,
                (true, false) => Segmentation::TcpV4(unit as u16),
                (true, true) => Segmentation::TcpV6(unit as u16),
            };
            let offload = Offload::tcp(ip_len, segmentation);
            out.extend_from_slice(&offload.to_bytes(ip_len + tcp.len()));
        }
        let begin = out.len();
        let payload = Payload::Offloaded(len as usize);
        Packet { ends: self.ends, ip, tcp, payload }.write_headers(out);
        if unit.is_some() {
            return Part { seq: segment.seq, len: len as usize };
        }
        self.append_payload(Part { seq: segment.seq, len: len as usize }, out);
        complete_checksum(&mut out[begin + ip_len..]);
        Part { seq: segment.seq, len: 0 }
    }
}

/// True if a packet that begins with `first` may hold further segments.
fn may_continue(first: &Segment) -> bool {
    first.len > 0
        && first.probe == Probe::No
        && first.extension == Extension::None
        && !first.flags.intersects(LAST_ONLY | Flags::SYN | Flags::RST | Flags::CWR)
}

fn continues(first: &Segment, next: &Segment) -> bool {
    let plain = Segment { seq: first.seq, len: first.len, flags: next.flags - LAST_ONLY, ..*next };
    plain == *first
}

/// Appends a packet without payload that belongs to no connection.
pub(super) fn write_answer(ends: &Ends, tcp: Header, offload: bool, out: &mut Vec<u8>) {
    if offload {
        let bytes: [u8; VIRTIO_HEADER_LEN] = Offload::default().to_bytes(ends.ip_header_len() + tcp.len());
        out.extend_from_slice(&bytes);
    }
    Packet { ends: *ends, ip: IpFields::default(), tcp, payload: Payload::Bytes(&[]) }.write_headers(out);
}
