//! Picture of a scenario: node groups as boxes, link groups as lines, with their texts.

mod layout;
mod words;

use bentpipe_scenario::{LinkGroup, NodeKind, Radio, Scenario, TopologyError};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

use self::layout::{Point, Run, Size, Wire, lay_out};
use super::environment;

/// The pictures of a network: from left to right, and from top to bottom for narrow windows.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Network {
    drawings: [Drawing; 2],
}

/// A picture of a network, in pixels.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Drawing {
    direction: Direction,
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
    /// Kind of the node, which sets its colour.
    kind: &'static str,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Line {
    path: String,
    /// Name of the link group or constellation.
    link: String,
    /// True if the path leads from the second end of the link to its first.
    backwards: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Text {
    x: f64,
    /// Height of the base line.
    y: f64,
    text: String,
    strong: bool,
    /// Begins at `x`; otherwise `x` is its middle.
    begins: bool,
}

/// Direction of a drawing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Right,
    Down,
}

impl Direction {
    /// Transforms coordinates of the layout, which leads to the right, to those of the page.
    fn place(self, (x, y): Point) -> Point {
        match self {
            Self::Right => (x, y),
            Self::Down => (y, x),
        }
    }

    /// A size in the layout, and the other way round.
    fn size(self, size: Size) -> Size {
        let (width, height) = self.place((size.width, size.height));
        Size { width, height }
    }

    /// Arrows for the direction of the drawing and for the opposite direction.
    fn arrows(self) -> [char; 2] {
        match self {
            Self::Right => ['→', '←'],
            Self::Down => ['↓', '↑'],
        }
    }
}

/// Height of a line of text.
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

/// A link group: the two nodes, and the texts above and below a line from the first to the second.
struct Link {
    ends: [usize; 2],
    /// Name of the link group or constellation.
    group: String,
    /// Name with the number of links.
    name: String,
    /// Texts of both directions; one only if they are the same.
    sides: [Vec<String>; 2],
}

impl Network {
    /// The picture of a scenario.
    ///
    /// # Errors
    /// If its satellites cannot fly.
    pub fn of(scenario: &Scenario) -> Result<Self, TopologyError> {
        let (nodes, links) = (nodes(scenario)?, links(scenario));
        let first = sources(scenario);
        let drawn = |direction| Drawing::of(direction, (&nodes, &links), &first);
        Ok(Self { drawings: [drawn(Direction::Right), drawn(Direction::Down)] })
    }

    /// The pictures as SVG.
    ///
    /// # Errors
    /// If the template cannot be filled.
    pub fn svg(&self) -> Result<String, minijinja::Error> {
        environment()?.get_template("network")?.render(context! { network => Serde(self) })
    }
}

impl Drawing {
    fn of(direction: Direction, (nodes, links): (&[Node], &[Link]), first: &[usize]) -> Self {
        let sizes: Vec<Size> = nodes.iter().map(|node| direction.size(node.size())).collect();
        let wires: Vec<Wire> = links.iter().map(|link| link.wire(direction)).collect();
        let layout = lay_out(&sizes, &wires, first);
        let page = direction.size(layout.size);
        let mut drawing = Self {
            direction,
            width: page.width.ceil(),
            height: page.height.ceil(),
            boxes: Vec::new(),
            lines: Vec::new(),
            texts: Vec::new(),
        };
        for (index, node) in nodes.iter().enumerate() {
            let corner = direction.place(layout.corners[index]);
            let size = direction.size(Size { width: layout.widths[index], height: sizes[index].height });
            drawing.enclose(node, corner, size);
        }
        for (link, run) in links.iter().zip(&layout.wires) {
            drawing.lines.push(Line {
                path: direction.path(&run.points),
                link: link.group.clone(),
                backwards: run.backwards,
            });
            drawing.describe(link, run);
        }
        drawing
    }

