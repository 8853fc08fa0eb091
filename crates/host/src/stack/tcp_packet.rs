//! A TCP segment between its arrival and its connection.

use bentpipe_wire::{Arrived, Header};

/// A TCP segment as it came.
#[derive(Clone, Copy)]
pub(super) struct TcpPacket<'a> {
    pub header: &'a Header,
    pub arrived: Arrived,
    pub payload: &'a [u8],
}
