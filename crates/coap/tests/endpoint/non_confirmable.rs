//! Non-confirmable requests and responses (RFC 7252 §4.3, §5.2.3).

use std::sync::{Arc, Mutex};

use millpond_coap::message::{Code, Kind, Token, number};
use millpond_coap::{Config, Endpoint, Event, IdGenerator, Outgoing, Output, Refused, RequestId};
use millpond_control::{
    Admit, AnyController, ChanceSeed, Class, Controller, Cx, Exchange, Fate, Feedback, Instant, PeerController,
    PlainMessage, Preset, Sample, Span, View, Wait, Wishes,
};

use crate::pair::{HELLO, Pair, SECOND, Side, get, steady};

const ASK: Outgoing<'static> = Outgoing::non_confirmable(Code::GET, HELLO);

#[test]
fn a_request_and_its_response_without_acknowledgement() {
    let mut pair = Pair::usual();
    pair.answer = Kind::NonConfirmable;
    pair.ask(&ASK).unwrap();
    pair.run();
    pair.happened(&[
        "0 C sends NON GET 0",
        "0.05 S has NON GET 0",
        "0.05 S sends NON Content 0",
        "0.1 C gets NON Content 0: no sample",
    ]);
}

#[test]
fn the_response_may_be_confirmable() {
    let mut pair = Pair::usual();
    pair.ask(&ASK).unwrap();
    pair.run();
    pair.happened(&[
        "0 C sends NON GET 0",
        "0.05 S has NON GET 0",
        "0.05 S sends CON Content 0",
        "0.1 C sends ACK 0",
        "0.1 C gets CON Content 0: no sample",
        "0.15 S has delivered: EmptyAck after 0.1 s",
    ]);
}

/// NON_LIFETIME: 37.5 s of retransmissions, were there any, and 100 s of latency.
#[test]
fn a_lost_request_is_not_sent_again_and_fails_after_its_lifetime() {
    let mut pair = Pair::usual().losing([0]);
    pair.ask(&ASK).unwrap();
    pair.run();
    pair.happened(&["0 C sends NON GET 0 (lost)", "137.5 C fails: NoResponse"]);
}

/// A long one to a silent peer ends as soon as any other; what comes after it waits for longer: 1 byte a second is
/// PROBING_RATE.
#[test]
fn probing_rate_makes_what_follows_a_long_message_wait() {
    let mut pair = Pair::usual().losing([0, 1]);
    let payload = [0; 1_000];
    pair.ask(&ASK.with_payload(&payload)).unwrap();
    pair.ask(&ASK).unwrap();
    // 4 bytes of header, 4 of token, 6 of option, the marker.
    pair.run();
    pair.happened(&[
        "0 C sends NON GET 0 (lost)",
        "137.5 C fails: NoResponse",
        "1015 C sends NON GET 1 (lost)",
        "1152.5 C fails: NoResponse",
    ]);
}

/// And with NSTART of them under way it takes so many times as long; a rate of zero counts as one.
#[test]
fn probing_rate_is_shared_by_all_that_is_under_way() {
    for (rate, seconds) in [(0, 2_030), (1, 2_030), (4, 507)] {
        let mut pair = Pair::new(|_, config| {
            config.transmission.nstart = 2;
            config.transmission.probing_rate = rate;
        })
        .losing([0]);
        pair.answer = Kind::NonConfirmable;
        pair.ask(&ASK.with_payload(&[0; 1_000])).unwrap();
        pair.run();
        pair.ask(&ASK).unwrap();
        pair.run();
        assert_eq!(pair.now / SECOND, seconds);
        // It has answered: one more that is lost keeps the next no longer.
        pair.lose = [3].into();
        let lost = pair.ask(&ASK).unwrap();
        let now = pair.now();
        assert!(pair.client.cancel(now, lost));
        pair.drain(Side::Client);
        pair.take_log();
        pair.ask(&ASK).unwrap();
        assert!(pair.take_log()[0].contains("C sends NON"));
    }
}

