//! The configuration of a proxy on a real link: a TOML file in the same words and units as a scenario.

mod codec;
mod describe;
mod model;

pub use model::{
    Class, Datapath, Deployment, Interfaces, Limits, Match, Opener, Opening, PortRange, Prefix, Side, Watch,
    Workings,
};
