//! Packets of many connections, as a capture for packet analysers.

use std::collections::BTreeMap;
use std::io::{self, Write};

use bentpipe_base::{Instant, Segment};

use crate::{Capture, Endpoint, Framer, From};

/// Where a packet was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Index of the interface of the capture.
    pub interface: u32,
    /// Number of the connection.
    pub connection: u32,
    /// The end that sent it.
    pub from: From,
}

/// Writes segments as packets into a [`Capture`], each connection with addresses of its own.
///
/// A packet analyser wants to see each packet once: choose one place of the network, or one end of each connection.
#[derive(Debug)]
pub struct PacketLog<W> {
    capture: Capture<W>,
    framers: BTreeMap<u32, Framer>,
    /// Connections that were followed by a fresh one between the same addresses, and by how many.
    followed: BTreeMap<u32, u16>,
    packet: Vec<u8>,
    failed: Option<io::Error>,
}

impl<W: Write> PacketLog<W> {
    /// Writes to `capture`.
    pub fn new(capture: Capture<W>) -> Self {
        let (framers, followed) = (BTreeMap::new(), BTreeMap::new());
        Self { capture, framers, followed, packet: Vec::new(), failed: None }
    }

    /// Writes a segment. After an error nothing more is written; [`PacketLog::finish`] reports it.
    pub fn packet(&mut self, at: Instant, seen: Seen, segment: &Segment) {
        if self.failed.is_none() {
            self.failed = self.write(at, seen, segment).err();
        }
    }

    /// A fresh connection takes the place of `connection`: the next packets come from another port.
    pub fn fresh(&mut self, connection: u32) {
        if self.framers.remove(&connection).is_some() {
            *self.followed.entry(connection).or_default() += 1;
        }
    }

    /// Hands the writer back, flushed.
    ///
    /// # Errors
    /// The first error of the writer; nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        self.failed.map_or(Ok(()), Err)?;
        self.capture.finish()
    }

    fn write(&mut self, at: Instant, seen: Seen, segment: &Segment) -> io::Result<()> {
        let followed = self.followed.get(&seen.connection).copied().unwrap_or(0);
        let framer =
            self.framers.entry(seen.connection).or_insert_with(|| framer_of(seen.connection, followed));
        self.packet.clear();
        let omitted = framer.headers(seen.from, segment, &mut self.packet);
        self.capture.packet(at, seen.interface, (&self.packet, omitted))
    }
}

/// Openers stand in 10.0.0.0/9 and count their ports up from 49152, listeners stand in 10.128.0.0/9 at port 5001.
fn framer_of(connection: u32, followed: u16) -> Framer {
    let address = |network: u32| (network | ((connection + 1) & 0x007f_ffff)).to_be_bytes();
    let opener = Endpoint { address: address(0x0a00_0000), port: 49_152 + followed % 16_384 };
    let listener = Endpoint { address: address(0x0a80_0000), port: 5_001 };
    Framer::new(opener, listener)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Flags;

    #[test]
    fn connections_have_addresses_and_fresh_ones_ports() {
        let empty = Capture::new(Vec::new(), "us", ["place"]).unwrap().finish().unwrap().len();
        let mut log = PacketLog::new(Capture::new(Vec::new(), "us", ["place"]).unwrap());
        let segment = Segment { flags: Flags::ACK, len: 100, ..Segment::default() };
        let seen = |connection, from| Seen { interface: 0, connection, from };
        log.packet(Instant::ZERO, seen(0, From::Opener), &segment);
        log.packet(Instant::ZERO, seen(1, From::Listener), &segment);
        log.fresh(0);
        log.packet(Instant::ZERO, seen(0, From::Opener), &segment);
        let bytes = log.finish().unwrap();
        let packet = |n: usize| &bytes[empty + n * 72 + 28..][..24];
        assert_eq!(bytes.len(), empty + 3 * 72);
        let addresses = |n| (packet(n)[12..16].to_vec(), packet(n)[16..20].to_vec());
        assert_eq!(addresses(0), (vec![10, 0, 0, 1], vec![10, 128, 0, 1]));
        assert_eq!(addresses(1), (vec![10, 128, 0, 2], vec![10, 0, 0, 2]));
        assert_eq!((&packet(0)[20..24], &packet(2)[20..22]), (&[192, 0, 0x13, 0x89][..], &[192, 1][..]));
    }
}
