//! Tokens on which more than one response comes.

use millpond_coap::message::{Code, Kind, Message, Token, number};
use millpond_coap::{Event, Outgoing, Output, Refused};
use millpond_control::Instant;

use crate::pair::{HELLO, Pair, SECOND, Side, endpoint, get, notification};

/// A client whose subscription was answered at 0.1 s.
fn subscribed() -> Pair {
    let mut pair = Pair::usual();
    pair.subscribe(&get()).unwrap();
    pair.run();
    pair.take_log();
    pair
}

#[test]
fn a_subscription_gets_its_response_and_further_ones() {
    let mut pair = Pair::usual();
    pair.subscribe(&get()).unwrap();
    pair.run();
    pair.happened(&[
        "0 C sends CON GET 0",
        "0.05 S has CON GET 0",
        "0.05 S sends ACK Content 0",
        "0.1 C gets ACK Content 0: Piggybacked after 0.1 s",
    ]);
    assert_eq!((pair.client.exchanges(), pair.client.subscriptions()), (0, 1));
    pair.say(Kind::NonConfirmable).unwrap();
    pair.run();
    pair.say(Kind::Confirmable).unwrap();
    pair.run();
    pair.happened(&[
        "0.1 S sends NON Content 0",
        "0.15 C gets further NON Content 0",
        "0.15 S sends CON Content 1",
        "0.2 C sends ACK 1",
        "0.2 C gets further CON Content 1",
        "0.25 S has delivered: EmptyAck after 0.1 s",
    ]);
    assert_eq!(pair.client.counters().additional_responses, 2);
}

#[test]
fn the_first_response_may_be_separate() {
    for answer in [Kind::Confirmable, Kind::NonConfirmable] {
        let mut pair = Pair::usual().thinking(SECOND);
        pair.answer = answer;
        pair.subscribe(&get()).unwrap();
        pair.run();
        assert_eq!((pair.client.exchanges(), pair.client.subscriptions()), (0, 1));
        pair.take_log();
        pair.now = 5 * SECOND;
        pair.say(Kind::NonConfirmable).unwrap();
        pair.run();
        assert_eq!(
            pair.take_log().last().unwrap(),
            &format!("5.05 C gets further NON Content {}", {
                Message::parse(pair.datagrams.last().unwrap()).unwrap().id.0
            })
        );
    }
}

#[test]
fn a_non_confirmable_subscription_is_answered_by_whatever_comes_first() {
    let mut pair = Pair::usual();
    pair.think = None;
    pair.subscribe(&Outgoing::non_confirmable(Code::GET, HELLO)).unwrap();
    pair.run_until(SECOND);
    pair.say(Kind::NonConfirmable).unwrap();
    pair.say(Kind::NonConfirmable).unwrap();
    pair.run_until(2 * SECOND);
    pair.happened(&[
        "0 C sends NON GET 0",
        "0.05 S has NON GET 0",
        "1 S sends NON Content 0",
        "1.05 C gets NON Content 0: no sample",
    ]);
    // The second one waits: the client has never answered, and PROBING_RATE is a byte a second.
    pair.run();
    assert_eq!(pair.take_log().last().unwrap(), "16.05 C gets further NON Content 1");
}

#[test]
fn copies_of_further_responses_are_acknowledged_and_not_told() {
    let mut pair = subscribed();
    pair.say(Kind::Confirmable).unwrap();
    pair.run();
    let copy = pair.datagrams[2].clone();
    pair.take_log();
    pair.inject(Side::Client, &copy);
    pair.happened(&["0.2 C sends ACK 0"]);
    assert_eq!((pair.client.counters().duplicates, pair.client.counters().additional_responses), (1, 1));
}

/// RFC 7641 §3.6.
#[test]
fn after_the_end_a_notification_is_answered_with_a_reset() {
    for (kind, end) in [(Kind::Confirmable, "fails"), (Kind::NonConfirmable, "is rejected")] {
        let mut pair = Pair::usual();
        let id = pair.subscribe(&get()).unwrap();
        pair.run();
        assert!(pair.unsubscribe(id) && !pair.unsubscribe(id));
        assert_eq!(pair.client.subscriptions(), 0);
        pair.take_log();
        pair.say(kind).unwrap();
        pair.run();
        let end = if end == "fails" { "has not delivered: Reset" } else { end };
        pair.happened(&[
            &format!("0.1 S sends {kind} Content 0"),
            "0.15 C sends RST 0",
            &format!("0.15 C is told late {kind} Content 0"),
            &format!("0.2 S {end}"),
        ]);
    }
}

#[test]
fn a_subscription_that_is_not_answered_fails_and_leaves_nothing() {
    let mut pair = Pair::usual();
    pair.think = None;
    let id = pair.subscribe(&get()).unwrap();
    assert!(pair.unsubscribe(id));
    pair.run();
    assert_eq!(pair.take_log()[1], "0 C fails: Cancelled");
    assert_eq!((pair.client.exchanges(), pair.client.subscriptions()), (0, 0));
}

