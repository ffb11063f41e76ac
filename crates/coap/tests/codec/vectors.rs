//! Messages whose bytes are known: the examples of RFC 7252 appendix A and B, and those of study `anrw18`.

use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer, number};

/// One message in both forms.
struct Known<'a> {
    kind: Kind,
    code: Code,
    id: u16,
    token: &'a [u8],
    options: &'a [(u16, &'a [u8])],
    payload: &'a [u8],
    bytes: &'a [u8],
}

impl Known<'_> {
    fn check(&self) {
        let token = Token::new(self.token).unwrap();
        let mut written = Vec::new();
        let mut writer = Writer::start(&mut written, self.kind, self.code, MessageId(self.id), token);
        for (number, value) in self.options {
            writer.option(*number, value).unwrap();
        }
        writer.payload(self.payload).unwrap();
        assert_eq!(writer.finish(), Ok(self.bytes.len()));
        assert_eq!(written, self.bytes);

        let message = Message::parse(self.bytes).unwrap();
        assert_eq!((message.kind, message.code, message.id.0), (self.kind, self.code, self.id));
        assert_eq!(message.token, token);
        assert!(message.options().map(|option| (option.number, option.value)).eq(self.options.iter().copied()));
        assert_eq!(message.payload(), self.payload);
    }
}

const TEMPERATURE: &[(u16, &[u8])] = &[(number::URI_PATH, b"temperature")];

#[test]
fn rfc7252_figure_16_confirmable_request_piggybacked_response() {
    Known {
        kind: Kind::Confirmable,
        code: Code::GET,
        id: 0x7d34,
        token: &[],
        options: TEMPERATURE,
        payload: &[],
        bytes: b"\x40\x01\x7d\x34\xbbtemperature",
    }
    .check();
    Known {
        kind: Kind::Acknowledgement,
        code: Code::CONTENT,
        id: 0x7d34,
        token: &[],
        options: &[],
        payload: b"22.3 C",
        bytes: b"\x60\x45\x7d\x34\xff22.3 C",
    }
    .check();
}

#[test]
fn rfc7252_figure_17_with_a_token() {
    Known {
        kind: Kind::Confirmable,
        code: Code::GET,
        id: 0x7d35,
        token: &[0x20],
        options: TEMPERATURE,
        payload: &[],
        bytes: b"\x41\x01\x7d\x35\x20\xbbtemperature",
    }
    .check();
    Known {
        kind: Kind::Acknowledgement,
        code: Code::CONTENT,
        id: 0x7d35,
        token: &[0x20],
        options: &[],
        payload: b"22.3 C",
        bytes: b"\x61\x45\x7d\x35\x20\xff22.3 C",
    }
    .check();
}

#[test]
fn rfc7252_figure_20_separate_response() {
    Known {
        kind: Kind::Confirmable,
        code: Code::GET,
        id: 0x7d38,
        token: &[0x53],
        options: TEMPERATURE,
        payload: &[],
        bytes: b"\x41\x01\x7d\x38\x53\xbbtemperature",
    }
    .check();
    Known {
        kind: Kind::Acknowledgement,
        code: Code::EMPTY,
        id: 0x7d38,
        token: &[],
        options: &[],
        payload: &[],
        bytes: b"\x60\x00\x7d\x38",
    }
    .check();
    Known {
        kind: Kind::Confirmable,
        code: Code::CONTENT,
        id: 0xad7b,
        token: &[0x53],
        options: &[],
        payload: b"22.3 C",
        bytes: b"\x41\x45\xad\x7b\x53\xff22.3 C",
    }
    .check();
}

#[test]
fn rfc7252_figure_21_unexpected_separate_response_is_reset() {
    Known {
        kind: Kind::Reset,
        code: Code::EMPTY,
        id: 0xad7c,
        token: &[],
        options: &[],
        payload: &[],
        bytes: b"\x70\x00\xad\x7c",
    }
    .check();
}

#[test]
fn rfc7252_figure_22_non_confirmable_both_ways() {
    Known {
        kind: Kind::NonConfirmable,
        code: Code::GET,
        id: 0x7d40,
        token: &[0x75],
        options: TEMPERATURE,
        payload: &[],
        bytes: b"\x51\x01\x7d\x40\x75\xbbtemperature",
    }
    .check();
    Known {
        kind: Kind::NonConfirmable,
        code: Code::CONTENT,
        id: 0xad7d,
        token: &[0x75],
        options: &[],
        payload: b"22.3 C",
        bytes: b"\x51\x45\xad\x7d\x75\xff22.3 C",
    }
    .check();
}

