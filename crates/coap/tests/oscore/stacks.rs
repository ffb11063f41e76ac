//! Whole bodies between two stacks all of whose messages are protected.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer, number};
use millpond_coap::oscore::{Context, Parameters, ProtectError, Protector, ResponseFault, Start, Which};
use millpond_coap::transfer::{Answer, ClientRequest, CoapStack, Config, Event, RequestFailure};
use millpond_coap::{Endpoint, IdGenerator, Outgoing, Output, Refused};
use millpond_control::{ChanceSeed, Instant, Preset};

use super::messages::{CLIENT, pair};

/// Contexts that nobody else has. A client takes the first.
#[derive(Clone, Debug)]
pub(super) struct Contexts(Arc<Mutex<Vec<Context>>>);

impl Contexts {
    pub(super) fn of_one(context: Context) -> Self {
        Self(Arc::new(Mutex::new(vec![context])))
    }
}

impl Protector for Contexts {
    fn with_context(&mut self, which: Which<'_>, act: &mut dyn FnMut(&mut Context)) {
        if let Some(context) = self.0.lock().unwrap().iter_mut().find(|context| which.may_be(context)) {
            act(context);
        }
    }
}

pub(super) type One = CoapStack<Endpoint<u8>>;

fn endpoint(node: u32) -> Endpoint<u8> {
    let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(1));
    Endpoint::new(Default::default(), controller, chance, node, IdGenerator::counted()).unwrap()
}

pub(super) fn stack(endpoint: Endpoint<u8>) -> One {
    CoapStack::new(endpoint, Config::default(), ChanceSeed::new(2)).unwrap()
}

pub(super) fn stored(parameters: &Parameters<'_>, bound: u64) -> Contexts {
    all(&[*parameters], bound)
}

