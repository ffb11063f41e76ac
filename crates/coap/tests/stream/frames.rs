//! The worked examples of frames, both ways.

use millpond_coap::message::{Code, Fault, Token, number};
use millpond_coap::stream::{Frame, FrameFault, FrameReader, Signal, write_frame};

pub(crate) fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn token(bytes: &[u8]) -> Token {
    Token::new(bytes).unwrap()
}

fn written(code: Code, token: Token, options: &[(u16, &[u8])], payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let length = write_frame(&mut bytes, code, token, options, payload, u32::MAX).unwrap();
    assert_eq!(length, bytes.len());
    bytes
}

#[test]
fn requests_and_responses() {
    let seven_f = written(Code::VALID, token(&[0x7f]), &[], &[]);
    assert_eq!(seven_f, hex("01 43 7F"));
    let hello = written(Code::GET, token(&[0x71]), &[(number::URI_PATH, b"hello")], &[]);
    assert_eq!(hello, hex("61 01 71 B5 68 65 6C 6C 6F"));
    let frame = Frame::parse(&hello).unwrap();
    assert_eq!((frame.code, frame.token), (Code::GET, token(&[0x71])));
    assert!(frame.uri_path().eq([b"hello"]));

    let sixty = written(Code::CONTENT, token(&[0x71]), &[(number::CONTENT_FORMAT, &[])], &[b'.'; 60]);
    assert_eq!((&sixty[..6], sixty.len()), (&hex("D1 31 45 71 C0 FF")[..], 66));
    assert_eq!(Frame::parse(&sixty).unwrap().payload(), [b'.'; 60]);

    let body = vec![b'x'; 102_400];
    let format = written(Code::CONTENT, Token::EMPTY, &[(number::CONTENT_FORMAT, &[])], &body);
    assert_eq!((&format[..8], format.len()), (&hex("F0 00 00 8E F5 45 C0 FF")[..], 102_408));
    let tokened = written(Code::CONTENT, token(&[0x71]), &[], &body);
    assert_eq!((&tokened[..8], tokened.len()), (&hex("F1 00 00 8E F4 45 71 FF")[..], 102_408));
    assert_eq!(Frame::parse(&format).unwrap().payload(), body);
}

#[test]
fn lengths_at_the_edges_of_their_forms() {
    for (length, start) in [
        (12_usize, "C0 45 FF"),
        (13, "D0 00 45 FF"),
        (268, "D0 FF 45 FF"),
        (269, "E0 00 00 45 FF"),
        (65_804, "E0 FF FF 45 FF"),
        (65_805, "F0 00 00 00 00 45 FF"),
    ] {
        let payload = vec![7; length - 1];
        let bytes = written(Code::CONTENT, Token::EMPTY, &[], &payload);
        assert!(bytes.starts_with(&hex(start)), "{length}: {:02x?}", &bytes[..7]);
        assert_eq!(Frame::parse(&bytes).unwrap().payload(), payload);
    }
}

/// The encoder takes the shortest form; the decoder takes any.
#[test]
fn a_length_in_a_longer_form_is_read() {
    for form in ["60 01 B5 68 65 6C 6C 6F", "E0 00 00 45", "F0 00 00 00 00 45"] {
        let mut bytes = hex(form);
        if bytes[0] == 0xe0 || bytes[0] == 0xf0 {
            let n = if bytes[0] == 0xe0 { 269 } else { 65_805 };
            bytes.push(0xff);
            bytes.resize(bytes.len() + n - 1, 1);
        }
        assert!(Frame::parse(&bytes).is_ok(), "{form}");
    }
}

