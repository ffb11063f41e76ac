//! Peers that do not mean well, or are broken.

use millpond_coap::block::{BlockSize, DownloadError, UploadError};
use millpond_coap::message::{Message, Token};
use millpond_coap::transfer::RequestFailure;

use crate::pair::{CLIENT, Pair, SECOND, Told, body, get, put};

/// A client whose server is played by the test.
fn alone() -> Pair {
    let mut pair = Pair::serving(0, BlockSize::B256);
    pair.lose = (0..10_000).collect();
    pair
}

/// A piggybacked response to the client's last request.
fn reply(pair: &Pair, code: u8, rest: &[u8]) -> Vec<u8> {
    let request = &pair.datagrams.iter().rev().find(|sent| sent.1 == CLIENT).unwrap().2;
    let token = Message::parse(request).unwrap().token;
    [&[0x60 | token.len() as u8, code, request[2], request[3]], token.as_bytes(), rest].concat()
}

#[test]
fn a_server_that_sends_blocks_as_it_likes_is_left() {
    for (second, why) in [
        // The block after the next; a larger one; one too short; one too long; five bytes of option.
        (&b"\xd1\x0a\x28\xff................"[..], DownloadError::OutOfOrder { got: 32, wanted: 16 }.into()),
        (b"\xd1\x0a\x09\xff................................", DownloadError::OutOfOrder { got: 0, wanted: 16 }.into()),
        (b"\xd1\x0a\x18\xff...", DownloadError::WrongLength { length: 3 }.into()),
        (b"\xd1\x0a\x10\xff.................", DownloadError::WrongLength { length: 17 }.into()),
        (b"\xd4\x0a\x00\x00\x00\x18\xff................", RequestFailure::Exchange(millpond_coap::Failure::BadOption)),
        (b"\xd1\x0a\x1f\xff................", RequestFailure::BadBlock),
    ] {
        let mut pair = alone();
        let ask = pair.get();
        let first = reply(&pair, 0x45, b"\xd1\x0a\x08\xff................");
        pair.inject(CLIENT, &first);
        assert_eq!(pair.take_told(CLIENT), []);
        let second = reply(&pair, 0x45, second);
        pair.inject(CLIENT, &second);
        assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why }]);
        assert_eq!((pair.stacks[0].requests(), pair.stacks[0].endpoint().exchanges()), (0, 0));
    }
}

#[test]
fn a_server_whose_body_never_ends_is_left() {
    let mut pair = alone();
    pair.ask(&millpond_coap::transfer::ClientRequest { longest: 1_000, ..get() });
    for number in 0..100_u32 {
        let block = (number << 4 | 8).to_be_bytes();
        let response = [&b"\xd3\x0a"[..], &block[1..], b"\xff", &[b'.'; 16]].concat();
        let response = reply(&pair, 0x45, &response);
        pair.inject(CLIENT, &response);
        if let [Told::Failed { why, .. }] = &pair.take_told(CLIENT)[..] {
            assert_eq!((number, *why), (62, RequestFailure::Download(DownloadError::TooLarge { limit: 1_000 })));
            return;
        }
    }
    panic!("it goes on for ever");
}

#[test]
fn a_server_whose_body_changes_for_ever_is_left() {
    let mut pair = alone();
    pair.get();
    for round in 0..100_u8 {
        let number =
            u8::from(round > 0 && Message::parse(&pair.datagrams.last().unwrap().2).unwrap().option(23) != Some(&[]));
        let asked = Message::parse(&pair.datagrams.last().unwrap().2).unwrap().option(23).map(<[u8]>::to_vec);
        let number = if asked.as_deref() == Some(&[0x10]) { number } else { 0 };
        let response = [&[0x41, round, 0xd1, 0x06, number << 4 | 8, 0xff][..], &[b'.'; 16]].concat();
        let response = reply(&pair, 0x45, &response);
        pair.inject(CLIENT, &response);
        if let [Told::Failed { why, .. }] = &pair.take_told(CLIENT)[..] {
            assert_eq!(*why, RequestFailure::Download(DownloadError::Unstable(4)));
            return;
        }
    }
    panic!("it goes on for ever");
}

