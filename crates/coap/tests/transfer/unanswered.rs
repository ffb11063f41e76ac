//! Asks that do not want all responses, or none (No-Response, RFC 7967).

use millpond_coap::block::BlockSize;
use millpond_coap::message::{Code, Kind, NoResponse, number};
use millpond_coap::transfer::{ClientRequest, Refused, RequestFailure};
use millpond_control::Instant;

use crate::pair::{CLIENT, Pair, SECOND, SERVER, Told, body};

const NOTHING: &[(u16, &[u8])] = &[(number::URI_PATH, b"large"), (number::NO_RESPONSE, &[NoResponse::ALL.value()])];
const ERRORS: &[(u16, &[u8])] = &[(number::URI_PATH, b"large"), (number::NO_RESPONSE, &[NoResponse::SUCCESS.value()])];

fn put(options: &'static [(u16, &'static [u8])], kind: Kind) -> ClientRequest<'static> {
    ClientRequest { kind, ..ClientRequest::new(Code::PUT, options) }
}

/// A server that does what it is asked and leaves it unanswered.
struct Hushing(Pair);

impl Hushing {
    fn new() -> Self {
        let mut pair = Pair::serving(0, BlockSize::B1024);
        pair.application.answers = false;
        Self(pair)
    }

    fn suppress_response(&mut self) {
        let now = self.0.now();
        for id in std::mem::take(&mut self.0.application.handed) {
            self.0.stacks[1].suppress_response(now, id).unwrap();
            self.0.drain(SERVER);
        }
        self.0.run_for(SECOND / 5);
    }

    fn end_unanswered(&mut self, ask: millpond_coap::transfer::ClientRequestId) -> bool {
        let now = self.0.now();
        let was_so = self.0.stacks[0].end_unanswered(now, ask);
        self.0.drain(CLIENT);
        was_so
    }
}

#[test]
fn who_wants_none_is_told_that_it_was_acknowledged_or_left() {
    for (kind, is_acknowledged) in [(Kind::Confirmable, true), (Kind::NonConfirmable, false)] {
        let mut suppressing = Hushing::new();
        let ask = suppressing.0.ask(&put(NOTHING, kind).with_body(b"22.5"));
        suppressing.0.run_for(SECOND / 5);
        suppressing.suppress_response();
        assert_eq!(suppressing.0.take_told(CLIENT), [Told::Unanswered { request: ask, is_acknowledged }]);
        let asked = Told::Asked { code: Code::PUT, body: b"22.5".to_vec(), observe: false };
        assert_eq!(suppressing.0.take_told(SERVER), [asked]);
        assert_eq!((suppressing.0.stacks[0].requests(), suppressing.0.stacks[0].counters().failed), (0, 0));
    }
}

#[test]
fn an_answer_that_comes_in_the_acknowledgement_is_told_all_the_same() {
    let mut pair = Pair::serving(0, BlockSize::B1024);
    let ask = pair.ask(&put(NOTHING, Kind::Confirmable));
    pair.run();
    let answer = Told::Answer { request: ask, code: Code::CHANGED, body: Vec::new(), goes_on: false };
    assert_eq!(pair.take_told(CLIENT), [answer]);
}

#[test]
fn who_wants_some_is_unanswered_by_its_deadline_or_once_it_waits_no_more() {
    for (kind, is_acknowledged) in [(Kind::Confirmable, true), (Kind::NonConfirmable, false)] {
        let mut suppressing = Hushing::new();
        let deadline = Some(Instant::from_micros(5 * SECOND));
        let ask = suppressing.0.ask(&ClientRequest { deadline, ..put(ERRORS, kind) });
        suppressing.0.run_for(SECOND / 5);
        suppressing.suppress_response();
        suppressing.0.run_for(4 * SECOND);
        assert_eq!(suppressing.0.take_told(CLIENT), []);
        suppressing.0.run_for(SECOND);
        assert_eq!(suppressing.0.take_told(CLIENT), [Told::Unanswered { request: ask, is_acknowledged }]);

        // A server that has never answered is sent no more than 1 byte/s non-confirmably.
        let ask = suppressing.0.ask(&put(ERRORS, kind));
        suppressing.0.run_for(20 * SECOND);
        suppressing.suppress_response();
        assert!(suppressing.end_unanswered(ask) && !suppressing.end_unanswered(ask), "once");
        assert_eq!(suppressing.0.take_told(CLIENT), [Told::Unanswered { request: ask, is_acknowledged }]);

        // Without either it waits as long as a response may come.
        let ask = suppressing.0.ask(&put(ERRORS, kind));
        suppressing.0.run_for(20 * SECOND);
        suppressing.suppress_response();
        suppressing.0.settle();
        assert_eq!(suppressing.0.take_told(CLIENT), [Told::Unanswered { request: ask, is_acknowledged }]);
        assert_eq!(suppressing.0.stacks[0].endpoint().exchanges(), 0);
    }
}

#[test]
fn a_response_of_a_class_that_is_wanted_is_the_answer() {
    let mut pair = Pair::serving(0, BlockSize::B1024);
    pair.application.code = Code::NOT_FOUND;
    pair.application.echoes = true;
    let ask = pair.ask(&put(ERRORS, Kind::Confirmable));
    pair.run();
    let answer = Told::Answer { request: ask, code: Code::NOT_FOUND, body: Vec::new(), goes_on: false };
    assert_eq!(pair.take_told(CLIENT), [answer]);
}

#[test]
fn what_nobody_acknowledges_by_its_deadline_fails_and_is_not_let_go() {
    let mut pair = Pair::serving(0, BlockSize::B1024).losing(0..100);
    for options in [NOTHING, ERRORS] {
        let deadline = Some(Instant::from_micros(pair.now + SECOND));
        let ask = pair.ask(&ClientRequest { deadline, ..put(options, Kind::Confirmable) });
        let now = pair.now();
        assert!(!pair.stacks[0].end_unanswered(now, ask));
        pair.run_for(2 * SECOND);
        assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why: RequestFailure::Deadline }]);
    }
    // And what wants all responses is not cancelled, whatever became of it.
    let ask = pair.ask(&put(&[(number::URI_PATH, b"large")], Kind::NonConfirmable));
    let now = pair.now();
    assert!(!pair.stacks[0].end_unanswered(now, ask));
    assert!(pair.cancel(ask));
}

#[test]
fn what_needs_responses_to_go_on_cannot_do_without() {
    let mut pair = Pair::serving(0, BlockSize::B1024);
    let (now, long) = (pair.now(), body(1_025));
    let several = put(NOTHING, Kind::Confirmable).with_body(&long);
    for ask in [several, ClientRequest::new(Code::GET, ERRORS).observing()] {
        assert_eq!(pair.stacks[0].request(now, SERVER, &ask), Err(Refused::NeedsResponses));
    }
    // What is short goes without bursts.
    let ask = pair.ask(&put(NOTHING, Kind::NonConfirmable).in_bursts());
    assert_eq!(pair.take_told(CLIENT), [Told::Unanswered { request: ask, is_acknowledged: false }]);
}
