//! Non-confirmable messages that leave as confirmable ones because the peer's controller wishes it
//! (draft-ietf-core-cocoa-03 §5).

use std::sync::{Arc, Mutex};

use millpond_coap::message::{Code, Kind, Message, Token};
use millpond_coap::{Cause, Config, Endpoint, Event, IdGenerator, Outgoing, Output, RequestId};
use millpond_control::{
    Admit, ChanceSeed, Class, Controller, Cx, Exchange, Instant, Naming, PeerController, Reason, Sample, Span, View,
    Wait, Wishes,
};

use crate::pair::{HELLO, SECOND};

/// A controller that writes down what it is told: `?` and class when asked, `n` for a non-confirmable message, `c` for
/// the first copy of a confirmable one, `a` for an answer.
#[derive(Clone, Debug)]
struct Listening {
    wishes: Wishes,
    told: Arc<Mutex<String>>,
}

impl Listening {
    fn new(confirmable_every: u8, naming: Naming) -> Self {
        Self { wishes: Wishes { naming, confirmable_every, ..Wishes::NONE }, told: Arc::default() }
    }

    fn note(&self, what: &str) {
        self.told.lock().unwrap().push_str(what);
    }

    /// What it was told, without what it was asked.
    fn told(&self) -> String {
        let told = self.told.lock().unwrap();
        told.replace("?c", "").replace("?n", "")
    }
}

impl Controller for Listening {
    fn admit(&self, class: Class, len: u16, _cx: Cx) -> Admit {
        // Debug builds also ask about messages of no length, to watch the contract.
        if len > 0 {
            self.note(if class == Class::Confirmable { "?c" } else { "?n" });
        }
        Admit::Now
    }

    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        self.note("c");
        exchange.begin(cx.now, Span::from_secs(2));
        Wait::then_retransmit(Span::from_secs(2), Reason::Initial)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
        exchange.advance(Span::from_secs(4));
        Wait::then_retransmit(Span::from_secs(4), Reason::BackedOff)
    }

    fn on_reply(&mut self, _exchange: &Exchange, _sample: Sample, _cx: Cx) {
        self.note("a");
    }

    fn on_plain_send(&mut self, _len: u16, _cx: Cx) {
        self.note("n");
    }

    fn wishes(&self) -> Wishes {
        self.wishes
    }

    fn view(&self) -> View {
        View::default()
    }

    fn longest_wait(&self, _copy: u8, _previous: Span) -> Span {
        Span::from_secs(4)
    }
}

fn endpoint(controller: &Listening, change: impl FnOnce(&mut Config)) -> Endpoint<u8> {
    let mut config = Config::default();
    config.transmission.nstart = 100;
    config.limits.exchanges_per_peer = 100;
    change(&mut config);
    let controller = PeerController::own(controller.clone());
    Endpoint::new(config, controller, ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap()
}

/// Datagrams with their kinds.
type Sent = Vec<(Kind, Vec<u8>)>;

/// Drains; what was sent, the events, and the requests handed over.
fn drain(endpoint: &mut Endpoint<u8>, now: u64) -> (Sent, Vec<String>, Vec<RequestId>) {
    let (mut sent, mut events, mut asked) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        match endpoint.poll(Instant::from_micros(now)) {
            Output::Transmit(transmit) => {
                let kind = Message::parse(transmit.bytes).unwrap().kind;
                assert_eq!(kind == Kind::Confirmable, matches!(transmit.cause, Cause::Exchange { .. }));
                sent.push((kind, transmit.bytes.to_vec()));
            }
            Output::Event(Event::Request { id, .. }) => asked.push(id),
            Output::Event(event) => events.push(match event {
                Event::Delivered { sample, .. } => format!("delivered {}", sample.since_first()),
                Event::Undelivered { why, .. } => format!("undelivered {why:?}"),
                Event::Failed { why, .. } => format!("failed {why:?}"),
                Event::Response { sample, .. } => format!("response {}", sample.is_some()),
                other => format!("{other:?}"),
            }),
            Output::Sleep(..) | Output::Idle => return (sent, events, asked),
        }
    }
}

const PLAIN: Outgoing<'static> = Outgoing::non_confirmable(Code::POST, HELLO);

/// Sends one request and says whether it left as a confirmable one.
fn sends(endpoint: &mut Endpoint<u8>, request: &Outgoing<'_>) -> bool {
    endpoint.request(Instant::ORIGIN, 1, request).unwrap();
    let (sent, _, _) = drain(endpoint, 0);
    assert_eq!(sent.len(), 1);
    sent[0].0 == Kind::Confirmable
}

