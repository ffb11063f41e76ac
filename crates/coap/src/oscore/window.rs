use super::PartialIv;

/// Which sequence numbers of the other side were received (RFC 8613 §7.4): a sliding window as IPsec and DTLS have it (RFC 6347
/// §4.1.2.6), twice as wide as the 32 that RFC 8613 §3.2.2 asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// One above the highest number received.
    end: u64,
    /// Bit `i`: the number `end - 1 - i` was received, or must not be any more.
    seen: u64,
}

impl Window {
    /// Numbers below the highest that may still come.
    const WIDTH: u64 = u64::BITS as u64;

    /// Nothing was received.
    pub(super) const EMPTY: Self = Self { end: 0, seen: u64::MAX };

    /// This is the lowest number that may have been received, and it was.
    pub(super) const fn above(number: PartialIv) -> Self {
        Self { end: number.number().saturating_add(1), seen: u64::MAX }
    }

    /// It was not received, and is not too old to tell.
    pub(super) fn is_new(&self, number: PartialIv) -> bool {
        match self.end.checked_sub(1).and_then(|highest| highest.checked_sub(number.number())) {
            None => true,
            Some(below) => below < Self::WIDTH && self.seen.wrapping_shr(below as u32) & 1 == 0,
        }
    }

    /// It was received. Not for one that is not [new](Self::is_new).
    pub(super) fn take(&mut self, number: PartialIv) {
        let end = number.number().saturating_add(1);
        let by = end.saturating_sub(self.end);
        if by > 0 {
            self.seen = u32::try_from(by).ok().and_then(|by| self.seen.checked_shl(by)).unwrap_or(0) | 1;
            self.end = end;
        } else {
            let below = self.end.saturating_sub(end);
            self.seen |= u32::try_from(below).ok().and_then(|below| 1_u64.checked_shl(below)).unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    fn number(number: u64) -> PartialIv {
        PartialIv::new(number).unwrap()
    }

    #[test]
    fn the_oldest_number_of_the_window_is_taken_once_and_the_one_before_it_never() {
        let mut window = Window::EMPTY;
        window.take(number(1_000));
        assert!(!window.is_new(number(1_000)));
        assert!(window.is_new(number(937)));
        assert!(!window.is_new(number(936)));
        window.take(number(937));
        assert!(!window.is_new(number(937)));
        // The highest number of all.
        window.take(number(PartialIv::LIMIT - 1));
        assert!(!window.is_new(number(PartialIv::LIMIT - 1)));
        assert!(window.is_new(number(PartialIv::LIMIT - 2)));
        assert!(!window.is_new(number(1_001)));
    }

    #[test]
    fn below_the_number_that_opens_a_window_nothing_is_new() {
        let window = Window::above(number(70));
        assert!((0..=70).all(|below| !window.is_new(number(below))));
        assert!(window.is_new(number(71)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_number_is_new_twice_and_every_one_within_the_width_is_new_once(
            steps in prop::collection::vec((any::<bool>(), 0_u64..200), 1..200)
        ) {
            let (mut window, mut taken, mut highest) = (Window::EMPTY, BTreeSet::new(), None::<u64>);
            for (ahead, step) in steps {
                let from = highest.unwrap_or(0);
                let next = if ahead { from + step } else { from.saturating_sub(step) };
                let is_new = !taken.contains(&next) && highest.is_none_or(|highest| next + 64 > highest);
                prop_assert_eq!(window.is_new(number(next)), is_new, "{} of {:?}", next, highest);
                if is_new {
                    window.take(number(next));
                    taken.insert(next);
                    highest = highest.max(Some(next));
                }
            }
        }
    }
}
