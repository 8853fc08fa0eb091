//! `send` and `receive` over QUIC: the stack `noq-proto` with Bentpipe's congestion control, over a UDP socket of the kernel.

mod certificate;
mod live;
mod options;
mod qlog;
mod receive;
mod send;
mod wire;

pub use receive::receive;
pub use send::send;

use std::io;
use std::time::Duration;

use crate::failure::Failure;

/// Time for which the peers' last packets are answered before the program ends.
const FAREWELL: Duration = Duration::from_millis(300);

fn socket_failed(error: io::Error) -> Failure {
    Failure::Work(format!("the UDP socket failed: {error}"))
}
