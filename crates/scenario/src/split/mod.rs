//! What a split-connection proxy does with a connection, in the same words in a scenario and on a real link.

mod describe;
mod model;

pub(crate) use describe::{CLIENT, KEYS, Purpose, split};
pub use model::{ClientPrefix, Datapath, Opening, RateLimit, Scope, Side, Split};
