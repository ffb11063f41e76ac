//! What the writer refuses, and that a refusal leaves no trace.

use millpond_coap::message::{Code, HEADER, Kind, MAX_DATAGRAM, Message, MessageId, Token, WriteError, Writer, number};

const ID: MessageId = MessageId(0xbeef);

fn get(buffer: &mut Vec<u8>) -> Writer<'_> {
    Writer::start(buffer, Kind::Confirmable, Code::GET, ID, Token::EMPTY)
}

#[test]
fn options_out_of_order_are_refused_and_leave_no_trace() {
    let mut buffer = Vec::new();
    let mut writer = get(&mut buffer);
    writer.option(number::CONTENT_FORMAT, b"").unwrap();
    let refused = writer.option(number::URI_PATH, b"late").unwrap_err();
    assert_eq!(refused, WriteError::Order { number: 11, after: 12 });
    assert_eq!(refused.to_string(), "option 11 after option 12: options go in ascending order");
    assert_eq!(writer.len(), 5);
    writer.option(number::CONTENT_FORMAT, b"").unwrap();
    writer.finish().unwrap();
    assert_eq!(buffer, b"\x40\x01\xbe\xef\xc0\x00");
}

#[test]
fn nothing_follows_the_payload() {
    let mut buffer = Vec::new();
    let mut writer = get(&mut buffer);
    writer.payload(b"").unwrap().option(number::URI_PATH, b"a").unwrap().payload(b"x").unwrap();
    assert_eq!(writer.option(number::URI_PATH, b"b").unwrap_err(), WriteError::AfterPayload);
    assert_eq!(writer.payload(b"y").unwrap_err(), WriteError::AfterPayload);
    writer.finish().unwrap();
    assert_eq!(buffer, b"\x40\x01\xbe\xef\xb1a\xffx");
}

#[test]
fn the_limit_counts_this_message_alone_and_to_the_byte() {
    let mut buffer = vec![0; 100];
    let mut writer = get(&mut buffer).within(12);
    writer.option(number::URI_PATH, b"hello").unwrap();
    assert_eq!(writer.option(number::URI_PATH, b"ab").unwrap_err(), WriteError::OverLimit { needed: 13, limit: 12 });
    assert_eq!(writer.payload(b"ab").unwrap_err(), WriteError::OverLimit { needed: 13, limit: 12 });
    writer.payload(b"a").unwrap();
    assert_eq!(writer.finish(), Ok(12));
    assert_eq!(buffer.len(), 112);

    let token = Token::new(b"12345678").unwrap();
    let short = Writer::start(&mut buffer, Kind::Confirmable, Code::GET, ID, token).within(11);
    assert_eq!(short.finish(), Err(WriteError::OverLimit { needed: 12, limit: 11 }));
    assert_eq!(buffer.len(), 112, "what did not become a message is taken back");
}

#[test]
fn a_datagram_is_the_limit_unless_another_is_set() {
    let mut buffer = Vec::new();
    let mut writer = get(&mut buffer);
    let needed = MAX_DATAGRAM + 1;
    let refused = writer.payload(&vec![0; needed - HEADER - 1]).unwrap_err();
    assert_eq!(refused, WriteError::OverLimit { needed, limit: MAX_DATAGRAM });
    writer.payload(&vec![0; needed - HEADER - 2]).unwrap();
    assert_eq!(writer.finish(), Ok(MAX_DATAGRAM));
}

#[test]
fn values_longer_than_can_be_told_are_refused() {
    let mut buffer = Vec::new();
    let mut writer = get(&mut buffer).within(usize::MAX);
    let refused = writer.option(number::URI_PATH, &vec![0; 65_805]).unwrap_err();
    assert_eq!(refused, WriteError::TooLong { number: 11, length: 65_805 });
    writer.option(number::URI_PATH, &vec![0; 65_804]).unwrap();
    writer.finish().unwrap();
    assert_eq!(Message::parse(&buffer).unwrap().option(number::URI_PATH).map(<[u8]>::len), Some(65_804));
}

