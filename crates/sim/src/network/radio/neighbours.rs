//! Who is within whose reach.

use std::collections::BTreeMap;

/// The number of a node of the mesh.
pub(crate) type Node = u32;

/// All who hear it, as the receiver of a frame.
pub(crate) const EVERYONE: Node = Node::MAX;

/// Where a node stands, in millimetres.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) x: i64,
    pub(crate) y: i64,
}

impl Place {
    /// The square of the distance to another, in square millimetres.
    pub(crate) fn square(self, other: Self) -> u64 {
        let (x, y) = (self.x.abs_diff(other.x), self.y.abs_diff(other.y));
        x.saturating_mul(x).saturating_add(y.saturating_mul(y))
    }
}

/// How far a radio reaches, in millimetres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Frames can be received up to here, this distance included.
    pub(crate) transmission: u64,
    /// Reception is disturbed up to here, this distance left out.
    pub(crate) interference: u64,
    /// A carrier is sensed up to here, this distance included.
    pub(crate) carrier: u64,
}

/// One node within reach of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    pub(crate) node: Node,
    /// It can receive what the other sends.
    pub(crate) hears: bool,
    /// What the other sends reaches its radio at all, if only to disturb it.
    pub(crate) disturbed: bool,
    /// It senses the other's carrier.
    pub(crate) senses: bool,
}

/// The neighbours of every node, in the order of their numbers. Reach is mutual.
pub(crate) struct Neighbours {
    all: Vec<Neighbour>,
    /// Where those of each node begin, and behind the last node the end.
    begin: Vec<u32>,
}

impl Neighbours {
    /// Who is within reach of whom. Nodes further apart than any reach are never looked at together: the plane is cut into
    /// squares as wide as the longest reach, and only a square and those around it are searched.
    pub(crate) fn new(places: &[Place], reach: Reach) -> Self {
        let side = reach.transmission.max(reach.interference).max(reach.carrier).max(1);
        let side = i64::try_from(side).unwrap_or(i64::MAX);
        let square = |place: &Place| (place.x.div_euclid(side), place.y.div_euclid(side));
        let mut squares: BTreeMap<(i64, i64), Vec<Node>> = BTreeMap::new();
        for (node, place) in places.iter().enumerate() {
            squares.entry(square(place)).or_default().push(node as Node);
        }
        let (mut all, mut begin) = (Vec::new(), vec![0]);
        for (node, place) in places.iter().enumerate() {
            let first = all.len();
            let (x, y) = square(place);
            let around = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (x + dx, y + dy)));
            for &other in around.filter_map(|at| squares.get(&at)).flatten() {
                if other as usize != node
                    && let Some(found) = within(reach, place.square(places[other as usize]), other)
                {
                    all.push(found);
                }
            }
            all[first..].sort_unstable_by_key(|neighbour| neighbour.node);
            begin.push(all.len() as u32);
        }
        Self { all, begin }
    }

    /// The neighbours of a node.
    #[inline]
    pub(crate) fn of(&self, node: Node) -> &[Neighbour] {
        let bounds = self.begin.get(node as usize..node as usize + 2);
        let Some(&[from, to]) = bounds else { return &[] };
        self.all.get(from as usize..to as usize).unwrap_or_default()
    }

    /// The nodes that can receive what a node sends.
    pub(crate) fn hearing(&self, node: Node) -> impl Iterator<Item = Node> {
        self.of(node).iter().filter(|neighbour| neighbour.hears).map(|neighbour| neighbour.node)
    }
}

/// What a node at the square root of this distance is to another.
///
/// As in the unit disk graph medium of Cooja (Contiki 2.7): a node that is at or beyond the longer of the two ranges is not affected,
/// and of the others those within the transmission range, its end included, can receive.
fn within(reach: Reach, square: u64, node: Node) -> Option<Neighbour> {
    let squared = |range: u64| range.saturating_mul(range);
    let disturbed = square < squared(reach.transmission.max(reach.interference));
    let hears = disturbed && square <= squared(reach.transmission);
    let senses = square <= squared(reach.carrier);
    (disturbed || senses).then_some(Neighbour { node, hears, disturbed, senses })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REACH: Reach = Reach { transmission: 10_000, interference: 20_000, carrier: 7_900 };

    fn row(metres: &[i64]) -> Vec<Place> {
        metres.iter().map(|&x| Place { x: x * 1_000, y: 0 }).collect()
    }

    #[test]
    fn a_node_at_ten_metres_hears_and_one_at_twenty_is_not_affected() {
        let near = Neighbours::new(&[Place { x: 0, y: 0 }, Place { x: 10_000, y: 0 }], REACH);
        let hears = Neighbour { node: 1, hears: true, disturbed: true, senses: false };
        assert_eq!(near.of(0), [hears]);
        for (x, expected) in [(10_001, true), (19_999, true), (20_000, false), (20_001, false)] {
            let far = Neighbours::new(&[Place { x: 0, y: 0 }, Place { x, y: 0 }], REACH);
            let disturbed = far.of(0).iter().any(|other| other.disturbed && !other.hears);
            assert_eq!(disturbed, expected, "at {x} mm");
        }
    }

    #[test]
    fn a_carrier_may_be_sensed_further_than_it_disturbs() {
        let reach = Reach { transmission: 10_000, interference: 10_000, carrier: 15_000 };
        let nodes = Neighbours::new(&row(&[0, 15]), reach);
        assert_eq!(nodes.of(1), [Neighbour { node: 0, hears: false, disturbed: false, senses: true }]);
    }

    #[test]
    fn squares_find_whom_a_look_at_every_pair_finds() {
        let seed = millpond_control::ChanceSeed::new(4);
        let draw = |node, axis| {
            i64::from(seed.at(millpond_control::Purpose::Start, [node, axis, 0, 0]).pick(0, 200_000)) - 100_000
        };
        let places: Vec<Place> = (0..300).map(|node| Place { x: draw(node, 0), y: draw(node, 1) }).collect();
        let found = Neighbours::new(&places, REACH);
        let mut pairs = 0;
        for (node, place) in places.iter().enumerate() {
            let others = places.iter().enumerate().filter(|(other, _)| *other != node);
            let expected: Vec<Neighbour> =
                others.filter_map(|(other, at)| within(REACH, place.square(*at), other as Node)).collect();
            pairs += expected.len();
            assert_eq!(found.of(node as Node), expected);
        }
        assert!(pairs > 1_000, "{pairs} pairs test little");
    }

    #[test]
    fn diagonal_neighbours_of_a_grid_are_hidden_and_disturb() {
        let places: Vec<Place> = (0..9).map(|n| Place { x: n % 3 * 10_000, y: n / 3 * 10_000 }).collect();
        let grid = Neighbours::new(&places, REACH);
        assert_eq!(grid.hearing(4).collect::<Vec<_>>(), [1, 3, 5, 7]);
        assert_eq!(grid.of(4).len(), 8);
        // From a corner: the next but one is exactly 20 m away.
        assert_eq!(grid.of(0).iter().map(|other| other.node).collect::<Vec<_>>(), [1, 3, 4]);
    }
}
