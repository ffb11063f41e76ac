//! One test for each way in which CoAP parsers have gone wrong, and one for each sentence of RFC 7252 that lenient ones
//! leave out.

use millpond_coap::message::{Code, Fault, Kind, Message, MessageId, ParseError};

const ID: MessageId = MessageId(0x1234);

/// The error for a datagram that begins with a readable header of this kind and ID 0x1234.
fn refused(bytes: &[u8], kind: Kind) -> (usize, Fault) {
    let error = Message::parse(bytes).expect_err("must be refused");
    assert_eq!(error.header, Some((kind, ID)), "{error}");
    assert_eq!(error.reset(), (kind == Kind::Confirmable).then_some(ID), "{error}");
    (error.at, error.fault)
}

/// As [`refused`], for what follows the header of a confirmable GET without token.
fn refused_body(body: &[u8]) -> (usize, Fault) {
    refused(&[b"\x40\x01\x12\x34", body].concat(), Kind::Confirmable)
}

/// The deltas of two options add up to 65536: a 16-bit sum wraps to option 0 (CVE-2020-12887 and its like).
#[test]
fn option_numbers_that_wrap_past_16_bits_are_refused() {
    assert_eq!(refused_body(b"\xe0\xfe\xf2\x10"), (7, Fault::NumberOverflow));
    assert_eq!(refused_body(b"\xe0\xfe\xf2\xe0\xff\xff"), (7, Fault::NumberOverflow));
    // One step less is the largest number there is.
    let message = b"\x40\x01\x12\x34\xe0\xfe\xf2\x00";
    assert!(Message::parse(message).unwrap().options().map(|option| option.number).eq([65_535, 65_535]));
}

/// A single delta beyond 65535: the two extension bytes plus 269 do not fit 16 bits either.
#[test]
fn a_delta_that_wraps_on_its_own_is_refused() {
    assert_eq!(refused_body(b"\xe0\xfe\xf3"), (4, Fault::NumberOverflow));
    assert_eq!(refused_body(b"\xe0\xff\xff"), (4, Fault::NumberOverflow));
}

/// A length of 65535 + 269 must not wrap to 268 and then find its bytes.
#[test]
fn a_length_that_wraps_past_16_bits_finds_no_value() {
    let body = [b"\x0e\xff\xff".as_slice(), &[0; 1000]].concat();
    assert_eq!(refused_body(&body), (4, Fault::ValueTruncated));
}

/// Token lengths 9 to 15 are refused before anything of the token is read, however short the datagram. 13 and 14
/// announce extension bytes in RFC 8974, which parsers have read beyond the end (GHSA-p9hp-2jxm-6rqp).
#[test]
fn token_lengths_9_to_15_are_refused_on_short_and_long_datagrams() {
    for length in 9..=15_u8 {
        for tail in 0..40 {
            let bytes = [&[0x40 | length, 0x01, 0x12, 0x34], vec![0; tail].as_slice()].concat();
            assert_eq!(refused(&bytes, Kind::Confirmable), (0, Fault::TokenLength(length)));
        }
    }
}

#[test]
fn tokens_longer_than_the_datagram_are_refused() {
    for length in 1..=8_u8 {
        for present in 0..usize::from(length) {
            let bytes = [&[0x40 | length, 0x01, 0x12, 0x34], vec![0; present].as_slice()].concat();
            assert_eq!(refused(&bytes, Kind::Confirmable), (4, Fault::TokenTruncated));
        }
    }
}

/// A parser that advances by the value's length stands still on these.
#[test]
fn options_without_value_end() {
    let bytes = [b"\x40\x01\x12\x34".as_slice(), &[0x00; 1000]].concat();
    let message = Message::parse(&bytes).unwrap();
    assert_eq!(message.options().count(), 1000);
    assert!(message.options().all(|option| option.number == 0 && option.value.is_empty()));
}

#[test]
fn payload_marker_without_payload_is_refused() {
    assert_eq!(refused_body(b"\xff"), (4, Fault::PayloadMissing));
    assert_eq!(refused_body(b"\xb5hello\xff"), (10, Fault::PayloadMissing));
    // The first marker ends the options, whatever the payload looks like.
    assert_eq!(Message::parse(b"\x40\x01\x12\x34\xff\xff").unwrap().payload(), b"\xff");
}

/// An "empty" message with a token, options or a payload is a message format error (§4.1).
#[test]
fn empty_messages_with_content_are_refused() {
    for kind in [Kind::Confirmable, Kind::Acknowledgement, Kind::Reset] {
        let first = 0x40 | ((kind as u8) << 4);
        for (token_length, tail) in [(1, b"\xaa".as_slice()), (0, b"\x00"), (0, b"\xff!"), (0, b"\xff"), (3, b"")] {
            let bytes = [&[first | token_length, 0x00, 0x12, 0x34], tail].concat();
            // A token is at fault where it is announced, whether or not its bytes are there.
            let at = if token_length == 0 { 4 } else { 0 };
            assert_eq!(refused(&bytes, kind), (at, Fault::NotEmpty));
        }
        assert!(Message::parse(&[first, 0x00, 0x12, 0x34]).is_ok());
    }
}

