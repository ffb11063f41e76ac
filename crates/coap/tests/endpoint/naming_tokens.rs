//! Tokens that have the number of the copy behind them, among those of other requests under way (RFC 7252 §5.3.1).

use std::collections::BTreeSet;

use millpond_coap::message::{Code, Kind, Message, Token};
use millpond_coap::{Config, Endpoint, IdGenerator, Outgoing, Output};
use millpond_control::{ChanceSeed, Instant, Naming, PeerController, Wishes};

use crate::pair::{HELLO, SECOND, get, steady};
use crate::session::Wishing;

/// A client whose copies are distinguished by their tokens, with ten requests to a peer at a time; found one by one, or by
/// hash.
fn client(token_length: u16, by_hash: bool, id_generator: IdGenerator) -> Endpoint<u8> {
    let mut config = Config { token_length, ..Config::default() };
    config.transmission.nstart = 10;
    config.limits.exchanges_per_peer = if by_hash { 17 } else { 16 };
    let wishes = Wishes { naming: Naming::Token, ..Wishes::NONE };
    let controller = PeerController::own(Wishing { inner: steady(), wishes });
    Endpoint::new(config, controller, ChanceSeed::new(1), 0, id_generator).unwrap()
}

/// Drains; message ID and token of each copy that left.
fn drain(client: &mut Endpoint<u8>, now: u64) -> Vec<(u16, Vec<u8>)> {
    let mut left = Vec::new();
    loop {
        match client.poll(Instant::from_micros(now)) {
            Output::Transmit(transmit) => {
                let message = Message::parse(transmit.bytes).unwrap();
                left.push((message.id.0, message.token.as_bytes().to_vec()));
            }
            Output::Event(_) => {}
            Output::Sleep(..) | Output::Idle => return left,
        }
    }
}

fn ask(client: &mut Endpoint<u8>, request: &Outgoing<'_>) -> Vec<(u16, Vec<u8>)> {
    client.request(Instant::ORIGIN, 1, request).unwrap();
    drain(client, 0)
}

fn given(token: &[u8]) -> Outgoing<'static> {
    Outgoing { token: Token::new(token), ..get() }
}

/// In both ways of finding an exchange.
fn both(token_length: u16, check: impl Fn(Endpoint<u8>)) {
    for by_hash in [false, true] {
        check(client(token_length, by_hash, IdGenerator::counted()));
    }
}

#[test]
fn each_copy_has_the_token_of_the_first_and_its_number() {
    for (token_length, first) in [(0, &[][..]), (1, &[0]), (4, &[0; 4]), (7, &[0; 7]), (8, &[0; 7])] {
        both(token_length, |mut client| {
            assert_eq!(ask(&mut client, &get()), [(0, first.to_vec())]);
            for (copy, at) in [(1, 2_500_000), (2, 7_500_000), (3, 17_500_000), (4, 37_500_000)] {
                assert_eq!(drain(&mut client, at), [(0, [first, &[copy]].concat())]);
            }
        });
    }
}

/// The response to any copy that left is found, and to none that did not.
#[test]
fn every_copy_can_be_answered_separately() {
    for copy in 0..4_u8 {
        both(4, |mut client| {
            for _ in 0..3 {
                ask(&mut client, &get());
            }
            drain(&mut client, 2_500_000);
            drain(&mut client, 7_500_000);
            let mut response = b"\x55\x45\x77\x77\0\0\0\x01".to_vec();
            match copy {
                0 => response[0] = 0x54,
                copy => response.push(copy),
            }
            client.receive(Instant::from_micros(8 * SECOND), 1, &response);
            drain(&mut client, 8 * SECOND);
            let expected = if copy < 3 { (1, 0) } else { (0, 1) };
            assert_eq!((client.counters().answered, client.counters().late), expected, "copy {copy}");
        });
    }
}

