//! Peers that share a path: one controller, one NSTART, one queue with turns; unvalidated peers stay outside.

use std::collections::BTreeMap;

use millpond_coap::message::Code;
use millpond_coap::{Config, Endpoint, Event, ExchangeId, IdGenerator, Outgoing, Output, RequestId};
use millpond_control::{
    ChanceSeed, Controller, Cx, End, Exchange, Instant, PeerController, Reason, Sample, Span, View, Wait, Wishes,
};

use crate::pair::{HELLO, SECOND, get};

/// Counts what it is told, and shows it as its timeout: answers, and a thousand for each end without one, or a million for a mark.
#[derive(Clone, Debug)]
struct Counting {
    told: u32,
    nstart: u16,
}

impl Controller for Counting {
    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        exchange.begin(cx.now, Span::from_secs(2));
        Wait::then_retransmit(exchange.current(), Reason::Initial)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
        exchange.advance(exchange.current());
        Wait::then_retransmit(exchange.current(), Reason::BackedOff)
    }

    fn on_reply(&mut self, _exchange: &Exchange, sample: Sample, _cx: Cx) {
        self.told += if sample.is_marked() { 1_000_001 } else { 1 };
    }

    fn on_end(&mut self, _exchange: &Exchange, _why: End, _cx: Cx) {
        self.told += 1_000;
    }

    fn wishes(&self) -> Wishes {
        Wishes { nstart: self.nstart, ..Wishes::NONE }
    }

    fn view(&self) -> View {
        View { rto: Some(Span::from_micros(self.told)), ..View::default() }
    }

    fn longest_wait(&self, _copy: u8, _previous: Span) -> Span {
        Span::from_secs(2)
    }
}

/// An endpoint of which the peers below 10, below 20 and so on share paths.
fn sharing(nstart: u16, change: impl FnOnce(&mut Config)) -> Endpoint<u8> {
    let mut config = Config { ack_delay: Span::ZERO, ..Config::default() };
    change(&mut config);
    let controller = PeerController::own(Counting { told: 0, nstart });
    Endpoint::new(config, controller, ChanceSeed::new(1), 0, IdGenerator::counted())
        .unwrap()
        .sharing_paths(|peer| u64::from(*peer / 10))
}

fn at(now: u64) -> Instant {
    Instant::from_micros(now)
}

/// What leaves: to whom, and its bytes. Requests that came are answered with a confirmable message.
fn drain(endpoint: &mut Endpoint<u8>, now: u64) -> Vec<(u8, Vec<u8>)> {
    let (mut sent, mut asked): (_, Vec<RequestId>) = (Vec::new(), Vec::new());
    loop {
        match endpoint.poll(at(now)) {
            Output::Transmit(transmit) => sent.push((transmit.to, transmit.bytes.to_vec())),
            Output::Event(Event::Request { id, .. }) => asked.push(id),
            Output::Event(_) => {}
            Output::Sleep(..) | Output::Idle => match asked.pop() {
                Some(id) => endpoint.respond(at(now), id, &Outgoing::confirmable(Code::CONTENT, &[])).unwrap(),
                None => return sent,
            },
        }
    }
}

/// The answer to a request, inside its acknowledgement.
fn answer(request: &[u8]) -> Vec<u8> {
    let token = usize::from(request[0] & 15);
    [&[0x60 | request[0] & 15, 0x45], &request[2..4 + token]].concat()
}

fn ask(endpoint: &mut Endpoint<u8>, now: u64, to: u8) -> Vec<u8> {
    endpoint.request(at(now), to, &get()).unwrap();
    drain(endpoint, now).iter().map(|(to, _)| *to).collect()
}

fn told(endpoint: &Endpoint<u8>, peer: u8) -> Option<u32> {
    endpoint.view(peer).and_then(|view| view.rto).map(Span::as_micros)
}

#[test]
fn a_mark_is_told_with_the_answer_that_has_it_and_with_no_other() {
    let mut endpoint = sharing(0, |_| {});
    for (is_marked, expected) in [(false, 1), (true, 1_000_002), (false, 1_000_003)] {
        endpoint.request(at(0), 1, &get()).unwrap();
        let request = &drain(&mut endpoint, 0)[0].1;
        let receive = if is_marked { Endpoint::receive_marked } else { Endpoint::receive };
        receive(&mut endpoint, at(0), 1, &answer(request));
        assert_eq!(told(&endpoint, 1), Some(expected));
        // Nobody waits for it any more.
        endpoint.receive_marked(at(0), 1, &answer(request));
        assert_eq!(told(&endpoint, 1), Some(expected));
        drain(&mut endpoint, 0);
    }
}

