//! Payload of connections, which the engine only counts. It is computed from its stream offset when sent, and
//! compared when read.

use std::collections::{BTreeMap, VecDeque};

use bentpipe_base::{Instant, Segment};

use crate::event::HostEvent;
use crate::violations::Violations;

/// The streams of all connections.
#[derive(Debug, Default)]
pub struct Streams {
    ends: Vec<Stream>,
    /// Payload of the packets in the network, keyed by packet number.
    payloads: BTreeMap<u32, Vec<u8>>,
    opened: u64,
}

/// Data that one end wrote, and data that arrived there.
#[derive(Debug, Default)]
struct Stream {
    /// Key of the stream's content, different for every stream.
    key: u64,
    written: u64,
    /// At a proxy: the end that receives the data written here, which belongs to the same stream.
    inward: Option<u32>,
    /// Bytes read.
    read: u64,
    /// Data that arrived in order and was not read.
    in_order: VecDeque<u8>,
    /// Offset up to which middleboxes acknowledged in the name of this end.
    vouched_for: u64,
    /// Data behind a gap, keyed by its offset.
    later: BTreeMap<u64, Vec<u8>>,
}

/// Content of a stream: 64-bit words, each a mix of key and position (the finaliser of SplitMix64).
fn word(key: u64, index: u64) -> [u8; 8] {
    let mut word = key ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word ^ word >> 31).to_le_bytes()
}

/// Returns the bytes of a stream from `offset` on.
fn content(key: u64, offset: u64) -> impl Iterator<Item = u8> {
    (offset / 8..).flat_map(move |index| word(key, index)).skip((offset % 8) as usize)
}

impl Stream {
    /// Returns the offset up to which everything arrived.
    fn arrived_to(&self) -> u64 {
        self.read + self.in_order.len() as u64
    }

    fn take(&mut self, offset: u64, payload: &[u8]) {
        let packed = self.later.entry(offset).or_default();
        if packed.len() < payload.len() {
            payload.clone_into(packed);
        }
        while let Some((offset, bytes)) = self.later.pop_first() {
            let Some(known) = self.arrived_to().checked_sub(offset) else {
                self.later.insert(offset, bytes);
                break;
            };
            self.in_order.extend(bytes.get(known as usize..).unwrap_or_default());
        }
    }
}

impl Streams {
    /// Copies the payload for a duplicate of a packet.
    pub fn copy(&mut self, original: u32, copy: u32) {
        let payload = self.payloads.get(&original).cloned().unwrap_or_default();
        self.payloads.insert(copy, payload);
    }

    /// Drops the payload of a lost packet.
    pub fn forget(&mut self, packet: u32) {
        self.payloads.remove(&packet);
    }

    /// Checks an event of a connection end.
    pub fn note(&mut self, now: Instant, end: u32, event: &HostEvent, violations: &mut Violations) {
        match *event {
            HostEvent::Opened { inward, .. } => self.open(end, inward),
            HostEvent::Wrote(bytes) => {
                let stream = &mut self.ends[end as usize];
                stream.written += bytes;
                let (written, inward) = (stream.written, stream.inward);
                let had = inward.map_or(written, |inward| self.ends[inward as usize].read);
                violations.unless(written == had, now, || {
                    format!("end {end}: a proxy wrote {written} bytes onward, but had {had}")
                });
            }
            HostEvent::Sent { packet, segment } | HostEvent::Forged { packet, segment } => {
                if matches!(event, HostEvent::Forged { .. }) {
                    let stream = &mut self.ends[end as usize];
                    stream.vouched_for = stream.vouched_for.max(segment.ack.saturating_sub(1));
                }
                let broken = self.send(end, packet, &segment);
                violations
                    .unless(broken.is_none(), now, || format!("end {end}: {}", broken.unwrap_or_default()));
            }
            HostEvent::Arrived { packet, segment } if segment.len > 0 => {
                let payload = self.payloads.remove(&packet).unwrap_or_default();
                let whole = payload.len() == segment.len as usize;
                violations.unless(whole, now, || format!("end {end}: a segment lost some of its payload"));
                self.ends[end as usize].take(segment.seq - 1, &payload);
            }
            HostEvent::Arrived { .. } | HostEvent::Traced(..) => {}
            HostEvent::Missing(range) => {
                // The following data is checked as if the range had arrived.
                let key = self.ends[end as usize ^ 1].key;
                let bytes: Vec<_> =
                    content(key, range.start - 1).take((range.end - range.start) as usize).collect();
                self.ends[end as usize].take(range.start - 1, &bytes);
            }
            HostEvent::Read(bytes) => {
                let broken = self.read(end, bytes);
                violations
                    .unless(broken.is_none(), now, || format!("end {end}: {}", broken.unwrap_or_default()));
            }
            HostEvent::Settled { acknowledged_bytes: acknowledged } => {
                let other = &self.ends[end as usize ^ 1];
                let arrived = other.arrived_to().max(other.vouched_for);
                violations.unless(acknowledged <= arrived, now, || {
                    format!("end {end}: {acknowledged} bytes acknowledged, but {arrived} arrived")
                });
            }
        }
    }

