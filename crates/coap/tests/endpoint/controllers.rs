//! How the endpoint treats the controllers of its peers.

use millpond_coap::message::{Code, Token};
use millpond_coap::{Cause, Config, Endpoint, Event, IdGenerator, Outgoing, Output, SleepReason, Transmission};
use millpond_control::{AnyController, ChanceSeed, Instant, Preset, Reason, SettingValue, Span, Wait};

use crate::pair::{HELLO, Pair, SECOND, Side, get, steady};

/// A client with the given controller and NSTART 4, at node 0.
fn client(controller: AnyController) -> Endpoint<u8> {
    let mut config = Config::default();
    config.transmission.nstart = 4;
    Endpoint::new(config, controller, ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap()
}

fn cocoa() -> AnyController {
    let mut controller = Preset::COCOA_03.build();
    controller.set("random-factor", SettingValue::Ratio(1_000)).unwrap();
    controller
}

/// Drains; the waits of the copies that left, and until when it sleeps.
fn waits(client: &mut Endpoint<u8>, now: u64) -> (Vec<Wait>, Option<(u64, SleepReason)>) {
    let mut waits = Vec::new();
    loop {
        match client.poll(Instant::from_micros(now)) {
            Output::Transmit(transmit) => {
                if let Cause::Exchange { wait, .. } = transmit.cause {
                    waits.push(wait);
                }
            }
            Output::Event(_) => {}
            Output::Sleep(until, reason) => return (waits, Some((until.as_micros(), reason))),
            Output::Idle => return (waits, None),
        }
    }
}

fn ask(client: &mut Endpoint<u8>, now: u64, to: u8) -> Vec<Wait> {
    client.request(Instant::from_micros(now), to, &get()).unwrap();
    waits(client, now).0
}

#[test]
fn every_peer_has_a_controller_of_its_own() {
    let mut client = client(cocoa());
    assert_eq!(client.view(1), None);
    ask(&mut client, 0, 1);
    ask(&mut client, 0, 2);
    client.receive(Instant::from_micros(100_000), 1, b"\x60\x00\x00\x00");
    waits(&mut client, 100_000);
    let learnt = client.view(1).unwrap();
    assert_eq!(learnt.srtt, Some(Span::from_millis(100)));
    assert_eq!(client.view(2).unwrap().srtt, None);

    client.forget_controller(Instant::from_micros(100_000), 1);
    assert_eq!(client.view(1), client.view(2), "as new");
    waits(&mut client, 100_000);
    client.forget_controller(Instant::from_micros(100_000), 3);
    assert_eq!(client.peers(), 2, "nothing to forget");
    // IDs go on.
    client.request(Instant::from_micros(100_000), 1, &get()).unwrap();
    let Output::Transmit(transmit) = client.poll(Instant::from_micros(100_000)) else { panic!("nothing left") };
    assert_eq!(transmit.bytes[..4], *b"\x44\x01\x00\x01");
}

/// What one life measured of a path the next one is told before it asks: waits are as ever, and the first answer is judged by it.
#[test]
fn a_base_round_trip_outlives_the_endpoint() {
    let life = |remembered: Option<Span>, rtt: u64| {
        let mut client = client(Preset::CALM.build());
        assert_eq!(client.base_rtt(1), None, "nobody is known");
        if let Some(base_rtt) = remembered {
            client.recall(Instant::ORIGIN, 1, base_rtt).unwrap();
            assert_eq!((client.peers(), client.base_rtt(1)), (1, None));
        }
        let first = ask(&mut client, 0, 1);
        client.receive(Instant::from_micros(rtt), 1, b"\x60\x00\x00\x00");
        waits(&mut client, rtt);
        (first, client.base_rtt(1), client.base_rtt(2))
    };
    let (first, measured, nobody) = life(None, 240_000);
    assert_eq!((measured, nobody), (Some(Span::from_millis(240)), None));
    let (again, aged, _) = life(measured, 1_520_000);
    assert_eq!(again, first);
    assert_eq!(aged, Some(Span::from_millis(260)), "a sixty-fourth of the way to 1.52 s");
    assert_eq!(life(measured, 100_000).1, Some(Span::from_millis(100)));
    // A controller that keeps none has nothing to say, and takes no notice.
    let mut deaf = self::client(cocoa());
    deaf.recall(Instant::ORIGIN, 1, Span::from_millis(1)).unwrap();
    ask(&mut deaf, 0, 1);
    deaf.receive(Instant::from_micros(100_000), 1, b"\x60\x00\x00\x00");
    waits(&mut deaf, 100_000);
    assert_eq!(deaf.base_rtt(1), None);
}

#[test]
fn a_base_round_trip_is_recalled_only_where_there_is_room_for_its_peer() {
    let config = Config { limits: millpond_coap::Limits { peers: 1, ..Config::default().limits }, ..Config::default() };
    let mut client =
        Endpoint::new(config, Preset::CALM.build(), ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap();
    client.recall(Instant::ORIGIN, 1_u8, Span::from_millis(240)).unwrap();
    ask(&mut client, 0, 1);
    assert!(client.recall(Instant::ORIGIN, 2, Span::from_millis(240)).is_err());
}

/// CoCoA multiplies the wait to a peer that it never measured by the number of exchanges open to it.
#[test]
fn open_exchanges_are_counted_per_peer_and_with_the_one_in_question() {
    let mut client = client(cocoa());
    for (open, to) in [(1, 1), (2, 1), (1, 2), (3, 1), (4, 1)] {
        let waits = ask(&mut client, 0, to);
        assert_eq!(waits.len(), 1);
        assert_eq!((waits[0].span, waits[0].reason), (Span::from_secs(2 * open), Reason::Blind));
    }
    // A fifth waits, and leaves when one ends: four are open then as before.
    assert!(ask(&mut client, 0, 1).is_empty());
    client.receive(Instant::from_micros(0), 1, b"\x70\x00\x00\x01");
    let (waits, _) = waits(&mut client, 0);
    assert_eq!(waits.iter().map(|wait| wait.span).collect::<Vec<_>>(), [Span::from_secs(8)]);
}

/// CoCoA lets one unacknowledged message go every RTO; NSTART has nothing against more.
#[test]
fn what_the_controller_holds_back_leaves_when_it_says() {
    let mut client = client(cocoa());
    let ask = |client: &mut Endpoint<u8>, now| {
        client.request(Instant::from_micros(now), 1, &Outgoing::non_confirmable(Code::GET, HELLO)).unwrap();
        waits(client, now).1.unwrap()
    };
    assert_eq!(ask(&mut client, 0).1, SleepReason::Response);
    assert_eq!(ask(&mut client, SECOND), (2 * SECOND, SleepReason::Admission));
    assert_eq!(ask(&mut client, SECOND), (2 * SECOND, SleepReason::Admission));
    assert_eq!(client.counters().sent.non_confirmable, 1);
    assert_eq!(waits(&mut client, 2 * SECOND).1, Some((4 * SECOND, SleepReason::Admission)));
    assert_eq!(client.counters().sent.non_confirmable, 2);
    assert_eq!(waits(&mut client, 4 * SECOND).1.unwrap().1, SleepReason::Response);
    assert_eq!(client.counters().sent.non_confirmable, 3);
}

/// A peer for which nothing is left but a notification held back is idle once that has left.
#[test]
fn a_notification_held_back_leaves_an_idle_peer() {
    let config = Config { token_length: 0, ..Config::default() };
    let limits = millpond_coap::Limits { peers: 1, ..config.limits };
    let transmission = Transmission { probing_rate: u32::MAX, ..config.transmission };
    let config = Config { limits, transmission, ..config };
    let mut server = Endpoint::new(config, cocoa(), ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap();
    for sleep in [None, Some((2 * SECOND, SleepReason::Admission))] {
        let notification = Outgoing::non_confirmable(Code::CONTENT, &[]);
        server.send_additional(Instant::ORIGIN, 1_u8, Token::EMPTY, &notification).unwrap();
        assert_eq!(waits(&mut server, 0).1, sleep);
    }
    assert_eq!(waits(&mut server, 2 * SECOND).1, None);
    assert_eq!((server.counters().sent.non_confirmable, server.exchanges()), (2, 0));
    // Its place is free for another peer as soon as its IDs are, 394 s after the last.
    let now = Instant::from_micros(396 * SECOND);
    server.request(now, 2, &get()).unwrap();
    assert_eq!(server.counters().forgotten_peers, 1);
    waits(&mut server, 396 * SECOND);
}

#[test]
fn a_confirmable_message_waits_its_turn_behind_one_held_back() {
    let mut client = client(cocoa());
    let now = Instant::ORIGIN;
    for request in [Outgoing::non_confirmable(Code::GET, HELLO), Outgoing::non_confirmable(Code::GET, HELLO), get()] {
        client.request(now, 1, &request).unwrap();
        waits(&mut client, 0);
    }
    assert_eq!(client.counters().sent.total(), 1);
    waits(&mut client, 2 * SECOND);
    assert_eq!((client.counters().sent.non_confirmable, client.counters().sent.confirmable), (2, 1));
}

/// The armed timer runs on, later waits double, and the new controller hears nothing of it.
#[test]
fn an_exchange_under_way_outlives_its_controller() {
    let mut client = client(cocoa());
    let exchange = client.request(Instant::ORIGIN, 1, &get()).unwrap();
    assert_eq!(waits(&mut client, 0).1, Some((2 * SECOND, SleepReason::Retransmission)));
    client.set_controller(Instant::from_micros(SECOND), 1, cocoa()).unwrap();
    assert_eq!(waits(&mut client, SECOND).1, Some((2 * SECOND, SleepReason::Retransmission)));
    for (now, seconds) in [(2, 4), (6, 8), (14, 16), (30, 32)] {
        let (waits, _) = waits(&mut client, now * SECOND);
        assert_eq!(waits, [Wait::then_retransmit(Span::from_secs(seconds), Reason::BackedOff)]);
    }
    // Answered after four retransmissions; CoCoA would ignore that anyway, so let another one end cleanly.
    client.receive(Instant::from_micros(31 * SECOND), 1, b"\x64\x45\x00\x00\0\0\0\0");
    let Output::Event(Event::Response { exchange: answered, sample: Some(sample), copies: 5, .. }) =
        client.poll(Instant::from_micros(31 * SECOND))
    else {
        panic!("no response")
    };
    assert_eq!((answered, sample.retransmissions()), (exchange, 4));
    waits(&mut client, 31 * SECOND);
    assert_eq!(client.view(1).unwrap().srtt, None);

    client.request(Instant::from_micros(40 * SECOND), 1, &get()).unwrap();
    waits(&mut client, 40 * SECOND);
    client.forget_controller(Instant::from_micros(40 * SECOND), 1);
    waits(&mut client, 40 * SECOND);
    client.receive(Instant::from_micros(41 * SECOND), 1, b"\x60\x00\x00\x01");
    waits(&mut client, 41 * SECOND);
    assert_eq!(client.view(1).unwrap().srtt, None, "the sample belongs to the controller before");
    assert_eq!(client.counters().answered, 1);
}

/// Full Backoff keeps the wait of an exchange that was cancelled after a retransmission.
#[test]
fn a_cancelled_exchange_is_told_as_such() {
    let mut client = client(Preset::DEFAULT_FB1.build());
    let exchange = client.request(Instant::ORIGIN, 1, &get()).unwrap();
    let (first, sleep) = waits(&mut client, 0);
    let now = sleep.unwrap().0;
    let (second, _) = waits(&mut client, now);
    assert_eq!(second[0].span, first[0].span.doubled());
    assert!(client.cancel(Instant::from_micros(now), exchange));
    waits(&mut client, now);
    assert_eq!(client.view(1).unwrap().carried, Some(second[0].span));
    assert_eq!(ask(&mut client, now, 1)[0].reason, Reason::Carried);
}

#[test]
fn a_peer_may_get_its_controller_before_the_first_message() {
    let mut client = client(Preset::RFC7252.build());
    client.set_controller(Instant::ORIGIN, 1, steady()).unwrap();
    waits(&mut client, 0);
    assert_eq!(ask(&mut client, 0, 1)[0].span, Span::from_millis(2_500));
    assert_ne!(ask(&mut client, 0, 2)[0].span, Span::from_millis(2_500));
}

/// A slower controller lengthens all lifetimes: here that of the response that is awaited.
#[test]
fn lifetimes_are_those_of_the_slowest() {
    let mut pair = Pair::usual().thinking(1_000 * SECOND);
    pair.client.set_controller(pair.now(), Side::Server, Preset::COCOA_03.build()).unwrap();
    pair.drain(Side::Client);
    pair.get();
    pair.run_until(999 * SECOND);
    let log = pair.take_log();
    // 394 s after the acknowledgement at 0.6 s.
    assert_eq!(log.last().unwrap(), "394.6 C fails: NoResponse");
}

#[test]
fn chance_is_addressed_by_node_peer_message_and_copy() {
    let first_waits = |node| {
        let template = client(Preset::RFC7252.build());
        let mut client = template.sibling(node);
        let mut waits: Vec<Span> = Vec::new();
        for to in [1, 2, 1] {
            waits.extend(ask(&mut client, 0, to).iter().map(|wait| wait.span));
        }
        waits
    };
    assert_eq!(first_waits(0), first_waits(0));
    let mut all: Vec<Span> = (0..4).flat_map(first_waits).collect();
    assert_eq!(all.len(), 12);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 12, "twelve different words");
    // The second message to peer 1 does not depend on there having been one to peer 2.
    let mut client = client(Preset::RFC7252.build());
    let alone: Vec<Span> = [1, 1].iter().flat_map(|to| ask(&mut client, 0, *to)).map(|wait| wait.span).collect();
    let among = first_waits(0);
    assert_eq!(alone, [among[0], among[2]]);
}
