use bentpipe_base::Duration;

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
