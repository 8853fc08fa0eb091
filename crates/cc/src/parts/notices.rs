//! Receiver half that relays notices of the link to the sender, for schemes whose link reports its losses.

use bentpipe_base::{Extension, Instant, Notice, Segment};

use crate::Reflector;

/// Number of ACKs that repeat a notice, so that it survives ACK loss.
const REPEATS: u8 = 3;

/// Maximum number of notices in memory.
const REMEMBERED: usize = 8;

/// Reads the notices that the last station writes into data segments. Repeats each notice on the next three ACKs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Notices {
    /// Notices, each with the number of repetitions left.
    notices: [Option<(Notice, u8)>; REMEMBERED],
    next: usize,
}

impl Reflector for Notices {
    fn on_data(&mut self, _now: Instant, segment: &Segment, _duplicate: bool) {
        if let Extension::Notice(notice) = segment.extension {
            self.notices[self.next] = Some((notice, REPEATS));
            self.next = (self.next + 1) % REMEMBERED;
        }
    }

    fn reply(&mut self, _now: Instant) -> Extension {
        let waiting = self.notices.iter_mut().flatten().max_by_key(|(_, left)| *left);
        match waiting.filter(|(_, left)| *left > 0) {
            Some((notice, left)) => {
                *left -= 1;
                Extension::Notice(*notice)
            }
            None => Extension::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_three_times() {
        let mut notices = Notices::default();
        let said = [Notice::Spoilt(5000), Notice::Corruption].map(Extension::Notice);
        for extension in said {
            let segment = Segment { extension, ..Segment::default() };
            notices.on_data(Instant::ZERO, &segment, false);
        }
        let mut told: Vec<_> = (0..7).map(|_| notices.reply(Instant::ZERO)).collect();
        assert_eq!(told.pop(), Some(Extension::None));
        for notice in said {
            assert_eq!(told.iter().filter(|fields| **fields == notice).count(), 3);
        }
    }
}
