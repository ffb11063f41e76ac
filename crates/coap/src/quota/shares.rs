use alloc::collections::BTreeMap;

use super::Source;

/// How much may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// By all together.
    pub all: usize,
    /// By one network.
    pub network: usize,
    /// By all unvalidated addresses together.
    pub unvalidated: usize,
    /// By the unvalidated addresses of one network.
    pub unvalidated_of_network: usize,
}

const fn at_least_one(share: usize) -> usize {
    if share == 0 { 1 } else { share }
}

impl Shares {
    /// No network has more than three quarters; unvalidated addresses share a quarter, and those of one network a quarter of that. At
    /// least one each.
    #[must_use]
    pub const fn of_places(all: usize) -> Self {
        Self {
            all,
            network: at_least_one(all.saturating_sub(all >> 2)),
            unvalidated: at_least_one(all >> 2),
            unvalidated_of_network: at_least_one(all >> 4),
        }
    }

    /// The same of bytes, where the unvalidated addresses of one network may have all that such addresses may.
    #[must_use]
    pub const fn of_bytes(all: usize) -> Self {
        Self { all, network: all.saturating_sub(all >> 2), unvalidated: all >> 2, unvalidated_of_network: all >> 2 }
    }
}

/// Which shares do not allow so much more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Full {
    /// That of all.
    pub all: bool,
    /// That of the network.
    pub network: bool,
    /// That of unvalidated addresses.
    pub unvalidated: bool,
    /// That of the unvalidated addresses in the network.
    pub unvalidated_of_network: bool,
}

impl Full {
    /// What the addresses may have together that are not validated; one that is validated may have more.
    #[must_use]
    pub const fn is_unvalidated(&self) -> bool {
        self.unvalidated || self.unvalidated_of_network
    }
}

/// How much is held.
#[derive(Debug, Default)]
pub struct Usage {
    all: Held,
    networks: BTreeMap<u64, Held>,
}

/// What somebody holds, and what of it is held for unvalidated addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    all: usize,
    unvalidated: usize,
}

impl Held {
    fn add(&mut self, source: Source, amount: usize) {
        self.all = self.all.saturating_add(amount);
        if !source.is_validated {
            self.unvalidated = self.unvalidated.saturating_add(amount);
        }
    }

    fn remove(&mut self, source: Source, amount: usize) {
        self.all = self.all.saturating_sub(amount);
        if !source.is_validated {
            self.unvalidated = self.unvalidated.saturating_sub(amount);
        }
    }
}

impl Usage {
    /// Nothing is held.
    #[must_use]
    pub const fn new() -> Self {
        Self { all: Held { all: 0, unvalidated: 0 }, networks: BTreeMap::new() }
    }

    /// Which shares do not allow a source so much more.
    #[must_use]
    pub fn full(&self, shares: &Shares, source: Source, more: usize) -> Full {
        self.check(shares, source, |held, share| held.saturating_add(more) > share)
    }

    /// The same, where who holds nothing may begin with as much as it likes: shares are no limit to a single one.
    #[must_use]
    pub fn full_after_first(&self, shares: &Shares, source: Source, more: usize) -> Full {
        self.check(shares, source, |held, share| more > 0 && held > 0 && held.saturating_add(more) > share)
    }

    fn check(&self, shares: &Shares, source: Source, is_over: impl Fn(usize, usize) -> bool) -> Full {
        let of_network = self.networks.get(&source.network).copied().unwrap_or_default();
        let is_over_unvalidated = |held, share| !source.is_validated && is_over(held, share);
        Full {
            all: is_over(self.all.all, shares.all),
            network: is_over(of_network.all, shares.network),
            unvalidated: is_over_unvalidated(self.all.unvalidated, shares.unvalidated),
            unvalidated_of_network: is_over_unvalidated(of_network.unvalidated, shares.unvalidated_of_network),
        }
    }

    /// A source holds so much more.
    pub fn add(&mut self, source: Source, amount: usize) {
        if amount > 0 {
            self.all.add(source, amount);
            self.networks.entry(source.network).or_default().add(source, amount);
        }
    }

