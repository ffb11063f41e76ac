//! Two stacks over a stream all of whose messages are protected.

use millpond_coap::block::BlockSize;
use millpond_coap::message::{Code, Message, is_of_transfer, number};
use millpond_coap::oscore::{Parameters, ResponseFault};
use millpond_coap::stream::{Connection, Options};
use millpond_coap::transfer::{Answer, ClientRequest, CoapStack, Config, Event, Gone, ObserverId, RequestFailure};
use millpond_coap::{Output, RequestId};
use millpond_control::Instant;

use super::messages::CLIENT;
use super::stacks::stored;

const NOW: Instant = Instant::ORIGIN;
const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"secret-path")];

/// A client and a server, and all bytes that went between them.
struct Pair {
    stacks: [CoapStack<Connection>; 2],
    bytes: Vec<u8>,
    answers: Vec<(Code, Vec<u8>, bool)>,
    failed: Vec<RequestFailure>,
    requests: Vec<(RequestId, Vec<u8>, bool)>,
    /// Code and options of what came last, but for what a stack has of its own.
    head: (Code, Vec<(u16, Vec<u8>)>),
    gone: Vec<Gone>,
}

impl Pair {
    fn of(connections: [Connection; 2]) -> Self {
        let stack = |connection| {
            let limits = millpond_coap::transfer::Limits { body: 1 << 20, ..Config::STREAM.limits };
            CoapStack::over_stream(connection, Config { limits, ..Config::STREAM })
        };
        let stacks = connections.map(stack);
        let (answers, failed, requests, gone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let head = (Code::EMPTY, Vec::new());
        let mut pair = Self { stacks, bytes: Vec::new(), answers, failed, requests, head, gone };
        // Their settings.
        pair.run();
        pair
    }

    fn new() -> Self {
        Self::taking(65_536)
    }

    /// Both take messages of so many bytes.
    fn taking(max_message_size: u32) -> Self {
        let connection = || Connection::new(Options { max_message_size, ..Options::default() });
        let (client, server) = (stored(&CLIENT, 0), stored(&CLIENT.mirrored(), 0));
        Self::of([connection().protected_by(client), connection().protected_by(server)])
    }

    fn run(&mut self) {
        let mut is_quiet = false;
        while !std::mem::replace(&mut is_quiet, true) {
            for side in 0..2 {
                let mut left = Vec::new();
                loop {
                    match self.stacks[side].poll(NOW) {
                        Output::Transmit(transmit) => left.extend_from_slice(transmit.bytes),
                        Output::Event(Event::Answer { message, body, goes_on, .. }) => {
                            self.head = head(&message);
                            self.answers.push((message.code, body.into_owned(), goes_on));
                        }
                        Output::Event(Event::Failed { why, .. }) => self.failed.push(why),
                        Output::Event(Event::Request { id, message, body, wants_to_observe, .. }) => {
                            self.head = head(&message);
                            self.requests.push((id, body.into_owned(), wants_to_observe));
                        }
                        Output::Event(Event::ObserverGone { why, .. }) => self.gone.push(why),
                        Output::Event(event) => panic!("{event:?}"),
                        Output::Trace(_) => {}
                        Output::Close(why) => panic!("{why:?}"),
                        Output::Sleep(..) | Output::Idle => break,
                    }
                }
                if !left.is_empty() {
                    self.bytes.extend_from_slice(&left);
                    self.stacks[1 - side].receive(NOW, &left);
                    is_quiet = false;
                }
            }
        }
    }

    fn ask(&mut self, ask: &ClientRequest<'_>) {
        self.stacks[0].request(NOW, (), ask).unwrap();
        self.run();
    }

    fn answer(&mut self, body: &[u8]) {
        let (request, ..) = self.requests.pop().unwrap();
        self.stacks[1].answer(NOW, request, &Answer::new(Code::CONTENT, &[]).with_body(body)).unwrap();
        self.run();
    }

    fn is_seen(&self, part: &[u8]) -> bool {
        self.bytes.windows(part.len()).any(|window| window == part)
    }
}

fn head(message: &Message<'_>) -> (Code, Vec<(u16, Vec<u8>)>) {
    let options = message.options().filter(|option| !is_of_transfer(option.number));
    (message.code, options.map(|option| (option.number, option.value.to_vec())).collect())
}

fn lent(options: &[(u16, Vec<u8>)]) -> Vec<(u16, &[u8])> {
    options.iter().map(|(number, value)| (*number, &value[..])).collect()
}

/// A proxy that knows no OSCORE has one stream to the client and another to the server, which takes short messages.
#[test]
fn what_a_proxy_cuts_is_put_together_both_ways() {
    let connection = |max_message_size| Connection::new(Options { max_message_size, ..Options::default() });
    for early in [None, Some(BlockSize::B64), Some(BlockSize::B1024)] {
        let mut near = Pair::of([connection(65_536).protected_by(stored(&CLIENT, 0)), connection(65_536)]);
        let server = connection(1_152).protected_by(stored(&CLIENT.mirrored(), 0));
        let mut far = Pair::of([connection(65_536), server]);
        for (length, method) in [(5_000, Code::PUT), (3_000, Code::FETCH), (20_000, Code::POST)] {
            let body: Vec<u8> = (0..length).map(|at: u32| (at / 7) as u8).collect();
            near.ask(&ClientRequest::new(method, &PATH).with_body(&body));
            let (asked, protected, _) = near.requests.pop().unwrap();
            let (code, options) = near.head.clone();
            assert!(protected.len() > body.len());
            let options = lent(&options);
            far.ask(&ClientRequest { early, ..ClientRequest::new(code, &options).with_body(&protected) });
            assert_eq!((far.requests.len(), &far.requests[0].1, far.head.0), (1, &body, method));
            far.answer(&body);
            let (code, protected, _) = far.answers.pop().unwrap();
            let options = far.head.1.clone();
            let answer = lent(&options);
            near.stacks[1].answer(NOW, asked, &Answer::new(code, &answer).with_body(&protected)).unwrap();
            near.run();
            assert_eq!(near.answers.pop(), Some((Code::CONTENT, body, false)), "{early:?} {length} {:?}", near.failed);
        }
        assert!(!far.is_seen(b"secret-path"));
        // What is asked for in blocks leaves in blocks, of which all but the first come from what is kept.
        assert_eq!(far.stacks[1].counters().served > 0, early.is_some(), "{early:?}");
    }
}

#[test]
fn bodies_of_every_length_go_both_ways_and_nothing_of_them_is_seen() {
    let lengths = [0, 1_000, 64_400, 65_500, 70_000, 300_000];
    for (length, most) in lengths.into_iter().flat_map(|length| [(length, 1_152), (length, 65_536), (length, 1 << 20)])
    {
        let body: Vec<u8> = (0..length).map(|at: u32| (at / 7) as u8).collect();
        let mut pair = Pair::taking(most);
        pair.ask(&ClientRequest::new(Code::FETCH, &PATH).with_body(&body));
        assert_eq!(pair.requests[0].1, body, "{length}");
        pair.answer(&body);
        assert_eq!(pair.answers, [(Code::CONTENT, body.clone(), false)], "{length}");
        assert!(!pair.is_seen(b"secret-path"));
        assert!(length < 100 || !pair.is_seen(&body[50..100]));
    }
}

#[test]
fn notifications_go_on_until_the_client_ends_them() {
    let mut pair = Pair::new();
    pair.ask(&ClientRequest::new(Code::GET, &PATH).observing());
    let (request, _, wants_to_observe) = pair.requests.pop().unwrap();
    assert!(wants_to_observe);
    let answer = |body| Answer::new(Code::CONTENT, &[]).with_body(body);
    let observer: ObserverId = pair.stacks[1].accept_observer(NOW, request, &answer(b"0")).unwrap().unwrap();
    pair.run();
    for body in [b"1", b"2", b"3"] {
        pair.stacks[1].notify(NOW, observer, &answer(body)).unwrap();
        pair.run();
    }
    let taken: Vec<_> = pair.answers.iter().map(|(_, body, goes_on)| (&body[..], *goes_on)).collect();
    assert_eq!(taken, [(&b"0"[..], true), (b"1", true), (b"2", true), (b"3", true)]);
    pair.stacks[1].notify(NOW, observer, &Answer::new(Code::NOT_FOUND, &[])).unwrap();
    pair.run();
    assert_eq!(pair.answers.last(), Some(&(Code::NOT_FOUND, Vec::new(), false)));
    assert_eq!(pair.stacks[1].observers(), 0);
}

#[test]
fn what_is_not_protected_or_of_another_context_is_refused() {
    let connection = || Connection::new(Options::default());
    let other = Parameters { sender_id: &[9], ..CLIENT };
    for client in [connection(), connection().protected_by(stored(&other, 0))] {
        let mut pair = Pair::of([client, connection().protected_by(stored(&CLIENT.mirrored(), 0))]);
        pair.ask(&ClientRequest::new(Code::GET, &PATH));
        assert!(pair.requests.is_empty());
        match &pair.failed[..] {
            [] => assert_eq!(pair.answers, [(Code::UNAUTHORIZED, b"OSCORE required".to_vec(), false)]),
            failed => {
                assert_eq!(failed, [RequestFailure::Protection(ResponseFault::NotProtected(Code::UNAUTHORIZED))]);
            }
        }
    }
}
