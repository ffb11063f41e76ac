//! Which way packets take: the tree of RPL in storing mode (RFC 6550). Down to a node that is below a node, else up to its parent.

use millpond_control::{ChanceSeed, Purpose};

use super::neighbours::{Neighbours, Node};

/// A tree of shortest ways to one root.
pub(crate) struct Tree {
    root: Node,
    parents: Vec<Node>,
    depths: Vec<u32>,
}

/// The depth of a node that has no way to the root.
const UNREACHED: u32 = u32::MAX;

impl Tree {
    /// The tree of fewest hops; of several parents that are as near to the root one is drawn, for each node by itself.
    pub(crate) fn new(nodes: usize, neighbours: &Neighbours, root: Node, chance: ChanceSeed) -> Self {
        let mut depths = vec![UNREACHED; nodes];
        let mut ring = vec![root];
        depths[root as usize] = 0;
        let mut depth = 0;
        while !ring.is_empty() {
            depth += 1;
            let mut next = Vec::new();
            for &node in &ring {
                for other in neighbours.hearing(node) {
                    if depths[other as usize] == UNREACHED {
                        depths[other as usize] = depth;
                        next.push(other);
                    }
                }
            }
            ring = next;
        }
        let parent = |node: Node| {
            let depth = depths[node as usize];
            let nearer = |other: &Node| depths[*other as usize].checked_add(1) == Some(depth);
            let candidates: Vec<Node> = neighbours.hearing(node).filter(nearer).collect();
            let most = (candidates.len() as u32).saturating_sub(1);
            let drawn = chance.at(Purpose::Start, [node, 0, 0, 0]).pick(0, most);
            candidates.get(drawn as usize).copied().unwrap_or(node)
        };
        Self { root, parents: (0..nodes as Node).map(parent).collect(), depths }
    }

    /// The parent of a node, if it has one.
    pub(crate) fn parent(&self, node: Node) -> Option<Node> {
        self.parents.get(node as usize).copied().filter(|parent| *parent != node)
    }

    /// Hops to the root, if there is a way.
    pub(crate) fn depth(&self, node: Node) -> Option<u32> {
        self.depths.get(node as usize).copied().filter(|depth| *depth != UNREACHED)
    }

    /// The next node on the way from one to another: [`None`] if it is there, or if there is no way.
    #[inline]
    pub(crate) fn next_hop(&self, at: Node, to: Node) -> Option<Node> {
        if at == to {
            return None;
        }
        below(self.root, at, to, |node| self.parents[node as usize]).or_else(|| self.parent(at))
    }
}

/// The next node on the way down a tree from one node to another, if that is below it. A node without a parent is its own.
#[inline]
pub(super) fn below(root: Node, at: Node, to: Node, parent: impl Fn(Node) -> Node) -> Option<Node> {
    let mut below = to;
    while below != root {
        let above = parent(below);
        if above == at {
            return Some(below);
        }
        if above == below {
            return None;
        }
        below = above;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::radio::neighbours::{Place, Reach};

    fn grid(side: i64) -> Neighbours {
        let places: Vec<Place> =
            (0..side * side).map(|n| Place { x: n % side * 10_000, y: n / side * 10_000 }).collect();
        Neighbours::new(&places, Reach { transmission: 10_000, interference: 20_000, carrier: 7_900 })
    }

    fn way(tree: &Tree, from: Node, to: Node) -> Vec<Node> {
        std::iter::successors(Some(from), |&at| tree.next_hop(at, to)).collect()
    }

    #[test]
    fn packets_go_down_to_whom_is_below_and_else_up() {
        // A chain of five with its root in the middle.
        let places: Vec<Place> = (0..5).map(|n| Place { x: n * 10_000, y: 0 }).collect();
        let reach = Reach { transmission: 10_000, interference: 20_000, carrier: 0 };
        let tree = Tree::new(5, &Neighbours::new(&places, reach), 2, ChanceSeed::new(1));
        assert_eq!(way(&tree, 0, 4), [0, 1, 2, 3, 4]);
        assert_eq!(way(&tree, 4, 3), [4, 3]);
        assert_eq!(way(&tree, 2, 0), [2, 1, 0]);
        assert_eq!((tree.parent(2), tree.parent(0), tree.depth(0)), (None, Some(1), Some(2)));
    }

    #[test]
    fn every_node_has_its_fewest_hops_and_parents_differ_from_seed_to_seed() {
        let neighbours = grid(6);
        // The border router of the grid stands at (2, 2).
        let trees: Vec<Tree> = (0..40).map(|seed| Tree::new(36, &neighbours, 14, ChanceSeed::new(seed))).collect();
        for (node, tree) in (0..36_u32).flat_map(|node| trees.iter().map(move |tree| (node, tree))) {
            let hops = (node % 6).abs_diff(2) + (node / 6).abs_diff(2);
            assert_eq!(tree.depth(node), Some(hops));
            assert_eq!(way(tree, node, 14).len() as u32, hops + 1);
            assert_eq!(way(tree, 14, node).last(), Some(&node));
            assert_eq!(way(tree, node, 35).last(), Some(&35));
        }
        // A corner has two that are as near; each is drawn about as often.
        let upper = trees.iter().filter(|tree| tree.parent(0) == Some(1)).count();
        assert!((10..=30).contains(&upper), "{upper} of 40");
    }

    #[test]
    fn an_island_has_no_way() {
        let places = [Place { x: 0, y: 0 }, Place { x: 10_001, y: 0 }];
        let reach = Reach { transmission: 10_000, interference: 20_000, carrier: 0 };
        let tree = Tree::new(2, &Neighbours::new(&places, reach), 0, ChanceSeed::new(1));
        assert_eq!((tree.depth(1), tree.parent(1), tree.next_hop(0, 1), tree.next_hop(1, 0)), (None, None, None, None));
    }
}