#[test]
fn one_controller_hears_of_all_on_its_path_and_of_nobody_else() {
    let mut endpoint = sharing(0, |_| {});
    for to in [1, 2, 11, 2] {
        endpoint.request(at(0), to, &get()).unwrap();
        let sent = drain(&mut endpoint, 0);
        endpoint.receive(at(0), to, &answer(&sent[0].1));
        drain(&mut endpoint, 0);
    }
    assert_eq!([1, 2, 11].map(|peer| told(&endpoint, peer)), [Some(3), Some(3), Some(1)]);
    endpoint.forget_controller(at(0), 1);
    assert_eq!([1, 2, 11].map(|peer| told(&endpoint, peer)), [Some(0), Some(0), Some(1)]);
}

#[test]
fn without_a_word_every_peer_has_a_path_of_its_own() {
    let controller = PeerController::own(Counting { told: 0, nstart: 0 });
    let mut endpoint = Endpoint::new(Config::default(), controller, ChanceSeed::new(1), 0, IdGenerator::counted())
        .unwrap()
        .with_paths(|_| 0);
    assert_eq!((ask(&mut endpoint, 0, 1), ask(&mut endpoint, 0, 2)), (vec![1], vec![2]));
}

/// NSTART is 1: whatever its peer, one message is outstanding. Those that wait take turns, though one peer has asked for
/// all of its before the others did.
#[test]
fn peers_on_one_path_share_nstart_and_take_turns() {
    let mut endpoint = sharing(0, |_| {});
    let mut order = Vec::new();
    for to in [1, 1, 1, 1, 2, 2, 3] {
        endpoint.request(at(0), to, &get()).unwrap();
        order.extend(drain(&mut endpoint, 0));
        assert_eq!(order.len(), 1, "the others wait");
    }
    let mut answered = 0;
    while let Some((to, request)) = order.get(answered).cloned() {
        endpoint.receive(at(1), to, &answer(&request));
        order.extend(drain(&mut endpoint, 1));
        answered += 1;
    }
    assert_eq!(order.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [1, 1, 2, 3, 1, 2, 1]);
    assert_eq!(endpoint.exchanges(), 0);
}

/// A wish of the controller's takes the place of the setting.
#[test]
fn nstart_is_what_the_controller_wishes() {
    let mut endpoint = sharing(3, |_| {});
    let leaving = [1, 1, 2, 2].map(|to| ask(&mut endpoint, 0, to).len());
    assert_eq!(leaving, [1, 1, 1, 0]);
}

/// Without tokens a peer has one request at a time; that holds back nobody but itself.
#[test]
fn what_holds_one_peer_back_does_not_hold_back_the_others() {
    let mut endpoint = sharing(3, |config| config.token_length = 0);
    assert_eq!([1, 1, 2].map(|to| ask(&mut endpoint, 0, to)), [vec![1], vec![], vec![2]]);
}

/// Somebody in the network of a known peer asks, from an address that never acknowledges.
#[test]
fn who_forges_addresses_neither_slows_nor_blocks_a_known_peer() {
    let mut endpoint = sharing(0, |_| {});
    endpoint.request(at(0), 1, &get()).unwrap();
    let sent = drain(&mut endpoint, 0);
    endpoint.receive(at(0), 1, &answer(&sent[0].1));
    drain(&mut endpoint, 0);
    for forged in 2..10 {
        endpoint.receive(at(1), forged, &[0x40, 1, 0, forged]);
        assert_eq!(drain(&mut endpoint, 1).len(), 2, "an acknowledgement, and a response of its own");
    }
    assert_eq!(ask(&mut endpoint, 2, 1), [1], "at once");
    for second in 0..100 {
        drain(&mut endpoint, second * SECOND);
    }
    assert_eq!(
        [1, 2].map(|peer| told(&endpoint, peer)),
        [Some(1_001), Some(1_000)],
        "its own request alone was given up"
    );
}

