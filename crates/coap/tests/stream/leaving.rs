//! Releases that cross or come in the middle of something, and settings that leave no room for anything.

use millpond_coap::Failure;
use millpond_coap::message::{Code, Token};
use millpond_coap::stream::{Closing, Options, Signal, write_frame};
use millpond_coap::transfer::{self, Answer, ClientRequest, Config, RequestFailure};
use millpond_control::Instant;

use crate::owned::{Event, Output, poll, stack};
use crate::side::{Both, Told, drain};
use crate::stacks::{Stacks, body, taking};

const PATH: [(u16, &[u8]); 1] = [(11, b"r")];

fn get() -> millpond_coap::Outgoing<'static> {
    millpond_coap::Outgoing::confirmable(Code::GET, &PATH)
}

/// The bytes of a signal.
fn signal(signal: Signal<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    signal.write(&mut bytes, Token::EMPTY, u32::MAX).unwrap();
    bytes
}

const RELEASE: Signal<'static> = Signal::Release { alternative: None, hold_off: None };

/// Who is being left cannot stay by leaving, too.
#[test]
fn a_release_that_crosses_ours_takes_none_of_its_time_away() {
    for is_first in [true, false] {
        let mut both = Both::new();
        both.server.request(both.now, &get()).unwrap();
        let both_leave = |both: &mut Both| {
            if is_first {
                both.server.release(both.now, None, None).unwrap();
            }
            both.server.receive(both.now, &signal(RELEASE));
            let told = drain(&mut both.server, both.now).1;
            assert!(!told.iter().any(|told| matches!(told, Told::Close(_))), "{told:?}");
            if !is_first {
                both.server.release(both.now, None, None).unwrap();
            }
        };
        both_leave(&mut both);
        both.later(5);
        let (_, told) = drain(&mut both.server, both.now);
        assert!(
            matches!(told[..], [Told::Failed(_, Failure::ConnectionClosed), Told::Close(Closing::ReleaseTimedOut)]),
            "{told:?}"
        );
    }
    // And with nothing left to answer it is over at once.
    let mut both = Both::new();
    both.server.release(both.now, None, None).unwrap();
    both.server.receive(both.now, &signal(RELEASE));
    assert_eq!(drain(&mut both.server, both.now).1.last(), Some(&Told::Close(Closing::Released)));
}

/// An observation is never done: it does not keep a connection that the server wants to end.
#[test]
fn an_observation_does_not_outlast_the_release_of_its_server() {
    let mut stacks = Stacks::new(Options::default(), Options::default()).serving(b"state".to_vec());
    stacks.run();
    let observes = stacks.ask(&ClientRequest::new(Code::GET, &PATH).observing());
    stacks.run();
    assert_eq!(stacks.answers().len(), 1);
    stacks.client.receive(stacks.now, &signal(RELEASE));
    stacks.drain_client();
    assert_eq!(stacks.closed[0], Some(Closing::Released));
    let lost = RequestFailure::Exchange(Failure::ConnectionClosed);
    assert!(stacks.told.contains(&Event::Failed { request: observes, why: lost }), "{:?}", stacks.told);
}

/// A server may release and then not answer: who gives up what it asked has nothing left to wait for.
#[test]
fn what_is_given_up_after_a_release_holds_the_connection_no_longer() {
    let mut both = Both::new();
    let mine = both.client.request(both.now, &get()).unwrap();
    both.client.receive(both.now, &signal(RELEASE));
    drain(&mut both.client, both.now);
    assert!(both.client.cancel(mine));
    let told = drain(&mut both.client, both.now).1;
    assert_eq!(told, [Told::Failed(mine, Failure::Cancelled), Told::Close(Closing::Released)]);
}

#[test]
fn a_release_in_the_middle_of_an_upload_ends_it_and_is_answered_by_the_end() {
    let mut stacks = Stacks::new(Options::default(), taking(1_152));
    stacks.run();
    let bytes = body(8_000);
    let ask = stacks.ask(&ClientRequest::new(Code::PUT, &PATH).with_body(&bytes));
    let up = stacks.drain_client();
    stacks.server.receive(stacks.now, &up);
    let down = stacks.drain_server();
    // Before the 2.31 that the next block waits for.
    stacks.client.receive(stacks.now, &[signal(RELEASE), down].concat());
    stacks.drain_client();
    assert!(matches!(stacks.failure(), RequestFailure::Connection(_)), "{:?}", stacks.told);
    assert_eq!((stacks.client.progress(ask), stacks.closed[0]), (None, Some(Closing::Released)));
}

/// What waits for the other side's settings may be given up before they come.
#[test]
fn what_is_given_up_while_it_waits_keeps_nothing_else_from_leaving() {
    let mut stacks = Stacks::new(Options::default(), Options::default());
    let bytes = body(8_000);
    let put = ClientRequest::new(Code::PUT, &PATH).with_body(&bytes);
    let given_up = stacks.ask(&put);
    stacks.ask(&put);
    assert!(stacks.client.cancel(stacks.now, given_up));
    stacks.run();
    assert!(
        matches!(stacks.told.last(), Some(Event::Answer { code: Code::CHANGED, .. })),
        "{} events",
        stacks.told.len()
    );
}

