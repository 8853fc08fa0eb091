//! Scenarios: TOML files in which every quantity has a unit, read into typed and validated worlds.

mod model;

pub use model::{FlowGroup, Idle, LinkGroup, NodeGroup, NodeKind, Scenario, Traffic};
