use bentpipe_base::Instant;

/// Transmission of a packet, as input of loss models.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Start of transmission.
    pub start: Instant,
    /// End of transmission.
    pub end: Instant,
    /// Size on the wire in bytes.
    pub size: u32,
    /// True if the packet carries payload.
    pub is_data: bool,
}
