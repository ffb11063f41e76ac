//! Our reading of a datagram beside that of `coap-lite`. Also the body of the fuzz target `differential`.
//!
//! What we accept, it accepts and reads the same, and writes back as the same bytes; one exception: it keeps lengths
//! in 16 bits, so it refuses option values above 65535 bytes. What it accepts and we refuse is one of [`strictness`]'s
//! reasons, each a sentence of RFC 7252 that it does not check.

use coap_lite::{MessageType, Packet};
use millpond_coap::message::{Code, Fault, Kind, Message};

/// Reads with both and compares.
pub(crate) fn check(bytes: &[u8]) {
    match (Message::parse(bytes), Packet::from_bytes(bytes)) {
        (Ok(ours), Ok(theirs)) => same(&ours, &theirs, bytes),
        (Ok(ours), Err(error)) => {
            let longest = ours.options().map(|option| option.value.len()).max();
            assert!(longest > Some(65_535), "only the oracle refuses ({error:?}): {bytes:02x?}");
        }
        (Err(error), Ok(_)) => {
            assert!(strictness(error.fault, bytes), "only we refuse ({error}): {bytes:02x?}");
        }
        (Err(_), Err(_)) => {}
    }
}

fn same(ours: &Message<'_>, theirs: &Packet, bytes: &[u8]) {
    let kind = match theirs.header.get_type() {
        MessageType::Confirmable => Kind::Confirmable,
        MessageType::NonConfirmable => Kind::NonConfirmable,
        MessageType::Acknowledgement => Kind::Acknowledgement,
        MessageType::Reset => Kind::Reset,
    };
    assert_eq!(theirs.header.get_version(), 1);
    assert_eq!(ours.kind, kind);
    assert_eq!(ours.code.to_byte(), u8::from(theirs.header.code));
    assert_eq!(ours.id.0, theirs.header.message_id);
    assert_eq!(ours.token.as_bytes(), theirs.get_token());
    let options = theirs.options().flat_map(|(number, values)| values.iter().map(move |value| (*number, &value[..])));
    assert!(ours.options().map(|option| (option.number, option.value)).eq(options), "options differ: {bytes:02x?}");
    assert_eq!(ours.payload(), theirs.payload);
    assert_eq!(theirs.to_bytes_unlimited().expect("the oracle writes what it read"), bytes);
}

/// Is this one of the things that the oracle lets pass and we do not, and do the bytes show it?
fn strictness(fault: Fault, bytes: &[u8]) -> bool {
    let code = Code::from_byte(bytes[1]);
    match fault {
        // §3: other versions are to be ignored.
        Fault::Version(version) => version != 1 && version == bytes[0] >> 6,
        // §4.2, §4.3: classes 1, 6 and 7.
        Fault::ReservedClass(class) => matches!(class, 1 | 6 | 7) && class == bytes[1] >> 5,
        // §4.2, §4.3: no request in an acknowledgement, nothing but emptiness in a reset, no empty non-confirmable.
        Fault::UnsuitedCode => match (bytes[0] >> 4) & 3 {
            1 => code == Code::EMPTY,
            2 => code.is_request(),
            3 => code != Code::EMPTY,
            _ => false,
        },
        // §4.1: nothing follows the message ID of an empty message.
        Fault::NotEmpty => code == Code::EMPTY && bytes.len() > 4,
        // §3: a marker is followed by a payload.
        Fault::PayloadMissing => bytes.last() == Some(&0xff),
        _ => false,
    }
}
