use super::Source;

/// The networks that have more than a quarter of what all bodies weigh together: three at most.
#[derive(Debug)]
pub(crate) struct Crowded([Option<u64>; 3]);

impl Crowded {
    /// Finds them in two passes and no memory, since a forged datagram can have it done (Misra and Gries, "Finding repeated
    /// elements", 1982).
    pub(crate) fn among(bodies: impl Iterator<Item = (Source, usize)> + Clone) -> Self {
        let mut candidates = [(0_u64, 0_usize); 3];
        for (source, mut weight) in bodies.clone() {
            while weight > 0 {
                let place = candidates.iter().position(|(network, of_it)| *of_it > 0 && *network == source.network);
                let place = place.or_else(|| candidates.iter().position(|(_, of_it)| *of_it == 0));
                if let Some((network, of_it)) = place.and_then(|place| candidates.get_mut(place)) {
                    (*network, *of_it) = (source.network, of_it.saturating_add(weight));
                    break;
                }
                // Four networks cancel out so much of one another.
                let least = candidates.iter().fold(weight, |least, (_, of_it)| least.min(*of_it));
                for (_, of_it) in &mut candidates {
                    *of_it = of_it.saturating_sub(least);
                }
                weight = weight.saturating_sub(least);
            }
        }
        let (mut all, mut weights) = (0_usize, [0_usize; 3]);
        for (source, weight) in bodies {
            all = all.saturating_add(weight);
            for ((network, _), of_it) in candidates.iter().zip(&mut weights) {
                if *network == source.network {
                    *of_it = of_it.saturating_add(weight);
                }
            }
        }
        let mut crowded = [None; 3];
        for (place, ((network, _), of_it)) in crowded.iter_mut().zip(candidates.iter().zip(weights)) {
            *place = Some(*network).filter(|_| of_it.saturating_mul(4) > all);
        }
        Self(crowded)
    }

    /// The one that is worth least: of those alike the one with the least of what else counts, and of these the first.
    pub(crate) fn least<P, T: Ord>(&self, bodies: impl Iterator<Item = (P, Source, T)>) -> Option<P> {
        let worth = bodies.map(|(place, source, rest)| (place, (self.worth(source), rest)));
        Some(worth.reduce(|least, other| if other.1 < least.1 { other } else { least })?.0)
    }

    /// What a body is worth, the least first.
    pub(crate) fn worth(&self, source: Source) -> (bool, bool) {
        (source.is_validated, !self.0.contains(&Some(source.network)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_networks_with_more_than_a_quarter_are_found_in_any_order() {
        let of = |network| Source::unvalidated(network);
        let crowded_of = |weights: &[(u64, usize)]| {
            let found = Crowded::among(weights.iter().map(|(network, weight)| (of(*network), *weight)));
            (0..9_u64).filter(|network| !found.worth(of(*network)).1).collect::<alloc::vec::Vec<_>>()
        };
        assert_eq!(crowded_of(&[]), [0_u64; 0]);
        assert_eq!(crowded_of(&[(1, 1), (2, 1), (3, 1), (4, 1)]), [0_u64; 0], "a quarter each");
        assert_eq!(crowded_of(&[(1, 9), (2, 9), (3, 9), (4, 8)]), [1, 2, 3]);
        assert_eq!(crowded_of(&[(4, 8), (3, 3), (2, 9), (3, 3), (1, 9), (3, 3)]), [1, 2, 3]);
        assert_eq!(crowded_of(&[(5, 100), (6, 1), (7, 40)]), [5, 7]);
        // Every order of five weights: what has more than a quarter is found, and nothing else.
        let weights = [(1_u64, 30_usize), (2, 26), (3, 24), (4, 11), (5, 9)];
        for turn in 0..120_usize {
            let mut left = weights.to_vec();
            let mut rest = turn;
            let order: alloc::vec::Vec<_> = (1..=5)
                .rev()
                .map(|places| {
                    let place = rest % places;
                    rest /= places;
                    left.remove(place)
                })
                .collect();
            assert_eq!(crowded_of(&order), [1, 2], "{order:?}");
        }
    }
}
