//! `send` and `receive` over QUIC in a build without its stack.

use crate::absent;
use crate::failure::Failure;
use crate::transfer_args::{ReceiveArgs, SendArgs};

/// Refuses the transfer: this build has no stack for it.
pub fn send(_: &SendArgs) -> Result<(), Failure> {
    Err(absent::failure("`--transport quic`", "quic"))
}

/// Refuses the transfer: this build has no stack for it.
pub fn receive(_: &ReceiveArgs) -> Result<(), Failure> {
    Err(absent::failure("`--transport quic`", "quic"))
}