#[test]
fn empty_messages_stay_empty() {
    let mut buffer = Vec::new();
    let token = Token::new(b"t").unwrap();
    let writer = Writer::start(&mut buffer, Kind::Confirmable, Code::EMPTY, ID, token);
    assert_eq!(writer.finish(), Err(WriteError::NotEmpty));
    let mut writer = Writer::start(&mut buffer, Kind::Acknowledgement, Code::EMPTY, ID, Token::EMPTY);
    writer.payload(b"x").unwrap();
    assert_eq!(writer.finish(), Err(WriteError::NotEmpty));
    let mut writer = Writer::start(&mut buffer, Kind::Reset, Code::EMPTY, ID, Token::EMPTY);
    writer.option(number::URI_PATH, b"").unwrap();
    assert_eq!(writer.finish(), Err(WriteError::NotEmpty));
    assert!(buffer.is_empty());
    let ping = Writer::start(&mut buffer, Kind::Confirmable, Code::EMPTY, ID, Token::EMPTY);
    assert_eq!(ping.finish(), Ok(4));
}

#[test]
fn a_code_must_suit_its_kind() {
    let mut buffer = Vec::new();
    for kind in [Kind::Confirmable, Kind::NonConfirmable, Kind::Acknowledgement, Kind::Reset] {
        for byte in 0..=255 {
            let code = Code::from_byte(byte);
            buffer.clear();
            let finished = Writer::start(&mut buffer, kind, code, ID, Token::EMPTY).finish();
            let bytes = [0x40 | ((kind as u8) << 4), byte, 0xbe, 0xef];
            let parsed = Message::parse(&bytes);
            assert_eq!(finished.is_ok(), parsed.is_ok(), "{kind} {code}");
            if finished.is_err() {
                assert_eq!(finished, Err(WriteError::UnsuitedCode { kind, code }));
                assert!(buffer.is_empty());
            }
        }
    }
}

#[test]
fn acknowledgement_and_reset_are_four_bytes() {
    let mut buffer = Vec::new();
    Writer::acknowledgement(&mut buffer, ID);
    Writer::reset(&mut buffer, MessageId(1));
    assert_eq!(buffer, b"\x60\x00\xbe\xef\x70\x00\x00\x01");
}

#[test]
fn a_dropped_writer_takes_back_what_it_wrote() {
    let mut buffer = b"before".to_vec();
    let mut writer = get(&mut buffer);
    writer.option(number::URI_PATH, b"hello").unwrap();
    drop(writer);
    assert_eq!(buffer, b"before");
}

#[test]
fn a_reused_buffer_never_grows() {
    let mut buffer = Vec::with_capacity(64);
    let place = buffer.as_ptr();
    for round in 0..1000_u16 {
        buffer.clear();
        let token = Token::new(&round.to_be_bytes()).unwrap();
        let mut writer = Writer::start(&mut buffer, Kind::Confirmable, Code::PUT, MessageId(round), token);
        writer.option(number::URI_PATH, b"hello").unwrap();
        writer.uint_option(number::CONTENT_FORMAT, u32::from(round)).unwrap();
        writer.payload(&[0; 40]).unwrap();
        assert!(writer.finish().unwrap() <= 64);
    }
    assert_eq!((buffer.as_ptr(), buffer.capacity()), (place, 64));
}

#[test]
fn numbers_are_written_in_as_few_bytes_as_it_takes() {
    let mut buffer = Vec::new();
    for (value, bytes) in
        [(0_u32, b"".as_slice()), (60, b"\x3c"), (11_542, b"\x2d\x16"), (u32::MAX, b"\xff\xff\xff\xff")]
    {
        buffer.clear();
        let mut writer = get(&mut buffer);
        writer.uint_option(number::MAX_AGE, value).unwrap();
        writer.finish().unwrap();
        let option = Message::parse(&buffer).unwrap().options().next().unwrap();
        assert_eq!((option.value, option.uint()), (bytes, Some(value)));
    }
}

/// §5.4.3: a value longer than the option's definition allows makes it an unrecognized one.
#[test]
fn content_format_beyond_two_bytes_is_not_recognized() {
    let mut buffer = Vec::new();
    for (value, format) in [(b"\x00\x32".as_slice(), Some(50)), (b"\x00\x00\x32", None), (b"\xff\xff", Some(65_535))] {
        buffer.clear();
        let mut writer = get(&mut buffer);
        writer.option(number::CONTENT_FORMAT, value).unwrap();
        writer.finish().unwrap();
        assert_eq!(Message::parse(&buffer).unwrap().content_format(), format);
    }
}
