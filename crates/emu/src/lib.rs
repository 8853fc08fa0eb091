//! The emulator: runs any program over the links of a scenario, in real time.
//!
//! [`run`] puts a command into a network namespace whose only route is a [`Path`]: the links of the simulator, with
//! real packets. Reading order: `path` (the links), `frame` and `chain` (packets on the links, without a clock),
//! `driver` (the loop, with `device`, `coalescer`, `clock` and `poller`), `meter` (timing accuracy), `session` (the
//! command and its environment, with `namespace`, `host`, `cleanup`, `children` and `processes`; `join` for a further command). `record` measures
//! real paths and makes scenarios of them.

#[cfg(not(target_os = "linux"))]
compile_error!("the emulator is made of network namespaces and TUN devices of Linux");

mod capture;
mod chain;
mod children;
mod cleanup;
mod clock;
mod coalescer;
mod device;
mod driver;
mod error;
mod frame;
mod host;
mod http;
mod join;
mod meter;
mod names;
mod namespace;
mod path;
mod poller;
mod processes;
pub mod record;
mod session;
mod shared;

pub use error::Error;
pub use http::Remote;
pub use join::join;
pub use meter::{Fidelity, TOLERANCE, Verdict};
pub use path::{At, Channel, Hop, LARGEST_PACKET, LEAST_MTU_OF_IPV6, Override, Path, PathError};
pub use session::{EmulationConfig, Outcome, run};
pub use shared::{LinkState, Snapshot};
