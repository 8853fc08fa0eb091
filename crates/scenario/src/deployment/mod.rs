//! Configuration of a proxy on a real link: a TOML file with the keys and units of a scenario.

mod advice;
mod codec;
mod describe;
mod model;

pub use describe::keys;

pub use crate::split::{ClientPrefix, Datapath, Opening, RateLimit, Scope, Side, Split};
pub use model::{
    Class, Deployment, FqCodel, Interfaces, Limits, Match, Opened, Opener, PortRange, Prefix, Quic, Watch,
    Workings, interface_fits,
};