pub(super) fn all(parameters: &[Parameters<'_>], bound: u64) -> Contexts {
    let context = |parameters| {
        let mut context = Context::derive(parameters, Start::Stored(bound)).unwrap();
        context.bound_is_stored(1_000_000);
        context
    };
    Contexts(Arc::new(Mutex::new(parameters.iter().map(context).collect())))
}

/// What protects messages to many is Group OSCORE: the keys of a context are those of two.
#[test]
fn a_protected_request_that_came_to_a_group_meets_silence() {
    let mut client = stack(endpoint(0).protected_by(stored(&CLIENT, 0)));
    let mut server = stack(endpoint(1).protected_by(stored(&CLIENT.mirrored(), 0)));
    let request = ClientRequest { kind: Kind::NonConfirmable, ..ClientRequest::new(Code::GET, &PATH) };
    client.request(Instant::ORIGIN, 2, &request).unwrap();
    let Output::Transmit(sent) = client.poll(Instant::ORIGIN) else { panic!("nothing left") };
    let datagram = sent.bytes.to_vec();
    server.receive_by_group(Instant::ORIGIN, 1, &datagram);
    while let said @ (Output::Event(_) | Output::Transmit(_) | Output::Trace(_)) = server.poll(Instant::ORIGIN) {
        assert!(matches!(said, Output::Trace(millpond_coap::Event::Ignored { .. })), "{said:?}");
    }
    // To itself alone it is a request.
    server.receive(Instant::ORIGIN, 1, &datagram);
    let mut requests = 0;
    while let said @ (Output::Event(_) | Output::Transmit(_) | Output::Trace(_)) = server.poll(Instant::ORIGIN) {
        requests += u32::from(matches!(said, Output::Event(Event::Request { .. })));
    }
    assert_eq!(requests, 1);
}

/// A client, a server that answers with what it is told, and all that left.
struct World {
    now: Instant,
    client: One,
    server: One,
    large: Vec<u8>,
    /// What the server's application saw: the method and the body.
    seen: Vec<(Code, Vec<u8>, bool)>,
    answers: VecDeque<Result<(Code, Vec<u8>), RequestFailure>>,
    echo: Option<Vec<u8>>,
    /// From the client, and from the server.
    left: [Vec<Vec<u8>>; 2],
    /// Datagrams that are lost, by how many left before.
    lost: BTreeSet<usize>,
}

impl World {
    fn new(client: One, server: One) -> Self {
        let large = (0..5_000_u32).map(|at| at as u8).collect();
        let (seen, answers, lost) = (Vec::new(), VecDeque::new(), BTreeSet::new());
        Self {
            now: Instant::ORIGIN,
            client,
            server,
            large,
            seen,
            answers,
            echo: None,
            left: [Vec::new(), Vec::new()],
            lost,
        }
    }

    fn of(bound: u64) -> Self {
        Self::new(
            stack(endpoint(0).protected_by(stored(&CLIENT, 0))),
            stack(endpoint(1).protected_by(stored(&CLIENT.mirrored(), bound))),
        )
    }

    /// Until nothing moves any more, but for what is lost.
    fn run(&mut self) {
        loop {
            let (mut up, mut down, mut until) = (Vec::new(), Vec::new(), Instant::NEVER);
            loop {
                match self.client.poll(self.now) {
                    Output::Transmit(transmit) => up.push(transmit.bytes.to_vec()),
                    Output::Event(Event::Answer { message, body, .. }) => {
                        self.echo = message.option(number::ECHO).map(<[u8]>::to_vec);
                        self.answers.push_back(Ok((message.code, body.into_owned())));
                    }
                    Output::Event(Event::Failed { why, .. }) => self.answers.push_back(Err(why)),
                    Output::Event(event) => panic!("{event:?}"),
                    Output::Trace(_) => {}
                    Output::Sleep(at, _) => {
                        until = at;
                        break;
                    }
                    Output::Idle => break,
                }
            }
            for datagram in up {
                let is_lost = self.lost.contains(&(self.left[0].len() + self.left[1].len()));
                self.left[0].push(datagram.clone());
                if !is_lost {
                    self.server.receive(self.now, 1, &datagram);
                    self.serve(&mut down);
                }
            }
            let is_quiet = down.is_empty();
            for datagram in down {
                let is_lost = self.lost.contains(&(self.left[0].len() + self.left[1].len()));
                self.left[1].push(datagram.clone());
                if !is_lost {
                    self.client.receive(self.now, 2, &datagram);
                    // One input, then drain.
                    break;
                }
            }
            if is_quiet {
                if !self.answers.is_empty() || until == Instant::NEVER {
                    return;
                }
                self.now = until;
            }
        }
    }

    fn serve(&mut self, down: &mut Vec<Vec<u8>>) {
        let mut asked = None;
        loop {
            match self.server.poll(self.now) {
                Output::Transmit(transmit) => down.push(transmit.bytes.to_vec()),
                Output::Event(Event::Request { id, message, body, wants_to_observe, .. }) => {
                    self.seen.push((message.code, body.into_owned(), wants_to_observe));
                    asked = Some((id, message.code));
                }
                Output::Event(event) => panic!("{event:?}"),
                Output::Trace(_) => {}
                Output::Sleep(..) | Output::Idle => {
                    let Some((id, code)) = asked.take() else { return };
                    let answer = match code {
                        Code::GET => Answer::new(Code::CONTENT, &[]).with_body(&self.large),
                        _ => Answer::new(Code::CHANGED, &[]),
                    };
                    self.server.answer(self.now, id, &answer).unwrap();
                }
            }
        }
    }

    fn answer(&mut self, ask: &ClientRequest<'_>) -> Result<(Code, Vec<u8>), RequestFailure> {
        self.client.request(self.now, 2, ask).unwrap();
        self.run();
        self.answers.pop_front().unwrap()
    }

    /// The value of the Echo option of the answer that came last.
    fn echo(&self) -> Vec<u8> {
        self.echo.clone().unwrap()
    }
}

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"secret-path")];

