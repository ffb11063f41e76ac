//! What can be read from a datagram of DTLS without any key (RFC 6347 §4.1, RFC 9147 §4), and alerts in the clear.

/// Bytes of a record's header in the clear.
const HEADER: usize = 13;
/// Bytes of a handshake message's header.
pub(super) const MESSAGE_HEADER: usize = 12;
/// Content types (RFC 6347 §4.3.1).
const ALERT: u8 = 21;
pub(super) const HANDSHAKE: u8 = 22;
/// Kinds of handshake messages.
pub(super) const CLIENT_HELLO: u8 = 1;
pub(super) const SERVER_HELLO: u8 = 2;
pub(super) const HELLO_VERIFY_REQUEST: u8 = 3;

/// What the first record of a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// The beginning of a ClientHello, the first or one that answers a cookie.
    ClientHello,
    /// Another message of a handshake in the clear.
    Handshake,
    /// A fatal alert in the clear, which anybody can have sent.
    FatalAlert { description: u8 },
    /// Anything else in the clear.
    Plain,
    /// A record that only who has the keys can read.
    Protected,
    /// No record.
    Other,
}

impl Shape {
    /// That of a datagram.
    pub(super) fn of(datagram: &[u8]) -> Self {
        match datagram {
            // The unified header of DTLS 1.3 (RFC 9147 §4): 001 in front.
            [first, ..] if first >> 5 == 1 => Self::Protected,
            [20..=26, 0xfe, ..] => {
                let Some(record) = Record::first(datagram) else { return Self::Other };
                match record {
                    Record { epoch: 1.., .. } => Self::Protected,
                    Record { kind: ALERT, body: [2, description], .. } => {
                        Self::FatalAlert { description: *description }
                    }
                    Record { kind: HANDSHAKE, body, .. } => match Message::of(body) {
                        Some(Message { kind: CLIENT_HELLO, offset: 0, .. }) => Self::ClientHello,
                        _ => Self::Handshake,
                    },
                    _ => Self::Plain,
                }
            }
            _ => Self::Other,
        }
    }
}

/// A record in the clear, or the clear part of one of DTLS 1.2.
pub(super) struct Record<'d> {
    pub(super) kind: u8,
    pub(super) epoch: u16,
    pub(super) sequence: u64,
    pub(super) body: &'d [u8],
    rest: &'d [u8],
}

impl<'d> Record<'d> {
    pub(super) fn first(datagram: &'d [u8]) -> Option<Self> {
        let (header, rest) = datagram.split_first_chunk::<HEADER>()?;
        let [kind, _, _, e0, e1, s0, s1, s2, s3, s4, s5, l0, l1] = *header;
        let (body, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])))?;
        let sequence = u64::from_be_bytes([0, 0, s0, s1, s2, s3, s4, s5]);
        Some(Self { kind, epoch: u16::from_be_bytes([e0, e1]), sequence, body, rest })
    }
}

/// The head of a handshake message.
pub(super) struct Message {
    pub(super) kind: u8,
    pub(super) length: usize,
    pub(super) number: u16,
    pub(super) offset: usize,
    pub(super) fragment: usize,
}

impl Message {
    pub(super) fn of(body: &[u8]) -> Option<Self> {
        let (header, _) = body.split_first_chunk::<MESSAGE_HEADER>()?;
        let [kind, l0, l1, l2, n0, n1, o0, o1, o2, f0, f1, f2] = *header;
        let wide = |bytes: [u8; 3]| bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
        Some(Self {
            kind,
            length: wide([l0, l1, l2]),
            number: u16::from_be_bytes([n0, n1]),
            offset: wide([o0, o1, o2]),
            fragment: wide([f0, f1, f2]),
        })
    }
}

/// A whole handshake message, the first of its side, in one record. `None` if it is too long for that.
pub(super) fn in_record(sequence: u64, kind: u8, body: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(body.len() + MESSAGE_HEADER).ok()?.to_be_bytes();
    let [_, _, s0, s1, s2, s3, s4, s5] = sequence.to_be_bytes();
    let mut record = vec![HANDSHAKE, 0xfe, 0xfd, 0, 0, s0, s1, s2, s3, s4, s5];
    record.extend_from_slice(&length);
    let [.., l0, l1, l2] = body.len().to_be_bytes();
    record.extend_from_slice(&[kind, l0, l1, l2, 0, 0, 0, 0, 0, l0, l1, l2]);
    record.extend_from_slice(body);
    Some(record)
}

/// Adds to the sequence numbers of the records in the clear at the head of a datagram.
pub(super) fn renumber(datagram: &mut [u8], more: u64) {
    let mut at = 0;
    while let Some(Record { kind: 20..=26, epoch: 0, sequence, body, .. }) = datagram.get(at..).and_then(Record::first)
    {
        let length = HEADER + body.len();
        let [_, _, number @ ..] = sequence.wrapping_add(more).to_be_bytes();
        if let Some(place) = datagram.get_mut(at + 5..at + 11) {
            place.copy_from_slice(&number);
        }
        at += length;
    }
}