    fn enclose(&mut self, node: &Node, (x, y): Point, Size { width, height }: Size) {
        self.boxes.push(Box { x, y, width, height, kind: node.kind });
        let lines: Vec<&String> = std::iter::once(&node.name).chain(&node.lines).collect();
        let top = y + (height - lines.len() as f64 * LINE_HEIGHT) / 2.0;
        self.write(Place { x: x + width / 2.0, top, begins: false }, &lines, true);
    }

    /// Writes the texts of a link above and below its line, or all of them next to a line that leads down.
    fn describe(&mut self, link: &Link, run: &Run) {
        let (there, back) = link.texts(run, self.direction.arrows());
        let [there, back]: [Vec<&String>; 2] = [&there, &back].map(|lines| lines.iter().collect());
        let (x, y) = self.direction.place(run.label);
        match self.direction {
            Direction::Right => {
                let top = y - link.wire(self.direction).heights[0];
                self.write(Place { x, top, begins: false }, &there, true);
                self.write(Place { x, top: y + CLEAR, begins: false }, &back, false);
            }
            Direction::Down => {
                let lines: Vec<&String> = there.into_iter().chain(back).collect();
                let top = y - lines.len() as f64 * LINE_HEIGHT / 2.0;
                self.write(Place { x: x + CLEAR, top, begins: true }, &lines, true);
            }
        }
    }

    /// Writes lines below each other.
    fn write(&mut self, place: Place, lines: &[&String], first_strong: bool) {
        let Place { x, top, begins } = place;
        for (index, text) in lines.iter().enumerate() {
            let y = top + LINE_HEIGHT * (index as f64 + 0.75);
            self.texts.push(Text { x, y, text: (*text).clone(), strong: first_strong && index == 0, begins });
        }
    }
}

/// Position of lines of text: their centre or their beginning, and the top of the first.
struct Place {
    x: f64,
    top: f64,
    begins: bool,
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
    /// Returns the space for the texts, for this direction of the drawing.
    fn wire(&self, direction: Direction) -> Wire {
        let lines = self.sides.iter().flatten().chain(std::iter::once(&self.name));
        // An arrow and a space precede a line.
        let width = width_of(lines) + 2.0 * CHARACTER;
        let height = |lines: usize| match lines {
            0 => CLEAR,
            lines => lines as f64 * LINE_HEIGHT + CLEAR,
        };
        let [near, far] = self.sides.each_ref().map(Vec::len);
        match direction {
            Direction::Right => {
                let (above, below) = if far == 0 { (near, 0) } else { (near.max(far), near.max(far)) };
                Wire { ends: self.ends, width, heights: [height(1 + above), height(below)] }
            }
            Direction::Down => {
                Wire { ends: self.ends, width: height(1 + near + far), heights: [CLEAR, CLEAR + width] }
            }
        }
    }

    /// Returns the texts for the direction of the drawing and for the opposite direction.
    fn texts(&self, run: &Run, arrows: [char; 2]) -> (Vec<String>, Vec<String>) {
        let [near, far] = &self.sides;
        let with = |arrow: char, lines: &[String]| -> Vec<String> {
            let first = lines.iter().take(1).map(|line| format!("{arrow} {line}"));
            first.chain(lines.iter().skip(1).cloned()).collect()
        };
        let (there, back) = match (far.is_empty(), run.backwards) {
            (true, _) => (near.clone(), Vec::new()),
            (false, false) => (with(arrows[0], near), with(arrows[1], far)),
            (false, true) => (with(arrows[0], far), with(arrows[1], near)),
        };
        (std::iter::once(self.name.clone()).chain(there).collect(), back)
    }
}

