//! What can be told of a datagram of DTLS without any key (RFC 6347 §4.1, RFC 9147 §4), and alerts in the clear.

/// Bytes of a record's header in the clear.
const HEADER: usize = 13;
/// Bytes of a handshake message's header.
const MESSAGE_HEADER: usize = 12;
/// Where in a ClientHello its random value begins, behind the version.
const RANDOM: usize = MESSAGE_HEADER + 2;
/// Content types (RFC 6347 §4.3.1).
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
/// Kinds of handshake messages.
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const HELLO_VERIFY_REQUEST: u8 = 3;
/// The random value by which a ServerHello is a HelloRetryRequest (RFC 8446 §4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// What the first record of a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// The beginning of a ClientHello, the first or one that answers a cookie.
    ClientHello {
        /// It answers no cookie.
        is_first: bool,
        /// The beginning of its random value: another handshake has another one.
        random: u64,
    },
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
                        Some(Message { kind: CLIENT_HELLO, number, offset: 0 }) => {
                            let random = body.get(RANDOM..).and_then(<[u8]>::first_chunk);
                            let random = random.map_or(0, |random| u64::from_be_bytes(*random));
                            Self::ClientHello { is_first: number == 0, random }
                        }
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
struct Record<'d> {
    kind: u8,
    epoch: u16,
    sequence: u64,
    body: &'d [u8],
    rest: &'d [u8],
}

impl<'d> Record<'d> {
    fn first(datagram: &'d [u8]) -> Option<Self> {
        let (header, rest) = datagram.split_first_chunk::<HEADER>()?;
        let [kind, _, _, e0, e1, s0, s1, s2, s3, s4, s5, l0, l1] = *header;
        let (body, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])))?;
        let sequence = u64::from_be_bytes([0, 0, s0, s1, s2, s3, s4, s5]);
        Some(Self { kind, epoch: u16::from_be_bytes([e0, e1]), sequence, body, rest })
    }
}

/// The head of a handshake message.
struct Message {
    kind: u8,
    number: u16,
    offset: u32,
}

impl Message {
    fn of(body: &[u8]) -> Option<Self> {
        let (header, _) = body.split_first_chunk::<MESSAGE_HEADER>()?;
        let [kind, _, _, _, n0, n1, o0, o1, o2, ..] = *header;
        Some(Self { kind, number: u16::from_be_bytes([n0, n1]), offset: u32::from_be_bytes([0, o0, o1, o2]) })
    }
}

/// Whether a server's datagram says no more than that the client is to prove its address: it has a cookie and nothing
/// else (RFC 6347 §4.2.1, RFC 9147 §5.1).
pub(super) fn asks_for_cookie(datagram: &[u8]) -> bool {
    let Some(Record { kind: HANDSHAKE, epoch: 0, body, .. }) = Record::first(datagram) else { return false };
    match Message::of(body) {
        Some(Message { kind: HELLO_VERIFY_REQUEST, .. }) => true,
        Some(Message { kind: SERVER_HELLO, .. }) => {
            let random = MESSAGE_HEADER + 2;
            body.get(random..random + RETRY_RANDOM.len()) == Some(&RETRY_RANDOM[..])
        }
        _ => false,
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
            (hello(0, 0), Shape::ClientHello { is_first: true, random: 7 }),
            (hello(1, 0), Shape::ClientHello { is_first: false, random: 7 }),
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
    fn a_cookie_is_asked_for_in_either_version() {
        let mut retry = vec![0xfe, 0xfd];
        retry.extend_from_slice(&RETRY_RANDOM);
        assert!(asks_for_cookie(&record(HANDSHAKE, 0, 0, &message(HELLO_VERIFY_REQUEST, 0, 0, &[0xfe, 0xff, 0]))));
        assert!(asks_for_cookie(&record(HANDSHAKE, 0, 0, &message(SERVER_HELLO, 0, 0, &retry))));
        retry[5] ^= 1;
        assert!(!asks_for_cookie(&record(HANDSHAKE, 0, 0, &message(SERVER_HELLO, 0, 0, &retry))));
        assert!(!asks_for_cookie(&record(HANDSHAKE, 0, 0, &message(SERVER_HELLO, 0, 0, &[]))));
        assert!(!asks_for_cookie(&[]));
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
