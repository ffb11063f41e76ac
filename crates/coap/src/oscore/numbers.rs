use super::{PartialIv, ProtectError};

/// The sequence numbers that a sender has left (RFC 8613 §7.2, Appendix B.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    /// The first of this run: earlier ones may have been used before a restart.
    first: u64,
    next: u64,
    /// Numbers below it may be used: after a restart none of them will be.
    bound: u64,
}

impl Numbers {
    /// All of them.
    pub(super) const ALL: Self = Self { first: 0, next: 0, bound: PartialIv::LIMIT };

    /// Those from a stored bound on, of which none may be used yet.
    pub(super) const fn from(bound: u64) -> Self {
        Self { first: bound, next: bound, bound }
    }

    /// The number to use next.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Takes a number out, for good.
    pub(super) fn take(&mut self) -> Result<PartialIv, ProtectError> {
        let number = PartialIv::new(self.next).ok_or(ProtectError::Exhausted)?;
        if !self.are_stored() {
            return Err(ProtectError::NotStored);
        }
        self.next = self.next.saturating_add(1);
        Ok(number)
    }

    /// There are numbers that may be used, or none at all are left.
    pub(super) const fn are_stored(&self) -> bool {
        self.next < self.bound || self.next >= PartialIv::LIMIT
    }

    /// It was taken out in this run.
    pub(super) fn was_taken(&self, number: PartialIv) -> bool {
        (self.first..self.next).contains(&number.number())
    }

    /// No bound of them is stored.
    #[cfg(all(feature = "server", feature = "observe"))]
    pub(super) const fn end_with_process(&self) -> bool {
        self.first == 0 && self.bound == PartialIv::LIMIT
    }

    /// The bound to store, if less than half of `gap` is left.
    pub(super) fn bound_to_store(&self, gap: u32) -> Option<u64> {
        let left = self.bound.saturating_sub(self.next);
        let is_due = self.bound < PartialIv::LIMIT && left <= u64::from(gap / 2);
        is_due.then(|| self.next.saturating_add(u64::from(gap.max(1))).min(PartialIv::LIMIT))
    }

    /// A bound is stored.
    pub(super) fn raise(&mut self, bound: u64) {
        self.bound = self.bound.max(bound).min(PartialIv::LIMIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that stops anywhere, ten thousand times, with a bound that was stored or not.
    #[test]
    fn no_number_is_taken_twice_whenever_the_power_is_cut() {
        let (mut stored, mut highest, mut chance) = (0, None, 7_u64);
        for _ in 0..10_000 {
            let mut numbers = Numbers::from(stored);
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            for step in 0..(chance >> 33) % 40 {
                if let Some(bound) = numbers.bound_to_store(10) {
                    stored = bound;
                    // The power is cut after it was stored and before that is known.
                    if (chance >> 20) % 3 == 0 && step > 20 {
                        break;
                    }
                    numbers.raise(bound);
                }
                let taken = numbers.take().unwrap();
                assert!(Some(taken) > highest);
                assert!(numbers.was_taken(taken));
                highest = Some(taken);
            }
        }
        // Gaps cost little of what there is.
        assert!(stored < 10_000 * 45);
    }

    #[test]
    fn numbers_that_are_not_stored_are_not_taken() {
        let mut numbers = Numbers::from(0);
        assert_eq!(numbers.take(), Err(ProtectError::NotStored));
        assert_eq!(numbers.bound_to_store(2), Some(2));
        numbers.raise(2);
        assert_eq!(numbers.take().unwrap().number(), 0);
        // The next bound is due while there are numbers left.
        assert_eq!(numbers.bound_to_store(2), Some(3));
        assert_eq!(numbers.take().unwrap().number(), 1);
        assert_eq!(numbers.take(), Err(ProtectError::NotStored));
        // A bound does not go back.
        numbers.raise(1);
        assert_eq!(numbers.bound_to_store(0), Some(3));
    }

    #[test]
    fn the_last_number_is_taken_and_none_after_it() {
        let mut numbers = Numbers::from(PartialIv::LIMIT - 1);
        assert_eq!(numbers.bound_to_store(1_000), Some(PartialIv::LIMIT));
        numbers.raise(u64::MAX);
        assert_eq!(numbers.take().unwrap().number(), PartialIv::LIMIT - 1);
        assert_eq!(numbers.take(), Err(ProtectError::Exhausted));
        assert_eq!(numbers.bound_to_store(1_000), None);
        assert!(!numbers.was_taken(PartialIv::new(0).unwrap()));
    }
}