impl Direction {
    /// `M` to the first point, then bends and straight pieces in turn.
    fn path(self, points: &[Point]) -> String {
        let written = |point: Point| {
            let (x, y) = self.place(point);
            format!("{x:.1} {y:.1}")
        };
        let mut text = String::new();
        for (index, &point) in points.iter().enumerate() {
            match (index, index % 4) {
                (0, _) => text.push_str(&format!("M{}", written(point))),
                (_, 1 | 3) => {
                    let before = points[index - 1];
                    let middle = f64::midpoint(before.0, point.0);
                    let turns = [(middle, before.1), (middle, point.1), point].map(written);
                    text.push_str(&format!("C{}", turns.join(" ")));
                }
                _ => text.push_str(&format!("L{}", written(point))),
            }
        }
        text
    }
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
                "ground-station" | "satellite" => "station",
                _ => "helper",
            },
            lines: words::node(scenario, group),
        })
        .collect();
    for group in &scenario.constellations {
        let constellation = group.name.clone();
        let satellites =
            group.fly(scenario.duration).map_err(|error| TopologyError::Orbit { constellation, error })?;
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
        links.push(Link { ends: [from, to], group: group.name.clone(), name, sides: sides(group) });
    }
    for (number, group) in scenario.constellations.iter().enumerate() {
        let moving = Some("delay of the distance");
        let near = words::link(&group.up, &Radio::default(), moving);
        let far = words::link(&group.down, &Radio::default(), moving);
        let far = if near == far { Vec::new() } else { far };
        for (node, of) in scenario.nodes.iter().enumerate() {
            let (name, sides) = match of.kind {
                NodeKind::GroundStation(_) => ("ground", [near.clone(), far.clone()]),
                NodeKind::Satellite(_) => ("on board", [Vec::new(), Vec::new()]),
                _ => continue,
            };
            let ends = [node, scenario.nodes.len() + number];
            links.push(Link { ends, group: group.name.clone(), name: name.into(), sides });
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

/// Returns the left-most nodes: the first sender, and all senders on its side.
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

    /// Left and right edge of a text.
    fn edges(text: &Text) -> (f64, f64) {
        let width = text.text.chars().count() as f64 * CHARACTER;
        let left = if text.begins { text.x } else { text.x - width / 2.0 };
        (left, left + width)
    }

    #[test]
    fn every_built_in_scenario_has_pictures_without_overlapping_texts() {
        for summary in list() {
            let network = Network::of(&builtin(&summary.name).unwrap()).unwrap();
            for drawing in &network.drawings {
                for (index, a) in drawing.texts.iter().enumerate() {
                    let (left, right) = edges(a);
                    assert!(left >= 0.0 && right <= drawing.width, "{}: {a:?}", summary.name);
                    for b in &drawing.texts[..index] {
                        let beside = right <= edges(b).0 || edges(b).1 <= left;
                        assert!(
                            beside || (a.y - b.y).abs() >= LINE_HEIGHT - 0.1,
                            "{}: {a:?} {b:?}",
                            summary.name
                        );
                    }
                }
            }
        }
    }

    /// A phone shows about 320 pixels without the margins of the page.
    #[test]
    fn a_dumbbell_fits_on_a_phone() {
        let [wide, narrow] = Network::of(&builtin("geo-dumbbell").unwrap()).unwrap().drawings;
        assert!(wide.width > 800.0 && narrow.width <= 320.0, "{} and {}", wide.width, narrow.width);
        let [sender, receiver, near, far] = [0, 1, 2, 3].map(|which| &narrow.boxes[which]);
        let path = [sender, near, far, receiver];
        assert!(path.is_sorted_by(|above, below| above.y + above.height < below.y), "{path:?}");
        let texts: Vec<&str> = narrow.texts.iter().map(|text| text.text.as_str()).collect();
        assert!(
            texts.contains(&"↓ 10 Mbit/s, 273 ms") && texts.contains(&"↑ 10 Mbit/s, 273 ms"),
            "{texts:?}"
        );
    }

    #[test]
    fn a_dumbbell_reads_like_its_picture() {
        let [network, _] = Network::of(&builtin("geo-dumbbell").unwrap()).unwrap().drawings;
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
        let [network, _] = Network::of(&builtin("leo-iridium").unwrap()).unwrap().drawings;
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
