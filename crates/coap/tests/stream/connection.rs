//! Requests, responses and signals between two connections.

use millpond_coap::message::{Code, Token, number};
use millpond_coap::stream::{Closing, Connection, Options, Settings, StreamRefused};
use millpond_coap::{Failure, Outgoing};

use crate::side::{Both, Told, asked, drain};

fn get<'a>() -> Outgoing<'a> {
    Outgoing::confirmable(Code::GET, &[(number::URI_PATH, b"hello")])
}

fn content(payload: &[u8]) -> Outgoing<'_> {
    Outgoing::confirmable(Code::CONTENT, &[]).with_payload(payload)
}

/// The initiator need not wait: its request is right behind its settings.
#[test]
fn a_request_may_follow_the_settings_at_once() {
    let mut client = Connection::new(Options { max_message_size: 1_152, ..Options::default() });
    client.request(millpond_control::Instant::ORIGIN, &get()).unwrap();
    let (sent, _) = drain(&mut client, millpond_control::Instant::ORIGIN);
    assert_eq!(sent, crate::frames::hex("10 E1 40 61 01 01 B5 68 65 6C 6C 6F"));
}

#[test]
fn responses_find_their_requests_in_any_order() {
    let mut both = Both::new();
    let first = both.client.request(both.now, &get()).unwrap();
    let second = both.client.request(both.now, &get()).unwrap();
    let (_, told) = both.exchange();
    let [Told::Request(a, ..), Told::Request(b, ..)] = told[..] else { panic!("{told:?}") };
    both.server.respond(both.now, b, &content(b"two")).unwrap();
    both.server.respond(both.now, a, &content(b"one")).unwrap();
    let (told, _) = both.exchange();
    assert_eq!(
        told,
        [
            Told::Response(second, Code::CONTENT, b"two".to_vec(), true),
            Told::Response(first, Code::CONTENT, b"one".to_vec(), true)
        ]
    );
    assert_eq!(both.server.respond(both.now, a, &content(b"again")), Err(StreamRefused::UnknownRequest));
}

/// Either side may ask.
#[test]
fn the_acceptor_asks_too() {
    let mut both = Both::new();
    let id = both.server.request(both.now, &get()).unwrap();
    let (told, _) = both.exchange();
    both.client.respond(both.now, asked(&told), &content(b"here")).unwrap();
    let (_, told) = both.exchange();
    assert_eq!(told, [Told::Response(id, Code::CONTENT, b"here".to_vec(), true)]);
}

#[test]
fn a_side_that_serves_nothing_says_so() {
    let mut both = Both::with(Options { serves: false, ..Options::default() }, Options::default());
    let id = both.server.request(both.now, &get()).unwrap();
    let (_, told) = both.exchange();
    assert_eq!(told, [Told::Response(id, Code::NOT_IMPLEMENTED, Vec::new(), true)]);
}

#[test]
fn settings_accumulate_and_each_replaces_its_own_earlier_value() {
    let mut both = Both::with(Options { max_message_size: 8_192, ..Options::default() }, Options::default());
    assert_eq!(both.server.settings(), Settings { max_message_size: 8_192, block_wise: true, longest_token: 8 });
    assert!(both.server.settings().bert());
    // A further CSM, with the size alone: BERT is withdrawn, block-wise stays.
    both.server.receive(both.now, &crate::frames::hex("30 E1 22 04 80"));
    let (_, told) = drain(&mut both.server, both.now);
    assert_eq!(told, [Told::Settings(Settings { max_message_size: 1_152, block_wise: true, longest_token: 8 })]);
    assert!(!both.server.settings().bert());
    // One without options changes nothing.
    both.server.receive(both.now, &crate::frames::hex("00 E1"));
    drain(&mut both.server, both.now);
    assert_eq!(both.server.settings().max_message_size, 1_152);
}

#[test]
fn nothing_longer_than_the_other_side_takes_is_sent() {
    let mut both = Both::with(Options { max_message_size: 1_152, ..Options::default() }, Options::default());
    both.client.request(both.now, &get()).unwrap();
    let (_, told) = both.exchange();
    let id = asked(&told);
    let error = both.server.respond(both.now, id, &content(&[0; 1_200])).unwrap_err();
    assert_eq!(error.to_string(), "1206 bytes, but the message may have 1152; shorten path and query, or the payload");
    both.server.respond(both.now, id, &content(&[0; 1_000])).unwrap();
    let (told, _) = both.exchange();
    assert!(matches!(told[..], [Told::Response(..)]));
}

#[test]
fn a_ping_is_answered_with_its_token() {
    let mut both = Both::new();
    both.server.receive(both.now, &crate::frames::hex("01 E2 42"));
    let (sent, _) = drain(&mut both.server, both.now);
    assert_eq!(sent, crate::frames::hex("01 E3 42"));
    both.client.ping(both.now, false).unwrap();
    let (told, _) = both.exchange();
    assert_eq!(told, [Told::Pong(false)]);
}

/// Custody: the Pong waits for what came before the ping, not for what comes after it.
#[test]
fn a_pong_with_custody_waits_for_what_came_before() {
    let mut both = Both::new();
    both.client.request(both.now, &get()).unwrap();
    both.client.ping(both.now, true).unwrap();
    both.client.request(both.now, &get()).unwrap();
    let (told, asked) = both.exchange();
    assert_eq!(told, []);
    let [Told::Request(before, ..), Told::Request(after, ..)] = asked[..] else { panic!("{asked:?}") };
    both.server.respond(both.now, after, &content(b"")).unwrap();
    assert!(matches!(both.exchange().0[..], [Told::Response(..)]));
    both.server.respond(both.now, before, &content(b"")).unwrap();
    let (told, _) = both.exchange();
    assert!(matches!(told[..], [Told::Response(..), Told::Pong(true)]), "{told:?}");
}

