//! Protected messages that a proxy cuts into blocks of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use millpond_coap::block::{Block, BlockSize, DownloadError};
use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer, is_of_transfer, number};
use millpond_coap::oscore::ResponseFault;
use millpond_coap::transfer::{
    AROUND_IPV4, AddressValidation, Answer, ClientRequest, ClientRequestId, CoapStack, Config, ECHO_LENGTH, Event,
    Limit, Limits, ObserverId, RequestFailure, Validation,
};
use millpond_coap::{Endpoint, IdGenerator, Output, RequestId, Transmission};
use millpond_control::{ChanceSeed, Instant, Preset};

use super::messages::CLIENT;
use super::stacks::{One, stored};

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"secret-path")];

/// The addresses of the client, of both sides of the proxy, and of the server.
const CLIENT_AT: u8 = 1;
const NEAR: u8 = 2;
const FAR: u8 = 3;
const SERVER: u8 = 4;

fn endpoint(node: u32) -> Endpoint<u8> {
    let transmission = Transmission { probing_rate: 1_000_000, ..Transmission::default() };
    let config = millpond_coap::Config { transmission, ..Default::default() };
    let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(1));
    Endpoint::new(config, controller, chance, node, IdGenerator::counted()).unwrap()
}

fn stack(endpoint: Endpoint<u8>, config: Config) -> One {
    CoapStack::new(endpoint, config, ChanceSeed::new(2)).unwrap()
}

fn client() -> One {
    stack(endpoint(0).protected_by(stored(&CLIENT, 0)), Config::default())
}

fn server(config: Config) -> One {
    stack(endpoint(3).protected_by(stored(&CLIENT.mirrored(), 0)), config)
}

/// A client, a proxy that knows no OSCORE and cuts what it sends on, and a server.
struct World {
    now: Instant,
    client: One,
    near: One,
    far: One,
    server: One,
    /// The size of the proxy's blocks.
    size: BlockSize,
    /// With those of the datagrams that have it: from whom they are.
    left: Vec<(u8, Vec<u8>)>,
    /// Of the requests that the proxy sends on.
    forwarded: Vec<(ClientRequestId, Option<RequestId>, Option<ObserverId>)>,
    observer: Option<ObserverId>,
    body: Vec<u8>,
    seen: Vec<(Code, Vec<u8>)>,
    answers: VecDeque<Result<(Code, Vec<u8>), RequestFailure>>,
}

impl World {
    fn new(size: BlockSize) -> Self {
        Self {
            now: Instant::ORIGIN,
            client: client(),
            near: stack(endpoint(1), Config { block: size, ..Config::default() }),
            far: stack(endpoint(2), Config::default()),
            server: server(Config::default()),
            size,
            left: Vec::new(),
            forwarded: Vec::new(),
            observer: None,
            body: (0..5_000_u32).map(|at| at as u8).collect(),
            seen: Vec::new(),
            answers: VecDeque::new(),
        }
    }

    /// Until nothing is under way.
    fn run(&mut self) {
        let mut under_way = VecDeque::new();
        loop {
            self.drain(&mut under_way);
            let Some((from, to, datagram)) = under_way.pop_front() else { return };
            self.left.push((from, datagram.clone()));
            let stack = match to {
                CLIENT_AT => &mut self.client,
                NEAR => &mut self.near,
                FAR => &mut self.far,
                _ => &mut self.server,
            };
            stack.receive(self.now, from, &datagram);
        }
    }

