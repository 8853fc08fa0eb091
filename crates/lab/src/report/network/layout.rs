//! Positions of boxes and lines: columns from left to right along the path, and a lane for each line between two columns, so that no
//! two texts overlap (the layers of Sugiyama, Tagawa and Toda 1981, with labels that take space).

/// Size of a box.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Size {
    pub width: f64,
    pub height: f64,
}

/// A line between two boxes, and the space for its texts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wire {
    /// Two different boxes.
    pub ends: [usize; 2],
    pub width: f64,
    /// Heights of the texts above the line and below it.
    pub heights: [f64; 2],
}

/// A point, y downwards.
pub type Point = (f64, f64);

/// Positions of all boxes and lines.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    /// Upper left corners of the boxes.
    pub corners: Vec<Point>,
    /// Widths of the boxes: all in a column are as wide as the widest.
    pub widths: Vec<f64>,
    pub wires: Vec<Run>,
    pub size: Size,
}

/// Course of a line.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Ends of bends and straight pieces in turn: the line bends from `points[0]` to `points[1]`, runs straight to `points[2]`, and so
    /// on.
    pub points: Vec<Point>,
    /// Middle of the line between its texts.
    pub label: Point,
    /// True if the line is drawn from its second end to its first.
    pub backwards: bool,
}

/// Width of the strip between boxes and lanes in which lines bend.
const BEND: f64 = 26.0;
/// Between two boxes of a column.
const BOX_GAP: f64 = 26.0;
/// Between two lanes.
const LANE_GAP: f64 = 14.0;
/// Space of a line without texts.
const BARE: f64 = 10.0;

/// Item of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Item {
    Box(usize),
    /// A line passes between the boxes.
    Passing(usize),
}

/// Lays out boxes and lines, beginning with the boxes `first`, each named once.
pub fn lay_out(boxes: &[Size], wires: &[Wire], first: &[usize]) -> Layout {
    let order = visit(boxes.len(), wires, first);
    let ranks = ranks(&order, wires);
    let mut drawing = Drawing::new((boxes, wires), &order, &ranks);
    drawing.untangle();
    drawing.place();
    drawing.finish()
}

/// Returns the order in which a breadth-first walk from the boxes `first` reaches each box.
fn visit(boxes: usize, wires: &[Wire], first: &[usize]) -> Vec<usize> {
    let mut visited = first.to_vec();
    let mut next = 0;
    for lonely in 0..=boxes {
        while let Some(&here) = visited.get(next) {
            for wire in wires.iter().filter(|wire| wire.ends.contains(&here)) {
                let there = if wire.ends[0] == here { wire.ends[1] } else { wire.ends[0] };
                if !visited.contains(&there) {
                    visited.push(there);
                }
            }
            next += 1;
        }
        if lonely < boxes && !visited.contains(&lonely) {
            visited.push(lonely);
        }
    }
    let mut order = vec![0; boxes];
    visited.iter().enumerate().for_each(|(when, &which)| order[which] = when);
    order
}

/// Returns the two ends of a line, the one visited first at the beginning.
fn directed(order: &[usize], wire: &Wire) -> (usize, usize) {
    let [a, b] = wire.ends;
    if order[a] < order[b] { (a, b) } else { (b, a) }
}

/// Returns the column of each box, so that every line leads to the right. Boxes without a line from the left are as close to their
/// right neighbours as possible.
fn ranks(order: &[usize], wires: &[Wire]) -> Vec<usize> {
    let mut by_order: Vec<usize> = (0..order.len()).collect();
    by_order.sort_by_key(|&which| order[which]);
    let mut ranks = vec![0; order.len()];
    for &to in &by_order {
        let before = wires.iter().map(|wire| directed(order, wire)).filter(|(_, other)| *other == to);
        ranks[to] = before.map(|(from, _)| ranks[from] + 1).max().unwrap_or(0);
    }
    for &from in by_order.iter().rev() {
        let ends = || wires.iter().map(|wire| directed(order, wire));
        let after = ends().filter(|(other, _)| *other == from).map(|(_, to)| ranks[to]).min();
        if let Some(after) = after.filter(|_| !ends().any(|(_, other)| other == from)) {
            ranks[from] = after - 1;
        }
    }
    ranks
}

/// A piece of a line between two neighbouring columns: which line, and its places in both.
#[derive(Clone, Copy, Debug)]
struct Piece {
    wire: usize,
    left: Item,
    right: Item,
}

