//! Observation between two stacks all of whose messages are protected.

use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer, number};
use millpond_coap::oscore::{Context, OscoreOption, Parameters, PartialIv, Start};
use millpond_coap::transfer::{Answer, ClientRequest, ClientRequestId, Event, Gone, KeptObserver, ObserverId};
use millpond_coap::{Config, Endpoint, IdGenerator, Output, RequestId, Transmission};
use millpond_control::{ChanceSeed, Instant, Preset};

use super::messages::CLIENT;
use super::stacks::{Contexts, One, all, stack, stored};

const CLIENT_AT: u8 = 1;
const SERVER_AT: u8 = 2;
/// That of another client of the server.
const OTHER: Parameters<'static> = Parameters { sender_id: &[9], ..CLIENT };

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"level")];
/// A registration is renewed so many seconds after the last notification, and a few more.
const SHORT_LIVED: [(u16, &[u8]); 1] = [(number::MAX_AGE, &[20])];

/// One that sends to a peer that has never answered as fast as to any other.
fn quick(node: u32) -> Endpoint<u8> {
    let transmission = Transmission { probing_rate: 1_000_000, ..Transmission::default() };
    let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(1));
    Endpoint::new(Config { transmission, ..Config::default() }, controller, chance, node, IdGenerator::counted())
        .unwrap()
}

/// What a stack said until it was drained.
#[derive(Debug, Default)]
struct Said {
    datagrams: Vec<Vec<u8>>,
    /// Code, body, and whether more will come.
    answers: Vec<(Code, Vec<u8>, bool)>,
    failed: Vec<String>,
    requests: Vec<(RequestId, bool)>,
    gone: Vec<Gone>,
    echo: Option<Vec<u8>>,
    until: Option<Instant>,
}

fn drain(stack: &mut One, now: Instant) -> Said {
    let mut said = Said::default();
    loop {
        match stack.poll(now) {
            Output::Transmit(transmit) => said.datagrams.push(transmit.bytes.to_vec()),
            Output::Event(Event::Answer { message, body, goes_on, .. }) => {
                said.echo = message.option(number::ECHO).map(<[u8]>::to_vec);
                said.answers.push((message.code, body.into_owned(), goes_on));
            }
            Output::Event(Event::Failed { why, .. }) => said.failed.push(why.to_string()),
            Output::Event(Event::Request { id, wants_to_observe, .. }) => said.requests.push((id, wants_to_observe)),
            Output::Event(Event::ObserverGone { why, .. }) => said.gone.push(why),
            Output::Event(event) => panic!("{event:?}"),
            Output::Trace(_) => {}
            Output::Sleep(until, _) => {
                said.until = Some(until);
                return said;
            }
            Output::Idle => return said,
        }
    }
}

/// A client and a server, and a network that does what a test says.
struct World {
    now: Instant,
    client: One,
    server: One,
    ask: ClientRequestId,
    token: Token,
    observer: Option<ObserverId>,
}

impl World {
    /// A client that has asked to observe, and its request.
    fn new() -> (Self, Vec<u8>) {
        let mut client = stack(quick(0).protected_by(stored(&CLIENT, 0)));
        let contexts = all(&[CLIENT.mirrored(), OTHER.mirrored()], 0);
        let server = stack(quick(1).protected_by(contexts));
        let now = Instant::ORIGIN;
        let ask = client.request(now, SERVER_AT, &ClientRequest::new(Code::GET, &PATH).observing()).unwrap();
        let mut world = Self { now, client, server, ask, token: Token::EMPTY, observer: None };
        let registration = world.of_client().datagrams.remove(0);
        world.token = Message::parse(&registration).unwrap().token;
        (world, registration)
    }

    /// A client that observes, and was answered with `first`.
    fn observing() -> Self {
        let (mut world, registration) = Self::new();
        let answer = world.registers(&registration, b"first");
        assert_eq!(world.client_hears(&answer).answers, [(Code::CONTENT, b"first".to_vec(), true)]);
        world
    }

    fn of_client(&mut self) -> Said {
        drain(&mut self.client, self.now)
    }

    fn of_server(&mut self) -> Said {
        drain(&mut self.server, self.now)
    }