#[test]
fn the_token_of_a_subscription_is_passed_over() {
    let mut pair = Pair::new(|_, config| config.token_length = 1);
    let id = pair.subscribe(&get()).unwrap();
    pair.run();
    for _ in 0..600 {
        pair.get();
        pair.run();
    }
    let token = |datagram: &Vec<u8>| Message::parse(datagram).unwrap().token;
    let first = token(&pair.datagrams[0]);
    assert!(pair.datagrams.iter().skip(2).all(|datagram| token(datagram) != first));
    assert_eq!(pair.client.counters().answered, 601);
    // A request with this token waits until it is free.
    pair.ask(&Outgoing { token: Some(first), ..get() }).unwrap();
    pair.run();
    assert_eq!(pair.client.exchanges(), 1);
    pair.unsubscribe(id);
    pair.run();
    assert_eq!((pair.client.exchanges(), pair.client.counters().answered), (0, 602));
}

fn renewal(pair: &Pair) -> Outgoing<'static> {
    Outgoing { token: Some(Message::parse(&pair.datagrams[0]).unwrap().token), ..get() }
}

#[test]
fn a_subscription_is_renewed_with_its_own_token() {
    let mut pair = subscribed();
    let request = renewal(&pair);
    let id = pair.subscribe(&request).unwrap();
    // This one crosses the request: it answers nothing, and tells nothing about the path.
    pair.say(Kind::NonConfirmable).unwrap();
    pair.run();
    pair.happened(&[
        "0.1 C sends CON GET 1",
        "0.1 S sends NON Content 0",
        "0.15 S has CON GET 1",
        "0.15 C gets further NON Content 0",
        "0.15 S sends ACK Content 1",
        "0.2 C gets ACK Content 1: Piggybacked after 0.1 s",
    ]);
    assert_eq!(pair.client.subscriptions(), 1);
    let at = pair.now();
    let token = request.token.unwrap();
    pair.server.send_additional(at, Side::Client, token, &notification(Kind::NonConfirmable)).unwrap();
    pair.drain(Side::Server);
    pair.run();
    assert!(pair.unsubscribe(id), "further ones are the new exchange's");
    assert_eq!(pair.client.subscriptions(), 0);
}

#[test]
fn a_renewal_answered_in_a_message_of_its_own() {
    let mut pair = subscribed();
    pair.think = Some(SECOND);
    let request = renewal(&pair);
    pair.subscribe(&request).unwrap();
    pair.run();
    let log = pair.take_log();
    assert!(log.iter().any(|line| line.contains("C gets CON Content")), "{log:?}");
    assert_eq!((pair.client.exchanges(), pair.client.subscriptions()), (0, 1));
}

#[test]
fn if_a_renewal_fails_the_old_subscription_goes_on() {
    let mut pair = subscribed();
    let request = renewal(&pair);
    let id = pair.subscribe(&request).unwrap();
    assert!(pair.cancel(id));
    pair.say(Kind::NonConfirmable).unwrap();
    pair.run();
    assert_eq!(pair.client.counters().additional_responses, 1);
    assert_eq!(pair.client.subscriptions(), 1);
}

/// With many exchanges a peer's tokens are found through a table.
#[test]
fn many_subscriptions_are_told_apart() {
    for exchanges_per_peer in [16, 40] {
        let mut client = endpoint::<u8>(0, |config| {
            config.limits.exchanges_per_peer = exchanges_per_peer;
            config.limits.subscriptions_per_peer = 20;
        });
        let mut now = millpond_control::Instant::from_micros(1);
        let mut open = Vec::new();
        for _ in 0..20 {
            let id = client.subscribe(now, 1, &get()).unwrap();
            let Output::Transmit(transmit) = client.poll(now) else { panic!("nothing left") };
            let mut reply = transmit.bytes[..8].to_vec();
            (reply[0], reply[1]) = (reply[0] | 0x20, 0x45);
            while !matches!(client.poll(now), Output::Idle | Output::Sleep(..)) {}
            client.receive(now, 1, &reply);
            while !matches!(client.poll(now), Output::Idle) {}
            open.push((id, Message::parse(&reply).unwrap().token));
            now = now.after(millpond_control::Span::from_secs(1));
        }
        assert_eq!(client.subscribe(now, 1, &get()), Err(Refused::TooManySubscriptions { limit: 20 }));
        for (count, (id, token)) in open.iter().enumerate() {
            let further = [&[0x54, 0x45, 9, count as u8], token.as_bytes()].concat();
            client.receive(now, 1, &further);
            let Output::Event(Event::AdditionalResponse { exchange, .. }) = client.poll(now) else {
                panic!("nothing told")
            };
            assert_eq!(exchange, *id);
            while !matches!(client.poll(now), Output::Idle) {}
            assert!(client.unsubscribe(now, *id));
            while !matches!(client.poll(now), Output::Idle) {}
        }
        assert_eq!((client.subscriptions(), client.exchanges()), (0, 0));
        client.subscribe(now, 1, &get()).unwrap();
    }
}

