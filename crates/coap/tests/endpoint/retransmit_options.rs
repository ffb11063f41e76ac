//! Messages that are repeated more often, less often or more slowly than their endpoint's others (RFC 7252 §4.8).

use millpond_coap::message::{Code, Kind};
use millpond_coap::{Endpoint, Lifetimes, Outgoing, Output, Refused, RetransmitOptions, Transmission};
use millpond_control::{Instant, Naming, SettingValue, Span, Wishes};

use crate::pair::{HELLO, Pair, SECOND, Side, at_any_rate, endpoint, get, steady};

/// The times at which copies of a request leave that nobody answers, and when it fails, in halves of a second.
fn unanswered(retransmit: RetransmitOptions) -> Vec<u64> {
    let mut pair = Pair::usual().losing(0..50);
    pair.ask(&get().with_retransmit(retransmit)).unwrap();
    pair.run();
    let times = pair.take_log().into_iter().map(|line| {
        let (seconds, rest) = line.split_once(' ').unwrap();
        assert!(rest.starts_with("C sends CON GET 0") || rest == "C fails: GaveUp", "{line}");
        (seconds.parse::<f64>().unwrap() * 2.0) as u64
    });
    times.collect()
}

fn copies(max_retransmit: u8) -> RetransmitOptions {
    RetransmitOptions { max_retransmit: Some(max_retransmit), ..RetransmitOptions::DEFAULT }
}

fn waiting(ack_timeout: Span) -> RetransmitOptions {
    RetransmitOptions { ack_timeout, ..RetransmitOptions::DEFAULT }
}

#[test]
fn without_options_of_its_own_a_message_has_its_endpoints() {
    assert_eq!(unanswered(RetransmitOptions::DEFAULT), [0, 5, 15, 35, 75, 155]);
}

#[test]
fn a_message_has_as_many_copies_as_it_asks_for() {
    assert_eq!(unanswered(copies(0)), [0, 5]);
    assert_eq!(unanswered(copies(1)), [0, 5, 15]);
    assert_eq!(unanswered(copies(6)), [0, 5, 15, 35, 75, 155, 315, 635]);
}

#[test]
fn a_longer_first_wait_doubles() {
    assert_eq!(unanswered(waiting(Span::from_secs(4))), [0, 8, 24, 56, 120, 248]);
}

/// RFC 8085 §3.1.1: how fast may be asked is the controller's to say.
#[test]
fn no_wait_is_shorter_than_the_controllers() {
    assert_eq!(unanswered(waiting(Span::from_millis(1))), unanswered(RetransmitOptions::DEFAULT));
}

#[test]
fn the_next_message_has_the_endpoints_settings_again() {
    let mut pair = Pair::usual().losing(0..50);
    pair.ask(&get().with_retransmit(copies(0))).unwrap();
    pair.run();
    pair.get();
    pair.run();
    assert_eq!(pair.datagrams.len(), 1 + 5);
}

#[test]
fn more_copies_than_can_be_counted_are_refused() {
    let mut pair = Pair::usual();
    let refused = pair.ask(&get().with_retransmit(copies(251)));
    assert_eq!(refused, Err(Refused::TooManyCopies { asked: 251 }));
    assert_eq!(refused.unwrap_err().to_string(), "retransmit.max_retransmit is 251; use at most 250");
    assert_eq!(pair.client.exchanges(), 0);
}

