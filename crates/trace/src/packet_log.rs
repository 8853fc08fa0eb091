//! What connection ends sent and received, as a capture for packet analysers.

use std::collections::BTreeMap;
use std::io::{self, Write};

use bentpipe_base::Segment;

use crate::{Capture, Endpoint, Event, Framer, From, Record, Sink};

/// The place of a record: an end of a connection, seen at an interface of the capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Number of the connection.
    pub connection: u32,
    /// Which of its ends.
    pub end: From,
    /// Index of the interface.
    pub interface: u32,
}

/// Writes the segments that some connection ends sent and received into a [`Capture`].
#[derive(Debug)]
pub struct PacketLog<W, P> {
    capture: Capture<W>,
    place: P,
    framers: BTreeMap<u32, Framer>,
    packet: Vec<u8>,
    failed: Option<io::Error>,
}

impl<W: Write, P: Fn(u32) -> Option<Place>> PacketLog<W, P> {
    /// Writes to `capture`; `place` tells what a [`Record::source`] is, `None` for what stays out of the capture. A
    /// packet analyser wants to see each packet once, so let in one end of each connection.
    pub fn new(capture: Capture<W>, place: P) -> Self {
        Self { capture, place, framers: BTreeMap::new(), packet: Vec::new(), failed: None }
    }

    /// Hands the writer back, flushed.
    ///
    /// # Errors
    /// The first error of the writer; nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        self.failed.map_or(Ok(()), Err)?;
        self.capture.finish()
    }

    fn write(&mut self, record: &Record, place: Place, (from, segment): (From, &Segment)) -> io::Result<()> {
        let framer = self.framers.entry(place.connection).or_insert_with(|| framer_of(place.connection));
        self.packet.clear();
        let omitted = framer.headers(from, segment, &mut self.packet);
        self.capture.packet(record.at, place.interface, (&self.packet, omitted))
    }
}

impl<W: Write, P: Fn(u32) -> Option<Place>> Sink for PacketLog<W, P> {
    fn record(&mut self, record: &Record) {
        let (sent, segment) = match &record.event {
            Event::Sent(segment) => (true, segment),
            Event::Received(segment) => (false, segment),
            _ => return,
        };
        let Some(place) = (self.place)(record.source).filter(|_| self.failed.is_none()) else { return };
        let from = match (place.end, sent) {
            (From::Opener, true) | (From::Listener, false) => From::Opener,
            _ => From::Listener,
        };
        self.failed = self.write(record, place, (from, segment)).err();
    }
}

/// Openers stand in 10.0.0.0/9, listeners in 10.128.0.0/9, each connection with addresses of its own.
fn framer_of(connection: u32) -> Framer {
    let address = |network: u32| (network | ((connection + 1) & 0x007f_ffff)).to_be_bytes();
    let opener = Endpoint { address: address(0x0a00_0000), port: 49_152 };
    let listener = Endpoint { address: address(0x0a80_0000), port: 5_001 };
    Framer::new(opener, listener)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{Flags, Instant};

    #[test]
    fn takes_the_segments_of_the_chosen_ends() {
        let capture = Capture::new(Vec::new(), "us", ["senders"]).unwrap();
        let empty = Capture::new(Vec::new(), "us", ["senders"]).unwrap().finish().unwrap().len();
        let sender = |source: u32| {
            source.is_multiple_of(2).then_some(Place {
                connection: source / 2,
                end: From::Opener,
                interface: 0,
            })
        };
        let mut log = PacketLog::new(capture, sender);
        let segment = Segment { flags: Flags::ACK, len: 100, ..Segment::default() };
        for (source, event) in [
            (0, Event::Sent(segment)),
            (1, Event::Sent(segment)),
            (2, Event::Received(segment)),
            (2, Event::Undone),
        ] {
            log.record(&Record { at: Instant::ZERO, source, event });
        }
        let bytes = log.finish().unwrap();
        assert_eq!(bytes.len(), empty + 2 * (32 + 40));
        let first = &bytes[empty + 28..];
        assert_eq!((&first[12..16], &first[16..20]), (&[10, 0, 0, 1][..], &[10, 128, 0, 1][..]));
        let second = &first[72..];
        assert_eq!((&second[12..16], &second[16..20]), (&[10, 128, 0, 2][..], &[10, 0, 0, 2][..]));
    }
}
