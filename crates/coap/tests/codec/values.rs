//! The small types: codes, kinds, tokens, numbers as option values, errors as text.

use millpond_coap::message::{Code, Fault, Kind, Message, MessageId, ParseError, Token, Uint, Writer};

/// Every byte is a code of exactly one sort (RFC 7252 §12.1).
#[test]
fn every_code_is_of_one_sort() {
    for byte in 0..=255_u8 {
        let code = Code::from_byte(byte);
        assert_eq!(Code::new(code.class(), code.detail()), Some(code));
        assert_eq!(code.to_byte(), byte);
        let sorts = [code.is_empty(), code.is_request(), code.is_response(), code.is_reserved()];
        assert_eq!(sorts.iter().filter(|sort| **sort).count(), 1, "{code}");
    }
    assert_eq!((Code::new(8, 0), Code::new(2, 32)), (None, None));
    assert!(Code::new(3, 0).unwrap().is_response());
}

#[test]
fn codes_read_as_the_rfc_writes_them() {
    assert_eq!(Code::CONTENT.to_byte(), 69);
    assert_eq!(Code::CONTENT.to_string(), "2.05");
    assert_eq!(format!("{:?}", Code::NOT_FOUND), "4.04 Not Found");
    assert_eq!(format!("{:?}", Code::from_byte(0x5e)), "2.30");
    assert_eq!(Code::GET.name(), Some("GET"));
}

#[test]
fn kinds_ids_and_tokens_read_well() {
    assert_eq!(format!("{:>4}", Kind::Confirmable), " CON");
    assert_eq!(MessageId(0x7d).to_string(), "0x007d");
    assert_eq!(Token::new(&[0x0a, 0xff]).unwrap().to_string(), "0aff");
    assert_eq!(Token::default().to_string(), "-");
}

#[test]
fn a_token_is_not_its_longer_neighbour() {
    assert_ne!(Token::new(&[0]), Token::new(&[0, 0]));
    assert_ne!(Token::new(&[]), Token::new(&[0]));
    assert_eq!(Token::new(&[0; 9]), None);
}

/// What follows a token in the datagram is no part of it, on datagrams long and short.
#[test]
fn tokens_take_nothing_from_their_neighbours() {
    for length in 0..=8_u8 {
        for tail in [b"".as_slice(), b"\xff!", b"\xff a payload longer than any token"] {
            let token = vec![0xaa; usize::from(length)];
            let bytes = [&[0x40 | length, 1, 0, 0], &token[..], tail].concat();
            let message = Message::parse(&bytes).unwrap();
            assert_eq!(message.token, Token::new(&token).unwrap());
            assert_eq!(message.token.as_bytes(), token);
        }
    }
}

#[test]
fn numbers_come_back_and_may_have_leading_zeros() {
    for shift in 0..32 {
        for number in [(1_u32 << shift) - 1, 1 << shift, u32::MAX >> shift] {
            let value = Uint::new(number);
            assert_eq!(value.len(), (32 - number.leading_zeros() as usize).div_ceil(8));
            assert_eq!(Uint::read(&value), Some(number));
            assert_eq!(Uint::read(&[&[0; 3], value.as_bytes()].concat()), Some(number));
        }
    }
    assert_eq!(Uint::read(&[]), Some(0));
    assert_eq!(Uint::read(&[1, 0, 0, 0, 0]), None);
    assert_eq!(Uint::read(&[0xff; 5]), None);
}

#[test]
fn errors_name_place_and_fault() {
    let error = Message::parse(b"\x40\x01\x12\x34\xb5hell").unwrap_err();
    assert_eq!(
        error,
        ParseError { at: 4, fault: Fault::ValueTruncated, header: Some((Kind::Confirmable, MessageId(0x1234))) }
    );
    assert_eq!(error.to_string(), "the option's value is cut short (byte 4)");
    let error = Message::parse(b"\x90\x01\x12\x34").unwrap_err();
    assert_eq!(error.to_string(), "version 2 instead of 1 (byte 0)");
    let mut buffer = Vec::new();
    let writer = Writer::start(&mut buffer, Kind::Acknowledgement, Code::GET, MessageId(0), Token::EMPTY);
    assert_eq!(writer.finish().unwrap_err().to_string(), "ACK must not carry 0.01");
}

/// Endpoints keep tokens per exchange and pass messages about by value.
#[test]
fn sizes_stay_small() {
    assert_eq!(size_of::<Token>(), 9);
    assert_eq!(size_of::<Option<Code>>(), 2);
    assert!(size_of::<Message<'_>>() <= 48);
    assert!(size_of::<ParseError>() <= 24);
}

#[test]
fn copies_share_what_rfc_7252_tells_them_by() {
    use millpond_coap::message::copies_share;
    let of = |bytes: &[u8]| copies_share(bytes);
    // A token, and options, of another length make no other message.
    assert_eq!(of(b"\x40\x01\x12\x34"), of(b"\x42\x01\x12\x34tk\xb1a"));
    assert!(of(b"\x40\x01\x12\x34").is_some());
    // Type, code and message ID do.
    for other in [b"\x50\x01\x12\x34", b"\x40\x02\x12\x34", b"\x40\x01\x12\x35", b"\x60\x01\x12\x34"] {
        assert!(of(other).is_some());
        assert_ne!(of(other), of(b"\x40\x01\x12\x34"));
    }
    // Too short, a record of DTLS 1.2, one of DTLS 1.3.
    for none in [&b"\x40\x01\x12"[..], b"\x16\xfe\xfd\x00", b"\x2f\x00\x01\x02", b""] {
        assert_eq!(of(none), None);
    }
}
