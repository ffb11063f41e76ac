//! What must hold of any datagram at all. Also the body of the fuzz target `datagram`.

use millpond_coap::message::{Fault, Kind, Message, Token, Writer};

/// Parses, walks through the options and writes the same message again.
pub(crate) fn check(bytes: &[u8]) {
    let (message, long) = match Message::parse(bytes) {
        Ok(message) => {
            let (same, token) = Message::parse_extended(bytes).expect("what is no longer is read too");
            assert_eq!((same.token, token), (message.token, message.token.as_bytes()));
            (message, None)
        }
        Err(error) if matches!(error.fault, Fault::TokenLength(9..=14)) => match Message::parse_extended(bytes) {
            Ok((message, token)) => (message, Some(token)),
            Err(longer) => {
                assert!(longer.at <= bytes.len() && longer.header == error.header, "{longer}");
                return;
            }
        },
        Err(error) => {
            assert_eq!(Message::parse_extended(bytes).err(), Some(error));
            // Only a token may be missing altogether; anything else at fault has a first byte.
            let end = if error.fault == Fault::TokenTruncated { bytes.len() + 1 } else { bytes.len().max(1) };
            assert!(error.at < end, "{error} lies outside of {} bytes", bytes.len());
            let readable = bytes.len() >= 4 && bytes[0] >> 6 == 1;
            assert_eq!(error.header.is_some(), readable, "{error}");
            assert_eq!(error.reset().is_some(), readable && bytes[0] & 0x30 == 0, "{error}");
            assert_eq!(matches!(error.fault, Fault::ShortHeader), bytes.len() < 4, "{error}");
            return;
        }
    };
    assert!(message.code.suits(message.kind));
    match long {
        Some(token) => {
            assert!(message.token.is_long() && token.len() == message.token.len() && token.len() > Token::MAX)
        }
        None => assert!(message.token.len() <= Token::MAX),
    }
    assert!(message.kind != Kind::Reset || bytes.len() == 4);

    let mut written = b"what was there before".to_vec();
    let before = written.len();
    let mut writer = match long {
        Some(token) => Writer::start_extended(&mut written, message.kind, message.code, message.id, token),
        None => Writer::start(&mut written, message.kind, message.code, message.id, message.token),
    };
    writer = writer.within(usize::MAX);
    let mut previous = 0;
    let mut options = 0;
    for option in message.options() {
        assert!(option.number >= previous, "options are not in order");
        assert!(message.values(option.number).any(|value| value == option.value));
        previous = option.number;
        options += 1;
        writer.option(option.number, option.value).expect("what was parsed can be written");
    }
    assert!(options <= bytes.len() - 4, "each option takes at least one byte");
    writer.payload(message.payload()).expect("what was parsed can be written");
    let length = writer.finish().expect("what was parsed can be written");
    assert_eq!(length, bytes.len());
    assert_eq!(&written[before..], bytes, "the same message has only one form");
}
