//! Bentpipe's algorithms in the Linux kernel: loads them as BPF programs, selects them for connections, and shows
//! their state.
//!
//! The programs are in `bpf/` at the root of the checkout. Their window laws, in `bpf/law/`, are C code that the
//! tests of this crate compare with the Rust rules. With the feature `bpf` the build compiles them with clang and
//! links libbpf. Without it this crate only lists the algorithms and checks the machine.

mod catalogue;
pub mod doctor;
mod error;
mod pins;

#[cfg(feature = "bpf")]
mod choose;
#[cfg(feature = "bpf")]
mod copies;
#[cfg(feature = "bpf")]
mod interface;
#[cfg(feature = "bpf")]
mod leftovers;
#[cfg(feature = "bpf")]
mod loader;
#[cfg(feature = "bpf")]
mod namespaces;
#[cfg(feature = "bpf")]
mod objects;
#[cfg(feature = "bpf")]
mod state;
#[cfg(feature = "bpf")]
mod unload;
#[cfg(feature = "bpf")]
pub mod watch;

pub use catalogue::{CONTROLS, Control, find};
#[cfg(feature = "bpf")]
pub use choose::{Match, Rule, rules, use_for};
pub use error::Error;
#[cfg(feature = "bpf")]
pub use leftovers::{clear, leftovers};
#[cfg(feature = "bpf")]
pub use loader::{Loaded, Options, load};
#[cfg(feature = "bpf")]
pub use namespaces::enter_mounts_of_machine;
pub use pins::{loaded, places};
#[cfg(feature = "bpf")]
pub use unload::{Unloaded, unload};

/// True if this build contains the programs.
pub const CAN_LOAD: bool = cfg!(feature = "bpf");