/// How many copies had left of the only ask that fails.
fn left(stacks: &mut Stacks) -> u8 {
    let mut failed = Vec::new();
    loop {
        match stacks.client.poll(stacks.now) {
            millpond_coap::Output::Event(transfer::Event::Failed { copies, .. }) => failed.push(copies),
            millpond_coap::Output::Sleep(..) | millpond_coap::Output::Idle => break,
            _ => {}
        }
    }
    assert_eq!(failed.len(), 1, "{failed:?}");
    failed[0]
}

/// What has not left may be asked elsewhere, whatever it does.
#[test]
fn of_what_a_release_ends_it_is_told_whether_anything_has_left() {
    let mut stacks = Stacks::new(Options::default(), Options::default());
    stacks.run();
    let ask = ClientRequest { token: Token::new(b"mine"), ..ClientRequest::new(Code::POST, &PATH) };
    stacks.ask(&ask);
    stacks.ask(&ask);
    let up = stacks.drain_client();
    stacks.server.receive(stacks.now, &up);
    let down = stacks.drain_server();
    stacks.client.receive(stacks.now, &[signal(RELEASE), down].concat());
    assert_eq!(left(&mut stacks), 0, "the second waits for the token of the first");

    let mut stacks = Stacks::new(Options::default(), taking(1_152));
    stacks.run();
    stacks.ask(&ClientRequest::new(Code::PUT, &PATH).with_body(&body(8_000)));
    let up = stacks.drain_client();
    stacks.server.receive(stacks.now, &up);
    let down = stacks.drain_server();
    stacks.client.receive(stacks.now, &[signal(RELEASE), down].concat());
    assert_eq!(left(&mut stacks), 1, "its first block");
}

/// Settings may change at any time (RFC 8323 §5.3): what leaves keeps to the newest.
#[test]
fn an_upload_goes_on_in_messages_as_long_as_the_newest_settings_allow() {
    let mut stacks = Stacks::new(Options::default(), taking(4_000));
    stacks.run();
    let bytes = body(20_000);
    let ask = stacks.ask(&ClientRequest::new(Code::PUT, &PATH).with_body(&bytes));
    let mut answer = Vec::new();
    // Fewer blocks of 1024 in a message; then none, so that it begins anew; then smaller ones, and never larger ones again.
    for (size, payload) in [(4_000, 3_072), (2_500, 2_048), (600, 512), (300, 128), (4_000, 128)] {
        let settings = signal(Signal::Csm { max_message_size: Some(size), block_wise: true, longest_token: None });
        stacks.client.receive(stacks.now, &[settings, answer].concat());
        let up = stacks.drain_client();
        assert_eq!(stacks.up.last().map(|sent| (sent.code, sent.payload)), Some((Code::PUT, payload)), "{size}");
        stacks.server.receive(stacks.now, &up);
        answer = stacks.drain_server();
    }
    stacks.client.receive(stacks.now, &answer);
    stacks.run();
    let whole = Event::Answer { request: ask, code: Code::CHANGED, body: bytes, goes_on: false };
    assert!(stacks.told.contains(&whole));
}

/// Whose settings leave no room for anything gets codes alone, and what it asked is over all the same.
#[test]
fn who_takes_messages_of_no_length_keeps_nothing_open() {
    let mut server = stack(Options::default(), Config::STREAM);
    let settings =
        |size, block_wise| signal(Signal::Csm { max_message_size: Some(size), block_wise, longest_token: None });
    let request = |token: u8, options: &[(u16, &[u8])]| {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, Code::GET, Token::new(&[token]).unwrap(), options, &[], u32::MAX).unwrap();
        bytes
    };
    let now = Instant::ORIGIN;
    let mut codes = Vec::new();
    let mut turn = |server: &mut crate::owned::CoapStack, bytes: &[u8]| {
        server.receive(now, bytes);
        let mut observers = Vec::new();
        loop {
            match poll(server, now) {
                Output::Transmit(bytes) => codes.push(bytes[1]),
                Output::Event(Event::Request { id, wants_to_observe, .. }) => {
                    let answer = Answer::new(Code::CONTENT, &[]).with_body(b"state");
                    if wants_to_observe {
                        observers.extend(server.accept_observer(now, id, &answer).unwrap());
                    } else if server.answer(now, id, &answer).is_err() {
                        // As a server does that cannot say what it wants to.
                        let _ = server.reject(now, id);
                    }
                }
                Output::Event(_) => {}
                Output::Close(why) => panic!("{why:?}"),
                Output::Sleep(_) | Output::Idle => return observers,
            }
        }
    };
    turn(&mut server, &settings(1_152, true));
    let observers = turn(&mut server, &request(9, &[(6, b""), PATH[0]]));
    assert_eq!(server.observers(), 1);
    turn(&mut server, &settings(0, true));
    for _ in 0..1_000 {
        turn(&mut server, &request(1, &PATH));
    }
    assert!(server.is_quiet(), "nothing is owed");
    for observer in observers {
        server.notify(now, observer, &Answer::new(Code::CONTENT, &[]).with_body(b"other")).unwrap();
    }
    turn(&mut server, &[]);
    assert_eq!(server.observers(), 0, "nothing can be told to it any more");
    server.release(now, None, None).unwrap();
    assert!(server.memory() < 64 << 10, "{} bytes", server.memory());
    turn(&mut server, &[]);
    assert_eq!(codes.last(), Some(&0xe4));
    assert!(codes.contains(&Code::BAD_OPTION.to_byte()));
}
