//! Ports of connections that a stack opens.

/// First of the ports for outgoing connections (RFC 6335).
const FIRST: u16 = 49_152;

/// The ports for outgoing connections in turn, without end.
pub(super) struct EphemeralPorts {
    last: u16,
}

impl EphemeralPorts {
    /// How many there are.
    pub const COUNT: usize = (u16::MAX - FIRST) as usize;

    /// The first one must be hard to guess (RFC 6056).
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
