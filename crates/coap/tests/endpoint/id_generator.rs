//! Message IDs and tokens: none too early again (RFC 7252 §4.4, §5.3.1).

use std::collections::{BTreeMap, BTreeSet};

use millpond_coap::message::Message;
use millpond_coap::{Config, Endpoint, IdGenerator, Output, Refused, SleepReason};
use millpond_control::{ChanceSeed, Instant};

use crate::pair::{SECOND, endpoint, get, steady};

/// EXCHANGE_LIFETIME of the steady timer.
const LIFETIME: u64 = 239 * SECOND + SECOND / 2;

/// Asks and drains. Message ID and token of the request that left; until when the endpoint sleeps if none did.
fn ask(client: &mut Endpoint<u8>, now: u64, to: u8) -> Result<Result<(u16, Vec<u8>), u64>, Refused> {
    let now = Instant::from_micros(now);
    client.request(now, to, &get())?;
    let mut left = None;
    loop {
        match client.poll(now) {
            Output::Transmit(transmit) => {
                let message = Message::parse(transmit.bytes).unwrap();
                left = Some((message.id.0, message.token.as_bytes().to_vec()));
            }
            Output::Event(event) => panic!("{event:?}"),
            Output::Sleep(until, reason) => {
                assert!(left.is_some() || reason == SleepReason::MessageId, "{reason:?}");
                return Ok(left.ok_or(until.as_micros()));
            }
            Output::Idle => panic!("idle"),
        }
    }
}

/// Acknowledges with a response.
fn answer(client: &mut Endpoint<u8>, now: u64, from: u8, (id, token): &(u16, Vec<u8>)) {
    let now = Instant::from_micros(now);
    let mut reply = vec![0x60 | token.len() as u8, 0x45];
    reply.extend(id.to_be_bytes());
    reply.extend(token);
    client.receive(now, from, &reply);
    while !matches!(client.poll(now), Output::Idle) {}
}

#[test]
fn all_ids_are_used_once_then_the_next_waits_for_the_first_to_be_free() {
    for length in [0, 2, 4, 8] {
        let mut client = endpoint(0, |config| config.token_length = length);
        let mut tokens = BTreeSet::new();
        for count in 0..=u16::MAX {
            let now = u64::from(count) * 1_000;
            let left = ask(&mut client, now, 1).unwrap().unwrap();
            assert_eq!(left.0, count);
            assert!(tokens.insert(left.1.clone()) || length == 0, "token {:02x?} came twice", left.1);
            answer(&mut client, now, 1, &left);
        }
        // Uses are remembered by blocks of 1024: the first is free when its last one is.
        let free = 1_023_000 + LIFETIME;
        assert_eq!(ask(&mut client, 66 * SECOND, 1).unwrap(), Err(free));
        assert_eq!(client.exchanges(), 1);
        // Other peers have IDs of their own.
        assert_eq!(ask(&mut client, 66 * SECOND, 2).unwrap().unwrap().0, 0);
        client.receive(Instant::from_micros(66 * SECOND), 2, b"\x70\x00\x00\x00");
        while !matches!(client.poll(Instant::from_micros(66 * SECOND)), Output::Sleep(..)) {}

        let Output::Sleep(until, SleepReason::MessageId) = client.poll(Instant::from_micros(free - 1)) else {
            panic!("not asleep")
        };
        assert_eq!(until.as_micros(), free);
        let Output::Transmit(transmit) = client.poll(until) else { panic!("did not leave") };
        assert_eq!(Message::parse(transmit.bytes).unwrap().id.0, 0);
    }
}

