//! What each table of a scenario contains: the reference of the file format.

mod access;
mod cc;
mod constellation;
mod ends;
mod link;
mod loss;
mod media;
mod node;
mod proxy;
mod queue;
mod radio;
mod schedule;
mod tcp;
mod traffic;
mod world;

pub(crate) use ends::{TRANSPORTS, connection_end, sender_tcp};
pub(crate) use tcp::RECOVERIES;
pub(crate) use traffic::name as kind_of;
pub(crate) use world::world;