    /// A source holds so much less.
    pub fn remove(&mut self, source: Source, amount: usize) {
        self.all.remove(source, amount);
        if let Some(held) = self.networks.get_mut(&source.network) {
            held.remove(source, amount);
            if held.all == 0 {
                self.networks.remove(&source.network);
            }
        }
    }

    /// What all hold together.
    #[must_use]
    pub const fn all(&self) -> usize {
        self.all.all
    }

    /// Whether a network is one of those that hold most.
    pub fn is_largest(&self) -> impl Fn(u64) -> bool {
        let most = self.networks.values().map(|held| held.all).max();
        move |network| self.networks.get(&network).map(|held| held.all) == most
    }

    /// Bytes held, about.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.networks.len().saturating_mul(size_of::<(u64, Held)>()).saturating_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARES: Shares = Shares::of_places(64);

    /// How many are let in, in this order.
    fn let_in(usage: &mut Usage, sources: impl Iterator<Item = Source>) -> usize {
        let mut count = 0;
        for source in sources {
            if usage.full(&SHARES, source, 1) == Full::default() {
                usage.add(source, 1);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn unvalidated_sources_share_a_quarter_and_a_network_of_them_a_quarter_of_that() {
        let mut usage = Usage::new();
        assert_eq!(let_in(&mut usage, (0..64).map(|_| Source::unvalidated(1))), 4);
        assert_eq!(let_in(&mut usage, (0..64).map(Source::unvalidated)), 12);
        let full = usage.full(&SHARES, Source::unvalidated(99), 1);
        assert_eq!(full, Full { unvalidated: true, ..Full::default() });
        let full = usage.full(&SHARES, Source::unvalidated(1), 1);
        assert_eq!(full, Full { unvalidated: true, unvalidated_of_network: true, ..Full::default() });
        assert_eq!(let_in(&mut usage, (100..200).map(Source::validated)), 48, "they take none of the others' places");
        assert!(usage.full(&SHARES, Source::validated(99), 1).all);
        for source in (0..64).map(Source::unvalidated).chain((100..200).map(Source::validated)) {
            (0..4).for_each(|_| usage.remove(source, 1));
        }
        assert_eq!((usage.all(), usage.memory()), (0, 0));
    }

    #[test]
    fn no_network_has_more_than_three_quarters() {
        let mut usage = Usage::new();
        assert_eq!(let_in(&mut usage, (0..64).map(|_| Source::validated(1))), 48);
        assert_eq!(usage.full(&SHARES, Source::validated(1), 1), Full { network: true, ..Full::default() });
        assert_eq!(let_in(&mut usage, (0..64).map(|_| Source::validated(2))), 16);
    }

    #[test]
    fn there_is_one_place_at_least_for_everybody() {
        assert_eq!(Shares::of_places(1), Shares { all: 1, network: 1, unvalidated: 1, unvalidated_of_network: 1 });
    }

    #[test]
    fn the_first_that_somebody_holds_may_be_as_long_as_it_likes() {
        let (mut usage, shares) = (Usage::new(), Shares::of_bytes(100));
        let [one, other, forged] = [Source::validated(1), Source::validated(2), Source::unvalidated(3)];
        assert_eq!(usage.full_after_first(&shares, one, 400), Full::default());
        usage.add(one, 60);
        assert!(usage.full_after_first(&shares, one, 16).network);
        assert_eq!(usage.full_after_first(&shares, forged, 40), Full::default());
        usage.add(forged, 40);
        assert!(usage.full_after_first(&shares, Source::unvalidated(4), 1).unvalidated);
        assert!(usage.full_after_first(&shares, other, 1).all);
        usage.remove(one, 60);
        assert_eq!(usage.full_after_first(&shares, other, 60), Full::default());
    }

    #[test]
    fn of_networks_that_hold_as_much_each_is_the_largest() {
        let mut usage = Usage::new();
        for (network, amount) in [(1, 5), (2, 7), (3, 4), (3, 3)] {
            usage.add(Source::validated(network), amount);
        }
        let is_largest = usage.is_largest();
        assert_eq!([1, 2, 3, 4].map(is_largest), [false, true, true, false]);
    }
}
