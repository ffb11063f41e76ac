//! Peers that take more than they need: what a connection holds is bounded, and all of it is told.

use crate::owned::{CoapStack, Event, Output, limited, poll, stack};
use millpond_coap::message::{Code, Token};
use millpond_coap::stream::{Closing, Options, write_frame};
use millpond_coap::transfer::{Answer, Config, ObserverId};
use millpond_control::Instant;

const NOW: Instant = Instant::ORIGIN;

#[derive(Debug, Default)]
struct Said {
    bytes: Vec<u8>,
    events: Vec<Event>,
    closed: Option<Closing>,
}

fn drain(stack: &mut CoapStack) -> Said {
    let mut said = Said::default();
    loop {
        match poll(stack, NOW) {
            Output::Transmit(bytes) => said.bytes.extend_from_slice(&bytes),
            Output::Event(event) => said.events.push(event),
            Output::Close(why) => said.closed = Some(why),
            Output::Sleep(_) | Output::Idle => return said,
        }
    }
}

fn server(config: Config) -> CoapStack {
    let mut server = stack(Options::default(), config);
    // Settings with block-wise transfer.
    server.receive(NOW, b"\x10\xe1\x40");
    drain(&mut server);
    server
}

fn request(token: u8, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_frame(&mut bytes, Code::GET, Token::new(&[token]).unwrap(), options, &[], u32::MAX).unwrap();
    bytes
}

/// Accepts every observer that is reported.
fn accept(server: &mut CoapStack, said: &Said) -> Vec<ObserverId> {
    let mut observers = Vec::new();
    for event in &said.events {
        if let Event::Request { id, wants_to_observe: true, .. } = event {
            observers.extend(server.accept_observer(NOW, *id, &Answer::new(Code::CONTENT, &[])).unwrap());
        }
    }
    observers
}

/// How many frames of one token stand in bytes of frames without length extension.
fn frames(bytes: &[u8]) -> usize {
    let (mut count, mut rest) = (0, bytes);
    while let Some(first) = rest.first() {
        count += 1;
        rest = &rest[2 + usize::from(first & 0x0f) + usize::from(first >> 4)..];
    }
    count
}

#[test]
fn who_registers_again_with_its_token_is_one_observer() {
    // One after the other, and all before the application has answered any.
    for at_once in [false, true] {
        let mut server = server(Config::STREAM);
        let mut observers = Vec::new();
        if at_once {
            server.receive(NOW, &request(7, &[(6, b"")]).repeat(61));
            let said = drain(&mut server);
            observers.extend(accept(&mut server, &said));
        } else {
            for _ in 0..61 {
                server.receive(NOW, &request(7, &[(6, b"")]));
                let said = drain(&mut server);
                observers.extend(accept(&mut server, &said));
                drain(&mut server);
            }
        }
        let gone = drain(&mut server).events.len();
        assert_eq!((observers.len(), server.observers()), (61, 1), "{at_once}: {gone}");
        let told = observers.iter().filter(|id| server.notify(NOW, **id, &Answer::new(Code::CONTENT, &[])).is_ok());
        assert_eq!(told.count(), 1);
        assert_eq!(frames(&drain(&mut server).bytes), 1, "one copy of each state");
        // The one that stays is the newest.
        assert!(server.notify(NOW, observers[60], &Answer::new(Code::CONTENT, &[])).is_ok());
    }
}

#[test]
fn any_other_request_with_the_token_ends_the_observation() {
    for options in [&[][..], &[(6, &b"\x01"[..])], &[(6, b"\x02")], &[(6, b"\0\0\0\0")]] {
        let mut server = server(Config::STREAM);
        server.receive(NOW, &request(7, &[(6, b"")]));
        let said = drain(&mut server);
        accept(&mut server, &said);
        drain(&mut server);
        assert_eq!(server.observers(), 1);
        server.receive(NOW, &request(7, options));
        let said = drain(&mut server);
        let wants = said.events.iter().any(|event| matches!(event, Event::Request { wants_to_observe: true, .. }));
        assert_eq!((server.observers(), wants), (0, false), "{options:?}");
    }
}

#[test]
fn who_pings_and_pings_while_a_request_is_unanswered_is_left() {
    let mut server = server(Config::STREAM);
    server.receive(NOW, &request(7, &[]));
    drain(&mut server);
    let before = server.memory();
    let mut closed = None;
    for round in 0..100_000_u32 {
        // Ping with Custody and a token of four bytes.
        server.receive(NOW, &[&[0x14, 0xe2][..], &round.to_be_bytes(), b"\x20"].concat());
        let said = drain(&mut server);
        closed = closed.or(said.closed);
        assert!(server.memory() <= before + 2_048, "{} bytes after {round} pings", server.memory());
    }
    assert_eq!(closed, Some(Closing::TooManyPings));
}

/// No more was allocated than is told, but for what books take.
fn assert_told(held: i64, told: usize) {
    let held = usize::try_from(held).unwrap();
    assert!(held < told + (8 << 10), "{told} bytes told, {held} held");
}

/// Options count as much as bodies.
#[test]
fn long_options_do_not_get_around_the_bound() {
    let config = limited(|limits| limits.cached = 1 << 20);
    // Queries of 60 000 bytes in all, each request with another one.
    let query = [b'q'; 250];
    let asked = |token: u8| {
        let last = [token];
        let mut options: Vec<(u16, &[u8])> = vec![(15, &query[..]); 240];
        options.push((15, &last));
        request(token, &options)
    };
    // Unanswered ones.
    let mut unanswered = server(config);
    let empty = unanswered.memory();
    let held = allocation_counter::measure(|| {
        for token in 0..200 {
            unanswered.receive(NOW, &asked(token));
            assert!(drain(&mut unanswered).bytes.is_empty());
            assert!(unanswered.memory() < empty + (256 << 10), "{} bytes", unanswered.memory());
        }
    });
    assert_told(held.bytes_current, unanswered.memory() - empty);
    // Those whose answers are kept.
    let mut keeps = server(config);
    let empty = keeps.memory();
    let held = allocation_counter::measure(|| {
        for token in 0..200 {
            let body = vec![token; 8_000];
            keeps.receive(NOW, &asked(token));
            for event in drain(&mut keeps).events {
                let Event::Request { id, .. } = event else { continue };
                keeps.answer(NOW, id, &Answer::new(Code::CONTENT, &[]).with_body(&body)).unwrap();
            }
            drain(&mut keeps);
            assert!(keeps.memory() < (1 << 20) + (512 << 10), "{} bytes", keeps.memory());
        }
    });
    assert_told(held.bytes_current, keeps.memory() - empty);
    assert!(keeps.memory() > 900 << 10, "all is told: {} bytes", keeps.memory());
}
