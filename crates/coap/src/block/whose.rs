use alloc::collections::BTreeMap;

/// Whose a body is, where there is no room for all: those of nobody known give way first, for to begin a body costs a forged
/// datagram; of these those of crowded networks, so that who sends many or long ones takes from itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whose {
    /// Somebody's who is known to be at its address.
    pub(crate) is_known: bool,
    /// The network that it came from.
    pub(crate) network: u64,
}

/// The networks that have more than a quarter of what all bodies weigh together.
#[derive(Debug)]
pub(super) struct Crowded(BTreeMap<u64, usize>);

impl Crowded {
    pub(super) fn among(bodies: impl Iterator<Item = (Whose, usize)>) -> Self {
        let (mut networks, mut all) = (BTreeMap::<u64, usize>::new(), 0_usize);
        for (whose, weight) in bodies {
            let of_it = networks.entry(whose.network).or_default();
            *of_it = of_it.saturating_add(weight);
            all = all.saturating_add(weight);
        }
        networks.retain(|_, of_it| of_it.saturating_mul(4) > all);
        Self(networks)
    }

    /// What a body is worth, the least first; of those alike, that of which the fewest blocks came gives way.
    pub(super) fn worth(&self, whose: Whose) -> (bool, bool) {
        (whose.is_known, !self.0.contains_key(&whose.network))
    }
}
