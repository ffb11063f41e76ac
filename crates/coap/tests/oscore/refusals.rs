use millpond_coap::message::{Code, Kind, MessageId, Token, number};
use millpond_coap::oscore::{Context, Parameters, Refusal, ResponseFault, Start};

use super::messages::*;

/// RFC 8613 §7.4, §8.2: code and words of each answer, and that no proxy keeps it.
#[test]
fn each_refusal_is_answered_as_the_rfc_says() {
    let (mut client, mut server) = pair(&CLIENT);
    let (_, protected) = protected_request(&mut client, &get("a"));
    received(&mut server, &protected).unwrap();
    let with =
        |option: &[u8], payload: &[u8]| written(Kind::Confirmable, Code::POST, &[(number::OSCORE, option)], payload);
    let twice = written(Kind::Confirmable, Code::POST, &[(number::OSCORE, &b"\x09\x07\x01"[..]); 2], b"0123456789");
    let mut stored = Context::derive(&CLIENT.mirrored(), Start::Stored(0)).unwrap();
    for (request, refusal, code, words) in [
        (get("a"), Refusal::NotProtected, Code::UNAUTHORIZED, "OSCORE required"),
        (with(b"\x09\x07\x01", b""), Refusal::Malformed, Code::BAD_OPTION, "Failed to decode COSE"),
        (with(b"\x29\x07\x01", b"0123456789"), Refusal::Malformed, Code::BAD_OPTION, "Failed to decode COSE"),
        (with(b"\x01\x07", b"0123456789"), Refusal::Malformed, Code::BAD_OPTION, "Failed to decode COSE"),
        (with(b"\x08\x01", b"0123456789"), Refusal::Malformed, Code::BAD_OPTION, "Failed to decode COSE"),
        (with(b"", b"0123456789"), Refusal::Malformed, Code::BAD_OPTION, "Failed to decode COSE"),
        (twice, Refusal::Malformed, Code::BAD_OPTION, "Failed to decode COSE"),
        (
            with(b"\x09\x07\x03", b"0123456789"),
            Refusal::UnknownContext,
            Code::UNAUTHORIZED,
            "Security context not found",
        ),
        (
            with(b"\x19\x07\x01c\x01", b"0123456789"),
            Refusal::UnknownContext,
            Code::UNAUTHORIZED,
            "Security context not found",
        ),
        (protected, Refusal::Replay, Code::UNAUTHORIZED, "Replay detected"),
        (with(b"\x09\x07\x01", b"0123456789"), Refusal::DecryptionFailed, Code::BAD_REQUEST, "Decryption failed"),
        (with(b"\x09\x07\x01", b"0"), Refusal::DecryptionFailed, Code::BAD_REQUEST, "Decryption failed"),
    ] {
        let refused = received(&mut server, &request).unwrap_err();
        assert_eq!(refused, refusal);
        let mut answer = Vec::new();
        refused.write(Kind::Acknowledgement, MessageId(7), Token::EMPTY, &mut answer).unwrap();
        let answer = parsed(&answer);
        assert_eq!((answer.code, answer.payload()), (code, words.as_bytes()));
        assert_eq!(answer.options().map(|option| (option.number, option.uint())).collect::<Vec<_>>(), [(14, Some(0))]);
    }
    let (_, protected) = protected_request(&mut client, &get("a"));
    let refused = received(&mut stored, &protected).unwrap_err();
    assert_eq!((&refused, refused.code()), (&Refusal::NotStored, Code::SERVICE_UNAVAILABLE));
}

/// Both have the key and the nonce of the same side.
#[test]
fn a_response_is_not_taken_for_a_request() {
    let (mut client, mut server) = pair(&CLIENT);
    let (_, request) = protected_request(&mut server, &get("a"));
    let (mut came, _) = received(&mut client, &request).unwrap();
    protected_response(&mut client, &mut came, &content(b"1"));
    let second = protected_response(&mut client, &mut came, &content(b"2"));
    assert_eq!(parsed(&second).option(number::OSCORE), Some(&[0x01, 0x00][..]));
    let option: (u16, &[u8]) = (number::OSCORE, b"\x09\x00\x01");
    let as_request = written(Kind::Confirmable, Code::POST, &[option], parsed(&second).payload());
    assert_eq!(received(&mut server, &as_request).unwrap_err(), Refusal::DecryptionFailed);
}

#[test]
fn a_response_of_another_context_or_none_is_refused() {
    let named = Parameters { id_context: Some(b"here"), ..CLIENT };
    let (mut client, mut server) = pair(&named);
    let (mut sent, protected) = protected_request(&mut client, &get("a"));
    let (mut came, _) = received(&mut server, &protected).unwrap();
    let response = protected_response(&mut server, &mut came, &content(b"1"));
    let with = |option: &[u8]| {
        written(Kind::Acknowledgement, Code::CHANGED, &[(number::OSCORE, option)], parsed(&response).payload())
    };
    assert_eq!(answered(&mut client, &mut sent, &with(b"\x08\x03")), Err(ResponseFault::OtherContext));
    assert_eq!(answered(&mut client, &mut sent, &with(b"\x10\x05there")), Err(ResponseFault::OtherContext));
    assert_eq!(answered(&mut client, &mut sent, &with(b"\x00")), Err(ResponseFault::Malformed));
    assert_eq!(answered(&mut client, &mut sent, &content(b"1")), Err(ResponseFault::NotProtected(Code::CONTENT)));
    let empty = written(Kind::Acknowledgement, Code::CHANGED, &[(number::OSCORE, b"")], b"");
    assert_eq!(answered(&mut client, &mut sent, &empty), Err(ResponseFault::Malformed));
    // It may name its own.
    assert_eq!(answered(&mut client, &mut sent, &with(b"\x18\x04here\x02")), Ok(content(b"1")));
}