    fn client_hears(&mut self, datagram: &[u8]) -> Said {
        self.client.receive(self.now, SERVER_AT, datagram);
        self.of_client()
    }

    fn server_hears(&mut self, datagram: &[u8]) -> Said {
        self.server.receive(self.now, CLIENT_AT, datagram);
        self.of_server()
    }

    /// The server's answer to a registration.
    fn registers(&mut self, registration: &[u8], body: &[u8]) -> Vec<u8> {
        let (request, wants_to_observe) = self.server_hears(registration).requests[0];
        assert!(wants_to_observe);
        let answer = Answer::new(Code::CONTENT, &SHORT_LIVED).with_body(body);
        self.observer = self.server.accept_observer(self.now, request, &answer).unwrap();
        assert!(self.observer.is_some());
        self.of_server().datagrams.remove(0)
    }

    /// A notification that leaves, non-confirmably.
    fn notify(&mut self, code: Code, body: &[u8]) -> Vec<u8> {
        self.now = Instant::from_micros(self.now.as_micros() + 3_000_000);
        // What it repeats meanwhile is lost.
        self.of_client();
        assert!(self.of_server().datagrams.is_empty());
        let answer = Answer { kind: Some(Kind::NonConfirmable), ..Answer::new(code, &SHORT_LIVED).with_body(body) };
        self.server.notify(self.now, self.observer.unwrap(), &answer).unwrap();
        self.of_server().datagrams.remove(0)
    }

    /// The renewal, once that is due.
    fn renewal(&mut self) -> Vec<u8> {
        loop {
            let said = self.of_client();
            assert_eq!(said.failed, [] as [String; 0]);
            if let Some(renewal) = said.datagrams.into_iter().next() {
                return renewal;
            }
            self.now = said.until.unwrap();
        }
    }
}

fn content(body: &[u8]) -> (Code, Vec<u8>, bool) {
    (Code::CONTENT, body.to_vec(), true)
}

fn partial_iv(datagram: &[u8]) -> Option<PartialIv> {
    let message = Message::parse(datagram).unwrap();
    OscoreOption::decode(message.option(number::OSCORE).unwrap()).unwrap().partial_iv
}

/// The same message in a datagram that no copy was of.
fn with_another_id(datagram: &[u8]) -> Vec<u8> {
    let mut datagram = datagram.to_vec();
    datagram[2] ^= 0x40;
    datagram
}

#[test]
fn notifications_are_taken_in_the_order_of_their_numbers_and_each_once() {
    let mut world = World::observing();
    let all: Vec<_> = (0..4_u8).map(|at| world.notify(Code::CONTENT, &[at])).collect();
    for notification in &all {
        let message = Message::parse(notification).unwrap();
        assert_eq!(message.code, Code::CONTENT);
        let shown: Vec<_> = message.options().map(|option| option.number).collect();
        assert_eq!(shown, [number::OBSERVE, number::OSCORE]);
        assert!(partial_iv(notification).is_some());
    }
    assert_eq!(world.client_hears(&all[0]).answers, [content(&[0])]);
    assert_eq!(world.client_hears(&all[2]).answers, [content(&[2])]);
    // Older, and once more with another message ID.
    for stale in [all[1].clone(), with_another_id(&all[2]), with_another_id(&all[0])] {
        let said = world.client_hears(&stale);
        assert_eq!((said.answers, said.failed), (Vec::new(), Vec::new()));
    }
    // Changed on its way.
    let mut forged = all[3].clone();
    *forged.last_mut().unwrap() ^= 1;
    let said = world.client_hears(&with_another_id(&forged));
    assert_eq!((said.answers, said.failed), (Vec::new(), Vec::new()));
    assert_eq!(world.client_hears(&all[3]).answers, [content(&[3])]);
}

#[test]
fn a_plain_notification_is_nothing() {
    let mut world = World::observing();
    let notification = world.notify(Code::CONTENT, b"real");
    let message = Message::parse(&notification).unwrap();
    for code in [Code::CONTENT, Code::NOT_FOUND, Code::UNAUTHORIZED] {
        let mut forged = Vec::new();
        let id = MessageId(40_000 + u16::from(code.to_byte()));
        let mut writer = Writer::start(&mut forged, Kind::NonConfirmable, code, id, message.token);
        writer.option(number::OBSERVE, &[200]).unwrap();
        writer.payload(b"forged").unwrap();
        writer.finish().unwrap();
        let said = world.client_hears(&forged);
        assert_eq!((said.answers, said.failed), (Vec::new(), Vec::new()));
    }
    assert_eq!(world.client_hears(&notification).answers, [content(b"real")]);
}

