//! A ClientHello as it came, read without a key or a session (RFC 5246 §7.4.1.2, RFC 6347 §4.2.1, RFC 8446 §4.1.2).
//!
//! The sender may be anybody: what is read here borrows from the datagram, and is refused as soon as a length does
//! not fit.

use std::ops::Range;

use super::record::{CLIENT_HELLO, HANDSHAKE, MESSAGE_HEADER, Message, Record};

/// Extensions (IANA, TLS ExtensionType Values).
const PADDING: u16 = 21;
pub(super) const SUPPORTED_VERSIONS: u16 = 43;
pub(super) const COOKIE: u16 = 44;
const KEY_SHARE: u16 = 51;
/// Versions as they are written (RFC 6347 §4.1, RFC 9147 §5.3).
pub(super) const DTLS_1_2: [u8; 2] = [0xfe, 0xfd];
pub(super) const DTLS_1_3: [u8; 2] = [0xfe, 0xfc];

/// A whole ClientHello in one record.
#[derive(Debug)]
pub(super) struct Hello<'d> {
    /// The sequence number of its record.
    pub(super) sequence: u64,
    /// The number of the message within its handshake.
    pub(super) number: u16,
    body: &'d [u8],
    /// Where in the body the cookie of DTLS 1.2 stands, its length included, and where the extensions begin.
    cookie: Range<usize>,
    extensions: usize,
    suites: &'d [u8],
    retry_cookie: Option<&'d [u8]>,
    shares: &'d [u8],
    offers_1_3: bool,
}

impl<'d> Hello<'d> {
    /// That of a datagram. `None` for what is none, or is malformed, or does not come whole in one record.
    pub(super) fn of(datagram: &'d [u8]) -> Option<Self> {
        let Record { kind: HANDSHAKE, epoch: 0, sequence, body: record, .. } = Record::first(datagram)? else {
            return None;
        };
        let Message { kind: CLIENT_HELLO, number, offset: 0, length, fragment } = Message::of(record)? else {
            return None;
        };
        if fragment != length {
            return None;
        }
        let body = record.get(MESSAGE_HEADER..)?.get(..length)?;
        let mut reader = Reader { bytes: body, at: 0 };
        // Version and random value.
        reader.take(2 + 32)?;
        let _session = reader.short()?;
        let start = reader.at;
        reader.short()?;
        let cookie = start..reader.at;
        let suites = reader.long()?;
        let _compression = reader.short()?;
        let extensions = reader.at;
        let mut hello = Self {
            sequence,
            number,
            body,
            cookie,
            extensions,
            suites,
            retry_cookie: None,
            shares: &[],
            offers_1_3: false,
        };
        if !reader.is_over() {
            let list = reader.long()?;
            hello.read(list)?;
        }
        (reader.is_over() && suites.len() % 2 == 0).then_some(hello)
    }

    fn read(&mut self, list: &'d [u8]) -> Option<()> {
        let (mut reader, mut seen) = (Reader { bytes: list, at: 0 }, [false; 4]);
        while !reader.is_over() {
            let kind = reader.number()?;
            let mut value = Reader { bytes: reader.long()?, at: 0 };
            let place = [PADDING, SUPPORTED_VERSIONS, COOKIE, KEY_SHARE].iter().position(|known| *known == kind);
            if let Some(seen) = place.and_then(|place| seen.get_mut(place))
                && std::mem::replace(seen, true)
            {
                return None;
            }
            match kind {
                SUPPORTED_VERSIONS => {
                    self.offers_1_3 = value.short()?.chunks_exact(2).any(|version| version == DTLS_1_3);
                }
                COOKIE => self.retry_cookie = Some(value.long()?),
                KEY_SHARE => self.shares = value.long()?,
                _ => continue,
            }
            if !value.is_over() {
                return None;
            }
        }
        Some(())
    }

    /// It can be answered by DTLS 1.3.
    pub(super) const fn offers_1_3(&self) -> bool {
        self.offers_1_3
    }