/// Appendix B, `coap://198.51.100.1:61616//%2F//?%2F%2F&?%26`: empty segments are options without a value.
#[test]
fn rfc7252_appendix_b_path_of_empty_segments() {
    let known = Known {
        kind: Kind::Confirmable,
        code: Code::GET,
        id: 1,
        token: &[],
        options: &[
            (number::URI_PATH, b""),
            (number::URI_PATH, b"/"),
            (number::URI_PATH, b""),
            (number::URI_PATH, b""),
            (number::URI_QUERY, b"//"),
            (number::URI_QUERY, b"?&"),
        ],
        payload: &[],
        bytes: b"\x40\x01\x00\x01\xb0\x01/\x00\x00\x42//\x02?&",
    };
    known.check();
    let message = Message::parse(known.bytes).unwrap();
    assert!(message.uri_path().eq([&b""[..], b"/", b"", b""]));
    assert!(message.values(number::URI_QUERY).eq([b"//", b"?&"]));
    assert_eq!(message.values(number::URI_HOST).count(), 0);
}

/// 38 bytes with IPv4 and UDP headers, as the study has it; 10 of them are CoAP.
#[test]
fn anrw18_request_is_10_bytes() {
    let known = Known {
        kind: Kind::Confirmable,
        code: Code::GET,
        id: 0x1234,
        token: &[],
        options: &[(number::URI_PATH, b"hello")],
        payload: &[],
        bytes: b"\x40\x01\x12\x34\xb5hello",
    };
    known.check();
    assert_eq!(known.bytes.len(), 10);
    let message = Message::parse(known.bytes).unwrap();
    assert!(message.uri_path().eq([b"hello"]));
    assert_eq!(message.content_format(), None);
}

/// 94 bytes with IPv4 and UDP headers, as the study has it; 66 of them are CoAP.
#[test]
fn anrw18_response_is_66_bytes() {
    let bytes = [b"\x60\x45\x12\x34\xc0\xff".as_slice(), &[b'x'; 60]].concat();
    let known = Known {
        kind: Kind::Acknowledgement,
        code: Code::CONTENT,
        id: 0x1234,
        token: &[],
        options: &[(number::CONTENT_FORMAT, b"")],
        payload: &[b'x'; 60],
        bytes: &bytes,
    };
    known.check();
    assert_eq!(bytes.len(), 66);
    assert_eq!(Message::parse(&bytes).unwrap().content_format(), Some(0), "an empty value is the number 0");
}

/// Every form of delta and length (§3.1, figure 8) on both sides of its limits.
#[test]
fn every_size_of_delta_and_length_at_its_limits() {
    let sizes: [(usize, u8, &[u8]); 8] = [
        (0, 0, &[]),
        (1, 1, &[]),
        (12, 12, &[]),
        (13, 13, &[0]),
        (268, 13, &[255]),
        (269, 14, &[0, 0]),
        (270, 14, &[0, 1]),
        (60_000, 14, &[0xe9, 0x53]),
    ];
    for (delta, delta_nibble, delta_bytes) in sizes {
        for (length, length_nibble, length_bytes) in sizes {
            let value = vec![0xa5; length];
            let head = [(delta_nibble << 4) | length_nibble];
            let bytes = [b"\x50\x01\x00\x00", &head[..], delta_bytes, length_bytes, &value].concat();
            Known {
                kind: Kind::NonConfirmable,
                code: Code::GET,
                id: 0,
                token: &[],
                options: &[(u16::try_from(delta).unwrap(), &value)],
                payload: &[],
                bytes: &bytes,
            }
            .check();
        }
    }
}

/// The longest value that an option's header can tell, 65535 + 269 bytes, and the largest option number.
#[test]
fn longest_value_and_largest_number() {
    let value = vec![7; 65_804];
    let bytes = [b"\x50\x01\x00\x00\xee\xfe\xf2\xff\xff", &value[..]].concat();
    let message = Message::parse(&bytes).unwrap();
    let option = message.options().next().unwrap();
    assert_eq!((option.number, option.value.len()), (65_535, 65_804));
    super::differential::check(&bytes);
}

#[test]
fn tokens_of_every_length() {
    for length in 0..=8_usize {
        let token = [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88].split_at(length).0;
        let bytes = [&[0x40 | u8::try_from(length).unwrap(), 0x01, 0xab, 0xcd], token, b"\xff!"].concat();
        Known {
            kind: Kind::Confirmable,
            code: Code::GET,
            id: 0xabcd,
            token,
            options: &[],
            payload: b"!",
            bytes: &bytes,
        }
        .check();
    }
}