#[test]
fn the_last_notification_is_an_error_that_nobody_else_sees() {
    let mut world = World::observing();
    let last = world.notify(Code::NOT_FOUND, b"");
    let message = Message::parse(&last).unwrap();
    assert_eq!((message.code, message.option(number::OBSERVE)), (Code::CHANGED, None));
    assert!(partial_iv(&last).is_some());
    assert_eq!(world.client_hears(&last).answers, [(Code::NOT_FOUND, Vec::new(), false)]);
    assert_eq!((world.client.requests(), world.server.observers()), (0, 0));
}

#[test]
fn a_client_that_wants_no_more_says_so_under_protection() {
    let mut world = World::observing();
    assert!(world.client.cancel(world.now, world.ask));
    let cancellation = world.of_client().datagrams.remove(0);
    let message = Message::parse(&cancellation).unwrap();
    assert_eq!((message.code, message.option(number::OBSERVE)), (Code::FETCH, Some(&[1][..])));
    let said = world.server_hears(&cancellation);
    assert_eq!((said.gone, said.requests.len()), (vec![Gone::Deregistered], 1));
    assert_eq!(world.server.observers(), 0);
}

#[test]
fn a_renewal_is_a_new_request_and_what_follows_belongs_to_it() {
    let mut world = World::observing();
    let before = world.notify(Code::CONTENT, b"before");
    assert_eq!(world.client_hears(&before).answers, [content(b"before")]);
    let late = world.notify(Code::CONTENT, b"late");
    let renewal = world.renewal();
    assert!(partial_iv(&renewal) > Some(PartialIv::new(0).unwrap()));
    let answer = world.registers(&renewal, b"renewed");
    assert_eq!(world.server.observers(), 1);
    assert_eq!(world.client_hears(&answer).answers, [content(b"renewed")]);
    // Of the registration before, and newer than all that came of that.
    let said = world.client_hears(&late);
    assert_eq!((said.answers, said.failed), (Vec::new(), Vec::new()));
    let after = world.notify(Code::CONTENT, b"after");
    assert_eq!(world.client_hears(&after).answers, [content(b"after")]);
}

/// A NAT binding that has changed in between, or another network: with no handshake the renewal begins another observation there.
#[test]
fn a_client_that_has_moved_is_told_from_its_renewal_on() {
    const MOVED: u8 = 77;
    let mut world = World::observing();
    // Where nobody is any more.
    world.notify(Code::CONTENT, b"lost");
    let (renewal, before) = (world.renewal(), world.observer);
    world.server.receive(world.now, MOVED, &renewal);
    let (request, wants_to_observe) = world.of_server().requests[0];
    assert!(wants_to_observe);
    let answer = Answer::new(Code::CONTENT, &SHORT_LIVED).with_body(b"here");
    world.observer = world.server.accept_observer(world.now, request, &answer).unwrap();
    let answer = world.of_server().datagrams.remove(0);
    assert_eq!(world.client_hears(&answer).answers, [content(b"here")]);
    assert_eq!([CLIENT_AT, MOVED].map(|at| world.server.observers_of(at).count()), [1, 1]);
    let notification = world.notify(Code::CONTENT, b"news");
    assert_eq!(world.client_hears(&notification).answers, [content(b"news")]);
    // The one at the address before ends once a confirmable notification is not acknowledged.
    let told = Answer { kind: Some(Kind::Confirmable), ..Answer::new(Code::CONTENT, &[]) };
    world.server.notify(world.now, before.unwrap(), &told).unwrap();
    let mut gone = Vec::new();
    while world.server.observers_of(CLIENT_AT).count() > 0 {
        let said = world.of_server();
        gone.extend(said.gone);
        world.now = said.until.unwrap_or(world.now);
    }
    gone.extend(world.of_server().gone);
    assert_eq!((gone.len(), world.server.observers_of(MOVED).count()), (1, 1), "{gone:?}");
}