#[test]
fn a_claim_takes_all_tokens_that_begin_like_it() {
    let mut pair = Pair::usual();
    let now = pair.now();
    let (id, prefix) = pair.client.claim(now, Side::Server).unwrap();
    let (other, second) = pair.client.claim(now, Side::Server).unwrap();
    assert!(prefix.len() == 4 && second != prefix && id != other);
    pair.get();
    let asked = Message::parse(&pair.datagrams[0]).unwrap().token;
    assert!(!asked.as_bytes().starts_with(prefix.as_bytes()));
    pair.run();
    pair.take_log();
    for last in 0..3 {
        let token = Token::new(&[prefix.as_bytes(), &[last]].concat()).unwrap();
        let now = pair.now();
        pair.server.send_additional(now, Side::Client, token, &notification(Kind::Confirmable)).unwrap();
        pair.drain(Side::Server);
        pair.run();
    }
    assert_eq!(pair.client.counters().additional_responses, 3);
    assert!(pair.unsubscribe(id) && pair.unsubscribe(other));
}

#[test]
fn of_tokens_of_a_byte_all_can_be_claimed() {
    let mut pair = Pair::new(|_, config| {
        (config.token_length, config.limits.subscriptions_per_peer, config.limits.exchanges_per_peer) = (1, 300, 100);
    });
    let now = pair.now();
    let mut claim = || pair.client.claim(now, Side::Server);
    let all: std::collections::BTreeSet<_> = (0..256).map(|_| claim().unwrap().1.as_bytes().to_vec()).collect();
    assert!(all.len() == 256 && all.iter().all(|token| token.len() == 1));
    assert_eq!(claim(), Err(Refused::Claim { length: 1 }));
}

/// A request that the controller made confirmable is answered in the acknowledgement.
#[test]
fn a_claim_gets_what_comes_with_an_acknowledgement() {
    let wishes = millpond_control::Wishes { confirmable_every: 1, ..millpond_control::Wishes::NONE };
    let mut pair = Pair::usual().wishing(wishes);
    let now = pair.now();
    let (_, prefix) = pair.client.claim(now, Side::Server).unwrap();
    let token = Token::new(&[prefix.as_bytes(), b"x"].concat()).unwrap();
    let payload = Outgoing::non_confirmable(Code::PUT, HELLO).with_payload(b"block");
    pair.client.send_additional(now, Side::Server, token, &payload).unwrap();
    pair.drain(Side::Client);
    pair.run();
    pair.happened(&[
        "0 C sends CON PUT 0",
        "0.05 S has CON PUT 0",
        "0.05 S sends ACK Content 0",
        "0.1 C has delivered: EmptyAck after 0.1 s",
        "0.1 C gets further ACK Content 0",
    ]);
}

#[test]
fn what_came_late_can_be_rejected() {
    let mut pair = Pair::usual();
    pair.inject(Side::Client, b"\x54\x45\x00\x07\x01\x02\x03\x04");
    let now = pair.now();
    pair.client.reject_late(now, Side::Server, millpond_coap::message::MessageId(7));
    pair.drain(Side::Client);
    pair.happened(&["0 C is told late NON Content 7", "0 C sends RST 7"]);
}

/// As a gateway forwards: what it does not speak itself (RFC 8613) is its client's, and comes back in each notification.
#[test]
fn a_notification_may_have_the_options_that_its_request_had() {
    let oscore = (number::OSCORE, &[0x09, 0x01, 0x42][..]);
    let notified = |options: &[(u16, &[u8])]| {
        let mut client = endpoint(0, |_| {});
        let request = Outgoing::confirmable(Code::FETCH, options);
        client.subscribe(Instant::ORIGIN, 1, &request).unwrap();
        let Output::Transmit(sent) = client.poll(Instant::ORIGIN) else { panic!("it leaves") };
        let (id, token) = ([sent.bytes[2], sent.bytes[3]], sent.bytes[4..8].to_vec());
        let answer = |first: u8, id: [u8; 2]| [&[first, 0x45], &id[..], &token, b"\x60\x30\xff."].concat();
        let mut told = Vec::new();
        for datagram in [answer(0x64, id), answer(0x44, [0, 7]), answer(0x44, [0, 8])] {
            client.receive(Instant::from_micros(50), 1, &datagram);
            loop {
                match client.poll(Instant::from_micros(50)) {
                    Output::Transmit(transmit) => told.push(if transmit.bytes[0] == 0x70 { "reset" } else { "ack" }),
                    Output::Event(Event::Response { .. }) => told.push("response"),
                    Output::Event(Event::AdditionalResponse { .. }) => told.push("notification"),
                    Output::Event(Event::Failed { .. }) => told.push("failed"),
                    Output::Event(_) => {}
                    Output::Sleep(..) | Output::Idle => break,
                }
            }
        }
        told
    };
    let observe = (number::OBSERVE, &[][..]);
    assert_eq!(notified(&[observe, oscore]), ["response", "ack", "notification", "ack", "notification"]);
    assert_eq!(notified(&[observe])[0], "failed");
}
