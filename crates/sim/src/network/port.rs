//! Ports: where packets of other logical processes come in.

use std::collections::VecDeque;

use bentpipe_base::Instant;

use crate::packet::handle::PacketHandle;

/// The far end of a shared link.
#[derive(Debug, Default)]
pub(crate) struct Port {
    /// Packets that will arrive, and when, in order.
    pub coming: VecDeque<(Instant, PacketHandle)>,
}