#[test]
fn a_notification_that_crosses_a_renewal_is_taken() {
    let mut world = World::observing();
    let crossing = world.notify(Code::CONTENT, b"crossing");
    let renewal = world.renewal();
    assert_eq!(world.client_hears(&crossing).answers, [content(b"crossing")]);
    let answer = world.registers(&renewal, b"renewed");
    assert_eq!(world.client_hears(&answer).answers, [content(b"renewed")]);
    let after = world.notify(Code::CONTENT, b"after");
    assert_eq!(world.client_hears(&after).answers, [content(b"after")]);
}

#[test]
fn a_notification_that_crosses_a_renewal_that_was_acknowledged_is_taken_in_the_place_of_its_answer() {
    let mut world = World::observing();
    let crossing = world.notify(Code::CONTENT, b"crossing");
    let renewal = world.renewal();
    let [_, _, high, low, ..] = renewal[..] else { panic!("no message") };
    assert_eq!(world.client_hears(&[0x60, 0, high, low]).answers, []);
    assert_eq!(world.client_hears(&crossing).answers, [content(b"crossing")]);
    // Its own answer came in a datagram that crossed the acknowledgement.
    let mut answer = with_another_id(&world.registers(&renewal, b"renewed"));
    answer[0] = (answer[0] & 0xcf) | 0x10;
    assert_eq!(world.client_hears(&answer).answers, [content(b"renewed")]);
    let after = world.notify(Code::CONTENT, b"after");
    assert_eq!(world.client_hears(&after).answers, [content(b"after")]);
}

#[test]
fn a_notification_that_overtakes_the_answer_to_a_renewal_is_taken_and_that_answer_is_not() {
    let mut world = World::observing();
    let renewal = world.renewal();
    let answer = world.registers(&renewal, b"renewed");
    let overtaking = world.notify(Code::CONTENT, b"overtaking");
    assert_eq!(world.client_hears(&overtaking).answers, [content(b"overtaking")]);
    let said = world.client_hears(&answer);
    assert_eq!((said.answers, said.failed), (Vec::new(), Vec::new()));
    let after = world.notify(Code::CONTENT, b"after");
    assert_eq!(world.client_hears(&after).answers, [content(b"after")]);
    // And it is renewed again.
    let renewal = world.renewal();
    let answer = world.registers(&renewal, b"again");
    assert_eq!(world.client_hears(&answer).answers, [content(b"again")]);
}

#[test]
fn another_context_at_the_address_of_an_observer_neither_ends_its_observation_nor_takes_it_over() {
    let mut world = World::observing();
    let token = world.token;
    let mut intruder = Context::derive(&OTHER, Start::Fresh).unwrap();
    for observe in [&[1][..], &[]] {
        let mut plain = Vec::new();
        let id = MessageId(50_000 + observe.len() as u16);
        let mut writer = Writer::start(&mut plain, Kind::Confirmable, Code::GET, id, token);
        writer.option(number::OBSERVE, observe).unwrap();
        writer.option(number::URI_PATH, b"level").unwrap();
        writer.finish().unwrap();
        let mut forged = Vec::new();
        intruder.protect_request(&Message::parse(&plain).unwrap(), &mut forged).unwrap();
        let said = world.server_hears(&forged);
        assert_eq!((said.gone, said.requests[0].1), (Vec::new(), false));
        world.server.reject(world.now, said.requests[0].0).unwrap();
        world.of_server();
    }
    let notification = world.notify(Code::CONTENT, b"still");
    assert_eq!(world.client_hears(&notification).answers, [content(b"still")]);
}

#[test]
fn a_proxy_that_knows_no_observation_makes_it_a_request_that_is_answered_once() {
    let (mut world, registration) = World::new();
    let (request, wants_to_observe) = world.server_hears(&without_observe(&registration)).requests[0];
    assert!(!wants_to_observe);
    world.server.answer(world.now, request, &Answer::new(Code::CONTENT, &[]).with_body(b"once")).unwrap();
    let answer = world.of_server().datagrams.remove(0);
    assert_eq!(world.client_hears(&answer).answers, [(Code::CONTENT, b"once".to_vec(), false)]);
    // It knows the option of the request and not that of the response.
    let (mut world, registration) = World::new();
    let answer = world.registers(&registration, b"once");
    assert_eq!(world.client_hears(&without_observe(&answer)).answers, [(Code::CONTENT, b"once".to_vec(), false)]);
}