/// Any other version is ignored in silence (§3): its other fields mean nothing, so no message ID comes out.
#[test]
fn other_versions_are_told_apart_and_never_answered() {
    for version in [0, 2, 3_u8] {
        let error = Message::parse(&[version << 6, 0x01, 0x12, 0x34]).expect_err("must be refused");
        assert_eq!(error, ParseError { at: 0, fault: Fault::Version(version), header: None });
        assert_eq!(error.reset(), None);
    }
}

/// An answer to something that has no message ID could only be wrong.
#[test]
fn datagrams_shorter_than_a_header_are_never_answered() {
    for length in 0..4 {
        let error = Message::parse(&[0x40, 0x01, 0x12][..length.min(3)]).expect_err("must be refused");
        assert_eq!(error, ParseError { at: 0, fault: Fault::ShortHeader, header: None });
    }
}

/// Nibble 15 is the payload marker or nothing (§3.1).
#[test]
fn delta_and_length_15_are_refused() {
    for other in 0..15_u8 {
        assert_eq!(refused_body(&[0xf0 | other, 0, 0, 0, 0]), (4, Fault::ReservedDelta));
        // The bytes that extend the delta are there, so that the length is what stops the reader.
        let delta_bytes = match other {
            13 => 1,
            14 => 2,
            _ => 0,
        };
        let body = [&[(other << 4) | 0x0f], vec![0; delta_bytes].as_slice(), &[0; 20]].concat();
        assert_eq!(refused_body(&body), (4, Fault::ReservedLength));
    }
}

#[test]
fn missing_extension_bytes_are_refused() {
    for body in
        [b"\xd0".as_slice(), b"\xe0", b"\xe0\x00", b"\x0d", b"\x0e", b"\x0e\x00", b"\xdd\x00", b"\xee\x00\x00\x00"]
    {
        assert_eq!(refused_body(body), (4, Fault::OptionTruncated), "{body:02x?}");
    }
}

#[test]
fn values_past_the_end_are_refused() {
    assert_eq!(refused_body(b"\xb5hell"), (4, Fault::ValueTruncated));
    assert_eq!(refused_body(b"\xb5hello\x0c"), (10, Fault::ValueTruncated));
    assert_eq!(refused_body(b"\xbd\x00"), (4, Fault::ValueTruncated));
    // The marker's byte inside a value is value.
    assert_eq!(refused_body(b"\xb2\xff"), (4, Fault::ValueTruncated));
}

/// Classes 1, 6 and 7 are reported so that a confirmable message can be reset (§4.2).
#[test]
fn reserved_code_classes_are_refused() {
    for class in [1, 6, 7_u8] {
        for detail in 0..32 {
            for kind in [Kind::Confirmable, Kind::NonConfirmable, Kind::Acknowledgement, Kind::Reset] {
                let bytes = [0x40 | ((kind as u8) << 4), (class << 5) | detail, 0x12, 0x34];
                assert_eq!(refused(&bytes, kind), (1, Fault::ReservedClass(class)));
            }
        }
    }
}

/// Table 1 of §4: which kinds may be empty, a request, a response. A reset that is not empty must not be answered by
/// another reset.
#[test]
fn codes_that_do_not_suit_the_kind_are_refused() {
    let unsuited = [
        (Kind::NonConfirmable, Code::EMPTY),
        (Kind::Acknowledgement, Code::GET),
        (Kind::Reset, Code::GET),
        (Kind::Reset, Code::CONTENT),
    ];
    for kind in [Kind::Confirmable, Kind::NonConfirmable, Kind::Acknowledgement, Kind::Reset] {
        for code in [Code::EMPTY, Code::GET, Code::CONTENT] {
            let bytes = [0x40 | ((kind as u8) << 4), code.to_byte(), 0x12, 0x34];
            if unsuited.contains(&(kind, code)) {
                assert_eq!(refused(&bytes, kind), (1, Fault::UnsuitedCode));
            } else {
                let message = Message::parse(&bytes).unwrap();
                assert_eq!((message.kind, message.code, message.id), (kind, code, ID));
            }
        }
    }
}

/// Whatever is cut off, nothing panics, and only whole options or whole messages remain.
#[test]
fn every_prefix_of_a_message_is_read_without_panic() {
    let long = [0x61; 300];
    let whole = [
        b"\x48\x02\x12\x34\x01\x02\x03\x04\x05\x06\x07\x08".as_slice(),
        b"\x3bexample.net\x80\x05hello\x41\x2a\xde\x00\x00\x1f",
        &long,
        b"\xed\x01\x00\x00",
        &long[..13],
        b"\xffpayload",
    ]
    .concat();
    let message = Message::parse(&whole).unwrap();
    assert_eq!((message.options().count(), message.payload()), (6, b"payload".as_slice()));
    let mut accepted = 0;
    for length in 0..whole.len() {
        super::datagram::check(&whole[..length]);
        super::differential::check(&whole[..length]);
        accepted += usize::from(Message::parse(&whole[..length]).is_ok());
    }
    // After the token, after each of the six options, and within the payload.
    assert_eq!(accepted, 1 + 6 + 6);
}