struct Drawing<'a> {
    boxes: &'a [Size],
    wires: &'a [Wire],
    /// Ends of the lines from left to right.
    ends: Vec<(usize, usize)>,
    columns: Vec<Vec<Item>>,
    /// Heights of the centres of the items of each column.
    heights: Vec<Vec<f64>>,
    /// Pieces of lines behind each column, with their heights.
    gaps: Vec<Vec<(Piece, f64)>>,
}

impl<'a> Drawing<'a> {
    fn new((boxes, wires): (&'a [Size], &'a [Wire]), order: &[usize], ranks: &[usize]) -> Self {
        let count = ranks.iter().max().map_or(0, |last| last + 1);
        let mut columns = vec![Vec::new(); count];
        let mut gaps = vec![Vec::new(); count.saturating_sub(1)];
        let mut by_order: Vec<usize> = (0..boxes.len()).collect();
        by_order.sort_by_key(|&which| order[which]);
        for which in by_order {
            columns[ranks[which]].push(Item::Box(which));
        }
        let ends: Vec<_> = wires.iter().map(|wire| directed(order, wire)).collect();
        for (wire, &(from, to)) in ends.iter().enumerate() {
            let item = |rank| match rank {
                rank if rank == ranks[from] => Item::Box(from),
                rank if rank == ranks[to] => Item::Box(to),
                _ => Item::Passing(wire),
            };
            for rank in ranks[from]..ranks[to] {
                gaps[rank].push((Piece { wire, left: item(rank), right: item(rank + 1) }, 0.0));
                if rank > ranks[from] {
                    columns[rank].push(item(rank));
                }
            }
        }
        let heights = columns.iter().map(|column| vec![0.0; column.len()]).collect();
        Self { boxes, wires, ends, columns, heights, gaps }
    }

    /// Orders each column by the neighbours of its items, so that few lines cross.
    fn untangle(&mut self) {
        for _ in 0..4 {
            for column in 1..self.columns.len() {
                self.order(column, column - 1);
            }
            for column in (1..self.columns.len()).rev() {
                self.order(column - 1, column);
            }
        }
    }

    fn order(&mut self, column: usize, beside: usize) {
        let place = |item: Item| self.columns[beside].iter().position(|other| *other == item);
        let mut keyed: Vec<(f64, Item)> = Vec::new();
        for (index, &item) in self.columns[column].iter().enumerate() {
            let others = self.across(column, beside, item);
            keyed.push((mean(others.filter_map(place).map(|at| at as f64)).unwrap_or(index as f64), item));
        }
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.columns[column] = keyed.into_iter().map(|(_, item)| item).collect();
    }

