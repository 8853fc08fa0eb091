//! Negotiation of ECN (RFC 3168, RFC 9768) and its feedback of marks.

use bentpipe_base::{EcnField, Flags, Segment};

use crate::EcnMode;

/// Initial value of both counters of marked packets (RFC 9768 section 3.2.1). It differs from zero so that a middlebox that
/// clears the field is noticed.
const INITIAL: u8 = 5;

/// Marked packets after which an ACK leaves at once (RFC 9768 section 3.2.2.5.1: `n`), if the last one carries data.
const MARKS_PER_ACK: u8 = 2;
/// The same for an ACK of an empty segment, so that ACKs of ACKs soon end.
const MARKS_PER_ACK_OF_ACKS: u8 = 3;

/// Number of values of the ACE field.
const CYCLE: u32 = 8;

/// Kind of ECN that both ends use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Agreement {
    Off,
    Classic,
    /// Accurate ECN, with the ECN field of the peer's SYN or SYN-ACK.
    Accurate(EcnField),
}

impl Agreement {
    /// Evaluates the peer's SYN or SYN-ACK (RFC 9768 table 2).
    pub fn of(ours: EcnMode, syn: &Segment) -> Self {
        let answers = syn.flags.contains(Flags::ACK);
        let (ace, accurate) = (syn.flags.ace(), ours == EcnMode::Accurate);
        match (answers, ace) {
            _ if ours == EcnMode::Off => Self::Off,
            (false, 0b000) => Self::Off,
            // RFC 3168 section 6.1.1: a SYN offers ECN with both flags, whatever the third one.
            (false, 0b011) => Self::Classic,
            (false, 0b111) if !accurate => Self::Classic,
            (false, _) if !accurate => Self::Off,
            // Combinations without a meaning yet are a future form of Accurate ECN (RFC 9768 section 3.1.3).
            (false, _) => Self::Accurate(syn.ecn),
            (true, 0b001) => Self::Classic,
            (true, 0b010..=0b110) if accurate => Self::Accurate(syn.ecn),
            (true, 0b101) => Self::Classic,
            // Some hosts mirror the flags of the SYN.
            (true, _) => Self::Off,
        }
    }

    /// Returns the flags of the SYN-ACK that answers.
    pub fn answer(self) -> Flags {
        match self {
            Self::Off => Flags::empty(),
            Self::Classic => Flags::ECE,
            Self::Accurate(field) => reflected(field),
        }
    }
}

/// Returns the flags that offer ECN in a SYN after `retries` unanswered ones. The path may drop an offer of Accurate ECN, so the
/// third SYN makes none (RFC 9768 section 3.1.4.1).
pub(crate) fn offer(mode: EcnMode, retries: u32) -> Flags {
    match mode {
        EcnMode::Off => Flags::empty(),
        EcnMode::Accurate if retries > 1 => Flags::empty(),
        EcnMode::Classic => Flags::ECE | Flags::CWR,
        EcnMode::Accurate => Flags::ACE,
    }
}

/// Returns the ACE field that reflects the ECN field of a SYN or SYN-ACK (RFC 9768 tables 2 and 3).
fn reflected(field: EcnField) -> Flags {
    Flags::of_ace(match field {
        EcnField::NotCapable => 0b010,
        EcnField::L4s => 0b011,
        EcnField::Capable => 0b100,
        EcnField::Congested => 0b110,
    })
}

/// Echo of the marks that arrived at this end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Echo {
    /// Classic ECN, or none: true after a mark arrived, until the sender confirms a reduction.
    Classic(bool),
    /// Accurate ECN: the number of marked packets, of which an ACK reports the low bits.
    Accurate {
        /// Marked packets (`r.cep`), modulo 256.
        marks: u8,
        /// Marked packets since the last ACK.
        unreported: u8,
        /// True if the latest packet was marked.
        last: bool,
        /// ECN field of the SYN-ACK, which the first ACK reflects.
        syn_ack: Option<EcnField>,
    },
}

impl Echo {
    /// Starts the echo with the ECN field of the SYN-ACK, at the end that received it.
    pub fn accurate(syn_ack: Option<EcnField>) -> Self {
        let marked = syn_ack == Some(EcnField::Congested);
        Self::Accurate { marks: INITIAL + u8::from(marked), unreported: 0, last: false, syn_ack }
    }

