//! The configuration of a proxy on a real link: a TOML file in the same words and units as a scenario.

mod codec;
mod describe;
mod model;

pub use crate::split::{Datapath, Opening, Side, Split};
pub use model::{
    Class, Deployment, Interfaces, Limits, Match, Opened, Opener, PortRange, Prefix, Watch, Workings,
    interface_fits,
};
