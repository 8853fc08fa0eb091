//! Video of recorded frame sizes.
//!
//! Most published video traces use this format with one frame per line. A line is a size in bytes, or a type (`I`, `P`, `B`)
//! followed by other fields with the size last. Empty lines and lines that begin with `#` are ignored.

use std::sync::Arc;

use bentpipe_base::Duration;

use crate::emission::Emission;

/// Error in a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceError {
    /// A line without a size.
    #[error(
        "line {line}: found `{found}`, accepted: a frame size in bytes of at least 1, such as `2927` or `I 2927`"
    )]
    Line {
        /// Line number from 1.
        line: usize,
        /// Content of the line.
        found: String,
    },
    /// The trace has no frame.
    #[error("no frames, accepted: one frame size in bytes on each line")]
    Empty,
}

/// Recorded frames with size and stream each. The default has none.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Recording(Arc<[(u32, u8)]>);

impl Recording {
    /// Parses a trace.
    ///
    /// # Errors
    /// [`TraceError`] with the first line that holds no frame.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut frames = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let frame = frame(line);
            frames.push(frame.ok_or_else(|| TraceError::Line { line: index + 1, found: line.to_owned() })?);
        }
        if frames.is_empty() { Err(TraceError::Empty) } else { Ok(Self(frames.into())) }
    }

    /// Returns the mean frame size in bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.0.iter().map(|(bytes, _)| f64::from(*bytes)).sum::<f64>() / self.0.len() as f64
    }
}

fn frame(line: &str) -> Option<(u32, u8)> {
    let words = line.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty());
    let bytes = words.clone().next_back()?.parse().ok().filter(|bytes| *bytes > 0)?;
    let stream = words.clone().find_map(|word| ["I", "P", "B"].iter().position(|kind| *kind == word));
    Some((bytes, stream.unwrap_or(0) as u8))
}

/// Recording during playback.
#[derive(Clone, Debug)]
pub struct Frames {
    recording: Recording,
    frames_per_s: f64,
    repeat: bool,
    sent: u64,
}

impl Frames {
    /// Starts at the first frame with `frames_per_s` (above zero); restarts after the last frame if `repeat`.
    pub fn new(recording: Recording, frames_per_s: f64, repeat: bool) -> Self {
        Self { recording, frames_per_s, repeat, sent: 0 }
    }

    /// Returns the next frame; `None` after the last of a recording without repetition.
    pub fn next_emission(&mut self) -> Option<Emission> {
        let frames = &self.recording.0;
        let length = frames.len() as u64;
        if length == 0 || (self.sent >= length && !self.repeat) {
            return None;
        }
        let (bytes, stream) = frames[(self.sent % length) as usize];
        let at = Duration::from_secs_f64(self.sent as f64 / self.frames_per_s);
        self.sent += 1;
        Some(Emission { at, bytes, stream })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stand_alone_or_behind_other_columns() {
        let recording = Recording::parse("# a film\n1 I 0 3000\n2, B, 400\n\n500\n").unwrap();
        assert_eq!(*recording.0, [(3000, 0), (400, 2), (500, 0)]);
        let mut frames = Frames::new(recording.clone(), 25.0, true);
        let fourth = (0..4).filter_map(|_| frames.next_emission()).last().unwrap();
        assert_eq!(fourth, Emission { at: Duration::from_millis(120), bytes: 3000, stream: 0 });
        let once = Frames::new(recording, 25.0, false);
        assert_eq!(
            std::iter::successors(Some(once), |f| {
                let mut f = f.clone();
                f.next_emission().map(|_| f)
            })
            .count(),
            4
        );
    }

    #[test]
    fn what_is_no_frame_is_refused_with_its_line() {
        let error = Recording::parse("10\n20\nsize\n").unwrap_err();
        assert!(error.to_string().starts_with("line 3: found `size`, accepted: a frame size"), "{error}");
        assert!(Recording::parse("0").is_err());
        assert_eq!(Recording::parse("# nothing"), Err(TraceError::Empty));
    }
}
