//! Messages of the link, passed on to the sender: the receiver half of the schemes whose link says what it lost.

use bentpipe_base::{Extension, Instant, Segment};

use crate::Reflector;

/// ACKs that carry a message, so that it survives the loss of some.
const REPEATS: u8 = 3;

/// Messages remembered at a time.
const REMEMBERED: usize = 8;

/// Takes the messages that the last station before the receiver writes into data segments of the connection, and repeats each
/// on the next three ACKs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Notices {
    /// Messages, and how often each is still to be told.
    notices: [(u64, u8); REMEMBERED],
    next: usize,
}

impl Reflector for Notices {
    fn on_data(&mut self, _now: Instant, segment: &Segment, _duplicate: bool) {
        if let Extension::Value(notice) = segment.extension {
            self.notices[self.next] = (notice, REPEATS);
            self.next = (self.next + 1) % REMEMBERED;
        }
    }

    fn reply(&mut self, _now: Instant) -> Extension {
        match self.notices.iter_mut().max_by_key(|(_, left)| *left) {
            Some((notice, left)) if *left > 0 => {
                *left -= 1;
                Extension::Value(*notice)
            }
            _ => Extension::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_three_times() {
        let mut notices = Notices::default();
        for value in [5000, 7000] {
            let segment = Segment { extension: Extension::Value(value), ..Segment::default() };
            notices.on_data(Instant::ZERO, &segment, false);
        }
        let mut told: Vec<_> = (0..7).map(|_| notices.reply(Instant::ZERO)).collect();
        assert_eq!(told.pop(), Some(Extension::None));
        for value in [5000, 7000] {
            assert_eq!(told.iter().filter(|fields| **fields == Extension::Value(value)).count(), 3);
        }
    }
}
