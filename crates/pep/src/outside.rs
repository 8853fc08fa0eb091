//! What other programs do to the rules, routes and settings of the proxy while it runs.
//!
//! A reload of a firewall may remove all tables of the packet filter. The start of a network manager may remove rules of policy routing.
//! The kernel reports a change; then the proxy compares what is there with what it installed.

use std::fs;
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bentpipe_scenario::deployment::{Deployment, interface_fits};
use bentpipe_system::{IP, NFT};
use netlink_sys::Socket;
use netlink_sys::constants::{NETLINK_NETFILTER, NETLINK_ROUTE};

use crate::early_demux;
use crate::engine;
use crate::error::Error;
use crate::marks::Marks;
use crate::queue;
use crate::routes::{self, FAMILIES};
use crate::rules::{self, Target};
use crate::shared::Shared;

/// Multicast group of netlink for changes of nftables (`NFNLGRP_NFTABLES`).
const PACKET_FILTER: u32 = 7;
/// Groups of devices, IPv4 routes, IPv4 rules, IPv6 routes and IPv6 rules (`RTNLGRP_LINK` and so on).
const ROUTING: [u32; 5] = [1, 7, 8, 11, 19];
/// Interval of comparisons without a report of the kernel (chosen).
const INTERVAL: Duration = Duration::from_secs(5);

/// The installed rules, and sockets that report changes.
pub(crate) struct Outside {
    target: Target,
    /// The value of `tcp_early_demux` before any proxy ran.
    before: String,
    sockets: Vec<Socket>,
    table: String,
    routes: String,
    queues: String,
    compared: Instant,
}

/// Result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// Everything is as it was installed.
    Intact,
    /// Something was missing, and is back.
    Restored,
}

impl Outside {
    /// Installs everything, and listens for changes. The rules divert no SYN yet.
    pub fn install(deployment: &Deployment, target: Target, before: String) -> Result<Self, Error> {
        let failed = || Error::at("netlink");
        let listen = |protocol, groups: &[u32]| {
            let mut socket = Socket::new(protocol)?;
            socket.bind_auto()?;
            groups.iter().try_for_each(|group| socket.add_membership(*group))?;
            socket.set_non_blocking(true)?;
            io::Result::Ok(socket)
        };
        let sockets = vec![
            listen(NETLINK_NETFILTER, &[PACKET_FILTER]).map_err(failed())?,
            listen(NETLINK_ROUTE, &ROUTING).map_err(failed())?,
        ];
        let (table, routes, queues) = (String::new(), String::new(), String::new());
        let mut outside = Self { target, before, sockets, table, routes, queues, compared: Instant::now() };
        outside.install_routes(deployment)?;
        outside.install_rules(deployment, false)?;
        outside.install_queues(deployment);
        Ok(outside)
    }

    fn install_routes(&mut self, deployment: &Deployment) -> Result<(), Error> {
        let Target { slot, ports } = self.target;
        let threads = engine::range(slot, engine::threads(deployment));
        routes::install(Marks::of(deployment), slot, ports.v6.is_some(), threads)?;
        self.routes = routes::state(self.target.slot);
        Ok(())
    }

    /// Installs the rules of the packet filter. They divert SYNs of the classes only if `diverting`.
    pub fn install_rules(&mut self, deployment: &Deployment, diverting: bool) -> Result<(), Error> {
        rules::install(deployment, self.target, &self.before, diverting)?;
        early_demux::switch_off()?;
        self.table = self.present_table();
        Ok(())
    }

    /// Sets the queues of the satellite interfaces as configured.
    pub fn install_queues(&mut self, deployment: &Deployment) {
        queue::install(deployment, self.target.slot);
        self.queues = queue::state(deployment);
    }

    fn present_table(&self) -> String {
        let arguments = ["-s", "-t", "list", "table", "inet", self.target.slot.table()];
        NFT.run(&arguments, "").unwrap_or_default()
    }

    /// True if a comparison is due without a report of the kernel.
    pub fn is_due(&self) -> bool {
        self.compared.elapsed() >= INTERVAL
    }

    /// True if the kernel reported a change since the last call.
    pub fn has_heard(&self) -> bool {
        let mut told = false;
        let mut buffer = Vec::with_capacity(64 << 10);
        for socket in &self.sockets {
            loop {
                buffer.clear();
                match socket.recv(&mut buffer, 0) {
                    Ok(_) => told = true,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // Reports of the kernel were lost.
                    Err(_) => {
                        told = true;
                        break;
                    }
                }
            }
        }
        told
    }

    /// Compares the present rules with the installed ones, and installs missing ones.
    pub fn compare(&mut self, deployment: &Deployment, diverting: bool) -> Result<Found, Error> {
        self.compared = Instant::now();
        let mut found = Found::Intact;
        if routes::state(self.target.slot) != self.routes {
            self.install_routes(deployment)?;
            found = Found::Restored;
        }
        if self.present_table() != self.table || early_demux::is_on() {
            self.install_rules(deployment, diverting)?;
            found = Found::Restored;
        }
        // A proxy that only finishes its connections leaves the queue to a newer one.
        if diverting && queue::state(deployment) != self.queues {
            self.install_queues(deployment);
        }
        Ok(found)
    }
}

/// Returns the rules of other programs in the packet filter, without their counters.
pub(crate) fn rules_of_others() -> String {
    let text = NFT.run(&["-s", "-t", "list", "ruleset"], "").unwrap_or_default();
    let mut others = String::new();
    let mut is_own = false;
    for line in text.lines() {
        if line.starts_with("table ") {
            is_own = line.starts_with("table inet bentpipe-");
        }
        if !is_own {
            others += line;
        }
    }
    others
}

/// Notes for each side if routes depend on the arrival interface of its packets.
pub(crate) fn note_routes_by_arrival(shared: &Shared) {
    let deployment = shared.deployment();
    let interfaces = &deployment.interfaces;
    let rules = FAMILIES.map(|family| IP.run(&[family, "rule", "show"], "").unwrap_or_default()).concat();
    for (side, patterns) in [&interfaces.clients, &interfaces.satellite].into_iter().enumerate() {
        let is_of_side = |line: &str| {
            let name = line.split(" iif ").nth(1).and_then(|rest| rest.split_whitespace().next());
            name.is_some_and(|name| patterns.iter().any(|pattern| interface_fits(pattern, name)))
        };
        shared.routes_by_arrival[side].store(rules.lines().any(is_of_side), Ordering::Relaxed);
    }
}

/// Returns the bridge of which an interface is a port.
pub(crate) fn bridge_of(name: &str) -> Option<String> {
    let master = fs::read_link(format!("/sys/class/net/{name}/brport/bridge")).ok()?;
    Some(master.file_name()?.to_string_lossy().into_owned())
}
