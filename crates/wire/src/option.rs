//! TCP options of RFC 9293, 7323 and 2018, and experimental ones for fields of algorithms.

use bentpipe_base::{Extension, Notice, Probe, ProbeTag, Rate, Snack};

/// Options of a header, with wire numbers.
///
/// Unknown and malformed options are skipped, as RFC 9293 section 3.1 requires.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Options {
    /// Maximum segment size in bytes.
    pub mss: Option<u16>,
    /// Window scale shift; values above 14 are read as 14 (RFC 7323 section 2.3).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018).
    pub sack_permitted: bool,
    /// Timestamp value and echo (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks: the first `sack_len` are valid.
    pub sack: [(u32, u32); 4],
    /// Number of SACK blocks, at most 4.
    pub sack_len: usize,
    /// SCPS-TP capabilities offered by a SYN. The connection identifier is zero: others mean header compression.
    pub scps: Option<Scps>,
    /// Holes above the ACK number (CCSDS 714.0).
    pub snack: Option<Snack>,
    /// Offer of a SYN: true if it answers probes, and the registry number of its feedback algorithm.
    pub permitted: Option<(bool, u8)>,
    /// Probe, reply to a probe, or neither.
    pub probe: Probe,
    /// Algorithm fields.
    pub extension: Extension,
}

bitflags::bitflags! {
    /// SCPS-TP's capabilities (CCSDS 714.0, option 20).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Scps: u8 {
        /// Best-effort transport service: a receiver may skip missing data.
        const BEST_EFFORT = 0x80;
        /// SNACK with only the first hole.
        const SNACK_SHORT = 0x40;
        /// SNACK with a vector of further holes.
        const SNACK_LONG = 0x20;
        /// Header compression.
        const COMPRESSION = 0x10;
        /// Timestamps of the network layer.
        const NETWORK_TIMESTAMPS = 0x08;
    }
}

/// Kinds (IANA "TCP Option Kind Numbers").
mod kind {
    pub const END: u8 = 0;
    pub const NOTHING: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
    /// CCSDS 714.0: capabilities, SNACK, corruption experienced.
    pub const SCPS: u8 = 20;
    pub const SNACK: u8 = 21;
    pub const CORRUPTION: u8 = 23;
    pub const EXPERIMENT: u8 = 253;
}

/// Experiment identifier of this project's options (RFC 6994 section 3): "BP".
const EXPERIMENT: u16 = 0x4250;

/// Content of an experimental option: its first byte after the identifier.
mod experiment {
    pub const PERMITTED: u8 = 1;
    pub const PROBE: u8 = 2;
    pub const REPLY: u8 = 3;
    pub const XCP: u8 = 4;
    pub const WAVE: u8 = 5;
    pub const RECEIVE_RATE: u8 = 6;
    pub const VALUE: u8 = 7;
    pub const SPOILT: u8 = 8;
    pub const OUTAGE: u8 = 9;
    pub const RESTORED: u8 = 10;
}

/// Maximum bytes of options in a header.
pub(crate) const LARGEST: usize = 40;

impl Options {
    /// Reads the options between the fixed header and its data offset.
    pub fn read(mut bytes: &[u8]) -> Self {
        let mut options = Self::default();
        while let [kind, rest @ ..] = bytes {
            match *kind {
                kind::END => break,
                kind::NOTHING => bytes = rest,
                kind => {
                    let Some(len) = rest.first().map(|len| usize::from(*len)).filter(|len| *len >= 2) else {
                        break;
                    };
                    let Some(value) = bytes.get(2..len) else { break };
                    options.take(kind, value);
                    bytes = &bytes[len..];
                }
            }
        }
        options
    }

    fn take(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (kind::MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (kind::WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift.min(14)),
            (kind::SACK_PERMITTED, []) => self.sack_permitted = true,
            (kind::TIMESTAMPS, _) => {
                if let (&[value, echo], []) = words(value) {
                    self.timestamps = Some((u32::from_be_bytes(value), u32::from_be_bytes(echo)));
                }
            }
            (kind::SACK, _) if value.len().is_multiple_of(8) => {
                let (blocks, _) = value.as_chunks::<8>();
                self.sack_len = blocks.len().min(self.sack.len());
                for (slot, block) in self.sack.iter_mut().zip(blocks) {
                    let [a, b, c, d, e, f, g, h] = *block;
                    *slot = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                }
            }
            (kind::SCPS, &[capabilities, _connection]) => {
                self.scps = Some(Scps::from_bits_truncate(capabilities));
            }
            (kind::SNACK, &[a, b, c, d, ref vector @ ..]) => {
                let [offset, size] = [[a, b], [c, d]].map(u16::from_be_bytes);
                self.snack = Some(Snack::new(offset, size, vector)).filter(|snack| snack.size > 0);
            }
            (kind::CORRUPTION, []) => self.extension = Extension::Notice(Notice::Corruption),
            (kind::EXPERIMENT, [high, low, ours, fields @ ..])
                if u16::from_be_bytes([*high, *low]) == EXPERIMENT =>
            {
                self.take_experiment(*ours, fields);
            }
            _ => {}
        }
    }

