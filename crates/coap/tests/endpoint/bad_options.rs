//! Responses with critical options that are not understood are rejected (RFC 7252 §5.4.1).

use millpond_coap::message::{Code, number};
use millpond_coap::{Endpoint, Event, Failure, Ignored, Output};
use millpond_control::Instant;

use crate::pair::{HELLO, endpoint, get};
use millpond_coap::Outgoing;

/// Critical and unknown, too long, repeated, defined for requests only, and OSCORE, which nobody here speaks.
const BAD: [&[u8]; 5] = [b"\xe1\xfc\xdc\x01", b"\xd4\x0a\0\0\0\x08", b"\xd1\x0a\x08\x01\x08", b"\xb1a", b"\x91\x09"];

/// What an endpoint says: datagrams, failures with the transmissions, and what was ignored.
type Said = (Vec<Vec<u8>>, Vec<(Failure, u8)>, Vec<Ignored>);

fn drain(client: &mut Endpoint<u8>, now: u64) -> Said {
    let (mut sent, mut failed, mut ignored) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        match client.poll(Instant::from_micros(now)) {
            Output::Transmit(transmit) => sent.push(transmit.bytes.to_vec()),
            Output::Event(Event::Failed { why, copies, .. }) => failed.push((why, copies)),
            Output::Event(Event::Ignored { why, .. }) => ignored.push(why),
            Output::Event(Event::Acknowledged { .. }) => {}
            Output::Event(event) => panic!("{event:?}"),
            Output::Sleep(..) | Output::Idle => return (sent, failed, ignored),
        }
    }
}

/// A response with the token of the request, message ID 7, and these options behind it.
fn response(first: u8, id: [u8; 2], request: &[u8], options: &[u8]) -> Vec<u8> {
    [&[first, 0x45], &id[..], &request[4..8], options, b"\xff."].concat()
}

#[test]
fn a_piggybacked_response_with_one_ends_its_request() {
    for options in BAD {
        let mut client = endpoint(0, |_| {});
        client.request(Instant::ORIGIN, 1, &get()).unwrap();
        let request = drain(&mut client, 0).0.remove(0);
        client.receive(Instant::from_micros(50), 1, &response(0x64, [request[2], request[3]], &request, options));
        // An acknowledgement is rejected by silence (RFC 7252 §4.2).
        assert_eq!(drain(&mut client, 50), (vec![], vec![(Failure::BadOption, 1)], vec![]), "{options:x?}");
        assert_eq!((client.exchanges(), client.counters().failed.bad_option), (0, 1));
        // It was an answer all the same: the controller has learnt from it.
        assert!(client.view(1).unwrap().srtt.is_some() || client.counters().answered == 0);
    }
}

#[test]
fn a_response_that_is_longer_than_datagrams_may_be_ends_its_request_at_once() {
    for (first, acknowledged) in [(0x64, false), (0x44, false), (0x44, true), (0x54, true)] {
        let mut client = endpoint(0, |_| {});
        client.request(Instant::ORIGIN, 1, &get()).unwrap();
        let request = drain(&mut client, 0).0.remove(0);
        let id = if first == 0x64 { [request[2], request[3]] } else { [0, 7] };
        if acknowledged {
            client.receive(Instant::from_micros(40), 1, &[0x60, 0, request[2], request[3]]);
            drain(&mut client, 40);
        }
        let mut long = response(first, id, &request, b"");
        long.resize(1_453, b'.');
        // Somebody who does not know the token changes nothing.
        let mut forged = long.clone();
        forged[4] ^= 1;
        client.receive(Instant::from_micros(45), 1, &forged);
        assert_eq!((drain(&mut client, 45).1, client.exchanges()), (vec![], 1));
        client.receive(Instant::from_micros(50), 1, &long);
        let (sent, failed, ignored) = drain(&mut client, 50);
        let resets: &[&[u8]] = if first == 0x44 { &[b"\x70\0\0\x07"] } else { &[] };
        assert_eq!(
            (&failed[..], &ignored[..]),
            (&[(Failure::LongResponse, 1)][..], &[Ignored::TooLong { is_answered: false }][..])
        );
        assert_eq!((sent, client.exchanges()), (resets.iter().map(|reset| reset.to_vec()).collect(), 0));
    }
}

