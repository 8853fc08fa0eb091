//! Ephemeral ports for connections opened by a stack.

/// First ephemeral port (RFC 6335).
const FIRST: u16 = 49_152;

/// Ephemeral ports in endless rotation.
pub(super) struct EphemeralPorts {
    last: u16,
}

impl EphemeralPorts {
    /// Number of ephemeral ports.
    pub const COUNT: usize = (u16::MAX - FIRST) as usize;

    /// Starts at a port that is hard to guess (RFC 6056).
    pub fn new(key: u128) -> Self {
        Self { last: FIRST + (key >> 64) as u16 % (u16::MAX - FIRST) }
    }
}

impl Iterator for EphemeralPorts {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        self.last = self.last.checked_add(1).unwrap_or(FIRST);
        Some(self.last)
    }
}
