//! Links between satellites that are given explicitly.

use core::ops::Range;

use bentpipe_base::{Instant, Rate};

use crate::planes::Satellite;

/// A link between two satellites that is given explicitly.
#[derive(Clone, PartialEq, Debug)]
pub struct Listed {
    /// Its ends.
    pub ends: [Satellite; 2],
    /// Its rate; `None` for the rate of all other links.
    pub rate: Option<Rate>,
    /// Time in which it exists. It is off outside, and while the Earth is between its ends.
    pub during: Range<Instant>,
}
