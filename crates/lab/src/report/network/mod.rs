//! The picture of a scenario: node groups as boxes, link groups as lines, what they are written beside them.

mod layout;
mod words;

use bentpipe_scenario::{LinkGroup, Radio, Scenario, TopologyError};
use serde::Serialize;

use self::layout::{Layout, Point, Run, Size, Wire, lay_out};

/// A picture of a network, in pixels.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Network {
    width: f64,
    height: f64,
    boxes: Vec<Box>,
    lines: Vec<Line>,
    texts: Vec<Text>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Box {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    /// What it is, for its colour.
    kind: &'static str,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Line {
    path: String,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Text {
    x: f64,
    /// Of the base line.
    y: f64,
    text: String,
    strong: bool,
}

/// Of a line of text.
const LINE_HEIGHT: f64 = 16.0;
/// Width of a character, large enough for any font without serifs at the size of the style sheet.
const CHARACTER: f64 = 6.6;
/// Between the edge of a box and its text.
const PADDING: f64 = 10.0;
/// Between a line and its texts.
const CLEAR: f64 = 7.0;

/// A node group or a constellation.
struct Node {
    name: String,
    kind: &'static str,
    lines: Vec<String>,
}

/// A link group: the two nodes, and what is written above and below the line if it is drawn from the first to the second.
struct Link {
    ends: [usize; 2],
    name: String,
    /// From near to far and from far to near; one only if they are the same.
    sides: [Vec<String>; 2],
}

impl Network {
    /// The picture of a scenario.
    ///
    /// # Errors
    /// If its satellites cannot fly.
    pub fn of(scenario: &Scenario) -> Result<Self, TopologyError> {
        let nodes = nodes(scenario)?;
        let links = links(scenario);
        let sizes: Vec<Size> = nodes.iter().map(Node::size).collect();
        let wires: Vec<Wire> = links.iter().map(Link::wire).collect();
        let layout = lay_out(&sizes, &wires, &sources(scenario));
        Ok(Self::drawn((&nodes, &sizes), &links, &layout))
    }

    fn drawn((nodes, sizes): (&[Node], &[Size]), links: &[Link], layout: &Layout) -> Self {
        let mut network = Self {
            width: layout.size.width.ceil(),
            height: layout.size.height.ceil(),
            boxes: Vec::new(),
            lines: Vec::new(),
            texts: Vec::new(),
        };
        for (index, node) in nodes.iter().enumerate() {
            let ((x, y), width) = (layout.corners[index], layout.widths[index]);
            let height = sizes[index].height;
            network.boxes.push(Box { x, y, width, height, kind: node.kind });
            let lines = std::iter::once(&node.name).chain(&node.lines);
            network.write((x + width / 2.0, y + PADDING), lines, true);
        }
        for (link, run) in links.iter().zip(&layout.wires) {
            network.lines.push(Line { path: path(&run.points) });
            let (above, below) = link.texts(run);
            let wire = link.wire();
            network.write((run.label.0, run.label.1 - wire.heights[0]), above.iter(), true);
            network.write((run.label.0, run.label.1 + CLEAR), below.iter(), false);
        }
        network
    }

    /// Writes lines below each other from `top` on.
    fn write<'a>(&mut self, (x, top): Point, lines: impl Iterator<Item = &'a String>, first_strong: bool) {
        for (index, text) in lines.enumerate() {
            let y = top + LINE_HEIGHT * (index as f64 + 0.75);
            self.texts.push(Text { x, y, text: text.clone(), strong: first_strong && index == 0 });
        }
    }
}

fn width_of<'a>(lines: impl Iterator<Item = &'a String>) -> f64 {
    lines.map(|line| line.chars().count() as f64 * CHARACTER).fold(0.0, f64::max)
}

impl Node {
    fn size(&self) -> Size {
        let width = width_of(std::iter::once(&self.name).chain(&self.lines));
        let lines = 1.0 + self.lines.len() as f64;
        Size { width: width + 2.0 * PADDING, height: lines * LINE_HEIGHT + 2.0 * PADDING }
    }
}

impl Link {
    /// Room for the texts, whichever way it is drawn.
    fn wire(&self) -> Wire {
        let height = |lines: usize| match lines {
            0 => CLEAR,
            lines => lines as f64 * LINE_HEIGHT + CLEAR,
        };
        let [near, far] = self.sides.each_ref().map(Vec::len);
        let (above, below) = if far == 0 { (near, 0) } else { (near.max(far), near.max(far)) };
        let lines = self.sides.iter().flatten().chain(std::iter::once(&self.name));
        // An arrow and a space stand before a line.
        let width = width_of(lines) + 2.0 * CHARACTER;
        Wire { ends: self.ends, width, heights: [height(1 + above), height(below)] }
    }

    /// What stands above the line and below it. What goes to the right stands above.
    fn texts(&self, run: &Run) -> (Vec<String>, Vec<String>) {
        let [near, far] = &self.sides;
        let with = |arrow: char, lines: &[String]| -> Vec<String> {
            let first = lines.iter().take(1).map(|line| format!("{arrow} {line}"));
            first.chain(lines.iter().skip(1).cloned()).collect()
        };
        let (right, left) = match (far.is_empty(), run.backwards) {
            (true, _) => (near.clone(), Vec::new()),
            (false, false) => (with('→', near), with('←', far)),
            (false, true) => (with('→', far), with('←', near)),
        };
        (std::iter::once(self.name.clone()).chain(right).collect(), left)
    }
}