    /// Returns the flags of a segment that leaves.
    #[inline]
    pub fn report(&mut self) -> Flags {
        match self {
            Self::Classic(false) => Flags::empty(),
            Self::Classic(true) => Flags::ECE,
            Self::Accurate { marks, unreported, syn_ack, .. } => {
                *unreported = 0;
                syn_ack.take().map_or(Flags::of_ace(*marks), reflected)
            }
        }
    }

    /// True if the next segment must be an empty ACK, which reflects the ECN field of the SYN-ACK.
    pub fn reflects_next(self) -> bool {
        matches!(self, Self::Accurate { syn_ack: Some(_), .. })
    }

    /// Handles a repeated SYN-ACK: its ACK reflects the ECN field again.
    pub fn reflect(&mut self, field: EcnField) {
        if let Self::Accurate { syn_ack, .. } = self {
            *syn_ack = Some(field);
        }
    }

    /// Handles a segment of Accurate ECN. Returns true if an ACK must report it at once: the first of several marks on data, and
    /// every second one.
    pub fn count(&mut self, segment: &Segment) -> bool {
        let Self::Accurate { marks, unreported, last, .. } = self else { return false };
        let marked = segment.ecn == EcnField::Congested;
        let begins = marked && !*last;
        *last = marked;
        if marked {
            *marks = marks.wrapping_add(1);
            *unreported = unreported.saturating_add(1);
        }
        if segment.seq_len() == 0 {
            return marked && *unreported >= MARKS_PER_ACK_OF_ACKS;
        }
        begins || (marked && *unreported >= MARKS_PER_ACK)
    }
}

/// Marks that the peer has reported, and the ECN field of new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reported {
    /// Low bits of the number of reported marks (`s.cep`); `None` if the first ACK showed that reports are invalid.
    marks: Option<u8>,
    /// ECN field of new data. Not capable if the handshake showed that the path changes or clears it.
    pub field: EcnField,
}

impl Reported {
    /// Evaluates the ACE field of the segment that completed the handshake: a SYN-ACK, or an empty ACK. It reflects the ECN field
    /// of this end's SYN or SYN-ACK, which was not capable (RFC 9768 tables 2 and 4, section 3.2.2.3). In other segments the
    /// field is a counter.
    pub fn new(completing: &Segment, field: EcnField) -> Self {
        let is_syn_ack = completing.flags.contains(Flags::SYN);
        let reflects = is_syn_ack || (completing.seq_len() == 0 && completing.sack.is_empty());
        let marks = |ace| match ace {
            0b000 => None,
            0b110 if !is_syn_ack => Some(INITIAL + 1),
            _ => Some(INITIAL),
        };
        match completing.flags.ace() {
            ace @ (0b000 | 0b011 | 0b100 | 0b110) if reflects => {
                Self { marks: marks(ace), field: EcnField::NotCapable }
            }
            _ => Self { marks: Some(INITIAL), field },
        }
    }