/// Who acknowledges is there, and comes onto the path.
#[test]
fn who_answers_is_no_unvalidated_peer_any_more() {
    let mut endpoint = sharing(0, |_| {});
    assert_eq!(ask(&mut endpoint, 0, 1), [1]);
    endpoint.receive(at(1), 2, &[0x40, 1, 0, 9]);
    let response = drain(&mut endpoint, 1).pop().unwrap().1;
    endpoint.receive(at(2), 2, &[0x60, 0, response[2], response[3]]);
    drain(&mut endpoint, 2);
    assert_eq!(ask(&mut endpoint, 3, 2), [0; 0], "the request to the other one is outstanding");
    assert_eq!(told(&endpoint, 2), told(&endpoint, 1));
}

/// Everything that comes out now, the ends of exchanges counted; and until when there is nothing more, if ever.
fn watch(
    endpoint: &mut Endpoint<u8>,
    now: u64,
    ended: &mut BTreeMap<ExchangeId, u32>,
) -> (Vec<(u8, Vec<u8>)>, Option<u64>) {
    let mut sent = Vec::new();
    loop {
        match endpoint.poll(at(now)) {
            Output::Transmit(transmit) => sent.push((transmit.to, transmit.bytes.to_vec())),
            Output::Event(Event::Response { exchange, .. } | Event::Failed { exchange, .. }) => {
                *ended.entry(exchange).or_default() += 1;
            }
            Output::Event(_) => {}
            Output::Sleep(until, _) => return (sent, Some(until.as_micros())),
            Output::Idle => return (sent, None),
        }
    }
}

/// Random asks, answers, losses and cancellations on two paths: everything comes to an end, and nothing is left.
#[test]
fn everything_that_waits_comes_to_its_turn() {
    let mut word = 7_u64;
    let mut random = |below: u64| {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (word >> 33) % below
    };
    for round in 0..40_u16 {
        let mut endpoint = sharing(round % 3, |config| config.limits.peers = 6);
        let (mut now, mut asked, mut ended) = (0, Vec::new(), BTreeMap::new());
        let mut steps = 0..400;
        loop {
            if steps.next().is_some() {
                let to = [1, 2, 3, 11, 12, 13][random(6) as usize];
                let plain = Outgoing::non_confirmable(Code::GET, HELLO);
                let request = if random(3) == 0 { plain } else { get() };
                match random(3) {
                    0 if !asked.is_empty() => {
                        endpoint.cancel(at(now), asked[random(asked.len() as u64) as usize]);
                    }
                    _ => asked.extend(endpoint.request(at(now), to, &request).ok()),
                }
            }
            let (sent, mut until) = watch(&mut endpoint, now, &mut ended);
            for (to, bytes) in sent {
                if random(3) > 0 {
                    let mut reply = answer(&bytes);
                    // A non-confirmable one is answered by one.
                    reply[0] ^= bytes[0] & 0x10 | (bytes[0] & 0x10) << 1;
                    endpoint.receive(at(now), to, &reply);
                    until = watch(&mut endpoint, now, &mut ended).1;
                }
            }
            match until {
                _ if steps.start < 400 => now += random(SECOND),
                Some(until) => now = until,
                None => break,
            }
        }
        assert_eq!(endpoint.exchanges(), 0, "round {round}");
        assert!(asked.iter().all(|exchange| ended.get(exchange) == Some(&1)), "round {round}: each ends once");
    }
}

/// One after another, each to its end.
fn asked_and_answered(endpoint: &mut Endpoint<u8>, peers: &[u8]) {
    for &to in peers {
        endpoint.request(at(0), to, &get()).unwrap();
        let sent = drain(endpoint, 0);
        endpoint.receive(at(0), to, &answer(&sent[0].1));
        drain(endpoint, 0);
    }
}

/// What is learnt on a path is not lost because somebody comes onto it.
#[test]
fn the_controller_given_to_a_peer_that_comes_onto_a_path_does_not_take_the_place_of_the_one_there() {
    let given = || PeerController::own(Counting { told: 500, nstart: 0 });
    let mut endpoint = sharing(0, |_| {});
    endpoint.set_controller(at(0), 1, given()).unwrap();
    asked_and_answered(&mut endpoint, &[1]);
    endpoint.set_controller(at(0), 2, given()).unwrap();
    asked_and_answered(&mut endpoint, &[2]);
    assert_eq!([1, 2].map(|peer| told(&endpoint, peer)), [Some(502), Some(502)]);
    endpoint.set_controller(at(0), 2, given()).unwrap();
    assert_eq!([1, 2].map(|peer| told(&endpoint, peer)), [Some(500), Some(500)], "of one that is there it does");
}