/// The message without its outer Observe option.
fn without_observe(datagram: &[u8]) -> Vec<u8> {
    let message = Message::parse(datagram).unwrap();
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, message.kind, message.code, message.id, message.token);
    for option in message.options().filter(|option| option.number != number::OBSERVE) {
        writer.option(option.number, option.value).unwrap();
    }
    writer.payload(message.payload()).unwrap();
    writer.finish().unwrap();
    bytes
}

#[test]
fn a_server_that_was_restarted_challenges_a_renewal_and_takes_the_registration_that_proves_itself() {
    let mut world = World::observing();
    world.server = stack(quick(1).protected_by(stored(&CLIENT.mirrored(), 70)));
    let renewal = world.renewal();
    let said = world.server_hears(&renewal);
    assert!(said.requests.is_empty());
    let said = world.client_hears(&said.datagrams[0]);
    assert_eq!(said.answers, [(Code::UNAUTHORIZED, Vec::new(), false)]);
    let echo = said.echo.unwrap();
    let options = [PATH[0], (number::ECHO, &echo[..])];
    world.ask =
        world.client.request(world.now, SERVER_AT, &ClientRequest::new(Code::GET, &options).observing()).unwrap();
    let registration = world.of_client().datagrams.remove(0);
    let answer = world.registers(&registration, b"again");
    assert_eq!(world.client_hears(&answer).answers, [content(b"again")]);
    let after = world.notify(Code::CONTENT, b"after");
    assert_eq!(world.client_hears(&after).answers, [content(b"after")]);
}

#[test]
fn an_observer_for_whom_no_sequence_numbers_are_left_is_forgotten() {
    let mut context = Context::derive(&CLIENT.mirrored(), Start::Stored(PartialIv::LIMIT - 2)).unwrap();
    context.bound_is_stored(PartialIv::LIMIT);
    let (mut world, registration) = World::new();
    world.server = stack(quick(1).protected_by(Contexts::of_one(context)));
    // The answer that proves the client costs one, and the first notification the other.
    let said = world.server_hears(&registration);
    let echo = world.client_hears(&said.datagrams[0]).echo.unwrap();
    let options = [PATH[0], (number::ECHO, &echo[..])];
    world.client.request(world.now, SERVER_AT, &ClientRequest::new(Code::GET, &options).observing()).unwrap();
    let registration = world.of_client().datagrams.remove(0);
    let answer = world.registers(&registration, b"first");
    assert_eq!(world.client_hears(&answer).answers, [content(b"first")]);
    let last = world.notify(Code::CONTENT, b"last");
    assert_eq!(world.client_hears(&last).answers, [content(b"last")]);
    let refused = world.server.notify(world.now, world.observer.unwrap(), &Answer::new(Code::CONTENT, &[]));
    assert!(refused.unwrap_err().to_string().contains("all sequence numbers"));
}

