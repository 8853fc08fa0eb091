//! Detection of acknowledgements that a later one makes redundant.

use bentpipe_base::{Extension, Flags, Probe, Segment};

/// True for a segment that only acknowledges: no data, SYN, FIN, SACK blocks or router feedback. A later one of the same
/// connection carries the same information.
pub(crate) fn is_bare(segment: &Segment) -> bool {
    segment.flags == Flags::ACK
        && segment.len == 0
        && segment.sack.is_empty()
        && segment.probe == Probe::No
        && segment.extension == Extension::None
        && segment.syn_options.is_none()
}

#[cfg(test)]
pub(crate) fn bare(ack: u64) -> Segment {
    Segment { ack, flags: Flags::ACK, window: 65_535, ..Segment::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::SackRange;

    #[test]
    fn what_carries_more_than_a_number_is_not_bare() {
        assert!(is_bare(&bare(1000)));
        let mut sack = bare(1000);
        sack.sack.push(SackRange { start: 2000, end: 3000 });
        assert!(!is_bare(&sack));
        assert!(!is_bare(&Segment { len: 1, ..bare(1000) }));
        assert!(!is_bare(&Segment { flags: Flags::ACK | Flags::ECE, ..bare(1000) }));
        assert!(!is_bare(&Segment { extension: Extension::Value(1), ..bare(1000) }));
    }
}
