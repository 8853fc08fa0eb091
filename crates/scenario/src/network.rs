//! Reachability of nodes. Hosts do not forward.

use std::collections::{HashMap, HashSet};

use crate::model::{NodeKind, Scenario};

/// A node, as its group and its index there.
pub(crate) type Hop<'a> = (&'a str, u32);

/// Reachability of nodes.
pub(crate) struct Network<'a> {
    /// Components of connected routers that each node belongs to or is linked to.
    components: HashMap<Hop<'a>, HashSet<usize>>,
    /// Pairs of hosts with a direct link.
    direct: HashSet<(Hop<'a>, Hop<'a>)>,
}

impl<'a> Network<'a> {
    /// Computes the reachability in a scenario whose links join existing nodes.
    pub fn of(scenario: &'a Scenario) -> Self {
        let neighbours = neighbours(scenario);
        let is_router =
            |node: &Hop<'_>| scenario.nodes.iter().any(|group| group.name == node.0 && group.kind.forwards());
        let routers = scenario.nodes.iter().filter(|group| group.kind.forwards());
        let routers = routers.flat_map(|group| (0..group.count).map(|i| (group.name.as_str(), i)));
        let mut components: HashMap<Hop<'a>, HashSet<usize>> = HashMap::new();
        for (component, start) in routers.enumerate() {
            let mut reached = vec![start];
            while let Some(node) = reached.pop() {
                let of_node = components.entry(node).or_default();
                // A router belongs to one component, which was explored from its first router.
                let explored = is_router(&node) && !of_node.is_empty();
                of_node.extend((!explored).then_some(component));
                if is_router(&node) && !explored {
                    reached.extend(neighbours.get(&node).into_iter().flatten());
                }
            }
        }
        let links = neighbours.iter().flat_map(|(node, others)| others.iter().map(|other| (*node, *other)));
        Self { direct: links.collect(), components }
    }

    /// True if `from` reaches `to`, over a direct link or through routers.
    pub fn connects(&self, from: Hop<'a>, to: Hop<'a>) -> bool {
        let shared = match (self.components.get(&from), self.components.get(&to)) {
            (Some(near), Some(far)) => !near.is_disjoint(far),
            _ => false,
        };
        from != to && (shared || self.direct.contains(&(from, to)))
    }
}

/// Returns the neighbours of each node.
fn neighbours(scenario: &Scenario) -> HashMap<Hop<'_>, Vec<Hop<'_>>> {
    let mut neighbours: HashMap<Hop<'_>, Vec<Hop<'_>>> = HashMap::new();
    let count =
        |name: &str| scenario.nodes.iter().find(|group| group.name == name).map_or(1, |group| group.count);
    let stations = || {
        let is_end = |kind: &NodeKind| matches!(kind, NodeKind::GroundStation(_) | NodeKind::Satellite(_));
        let stations = scenario.nodes.iter().filter(move |group| is_end(&group.kind));
        stations.map(|group| (group.name.as_str(), 0))
    };
    // A constellation connects all of its ground stations and satellites.
    for (near, far) in stations().flat_map(|near| stations().map(move |far| (near, far))) {
        neighbours.entry(near).or_default().extend((near != far).then_some(far));
    }
    for link in &scenario.links {
        let (near, far) = (count(&link.from), count(&link.to));
        for i in 0..near.max(far) {
            let (near, far) = ((link.from.as_str(), i % near), (link.to.as_str(), i % far));
            neighbours.entry(near).or_default().push(far);
            neighbours.entry(far).or_default().push(near);
        }
    }
    neighbours
}