    fn take_experiment(&mut self, kind: u8, fields: &[u8]) {
        match (kind, fields) {
            (experiment::PERMITTED, &[probes, feedback]) => self.permitted = Some((probes != 0, feedback)),
            (experiment::PROBE, &[high, low]) => {
                self.probe = Probe::Probe(ProbeTag(u16::from_be_bytes([high, low])));
            }
            (experiment::REPLY, &[high, low]) => {
                self.probe = Probe::Reply(ProbeTag(u16::from_be_bytes([high, low])));
            }
            (experiment::XCP, [numbers @ .., limited]) => {
                if let (&[rtt, spacing, delta], []) = words(numbers) {
                    let numbers = [rtt, spacing, delta].map(f32::from_be_bytes);
                    // NaN and infinity would spread through all later arithmetic.
                    if let ([rtt_s, spacing_s, delta_bytes_per_s], true) =
                        (numbers, numbers.iter().all(|number| number.is_finite()))
                    {
                        self.extension =
                            Extension::Xcp { rtt_s, spacing_s, delta_bytes_per_s, limited: *limited != 0 };
                    }
                }
            }
            (experiment::WAVE, &[a, b, c, d, e, f, g, h]) => {
                let [id, size, index, limited] = [[a, b], [c, d], [e, f], [g, h]].map(u16::from_be_bytes);
                self.extension = Extension::Wave { id, size, index, limited: limited != 0 };
            }
            (experiment::RECEIVE_RATE, &[high, low, ref bps @ .., valid]) => {
                if let Ok(bps) = <[u8; 8]>::try_from(bps) {
                    let id = u16::from_be_bytes([high, low]);
                    let rate = Rate::from_bps(u64::from_be_bytes(bps));
                    self.extension = Extension::ReceiveRate { id, rate, valid: valid != 0 };
                }
            }
            (experiment::VALUE, _) => {
                if let Ok(value) = <[u8; 8]>::try_from(fields) {
                    self.extension = Extension::Value(u64::from_be_bytes(value));
                }
            }
            (experiment::SPOILT, _) => {
                if let Ok(seq) = <[u8; 8]>::try_from(fields) {
                    self.extension = Extension::Notice(Notice::Spoilt(u64::from_be_bytes(seq)));
                }
            }
            (experiment::OUTAGE, []) => self.extension = Extension::Notice(Notice::Outage),
            (experiment::RESTORED, []) => self.extension = Extension::Notice(Notice::Restored),
            _ => {}
        }
    }

    /// Returns the SACK blocks, most recent first.
    pub fn sack(&self) -> &[(u32, u32)] {
        &self.sack[..self.sack_len]
    }

    /// Lays out the options in their wire order: indispensable ones first, then the SACK blocks that still fit.
    pub(crate) fn lay_out(&self) -> Laid {
        let mut laid = Laid::default();
        if let Some(mss) = self.mss {
            laid.put(&[kind::MSS, 4]);
            laid.put(&mss.to_be_bytes());
        }
        if let Some(scale) = self.window_scale {
            laid.put(&[kind::NOTHING, kind::WINDOW_SCALE, 3, scale]);
        }
        if self.sack_permitted {
            laid.put(&[kind::SACK_PERMITTED, 2]);
        }
        if let Some(capabilities) = self.scps {
            laid.put(&[kind::SCPS, 4, capabilities.bits(), 0]);
        }
        if let Some((probes, feedback)) = self.permitted {
            laid.experiment(experiment::PERMITTED, &[u8::from(probes), feedback]);
        }
        if let Some((value, echo)) = self.timestamps {
            // Two NOP bytes keep the numbers aligned, as is usual; receivers have a fast path for it.
            if laid.len.is_multiple_of(4) {
                laid.put(&[kind::NOTHING, kind::NOTHING]);
            }
            laid.put(&[kind::TIMESTAMPS, 10]);
            laid.put(&value.to_be_bytes());
            laid.put(&echo.to_be_bytes());
        }
        match self.probe {
            Probe::No => {}
            Probe::Probe(tag) => laid.experiment(experiment::PROBE, &tag.0.to_be_bytes()),
            Probe::Reply(tag) => laid.experiment(experiment::REPLY, &tag.0.to_be_bytes()),
        }
        laid.extension(&self.extension);
        if let Some(snack) = &self.snack {
            laid.snack(snack);
        }
        laid.sack(self.sack());
        laid.pad();
        laid
    }
}

/// Splits `bytes` into words of four and a rest.
fn words(bytes: &[u8]) -> (&[[u8; 4]], &[u8]) {
    bytes.as_chunks()
}

/// Encoded options of one header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Laid {
    bytes: [u8; LARGEST],
    len: usize,
}

impl Default for Laid {
    fn default() -> Self {
        Self { bytes: [kind::NOTHING; LARGEST], len: 0 }
    }
}