/// An endpoint in which nobody shares a path by its address.
fn apart() -> Endpoint<u8> {
    let controller = PeerController::own(Counting { told: 0, nstart: 0 });
    Endpoint::new(Config::default(), controller, ChanceSeed::new(1), 0, IdGenerator::secret([7; 16])).unwrap()
}

#[test]
fn peers_to_whom_the_same_is_said_share_a_path_wherever_they_are() {
    for mut endpoint in [apart(), apart().sharing_paths(|peer| u64::from(*peer / 10))] {
        for (peer, identity) in [(1, "a"), (21, "a"), (2, "b"), (31, "b")] {
            endpoint.share_path(at(0), peer, &identity).unwrap();
        }
        asked_and_answered(&mut endpoint, &[1, 21, 2, 21, 3]);
        let seen = [1, 21, 2, 3].map(|peer| told(&endpoint, peer));
        assert_eq!(seen, [Some(3), Some(3), Some(1), Some(1)]);
        assert_eq!(told(&endpoint, 31), None, "by that alone no peer is known");
        // They wait for one another, and for nobody else.
        assert_eq!([1, 21, 2].map(|to| ask(&mut endpoint, 0, to)), [vec![1], vec![], vec![2]]);
    }
}

/// Who only asks may be anybody, whatever was said of the address.
#[test]
fn what_is_said_of_an_unvalidated_peer_counts_once_it_has_answered() {
    let mut endpoint = apart();
    endpoint.share_path(at(0), 1, &"a").unwrap();
    endpoint.share_path(at(0), 2, &"a").unwrap();
    assert_eq!(ask(&mut endpoint, 0, 1), [1]);
    endpoint.receive(at(1), 2, &[0x40, 1, 0, 9]);
    let response = drain(&mut endpoint, 1).pop().expect("it does not wait for the other one").1;
    endpoint.receive(at(2), 2, &[0x60, 0, response[2], response[3]]);
    drain(&mut endpoint, 2);
    assert_eq!(ask(&mut endpoint, 3, 2), [0; 0], "the request to the other one is outstanding");
}

#[test]
fn a_peer_that_is_forgotten_leaves_the_path_and_what_was_said_of_it_is_forgotten() {
    let mut endpoint = apart();
    for peer in [1, 2] {
        endpoint.share_path(at(0), peer, &"a").unwrap();
    }
    asked_and_answered(&mut endpoint, &[1]);
    assert_eq!((ask(&mut endpoint, 0, 1), ask(&mut endpoint, 0, 2)), (vec![1], vec![]));
    endpoint.forget_peer(at(0), 1);
    let next: Vec<_> = drain(&mut endpoint, 0).iter().map(|(to, _)| *to).collect();
    assert_eq!(next, [2], "its place is free at once");
    asked_and_answered(&mut endpoint, &[1]);
    assert_eq!(told(&endpoint, 1), Some(1), "on a path of its own");
    // The last one takes the path along.
    endpoint.forget_peer(at(0), 2);
    drain(&mut endpoint, 0);
    endpoint.share_path(at(0), 3, &"a").unwrap();
    asked_and_answered(&mut endpoint, &[3]);
    assert_eq!(told(&endpoint, 3), Some(1));
}

#[test]
fn whoever_is_on_a_path_stays_there_and_what_is_said_is_bounded() {
    let mut endpoint = sharing(0, |config| config.limits.peers = 3);
    asked_and_answered(&mut endpoint, &[11]);
    endpoint.share_path(at(0), 11, &"a").unwrap();
    endpoint.share_path(at(0), 1, &"a").unwrap();
    asked_and_answered(&mut endpoint, &[1, 11]);
    assert_eq!([1, 11].map(|peer| told(&endpoint, peer)), [Some(1), Some(2)]);
    endpoint.share_path(at(0), 2, &"a").unwrap();
    let before = endpoint.memory();
    for peer in 100..200 {
        let refused = endpoint.share_path(at(0), peer, &"a").unwrap_err().to_string();
        assert!(refused.contains("limits.peers"), "{refused}");
    }
    assert_eq!(endpoint.memory(), before);
    endpoint.share_path(at(0), 2, &"b").expect("in place of what was said before");
    endpoint.forget_peer(at(0), 1);
    endpoint.share_path(at(0), 100, &"a").expect("there is room again");
}
