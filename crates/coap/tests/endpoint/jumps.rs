//! Clocks that jump: an hour passes at once, as for a machine that was suspended, or time seems to go back.

use millpond_coap::message::{Code, Kind};
use millpond_coap::{Cause, Endpoint, Event, Failure, Outgoing, Output, RequestId};
use millpond_control::{Admit, Chance, Class, Controller, Cx, Instant, Preset};

use crate::pair::{HELLO, SECOND, at_any_rate, content, endpoint, get, notification};

const HOUR: u64 = 3_600 * SECOND;

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

/// What an endpoint said.
#[derive(Default)]
struct Said {
    copies: Vec<u8>,
    /// Everything that left.
    sent: usize,
    requests: Vec<RequestId>,
    failed: Vec<Failure>,
    sleep: Option<Instant>,
}

fn drain(endpoint: &mut Endpoint<u32>, now: u64) -> Said {
    let mut said = Said::default();
    for _ in 0..100_000 {
        match endpoint.poll(at(now)) {
            Output::Transmit(transmit) => {
                said.sent += 1;
                if let Cause::Exchange { copy, .. } = transmit.cause {
                    said.copies.push(copy);
                }
            }
            Output::Event(Event::Request { id, .. }) => said.requests.push(id),
            Output::Event(Event::Failed { why, .. }) => said.failed.push(why),
            Output::Event(_) => {}
            Output::Sleep(until, _) => {
                said.sleep = Some(until);
                return said;
            }
            Output::Idle => return said,
        }
    }
    panic!("it never comes to rest");
}

#[test]
fn after_an_hour_every_due_timer_fires_once_whatever_the_controller() {
    for preset in Preset::all() {
        let mut client: Endpoint<u32> = endpoint(0, |config| config.transmission.nstart = 2);
        let mut begun = 0;
        for peer in 0..20_u32 {
            client.set_controller(at(0), peer, preset.build()).unwrap();
            drain(&mut client, 0);
            for _ in 0..3 {
                client.request(at(0), peer, &get()).unwrap();
                begun += drain(&mut client, 0).sent;
            }
        }
        // Some send one message ahead, whatever NSTART, and pace those that follow.
        let second = Cx { open: 2, ..Cx::new(at(0), Chance::MIDDLE) };
        if preset.build().admit(Class::Confirmable, 40, second) != Admit::Now {
            assert_eq!(begun, 20, "{preset:?}: one each");
            continue;
        }
        assert_eq!(begun, 40, "two for each peer, and one waits");
        for jump in 1..=4_u8 {
            let said = drain(&mut client, u64::from(jump) * HOUR);
            assert_eq!(said.copies, [jump; 40], "{preset:?}: one copy each");
            assert!(said.sleep.unwrap() > at(u64::from(jump) * HOUR));
        }
        // All are given up; of those that waited one leaves for each peer.
        let said = drain(&mut client, 5 * HOUR);
        assert_eq!((said.failed, said.copies), (vec![Failure::GaveUp; 40], vec![0; 20]), "{preset:?}");
    }
}

#[test]
fn after_an_hour_copies_are_new_and_message_ids_free() {
    let mut server: Endpoint<u32> = endpoint(0, |_| {});
    let mut ask = |now: u64| {
        server.receive(at(now), 7, b"\x40\x01\x12\x34\xb5hello");
        let said = drain(&mut server, now);
        for id in &said.requests {
            server.respond(at(now), *id, &content(Kind::Confirmable)).unwrap();
            drain(&mut server, now);
        }
        said.requests.len()
    };
    assert_eq!((ask(0), ask(SECOND), ask(HOUR), ask(HOUR + SECOND)), (1, 0, 1, 0));

    let mut client: Endpoint<u32> = endpoint(0, at_any_rate);
    let plain = Outgoing::non_confirmable(Code::GET, HELLO);
    for _ in 0..65_536 {
        let id = client.request(at(0), 7, &plain).unwrap();
        drain(&mut client, 0);
        client.cancel(at(0), id);
        drain(&mut client, 0);
    }
    client.request(at(0), 7, &plain).unwrap();
    assert_eq!(drain(&mut client, 0).sent, 0, "all IDs are in use");
    assert_eq!(client.message_ids_left(at(HOUR), 7), 65_536);
    assert_eq!(drain(&mut client, HOUR).sent, 1);
}

#[test]
fn after_an_hour_what_waits_for_a_response_ends_once() {
    let mut client: Endpoint<u32> = endpoint(0, |_| {});
    client.request(at(0), 7, &get()).unwrap();
    drain(&mut client, 0);
    client.receive(at(SECOND), 7, b"\x60\0\0\0");
    drain(&mut client, SECOND);
    let said = drain(&mut client, HOUR);
    assert_eq!((said.failed, said.sent, said.sleep), (vec![Failure::NoResponse], 0, None));
}

/// Every input may come with a time before the last one: the latest counts, and nothing stalls.
#[test]
fn time_that_goes_back_stands_still() {
    let mut one: Endpoint<u32> = endpoint(0, |_| {});
    let now = 100 * SECOND;
    one.receive(at(now), 7, b"\x40\x01\x12\x34\xb5hello");
    let request = drain(&mut one, now).requests[0];
    for earlier in [0, 1, now - 1] {
        let id = one.request(at(earlier), 3, &get()).unwrap();
        drain(&mut one, earlier);
        one.receive(at(earlier), 8, b"\x40\x01\0\x01\xb5hello");
        drain(&mut one, earlier);
        one.cancel(at(earlier), id);
        drain(&mut one, earlier);
        let id = one.subscribe(at(earlier), 4, &get()).unwrap();
        drain(&mut one, earlier);
        one.unsubscribe(at(earlier), id);
        drain(&mut one, earlier);
        one.ping(at(earlier), 5).unwrap();
        drain(&mut one, earlier);
        let token = millpond_coap::message::Token::EMPTY;
        one.send_additional(at(earlier), 6, token, &notification(Kind::NonConfirmable)).unwrap();
        drain(&mut one, earlier);
        one.forget_controller(at(earlier), 3);
        let said = drain(&mut one, earlier);
        assert!(said.sleep.unwrap() > at(now), "asleep until {:?}", said.sleep);
    }
    one.respond(at(0), request, &content(Kind::Confirmable)).unwrap();
    drain(&mut one, 0);
    // The pings are given up as if nothing had been.
    let mut pings = 0;
    let mut now = now;
    while let Some(next) = drain(&mut one, now).sleep {
        assert!(next > at(now));
        now = next.as_micros();
        pings += 1;
        assert!(pings < 1_000);
    }
    assert_eq!(one.exchanges(), 0);
}

/// The end of all time is half a million years away, and is reached without a panic.
#[test]
fn time_may_jump_to_its_end() {
    let mut client: Endpoint<u32> = endpoint(0, |_| {});
    client.request(at(0), 7, &get()).unwrap();
    drain(&mut client, 0);
    for end in [u64::MAX - 2, u64::MAX - 1, u64::MAX] {
        for _ in 0..10 {
            assert!(drain(&mut client, end).sent <= 1_000);
        }
    }
}