    fn drain(&mut self, under_way: &mut VecDeque<(u8, u8, Vec<u8>)>) {
        loop {
            match self.client.poll(self.now) {
                Output::Transmit(transmit) => under_way.push_back((CLIENT_AT, transmit.to, transmit.bytes.to_vec())),
                Output::Event(Event::Answer { message, body, .. }) => {
                    self.answers.push_back(Ok((message.code, body.into_owned())));
                }
                Output::Event(Event::Failed { why, .. }) => self.answers.push_back(Err(why)),
                Output::Event(event) => panic!("{event:?}"),
                Output::Trace(_) => {}
                _ => break,
            }
        }
        let mut asked = Vec::new();
        loop {
            match self.near.poll(self.now) {
                Output::Transmit(transmit) => under_way.push_back((NEAR, transmit.to, transmit.bytes.to_vec())),
                Output::Event(Event::Request { id, message, body, wants_to_observe, .. }) => {
                    let options = message.options().filter(|option| !is_of_transfer(option.number));
                    let options: Vec<_> = options.map(|option| (option.number, option.value.to_vec())).collect();
                    asked.push((id, message.code, options, body.into_owned(), wants_to_observe));
                }
                Output::Event(_) | Output::Trace(_) => {}
                _ => break,
            }
        }
        for (id, code, options, body, observe) in asked {
            let options: Vec<_> = options.iter().map(|(number, value)| (*number, &value[..])).collect();
            // What observes is one message here.
            let upload = if observe { BlockSize::B1024 } else { self.size };
            let plain = ClientRequest::new(code, &options).with_body(&body);
            let request = ClientRequest { upload, early: Some(self.size), observe, ..plain };
            let name = self.far.request(self.now, SERVER, &request).unwrap();
            self.forwarded.push((name, Some(id), None));
        }
        let mut answered = Vec::new();
        loop {
            match self.far.poll(self.now) {
                Output::Transmit(transmit) => under_way.push_back((FAR, transmit.to, transmit.bytes.to_vec())),
                Output::Event(Event::Answer { request, message, body, .. }) => {
                    let options = message.options().filter(|option| !is_of_transfer(option.number));
                    let options: Vec<_> = options.map(|option| (option.number, option.value.to_vec())).collect();
                    answered.push((request, message.code, options, body.into_owned()));
                }
                Output::Event(event) => panic!("{event:?}"),
                Output::Trace(_) => {}
                _ => break,
            }
        }
        for (request, code, options, body) in answered {
            let options: Vec<_> = options.iter().map(|(number, value)| (*number, &value[..])).collect();
            let answer = Answer::new(code, &options).with_body(&body);
            let (_, asked, observer) = self.forwarded.iter_mut().find(|(name, ..)| *name == request).unwrap();
            match (asked.take(), *observer) {
                (Some(asked), _) => *observer = self.near.accept_observer(self.now, asked, &answer).unwrap(),
                (None, Some(observer)) => self.near.notify(self.now, observer, &answer).unwrap(),
                (None, None) => {}
            }
        }
        self.serve(under_way);
        // What the proxy was told to send leaves.
        while let Output::Transmit(transmit) = self.near.poll(self.now) {
            under_way.push_back((NEAR, transmit.to, transmit.bytes.to_vec()));
        }
        while let Output::Transmit(transmit) = self.far.poll(self.now) {
            under_way.push_back((FAR, transmit.to, transmit.bytes.to_vec()));
        }
    }

    fn serve(&mut self, under_way: &mut VecDeque<(u8, u8, Vec<u8>)>) {
        let mut asked = Vec::new();
        loop {
            match self.server.poll(self.now) {
                Output::Transmit(transmit) => under_way.push_back((SERVER, transmit.to, transmit.bytes.to_vec())),
                Output::Event(Event::Request { id, message, body, wants_to_observe, .. }) => {
                    self.seen.push((message.code, body.into_owned()));
                    asked.push((id, message.code, wants_to_observe));
                }
                Output::Event(_) | Output::Trace(_) => {}
                _ if asked.is_empty() => return,
                _ => {
                    for (id, code, observes) in asked.drain(..) {
                        let answer = match code {
                            Code::GET | Code::FETCH => Answer::new(Code::CONTENT, &[]).with_body(&self.body),
                            _ => Answer::new(Code::CHANGED, &[]),
                        };
                        let observer = self.server.accept_observer(self.now, id, &answer).unwrap();
                        assert_eq!(observer.is_some(), observes);
                        self.observer = self.observer.or(observer);
                    }
                }
            }
        }
    }

