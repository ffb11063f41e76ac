//! What must hold of any datagram at all. Also the body of the fuzz target `datagram`.

use millpond_coap::message::{Fault, Kind, Message, Token, Writer};

/// Parses, walks through the options and writes the same message again.
pub(crate) fn check(bytes: &[u8]) {
    let message = match Message::parse(bytes) {
        Ok(message) => message,
        Err(error) => {
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
    assert!(message.token.len() <= Token::MAX);
    assert!(message.kind != Kind::Reset || bytes.len() == 4);

    let mut written = b"what was there before".to_vec();
    let before = written.len();
    let mut writer = Writer::start(&mut written, message.kind, message.code, message.id, message.token);
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
