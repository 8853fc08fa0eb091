//! Content of each table of a scenario: the reference of the file format.

mod access;
mod cc;
mod constellation;
mod ends;
mod esp;
mod jitter;
mod link;
mod loss;
mod media;
mod node;
mod proxy;
mod queue;
mod radio;
mod recorded;
mod schedule;
mod tcp;
mod traffic;
mod transport;
mod world;

pub(crate) use cc::read_parameters;
pub(crate) use ends::{connection_end, sender_tcp};
pub(crate) use tcp::RECOVERIES;
pub(crate) use tcp::resume;
pub(crate) use traffic::name as kind_of;
pub(crate) use transport::TRANSPORTS;
pub(crate) use world::world;
