//! Messages of the link, passed on to the sender: the receiver half of the schemes whose link says what it lost.

use bentpipe_base::{Extension, Instant, Notice, Segment};

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