/// Every eighth: at least two of any sixteen.
#[test]
fn of_consecutive_requests_every_nth_is_confirmable() {
    for every in [1, 2, 8, 255] {
        let controller = Listening::new(every, Naming::None);
        let mut client = endpoint(&controller, |config| config.limits.exchanges_per_peer = 1_000);
        client.receive(Instant::ORIGIN, 1, b"\x70\x00\xff\xff");
        drain(&mut client, 0);
        let mut kinds = Vec::new();
        for count in 0..600_u32 {
            client.request(Instant::ORIGIN, 1, &PLAIN).unwrap();
            let (sent, _, _) = drain(&mut client, 0);
            kinds.push(sent[0].0 == Kind::Confirmable);
            // Answered in the sense of the message layer, so that they do not pile up.
            let [high, low] = (count as u16).to_be_bytes();
            client.receive(Instant::ORIGIN, 1, &[0x70, 0, high, low]);
            drain(&mut client, 0);
        }
        for (index, is_confirmable) in kinds.iter().enumerate() {
            assert_eq!(*is_confirmable, (index + 1) % usize::from(every) == 0, "number {index} of every {every}");
        }
        let told = controller.told();
        assert_eq!(told.matches('c').count(), kinds.iter().filter(|confirmable| **confirmable).count());
        assert_eq!(told.len(), 600, "each is told once, as what it is");
        if every == 8 {
            assert!(kinds.windows(16).all(|window| window.iter().filter(|confirmable| **confirmable).count() >= 2));
        }
    }
}

#[test]
fn a_controller_without_the_wish_leaves_all_as_they_are() {
    let mut client = endpoint(&Listening::new(0, Naming::Token), |_| {});
    assert!((0..50).all(|_| !sends(&mut client, &PLAIN)));
}

#[test]
fn an_application_can_forbid_it() {
    let controller = Listening::new(8, Naming::None);
    let mut client = endpoint(&controller, |config| config.may_confirm = false);
    assert!((0..50).all(|_| !sends(&mut client, &PLAIN)));
    assert_eq!(controller.told(), "n".repeat(50));
}

/// A body in bursts has reports of its own.
#[test]
fn blocks_of_a_body_in_bursts_leave_as_they_are_unless_the_controller_admits_them() {
    for (admits_pieces, told) in [(false, "n".repeat(9)), (true, "?nn?nn?cc".repeat(3))] {
        let controller = Listening::new(3, Naming::None);
        let mut client = endpoint(&controller, |config| config.admits_pieces = admits_pieces);
        for number in 0..9 {
            client.send_of_body(Instant::ORIGIN, 1, Token::new(&[number]).unwrap(), &PLAIN).unwrap();
            drain(&mut client, 0);
        }
        assert_eq!(*controller.told.lock().unwrap(), told);
    }
}

/// The controller is asked about the message as which it will leave.
#[test]
fn the_controller_is_asked_and_told_of_what_really_leaves() {
    let controller = Listening::new(3, Naming::None);
    let mut client = endpoint(&controller, |_| {});
    for _ in 0..4 {
        sends(&mut client, &PLAIN);
    }
    assert_eq!(*controller.told.lock().unwrap(), "?nn?nn?cc?nn");
}

#[test]
fn a_confirmable_message_of_the_applications_counts() {
    let mut client = endpoint(&Listening::new(4, Naming::None), |_| {});
    let confirmable = Outgoing { kind: Kind::Confirmable, ..PLAIN };
    let kinds: Vec<bool> = [&PLAIN, &PLAIN, &confirmable, &PLAIN, &PLAIN, &PLAIN, &PLAIN, &PLAIN]
        .iter()
        .map(|request| sends(&mut client, request))
        .collect();
    assert_eq!(kinds, [false, false, true, false, false, false, true, false]);
}

#[test]
fn each_peer_is_counted_by_itself() {
    let mut client = endpoint(&Listening::new(2, Naming::None), |_| {});
    let mut kinds = Vec::new();
    for to in [1, 2, 1, 2, 2] {
        client.request(Instant::ORIGIN, to, &PLAIN).unwrap();
        kinds.push(drain(&mut client, 0).0[0].0 == Kind::Confirmable);
    }
    assert_eq!(kinds, [false, false, true, true, false]);
}

/// It is sent again, answered and told of like any other.
#[test]
fn what_became_confirmable_is_an_exchange() {
    let controller = Listening::new(1, Naming::None);
    let mut client = endpoint(&controller, |_| {});
    assert!(sends(&mut client, &PLAIN));
    let (sent, _, _) = drain(&mut client, 2 * SECOND);
    assert_eq!(sent[0].1[..2], [0x44, 2], "a second copy");
    client.receive(Instant::from_micros(2 * SECOND), 1, b"\x64\x45\0\0\0\0\0\0");
    assert_eq!(drain(&mut client, 2 * SECOND).1, ["response true"]);
    assert_eq!(controller.told(), "ca");
    assert_eq!((client.counters().retransmissions, client.counters().sent.confirmable), (1, 2));
}