#[test]
fn signals_byte_by_byte() {
    let address: &[u8] = b"h2.example:5683";
    for (bytes, with, signal) in [
        ("00 E1", "", Signal::Csm { max_message_size: None, block_wise: false, longest_token: None }),
        ("40 E1 22 04 80 20", "", Signal::Csm { max_message_size: Some(1_152), block_wise: true, longest_token: None }),
        ("11 E2 42 20", "42", Signal::Ping { custody: true }),
        ("11 E3 42 20", "42", Signal::Pong { custody: true }),
        ("01 E2 42", "42", Signal::Ping { custody: false }),
        ("01 E3 42", "42", Signal::Pong { custody: false }),
        (
            "D0 06 E4 2D 02 68 32 2E 65 78 61 6D 70 6C 65 3A 35 36 38 33 21 3C",
            "",
            Signal::Release { alternative: Some(address), hold_off: Some(60) },
        ),
        ("60 E5 21 07 FF 62 61 64", "", Signal::Abort { bad_csm_option: Some(7), diagnostic: b"bad" }),
    ] {
        let expected = hex(bytes);
        let mut ours = Vec::new();
        signal.write(&mut ours, token(&hex(with)), 1_152).unwrap();
        assert_eq!(ours, expected, "{signal:?}");
        let frame = Frame::parse(&expected).unwrap();
        assert_eq!(Signal::read(&frame), Ok(signal));
        assert_eq!(frame.token, token(&hex(with)));
    }
}

/// Code 0.00 is for keeping alive, and whatever it carries is to be ignored.
#[test]
fn an_empty_message_may_carry_anything() {
    for bytes in ["00 00", "30 00 F0 F1 F2", "21 00 42 FF FF"] {
        assert!(Frame::parse(&hex(bytes)).unwrap().code.is_empty(), "{bytes}");
    }
}

#[test]
fn what_is_no_frame_is_refused_with_its_place() {
    for (bytes, at, fault) in [
        ("09 45", 0, FrameFault::Content(Fault::TokenLength(9))),
        ("0F 45", 0, FrameFault::Content(Fault::TokenLength(15))),
        ("10 45 FF", 2, FrameFault::Content(Fault::PayloadMissing)),
        ("10 45 F0", 2, FrameFault::Content(Fault::ReservedDelta)),
        ("10 45 0F", 2, FrameFault::Content(Fault::ReservedLength)),
        ("21 45 71 13 00", 3, FrameFault::Content(Fault::ValueTruncated)),
        ("00 20", 1, FrameFault::Content(Fault::ReservedClass(1))),
        ("00 C0", 1, FrameFault::Content(Fault::ReservedClass(6))),
        ("10 45", 2, FrameFault::Length),
        ("00 45 00", 3, FrameFault::Length),
        ("", 0, FrameFault::Length),
    ] {
        let error = Frame::parse(&hex(bytes)).unwrap_err();
        assert_eq!((error.at, error.fault), (at, fault), "{bytes}");
    }
}

#[test]
fn a_frame_that_announces_too_much_is_refused_at_once() {
    let mut reader = FrameReader::new(1_152);
    reader.push(&hex("F0 00 00 8E"));
    assert!(reader.next_frame().unwrap().is_none(), "its length is not all there");
    reader.push(&hex("F5"));
    let error = reader.next_frame().unwrap_err();
    assert_eq!(error.fault, FrameFault::OverLimit { announced: 102_408, limit: 1_152 });
    assert_eq!(error.to_string(), "a frame of 102408 bytes, but at most 1152 were agreed to (byte 0 of the frame)");
    reader.push(&hex("00 00"));
    assert_eq!(reader.next_frame().unwrap_err(), error, "there is no way back into step");
}

#[test]
fn what_cannot_be_written_leaves_the_buffer_alone() {
    let mut buffer = vec![1, 2, 3];
    for (options, payload, limit) in [
        (&[(11, &b"a"[..]), (4, &b"b"[..])][..], &b""[..], 1_152),
        (&[][..], &[0; 100][..], 50),
        (&[(11, &[0; 65_805][..])][..], &b""[..], u32::MAX),
    ] {
        assert!(write_frame(&mut buffer, Code::GET, Token::EMPTY, options, payload, limit).is_err());
        assert_eq!(buffer, [1, 2, 3]);
    }
}
