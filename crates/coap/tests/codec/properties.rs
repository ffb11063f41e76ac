//! Random messages, random bytes, and random damage to messages.

use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer};
use proptest::collection::vec;
use proptest::prelude::*;

/// Options by the step from the number before and the length of their value.
type Steps = Vec<(u16, Vec<u8>)>;

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Confirmable), Just(Kind::NonConfirmable), Just(Kind::Acknowledgement), Just(Kind::Reset)]
}

/// Steps and lengths that use all three forms of RFC 7252 §3.1, small ones most.
fn steps() -> impl Strategy<Value = Steps> {
    let step = prop_oneof![6 => 0..20_u16, 2 => 250..290_u16, 1 => any::<u16>()];
    let value = prop_oneof![8 => vec(any::<u8>(), 0..20), 1 => vec(any::<u8>(), 260..280)];
    vec((step, value), 0..8)
}

fn messages() -> impl Strategy<Value = (Kind, u8, u16, Vec<u8>, Steps, Vec<u8>)> {
    (kinds(), any::<u8>(), any::<u16>(), vec(any::<u8>(), 0..=8), steps(), vec(any::<u8>(), 0..80))
}

/// A well-formed message with up to three bytes changed, inserted or cut off.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    (messages(), vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 0..=3)).prop_map(|(message, damages)| {
        let (kind, code, id, token, steps, payload) = message;
        let mut bytes = Vec::new();
        let code = if Code::from_byte(code).suits(kind) { Code::from_byte(code) } else { Code::GET };
        let kind = if code.suits(kind) { kind } else { Kind::Confirmable };
        let mut writer = Writer::start(&mut bytes, kind, code, MessageId(id), Token::new(&token).unwrap());
        let mut number = 0_u16;
        for (step, value) in &steps {
            number = number.saturating_add(*step);
            writer.option(number, value).unwrap();
        }
        writer.payload(&payload).unwrap();
        if writer.finish().is_err() {
            Writer::reset(&mut bytes, MessageId(id));
        }
        for (place, byte, damage) in damages {
            let at = place.index(bytes.len() + 1);
            match damage {
                0 => bytes.insert(at, byte),
                1 => bytes.truncate(at),
                2 if at < bytes.len() => bytes[at] = 0xff,
                _ if at < bytes.len() => bytes[at] = byte,
                _ => bytes.push(byte),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is written comes back; whatever may not be written is told at the end and leaves no trace.
    #[test]
    fn written_messages_come_back((kind, code, id, token, steps, payload) in messages()) {
        let code = Code::from_byte(code);
        let token = Token::new(&token).unwrap();
        let mut bytes = Vec::new();
        let mut writer = Writer::start(&mut bytes, kind, code, MessageId(id), token);
        let mut number = 0_u16;
        let mut options = Vec::new();
        for (step, value) in &steps {
            if let Some(reached) = number.checked_add(*step) {
                number = reached;
                writer.option(number, value).unwrap();
                options.push((number, value.as_slice()));
            }
        }
        writer.payload(&payload).unwrap();
        let empty = token.is_empty() && options.is_empty() && payload.is_empty();
        let sound = code.suits(kind) && (!code.is_empty() || empty);
        let finished = writer.finish();
        prop_assert_eq!(finished.is_ok(), sound);
        if !sound {
            prop_assert!(bytes.is_empty());
            return Ok(());
        }
        prop_assert_eq!(finished, Ok(bytes.len()));
        let message = Message::parse(&bytes).unwrap();
        prop_assert_eq!((message.kind, message.code, message.id.0, message.token), (kind, code, id, token));
        let read: Vec<_> = message.options().map(|option| (option.number, option.value)).collect();
        prop_assert_eq!(read, options);
        prop_assert_eq!(message.payload(), &payload[..]);
    }

    #[test]
    fn random_bytes_keep_every_promise(bytes in vec(any::<u8>(), 0..64)) {
        super::datagram::check(&bytes);
        super::differential::check(&bytes);
    }

    /// As above with a good first byte and code, so that more of them get as far as the options.
    #[test]
    fn random_bodies_keep_every_promise(first in 0x40..0x49_u8, code in 1..8_u8, body in vec(any::<u8>(), 2..64)) {
        let bytes = [&[first, code], &body[..]].concat();
        super::datagram::check(&bytes);
        super::differential::check(&bytes);
    }

    #[test]
    fn damaged_messages_keep_every_promise(bytes in damaged()) {
        super::datagram::check(&bytes);
        super::differential::check(&bytes);
    }

    #[test]
    fn every_prefix_keeps_every_promise(bytes in damaged()) {
        for length in 0..bytes.len() {
            super::datagram::check(&bytes[..length]);
        }
    }

    /// Tokens are equal if their bytes are, and hash alike.
    #[test]
    fn tokens_are_their_bytes(one in vec(0..2_u8, 0..=9), other in vec(0..2_u8, 0..=9)) {
        use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
        let (a, b) = (Token::new(&one), Token::new(&other));
        prop_assert_eq!(a.is_some(), one.len() <= 8);
        if let (Some(a), Some(b)) = (a, b) {
            prop_assert_eq!(a.as_bytes(), &one[..]);
            prop_assert_eq!(a == b, one == other);
            let hashing = BuildHasherDefault::<DefaultHasher>::default();
            prop_assert_eq!(hashing.hash_one(a) == hashing.hash_one(b), one == other);
        }
    }
}