    /// Returns the items of the neighbouring column that have a line to `item`.
    fn across(&self, column: usize, beside: usize, item: Item) -> impl Iterator<Item = Item> + '_ {
        self.gaps[column.min(beside)].iter().filter_map(move |(piece, _)| match column < beside {
            true => (piece.left == item).then_some(piece.right),
            false => (piece.right == item).then_some(piece.left),
        })
    }

    /// Finds the heights of everything.
    fn place(&mut self) {
        let last = self.columns.len();
        for column in 0..last {
            self.level(column, column.checked_sub(1));
        }
        for column in (0..last.saturating_sub(1)).rev() {
            self.level(column, Some(column + 1));
        }
        for gap in 0..self.gaps.len() {
            self.lanes(gap);
        }
    }

    /// Moves each item of a column to the mean height of its neighbours in the column `beside`.
    fn level(&mut self, column: usize, beside: Option<usize>) {
        let wanted = self.columns[column].iter().enumerate().map(|(index, &item)| {
            let beside = beside.and_then(|beside| {
                mean(self.across(column, beside, item).map(|other| self.height(beside, other)))
            });
            let half = self.extent(item) / 2.0;
            (beside.unwrap_or(self.heights[column][index]), [half, half])
        });
        self.heights[column] = spread(&wanted.collect::<Vec<_>>(), BOX_GAP);
    }

    fn extent(&self, item: Item) -> f64 {
        match item {
            Item::Box(which) => self.boxes[which].height,
            Item::Passing(_) => BARE,
        }
    }

    fn height(&self, column: usize, item: Item) -> f64 {
        let index = self.columns[column].iter().position(|other| *other == item);
        index.map_or(0.0, |index| self.heights[column][index])
    }

    /// Gives each line a lane between two columns.
    fn lanes(&mut self, gap: usize) {
        let mut lanes = std::mem::take(&mut self.gaps[gap]);
        let ends = |piece: &Piece| (self.height(gap, piece.left), self.height(gap + 1, piece.right));
        let middle = |piece: &Piece| (ends(piece).0 + ends(piece).1) / 2.0;
        lanes.sort_by(|(a, _), (b, _)| {
            let (a, b) = (ends(a), ends(b));
            (a.0 + a.1).total_cmp(&(b.0 + b.1)).then(a.0.total_cmp(&b.0))
        });
        let room = |piece: &Piece| match piece.left {
            Item::Box(_) => self.wires[piece.wire].heights,
            Item::Passing(_) => [BARE / 2.0; 2],
        };
        let wanted: Vec<_> = lanes.iter().map(|(piece, _)| (middle(piece), room(piece))).collect();
        for (lane, height) in lanes.iter_mut().zip(spread(&wanted, LANE_GAP)) {
            lane.1 = height;
        }
        self.gaps[gap] = lanes;
    }

    /// Left edges of the columns and their widths, and the width of all.
    fn across_page(&self) -> (Vec<(f64, f64)>, f64) {
        let mut x = 0.0;
        let mut places = Vec::new();
        for (rank, column) in self.columns.iter().enumerate() {
            let widths = column.iter().map(|item| match item {
                Item::Box(which) => self.boxes[*which].width,
                Item::Passing(_) => 0.0,
            });
            let width = widths.fold(0.0, f64::max);
            places.push((x, width));
            let texts = self.gaps.get(rank).into_iter().flatten().map(|(piece, _)| match piece.left {
                Item::Box(_) => self.wires[piece.wire].width,
                Item::Passing(_) => 0.0,
            });
            let lanes = texts.reduce(f64::max).map_or(0.0, |widest| widest + 2.0 * BEND);
            x += width + lanes;
        }
        (places, x)
    }

    /// Height at which a line leaves or enters a box, among its other lines.
    fn port(&self, gap: usize, piece: &Piece, leaves: bool) -> f64 {
        let (item, column) = if leaves { (piece.left, gap) } else { (piece.right, gap + 1) };
        let here = |other: &Piece| if leaves { other.left == item } else { other.right == item };
        let beside: Vec<usize> =
            self.gaps[gap].iter().filter(|(other, _)| here(other)).map(|(other, _)| other.wire).collect();
        let index = beside.iter().position(|wire| *wire == piece.wire).unwrap_or(0) as f64;
        let step = (self.extent(item) / beside.len() as f64).min(18.0);
        self.height(column, item) + (index - (beside.len() as f64 - 1.0) / 2.0) * step
    }

    fn finish(self) -> Layout {
        let (places, width) = self.across_page();
        let tops = self.columns.iter().zip(&self.heights).flat_map(|(column, heights)| {
            column.iter().zip(heights).map(|(item, y)| (y - self.extent(*item) / 2.0, self.extent(*item)))
        });
        let lanes = self.gaps.iter().flatten().map(|(piece, y)| {
            let [above, below] = self.wires[piece.wire].heights;
            (y - above, above + below)
        });
        let spans: Vec<(f64, f64)> = tops.chain(lanes).collect();
        let top = spans.iter().map(|span| span.0).fold(f64::INFINITY, f64::min);
        let bottom = spans.iter().map(|span| span.0 + span.1).fold(f64::NEG_INFINITY, f64::max);
        let mut corners = vec![(0.0, 0.0); self.boxes.len()];
        let mut widths = vec![0.0; self.boxes.len()];
        for (rank, column) in self.columns.iter().enumerate() {
            for (item, y) in column.iter().zip(&self.heights[rank]) {
                if let Item::Box(which) = *item {
                    corners[which] = (places[rank].0, y - self.boxes[which].height / 2.0 - top);
                    widths[which] = places[rank].1;
                }
            }
        }
        let wires = (0..self.wires.len()).map(|wire| self.run(wire, &places, top)).collect();
        Layout { corners, widths, wires, size: Size { width, height: (bottom - top).max(0.0) } }
    }

    fn run(&self, wire: usize, places: &[(f64, f64)], top: f64) -> Run {
        let mut points = Vec::new();
        let mut label = (0.0, 0.0);
        for (gap, lanes) in self.gaps.iter().enumerate() {
            let Some((piece, y)) = lanes.iter().find(|(piece, _)| piece.wire == wire) else { continue };
            let (from, to) = (places[gap].0 + places[gap].1, places[gap + 1].0);
            points.push((from, self.port(gap, piece, true) - top));
            points.push((from + BEND, y - top));
            points.push((to - BEND, y - top));
            points.push((to, self.port(gap, piece, false) - top));
            if matches!(piece.left, Item::Box(_)) {
                label = (from / 2.0 + to / 2.0, y - top);
            }
        }
        Run { points, label, backwards: self.ends[wire].0 != self.wires[wire].ends[0] }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Heights near those wanted for things one below the other, each with its extent above and below, `gap` apart.
fn spread(wanted: &[(f64, [f64; 2])], gap: f64) -> Vec<f64> {
    let mut heights = Vec::with_capacity(wanted.len());
    let mut free = f64::NEG_INFINITY;
    for &(height, [above, below]) in wanted {
        let height = height.max(free + above);
        free = height + below + gap;
        heights.push(height);
    }
    let excess = mean(heights.iter().zip(wanted).map(|(height, (wanted, _))| height - wanted));
    heights.iter().map(|height| height - excess.unwrap_or(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(from: usize, to: usize) -> Wire {
        Wire { ends: [from, to], width: 100.0, heights: [32.0, 20.0] }
    }

    fn boxes(count: usize) -> Vec<Size> {
        vec![Size { width: 90.0, height: 40.0 }; count]
    }

    /// Boxes and texts as (left, top, right, bottom).
    fn areas(boxes: &[Size], wires: &[Wire], layout: &Layout) -> Vec<[f64; 4]> {
        let of_boxes = boxes.iter().zip(layout.corners.iter().zip(&layout.widths));
        let of_boxes = of_boxes.map(|(size, (&(x, y), width))| [x, y, x + width, y + size.height]);
        let of_texts = wires.iter().zip(&layout.wires).map(|(wire, run)| {
            let (x, y) = run.label;
            [x - wire.width / 2.0, y - wire.heights[0], x + wire.width / 2.0, y + wire.heights[1]]
        });
        of_boxes.chain(of_texts).collect()
    }

    fn assert_apart(boxes: &[Size], wires: &[Wire], layout: &Layout) {
        let areas = areas(boxes, wires, layout);
        for (index, a) in areas.iter().enumerate() {
            assert!(a[0] > -0.1 && a[1] > -0.1, "{a:?}");
            assert!(a[2] < layout.size.width + 0.1 && a[3] < layout.size.height + 0.1, "{a:?}");
            for b in &areas[..index] {
                let apart = a[0] >= b[2] || b[0] >= a[2] || a[1] >= b[3] || b[1] >= a[3];
                assert!(apart, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_chain_is_one_line_from_left_to_right() {
        let (boxes, wires) = (boxes(4), [wire(0, 1), wire(2, 1), wire(2, 3)]);
        let layout = lay_out(&boxes, &wires, &[0]);
        assert_apart(&boxes, &wires, &layout);
        let lefts: Vec<f64> = layout.corners.iter().map(|corner| corner.0).collect();
        assert!(lefts.is_sorted() && lefts[0] < lefts[3], "{lefts:?}");
        assert!(layout.corners.iter().all(|corner| (corner.1 - layout.corners[0].1).abs() < 1e-9));
        assert_eq!(layout.wires.iter().map(|run| run.backwards).collect::<Vec<_>>(), [false, true, false]);
    }

    #[test]
    fn nothing_overlaps_in_tangled_worlds() {
        // Every graph of five boxes and up to seven lines out of a fixed walk through the pairs.
        let pairs: Vec<(usize, usize)> = (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b))).collect();
        for seed in 0..300_usize {
            let chosen = (0..3 + seed % 5).map(|index| pairs[(seed * 7 + index * (1 + seed % 3) * 3) % 10]);
            let wires: Vec<Wire> = chosen.map(|(a, b)| wire(a, b)).collect();
            let layout = lay_out(&boxes(5), &wires, &[seed % 5]);
            assert_apart(&boxes(5), &wires, &layout);
            assert!(layout.wires.iter().all(|run| run.points.is_sorted_by(|a, b| a.0 <= b.0)));
        }
    }

    #[test]
    fn who_joins_on_the_way_stands_beside_the_way() {
        // 0 - 1 - 2 - 3, and 4 sends to 2.
        let wires = [wire(0, 1), wire(1, 2), wire(2, 3), wire(4, 2)];
        let layout = lay_out(&boxes(5), &wires, &[0, 4]);
        assert_eq!(layout.corners[4].0, layout.corners[1].0);
        assert_apart(&boxes(5), &wires, &layout);
    }

    #[test]
    fn a_world_of_one_node_is_a_box() {
        let layout = lay_out(&boxes(1), &[], &[]);
        assert_eq!((layout.corners, layout.size), (vec![(0.0, 0.0)], Size { width: 90.0, height: 40.0 }));
    }
}
