//! The proxy on a real link. It splits the TCP connections that its rules select; the kernel forwards everything else.
//!
//! Reading order:
//!
//! * `rules`: what the proxy installs in the packet filter and the routing tables;
//! * `interceptor`: who answers a SYN, and when;
//! * `half`: the halves of a connection, and who terminates them;
//! * `relay`, `connection` and `flow`: how bytes are moved between the halves;
//! * `daemon`: start and end.

#[cfg(not(target_os = "linux"))]
compile_error!("the proxy is made of transparent sockets and the packet filter of Linux");

mod bucket;
mod class;
mod conditions;
mod connection;
mod counters;
mod daemon;
mod doctor;
mod early_demux;
mod engine;
mod error;
mod flow;
mod half;
mod interceptor;
mod keepalive;
mod last_bytes;
mod lines;
mod marks;
mod metrics;
mod outside;
mod packet;
mod places;
mod privileges;
mod probe;
mod queue;
mod relay;
mod report;
mod reverse_path;
mod routes;
mod rules;
mod running;
mod shared;
mod sight;
mod slot;
mod sockets;
mod telemetry;
mod udp;
mod unkept;
mod watch;

pub use daemon::run;
pub use doctor::{Finding, State, examine};
pub use error::Error;
pub use report::{HalfReport, Report, UdpCount, UdpReport};
pub use rules::{check, clean};
pub use running::{Running, running};
pub use sockets::choose_congestion_control;

/// Returns the metrics of a proxy that has split no connection, in the text format of Prometheus: for the reference.
pub fn metrics() -> String {
    let metrics = metrics::Metrics::new();
    metrics.class("NAME");
    metrics.name_udp("NAME");
    metrics.text()
}
