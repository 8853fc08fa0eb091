//! Scenarios: TOML files with units for all quantities, read into typed and validated worlds.
//!
//! [`load`] reads a built-in scenario or a file into a [`Scenario`]; a [`Draft`] can still be changed by the command
//! line. Reading order: `model` (the typed result), `form` (description of a table for reading and showing), `describe`
//! (reference of the file format), `check` (consistency), `topology` (nodes, links and shortest routes), `routing`
//! (routes that change).
//!
//! `examples/show.rs` reads a scenario, changes it and prints it.

mod algorithm;
mod buffer;
mod builtin;
mod check;
mod column;
mod connection;
pub mod deployment;
mod describe;
mod draft;
mod draw;
mod embedded;
mod error;
mod file;
mod form;
mod kinds;
mod loss_rate;
mod meanings;
mod measured;
mod members;
mod model;
mod network;
mod parameters;
mod parse;
pub mod reference;
mod routing;
mod series;
mod shared;
mod show;
mod sky;
mod split;
mod suggest;
mod topology;
mod tree;
mod unit;

pub use algorithm::{
    StackControl, algorithm_names, bring_algorithms, own_algorithms, registered_algorithms, resolve_cc,
    stack_control, stack_controls,
};
pub use builtin::{Summary, builtin, builtin_text, list, load};
pub use check::{LEAST_QUIC_PACKET, LEAST_QUIC_WINDOW};
pub use connection::{changed_config, connection_config};
pub use draft::Draft;
pub use error::{Error, Mistake, Place};
pub use file::{FilesGiven, FilesRead, read_text};
pub use kinds::{TRAFFIC_KINDS, medium_kinds, node_kinds};
pub use members::{LinkId, Name, NodeId};
pub use model::{
    Connect, Draws, Esp, FlowGroup, Idle, LinkGroup, NodeGroup, NodeKind, ProxyConfig, Radio, Reveals,
    Routing, Scenario, Streaming, Traffic, Transport,
};
pub use routing::{NextHop, RoutingTable};
pub use series::{Deliveries, Recordings, Repeat, Series};
pub use shared::shared_channel;
pub use sky::{
    ConstellationGroup, Crossing, Entry, Holder, InFlight, Landings, Links, LinksFile, Moment, Onward,
    Orbits, Position, SkyLink, SkyLinks, SkyNode, SkyPath, SkyPlan, Turn, Way, sky_as_links, sky_paths,
};
pub use split::{Datapath, Opening, Side, Split};
pub use suggest::did_you_mean;
pub use topology::{Edge, Graph, Hop, NOWHERE, Node, THROUGH_SKY, Topology, TopologyError, Tree, initial};
pub use unit::read_bytes;
