//! What the header of a DTLS record says in clear: RFC 6347 §4.1, RFC 9147 §4, RFC 9146 §4.

/// The first record of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// It carries what the application says, or may: of DTLS 1.3 and with connection IDs that is encrypted.
    pub is_data: bool,
    /// Epoch and sequence number, where they are in clear.
    pub number: Option<(u16, u64)>,
}

const CHANGE_CIPHER_SPEC: u8 = 20;
const APPLICATION_DATA: u8 = 23;
const TLS12_CID: u8 = 25;
const ACK: u8 = 26;
/// DTLS 1.0 and 1.2 on the wire; 1.3 writes 1.2 in records that are not encrypted.
const VERSIONS: [[u8; 2]; 2] = [[0xfe, 0xff], [0xfe, 0xfd]];

/// The record with which a datagram begins; `None` if it is no DTLS. No message of CoAP begins so: its version is another.
pub(crate) fn record(datagram: &[u8]) -> Option<Record> {
    let &[kind, ..] = datagram else { return None };
    if kind >> 5 == 0b001 {
        return Some(Record { is_data: true, number: None });
    }
    let &[_, major, minor, e1, e0, s5, s4, s3, s2, s1, s0, ..] = datagram else { return None };
    if !(CHANGE_CIPHER_SPEC..=ACK).contains(&kind) || !VERSIONS.contains(&[major, minor]) {
        return None;
    }
    let number = (u16::from_be_bytes([e1, e0]), u64::from_be_bytes([0, 0, s5, s4, s3, s2, s1, s0]));
    Some(Record { is_data: matches!(kind, APPLICATION_DATA | TLS12_CID), number: Some(number) })
}