/// The first block is what it was of: its code, its Content-Format and its ETag are those of all others.
#[test]
fn what_is_valid_or_of_another_format_in_the_middle_of_a_body_begins_it_anew() {
    for (code, second) in [
        (0x43, &b""[..]),
        (0x43, b"\x41e"),
        (0x44, b""),
        (0x44, b"\xd1\x0a\x10\xff................"),
        (0x45, b"\xc1\x32\xb1\x10\xff................"),
    ] {
        let mut pair = alone();
        let ask = pair.get();
        for round in 0..5 {
            // Content-Format 0.
            let first = reply(&pair, 0x45, b"\xc0\xb1\x08\xff................");
            pair.inject(CLIENT, &first);
            let second = reply(&pair, code, second);
            pair.inject(CLIENT, &second);
            let asked = Message::parse(&pair.datagrams.last().unwrap().2).unwrap().option(23).map(<[u8]>::to_vec);
            match round {
                4 => break,
                _ => assert_eq!((pair.take_told(CLIENT), asked.as_deref()), (vec![], Some(&[][..])), "{second:x?}"),
            }
        }
        let why = RequestFailure::Download(DownloadError::Unstable(4));
        assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why }]);
    }
    // A server that tells the format with the first block alone is understood.
    let mut pair = alone();
    pair.get();
    for block in [&b"\xc0\xb1\x08\xff................"[..], b"\xd1\x0a\x10\xff."] {
        let block = reply(&pair, 0x45, block);
        pair.inject(CLIENT, &block);
    }
    assert_eq!(pair.answers(), [(vec![b'.'; 17], false)]);
}

#[test]
fn a_server_that_acknowledges_what_was_not_sent_is_left() {
    for (code, rest) in [(0x5f, &b"\xd1\x0e\x1e"[..]), (0x5f, b""), (0x44, b"\xd1\x0e\x2e")] {
        let mut pair = alone();
        let long = body(5_000);
        let ask = pair.ask(&put(&long));
        let response = reply(&pair, code, rest);
        pair.inject(CLIENT, &response);
        let why = RequestFailure::Upload(UploadError::WrongBlock);
        assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why }]);
    }
}

#[test]
fn a_continue_to_a_request_without_body_is_an_answer() {
    let mut pair = alone();
    pair.get();
    let response = reply(&pair, 0x5f, b"");
    pair.inject(CLIENT, &response);
    assert_eq!(pair.answers(), [(vec![], false)]);
}

#[test]
fn notifications_that_nobody_asked_for_change_nothing() {
    let mut pair = alone();
    let before = pair.stacks[0].memory();
    for id in 0..2_000_u16 {
        let [high, low] = id.to_be_bytes();
        pair.inject(CLIENT, &[0x52, 0x45, high, low, high, low, 0x61, low, 0xff, b'x']);
        pair.datagrams.clear();
    }
    assert_eq!(pair.take_told(CLIENT), []);
    assert!(pair.stacks[0].memory() < before + 1_024, "{}", pair.stacks[0].memory());
}

#[test]
fn further_responses_without_observe_end_an_observation() {
    let mut pair = alone();
    pair.ask(&get().observing());
    let response = reply(&pair, 0x45, b"\x61\x05\xffone");
    let token = Token::new(&response[4..8]).unwrap();
    pair.inject(CLIENT, &response);
    let last = [&[0x54, 0x45, 0x77, 0x77], token.as_bytes(), b"\xfftwo"].concat();
    pair.inject(CLIENT, &last);
    assert_eq!(pair.answers(), [(b"one".to_vec(), true), (b"two".to_vec(), false)]);
    pair.run_for(SECOND);
    assert_eq!(pair.stacks[0].endpoint().subscriptions(), 0);
}
