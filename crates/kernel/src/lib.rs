//! Bentpipe's algorithms in the Linux kernel: loads them as BPF programs, chooses them for connections, and shows what they do.
//!
//! The programs stand in `bpf/` at the root of the checkout; their window laws, under `bpf/law/`, are the same C that the tests of
//! this crate run beside the Rust rules. With the feature `bpf` the build compiles them with clang and links libbpf; without it this
//! crate knows the list of algorithms and says what the machine lacks.

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

/// Whether this build carries the programs.
pub const CAN_LOAD: bool = cfg!(feature = "bpf");
