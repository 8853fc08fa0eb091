//! Clock that measures how long a run takes.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Clock of this machine. A page in a browser has none for Rust, so its runs have a `wall_s` of 0.
pub(crate) const CLOCK: Option<fn() -> Duration> =
    if cfg!(target_family = "wasm") { None } else { Some(since_first_use) };

fn since_first_use() -> Duration {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed()
}
