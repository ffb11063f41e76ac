//! How far a node is from the root, and which of its neighbours it takes as parent: objective functions (RFC 6551, RFC 6552,
//! RFC 6719) as Contiki 2.7 reads them.

use super::super::neighbours::Node;

/// Where a node stands in the DODAG. RFC 6550 gives it 16 bits, room for a hundred hops that nobody has tried yet; here there is
/// room for any number.
pub(crate) type Rank = u32;

/// The rank of the root: MinHopRankIncrease (RFC 6550, section 17).
pub(crate) const ROOT: Rank = 256;
/// No rank: the node has not joined.
pub(crate) const INFINITE: Rank = Rank::MAX;
/// One transmission, in the units of ETX (RFC 6551, section 4.3.2).
const TRANSMISSION: u32 = 128;
/// What a link is taken for that nobody has tried: five transmissions (Contiki 2.7, `RPL_INIT_LINK_METRIC`).
const UNTRIED: u32 = 5 * TRANSMISSION;
/// What a frame counts that was given up: ten transmissions (Contiki 2.7, `MAX_LINK_METRIC`).
const GIVEN_UP: u32 = 10 * TRANSMISSION;
/// What the estimate keeps of itself at each frame, in hundredths (Contiki 2.7, `ETX_ALPHA`).
const KEPT: u32 = 90;

/// How often a frame is expected to be sent over a link, in units of 1/128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Etx(pub(crate) u32);

impl Etx {
    pub(crate) const UNTRIED: Self = Self(UNTRIED);

    /// After a frame that was acknowledged when it had been sent so often, or never.
    pub(crate) fn after(self, acknowledged: Option<u8>) -> Self {
        let sample = acknowledged.map_or(GIVEN_UP, |tries| u32::from(tries) * TRANSMISSION);
        Self((self.0 * KEPT + sample * (100 - KEPT)) / 100)
    }
}

/// By what a node chooses its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Objective {
    /// Objective Function Zero (RFC 6552): every hop adds MinHopRankIncrease, as in Contiki 2.7.
    Of0,
    /// Minimum rank with hysteresis (RFC 6719) by ETX: the parent is changed for a rank that is lower by so much, in units
    /// of 1/128 of a transmission.
    Mrhof { threshold: u32 },
}

/// What a node knows of a neighbour that told it its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) rank: Rank,
    pub(crate) etx: Etx,
}

impl Objective {
    /// The rank of a node with this neighbour as its parent.
    pub(crate) fn rank(self, parent: Candidate) -> Rank {
        let step = match self {
            Self::Of0 => ROOT,
            Self::Mrhof { .. } => parent.etx.0,
        };
        parent.rank.saturating_add(step)
    }

    /// The parent of a node that has these candidates, in the order of their numbers, and this parent so far. A node that is to become
    /// one must fit; those who are as good are equal: the parent stays, else the first is taken.
    pub(crate) fn parent(
        self,
        candidates: impl Iterator<Item = (Node, Candidate)> + Clone,
        parent: Option<Node>,
        fits: impl Fn(Node, Candidate) -> bool,
    ) -> Option<Node> {
        let fit = candidates.clone().filter(|(node, candidate)| fits(*node, *candidate));
        let best = fit.min_by_key(|(_, candidate)| self.rank(*candidate));
        let threshold = match self {
            Self::Of0 => 1,
            Self::Mrhof { threshold } => threshold.max(1),
        };
        let kept = parent.and_then(|parent| candidates.clone().find(|(node, _)| *node == parent));
        match (kept, best) {
            (Some((node, kept)), Some((better, best))) => {
                let gains = self.rank(best).saturating_add(threshold) <= self.rank(kept);
                Some(if gains { better } else { node })
            }
            (Some((node, _)), None) | (None, Some((node, _))) => Some(node),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MRHOF: Objective = Objective::Mrhof { threshold: 64 };

    fn choose(of: Objective, candidates: &[(Node, Rank, u32)], parent: Option<Node>, lowest: Rank) -> Option<Node> {
        let candidates = candidates.iter().map(|&(node, rank, etx)| (node, Candidate { rank, etx: Etx(etx) }));
        of.parent(candidates, parent, |_, candidate| candidate.rank < lowest)
    }

    #[test]
    fn an_estimate_keeps_nine_tenths_of_itself() {
        // 0.9 · 640 + 0.1 · 128 = 588.8, 0.9 · 588 + 0.1 · 256 = 554.8, 0.9 · 554 + 0.1 · 1280 = 626.6.
        let once = Etx::UNTRIED.after(Some(1));
        assert_eq!(once, Etx(588));
        assert_eq!(once.after(Some(2)), Etx(554));
        assert_eq!(once.after(Some(2)).after(None), Etx(626));
        let clean = (0..100).fold(Etx::UNTRIED, |etx, _| etx.after(Some(1)));
        // Whole units fall short of 128 by nothing and end within ten above it.
        assert!((128..138).contains(&clean.0), "{clean:?}");
    }

    #[test]
    fn a_parent_is_left_for_half_a_transmission_and_not_for_less() {
        // By the first 256 + 200 = 456.
        assert_eq!(choose(MRHOF, &[(1, 256, 200), (2, 256, 137)], Some(1), 1_000), Some(1));
        assert_eq!(choose(MRHOF, &[(1, 256, 200), (2, 256, 136)], Some(1), 1_000), Some(2));
        // RFC 6719 recommends one and a half.
        let slow = Objective::Mrhof { threshold: 192 };
        assert_eq!(choose(slow, &[(1, 256, 320), (2, 256, 129)], Some(1), 1_000), Some(1));
        assert_eq!(choose(slow, &[(1, 256, 320), (2, 256, 128)], Some(1), 1_000), Some(2));
    }

    #[test]
    fn of_hops_only_fewer_count() {
        assert_eq!(choose(Objective::Of0, &[(1, 512, 128), (2, 512, 128)], Some(2), 1_000), Some(2));
        assert_eq!(choose(Objective::Of0, &[(1, 256, 1_280), (2, 512, 128)], Some(2), 1_000), Some(1));
        assert_eq!(choose(Objective::Of0, &[(4, 512, 640), (7, 512, 128)], None, INFINITE), Some(4));
    }

    #[test]
    fn nobody_becomes_a_parent_who_does_not_fit() {
        // However much better: its way may lead through the node itself.
        assert_eq!(choose(MRHOF, &[(1, 256, 9_000), (2, 512, 128)], Some(1), 512), Some(1));
        assert_eq!(choose(MRHOF, &[(1, 256, 9_000), (2, 511, 128)], Some(1), 512), Some(2));
        assert_eq!(choose(MRHOF, &[(2, 512, 128)], None, 512), None);
        // Who is the parent already may rise.
        assert_eq!(choose(MRHOF, &[(1, 3_000, 128)], Some(1), 512), Some(1));
        assert_eq!(choose(MRHOF, &[], None, INFINITE), None);
    }
}
