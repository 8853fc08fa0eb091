use bentpipe_base::Duration;

/// Message of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Emission {
    /// Send time, relative to the start of the source.
    pub at: Duration,
    /// Payload bytes, at least one.
    pub bytes: u32,
    /// Stream for transports with several streams: in a video 0 for I frames, 1 for P, 2 for B; otherwise 0.
    pub stream: u8,
}
