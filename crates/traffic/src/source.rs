//! Sources: applications that decide by themselves when they send.

use bentpipe_base::Duration;

use crate::frames::Frames;
use crate::mpeg::Mpeg;
use crate::on_off::OnOff;
use crate::voice::Talker;

/// One message of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Emission {
    /// When it is sent, after the start of the source.
    pub at: Duration,
    /// Its payload, at least one byte.
    pub bytes: u32,
    /// What it is, for transports with several streams: of a video 0 for I frames, 1 for P, 2 for B; of anything else 0.
    pub stream: u8,
}

/// A source of messages in the order of their times.
#[derive(Clone, Debug)]
pub enum Source {
    /// Bursts and silences.
    OnOff(OnOff),
    /// Video of a stochastic model.
    Mpeg(Mpeg),
    /// Video of recorded frame sizes.
    Frames(Frames),
    /// One direction of a telephone call.
    Talker(Talker),
}

impl Source {
    /// The next message; none if there is no more.
    pub fn next_emission(&mut self) -> Option<Emission> {
        match self {
            Self::OnOff(source) => Some(source.next_emission()),
            Self::Mpeg(source) => Some(source.next_emission()),
            Self::Frames(source) => source.next_emission(),
            Self::Talker(source) => Some(source.next_emission()),
        }
    }
}