/// A request may await its response for so long that its message ID is used again. An acknowledgement then is for the
/// later message, whichever of the two was first.
#[test]
fn an_acknowledgement_is_for_the_last_message_of_its_id() {
    let mut client = endpoint(0, |config| config.transmission.nstart = 2);
    client.request(Instant::ORIGIN, 1, &get()).unwrap();
    while !matches!(client.poll(Instant::ORIGIN), Output::Sleep(..)) {}
    for count in 1..=u16::MAX {
        let (id, _) = ask(&mut client, 0, 1).unwrap().unwrap();
        assert_eq!(id, count);
        client.receive(Instant::ORIGIN, 1, &[&[0x70, 0][..], &id.to_be_bytes()].concat());
        while !matches!(client.poll(Instant::ORIGIN), Output::Sleep(..)) {}
    }
    // A second later it is acknowledged, so that it is under way for a second longer than its ID is in use.
    client.receive(Instant::from_micros(SECOND), 1, b"\x60\x00\x00\x00");
    while !matches!(client.poll(Instant::from_micros(SECOND)), Output::Sleep(..)) {}
    let now = Instant::from_micros(LIFETIME);
    let (id, token) = ask(&mut client, LIFETIME, 1).unwrap().unwrap();
    assert_eq!((id, client.exchanges()), (0, 2));
    client.receive(now, 1, &[&[0x64, 0x45, 0, 0][..], &token].concat());
    while !matches!(client.poll(now), Output::Sleep(..)) {}
    assert_eq!((client.exchanges(), client.counters().answered), (1, 1));
}

#[test]
fn where_nothing_may_wait_it_is_refused_with_the_time() {
    let mut client = endpoint(0, |config| config.limits.waiting_per_peer = 0);
    for _ in 0..=u16::MAX {
        let left = ask(&mut client, 5, 1).unwrap().unwrap();
        answer(&mut client, 5, 1, &left);
    }
    let until = Instant::from_micros(5 + LIFETIME);
    assert_eq!(ask(&mut client, 6, 1), Err(Refused::NoMessageId { until }));
    assert_eq!(client.exchanges(), 0);
    ask(&mut client, 5 + LIFETIME, 1).unwrap().unwrap();
}

#[test]
fn a_steady_rate_below_the_limit_never_waits() {
    let mut client = endpoint(0, |_| {});
    let mut last = BTreeMap::new();
    // 65 536 IDs in 239.5 s are 273 a second; a block of 1024 less is 269.
    for count in 0..200_000_u64 {
        let now = count * SECOND / 265;
        let left = ask(&mut client, now, 1).unwrap().expect("must not wait");
        if let Some(before) = last.insert(left.0, now) {
            assert!(now - before >= LIFETIME);
        }
        answer(&mut client, now, 1, &left);
    }
}

#[test]
fn short_tokens_differ_among_requests_under_way() {
    let mut client = endpoint(0, |config| {
        config.token_length = 1;
        config.transmission.nstart = 256;
        config.limits.exchanges_per_peer = 256;
    });
    let mut under_way: BTreeMap<Vec<u8>, u16> = BTreeMap::new();
    for count in 0..2_000_usize {
        if under_way.len() == 256 {
            // One leaves, in no particular order; its token is the only one left.
            let key = under_way.keys().nth(count * 7 % 256).unwrap().clone();
            let id = under_way.remove(&key).unwrap();
            let now = Instant::from_micros(0);
            client.receive(now, 1, &[&[0x61, 0x45], &id.to_be_bytes()[..], &key].concat());
            while !matches!(client.poll(now), Output::Sleep(..)) {}
        }
        let (id, token) = ask(&mut client, 0, 1).unwrap().unwrap();
        assert_eq!(under_way.insert(token, id), None);
    }
    assert_eq!(client.counters().answered, 2_000 - 256);
}

#[test]
fn secrets_decide_over_ids_and_tokens() {
    let make = |id_generator| Endpoint::new(Config::default(), steady(), ChanceSeed::new(1), 3, id_generator).unwrap();
    let counted = ask(&mut make(IdGenerator::counted()), 0, 1).unwrap().unwrap();
    assert_eq!(counted, (0, vec![0; 4]));
    let secret = |byte| {
        let mut client = make(IdGenerator::secret([byte; 16]));
        [1, 2, 3].map(|peer| ask(&mut client, 0, peer).unwrap().unwrap())
    };
    let (one, other) = (secret(1), secret(2));
    assert_eq!(one, secret(1));
    for (one, other) in one.iter().zip(&other) {
        assert_ne!(one, other);
    }
    let tokens: BTreeSet<_> = one.iter().map(|left| &left.1).collect();
    assert_eq!(tokens.len(), 3);
    let mut sibling = make(IdGenerator::secret([1; 16])).sibling(4);
    assert_ne!(ask(&mut sibling, 0, 1).unwrap().unwrap(), one[0], "siblings have identifiers of their own");
}
