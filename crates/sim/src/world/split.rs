//! Splits flows into legs at the proxies on their path.

use bentpipe_base::Duration;
use bentpipe_scenario::{FlowGroup, NodeId, Topology};
use bentpipe_tcp::Stats;

use crate::BuildError;
use crate::app::flow::Flow;
use crate::host::proxy::Leg;
use crate::packet::handle::Label;
use crate::world::{World, with_receiver_half};

impl World {
    /// Splits the flow that was added last at the proxies on its path.
    pub fn split(&mut self, topology: &mut Topology<'_>, group: &FlowGroup) -> Result<(), BuildError> {
        let flow = self.applications.flows.len() - 1;
        // A proxy that cannot read a SYN cannot answer it, and cannot create segments that the ends would accept.
        if self.hosts.proxies.is_empty() || group.esp.is_some() {
            return Ok(());
        }
        let Flow { routes, nodes: [from, to], .. } = self.applications.flows[flow];
        let passed = self.network.routes.links_from(routes[0], from).into_iter();
        let heads = passed.map(|link| self.network.routes.head(link));
        let proxy_at = |node| self.hosts.proxies.iter().position(|proxy| proxy.node == node);
        let passed: Vec<usize> = heads.filter_map(proxy_at).collect();
        if passed.is_empty() {
            return Ok(());
        }
        let name = self.applications.flows[flow].name(group);
        let first = self.hosts.legs.len() as u32;
        let at_proxies = passed.iter().map(|&proxy| self.hosts.proxies[proxy].node);
        let stops: Vec<NodeId> = [from].into_iter().chain(at_proxies).chain([to]).collect();
        let mut parts = Vec::new();
        for stops in stops.windows(2) {
            let routes = [
                self.network.add_route(topology, name, (stops[0], stops[1]))?,
                self.network.add_route(topology, name, (stops[1], stops[0]))?,
            ];
            parts.push((routes, self.delay_there_and_back(routes, [stops[0], stops[1]])));
        }
        let mut sender = self.applications.flows[flow].configs[0].clone();
        let receiver = self.applications.flows[flow].configs[1].clone();
        for (part, stops) in stops.windows(2).enumerate() {
            let routes = parts[part].0;
            // The satellite is where the way is longer.
            let of = |proxy: usize, part: usize| {
                let other = if part == proxy { part + 1 } else { part - 1 };
                let is_satellite = (parts[part].1, part) > (parts[other].1, other);
                self.hosts.proxies[passed[proxy]].side(is_satellite, group)
            };
            let receives = if part < passed.len() { of(part, part).0 } else { receiver.clone() };
            if part == 0 {
                let flow = &mut self.applications.flows[flow];
                (flow.routes, flow.nodes) = (routes, [stops[0], stops[1]]);
                flow.configs[1] = with_receiver_half(&receives, &sender);
                continue;
            }
            let (onward, cc) = of(part - 1, part);
            sender = self.remembering(&onward, (stops[0], stops[1]));
            let receives = if part == passed.len() && group.plain_receiver {
                receives
            } else {
                with_receiver_half(&receives, &sender)
            };
            let configs = [sender.clone(), receives];
            let proxy = passed[part - 1];
            let name = format!("{name}.{}", self.hosts.proxies[proxy].name);
            let leg = Leg {
                proxy: proxy as u32,
                cc,
                configs,
                routes,
                labels: Label::pair(&name, [from, to]),
                nodes: [stops[0], stops[1]],
                gone: Stats::default(),
                gone_srtt: None,
                name,
            };
            self.hosts.legs.push(leg);
        }
        self.hosts.legs_of[flow] = first..self.hosts.legs.len() as u32;
        Ok(())
    }

    /// Propagation delay over two routes; the longest there is if they lead through a constellation.
    fn delay_there_and_back(&self, routes: [u32; 2], ends: [NodeId; 2]) -> Duration {
        let [there, back] =
            [(routes[0], ends), (routes[1], [ends[1], ends[0]])].map(|(route, [from, to])| {
                let links = self.network.routes.links_from(route, from);
                let arrives = links.last().is_some_and(|link| self.network.routes.head(*link) == to);
                let delays = links.iter().map(|link| self.network.routes.graph.delay_one_way(*link));
                if arrives { delays.fold(Duration::ZERO, |sum, delay| sum + delay) } else { Duration::MAX }
            });
        there + back
    }
}