#[test]
fn a_ping_that_nobody_answers_is_told() {
    let mut both = Both::new();
    both.client.ping(both.now, false).unwrap();
    let (_, told) = drain(&mut both.client, both.now);
    assert_eq!(told, []);
    both.later(10);
    assert_eq!(drain(&mut both.client, both.now).1, [Told::PongMissing]);
}

#[test]
fn a_release_lets_both_sides_finish() {
    let mut both = Both::new();
    let mine = both.client.request(both.now, &get()).unwrap();
    let id = asked(&both.exchange().1);
    both.server.release(both.now, Some(b"h2.example:5683"), Some(60)).unwrap();
    let (told, _) = both.exchange();
    assert_eq!(told, [Told::Released(Some(b"h2.example:5683".to_vec()), Some(60))]);
    assert_eq!(both.client.request(both.now, &get()), Err(StreamRefused::Releasing));
    both.server.respond(both.now, id, &content(b"last")).unwrap();
    let (told, _) = both.exchange();
    assert_eq!(told, [Told::Response(mine, Code::CONTENT, b"last".to_vec(), true), Told::Close(Closing::Released)]);
    both.server.stream_ended();
    assert_eq!(drain(&mut both.server, both.now).1, [Told::Close(Closing::Released)]);
}

#[test]
fn a_release_that_is_not_followed_by_a_close_ends_by_itself() {
    let mut both = Both::new();
    both.server.request(both.now, &get()).unwrap();
    both.server.release(both.now, None, None).unwrap();
    both.exchange();
    both.later(5);
    let (_, told) = drain(&mut both.server, both.now);
    assert!(matches!(told[..], [Told::Failed(_, Failure::ConnectionClosed), Told::Close(Closing::ReleaseTimedOut)]));
}

#[test]
fn an_abort_ends_everything_at_once() {
    let mut both = Both::new();
    let mine = both.client.request(both.now, &get()).unwrap();
    both.exchange();
    both.server.abort("out of memory");
    let (told, at_server) = both.exchange();
    let why = Told::Aborted(b"out of memory".to_vec());
    assert_eq!(told, [why, Told::Failed(mine, Failure::ConnectionClosed), Told::Close(Closing::AbortedByPeer)]);
    assert_eq!(at_server, [Told::Close(Closing::Aborted)]);
    assert_eq!(both.client.request(both.now, &get()), Err(StreamRefused::Closed));
}

/// Observe over streams: the order is the stream's, the sequence number means nothing.
#[test]
fn an_observation_is_notified_until_it_is_cancelled() {
    let mut both = Both::new();
    let token = Token::new(b"obs").unwrap();
    let observe: &[(u16, &[u8])] = &[(number::OBSERVE, &[]), (number::URI_PATH, b"t")];
    let ask = Outgoing { token: Some(token), ..Outgoing::confirmable(Code::GET, observe) };
    let mine = both.client.request(both.now, &ask).unwrap();
    assert_eq!(both.client.request(both.now, &ask), Err(StreamRefused::TokenInUse));
    let id = asked(&both.exchange().1);
    let note: &[(u16, &[u8])] = &[(number::OBSERVE, &[])];
    for value in [b"1", b"2"] {
        both.server.respond(both.now, id, &Outgoing::confirmable(Code::CONTENT, note).with_payload(value)).unwrap();
        let (told, _) = both.exchange();
        assert_eq!(told, [Told::Response(mine, Code::CONTENT, value.to_vec(), false)]);
    }
    both.client.cancel(mine);
    let stop: &[(u16, &[u8])] = &[(number::OBSERVE, &[1]), (number::URI_PATH, b"t")];
    let stop = Outgoing { token: Some(token), ..Outgoing::confirmable(Code::GET, stop) };
    let last = both.client.request(both.now, &stop).unwrap();
    let (told, at_server) = both.exchange();
    assert_eq!(told, [Told::Failed(mine, Failure::Cancelled)]);
    let [Told::Request(fresh, ..), Told::Unobserved(gone)] = at_server[..] else { panic!("{at_server:?}") };
    assert_eq!(gone, id);
    both.server.respond(both.now, fresh, &content(b"3")).unwrap();
    assert_eq!(both.exchange().0, [Told::Response(last, Code::CONTENT, b"3".to_vec(), true)]);
    assert_eq!(both.server.respond(both.now, id, &content(b"4")), Err(StreamRefused::UnknownRequest));
}

#[test]
fn a_stream_that_ends_fails_what_is_under_way() {
    let mut both = Both::new();
    let mine = both.client.request(both.now, &get()).unwrap();
    both.exchange();
    both.client.stream_ended();
    let (sent, told) = drain(&mut both.client, both.now);
    assert_eq!(told, [Told::Failed(mine, Failure::ConnectionClosed), Told::Close(Closing::StreamEnded)]);
    assert!(sent.is_empty());
}

#[test]
fn requests_under_way_are_bounded_on_both_sides() {
    let few = Options { requests: 2, ..Options::default() };
    let mut both = Both::with(Options::default(), few);
    for _ in 0..2 {
        both.client.request(both.now, &get()).unwrap();
    }
    let third = both.client.request(both.now, &get()).unwrap();
    let (told, _) = both.exchange();
    assert_eq!(told, [Told::Response(third, Code::SERVICE_UNAVAILABLE, Vec::new(), true)]);
    for _ in 0..2 {
        both.server.request(both.now, &get()).unwrap();
    }
    let refused = both.server.request(both.now, &get()).unwrap_err();
    assert_eq!(refused, StreamRefused::TooManyRequests { limit: 2 });
}