/// libcoap answers 4.02 with the very options that it does not know.
#[test]
fn a_response_may_return_an_option_that_only_its_request_knows() {
    // 65001 behind Uri-Path, and alone.
    let options: &[(u16, &[u8])] = &[(number::URI_PATH, b"hello"), (65_001, b"\x01")];
    for (first, options_of_response, is_accepted) in
        [(0x64, &b"\xe1\xfc\xdc\x01"[..], true), (0x64, b"\xe1\xfc\xde\x01", false), (0x44, b"\xe1\xfc\xdc\x01", true)]
    {
        let mut client = endpoint(0, |_| {});
        client.request(Instant::ORIGIN, 1, &Outgoing::confirmable(Code::GET, options)).unwrap();
        let request = drain(&mut client, 0).0.remove(0);
        let id = if first == 0x64 { [request[2], request[3]] } else { [0, 7] };
        client.receive(Instant::from_micros(50), 1, &response(first, id, &request, options_of_response));
        let mut answered = 0;
        loop {
            match client.poll(Instant::from_micros(50)) {
                Output::Event(Event::Response { .. }) => answered += 1,
                Output::Sleep(..) | Output::Idle => break,
                _ => {}
            }
        }
        assert_eq!(answered == 1, is_accepted, "{options_of_response:x?}");
    }
}

#[test]
fn a_confirmable_response_with_one_is_answered_with_a_reset_each_time_it_comes() {
    for options in BAD {
        let mut client = endpoint(0, |_| {});
        client.request(Instant::ORIGIN, 1, &get()).unwrap();
        let request = drain(&mut client, 0).0.remove(0);
        let response = response(0x44, [0, 7], &request, options);
        client.receive(Instant::from_micros(50), 1, &response);
        let reset = b"\x70\0\0\x07".to_vec();
        assert_eq!(drain(&mut client, 50), (vec![reset.clone()], vec![(Failure::BadOption, 1)], vec![]));
        client.receive(Instant::from_micros(90), 1, &response);
        assert_eq!(drain(&mut client, 90), (vec![reset], vec![], vec![]));
    }
}

#[test]
fn a_non_confirmable_response_with_one_ends_its_request_in_silence() {
    let mut client = endpoint(0, |_| {});
    client.request(Instant::ORIGIN, 1, &Outgoing::non_confirmable(Code::GET, HELLO)).unwrap();
    let request = drain(&mut client, 0).0.remove(0);
    client.receive(Instant::from_micros(50), 1, &response(0x54, [0, 7], &request, BAD[0]));
    assert_eq!(drain(&mut client, 50), (vec![], vec![(Failure::BadOption, 1)], vec![]));
}

#[test]
fn a_notification_with_one_is_rejected_and_not_told() {
    let mut client = endpoint(0, |_| {});
    let observe = Outgoing::confirmable(Code::GET, &[(number::OBSERVE, b"")]);
    client.subscribe(Instant::ORIGIN, 1, &observe).unwrap();
    let request = drain(&mut client, 0).0.remove(0);
    client.receive(Instant::from_micros(50), 1, &response(0x64, [request[2], request[3]], &request, b"\x61\x01"));
    while !matches!(client.poll(Instant::from_micros(50)), Output::Sleep(..) | Output::Idle) {}
    client.receive(Instant::from_micros(90), 1, &response(0x44, [0, 7], &request, b"\x61\x02\x51a"));
    assert_eq!(drain(&mut client, 90), (vec![b"\x70\0\0\x07".to_vec()], vec![], vec![Ignored::BadOption]));
}

/// What is elective is ignored, whatever is wrong with it.
#[test]
fn what_is_not_critical_ends_nothing() {
    for options in [&b"\xe1\xfc\xdb\x01"[..], b"\xc3\0\0\0", b"\xc1\0\x01\x32"] {
        let mut client = endpoint(0, |_| {});
        client.request(Instant::ORIGIN, 1, &get()).unwrap();
        let request = drain(&mut client, 0).0.remove(0);
        client.receive(Instant::from_micros(50), 1, &response(0x64, [request[2], request[3]], &request, options));
        let told = client.poll(Instant::from_micros(50));
        assert!(matches!(told, Output::Event(Event::Response { .. })), "{told:?}");
    }
}