    fn open(&mut self, end: u32, inward: Option<u32>) {
        let needed = end as usize + 1;
        if self.ends.len() < needed {
            self.ends.resize_with(needed, Stream::default);
        }
        self.opened += 1;
        // The proxy's side with that end had waited for this pair.
        let inward = inward.filter(|inward| inward % 2 != end % 2);
        let key = u64::from_le_bytes(word(0x5eed, self.opened));
        self.ends[end as usize] = Stream { key, inward, ..Stream::default() };
        if let Some(inward) = inward {
            self.ends[inward as usize].inward = Some(end);
        }
    }

    /// Returns the key of the data that an end writes. Behind proxies it is the key of the host that wrote the data.
    fn key(&self, mut end: u32) -> u64 {
        while let Some(inward) = self.ends[end as usize].inward {
            end = inward ^ 1;
        }
        self.ends[end as usize].key
    }

    /// Records the payload of a sent segment, and reports a wrong one.
    fn send(&mut self, end: u32, packet: u32, segment: &Segment) -> Option<String> {
        let (key, written) = (self.key(end), self.ends[end as usize].written);
        if segment.len == 0 {
            return None;
        }
        let Some(offset) = segment.seq.checked_sub(1) else {
            return Some("sent payload before its stream".to_owned());
        };
        self.payloads.insert(packet, content(key, offset).take(segment.len as usize).collect());
        let to = offset + u64::from(segment.len);
        (to > written).then(|| format!("sent up to {to} of {written} bytes written"))
    }

    /// Compares the data that the application reads, and reports a difference.
    fn read(&mut self, end: u32, bytes: u64) -> Option<String> {
        let key = self.key(end ^ 1);
        let stream = &mut self.ends[end as usize];
        let (from, arrived) = (stream.read, stream.in_order.len() as u64);
        stream.read += bytes;
        if bytes > arrived {
            stream.in_order.clear();
            return Some(format!("read {bytes} bytes from {from} on, but {arrived} arrived in order"));
        }
        let read = stream.in_order.drain(..bytes as usize);
        let good = read.eq(content(key, from).take(bytes as usize));
        (!good).then(|| format!("the {bytes} bytes from {from} on are not those that were written"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_depends_on_place_and_key() {
        let from = |key, offset| content(key, offset).take(20).collect::<Vec<_>>();
        assert_eq!(from(1, 5)[3..], from(1, 8)[..17]);
        assert_ne!(from(1, 0), from(2, 0));
        assert_ne!(from(1, 0), from(1, 8));
    }

    fn segment(seq: u64, len: u32) -> Segment {
        Segment { seq, len, ..Segment::default() }
    }

    /// End 0 writes 100 bytes and sends them in the given segments. End 1 receives these in this order, then reads
    /// `bytes`.
    fn verdict(segments: &[(u64, u32)], bytes: u64) -> Vec<String> {
        let (mut streams, mut violations) = (Streams::default(), Violations::default());
        streams.open(0, None);
        streams.open(1, None);
        let now = Instant::ZERO;
        streams.note(now, 0, &HostEvent::Wrote(100), &mut violations);
        for &(seq, len) in segments {
            let segment = segment(seq, len);
            streams.note(now, 0, &HostEvent::Sent { packet: 3, segment }, &mut violations);
            streams.note(now, 1, &HostEvent::Arrived { packet: 3, segment }, &mut violations);
        }
        streams.note(now, 1, &HostEvent::Read(bytes), &mut violations);
        violations.into_vec()
    }

    #[test]
    fn order_overlap_and_repetition_do_not_matter() {
        assert_eq!(verdict(&[(51, 50), (21, 40), (1, 30), (1, 10)], 100), [""; 0]);
    }

    #[test]
    fn gaps_and_inventions_are_found() {
        assert!(verdict(&[(1, 30), (41, 60)], 31)[0].contains("31 bytes from 0 on, but 30 arrived"));
        assert!(verdict(&[(51, 51)], 0)[0].contains("up to 101 of 100 bytes"));
    }
}
