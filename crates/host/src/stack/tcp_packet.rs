//! TCP segment before its assignment to a connection.

use bentpipe_wire::{Arrived, Header};

/// TCP segment as received.
#[derive(Clone, Copy)]
pub(super) struct TcpPacket<'a> {
    pub header: &'a Header,
    pub arrived: Arrived,
    pub payload: &'a [u8],
}
