//! Changes to a message that is written already, in place.

use alloc::vec::Vec;
use core::ops::Range;

use super::options::{self, MARKER};
use super::{OptionHeader, behind_token};

/// Where an option stands in a message, or where it would.
struct Place {
    /// Where its header begins, or would.
    at: usize,
    /// Number of the option before it; 0 if there is none.
    previous: u16,
    /// The option that begins there: its number, and where its value is.
    there: Option<(u16, Range<usize>)>,
}

/// Finds the place of an option: that of the first with this number, else that of the first with a larger one, else the
/// end of the options. `None` if the message is not well-formed.
fn locate(message: &[u8], number: u16) -> Option<Place> {
    let mut rest = message.get(behind_token(message)?..)?;
    let mut previous = 0;
    loop {
        let at = message.len().saturating_sub(rest.len());
        let Some((&head, after)) = rest.split_first().filter(|(head, _)| **head != MARKER) else {
            return Some(Place { at, previous, there: None });
        };
        let (reached, value, behind) = options::split(head, after, previous).ok()?;
        if reached >= number {
            let end = message.len().saturating_sub(behind.len());
            let there = (reached, end.saturating_sub(value.len())..end);
            return Some(Place { at, previous, there: Some(there) });
        }
        (previous, rest) = (reached, behind);
    }
}

/// Inserts an option into the message that fills the buffer from `start` on. False, and nothing happens, if an option
/// with this number is there already or if the message would become longer than `limit`.
pub(crate) fn insert_option(buffer: &mut Vec<u8>, start: usize, number: u16, value: &[u8], limit: usize) -> bool {
    let message = buffer.get(start..).unwrap_or_default();
    let Some(Place { at, previous, there }) = locate(message, number) else { return false };
    let Ok(header) = OptionHeader::new(previous, number, value) else { return false };
    if message.len().saturating_add(header.size()).saturating_add(value.len()) > limit {
        return false;
    }
    // The option behind it counts its number from this one now.
    let mut replaced = 0;
    let mut next = None;
    if let Some((other, its_value)) = there {
        replaced = its_value.start.saturating_sub(at);
        let its_value = message.get(its_value).unwrap_or_default();
        next = OptionHeader::new(number, other, its_value).ok().filter(|_| other != number);
        if next.is_none() {
            return false;
        }
    }
    let end = buffer.len();
    header.put(buffer);
    buffer.extend_from_slice(value);
    if let Some(next) = next {
        next.put(buffer);
    }
    let added = buffer.len().saturating_sub(end);
    let at = start.saturating_add(at);
    if let Some(tail) = buffer.get_mut(at..) {
        tail.rotate_right(added);
    }
    let behind = at.saturating_add(added);
    buffer.drain(behind..behind.saturating_add(replaced));
    true
}

/// Gives an option another value, of at most 12 bytes, in the message that fills the buffer up to `end`; what stands
/// behind the message moves along. Nothing happens if there is no such option.
pub(crate) fn replace_value(buffer: &mut Vec<u8>, end: usize, number: u16, value: &[u8]) {
    let Some(Place { at, there: Some((found, old)), .. }) = buffer.get(..end).and_then(|all| locate(all, number))
    else {
        return;
    };
    if found != number || value.len() > 12 || old.len() > 12 {
        return;
    }
    if let Some(head) = buffer.get_mut(at) {
        *head = (*head & 0xf0) | value.len() as u8;
    }
    buffer.splice(old, value.iter().copied());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Code, Kind, Message, MessageId, Token, Writer};
    use alloc::vec;

    type Options<'a> = &'a [(u16, &'a [u8])];

    fn written(options: Options<'_>, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![];
        let token = Token::new(b"tok").unwrap();
        let mut writer = Writer::start(&mut bytes, Kind::Confirmable, Code::GET, MessageId(7), token);
        for (number, value) in options {
            writer.option(*number, value).unwrap();
        }
        writer.payload(payload).unwrap();
        writer.finish().unwrap();
        bytes
    }

    /// Around it stand options whose headers take every length before and after.
    #[test]
    fn an_inserted_option_stands_where_a_writer_would_have_put_it() {
        let long = [b'.'; 300];
        for before in [&[][..], &[(11, b"path".as_slice())], &[(65_010, b"")], &[(65_020, b"same")]] {
            for after in [&[][..], &[(65_020, b"x".as_slice())], &[(65_021, &long)], &[(65_040, b"")], &[(65_500, b"")]]
            {
                for payload in [&b""[..], b"payload"] {
                    for value in [&b""[..], b"v", &long] {
                        let around = [before, after].concat();
                        let has_it = around.iter().any(|(number, _)| *number == 65_020);
                        let mut bytes = written(&around, payload);
                        let whole = written(&[before, &[(65_020, value)], after].concat(), payload);
                        let limit = if has_it { usize::MAX } else { whole.len() + 5 };
                        bytes.splice(0..0, *b"before");
                        assert_eq!(insert_option(&mut bytes, 6, 65_020, value, limit), !has_it);
                        let expected = if has_it { written(&around, payload) } else { whole };
                        assert_eq!((&bytes[..6], &bytes[6..]), (&b"before"[..], &expected[..]));
                        assert!(Message::parse(&bytes[6..]).is_ok());
                    }
                }
            }
        }
    }

    #[test]
    fn what_would_become_too_long_stays_as_it_is() {
        let original = written(&[(11, b"path")], b"payload");
        let mut bytes = original.clone();
        assert!(!insert_option(&mut bytes, 0, 65_020, b"v", original.len() + 3));
        assert_eq!(bytes, original);
        assert!(insert_option(&mut bytes, 0, 65_020, b"v", original.len() + 4));
        assert_eq!(bytes.len(), original.len() + 4);
    }

    #[test]
    fn a_value_is_replaced_whatever_stands_around_it() {
        for (old, new) in [(&b""[..], &b"n"[..]), (b"o", b"n"), (b"old", b""), (b"", b"")] {
            let around = |value| [(11, &b"path"[..]), (65_020, value), (65_021, b"after")];
            let mut bytes = written(&around(old), b"payload");
            let end = bytes.len();
            bytes.extend_from_slice(b"behind");
            replace_value(&mut bytes, end, 65_020, new);
            assert_eq!(bytes, [&written(&around(new), b"payload")[..], b"behind"].concat());
        }
        let mut bytes = written(&[(11, b"path")], b"");
        let end = bytes.len();
        replace_value(&mut bytes, end, 65_020, b"n");
        assert_eq!(bytes, written(&[(11, b"path")], b""));
    }

    #[test]
    fn bytes_that_are_no_message_stay_as_they_are() {
        for bytes in [&b""[..], b"\x44", b"\x40\x01\0\0\xf0", b"\x40\x01\0\0\x1e"] {
            let mut buffer = bytes.to_vec();
            assert!(!insert_option(&mut buffer, 0, 65_020, b"", 100));
            replace_value(&mut buffer, bytes.len(), 65_020, b"");
            assert_eq!(buffer, bytes);
        }
    }
}
