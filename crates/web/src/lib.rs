//! The laboratory for a browser.
//!
//! [`answer`] takes a request as JSON and returns the answer as JSON. `bridge` passes both through the memory of WebAssembly. A page
//! starts one instance per run: a run that is no longer wanted ends with its instance.

mod answer;
#[cfg(target_family = "wasm")]
mod bridge;
mod compare;
mod knobs;
mod run;
mod sky;
mod tables;
mod watch;
mod world;

pub use answer::answer;
