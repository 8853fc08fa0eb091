//! The holes of a best-effort receiver.

use std::collections::VecDeque;

use bentpipe_base::{Instant, SackRange};

/// Holes of a best-effort receiver: the one that it waits for, and those that it skipped.
#[derive(Debug)]
pub(super) struct Gaps {
    /// `nxt` in front of the present hole; `since` is when the hole was first seen.
    pub waits_at: u64,
    pub since: Instant,
    /// Skipped holes that the application has not been told of.
    pub unannounced: VecDeque<SackRange>,
    /// Skipped bytes that have not been read yet.
    pub unread: u64,
}