    /// Returns the number of marks newly reported by an ACK of `arrived` new packets.
    ///
    /// The field counts modulo 8. If an ACK covers more packets, ACKs were lost or thinned, and the largest number that fits is
    /// assumed (RFC 9768 appendix A.2). An unchanged field is taken as no mark.
    pub fn take(&mut self, flags: Flags, arrived: u32) -> u32 {
        let Some(marks) = &mut self.marks else { return 0 };
        let ace = flags.ace();
        let change = u32::from(ace.wrapping_sub(*marks) & 7);
        *marks = ace;
        if change == 0 || arrived < CYCLE { change } else { arrived - (arrived - change) % CYCLE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [EcnField; 4] =
        [EcnField::NotCapable, EcnField::L4s, EcnField::Capable, EcnField::Congested];

    fn syn(flags: Flags, ace: u8, ecn: EcnField) -> Segment {
        Segment { flags: flags | Flags::of_ace(ace), ecn, ..Segment::default() }
    }

    /// RFC 9768 table 2: the answer to each SYN, and what its sender makes of it.
    #[test]
    fn the_handshake_follows_the_table() {
        use Agreement::{Accurate, Classic, Off};
        for (field, ace) in FIELDS.into_iter().zip([0b010, 0b011, 0b100, 0b110]) {
            let heard = Agreement::of(EcnMode::Accurate, &syn(Flags::SYN, 0b111, field));
            assert_eq!((heard, heard.answer().ace()), (Accurate(field), ace));
            let answer = syn(Flags::SYN | Flags::ACK, ace, EcnField::NotCapable);
            assert_eq!(Agreement::of(EcnMode::Accurate, &answer), Accurate(EcnField::NotCapable));
        }
        let answers =
            |mode, ace| Agreement::of(mode, &syn(Flags::SYN | Flags::ACK, ace, EcnField::NotCapable));
        assert_eq!(
            [0b000, 0b001, 0b101, 0b111].map(|ace| answers(EcnMode::Accurate, ace)),
            [Off, Classic, Accurate(EcnField::NotCapable), Off]
        );
        assert_eq!(
            [0b000, 0b001, 0b011, 0b101].map(|ace| answers(EcnMode::Classic, ace)),
            [Off, Classic, Off, Classic]
        );
        let offers = |mode| {
            [0b000, 0b011, 0b111, 0b100]
                .map(|ace| Agreement::of(mode, &syn(Flags::SYN, ace, EcnField::NotCapable)))
        };
        let accurate = Accurate(EcnField::NotCapable);
        assert_eq!(offers(EcnMode::Accurate), [Off, Classic, accurate, accurate]);
        assert_eq!(offers(EcnMode::Classic), [Off, Classic, Classic, Off]);
        assert_eq!(offers(EcnMode::Off), [Off; 4]);
    }

    /// RFC 9768 table 4 and section 3.2.2.3.
    #[test]
    fn the_first_ack_may_show_that_the_path_changes_the_field() {
        let first = |flags, ace| Reported::new(&syn(flags, ace, EcnField::NotCapable), EcnField::Capable);
        for (ace, marks, capable) in [
            (0b000, None, false),
            (0b001, Some(5), true),
            (0b010, Some(5), true),
            (0b011, Some(5), false),
            (0b100, Some(5), false),
            (0b101, Some(5), true),
            (0b110, Some(6), false),
            (0b111, Some(5), true),
        ] {
            let found = first(Flags::ACK, ace);
            assert_eq!((found.marks, found.field == EcnField::Capable), (marks, capable), "{ace:03b}");
        }
        assert_eq!(first(Flags::SYN | Flags::ACK, 0b110).marks, Some(5), "the peer did not count the SYN");
        let data = Segment { len: 1000, ..syn(Flags::ACK, 0b110, EcnField::NotCapable) };
        let found = Reported::new(&data, EcnField::Capable);
        assert_eq!((found.marks, found.field), (Some(5), EcnField::Capable), "a counter");
    }

    /// RFC 9768 appendix A.2: an ACK of 20 packets that raises the field by 2 reports 18 marks.
    #[test]
    fn long_steps_of_the_field_are_taken_for_as_many_marks_as_fit() {
        let taken = |from: u8, to: u8, arrived| {
            let mut reported = Reported { marks: Some(from), field: EcnField::Capable };
            let marks = reported.take(Flags::of_ace(to), arrived);
            assert_eq!(reported.marks, Some(to));
            marks
        };
        assert_eq!(taken(5, 6, 2), 1);
        assert_eq!(taken(7, 1, 2), 2, "the field wraps");
        assert_eq!(taken(5, 4, 7), 7);
        assert_eq!(taken(5, 7, 20), 18);
        assert_eq!(taken(5, 7, 8), 2);
        assert_eq!(taken(5, 5, 20), 0);
    }

    #[test]
    fn the_first_mark_and_every_second_one_are_reported_at_once() {
        let mut echo = Echo::accurate(None);
        let data = |ecn| Segment { len: 1000, ecn, ..Segment::default() };
        assert!(!echo.count(&data(EcnField::L4s)));
        assert!(echo.count(&data(EcnField::Congested)));
        assert_eq!(echo.report().ace(), 6);
        assert!(!echo.count(&data(EcnField::Congested)));
        assert!(echo.count(&data(EcnField::Congested)));
        assert_eq!(echo.report().ace(), 0);
        assert!(!echo.count(&data(EcnField::L4s)));
    }

    #[test]
    fn every_third_marked_ack_is_acknowledged() {
        let mut echo = Echo::accurate(None);
        let ack = Segment { flags: Flags::ACK, ecn: EcnField::Congested, ..Segment::default() };
        assert_eq!([(); 4].map(|()| echo.count(&ack)), [false, false, true, true]);
        echo.report();
        assert!(!echo.count(&ack));
    }
}