fn is_within(whole: &[u8], part: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

#[test]
fn bodies_of_many_blocks_go_both_ways_and_nothing_of_them_is_seen() {
    let mut world = World::of(0);
    let large = world.large.clone();
    assert_eq!(world.answer(&ClientRequest::new(Code::GET, &PATH)), Ok((Code::CONTENT, large.clone())));
    assert_eq!(world.answer(&ClientRequest::new(Code::PUT, &PATH).with_body(&large)), Ok((Code::CHANGED, Vec::new())));
    assert_eq!(world.seen, [(Code::GET, Vec::new(), false), (Code::PUT, large.clone(), false)]);
    for datagram in world.left.iter().flatten() {
        let message = Message::parse(datagram).unwrap();
        assert!(matches!(message.code, Code::POST | Code::CHANGED), "{:?}", message.code);
        assert_eq!(message.options().map(|option| option.number).collect::<Vec<_>>(), [number::OSCORE]);
        assert!(!is_within(datagram, b"secret-path") && !is_within(datagram, &large[100..130]));
    }
    assert!(world.left[0].len() >= 10);
}

#[test]
fn a_retransmission_has_the_same_bytes_and_is_carried_out_once() {
    let mut world = World::of(0);
    // The first request, and the answer to its second copy.
    world.lost = BTreeSet::from([0, 2]);
    assert_eq!(world.answer(&ClientRequest::new(Code::PUT, &PATH).with_body(b"once")), Ok((Code::CHANGED, Vec::new())));
    assert_eq!(world.seen.len(), 1);
    let [requests, answers] = &world.left;
    assert_eq!((requests.len(), answers.len()), (3, 2));
    assert!(requests.iter().all(|request| *request == requests[0]));
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn a_server_that_was_restarted_challenges_the_first_request_and_takes_its_repetition() {
    let mut world = World::of(70);
    let large = world.large.clone();
    let put = |options| ClientRequest::new(Code::PUT, options).with_body(b"fresh");
    assert_eq!(world.answer(&put(&PATH)), Ok((Code::UNAUTHORIZED, Vec::new())));
    assert_eq!(world.seen, []);
    let echo = world.echo();
    assert_eq!(world.answer(&put(&[PATH[0], (number::ECHO, &echo)])), Ok((Code::CHANGED, Vec::new())));
    assert_eq!(world.seen, [(Code::PUT, b"fresh".to_vec(), false)]);
    assert_eq!(world.left[0].len(), 2);
    // Once.
    assert_eq!(world.answer(&ClientRequest::new(Code::GET, &PATH)), Ok((Code::CONTENT, large)));
    assert_eq!(world.left[0].len(), 2 + 5);
}

#[test]
fn a_request_in_the_clear_or_of_another_context_is_refused_and_its_application_hears_nothing() {
    let other = Parameters { sender_id: &[9], ..CLIENT };
    for (client, told) in [
        (endpoint(0), &b"OSCORE required"[..]),
        (endpoint(0).protected_by(stored(&other, 0)), b"Security context not found"),
    ] {
        let server = stack(endpoint(1).protected_by(stored(&CLIENT.mirrored(), 0)));
        let is_protected = told != b"OSCORE required";
        let mut world = World::new(stack(client), server);
        let answer = world.answer(&ClientRequest::new(Code::GET, &PATH));
        match is_protected {
            true => {
                let fault = ResponseFault::NotProtected(Code::UNAUTHORIZED);
                assert_eq!(answer, Err(RequestFailure::Protection(fault)));
            }
            false => assert_eq!(answer, Ok((Code::UNAUTHORIZED, told.to_vec()))),
        }
        assert_eq!(world.seen, []);
        let answer = Message::parse(&world.left[1][0]).unwrap();
        assert_eq!((answer.payload(), answer.option(number::MAX_AGE)), (told, Some(&[][..])));
    }
}

/// Contexts that are unknown, options that cannot be read, and what is not authentic, from many addresses: of none anything is kept but
/// that its message came, and no answer is three times as long as what it answers, in IPv4 and UDP.
#[test]
fn a_flood_of_unknown_kids_keeps_nothing_and_is_answered_shortly() {
    let limits = millpond_coap::Limits { duplicate_bytes: 16 << 10, peers: 100, ..Default::default() };
    let (config, controller) = (millpond_coap::Config { limits, ..Default::default() }, Preset::RFC7252.build());
    let crowded = Endpoint::new(config, controller, ChanceSeed::new(1), 3, IdGenerator::counted()).unwrap();
    let mut server = stack(crowded.protected_by(stored(&CLIENT.mirrored(), 0)));
    let mut memory = Vec::new();
    let (mut answers, mut shown) = (0, 0);
    for number in 0..20_000_u32 {
        let now = Instant::from_micros(u64::from(number) * 1_000);
        let kid = number.to_be_bytes();
        let option = [&[0x09, number as u8][..], &kid].concat();
        let option = match number % 4 {
            0 => &option[..],
            1 => &option[..(number / 4 % 6) as usize],
            2 => &[0x09, 0x07, 0x01],
            _ => &[0x19, 0x07, 0x02, b'c', b'c', 0x01],
        };
        let payload = &[0xa5; 9][..(number / 16 % 10) as usize];
        let kind = [Kind::Confirmable, Kind::NonConfirmable][(number / 8 % 2) as usize];
        let mut request = Vec::new();
        let mut writer = Writer::start(&mut request, kind, Code::POST, MessageId(number as u16), Token::EMPTY);
        writer.option(number::OSCORE, option).unwrap().payload(payload).unwrap();
        writer.finish().unwrap();
        server.receive(now, (number % 251) as u8, &request);
        loop {
            match server.poll(now) {
                Output::Transmit(transmit) => {
                    assert!(transmit.bytes.len() + 28 <= 3 * (request.len() + 28), "{request:x?}");
                    answers += 1;
                }
                Output::Event(_) => shown += 1,
                Output::Trace(_) => {}
                _ => break,
            }
        }
        memory.push(server.memory());
    }
    assert_eq!((shown, server.endpoint().requests()), (0, 0));
    assert!(answers > 15_000, "{answers}");
    assert!(memory[19_999] <= memory[5_000], "{} {}", memory[5_000], memory[19_999]);
    // Who has a context is served.
    let mut world = World::new(stack(endpoint(0).protected_by(stored(&CLIENT, 0))), server);
    world.now = Instant::from_micros(20_000_000);
    assert_eq!(world.answer(&ClientRequest::new(Code::PUT, &PATH).with_body(b"x")), Ok((Code::CHANGED, Vec::new())));
}

#[test]
fn an_answer_in_the_clear_is_no_answer() {
    let client = stack(endpoint(0).protected_by(stored(&CLIENT, 0)));
    let mut world = World::new(client, stack(endpoint(1)));
    // The server knows no OSCORE: it is handed a POST with a critical option that it does not know.
    let answer = world.answer(&ClientRequest::new(Code::GET, &PATH));
    assert!(matches!(answer, Err(RequestFailure::Protection(ResponseFault::NotProtected(_)))), "{answer:?}");
}

#[test]
fn what_is_asked_for_in_bursts_goes_block_by_block() {
    let mut world = World::of(0);
    let large = world.large.clone();
    let ask = ClientRequest::new(Code::PUT, &PATH).with_body(&large).in_bursts();
    assert_eq!(world.answer(&ask), Ok((Code::CHANGED, Vec::new())));
    assert_eq!(world.seen, [(Code::PUT, large, false)]);
}

#[test]
fn an_endpoint_that_protects_sends_nothing_in_the_clear() {
    let mut endpoint = endpoint(0).protected_by(stored(&CLIENT, 0));
    let refused = Err(Refused::Protection(ProtectError::Plain));
    let content = Outgoing::non_confirmable(Code::CONTENT, &[]);
    assert_eq!(endpoint.send_additional(Instant::ORIGIN, 2, Token::EMPTY, &content), refused);
    let group = Outgoing::non_confirmable(Code::GET, &PATH);
    assert_eq!(endpoint.request_group(Instant::ORIGIN, 2, &group), refused);
    assert!(matches!(endpoint.poll(Instant::ORIGIN), Output::Idle));
    // A ping says nothing.
    assert!(endpoint.ping(Instant::ORIGIN, 2).is_ok());
    assert!(matches!(endpoint.poll(Instant::ORIGIN), Output::Transmit(_)));
    let (of_client, mut server) = pair(&CLIENT);
    let mut endpoint = super::stacks::endpoint(0).protected_with(of_client, |_| true);
    for (peer, asks) in [(2, Endpoint::request as fn(&mut _, _, _, &_) -> _), (3, Endpoint::subscribe)] {
        asks(&mut endpoint, Instant::ORIGIN, peer, &Outgoing::confirmable(Code::GET, &PATH)).unwrap();
        let Output::Transmit(transmit) = endpoint.poll(Instant::ORIGIN) else { panic!("nothing leaves") };
        let (message, mut plain) = (Message::parse(transmit.bytes).unwrap(), Vec::new());
        assert_eq!((message.code, message.uri_path().count()), (Code::POST, 0));
        server.unprotect_request(&message, &mut plain).unwrap();
        assert_eq!(Message::parse(&plain).unwrap().code, Code::GET);
        let mut sibling = endpoint.sibling(1);
        let refused = sibling.request(Instant::ORIGIN, 2, &Outgoing::confirmable(Code::GET, &PATH));
        assert_eq!(refused, Err(Refused::Protection(ProtectError::Plain)));
    }
    // A context whose numbers are not stored sends nothing at all.
    let exhausted = Contexts::of_one(Context::derive(&CLIENT, Start::Stored(0)).unwrap());
    let mut client = stack(super::stacks::endpoint(0).protected_by(exhausted));
    let refused = client.request(Instant::ORIGIN, 2, &ClientRequest::new(Code::GET, &PATH)).unwrap_err();
    assert!(refused.to_string().contains("store the next one"), "{refused}");
}
