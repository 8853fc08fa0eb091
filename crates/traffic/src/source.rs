//! Sources: applications that decide when they send.

use crate::emission::Emission;
use crate::frames::Frames;
use crate::mpeg::Mpeg;
use crate::on_off::OnOff;
use crate::voice::Talker;

/// Source of messages in the order of their times.
#[derive(Clone, Debug)]
pub enum Source {
    /// Bursts and silences.
    OnOff(OnOff),
    /// Video from a stochastic model.
    Mpeg(Mpeg),
    /// Video from recorded frame sizes.
    Frames(Frames),
    /// One direction of a telephone call.
    Talker(Talker),
}

impl Source {
    /// Returns the next message; `None` after the last.
    pub fn next_emission(&mut self) -> Option<Emission> {
        match self {
            Self::OnOff(source) => Some(source.next_emission()),
            Self::Mpeg(source) => Some(source.next_emission()),
            Self::Frames(source) => source.next_emission(),
            Self::Talker(source) => Some(source.next_emission()),
        }
    }
}