    /// The cookie that it brings back, as DTLS 1.2 has it; empty in one that answers none.
    pub(super) fn cookie(&self) -> &'d [u8] {
        self.body.get(self.cookie.start + 1..self.cookie.end).unwrap_or_default()
    }

    /// The cookie that it brings back, as DTLS 1.3 has it.
    pub(super) const fn retry_cookie(&self) -> Option<&'d [u8]> {
        self.retry_cookie
    }

    /// The cipher suites, in the order of the client's liking.
    pub(super) fn suites(&self) -> impl Iterator<Item = u16> + '_ {
        self.suites.chunks_exact(2).map(|suite| suite.iter().fold(0, |number, byte| number << 8 | u16::from(*byte)))
    }

    /// The groups in which it has a share of a key already.
    pub(super) fn share_groups(&self) -> impl Iterator<Item = u16> + '_ {
        let mut reader = Reader { bytes: self.shares, at: 0 };
        std::iter::from_fn(move || {
            let group = reader.number()?;
            reader.long()?;
            Some(group)
        })
    }

    /// What stays the same when a client of DTLS 1.2 answers a cookie: version, random value, session, suites,
    /// compression (RFC 6347 §4.2.1).
    pub(super) fn lasting(&self) -> [&'d [u8]; 2] {
        let before = self.body.get(..self.cookie.start).unwrap_or_default();
        [before, self.body.get(self.cookie.end..self.extensions).unwrap_or_default()]
    }

    /// The hello before this one, as a client of DTLS 1.2 will have sent it: without the cookie.
    pub(super) fn before_cookie(&self) -> Vec<u8> {
        let mut body = self.body.get(..self.cookie.start).unwrap_or_default().to_vec();
        body.push(0);
        body.extend_from_slice(self.body.get(self.cookie.end..).unwrap_or_default());
        body
    }

    /// The hello before this one, as a client of DTLS 1.3 can have sent it (RFC 8446 §4.1.2): without the extension that
    /// has the cookie, and with as much padding more if it `pads` to a length.
    pub(super) fn before_retry(&self, pads: bool) -> Option<Vec<u8>> {
        let (head, list) = self.body.split_at_checked(self.extensions)?;
        let mut reader = Reader { bytes: list.get(2..)?, at: 0 };
        let grown = self.retry_cookie.filter(|_| pads).map_or(0, |cookie| 4 + 2 + cookie.len());
        let mut kept = Vec::with_capacity(list.len());
        while !reader.is_over() {
            let (kind, value) = (reader.number()?, reader.long()?);
            match kind {
                COOKIE => {}
                PADDING => {
                    let mut padding = value.to_vec();
                    padding.resize(value.len() + grown, 0);
                    extension(&mut kept, kind, &padding)?;
                }
                _ => extension(&mut kept, kind, value)?,
            }
        }
        let mut body = head.to_vec();
        body.extend_from_slice(&u16::try_from(kept.len()).ok()?.to_be_bytes());
        body.append(&mut kept);
        Some(body)
    }

    /// A body as the first message of a handshake, in the record before this one's.
    pub(super) fn as_first(&self, body: &[u8]) -> Option<Vec<u8>> {
        super::record::in_record(self.sequence.saturating_sub(1), CLIENT_HELLO, body)
    }
}

/// Adds an extension to a list.
pub(super) fn extension(list: &mut Vec<u8>, kind: u16, value: &[u8]) -> Option<()> {
    list.extend_from_slice(&kind.to_be_bytes());
    list.extend_from_slice(&u16::try_from(value.len()).ok()?.to_be_bytes());
    list.extend_from_slice(value);
    Some(())
}

/// Takes fields off bytes.
struct Reader<'d> {
    bytes: &'d [u8],
    at: usize,
}

impl<'d> Reader<'d> {
    const fn is_over(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn take(&mut self, length: usize) -> Option<&'d [u8]> {
        let taken = self.bytes.get(self.at..)?.get(..length)?;
        self.at += length;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// A field with a length of one byte before it.
    fn short(&mut self) -> Option<&'d [u8]> {
        let length = *self.take(1)?.first()?;
        self.take(usize::from(length))
    }

