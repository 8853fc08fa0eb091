//! The kinds of middlebox and their parameters.

use bentpipe_base::Duration;

/// Name and meaning of every middlebox.
pub const MIDDLEBOXES: &[(&str, &str)] = &[
    (
        "ack-filter",
        "while the queue behind it is not empty, holds one bare ACK of each connection, the latest",
    ),
    ("ack-decimator", "lets one of so many bare ACKs pass"),
];

/// A middlebox and its parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MiddleboxConfig {
    /// Thins ACKs out where they would wait (RFC 3449 section 5.2.1).
    AckFilter,
    /// Thins ACKs out regularly (RFC 3449 section 5.2.2).
    AckDecimator(AckDecimatorConfig),
}

/// Parameters of an ACK decimator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckDecimatorConfig {
    /// One of so many bare ACKs passes, at least 1.
    pub every: u32,
    /// An ACK that was held back leaves after this time if none followed, so that the last ones of a window are not lost.
    pub patience: Duration,
}

impl Default for AckDecimatorConfig {
    /// Every fourth, and no ACK held back for longer than the longest delayed ACK of a host would be (RFC 9293 section 3.8.6.3).
    fn default() -> Self {
        Self { every: 4, patience: Duration::from_millis(500) }
    }
}

impl MiddleboxConfig {
    /// Name of the middlebox in [`MIDDLEBOXES`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::AckFilter => "ack-filter",
            Self::AckDecimator(_) => "ack-decimator",
        }
    }

    /// The middlebox of this name with its default parameters.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "ack-filter" => Self::AckFilter,
            "ack-decimator" => Self::AckDecimator(AckDecimatorConfig::default()),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_a_kind() {
        for (name, _) in MIDDLEBOXES {
            assert_eq!(MiddleboxConfig::from_name(name).map(|config| config.name()), Some(*name));
        }
        assert_eq!(MiddleboxConfig::from_name("host"), None);
    }
}
