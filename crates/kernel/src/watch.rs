//! Connections of this network namespace, with the state of their algorithms.

use std::collections::HashMap;
use std::io::Read;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use libbpf_rs::{Iter, Link, Object};
use serde::Serialize;

use crate::catalogue::CONTROLS;
use crate::error::Error;
use crate::objects;
use crate::state::Layout;

/// Size of `struct bp_line` of `bpf/watch.bpf.c`.
const LINE: usize = 216;

/// State of a connection at one time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Connection {
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// Name of the congestion control in the kernel.
    pub control: String,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments; `None` before the first reduction.
    pub ssthresh: Option<u32>,
    /// Pacing rate in bits per second, if segments are paced.
    pub pacing_bps: Option<u64>,
    /// Smoothed round-trip time in milliseconds.
    pub srtt_ms: f64,
    /// minRTT in milliseconds.
    pub min_rtt_ms: Option<f64>,
    /// In-flight segments.
    pub in_flight: u32,
    /// Retransmitted segments.
    pub retransmitted: u32,
    /// Acknowledged payload bytes.
    pub acked_bytes: u64,
    /// State of loss recovery: `open`, `disorder`, `reduction`, `recovery` or `loss`.
    pub recovery: &'static str,
    /// State of the algorithm, keyed by the names in its program; empty for algorithms of others.
    pub state: Vec<(String, f64)>,
}

impl Connection {
    /// True if the algorithm is one of Bentpipe's.
    pub fn is_ours(&self) -> bool {
        self.control.starts_with("bp_")
    }
}

/// The iterator program, which writes a line per connection when it is read.
#[derive(Debug)]
pub struct Watch {
    link: Link,
    layouts: HashMap<&'static str, Layout>,
    /// Keeps the program in the kernel.
    _object: Object,
}

impl Watch {
    /// Loads the program, which is unloaded when the value is dropped.
    ///
    /// # Errors
    /// [`Error::Missing`] or [`Error::Work`], as for loading a control.
    pub fn new() -> Result<Self, Error> {
        let object = objects::give("watch", objects::open("watch")?)?;
        let program = object.progs_mut().next().expect("the object has one program");
        let link = program.attach().map_err(|error| objects::explain("watch", &error))?;
        let layouts = CONTROLS.iter().map(|control| (control.kernel_name, Layout::of(control))).collect();
        Ok(Self { link, layouts, _object: object })
    }

    /// Returns all present connections.
    ///
    /// # Errors
    /// [`Error::Work`] if the kernel's list ends early.
    pub fn connections(&self) -> Result<Vec<Connection>, Error> {
        let broken =
            |error: &dyn std::fmt::Display| Error::Work(format!("cannot read the connections: {error}"));
        let mut bytes = Vec::new();
        let mut lines = Iter::new(&self.link).map_err(|error| broken(&error))?;
        lines.read_to_end(&mut bytes).map_err(|error| broken(&error))?;
        Ok(bytes.chunks_exact(LINE).map(|line| self.connection(line)).collect())
    }

    fn connection(&self, line: &[u8]) -> Connection {
        let u32_at = |at: usize| u32::from_ne_bytes(line[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_ne_bytes(line[at..at + 8].try_into().expect("eight bytes"));
        let port_at = |at: usize| [line[at], line[at + 1]];
        let state = &line[24..128];
        let name = &line[160..176];
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let control = String::from_utf8_lossy(&name[..length]).into_owned();
        let v4 = u16::from_ne_bytes(port_at(204)) == 2;
        let rate = u64_at(8);
        let least = u32_at(188);
        let ssthresh = u32_at(180);
        Connection {
            local: SocketAddr::new(address(&line[128..144], v4), u16::from_ne_bytes(port_at(206))),
            remote: SocketAddr::new(address(&line[144..160], v4), u16::from_be_bytes(port_at(208))),
            cwnd: u32_at(176),
            ssthresh: (ssthresh < 0x7fff_ffff).then_some(ssthresh),
            pacing_bps: (rate > 0 && rate < 1 << 48).then(|| rate * 8),
            srtt_ms: f64::from(u32_at(184)) / 1000.0,
            min_rtt_ms: (least != u32::MAX).then(|| f64::from(least) / 1000.0),
            in_flight: u32_at(192),
            retransmitted: u32_at(196),
            acked_bytes: u64_at(16),
            recovery: ["open", "disorder", "reduction", "recovery", "loss"]
                .get(usize::from(line[210]))
                .unwrap_or(&"unknown"),
            state: self.layouts.get(&*control).map(|layout| layout.read(state)).unwrap_or_default(),
            control,
        }
    }
}

fn address(bytes: &[u8], v4: bool) -> IpAddr {
    let bytes: [u8; 16] = bytes.try_into().expect("sixteen bytes");
    match v4 {
        true => IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]]),
        // Shows IPv4 over an IPv6 socket as IPv4.
        false => Ipv6Addr::from(bytes).to_canonical(),
    }
}