/// A peer that has a deadline of its own cannot send faster by it.
#[test]
fn probing_rate_holds_for_requests_that_are_cancelled() {
    let mut pair = Pair::usual().losing(0..9);
    for _ in 0..2 {
        let asked = pair.ask(&ASK).unwrap();
        pair.run_until(pair.now + SECOND);
        let now = pair.now();
        assert!(pair.client.cancel(now, asked));
        pair.drain(Side::Client);
    }
    pair.ask(&ASK).unwrap();
    pair.run_until(20 * SECOND);
    let sent: Vec<_> = pair.take_log().into_iter().filter(|line| line.contains("sends")).collect();
    assert_eq!(sent, ["0 C sends NON GET 0 (lost)", "14 C sends NON GET 1 (lost)"], "of 14 bytes");
}

/// However long the controller's own timer may become: it sends nothing again.
#[test]
fn a_request_without_an_answer_ends_after_the_lifetime_of_the_rfc_with_every_preset() {
    for preset in Preset::all() {
        let mut client: Endpoint<u8> =
            Endpoint::new(Config::default(), preset.build(), ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap();
        client.request(Instant::ORIGIN, 1, &ASK.with_payload(&[0; 1_000])).unwrap();
        drain(&mut client, 0);
        client.poll(Instant::from_micros(145 * SECOND));
        assert_eq!(client.exchanges(), 0, "{}", preset.name());
    }
}

#[test]
fn a_request_under_way_holds_the_next_one_back() {
    let mut pair = Pair::usual().losing([0]);
    pair.answer = Kind::NonConfirmable;
    pair.ask(&ASK).unwrap();
    pair.get();
    pair.run();
    pair.happened(&[
        "0 C sends NON GET 0 (lost)",
        "137.5 C fails: NoResponse",
        "137.5 C sends CON GET 1",
        "137.55 S has CON GET 1",
        "137.55 S sends ACK Content 1",
        "137.6 C gets ACK Content 1: Piggybacked after 0.1 s",
    ]);
}

#[test]
fn a_copy_of_a_request_is_dropped_and_a_copy_of_a_response_is_not_delivered() {
    let mut pair = Pair::usual();
    pair.answer = Kind::NonConfirmable;
    pair.ask(&ASK).unwrap();
    pair.run();
    pair.take_log();
    pair.inject(Side::Server, b"\x54\x01\x00\x00\0\0\0\0\xb5hello");
    pair.inject(Side::Client, b"\x54\x45\x00\x00\0\0\0\0\xffworld");
    pair.happened(&[]);
    assert_eq!((pair.server.counters().duplicates, pair.client.counters().duplicates), (1, 1));

    // The server's memory of it ends with NON_LIFETIME.
    pair.run_until(137 * SECOND + 550_000);
    pair.inject(Side::Server, b"\x54\x01\x00\x00\0\0\0\0\xb5hello");
    pair.happened(&["137.55 S has NON GET 0"]);
}

#[test]
fn a_response_that_nobody_waits_for_is_late_and_not_rejected() {
    let mut pair = Pair::usual();
    pair.inject(Side::Client, b"\x54\x45\x00\x07\x01\x02\x03\x04");
    pair.happened(&["0 C is told late NON Content 7"]);
    assert_eq!(pair.client.counters().sent.total(), 0);
}

/// Notes what it is told.
#[derive(Clone, Debug)]
struct Noting {
    inner: AnyController,
    told: Arc<Mutex<Vec<Feedback>>>,
    bytes: Arc<Mutex<Vec<(u16, u16)>>>,
}

impl Controller for Noting {
    fn on_start(&mut self, exchange: &mut Exchange, len: u16, cx: Cx) -> Wait {
        self.inner.on_start(exchange, len, cx)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
        self.inner.on_timeout(exchange, cx)
    }

    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        self.bytes.lock().unwrap().push((sample.message_len(), sample.reply_len()));
        self.inner.on_reply(exchange, sample, cx);
    }

    fn on_feedback(&mut self, feedback: Feedback, cx: Cx) {
        assert!(cx.open >= 1, "the request itself");
        self.told.lock().unwrap().push(feedback);
    }

    fn view(&self) -> View {
        self.inner.view()
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        self.inner.longest_wait(copy, previous)
    }
}

