//! Capture files for packet analysers (draft-ietf-opsawg-pcapng).

use std::io::{self, Write};

use bentpipe_base::Instant;

/// Writes packets as a pcapng file: one section, raw IP packets, times in nanoseconds since the start of the
/// simulation.
#[derive(Debug)]
pub struct Capture<W> {
    out: W,
    block: Vec<u8>,
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Link type of packets that begin with an IP header.
const RAW_IP: u16 = 101;

/// Option codes of the written blocks.
mod option {
    pub const END: u16 = 0;
    pub const COMMENT: u16 = 1;
    pub const HARDWARE_OR_NAME: u16 = 2;
    pub const APPLICATION: u16 = 4;
    pub const RESOLUTION: u16 = 9;
}

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// Number of the other bytes, which are left out.
    pub omitted: u32,
    /// A comment, unless it is empty.
    pub comment: &'a str,
}

impl<W: Write> Capture<W> {
    /// Begins a file. `interfaces` are the names of the capture points, `application` is the name of the
    /// writing program.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn new<'a>(
        out: W,
        application: &str,
        interfaces: impl IntoIterator<Item = &'a str>,
    ) -> io::Result<Self> {
        let mut capture = Self { out, block: Vec::new() };
        capture.begin(SECTION_HEADER);
        capture.put(&BYTE_ORDER_MAGIC.to_le_bytes());
        capture.put(&1_u16.to_le_bytes());
        capture.put(&0_u16.to_le_bytes());
        capture.put(&u64::MAX.to_le_bytes());
        capture.option(option::APPLICATION, application.as_bytes());
        capture.option(option::END, &[]);
        capture.end()?;
        for name in interfaces {
            capture.interface(name)?;
        }
        Ok(capture)
    }

    fn interface(&mut self, name: &str) -> io::Result<()> {
        self.begin(INTERFACE_DESCRIPTION);
        self.put(&RAW_IP.to_le_bytes());
        self.put(&[0; 2]);
        self.put(&0_u32.to_le_bytes());
        self.option(option::HARDWARE_OR_NAME, name.as_bytes());
        self.option(option::RESOLUTION, &[9]);
        self.option(option::END, &[]);
        self.end()
    }

    /// Writes one packet.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn packet(&mut self, at: Instant, interface: u32, packet: Captured<'_>) -> io::Result<()> {
        let Captured { bytes, omitted, comment } = packet;
        let nanos = at.as_nanos();
        let captured = bytes.len() as u32;
        self.begin(ENHANCED_PACKET);
        for word in [interface, (nanos >> 32) as u32, nanos as u32, captured, captured + omitted] {
            self.put(&word.to_le_bytes());
        }
        self.put(bytes);
        self.pad();
        if !comment.is_empty() {
            self.option(option::COMMENT, comment.as_bytes());
            self.option(option::END, &[]);
        }
        self.end()
    }

    /// Returns the flushed writer.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.put(&kind.to_le_bytes());
        self.put(&[0; 4]);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.put(&code.to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad();
    }

    /// Ends a block: its length is written at its beginning and its end.
    fn end(&mut self) -> io::Result<()> {
        let len = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&len);
        self.put(&len);
        self.out.write_all(&self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_closed_by_their_length() {
        let mut capture = Capture::new(Vec::new(), "us", ["left", "right side"]).unwrap();
        let packet = Captured { bytes: &[1, 2, 3], omitted: 7, comment: "" };
        capture.packet(Instant::from_nanos(5_000_000_001), 1, packet).unwrap();
        let bytes = capture.finish().unwrap();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (mut at, mut kinds) = (0, Vec::new());
        while at < bytes.len() {
            let len = word(at + 4) as usize;
            assert_eq!((len % 4, word(at + len - 4) as usize), (0, len));
            kinds.push(word(at));
            at += len;
        }
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE_DESCRIPTION, INTERFACE_DESCRIPTION, ENHANCED_PACKET]);
        let packet = bytes.len() - 36;
        assert_eq!([8, 12, 16, 20, 24].map(|offset| word(packet + offset)), [1, 1, 705_032_705, 3, 10]);
    }
}
