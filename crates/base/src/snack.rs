//! Selective acknowledgements: ranges received (SACK), and missing data in compact form (SNACK).

/// Half-open range `[start, end)` of received sequence numbers (RFC 2018).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackRange {
    /// First sequence number received.
    pub start: u64,
    /// First sequence number not received.
    pub end: u64,
}

/// Holes above a cumulative ACK (CCSDS 714.0-B-2, option 21), in blocks of the maximum segment size counted from the ACK number.
/// It holds the first hole, then one bit per block, most significant first: 1 means received. Blocks above the last 1 are not
/// reported.
///
/// A block counts as missing if any of its bytes is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Snack {
    /// Blocks between the ACK number and the first hole.
    pub offset: u16,
    /// Blocks of the first hole.
    pub size: u16,
    len: u8,
    bits: [u8; Self::LONGEST],
}

impl Snack {
    /// Maximum bytes of the vector: the room in a header with timestamps.
    pub const LONGEST: usize = 22;

    /// Makes a report with this vector, truncated to [`LONGEST`](Self::LONGEST) bytes.
    pub fn new(offset: u16, size: u16, vector: &[u8]) -> Self {
        let mut snack = Self { offset, size, ..Self::default() };
        let len = vector.len().min(Self::LONGEST);
        snack.bits[..len].copy_from_slice(&vector[..len]);
        snack.len = len as u8;
        snack
    }

    /// Describes the missing data between `ack` and the end of the last of the `held` ranges: above `ack`, in order, disjoint.
    /// `None` if no whole block of `unit` bytes was received.
    pub fn describe(ack: u64, unit: u32, held: impl IntoIterator<Item = SackRange>) -> Option<Self> {
        let unit = u64::from(unit.max(1));
        let mut snack = Self::default();
        // First block after the hole.
        let mut base = 0;
        for range in held {
            let above = |at: u64| at.saturating_sub(ack);
            let (first, end) = (above(range.start).div_ceil(unit), above(range.end) / unit);
            if first >= end {
                continue;
            }
            if snack.size == 0 {
                // A range that began at the ACK number would have advanced it; blocks are rounded, ranges are not.
                snack.size = u16::try_from(first.max(1)).ok()?;
                base = first.max(1);
            }
            let first = first.max(base);
            for block in first..end {
                let bit = (block - base) as usize;
                let Some(byte) = snack.bits.get_mut(bit / 8) else { return Some(snack) };
                *byte |= 0x80 >> (bit % 8);
                snack.len = (bit / 8 + 1) as u8;
            }
        }
        (snack.size > 0).then_some(snack)
    }

    /// Returns the bytes after the first hole.
    pub fn vector(&self) -> &[u8] {
        &self.bits[..usize::from(self.len)]
    }

    /// Returns missing and received ranges in order, from the first hole to the last received block; true marks received ones.
    /// `ack` and the block size `unit` are the report's reference.
    pub fn runs(&self, ack: u64, unit: u32) -> impl Iterator<Item = (SackRange, bool)> + '_ {
        let at = move |block: u64| ack + block * u64::from(unit);
        let hole = u64::from(self.offset);
        let base = hole + u64::from(self.size);
        let held = move |bit: u64| self.bits[(bit / 8) as usize] & (0x80 >> (bit % 8)) != 0;
        let top = (0..u64::from(self.len) * 8).rfind(|bit| held(*bit)).map_or(0, |bit| bit + 1);
        let first = (SackRange { start: at(hole), end: at(base) }, false);
        let mut bit = 0;
        let others = core::iter::from_fn(move || {
            let start = bit;
            let kind = (start < top).then(|| held(start))?;
            bit = (start..top).find(|bit| held(*bit) != kind).unwrap_or(top);
            Some((SackRange { start: at(base + start), end: at(base + bit) }, kind))
        });
        core::iter::once(first).chain(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> SackRange {
        SackRange { start, end }
    }

    fn missing(snack: &Snack, ack: u64) -> Vec<SackRange> {
        snack.runs(ack, 1000).filter(|(_, held)| !held).map(|(range, _)| range).collect()
    }

    /// Blocks of 1000 bytes, 10000 acknowledged; blocks 12, 13 and 16 are missing, all others up to 19 received: 1 1 0 1 1 1 and
    /// padding.
    #[test]
    fn holes_of_the_standard() {
        let snack = Snack::new(2, 2, &[0b1101_1100]);
        assert_eq!(snack.vector(), [0xdc]);
        assert_eq!(missing(&snack, 10_000), [range(12_000, 14_000), range(16_000, 17_000)]);
        // The same from a receiver that has acknowledged everything before the first hole.
        let held = [range(14_000, 16_000), range(17_000, 20_000)];
        let described = Snack::describe(12_000, 1000, held).unwrap();
        assert_eq!(described, Snack::new(0, 2, &[0xdc]));
        let runs: Vec<_> = described.runs(12_000, 1000).collect();
        let hole = (range(12_000, 14_000), false);
        assert_eq!(runs, [hole, (held[0], true), (range(16_000, 17_000), false), (held[1], true)]);
    }

    #[test]
    fn holes_are_rounded_outward() {
        // 500 bytes of a block do not count, and nothing above the last whole block is reported.
        let snack = Snack::describe(10_000, 1000, [range(11_500, 13_000), range(15_000, 15_700)]).unwrap();
        assert_eq!(snack, Snack::new(0, 2, &[0b1000_0000]));
        assert_eq!(missing(&snack, 10_000), [range(10_000, 12_000)]);
        assert_eq!(Snack::describe(10_000, 1000, [range(10_500, 10_900)]), None);
    }

    #[test]
    fn what_has_no_room_is_left_unsaid() {
        let every_other = (0..200).map(|n| range(11_000 + 2000 * n, 12_000 + 2000 * n));
        let snack = Snack::describe(10_000, 1000, every_other).unwrap();
        assert_eq!(snack.vector(), [0b1010_1010; Snack::LONGEST]);
        assert_eq!(missing(&snack, 10_000).len(), 88);
        assert_eq!(
            Snack::describe(0, 1, [range(100_000, 100_001)]),
            None,
            "a hole of more than 65535 blocks"
        );
    }
}
