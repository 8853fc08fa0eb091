use bentpipe_base::Instant;

/// The transmission of a packet, as losses see it.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Its beginning.
    pub start: Instant,
    /// Its end.
    pub end: Instant,
    /// Bytes on the wire.
    pub size: u32,
    /// True if the packet carries payload.
    pub is_data: bool,
}
