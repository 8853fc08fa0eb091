//! Settings of a split-connection proxy, with the same keys in a scenario and on a real link.

mod describe;
mod model;

pub(crate) use describe::{CLIENT, KEYS, Purpose, split};
pub use model::{ClientPrefix, Datapath, Opening, RateLimit, Scope, Side, Split};
