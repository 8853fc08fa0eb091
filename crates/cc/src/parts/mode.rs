//! Choice between the literal paper and a safe variant, for the schemes that send probes.

use serde::{Deserialize, Serialize};

/// Interpretation of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Follows the paper literally.
    Paper,
    /// Counts replies only in the episode of their probes. Bounds probes by the scheme's `max_probes` and by unsent data, and the
    /// window at a loss by the flight size. Paces the burst at the end of a recovery.
    Safe,
}
