//! The holes of a best-effort receiver.

use std::collections::VecDeque;

use bentpipe_base::{Instant, SackRange};

/// Holes of a best-effort receiver: the present one, and those skipped.
#[derive(Debug)]
pub(super) struct Gaps {
    /// `nxt` before the present hole; `since` is the time of its detection.
    pub waits_at: u64,
    pub since: Instant,
    /// Skipped holes not yet reported to the application.
    pub unannounced: VecDeque<SackRange>,
    /// Skipped bytes not yet read.
    pub unread: u64,
}