    fn answer(&mut self, ask: &ClientRequest<'_>) -> Result<(Code, Vec<u8>), RequestFailure> {
        self.client.request(self.now, NEAR, ask).unwrap();
        self.run();
        self.answers.pop_front().unwrap()
    }

    /// How many datagrams of this sender have this option.
    fn have(&self, from: u8, number: u16) -> usize {
        let of = self.left.iter().filter(|(sender, _)| *sender == from);
        of.filter(|(_, datagram)| Message::parse(datagram).unwrap().option(number).is_some()).count()
    }
}

#[test]
fn what_a_proxy_cuts_is_put_together_both_ways_and_carried_out_once() {
    for size in [BlockSize::B16, BlockSize::B64, BlockSize::B512, BlockSize::B1024] {
        let mut world = World::new(size);
        let large = world.body.clone();
        let put = ClientRequest::new(Code::PUT, &PATH).with_body(&large);
        assert_eq!(world.answer(&put), Ok((Code::CHANGED, Vec::new())), "{size:?}");
        assert!(world.have(FAR, number::BLOCK1) >= 5, "{size:?}");
        assert_eq!(world.answer(&ClientRequest::new(Code::GET, &PATH)), Ok((Code::CONTENT, large.clone())), "{size:?}");
        // The proxy's blocks are seen on both sides of it, and the ends' own are not.
        assert!(world.have(SERVER, number::BLOCK2) >= 5 && world.have(NEAR, number::BLOCK2) >= 5, "{size:?}");
        assert_eq!(world.seen, [(Code::PUT, large), (Code::GET, Vec::new())], "{size:?}");
        let fetched = ClientRequest::new(Code::FETCH, &PATH).with_body(b"what");
        assert_eq!(world.answer(&fetched).unwrap().1, world.body, "{size:?}");
    }
}

#[test]
fn an_observation_goes_through_who_cuts_it() {
    let mut world = World::new(BlockSize::B64);
    let state = |number: u8| vec![number; 300];
    world.body = state(0);
    assert_eq!(world.answer(&ClientRequest::new(Code::GET, &PATH).observing()), Ok((Code::CONTENT, state(0))));
    for number in 1..4 {
        world.now = Instant::from_micros(world.now.as_micros() + 5_000_000);
        let answer = state(number);
        let answer = Answer { kind: Some(Kind::NonConfirmable), ..Answer::new(Code::CONTENT, &[]).with_body(&answer) };
        world.server.notify(world.now, world.observer.unwrap(), &answer).unwrap();
        world.run();
        assert_eq!(world.answers.pop_front(), Some(Ok((Code::CONTENT, state(number)))));
    }
    // Notifications leave in the blocks that the proxy wished for when it registered, as the first answer did.
    let of_server = world.left.iter().filter(|(from, _)| *from == SERVER);
    let payloads = of_server.map(|(_, datagram)| Message::parse(datagram).unwrap().payload().len());
    assert!(payloads.clone().all(|length| length <= 64), "{:?}", payloads.max());
    assert_eq!(world.have(SERVER, number::BLOCK2), 4 * 5);
    // And what is longer than a block of the server's.
    world.now = Instant::from_micros(world.now.as_micros() + 5_000_000);
    world.body = vec![9; 3_000];
    let answer = world.body.clone();
    let answer = Answer { kind: Some(Kind::NonConfirmable), ..Answer::new(Code::CONTENT, &[]).with_body(&answer) };
    world.server.notify(world.now, world.observer.unwrap(), &answer).unwrap();
    world.run();
    assert_eq!(world.answers.pop_front(), Some(Ok((Code::CONTENT, world.body.clone()))));
    assert_eq!(world.answers, []);
}

/// A request with its body.
type Asked = (RequestId, Vec<u8>);

