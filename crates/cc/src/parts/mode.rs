//! How closely the schemes that send probes follow their papers.

use serde::{Deserialize, Serialize};

/// How literally to take the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// To the letter.
    Paper,
    /// Replies count only in the episode that asked, probes are bounded by the `max_probes` of the scheme and by the data that is
    /// left to send, the window at a loss by the flight, and the burst at the end of a recovery is spaced.
    Safe,
}
