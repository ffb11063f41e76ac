//! Contexts and messages to try.

use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer, number};
use millpond_coap::oscore::{Context, Parameters, ReceivedRequest, SentRequest, Start};
use proptest::prelude::*;

pub(crate) const SECRET: [u8; 16] = *b"0123456789abcdef";

pub(crate) const CLIENT: Parameters<'static> =
    Parameters { sender_id: &[1], recipient_id: &[2], ..Parameters::of(&SECRET) };

/// A client and its server that were never used.
pub(crate) fn pair(parameters: &Parameters<'_>) -> (Context, Context) {
    let of = |parameters: &Parameters<'_>| Context::derive(parameters, Start::Fresh).unwrap();
    (of(parameters), of(&parameters.mirrored()))
}

/// A message as bytes.
pub(crate) fn written(kind: Kind, code: Code, options: &[(u16, &[u8])], payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, kind, code, MessageId(0x1234), Token::new(b"tok").unwrap());
    for (number, value) in options {
        writer.option(*number, value).unwrap();
    }
    writer.payload(payload).unwrap();
    writer.finish().unwrap();
    bytes
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    written(Kind::Confirmable, Code::GET, &[(number::URI_PATH, path.as_bytes())], b"")
}

pub(crate) fn registration() -> Vec<u8> {
    written(Kind::Confirmable, Code::GET, &[(number::OBSERVE, &[]), (number::URI_PATH, b"temperature")], b"")
}

pub(crate) fn content(payload: &[u8]) -> Vec<u8> {
    written(Kind::Acknowledgement, Code::CONTENT, &[], payload)
}

pub(crate) fn notification(observe: u8, payload: &[u8]) -> Vec<u8> {
    written(Kind::NonConfirmable, Code::CONTENT, &[(number::OBSERVE, &[observe])], payload)
}

pub(crate) fn parsed(bytes: &[u8]) -> Message<'_> {
    Message::parse(bytes).unwrap()
}

pub(crate) fn protected_request(client: &mut Context, request: &[u8]) -> (SentRequest, Vec<u8>) {
    let mut protected = Vec::new();
    let sent = client.protect_request(&parsed(request), &mut protected).unwrap();
    (sent, protected)
}

pub(crate) fn protected_response(server: &mut Context, to: &mut ReceivedRequest, response: &[u8]) -> Vec<u8> {
    let mut protected = Vec::new();
    server.protect_response(to, &parsed(response), &mut protected).unwrap();
    protected
}

/// What the other side reads, behind bytes that stay as they are.
pub(crate) fn received(
    server: &mut Context,
    protected: &[u8],
) -> Result<(ReceivedRequest, Vec<u8>), millpond_coap::oscore::Refusal> {
    let mut plain = b"before".to_vec();
    let request = server.unprotect_request(&parsed(protected), &mut plain);
    assert_eq!(plain[..6], *b"before");
    assert!(request.is_ok() || plain.len() == 6);
    Ok((request?, plain.split_off(6)))
}

pub(crate) fn answered(
    client: &mut Context,
    to: &mut SentRequest,
    protected: &[u8],
) -> Result<Vec<u8>, millpond_coap::oscore::ResponseFault> {
    let mut plain = b"before".to_vec();
    let response = client.unprotect_response(to, &parsed(protected), &mut plain);
    assert_eq!(plain[..6], *b"before");
    assert!(response.is_ok() || plain.len() == 6);
    response.map(|()| plain.split_off(6))
}

/// Options of all kinds but those that cannot be protected, ascending.
fn options() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
    let numbers = prop_oneof![
        4 => prop::sample::select(vec![1, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 17, 19, 20, 23, 27, 28, 31, 39, 60, 252, 258, 292]),
        1 => any::<u16>(),
    ];
    let is_protectable = |(number, _): &(u16, Vec<u8>)| ![number::OSCORE, number::PROXY_URI].contains(number);
    let option =
        (numbers, prop::collection::vec(any::<u8>(), 0..20)).prop_filter("cannot be protected", is_protectable);
    prop::collection::vec(option, 0..8).prop_map(|mut options| {
        options.sort_by_key(|(number, _)| *number);
        options
    })
}

fn message(kind: Kind, code: impl Strategy<Value = Code>) -> impl Strategy<Value = Vec<u8>> {
    (code, options(), prop::collection::vec(any::<u8>(), 0..300)).prop_map(move |(code, options, payload)| {
        let options: Vec<_> = options.iter().map(|(number, value)| (*number, &value[..])).collect();
        written(kind, code, &options, &payload)
    })
}

pub(crate) fn requests() -> impl Strategy<Value = Vec<u8>> {
    message(Kind::Confirmable, (1_u8..32).prop_map(Code::from_byte))
}

pub(crate) fn responses() -> impl Strategy<Value = Vec<u8>> {
    message(Kind::NonConfirmable, (64_u8..192).prop_map(Code::from_byte))
}
