//! The window laws of the kernel's programs (`bpf/law`), compiled for this machine: `bp_native_NAME_ack` and so on, see `native/law.c`.
//!
//! Only tests link this crate. They declare the functions that they call.
