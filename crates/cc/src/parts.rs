//! Parts that several algorithms share.

pub(crate) mod bandwidth;
pub(crate) mod base_rtt;
pub(crate) mod beside_data;
pub(crate) mod deliveries;
pub(crate) mod epoch;
pub(crate) mod exchange;
pub(crate) mod fine_timeout;
pub(crate) mod grid;
pub(crate) mod mode;
pub(crate) mod notices;
pub(crate) mod pair;
pub(crate) mod plateau;
pub(crate) mod probe_peer;
pub(crate) mod probe_train;
pub(crate) mod prober;
pub(crate) mod round_pipe;
pub(crate) mod spike;
pub(crate) mod windowed;
