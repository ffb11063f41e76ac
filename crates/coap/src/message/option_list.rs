use alloc::vec::Vec;

use super::{OptionHeader, Options, WriteError};

/// Options to keep, in ascending order of their numbers: one vector, in which they stand as in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OptionList(Vec<u8>);

/// Brings options in their order; those of one number stay in theirs. They come nearly so: as they stood in a message, or with a
/// few of our own behind them.
pub(crate) fn sort(options: &mut [(u16, &[u8])]) {
    for sorted in 1..options.len() {
        let mut next = options.get_mut(..=sorted).unwrap_or_default();
        while let [.., before, last] = next
            && before.0 > last.0
        {
            core::mem::swap(before, last);
            next = next.split_last_mut().map_or(&mut [], |(_, rest)| rest);
        }
    }
}

impl OptionList {
    /// No options.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// These.
    ///
    /// # Errors
    /// A value that is too long, or a number behind a higher one.
    pub(crate) fn of(options: &[(u16, &[u8])]) -> Result<Self, WriteError> {
        let length = options.iter().map(|(_, value)| value.len().saturating_add(3)).sum();
        let (mut bytes, mut after) = (Vec::with_capacity(length), 0);
        for (number, value) in options {
            OptionHeader::new(after, *number, value)?.put(&mut bytes);
            bytes.extend_from_slice(value);
            after = *number;
        }
        Ok(Self(bytes))
    }

    /// These, which came in messages or are short, in their order; those of one number stay in theirs.
    pub(crate) fn sorted<'o>(options: impl Iterator<Item = (u16, &'o [u8])>) -> Self {
        let mut options: Vec<_> = options.collect();
        sort(&mut options);
        Self::of(&options).unwrap_or_default()
    }

    /// As a message of ours has them.
    pub(crate) fn lend(&self) -> Vec<(u16, &[u8])> {
        self.iter().collect()
    }

    /// Each with its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &[u8])> + Clone {
        Options::over(&self.0).map(|option| (option.number, option.value))
    }

    /// The value of the first one with this number.
    pub(crate) fn get(&self, number: u16) -> Option<&[u8]> {
        self.iter().find(|(other, _)| *other == number).map(|(_, value)| value)
    }

    /// One more, behind those of its number.
    pub(crate) fn with(&self, number: u16, value: &[u8]) -> Self {
        Self::sorted(self.iter().chain([(number, value)]))
    }

    /// Those with such numbers.
    pub(crate) fn only(&self, is_meant: impl Fn(u16) -> bool) -> Self {
        Self::sorted(self.iter().filter(|(number, _)| is_meant(*number)))
    }

    /// Bytes of them.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.0.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_in_the_order_of_its_numbers() {
        let list = OptionList::of(&[(11, b"a"), (11, b"b"), (60, b"")]).unwrap();
        assert_eq!(list.0, b"\xb1a\x01b\xd0\x24");
        assert_eq!(list.with(14, &[7]).lend(), [(11, &b"a"[..]), (11, b"b"), (14, &[7]), (60, b"")]);
        assert_eq!(list.with(11, b"c").only(|number| number == 11).lend(), [(11, &b"a"[..]), (11, b"b"), (11, b"c")]);
        assert_eq!((list.get(11), list.get(12)), (Some(&b"a"[..]), None));
        assert!(OptionList::of(&[(11, b"a"), (7, b"b")]).is_err());
        assert_eq!(OptionList::sorted([(11, &b"a"[..]), (7, b"b")].into_iter()).lend(), [(7, &b"b"[..]), (11, b"a")]);
    }
}
