//! Critical options that may not stand where they stand (RFC 7252 §5.4.1), over a stream.

use crate::owned::{CoapStack, Event, Output, poll, stack};
use millpond_coap::message::{Code, number};
use millpond_coap::stream::Options;
use millpond_coap::transfer::{Answer, ClientRequest, Config, RequestFailure};
use millpond_control::Instant;

fn drain(stack: &mut CoapStack) -> (Vec<u8>, Vec<Event>) {
    let (mut sent, mut events) = (Vec::new(), Vec::new());
    loop {
        match poll(stack, Instant::ORIGIN) {
            Output::Transmit(bytes) => sent.extend_from_slice(&bytes),
            Output::Event(event) => events.push(event),
            Output::Close(_) | Output::Sleep(_) | Output::Idle => return (sent, events),
        }
    }
}

/// The code of the answer to a request of these bytes, and whether the application was asked.
fn answered(request: &[u8]) -> (u8, bool) {
    let mut server = stack(Options::default(), Config::STREAM);
    server.receive(Instant::ORIGIN, b"\x00\xe1");
    drain(&mut server);
    server.receive(Instant::ORIGIN, request);
    let (sent, events) = drain(&mut server);
    // Behind the length of what says what is wrong.
    let extended = usize::from(sent.first().is_some_and(|first| first >> 4 == 13));
    let Some(Event::Request { id, .. }) = events.first() else { return (sent[1 + extended], false) };
    server.answer(Instant::ORIGIN, *id, &Answer::new(Code::CONTENT, &[])).unwrap();
    (drain(&mut server).0[1], true)
}

#[test]
fn a_request_with_one_is_answered_with_bad_option() {
    for request in [
        // Accept of three bytes, twice Accept, an empty Uri-Host, Block1 of four bytes, Q-Block1.
        &b"\x50\x01\xd3\x04\0\0\0"[..],
        b"\x50\x01\xd1\x04\0\x01\0",
        b"\x10\x01\x30",
        b"\x60\x03\xd4\x0e\0\0\0\x08",
        b"\x30\x03\xd1\x06\x08",
    ] {
        assert_eq!(answered(request), (0x82, false), "{request:x?}");
    }
    assert_eq!(answered(b"\x30\x01\xd1\x04\x00"), (0x45, true), "Accept of one byte");
}

#[test]
fn a_response_with_one_fails_its_ask() {
    let mut client = stack(Options::default(), Config::STREAM);
    client.receive(Instant::ORIGIN, b"\x00\xe1");
    drain(&mut client);
    let ask = client.request(Instant::ORIGIN, (), &ClientRequest::new(Code::GET, &[])).unwrap();
    let sent = drain(&mut client).0;
    let token = &sent[2..2 + usize::from(sent[0] & 0x0f)];
    let length = (2_u8 << 4) | token.len() as u8;
    client.receive(Instant::ORIGIN, &[&[length, 0x45], token, b"\xd0\x0a"].concat());
    let (_, events) = drain(&mut client);
    // Block2 may stand in a response; Uri-Path may not, nor OSCORE, which nobody here speaks.
    assert!(matches!(events[..], [Event::Answer { .. }]), "{events:?}");
    let _ = ask;
    let ask = client.request(Instant::ORIGIN, (), &ClientRequest::new(Code::GET, &[])).unwrap();
    let sent = drain(&mut client).0;
    let token = &sent[2..2 + usize::from(sent[0] & 0x0f)];
    let length = (1_u8 << 4) | token.len() as u8;
    client.receive(Instant::ORIGIN, &[&[length, 0x45], token, b"\xb0"].concat());
    let why = RequestFailure::BadOption { number: number::URI_PATH };
    assert_eq!(drain(&mut client).1, [Event::Failed { request: ask, why }]);
    assert_eq!(client.requests(), 0);
}

/// Who put it into the request knows it: a proxy sends on what others protected.
#[test]
fn a_response_with_an_option_that_its_request_had_is_handed_up() {
    let mut client = stack(Options::default(), Config::STREAM);
    client.receive(Instant::ORIGIN, b"\x00\xe1");
    drain(&mut client);
    for (asked, answered, is_taken) in [
        (number::OSCORE, &b"\x90"[..], true),
        (2_055, b"\xe0\x06\xfa", true),
        (2_055, b"\x90", false),
        // Of the stack, and of requests alone.
        (number::URI_PATH, b"\xb0", false),
    ] {
        let ask = client.request(Instant::ORIGIN, (), &ClientRequest::new(Code::GET, &[(asked, b"")])).unwrap();
        let sent = drain(&mut client).0;
        let at = 2 + usize::from(sent[0] >> 4 == 13);
        let token = &sent[at..at + usize::from(sent[0] & 0x0f)];
        let length = (answered.len() as u8) << 4 | token.len() as u8;
        client.receive(Instant::ORIGIN, &[&[length, 0x45], token, answered].concat());
        let (_, events) = drain(&mut client);
        match is_taken {
            true => assert!(matches!(events[..], [Event::Answer { request, .. }] if request == ask), "{events:?}"),
            false => assert!(matches!(events[..], [Event::Failed { request, .. }] if request == ask), "{events:?}"),
        }
    }
}