/// `M` to the first point, bends and straight pieces by turns.
fn path(points: &[Point]) -> String {
    let mut text = String::new();
    for (index, &(x, y)) in points.iter().enumerate() {
        match (index, index % 4) {
            (0, _) => text.push_str(&format!("M{x:.1} {y:.1}")),
            (_, 1 | 3) => {
                let (before_x, before_y) = points[index - 1];
                let middle = f64::midpoint(before_x, x);
                text.push_str(&format!("C{middle:.1} {before_y:.1} {middle:.1} {y:.1} {x:.1} {y:.1}"));
            }
            _ => text.push_str(&format!("L{x:.1} {y:.1}")),
        }
    }
    text
}

fn nodes(scenario: &Scenario) -> Result<Vec<Node>, TopologyError> {
    let mut nodes: Vec<Node> = scenario
        .nodes
        .iter()
        .map(|group| Node {
            name: words::counted(&group.name, group.count),
            kind: match group.kind.name() {
                "host" => "host",
                "router" => "router",
                "ground-station" => "station",
                _ => "helper",
            },
            lines: words::node(scenario, group),
        })
        .collect();
    for group in &scenario.constellations {
        let constellation = group.name.clone();
        let satellites = group.fly().map_err(|error| TopologyError::Orbit { constellation, error })?;
        let lines = words::constellation(group, satellites.len());
        nodes.push(Node { name: group.name.clone(), kind: "sky", lines });
    }
    Ok(nodes)
}

fn links(scenario: &Scenario) -> Vec<Link> {
    let find = |name: &str| scenario.nodes.iter().position(|group| group.name == name);
    let mut links = Vec::new();
    for group in &scenario.links {
        let (Some(from), Some(to)) = (find(&group.from), find(&group.to)) else { continue };
        let count = scenario.nodes[from].count.max(scenario.nodes[to].count);
        let name = words::counted(&group.name, count);
        links.push(Link { ends: [from, to], name, sides: sides(group) });
    }
    for (number, group) in scenario.constellations.iter().enumerate() {
        let moving = Some("delay of the distance");
        let near = words::link(&group.up, &Radio::default(), moving);
        let far = words::link(&group.down, &Radio::default(), moving);
        let far = if near == far { Vec::new() } else { far };
        let stations = scenario.nodes.iter().enumerate();
        let stations = stations.filter(|(_, node)| matches!(node.kind.name(), "ground-station"));
        for (station, _) in stations {
            let ends = [station, scenario.nodes.len() + number];
            links.push(Link { ends, name: "ground".into(), sides: [near.clone(), far.clone()] });
        }
    }
    // A link from a node to itself has no place between two boxes, and carries nothing.
    links.retain(|link| link.ends[0] != link.ends[1]);
    links
}

fn sides(group: &LinkGroup) -> [Vec<String>; 2] {
    let near = words::link(&group.forward, &group.radio[0], None);
    let far = words::link(&group.reverse, &group.radio[1], None);
    let far = if near == far { Vec::new() } else { far };
    [near, far]
}

/// Where the picture begins: who sends first, and all who send from the same side.
fn sources(scenario: &Scenario) -> Vec<usize> {
    let (mut sources, mut sinks) = (Vec::new(), Vec::new());
    for flow in &scenario.flows {
        let find = |name: &str| scenario.nodes.iter().position(|group| group.name == name);
        let (Some(from), Some(to)) = (find(&flow.from), find(&flow.to)) else { continue };
        if !sinks.contains(&from) && !sources.contains(&to) {
            for (node, list) in [(from, &mut sources), (to, &mut sinks)] {
                if !list.contains(&node) {
                    list.push(node);
                }
            }
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_scenario::{builtin, list};

    #[test]
    fn every_built_in_scenario_has_a_picture_without_overlapping_texts() {
        for summary in list() {
            let network = Network::of(&builtin(&summary.name).unwrap()).unwrap();
            let half = |text: &Text| text.text.chars().count() as f64 * CHARACTER / 2.0;
            for (index, a) in network.texts.iter().enumerate() {
                assert!(a.x - half(a) >= 0.0 && a.x + half(a) <= network.width, "{}: {a:?}", summary.name);
                for b in &network.texts[..index] {
                    let apart =
                        (a.y - b.y).abs() >= LINE_HEIGHT - 0.1 || (a.x - b.x).abs() >= half(a) + half(b);
                    assert!(apart, "{}: {a:?} {b:?}", summary.name);
                }
            }
        }
    }

    #[test]
    fn a_dumbbell_reads_like_its_picture() {
        let network = Network::of(&builtin("geo-dumbbell").unwrap()).unwrap();
        let texts: Vec<&str> = network.texts.iter().map(|text| text.text.as_str()).collect();
        for wanted in [
            "sender × 20",
            "sends bulk × 20",
            "uplink × 20",
            "→ 10 Mbit/s, 273 ms",
            "threshold, 50 packets",
            "no loss",
            "← 10 Mbit/s, 273 ms",
            "drop-tail, 100000 packets",
        ] {
            assert!(texts.contains(&wanted), "{wanted} in {texts:?}");
        }
        assert_eq!((network.boxes.len(), network.lines.len()), (4, 3));
    }

    #[test]
    fn a_constellation_is_a_box_between_its_ground_stations() {
        let network = Network::of(&builtin("leo-iridium").unwrap()).unwrap();
        let texts: Vec<&str> = network.texts.iter().map(|text| text.text.as_str()).collect();
        for wanted in [
            "66 satellites in 6 planes",
            "780 km, 86.4°",
            "1.5 Mbit/s, delay of the distance",
            "37.9° N, 122.3° W",
        ] {
            assert!(texts.contains(&wanted), "{wanted} in {texts:?}");
        }
        assert!(network.boxes[0].x < network.boxes[2].x && network.boxes[2].x < network.boxes[1].x);
    }
}