impl Laid {
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends an option. The fixed options of a SYN always fit: 4 + 4 + 2 + 4 + 7 + 12 bytes.
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Appends an option of kind 253 with this project's identifier; left out if it does not fit.
    fn experiment(&mut self, kind: u8, fields: &[u8]) {
        let len = 5 + fields.len();
        if self.len + len <= LARGEST {
            self.put(&[kind::EXPERIMENT, len as u8]);
            self.put(&EXPERIMENT.to_be_bytes());
            self.put(&[kind]);
            self.put(fields);
        }
    }

    fn extension(&mut self, extension: &Extension) {
        match *extension {
            Extension::None => {}
            Extension::Xcp { rtt_s, spacing_s, delta_bytes_per_s, limited } => {
                let mut fields = [0; 13];
                let numbers = [rtt_s, spacing_s, delta_bytes_per_s].map(f32::to_be_bytes);
                fields[..12].copy_from_slice(numbers.as_flattened());
                fields[12] = u8::from(limited);
                self.experiment(experiment::XCP, &fields);
            }
            Extension::Wave { id, size, index, limited } => {
                let fields = [id, size, index, u16::from(limited)].map(u16::to_be_bytes);
                self.experiment(experiment::WAVE, fields.as_flattened());
            }
            Extension::ReceiveRate { id, rate, valid } => {
                let mut fields = [0; 11];
                fields[..2].copy_from_slice(&id.to_be_bytes());
                fields[2..10].copy_from_slice(&rate.bps().to_be_bytes());
                fields[10] = u8::from(valid);
                self.experiment(experiment::RECEIVE_RATE, &fields);
            }
            Extension::Value(value) => self.experiment(experiment::VALUE, &value.to_be_bytes()),
            Extension::Notice(notice) => self.notice(notice),
        }
    }

    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Corruption if self.len + 2 <= LARGEST => self.put(&[kind::CORRUPTION, 2]),
            Notice::Corruption => {}
            Notice::Spoilt(seq) => self.experiment(experiment::SPOILT, &seq.to_be_bytes()),
            Notice::Outage => self.experiment(experiment::OUTAGE, &[]),
            Notice::Restored => self.experiment(experiment::RESTORED, &[]),
        }
    }

    /// Appends the part of the vector that fits; a shorter vector reports fewer holes.
    fn snack(&mut self, snack: &Snack) {
        let Some(room) = (LARGEST - self.len).checked_sub(6) else { return };
        let vector = &snack.vector()[..snack.vector().len().min(room)];
        self.put(&[kind::SNACK, 6 + vector.len() as u8]);
        self.put(&snack.offset.to_be_bytes());
        self.put(&snack.size.to_be_bytes());
        self.put(vector);
    }

    fn sack(&mut self, blocks: &[(u32, u32)]) {
        let room = (LARGEST - self.len.next_multiple_of(4)).saturating_sub(4) / 8;
        let blocks = &blocks[..blocks.len().min(room)];
        if blocks.is_empty() {
            return;
        }
        // Aligns the numbers.
        while self.len % 4 != 2 {
            self.put(&[kind::NOTHING]);
        }
        self.put(&[kind::SACK, 2 + 8 * blocks.len() as u8]);
        for (start, end) in blocks {
            self.put(&start.to_be_bytes());
            self.put(&end.to_be_bytes());
        }
    }

    fn pad(&mut self) {
        while !self.len.is_multiple_of(4) {
            self.put(&[kind::NOTHING]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(options: &Options) -> Vec<u8> {
        options.lay_out().as_slice().to_vec()
    }

    /// CCSDS 714.0: capabilities, and the example of a SNACK of seven bytes.
    #[test]
    fn the_options_of_scps_tp() {
        let snack = Snack::new(2, 2, &[0xdc]);
        let options = Options { snack: Some(snack), ..Options::default() };
        assert_eq!(written(&options), [21, 7, 0, 2, 0, 2, 0xdc, 1]);
        assert_eq!(Options::read(&written(&options)), options);

        let capabilities = Scps::SNACK_SHORT | Scps::SNACK_LONG;
        let options = Options { scps: Some(capabilities), ..Options::default() };
        assert_eq!(written(&options), [20, 4, 0x60, 0]);
        assert_eq!(Options::read(&written(&options)), options);

        let extension = Extension::Notice(Notice::Corruption);
        let options = Options { extension, ..Options::default() };
        assert_eq!(written(&options), [23, 2, 1, 1]);
        assert_eq!(Options::read(&written(&options)), options);
    }

    #[test]
    fn a_long_vector_gives_way_to_what_stands_before_it() {
        let snack = Snack::new(0, 1, &[0xaa; Snack::LONGEST]);
        let all = Options { snack: Some(snack), timestamps: Some((1, 2)), ..Options::default() };
        assert_eq!(Options::read(&written(&all)).snack, Some(snack));
        let with_probe = Options { probe: Probe::Reply(ProbeTag(1)), ..all };
        let read = Options::read(&written(&with_probe)).snack;
        assert_eq!(read, Some(Snack::new(0, 1, &[0xaa; Snack::LONGEST - 7])));
    }

    #[test]
    fn a_snack_without_a_hole_is_none() {
        assert_eq!(Options::read(&[21, 6, 0, 2, 0, 0]).snack, None);
        assert_eq!(Options::read(&[21, 5, 0, 2, 0]).snack, None);
    }
}