/// A message ID may not come again while copies of the message may still be under way (RFC 7252 §4.8.2).
#[test]
fn a_message_id_rests_for_as_long_as_its_message_lives() {
    let retransmit = RetransmitOptions { max_retransmit: Some(8), ack_timeout: Span::from_secs(3) };
    let lifetimes = Lifetimes::with_retransmit(&steady(), &Transmission::RFC7252, retransmit);
    // 3 s doubled eight times is 768 s, and all nine waits are 1533 s: longer than any round trip beside the last wait.
    assert_eq!(lifetimes.transmit_wait, 1_533 * SECOND);
    assert_eq!(lifetimes.transmit_span, 765 * SECOND);
    assert_eq!(lifetimes.exchange, 1_533 * SECOND);

    let mut pair = Pair::usual().losing(0..50);
    pair.ask(&get().with_retransmit(retransmit)).unwrap();
    pair.run();
    assert_eq!(pair.now, lifetimes.transmit_wait, "as long as was said, and no longer");

    // All IDs used at one time: those beside the patient one are free again after the usual lifetime.
    let mut client = endpoint::<Side>(0, at_any_rate);
    let start = pair.now();
    let plain = Outgoing::non_confirmable(Code::GET, HELLO);
    let ask = |client: &mut Endpoint<Side>, request: &Outgoing<'_>| {
        let id = client.request(start, Side::Server, request).unwrap();
        while let Output::Transmit(_) | Output::Event(_) = client.poll(start) {}
        assert!(client.cancel(start, id));
        while let Output::Transmit(_) | Output::Event(_) = client.poll(start) {}
    };
    ask(&mut client, &get().with_retransmit(retransmit));
    for _ in 1..65_536 {
        ask(&mut client, &plain);
    }
    let left = |micros| client.message_ids_left(Instant::from_micros(start.as_micros() + micros), Side::Server);
    let usual = Lifetimes::of(&steady(), &Transmission::RFC7252).exchange;
    assert_eq!((left(usual - 1), left(usual)), (0, 65_536 - 1_024), "IDs rest in blocks of 1024");
    assert_eq!((left(lifetimes.exchange - 1), left(lifetimes.exchange)), (65_536 - 1_024, 65_536));
}

/// A patient message to one peer costs the others nothing, and what they send is not remembered for longer.
#[test]
fn a_patient_message_changes_no_lifetime_but_its_own() {
    let (mut usual, mut patient) = (endpoint::<u32>(0, at_any_rate), endpoint::<u32>(0, at_any_rate));
    let most = RetransmitOptions { ack_timeout: Span::from_secs(60), ..copies(20) };
    for (client, request) in [(&mut usual, get()), (&mut patient, get().with_retransmit(most))] {
        client.request(Instant::ORIGIN, 1, &request).unwrap();
        while let Output::Transmit(_) | Output::Event(_) = client.poll(Instant::ORIGIN) {}
        for _ in 0..65_536 {
            let id = client.request(Instant::ORIGIN, 2, &Outgoing::non_confirmable(Code::GET, HELLO)).unwrap();
            while let Output::Transmit(_) | Output::Event(_) = client.poll(Instant::ORIGIN) {}
            client.cancel(Instant::ORIGIN, id);
            while let Output::Transmit(_) | Output::Event(_) = client.poll(Instant::ORIGIN) {}
        }
    }
    for micros in [0, 200 * SECOND, 240 * SECOND, 300 * SECOND] {
        let now = Instant::from_micros(micros);
        assert_eq!(usual.message_ids_left(now, 2), patient.message_ids_left(now, 2), "after {micros} µs");
    }
    assert_eq!(patient.message_ids_left(Instant::from_micros(300 * SECOND), 2), 65_536);
}

/// Copies beyond the endpoint's number have tokens too, and no other request's.
#[test]
fn further_copies_are_told_apart_by_their_tokens_as_well() {
    let mut pair = Pair::usual().naming(Naming::Token).losing(0..7);
    pair.ask(&get().with_retransmit(copies(7))).unwrap();
    pair.run();
    let log = pair.take_log();
    assert!(log.last().unwrap().ends_with("copy 7: exactly 0.1 s, 8 copies"), "{log:?}");
}

#[test]
fn a_non_confirmable_message_that_becomes_confirmable_keeps_its_options() {
    let wishes = Wishes { confirmable_every: 1, ..Wishes::NONE };
    let mut pair = Pair::usual().wishing(wishes).losing(0..50);
    let plain = Outgoing { kind: Kind::NonConfirmable, ..get() };
    pair.ask(&plain.with_retransmit(copies(1))).unwrap();
    pair.run();
    assert_eq!(pair.datagrams.len(), 2);
}

/// A wait that need not be lengthened any more is the controller's again, its cap included.
#[test]
fn where_the_controller_waits_longer_its_waits_count() {
    let mut controller = steady();
    controller.set("max-wait", SettingValue::Time(Span::from_secs(4))).unwrap();
    controller.set("backoff-factor", SettingValue::Ratio(3_000)).unwrap();
    let mut pair = Pair::usual().losing(0..50);
    pair.client.set_controller(pair.now(), Side::Server, controller).unwrap();
    pair.drain(Side::Client);
    pair.ask(&get().with_retransmit(waiting(Span::from_millis(1_800)))).unwrap();
    pair.run();
    assert_eq!(pair.now, (2_500 + 4 * 4_000) * 1_000, "the first wait was longer than asked for, so nothing doubles");
}