/// What a stack sends until it is drained, and the requests that its application got.
fn said(stack: &mut One, now: Instant) -> (Vec<Vec<u8>>, Vec<Asked>, Vec<RequestFailure>) {
    let (mut datagrams, mut requests, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        match stack.poll(now) {
            Output::Transmit(transmit) => datagrams.push(transmit.bytes.to_vec()),
            Output::Event(Event::Request { id, body, .. }) => requests.push((id, body.into_owned())),
            Output::Event(Event::Failed { why, .. }) => failed.push(why),
            Output::Event(Event::Answer { .. }) => panic!("an answer that nobody protected"),
            Output::Event(_) | Output::Trace(_) => {}
            _ => return (datagrams, requests, failed),
        }
    }
}

/// The request of a client that puts so many bytes, as one message.
fn request(client: &mut One, body: &[u8]) -> Vec<u8> {
    client.request(Instant::ORIGIN, NEAR, &ClientRequest::new(Code::PUT, &PATH).with_body(body)).unwrap();
    said(client, Instant::ORIGIN).0.remove(0)
}

/// A block of a message, as a proxy sends it.
fn block(of: &[u8], id: u16, (option, block): (u16, Block), payload: &[u8]) -> Vec<u8> {
    let of = Message::parse(of).unwrap();
    let value = block.value();
    let mut options: Vec<_> = of.options().map(|option| (option.number, option.value)).collect();
    options.push((option, value.as_bytes()));
    options.sort_by_key(|(number, _)| *number);
    let mut bytes = Vec::new();
    let token = Token::new(&id.to_be_bytes()).unwrap();
    let mut writer = match of.code.is_request() {
        true => Writer::start(&mut bytes, Kind::Confirmable, of.code, MessageId(id), token),
        false => Writer::start(&mut bytes, of.kind, of.code, of.id, of.token),
    };
    for (number, value) in options {
        writer.option(number, value).unwrap();
    }
    writer.payload(payload).unwrap();
    writer.finish().unwrap();
    bytes
}

fn blocks(payload: &[u8], first_id: u16, of: &[u8]) -> Vec<Vec<u8>> {
    let last = payload.chunks(64).count() - 1;
    let numbered = payload.chunks(64).enumerate();
    numbered
        .map(|(number, part)| {
            let one = Block { number: number as u32, more: number < last, size: BlockSize::B64 };
            block(of, first_id + number as u16, (number::BLOCK1, one), part)
        })
        .collect()
}

/// The one answer to each datagram: its code and its payload.
fn answers(server: &mut One, datagrams: &[Vec<u8>]) -> Vec<(Code, String)> {
    let answer = |datagram: &Vec<u8>| {
        server.receive(Instant::ORIGIN, FAR, datagram);
        let (mut datagrams, requests, _) = said(server, Instant::ORIGIN);
        for (id, _) in requests {
            server.answer(Instant::ORIGIN, id, &Answer::new(Code::CHANGED, &[])).unwrap();
            datagrams.extend(said(server, Instant::ORIGIN).0);
        }
        let message = Message::parse(&datagrams[0]).unwrap();
        assert_eq!(datagrams.len(), 1);
        (message.code, String::from_utf8_lossy(message.payload()).into_owned())
    };
    datagrams.iter().map(answer).collect()
}