/// A client whose controller notes what it is told, and that has asked peer 1 at the start.
fn asking(request: &Outgoing<'_>) -> (Endpoint<u8>, Noting) {
    let noting = Noting { inner: steady(), told: Arc::default(), bytes: Arc::default() };
    let controller = PeerController::own(noting.clone());
    let mut client =
        Endpoint::new(Config::default(), controller, ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap();
    client.request(Instant::ORIGIN, 1, request).unwrap();
    drain(&mut client, 0);
    (client, noting)
}

fn drain(client: &mut Endpoint<u8>, now: u64) {
    while !matches!(client.poll(Instant::from_micros(now)), Output::Sleep(..) | Output::Idle) {}
}

/// Header, token of 4 bytes and the option of `hello`: 14 bytes. The answer has a payload of 5 and its marker instead.
#[test]
fn its_controller_learns_what_became_of_a_request() {
    let fate = |fate, since, reply_len| Feedback {
        message: PlainMessage::Request,
        fate,
        since: Span::from_millis(since),
        len: 14,
        reply_len,
        number: 0,
    };
    let answered: [(&[u8], u16); 3] = [
        (b"\x54\x45\x00\x07\0\0\0\0\xffworld", 14),
        // A critical option that nobody knows says as much about the path.
        (b"\x54\x45\x00\x07\0\0\0\0\x90\xffworld", 15),
        (b"\x70\x00\x00\x00", 4),
    ];
    for (reply, reply_len) in answered {
        let (mut client, noting) = asking(&ASK);
        client.receive(Instant::from_micros(700_000), 1, reply);
        drain(&mut client, 700_000);
        drain(&mut client, 1_000 * SECOND);
        assert_eq!(*noting.told.lock().unwrap(), [fate(Fate::Answered, 700, reply_len)]);
    }
    let (mut client, noting) = asking(&ASK);
    drain(&mut client, 1_000 * SECOND);
    let [lost] = noting.told.lock().unwrap()[..] else { panic!("one feedback") };
    assert_eq!(lost, Feedback { since: lost.since, ..fate(Fate::Lost, 0, 0) });
}

#[test]
fn nothing_is_told_of_a_request_that_nobody_wants_answered_any_more_or_that_is_acknowledged() {
    let (mut client, noting) = asking(&ASK);
    let other = client.request(Instant::ORIGIN, 2, &ASK).unwrap();
    drain(&mut client, 0);
    assert!(client.cancel(Instant::from_micros(1), other));
    drain(&mut client, 1);
    assert!(noting.told.lock().unwrap().is_empty());

    let (mut client, noting) = asking(&get());
    client.receive(Instant::from_micros(1), 1, b"\x64\x45\0\0\0\0\0\0\xffworld");
    drain(&mut client, 1);
    assert!(noting.told.lock().unwrap().is_empty());
    assert_eq!(*noting.bytes.lock().unwrap(), [(14, 14)], "of the request and of its response");
    client.request(Instant::from_micros(2), 1, &get()).unwrap();
    drain(&mut client, 2);
    client.receive(Instant::from_micros(3), 1, b"\x60\0\0\x01");
    drain(&mut client, 3);
    assert_eq!(noting.bytes.lock().unwrap()[1], (14, 4), "an empty acknowledgement");
}

/// A sender of bodies in bursts above reports what it learns.
#[test]
fn what_the_layer_above_learns_is_told_to_the_controller_of_that_peer() {
    let (mut client, noting) = asking(&get());
    let feedback = Feedback {
        message: PlainMessage::Block,
        fate: Fate::Lost,
        since: Span::from_secs(2),
        len: 300,
        reply_len: 0,
        number: 0,
    };
    client.feedback(Instant::from_micros(1), 1, feedback);
    client.feedback(Instant::from_micros(1), 9, feedback);
    assert_eq!(*noting.told.lock().unwrap(), [feedback], "and nobody else's");
}

/// Confirmable ones have no number, and each peer's begin at zero.
#[test]
fn non_confirmable_requests_are_numbered_on_their_path() {
    let noting = Noting { inner: steady(), told: Arc::default(), bytes: Arc::default() };
    let mut config = Config::default();
    config.transmission.nstart = 8;
    let controller = PeerController::own(noting.clone());
    let mut client = Endpoint::new(config, controller, ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap();
    for (now, to, request) in [(0, 2, ASK), (1, 1, ASK), (2, 1, get()), (3, 1, ASK), (4, 1, ASK)] {
        client.request(Instant::from_micros(now), to, &request).unwrap();
        drain(&mut client, now);
    }
    // Its second request is lost; those to peer 1 have the message IDs and tokens 0, 2 and 3.
    for (now, token) in [(10, 0), (11, 3)] {
        client.receive(Instant::from_micros(now), 1, &[0x54, 0x45, 0, token + 7, 0, 0, 0, token]);
        drain(&mut client, now);
    }
    let numbers: Vec<_> = noting.told.lock().unwrap().iter().map(|feedback| feedback.number).collect();
    assert_eq!(numbers, [0, 2]);
}

/// RFC 7252 §4.7: PROBING_RATE holds unless congestion control has something better.
#[test]
fn a_controller_that_governs_requests_goes_on_after_the_lifetime_of_the_message() {
    for (governs_requests, seconds) in [(false, 1_015), (true, 137)] {
        let wishes = Wishes { governs_requests, ..Wishes::NONE };
        let mut pair = Pair::usual().wishing(wishes).losing([0]);
        pair.answer = Kind::NonConfirmable;
        pair.ask(&ASK.with_payload(&[0; 1_000])).unwrap();
        pair.ask(&ASK).unwrap();
        pair.run();
        assert_eq!(pair.now / SECOND, seconds);
    }
}

/// Lets nothing leave that nobody acknowledges, and governs requests alone if it is told to.
#[derive(Clone, Debug)]
struct Closed(AnyController, bool);

impl Controller for Closed {
    fn admit(&self, class: Class, _len: u16, cx: Cx) -> Admit {
        if class == Class::Plain { Admit::At(cx.now.after(Span::from_secs(60))) } else { Admit::Now }
    }

    fn on_start(&mut self, exchange: &mut Exchange, len: u16, cx: Cx) -> Wait {
        self.0.on_start(exchange, len, cx)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
        self.0.on_timeout(exchange, cx)
    }

    fn on_reply(&mut self, _exchange: &Exchange, _sample: Sample, _cx: Cx) {}

    fn wishes(&self) -> Wishes {
        Wishes { governs_requests: self.1, ..Wishes::NONE }
    }

    fn view(&self) -> View {
        self.0.view()
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        self.0.longest_wait(copy, previous)
    }
}

/// Ten at once, as libcoap sends them.
#[test]
fn each_non_confirmable_request_is_answered_at_once() {
    for governs_requests in [false, true] {
        let controller = PeerController::own(Closed(steady(), governs_requests));
        let mut server =
            Endpoint::new(Config::default(), controller, ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap();
        for number in 0..10_u8 {
            server.receive(Instant::ORIGIN, 1, &[0x51, 0x01, 0, number, number, 0xb5, b'h', b'e', b'l', b'l', b'o']);
            answer_all(&mut server, Instant::ORIGIN);
            let Output::Transmit(answer) = server.poll(Instant::ORIGIN) else { panic!("no answer to {number}") };
            assert_eq!((answer.bytes[0], answer.bytes[4]), (0x51, number), "non-confirmable, to its token");
        }
    }
}

/// Every preset: some pace what nobody acknowledges, and make some of it confirmable.
#[test]
fn one_request_a_second_is_answered_each_second_by_every_preset() {
    for preset in Preset::all() {
        let mut server: Endpoint<u8> =
            Endpoint::new(Config::default(), preset.build(), ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap();
        for number in 0..40_u8 {
            let now = Instant::from_micros(u64::from(number) * SECOND);
            server.receive(now, 1, &[0x51, 0x02, 0, number, number, 0xb5, b'h', b'e', b'l', b'l', b'o']);
            answer_all(&mut server, now);
            let Output::Transmit(answer) = server.poll(now) else { panic!("{}: no answer to {number}", preset.name()) };
            assert_eq!(answer.bytes[0], 0x51, "{}: non-confirmable (RFC 7252 §5.2.3)", preset.name());
        }
    }
}

/// What cannot leave at once is dropped: the client sends it again, or wants it no more.
#[test]
fn an_answer_without_a_message_id_does_not_wait_for_one() {
    let mut server: Endpoint<u8> =
        Endpoint::new(Config::default(), steady(), ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap();
    let ask = |server: &mut Endpoint<u8>, id: u16| {
        let [high, low] = id.to_be_bytes();
        server.receive(Instant::ORIGIN, 1, &[0x50, 0x01, high, low]);
    };
    for id in 0..=u16::MAX {
        ask(&mut server, id);
        answer_all(&mut server, Instant::ORIGIN);
        assert!(matches!(server.poll(Instant::ORIGIN), Output::Transmit(_)), "{id}");
    }
    // With the message IDs of another socket on the way: the peer's are known for NON_LIFETIME, ours for EXCHANGE_LIFETIME.
    let later = Instant::from_micros(200 * SECOND);
    server.receive(later, 1, &[0x50, 0x01, 0, 0]);
    let request = handed(&mut server, later);
    let refused = server.respond(later, request, &Outgoing::non_confirmable(Code::CONTENT, &[]));
    assert!(matches!(refused, Err(Refused::NoMessageId { .. })), "{refused:?}");
    assert_eq!(server.requests(), 0, "and its request keeps no place");
}

/// The pace of what nobody asked for is not that of answers.
#[test]
fn notifications_stay_paced_among_answers() {
    let mut server: Endpoint<u8> =
        Endpoint::new(Config::default(), Preset::CALM.build(), ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap();
    let notify = |server: &mut Endpoint<u8>, now| {
        let notification = Outgoing::non_confirmable(Code::CONTENT, &[(number::OBSERVE, b"\x01")]);
        server.send_additional(now, 1, Token::new(b"t").unwrap(), &notification).unwrap();
    };
    let sent = |server: &mut Endpoint<u8>, now| {
        let mut sent = 0;
        loop {
            match server.poll(now) {
                Output::Transmit(_) => sent += 1,
                Output::Sleep(..) | Output::Idle => return sent,
                Output::Event(_) => {}
            }
        }
    };
    server.receive(Instant::ORIGIN, 1, &[0x50, 0x01, 0, 0]);
    answer_all(&mut server, Instant::ORIGIN);
    assert_eq!(sent(&mut server, Instant::ORIGIN), 1);
    let left: Vec<_> =
        (0..3).map(|_| (notify(&mut server, Instant::ORIGIN), sent(&mut server, Instant::ORIGIN)).1).collect();
    assert_eq!(left, [1, 0, 0], "the answer before it does not hold the first back");
    server.receive(Instant::ORIGIN, 1, &[0x50, 0x01, 0, 1]);
    answer_all(&mut server, Instant::ORIGIN);
    assert_eq!(sent(&mut server, Instant::ORIGIN), 1, "nor do notifications an answer");
    assert_eq!(sent(&mut server, Instant::from_micros(SECOND)), 0);
}

/// The request that the application is handed.
fn handed(server: &mut Endpoint<u8>, now: Instant) -> RequestId {
    loop {
        match server.poll(now) {
            Output::Event(Event::Request { id, .. }) => return id,
            Output::Sleep(..) | Output::Idle => panic!("no request"),
            Output::Event(_) | Output::Transmit(_) => {}
        }
    }
}

/// The application answers what came, non-confirmably.
fn answer_all(server: &mut Endpoint<u8>, now: Instant) {
    let request = handed(server, now);
    server.respond(now, request, &Outgoing::non_confirmable(Code::CONTENT, &[])).unwrap();
}