    /// A field with a length of two bytes before it.
    fn long(&mut self) -> Option<&'d [u8]> {
        let length = self.number()?;
        self.take(usize::from(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtls::record::in_record;

    fn body(cookie: &[u8], extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut body = vec![0xfe, 0xfd];
        body.extend_from_slice(&[7; 32]);
        body.push(0);
        body.push(u8::try_from(cookie.len()).unwrap());
        body.extend_from_slice(cookie);
        body.extend_from_slice(&[0, 4, 0x13, 0x01, 0xc0, 0xa8, 1, 0]);
        let mut list = Vec::new();
        extensions.iter().for_each(|(kind, value)| extension(&mut list, *kind, value).unwrap());
        body.extend_from_slice(&u16::try_from(list.len()).unwrap().to_be_bytes());
        body.extend_from_slice(&list);
        body
    }

    fn of_1_3(cookie: Option<&[u8]>, padding: usize) -> Vec<u8> {
        let mut extensions = vec![
            (SUPPORTED_VERSIONS, vec![4, 0xfe, 0xfc, 0xfe, 0xfd]),
            (KEY_SHARE, vec![0, 7, 0, 0x1d, 0, 3, 1, 2, 3]),
        ];
        if let Some(cookie) = cookie {
            let mut value = u16::try_from(cookie.len()).unwrap().to_be_bytes().to_vec();
            value.extend_from_slice(cookie);
            extensions.push((COOKIE, value));
        }
        extensions.push((PADDING, vec![0; padding]));
        body(&[], &extensions)
    }

    #[test]
    fn a_hello_is_read_as_it_was_written() {
        let first = of_1_3(None, 60);
        let datagram = in_record(5, CLIENT_HELLO, &first).unwrap();
        let hello = Hello::of(&datagram).unwrap();
        assert_eq!((hello.sequence, hello.number, hello.offers_1_3()), (5, 0, true));
        assert!(hello.cookie().is_empty() && hello.retry_cookie().is_none());
        assert!(hello.suites().eq([0x1301, 0xc0a8]) && hello.share_groups().eq([0x1d]));
        let of_1_2 = in_record(0, CLIENT_HELLO, &body(&[1, 2, 3], &[])).unwrap();
        let hello = Hello::of(&of_1_2).unwrap();
        assert_eq!((hello.cookie(), hello.offers_1_3()), (&[1, 2, 3][..], false));
        assert_eq!(hello.before_cookie(), body(&[], &[]));
    }

    #[test]
    fn the_hello_before_the_cookie_is_found_again() {
        let cookie = [9; 32];
        // One client pads to a length, another not.
        for (pads, padding) in [(true, 60 - 38), (false, 60)] {
            let datagram = in_record(1, CLIENT_HELLO, &of_1_3(Some(&cookie), padding)).unwrap();
            let hello = Hello::of(&datagram).unwrap();
            assert_eq!(hello.retry_cookie(), Some(&cookie[..]));
            assert_eq!(hello.before_retry(pads).unwrap(), of_1_3(None, 60));
            assert_eq!(hello.as_first(&of_1_3(None, 60)), in_record(0, CLIENT_HELLO, &of_1_3(None, 60)));
        }
    }

    #[test]
    fn what_is_cut_or_says_things_twice_is_none() {
        let datagram = in_record(1, CLIENT_HELLO, &of_1_3(Some(&[9; 32]), 4)).unwrap();
        assert!(Hello::of(&datagram).is_some());
        for length in 0..datagram.len() {
            assert!(Hello::of(&datagram[..length]).is_none(), "{length}");
        }
        let twice = body(&[], &[(COOKIE, vec![0, 1, 1]), (COOKIE, vec![0, 1, 1])]);
        assert!(Hello::of(&in_record(0, CLIENT_HELLO, &twice).unwrap()).is_none());
        // A fragment.
        let mut fragment = datagram.clone();
        fragment[16] += 1;
        assert!(Hello::of(&fragment).is_none());
    }

    /// Hellos with bytes changed, cut, doubled and put in: whatever is read of one makes another that can be read.
    #[test]
    fn no_bytes_make_a_hello_that_cannot_be_told_again() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut chance = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).unwrap()
        };
        let seeds = [
            in_record(1, CLIENT_HELLO, &of_1_3(Some(&[9; 32]), 40)).unwrap(),
            in_record(0, CLIENT_HELLO, &of_1_3(None, 0)).unwrap(),
            in_record(7, CLIENT_HELLO, &body(&[1; 32], &[])).unwrap(),
        ];
        let mut read = 0;
        for _ in 0..200_000 {
            let mut datagram = seeds[chance(seeds.len())].clone();
            for _ in 0..=chance(3) {
                let place = chance(datagram.len());
                match chance(8) {
                    0 => drop(datagram.remove(place)),
                    1 => datagram.insert(place, u8::try_from(chance(256)).unwrap()),
                    2 => datagram.extend_from_within(place..),
                    3 => datagram[place] = [0, 1, 0x7f, 0x80, 0xff][chance(5)],
                    4 => datagram[place] = datagram[place].wrapping_add(1),
                    _ => datagram[place] ^= 1 << chance(8),
                }
            }
            let Some(hello) = Hello::of(&datagram) else { continue };
            read += 1;
            let (suites, groups) = (hello.suites().count(), hello.share_groups().count());
            let before = [hello.before_retry(false), hello.before_retry(true), Some(hello.before_cookie())];
            for first in before.into_iter().flatten().filter_map(|body| hello.as_first(&body)) {
                let again = Hello::of(&first).expect("it is a hello again");
                assert_eq!((again.suites().count(), again.share_groups().count()), (suites, groups));
                assert_eq!((again.number, again.lasting()), (0, hello.lasting()));
            }
        }
        assert!(read > 20_000, "{read}");
    }
}