#[test]
fn a_server_takes_what_is_authentic_as_a_whole_once() {
    let (mut client, mut server) = (client(), server(Config::default()));
    let sent = request(&mut client, &[7; 200]);
    let payload = Message::parse(&sent).unwrap().payload().to_vec();
    let other = request(&mut super::outer::client(), &[8; 200]);
    let others = Message::parse(&other).unwrap().payload().to_vec();
    let refused = |words: &str, code| Some((code, words.to_owned()));

    // With a block of somebody else's, or one that was changed, it is nobody's.
    let mut mixed = payload.clone();
    mixed[64..128].copy_from_slice(&others[64..128]);
    let said = answers(&mut server, &blocks(&mixed, 100, &sent));
    assert!(said[..3].iter().all(|(code, _)| *code == Code::CONTINUE), "{said:?}");
    assert_eq!(said.last().cloned(), refused("Decryption failed", Code::BAD_REQUEST));
    // A block without those before it.
    let all = blocks(&payload, 200, &sent);
    assert_eq!(answers(&mut server, &blocks(&payload, 150, &sent)[2..3])[0].0, Code::REQUEST_ENTITY_INCOMPLETE);

    let said = answers(&mut server, &all);
    assert_eq!(said.last().map(|(code, _)| *code), Some(Code::CHANGED));
    // The last one again in a message of its own gets the same answer, and the whole again none.
    let last = blocks(&payload, 300, &sent).pop().unwrap();
    assert_eq!(answers(&mut server, &[last])[0], said[3]);
    let again = answers(&mut server, &blocks(&payload, 400, &sent));
    assert_eq!(again.last().cloned(), refused("Replay detected", Code::UNAUTHORIZED));
    // Of an answer that was not kept no block is made anew.
    let later = Block { number: 3, more: false, size: BlockSize::B64 };
    let mut later_one = stack(endpoint(0).protected_by(stored(&CLIENT, 100)), Config::default());
    let unknown = request(&mut later_one, b"unknown");
    let later = block(&unknown, 500, (number::BLOCK2, later), b"");
    assert_eq!(answers(&mut server, &[later])[0].0, Code::REQUEST_ENTITY_INCOMPLETE);
}