/// What must leave as a confirmable message waits like one, and nothing of its sort overtakes it. One that is cancelled
/// while it waits was none.
#[test]
fn what_counts_is_what_left() {
    let controller = Listening::new(2, Naming::None);
    let mut client = endpoint(&controller, |config| config.transmission.nstart = 1);
    let mut ask = || {
        let exchange = client.request(Instant::ORIGIN, 1, &PLAIN).unwrap();
        drain(&mut client, 0);
        exchange
    };
    let (_, waiting, next) = (ask(), ask(), ask());
    assert_eq!(client.counters().sent.total(), 1);
    assert!(client.cancel(Instant::ORIGIN, waiting));
    drain(&mut client, 0);
    // The first is over; the next is the second that leaves.
    client.receive(Instant::ORIGIN, 1, b"\x54\x45\0\0\0\0\0\0");
    let (sent, events, _) = drain(&mut client, 0);
    assert_eq!((sent[0].0, events), (Kind::Confirmable, vec!["response false".to_owned()]));
    assert!(client.cancel(Instant::ORIGIN, next));
    drain(&mut client, 0);
    assert_eq!(controller.told(), "nc");
}

/// Sends a non-confirmable notification.
fn notifies(server: &mut Endpoint<u8>) -> (Sent, Vec<String>) {
    let notification = Outgoing::non_confirmable(Code::CONTENT, &[]);
    server.send_additional(Instant::ORIGIN, 1, Token::EMPTY, &notification).unwrap();
    let (sent, events, _) = drain(server, 0);
    (sent, events)
}

/// Notifications are counted apart from requests, so that either sort keeps to the rule by itself. The end of one that
/// became confirmable is told like that of any other.
#[test]
fn notifications_become_confirmable_as_well() {
    let controller = Listening::new(3, Naming::Count);
    let mut server = endpoint(&controller, |config| {
        config.transmission.nstart = 1;
        config.transmission.probing_rate = u32::MAX;
    });
    let mut kinds = Vec::new();
    for _ in 0..3 {
        let (sent, _) = notifies(&mut server);
        kinds.push(sent[0].0);
    }
    use Kind::{Confirmable, NonConfirmable};
    assert_eq!(kinds, [NonConfirmable, NonConfirmable, Confirmable]);
    assert_eq!((server.counters().begun, server.exchanges()), (1, 1));

    // NSTART is 1: what is next but non-confirmable leaves, the third of the next three waits.
    assert_eq!(notifies(&mut server).0[0].0, NonConfirmable);
    assert_eq!(notifies(&mut server).0[0].0, NonConfirmable);
    assert_eq!(notifies(&mut server).0, []);
    assert_eq!(notifies(&mut server).0, [], "it would be the third");
    assert_eq!((server.counters().begun, server.exchanges()), (1, 1), "they count when they leave");
    server.receive(Instant::from_micros(SECOND), 1, b"\x60\x00\x00\x02");
    let (sent, events, _) = drain(&mut server, SECOND);
    assert_eq!(events, ["delivered 1 s"]);
    assert_eq!(sent.iter().map(|sent| sent.0).collect::<Vec<_>>(), [Confirmable, NonConfirmable]);
    assert_eq!((server.counters().begun, server.exchanges()), (2, 1));
    // No server echoes in an empty acknowledgement, so that notifications are not marked.
    assert_eq!(sent[0].1, b"\x40\x45\x00\x05");
    // A request of ours is the first of its own sort.
    assert!(!sends_alone(&mut server));
    let mut now = SECOND;
    while server.exchanges() > 1 {
        now += SECOND;
        let (_, events, _) = drain(&mut server, now);
        if server.exchanges() == 1 {
            assert_eq!(events, ["undelivered GaveUp"]);
        }
    }
    assert_eq!(controller.told(), "nncnnacnn");
}

fn sends_alone(endpoint: &mut Endpoint<u8>) -> bool {
    endpoint.request(Instant::from_micros(SECOND), 2, &PLAIN).unwrap();
    let (sent, _, _) = drain(endpoint, SECOND);
    sent[0].0 == Kind::Confirmable
}

/// Copies of what becomes confirmable are distinguished, and what does not is not marked.
#[test]
fn what_becomes_confirmable_is_marked() {
    for (naming, marks) in [(Naming::Count, 4), (Naming::Flag, 3), (Naming::Timestamp, 7)] {
        let mut client = endpoint(&Listening::new(2, naming), |_| {});
        let mut lengths = Vec::new();
        for _ in 0..2 {
            client.request(Instant::ORIGIN, 1, &PLAIN).unwrap();
            lengths.push(drain(&mut client, 0).0[0].1.len());
        }
        assert_eq!(lengths, [14, 14 + marks]);
    }
    let mut client = endpoint(&Listening::new(2, Naming::Token), |_| {});
    assert!(!sends(&mut client, &PLAIN) && sends(&mut client, &PLAIN));
    let (sent, _, _) = drain(&mut client, 2 * SECOND);
    assert_eq!(Message::parse(&sent[0].1).unwrap().token, Token::new(&[0, 0, 0, 1, 1]).unwrap());
}
