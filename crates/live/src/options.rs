//! Options of a message.

use bytes::Bytes;
use millpond_coap::message::{Uint, number};

use crate::ContentFormat;

/// Options in ascending order of their numbers, repeated ones in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    list: Vec<(u16, Bytes)>,
}

impl Options {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self { list: Vec::new() }
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &Bytes)> + Clone {
        self.list.iter().map(|(number, value)| (*number, value))
    }

    /// Bytes of them, about.
    pub(crate) fn weight(&self) -> usize {
        self.list.iter().map(|(_, value)| value.len() + size_of::<(u16, Bytes)>()).sum()
    }

    /// The first value of an option.
    #[must_use]
    pub fn get(&self, number: u16) -> Option<&Bytes> {
        self.all(number).next()
    }

    /// The first value of an option as a number; `None` if there is none, or none of 32 bits.
    #[must_use]
    pub fn uint(&self, number: u16) -> Option<u32> {
        self.get(number).and_then(|value| Uint::read(value))
    }

    /// All values of an option.
    pub fn all(&self, number: u16) -> impl Iterator<Item = &Bytes> + Clone {
        let start = self.list.partition_point(|(other, _)| *other < number);
        self.list.iter().skip(start).take_while(move |(other, _)| *other == number).map(|(_, value)| value)
    }

    /// Adds an option behind those with the same number.
    pub fn add(&mut self, number: u16, value: impl Into<Bytes>) {
        let place = self.list.partition_point(|(other, _)| *other <= number);
        self.list.insert(place, (number, value.into()));
    }

    /// Adds an option whose value is a number (RFC 7252 §3.2).
    pub fn add_uint(&mut self, number: u16, value: u32) {
        self.add(number, Bytes::copy_from_slice(Uint::new(value).as_bytes()));
    }

    /// Gives an option this one value instead of those that it has.
    pub fn set(&mut self, number: u16, value: impl Into<Bytes>) {
        let (start, end) =
            (self.list.partition_point(|it| it.0 < number), self.list.partition_point(|it| it.0 <= number));
        self.list.splice(start..end, [(number, value.into())]);
    }

    /// The same with a number.
    pub fn set_uint(&mut self, number: u16, value: u32) {
        self.set(number, Bytes::copy_from_slice(Uint::new(value).as_bytes()));
    }

    /// Takes an option away, all its values. False if there was none.
    pub fn remove(&mut self, number: u16) -> bool {
        let before = self.list.len();
        self.list.retain(|(other, _)| *other != number);
        self.list.len() < before
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Content-Format.
    pub(crate) fn content_format(&self) -> Option<ContentFormat> {
        self.format(number::CONTENT_FORMAT)
    }

    /// An option that is a Content-Format.
    pub(crate) fn format(&self, number: u16) -> Option<ContentFormat> {
        self.get(number).and_then(|value| ContentFormat::read(value))
    }

    /// Sets an option that is a Content-Format.
    pub(crate) fn set_format(&mut self, number: u16, format: ContentFormat) {
        self.set_uint(number, u32::from(format.number()));
    }

    /// Of a list that is in order.
    pub(crate) const fn sorted(list: Vec<(u16, Bytes)>) -> Self {
        Self { list }
    }

    /// Lends them as the state machines below take them. A few take no memory of their own.
    pub(crate) fn lend<T>(&self, to: impl FnOnce(&[(u16, &[u8])]) -> T) -> T {
        let borrowed = self.list.iter().map(|(number, value)| (*number, value.as_ref()));
        let mut few = [(0, &[][..]); 8];
        let Some(few) = few.get_mut(..self.list.len()) else { return to(&borrowed.collect::<Vec<_>>()) };
        for (place, option) in few.iter_mut().zip(borrowed) {
            *place = option;
        }
        to(few)
    }
}

impl<V: Into<Bytes>> FromIterator<(u16, V)> for Options {
    fn from_iter<I: IntoIterator<Item = (u16, V)>>(options: I) -> Self {
        let mut list: Vec<_> = options.into_iter().map(|(number, value)| (number, value.into())).collect();
        list.sort_by_key(|(number, _)| *number);
        Self { list }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_in_the_order_of_their_numbers_and_then_of_adding() {
        let mut options = Options::new();
        for (number, value) in [(11, "b"), (6, "x"), (11, "a"), (15, "q"), (11, "c")] {
            options.add(number, value);
        }
        let written: Vec<_> = options.iter().map(|(number, value)| (number, value.as_ref())).collect();
        assert_eq!(written, [(6, &b"x"[..]), (11, b"b"), (11, b"a"), (11, b"c"), (15, b"q")]);
        assert!(options.all(11).eq(["b", "a", "c"]));
        assert_eq!(options.all(12).count(), 0);
        options.set(11, "d");
        assert!(options.all(11).eq(["d"]));
        assert!(options.remove(6) && !options.remove(6));
    }

    #[test]
    fn numbers_take_as_few_bytes_as_they_need() {
        let mut options = Options::new();
        options.add_uint(12, 0);
        options.add_uint(14, 60);
        options.add_uint(28, 70_000);
        assert_eq!((options.uint(12), options.uint(14), options.uint(28)), (Some(0), Some(60), Some(70_000)));
        assert_eq!(options.get(12).map(Bytes::len), Some(0));
        assert_eq!(options.uint(6), None);
    }
}