#[test]
fn the_last_block_again_is_not_refused_while_the_application_has_it() {
    let (mut client, mut server) = (client(), server(Config::default()));
    let sent = request(&mut client, &[7; 100]);
    let payload = Message::parse(&sent).unwrap().payload().to_vec();
    let mut asked = Vec::new();
    for datagram in blocks(&payload, 100, &sent).iter().chain(blocks(&payload, 200, &sent).last()) {
        server.receive(Instant::ORIGIN, FAR, datagram);
        let (datagrams, requests, _) = said(&mut server, Instant::ORIGIN);
        assert!(datagrams.iter().all(|one| Message::parse(one).unwrap().code == Code::CONTINUE));
        asked.extend(requests);
    }
    let [(id, body)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(body, &[7; 100]);
    server.answer(Instant::ORIGIN, *id, &Answer::new(Code::CHANGED, &[])).unwrap();
    let answer = said(&mut server, Instant::ORIGIN).0.remove(0);
    let answer = Message::parse(&answer).unwrap();
    // It says which block it answers.
    assert_eq!((answer.code, answer.option(number::BLOCK1)), (Code::CHANGED, Some(&[0x12][..])));
}

/// One that the application never answers gives way to others at last, and nobody waits for its answer then.
#[test]
fn the_last_block_again_is_refused_once_its_request_has_given_way() {
    let limits = millpond_coap::Limits { requests: 2, ..Default::default() };
    let config = millpond_coap::Config { limits, ..Default::default() };
    let crowded = Endpoint::new(config, Preset::RFC7252.build(), ChanceSeed::new(1), 3, IdGenerator::counted());
    let mut server = stack(crowded.unwrap().protected_by(stored(&CLIENT.mirrored(), 0)), Config::default());
    let sent = request(&mut client(), &[7; 100]);
    let another = request(&mut stack(endpoint(0).protected_by(stored(&CLIENT, 100)), Config::default()), b"another");
    let payload = Message::parse(&sent).unwrap().payload().to_vec();
    let mut send = |seconds: u64, datagram: &[u8]| {
        let now = Instant::from_micros(seconds * 1_000_000);
        server.receive(now, FAR, datagram);
        let (datagrams, requests, _) = said(&mut server, now);
        let codes = datagrams.iter().map(|one| Message::parse(one).unwrap().code).filter(|code| *code != Code::EMPTY);
        (codes.collect::<Vec<_>>(), requests.len())
    };
    let [first, last] = &blocks(&payload, 100, &sent)[..] else { panic!("two blocks") };
    assert_eq!(send(0, first), (vec![Code::CONTINUE], 0));
    assert_eq!(send(0, last), (vec![], 1));
    let last = |id| blocks(&payload, id, &sent).pop().unwrap();
    assert_eq!(send(200, &last(200)), (vec![], 0));
    assert_eq!(send(240, &another), (vec![], 1));
    for (seconds, id) in [(260, 300), (270, 400)] {
        assert_eq!(send(seconds, &last(id)), (vec![Code::REQUEST_ENTITY_INCOMPLETE], 0));
    }
}

#[test]
fn blocks_that_never_end_cost_a_server_a_bounded_memory() {
    let mut server = server(Config::default());
    let sent = request(&mut client(), &[7; 100]);
    let mut refused = None;
    let before = server.memory();
    for number in 0..1_100_u32 {
        let one = Block { number, more: true, size: BlockSize::B64 };
        let datagram = block(&sent, number as u16, (number::BLOCK1, one), &[1; 64]);
        let (code, _) = answers(&mut server, &[datagram]).remove(0);
        if code != Code::CONTINUE {
            refused = Some((number, code));
            break;
        }
    }
    let (number, code) = refused.expect("a bound");
    assert_eq!(code, Code::REQUEST_ENTITY_TOO_LARGE);
    assert!((1_000..1_024).contains(&number), "{number}");
    // Each peer has so many that are not whole, and all of them so many bytes.
    let limits = Limits { bodies: 100_000, ..Limits::DEFAULT };
    let mut server = super::outer::server(Config { limits, ..Config::default() });
    for from in 0..200_u8 {
        let sent = request(&mut client(), &[from; 2]);
        let one = Block { number: 0, more: true, size: BlockSize::B1024 };
        let datagram = block(&sent, 7, (number::BLOCK1, one), &[1; 1_024]);
        server.receive(Instant::ORIGIN, from, &datagram);
        said(&mut server, Instant::ORIGIN);
    }
    assert!(server.memory() < before + 400_000, "{} {before}", server.memory());
}

/// Nobody has shown anything, and it is told how long the requests were.
#[derive(Debug)]
struct Nobody(Arc<Mutex<Vec<usize>>>);

impl Validation<u8> for Nobody {
    fn address_validation(&mut self, _: Instant, _: u8, _: Option<&[u8]>, request: usize) -> AddressValidation {
        self.0.lock().unwrap().push(request);
        AddressValidation::Unvalidated(Limit::of(request, AROUND_IPV4))
    }

    fn echo(&mut self, _: Instant, _: u8) -> Option<[u8; ECHO_LENGTH]> {
        Some([7; ECHO_LENGTH])
    }
}

#[test]
fn an_unvalidated_address_gets_no_more_than_for_the_message_that_it_sent_last() {
    let mut server = server(Config::default());
    let lengths = Arc::new(Mutex::new(Vec::new()));
    server.validate_by(Nobody(Arc::clone(&lengths)));
    let sent = request(&mut client(), &[7; 900]);
    let all = blocks(Message::parse(&sent).unwrap().payload(), 100, &sent);
    let (last, before) = all.split_last().unwrap();
    answers(&mut server, before);
    server.receive(Instant::ORIGIN, FAR, last);
    let (_, requests, _) = said(&mut server, Instant::ORIGIN);
    let long = Answer::new(Code::CONTENT, &[]).with_body(&[8; 900]);
    server.answer(Instant::ORIGIN, requests[0].0, &long).unwrap();
    let answer = said(&mut server, Instant::ORIGIN).0.remove(0);
    assert!(answer.len() < 3 * (last.len() + usize::from(AROUND_IPV4)) && answer.len() < 300, "{}", answer.len());
    let longest = all.iter().map(Vec::len).max().unwrap();
    assert!(lengths.lock().unwrap().iter().all(|length| *length <= longest));
}

/// A client that asked, and what it does with these answers to each of its requests.
fn client_fails(answer: impl Fn(u32, &Message<'_>) -> Vec<u8>) -> (RequestFailure, u32) {
    let mut client = client();
    client.request(Instant::ORIGIN, NEAR, &ClientRequest::new(Code::GET, &PATH)).unwrap();
    let mut number = 0;
    loop {
        let (mut datagrams, _, mut failed) = said(&mut client, Instant::ORIGIN);
        if let Some(why) = failed.pop() {
            assert_eq!(client.requests(), 0);
            return (why, number);
        }
        let asked = datagrams.remove(0);
        let asked = Message::parse(&asked).unwrap();
        // Of the same message, and without what the server would take for another one.
        assert!(asked.option(number::OSCORE).is_some() && (number == 0 || asked.payload().is_empty()));
        client.receive(Instant::ORIGIN, NEAR, &answer(number, &asked));
        number += 1;
    }
}

/// A block of what nobody protected.
fn forged(asked: &Message<'_>, oscore: bool, one: Option<Block>, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, Kind::Acknowledgement, Code::CHANGED, asked.id, asked.token);
    if oscore {
        writer.option(number::OSCORE, &[]).unwrap();
    }
    if let Some(one) = one {
        writer.option(number::BLOCK2, one.value().as_bytes()).unwrap();
    }
    writer.payload(payload).unwrap();
    writer.finish().unwrap();
    bytes
}

#[test]
fn a_client_takes_no_answer_that_is_not_authentic_as_a_whole() {
    let one = |number, more| Some(Block { number, more, size: BlockSize::B64 });
    let never_ending = |number, asked: &Message<'_>| forged(asked, true, one(number, true), &[1; 64]);
    let (why, asked) = client_fails(never_ending);
    assert!(matches!(why, RequestFailure::Download(DownloadError::TooLarge { .. })), "{why:?}");
    assert!((1_000..=1_024).contains(&asked), "{asked}");

    let ends = |number, asked: &Message<'_>| forged(asked, true, one(number, number < 3), &[1; 64]);
    assert_eq!(client_fails(ends), (RequestFailure::Protection(ResponseFault::DecryptionFailed), 4));
    let in_the_clear = |number, asked: &Message<'_>| forged(asked, number < 2, one(number, true), &[1; 64]);
    let fault = ResponseFault::NotProtected(Code::CHANGED);
    assert_eq!(client_fails(in_the_clear), (RequestFailure::Protection(fault), 3));
    let out_of_order = |number, asked: &Message<'_>| forged(asked, true, one(number * 2, true), &[1; 64]);
    let (why, _) = client_fails(out_of_order);
    assert!(matches!(why, RequestFailure::Download(DownloadError::OutOfOrder { .. })), "{why:?}");
}

#[test]
fn a_request_that_is_cancelled_while_its_answer_is_put_together_is_over() {
    let mut client = client();
    let now = Instant::ORIGIN;
    let name = client.request(now, NEAR, &ClientRequest::new(Code::GET, &PATH)).unwrap();
    let asked = said(&mut client, now).0.remove(0);
    let one = Block { number: 0, more: true, size: BlockSize::B64 };
    client.receive(now, NEAR, &forged(&Message::parse(&asked).unwrap(), true, Some(one), &[1; 64]));
    let next = said(&mut client, now).0.remove(0);
    assert!(client.cancel(now, name));
    assert_eq!(said(&mut client, now).2, [RequestFailure::Cancelled]);
    let last = Block { number: 1, more: false, size: BlockSize::B64 };
    client.receive(now, NEAR, &forged(&Message::parse(&next).unwrap(), true, Some(last), b"late"));
    let (datagrams, _, failed) = said(&mut client, now);
    assert_eq!((datagrams.len(), failed.len(), client.requests()), (0, 0, 0));
}