/// Message ID and token are an attacker's to choose, who sees both; the rest is cut anywhere, or has one bit that is another.
#[test]
fn no_cut_or_changed_copy_of_what_was_sent_is_taken_by_either_side_or_ends_anything() {
    let mut world = World::observing();
    let notification = world.notify(Code::CONTENT, b"real");
    let renewal = world.renewal();
    let start = 4 + world.token.len();
    let changed = |datagram: &[u8]| {
        let cut = (start..datagram.len()).map(|length| datagram[..length].to_vec());
        let flipped = (start * 8..datagram.len() * 8).map(|bit| {
            let mut datagram = datagram.to_vec();
            datagram[bit / 8] ^= 1 << (bit % 8);
            datagram
        });
        cut.chain(flipped).collect::<Vec<_>>()
    };
    let numbered = |mut datagram: Vec<u8>, number: usize| {
        datagram[2..4].copy_from_slice(&(20_000 + number as u16).to_be_bytes());
        datagram
    };
    let (mut ignored, mut refused) = (0, 0);
    for (number, forged) in changed(&notification).into_iter().enumerate() {
        // Its outer Observe says nothing of what is inside: another value is the same notification.
        let is_same = Message::parse(&forged).is_ok_and(|message| {
            let observe = message.values(number::OBSERVE).count() == 1;
            let original = Message::parse(&notification).unwrap();
            observe
                && message.option(number::OSCORE) == original.option(number::OSCORE)
                && message.payload() == original.payload()
        });
        let said = world.client_hears(&numbered(forged, number));
        assert_eq!(said.failed, [] as [String; 0]);
        if !is_same {
            assert_eq!(said.answers, [], "{number}");
            ignored += 1;
        }
    }
    let memory = world.server.memory();
    for (number, forged) in changed(&renewal).into_iter().enumerate() {
        let is_same = Message::parse(&forged).is_ok_and(|message| {
            let original = Message::parse(&renewal).unwrap();
            message.option(number::OSCORE) == original.option(number::OSCORE) && message.payload() == original.payload()
        });
        if !is_same {
            let said = world.server_hears(&numbered(forged, number));
            assert_eq!((said.requests.len(), said.gone), (0, Vec::new()), "{number}");
            refused += 1;
        }
    }
    assert!(ignored > 150 && refused > 150, "{ignored} and {refused}");
    assert!(world.server.memory() < memory + 64 * 1_024, "{}", world.server.memory() - memory);
    assert_eq!(world.server.observers(), 1);
    // What is real goes on.
    let answer = world.registers(&renewal, b"renewed");
    assert_eq!(world.client_hears(&answer).answers, [content(b"renewed")]);
}

/// Of the contexts that go on: those of which sequence numbers are stored.
#[test]
fn a_server_that_restarts_goes_on_to_notify_under_its_context_by_numbers_that_are_newer() {
    let mut world = World::observing();
    let before = world.notify(Code::CONTENT, b"before");
    assert_eq!(world.client_hears(&before).answers, [content(b"before")]);
    let (peer, kept) = world.server.kept_observer(world.observer.unwrap()).unwrap();
    let kept = KeptObserver::from_bytes(&kept.to_bytes()).unwrap();
    let request = {
        let mut bytes = Vec::new();
        let mut writer = Writer::start(&mut bytes, Kind::Confirmable, Code::GET, MessageId(0), world.token);
        writer.option(PATH[0].0, PATH[0].1).unwrap();
        writer.finish().unwrap();
        bytes
    };
    let request = Message::parse(&request).unwrap();
    // With nothing, and with the context of somebody else.
    let others = [
        stack(quick(2)),
        stack(quick(2).protected_by(all(&[OTHER.mirrored()], 0))),
        stack(quick(2).protected_by(Contexts::of_one(Context::derive(&CLIENT.mirrored(), Start::Fresh).unwrap()))),
    ];
    for mut other in others {
        assert_eq!(other.observes_again(world.now, peer, &kept, &request), None);
    }
    world.server = stack(quick(2).protected_by(all(&[CLIENT.mirrored()], 1_000)));
    world.observer = world.server.observes_again(world.now, peer, &kept, &request);
    // Its window is lost, of which notifications know nothing.
    let after = world.notify(Code::CONTENT, b"after");
    assert_eq!(partial_iv(&after).map(PartialIv::number), Some(1_000));
    assert_eq!(world.client_hears(&with_another_id(&after)).answers, [content(b"after")]);
    // What is not protected as it was is nobody's.
    let mut plain = stack(quick(3));
    let plain_kept = KeptObserver::from_bytes(b"\0\0\0\0\x01t").unwrap();
    assert!(plain.observes_again(world.now, peer, &plain_kept, &request).is_some());
    assert_eq!(world.server.observes_again(world.now, peer, &plain_kept, &request), None);
}

/// Keys that were agreed upon, or derived anew, end with the process.
#[test]
fn an_observer_whose_keys_end_with_the_server_is_not_kept() {
    let (mut world, registration) = World::new();
    let context = Context::derive(&CLIENT.mirrored(), Start::Fresh).unwrap();
    world.server = stack(quick(1).protected_by(Contexts::of_one(context)));
    let answer = world.registers(&registration, b"first");
    assert_eq!(world.client_hears(&answer).answers, [content(b"first")]);
    assert_eq!(world.server.kept_observer(world.observer.unwrap()), None);
}
