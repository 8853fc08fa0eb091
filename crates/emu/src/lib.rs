//! The emulator: any program over the links of a scenario, in real time.
//!
//! [`run`] puts a command into a network namespace whose only way out is a [`Path`]: the same links that the simulator runs,
//! here given real packets. Reading order: `path` (which links), `frame` and `chain` (packets on them, still without a
//! clock), `driver` (the loop, with `device`, `clock` and `sleeper`), `meter` (how good it is), `session` (the command and
//! its world, with `namespace`, `host`, `janitor` and `children`).

#[cfg(not(target_os = "linux"))]
compile_error!("the emulator is made of network namespaces and TUN devices of Linux");

mod chain;
mod children;
mod clock;
mod device;
mod driver;
mod error;
mod frame;
mod host;
mod janitor;
mod meter;
mod names;
mod namespace;
mod path;
mod session;
mod sleeper;
mod tool;

pub use driver::Snapshot;
pub use error::Error;
pub use meter::{Fidelity, TOLERANCE, Verdict};
pub use path::{At, Hop, Path, PathError};
pub use session::{Ended, Wish, run};