/// Whether a datagram has a handshake message under the first keys: the Finished of DTLS 1.2.
pub(super) fn has_finished(datagram: &[u8]) -> bool {
    let mut left = datagram;
    while let Some(record) = Record::first(left) {
        if record.kind == HANDSHAKE && record.epoch == 1 {
            return true;
        }
        left = record.rest;
    }
    false
}

/// The sequence number that follows those in the clear of a datagram.
pub(super) fn next_in_clear(datagram: &[u8]) -> u64 {
    let (mut left, mut next) = (datagram, 0);
    while let Some(record) = Record::first(left) {
        if record.epoch == 0 && (20..=26).contains(&record.kind) {
            next = next.max(record.sequence.saturating_add(1));
        }
        left = record.rest;
    }
    next
}

/// A fatal alert in the clear.
pub(super) fn fatal_alert(sequence: u64, description: u8) -> [u8; HEADER + 2] {
    let [_, _, s0, s1, s2, s3, s4, s5] = sequence.to_be_bytes();
    [ALERT, 0xfe, 0xfd, 0, 0, s0, s1, s2, s3, s4, s5, 0, 2, 2, description]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, epoch: u16, sequence: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind, 0xfe, 0xfd];
        bytes.extend_from_slice(&epoch.to_be_bytes());
        bytes.extend_from_slice(&sequence.to_be_bytes()[2..]);
        bytes.extend_from_slice(&u16::try_from(body.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn message(kind: u8, number: u16, offset: u8, body: &[u8]) -> Vec<u8> {
        let length = u8::try_from(body.len()).unwrap();
        let mut bytes = vec![kind, 0, 0, length];
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(&[0, 0, offset, 0, 0, length]);
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn datagrams_are_told_apart_by_their_first_record() {
        let mut body = [0; 40];
        body[9] = 7;
        let hello = |number, offset| record(HANDSHAKE, 0, 0, &message(CLIENT_HELLO, number, offset, &body));
        for (datagram, shape) in [
            (hello(0, 0), Shape::ClientHello),
            (hello(1, 0), Shape::ClientHello),
            (hello(0, 40), Shape::Handshake),
            (record(HANDSHAKE, 0, 1, &message(11, 2, 0, &[1; 9])), Shape::Handshake),
            (record(HANDSHAKE, 0, 1, &[1]), Shape::Handshake),
            (record(HANDSHAKE, 1, 0, &[7; 40]), Shape::Protected),
            (record(23, 1, 5, &[7; 20]), Shape::Protected),
            (record(20, 0, 1, &[1]), Shape::Plain),
            (record(ALERT, 0, 1, &[2, 40]), Shape::FatalAlert { description: 40 }),
            (record(ALERT, 0, 1, &[1, 0]), Shape::Plain),
            (vec![0x2e, 1, 2], Shape::Protected),
            (vec![0x3f], Shape::Protected),
            (vec![], Shape::Other),
            (vec![0x40, 1, 0, 0], Shape::Other),
            (vec![22, 0xfe, 0xfd, 0], Shape::Other),
            (record(23, 1, 5, &[7; 20])[..30].to_vec(), Shape::Other),
        ] {
            assert_eq!(Shape::of(&datagram), shape, "{datagram:?}");
        }
    }

    #[test]
    fn records_in_the_clear_are_numbered_anew() {
        let mut flight = record(HANDSHAKE, 0, 1, &[1; 30]);
        flight.extend_from_slice(&record(20, 0, 2, &[1]));
        let sealed = record(HANDSHAKE, 1, 0, &[9; 24]);
        flight.extend_from_slice(&sealed);
        renumber(&mut flight, 7);
        let mut expected = record(HANDSHAKE, 0, 8, &[1; 30]);
        expected.extend_from_slice(&record(20, 0, 9, &[1]));
        expected.extend_from_slice(&sealed);
        assert_eq!(flight, expected);
        let written = in_record(3, CLIENT_HELLO, &[5; 4]).unwrap();
        assert_eq!(written, record(HANDSHAKE, 0, 3, &message(CLIENT_HELLO, 0, 0, &[5; 4])));
        assert_eq!(in_record(3, CLIENT_HELLO, &[5; 65_530]), None);
    }

    #[test]
    fn an_alert_follows_what_was_sent_before() {
        let mut flight = record(HANDSHAKE, 0, 4, &[1]);
        flight.extend_from_slice(&record(20, 0, 5, &[1]));
        assert!(!has_finished(&flight));
        flight.extend_from_slice(&record(HANDSHAKE, 1, 0, &[1; 24]));
        assert!(has_finished(&flight));
        assert_eq!(next_in_clear(&flight), 6);
        let alert = fatal_alert(6, 51);
        assert_eq!(Shape::of(&alert), Shape::FatalAlert { description: 51 });
        assert_eq!(next_in_clear(&alert), 7);
    }
}