/// The token of a copy, sent or yet to come, is under way: a request with such a token waits until the other is over.
#[test]
fn a_given_token_waits_for_a_copy_that_would_have_it() {
    for (token, waits) in [
        (&[0, 0, 0, 0][..], true),
        (&[0, 0, 0, 0, 1], true),
        (&[0, 0, 0, 0, 4], true),
        // No such copy will ever be: there are four after the first.
        (&[0, 0, 0, 0, 5], false),
        (&[0, 0, 0, 0, 0], false),
        (&[0, 0, 0, 1, 1], false),
        (&[0, 0, 0], false),
        (&[], false),
    ] {
        both(4, |mut client| {
            ask(&mut client, &get());
            let left = ask(&mut client, &given(token));
            assert_eq!(left.is_empty(), waits, "{token:?}");
            client.receive(Instant::ORIGIN, 1, b"\x64\x45\0\0\0\0\0\0");
            let left = drain(&mut client, 0);
            assert_eq!(left.is_empty(), !waits, "{token:?}");
        });
    }
}

/// A token that a given one begins with is passed over if one of its copies would have the given one. What stands in for it is none
/// of those that come next.
#[test]
fn a_token_is_made_such_that_no_copy_has_a_given_one() {
    for (token, is_free) in [
        (&[0, 0, 0, 1, 3][..], false),
        (&[0, 0, 0, 1], false),
        (&[0, 0, 0, 1, 5], true),
        (&[0, 0, 0, 1, 0], true),
        (&[0, 0, 0, 1, 1, 1], true),
    ] {
        both(4, |mut client| {
            assert_eq!(ask(&mut client, &given(token)), [(0, token.to_vec())]);
            let left = ask(&mut client, &get());
            // With 16 exchanges to a peer, and with 17.
            let made = if is_free { [[0, 0, 0, 1]; 2] } else { [[0xff, 0xff, 0xff, 0x9e], [0xff, 0xff, 0xff, 0x98]] };
            assert!(made.iter().any(|made| left == [(1, made.to_vec())]), "{token:?}: {left:?}");
            assert_eq!(ask(&mut client, &get()), [(2, vec![0, 0, 0, 2])], "{token:?}");
        });
    }
}

/// Without bytes to choose, a request waits for whatever could be taken for it.
#[test]
fn without_made_tokens_a_request_waits_as_well() {
    for (token, waits) in [(&[3][..], true), (&[5], false), (&[0], false)] {
        both(0, |mut client| {
            ask(&mut client, &given(token));
            assert_eq!(ask(&mut client, &get()).is_empty(), waits, "{token:?}");
        });
        both(0, |mut client| {
            ask(&mut client, &get());
            assert_eq!(ask(&mut client, &given(token)).is_empty(), waits, "{token:?}");
        });
    }
}

/// Requests that are sent once among them, whose tokens would be a byte longer if they could.
#[test]
fn no_token_comes_twice_whatever_its_length() {
    for id_generator in [IdGenerator::counted(), IdGenerator::secret([5; 16])] {
        for token_length in [2, 4, 7, 8] {
            let mut client = client(token_length, true, id_generator);
            let mut seen = BTreeSet::new();
            let mut now = 0;
            for round in 0..3_000_u32 {
                let kind = if round % 3 == 0 { Kind::NonConfirmable } else { Kind::Confirmable };
                let request = Outgoing { kind, ..Outgoing::confirmable(Code::GET, HELLO) };
                client.request(Instant::from_micros(now), 1, &request).unwrap();
                let mut id = 0;
                for _ in 0..3 {
                    for (its, token) in drain(&mut client, now) {
                        assert!(seen.insert(token.clone()), "{token:02x?} came twice, {token_length} bytes");
                        id = its;
                    }
                    now += 7 * SECOND;
                }
                let [high, low] = id.to_be_bytes();
                client.receive(Instant::from_micros(now), 1, &[0x70, 0, high, low]);
                drain(&mut client, now);
            }
            assert!(seen.len() > 6_000);
        }
    }
}
