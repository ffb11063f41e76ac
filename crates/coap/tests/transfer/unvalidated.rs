//! What an address gets that has not shown that it receives what is sent there (RFC 9175 §2.4): every kind of answer is
//! weighed here, in bytes on the wire.

use std::collections::VecDeque;

use millpond_coap::Output;
use millpond_coap::block::robust::BurstParameters;
use millpond_coap::message::{Code, Kind, Message, number};
use millpond_coap::transfer::{
    ALWAYS, AddressValidation, Answer, ClientRequest, CoapStack, Config, ECHO_LENGTH, Event, FACTOR, Limit, ObserverId,
    Validation,
};
use millpond_coap::{Endpoint, IdGenerator, RequestId};
use millpond_control::{ChanceSeed, Instant, Preset};

use crate::pair::{Pair, SECOND, SERVER, Told, body, get};

const PEER: u8 = 9;
/// Bytes around CoAP: Ethernet, IPv6 and UDP.
const AROUND: usize = 62;
const ECHO: [u8; ECHO_LENGTH] = [7; ECHO_LENGTH];

/// Who brings the value is validated; who is remembered need not.
#[derive(Debug)]
struct Known {
    remembers: bool,
}

impl Validation<u8> for Known {
    fn address_validation(&mut self, _: Instant, _: u8, echoed: Option<&[u8]>, request: usize) -> AddressValidation {
        match echoed == Some(&ECHO) {
            true => AddressValidation::Validated,
            false if self.remembers => AddressValidation::Remembered,
            false => AddressValidation::Unvalidated(Limit::of(request, AROUND as u8)),
        }
    }

    fn echo(&mut self, _: Instant, _: u8) -> Option<[u8; ECHO_LENGTH]> {
        Some(ECHO)
    }
}

/// A server that is asked from a forged address, and what comes and goes there.
struct Server {
    stack: CoapStack<Endpoint<u8>>,
    now: u64,
    came: usize,
    sent: Vec<Vec<u8>>,
    asked: VecDeque<RequestId>,
}

impl Server {
    fn new(remembers: bool) -> Self {
        let chance = ChanceSeed::new(1);
        let endpoint = millpond_coap::Config { longest_token: 300, ..Default::default() };
        let endpoint = Endpoint::new(endpoint, Preset::RFC7252.build(), chance, 0, IdGenerator::counted()).unwrap();
        let config = Config { q_block: Some(BurstParameters::RFC9177), ..Config::DEFAULT };
        let mut stack = CoapStack::new(endpoint, config, chance).unwrap();
        stack.validate_by(Known { remembers });
        Self { stack, now: 0, came: 0, sent: Vec::new(), asked: VecDeque::new() }
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    /// Takes what the stack says; when it wants to be asked again.
    fn drain(&mut self) -> Option<u64> {
        let now = self.now();
        loop {
            match self.stack.poll(now) {
                Output::Transmit(transmit) => self.sent.push(transmit.bytes.to_vec()),
                Output::Event(Event::Request { id, .. }) => self.asked.push_back(id),
                Output::Event(_) | Output::Trace(_) => {}
                Output::Sleep(until, _) => return Some(until.as_micros()),
                Output::Idle => return None,
                Output::Close(never) => match never {},
            }
        }
    }

    fn take(&mut self, datagram: &[u8]) {
        self.came += datagram.len() + AROUND;
        self.stack.receive(self.now(), PEER, datagram);
        self.drain();
    }

    fn wait(&mut self, seconds: u64) {
        let end = self.now + seconds * SECOND;
        while let Some(next) = self.drain().filter(|next| *next <= end) {
            self.now = next;
        }
        self.now = end;
        self.drain();
    }

    fn answer(&mut self, code: Code, options: &[(u16, &[u8])], body: &[u8]) {
        let id = self.asked.pop_front().unwrap();
        self.stack.answer(self.now(), id, &Answer::new(code, options).with_body(body)).unwrap();
        self.drain();
    }

    fn content(&mut self, length: usize) {
        self.answer(Code::CONTENT, &[(number::CONTENT_FORMAT, b"\x2a")], &body(length));
    }

    fn accept(&mut self, length: usize) -> Option<ObserverId> {
        let (id, body) = (self.asked.pop_front().unwrap(), body(length));
        let observer =
            self.stack.accept_observer(self.now(), id, &Answer::new(Code::CONTENT, &[]).with_body(&body)).unwrap();
        self.drain();
        observer
    }

    fn notify(&mut self, observer: ObserverId, length: usize) {
        let state = body(length);
        self.stack.notify(self.now(), observer, &Answer::new(Code::CONTENT, &[]).with_body(&state)).unwrap();
        self.drain();
    }

    fn went(&self) -> usize {
        self.sent.iter().map(|datagram| datagram.len() + AROUND).sum()
    }

    fn last(&self) -> Message<'_> {
        Message::parse_extended(self.sent.last().unwrap()).unwrap().0
    }

    /// An empty message about the last one, with this first byte: 0x60 is an acknowledgement, 0x70 a reset.
    fn about_last(&self, first: u8) -> [u8; 4] {
        let id = self.last().id.0.to_be_bytes();
        [first, 0, id[0], id[1]]
    }

    /// What came and went so far does not count.
    fn forget(&mut self) {
        self.came = 0;
        self.sent.clear();
    }
}

const GET: &[u8] = b"\x41\x01\x00\x01t\xb5hello";
const NON: &[u8] = b"\x51\x01\x00\x01t\xb5hello";
const OBSERVE: &[u8] = b"\x41\x01\x00\x01t\x60\x55hello";
/// Blocks of 1024 bytes in a burst.
const BURST: &[u8] = b"\x51\x01\x00\x01t\xb5hello\xd1\x07\x0e";

/// A GET with these options behind its path.
fn with(id: u8, options: &[u8]) -> Vec<u8> {
    [b"\x41\x01\x00", &[id][..], b"t\xb5hello", options].concat()
}

fn echoed(id: u8) -> Vec<u8> {
    with(id, &[b"\xdc\xe4", &ECHO[..]].concat())
}

/// What makes an answer of one kind.
type Make = fn(&mut Server);

/// Every kind of answer, each by what makes it.
const KINDS: &[(&str, Make)] = &[
    ("the shortest request, of 4 bytes, and a long answer", |server| {
        server.take(b"\x40\x01\x00\x01");
        server.content(5_000);
        assert_eq!(server.last().option(number::BLOCK2), Some(&b"\x0a"[..]), "the first 64 bytes");
        assert_eq!(server.last().payload().len(), 64);
    }),
    ("a short answer", |server| {
        server.take(GET);
        server.content(20);
        assert_eq!(server.last().option(number::ECHO), None, "nothing is asked that need not be");
    }),
    ("a long answer", |server| {
        server.take(GET);
        server.content(5_000);
        let answer = server.last();
        assert_eq!((answer.code, answer.option(number::ECHO)), (Code::CONTENT, Some(&ECHO[..])));
        assert_eq!(answer.payload().len(), 128, "as long as may be");
    }),
    ("a short answer on a token of 9 bytes", |server| {
        server.take(b"\x49\x01\x00\x01ninebytes\xb5hello");
        server.content(100);
        assert_eq!((server.last().payload().len(), server.last().token.len()), (100, 9));
    }),
    ("a long answer on a token of 9 bytes", |server| {
        server.take(b"\x49\x01\x00\x01ninebytes\xb5hello");
        server.content(5_000);
        assert_eq!((server.last().payload().len(), server.last().token.len()), (128, 9));
    }),
    ("a long answer on a token of 300 bytes", |server| {
        server.take(&[b"\x4e\x01\x00\x01\x00\x1f", &[b't'; 300][..], b"\xb5hello"].concat());
        server.content(5_000);
        assert_eq!((server.last().payload().len(), server.last().token.len()), (512, 300));
    }),
    ("a burst on a token of 13 bytes", |server| {
        server.take(b"\x5d\x01\x00\x01\x00thirteenbytes\xb5hello\xd1\x07\x0e");
        server.content(5_000);
    }),
    ("a token that is too long", |server| {
        server.take(&[b"\x4e\x01\x00\x01\x00\x20", &[b't'; 301][..], b"\xb5hello"].concat());
        assert_eq!((server.last().code, server.last().token.len()), (Code::BAD_REQUEST, 301));
    }),
    ("a long answer to a non-confirmable request", |server| {
        server.take(NON);
        server.content(5_000);
        assert_eq!(server.last().payload().len(), 128);
    }),
    ("a later block", |server| {
        server.take(GET);
        server.content(5_000);
        server.take(&with(2, b"\xc1\x12"));
        assert_eq!(server.last().payload(), &body(5_000)[64..128]);
    }),
    ("a later block that is wanted large", |server| {
        server.take(GET);
        server.content(5_000);
        server.take(&with(2, b"\xc1\x16"));
        assert_eq!(server.last().payload(), &body(5_000)[1_024..1_152]);
    }),
    ("a later block of what is kept for somebody validated", |server| {
        server.take(&echoed(1));
        server.content(5_000);
        assert_eq!(server.last().payload().len(), 1_024);
        server.forget();
        server.take(&with(2, b"\xc1\x16"));
        assert_eq!(server.last().payload(), &body(5_000)[1_024..1_152]);
    }),
    ("a later block that was forgotten", |server| {
        server.take(&with(2, b"\xc1\x12"));
        server.content(5_000);
        assert_eq!(server.last().payload(), &body(5_000)[64..128]);
    }),
    ("a block behind the end", |server| {
        server.take(&with(2, b"\xc2\x10\x02"));
        server.content(5_000);
        assert_eq!(server.last().code, Code::BAD_REQUEST);
    }),
    ("an error that says much", |server| {
        server.take(GET);
        server.answer(Code::BAD_REQUEST, &[], &[b'.'; 900]);
        assert!(server.last().code == Code::BAD_REQUEST && server.last().payload().len() > 64);
    }),
    ("an error that says much in a format", |server| {
        server.take(GET);
        server.answer(Code::BAD_REQUEST, &[(number::CONTENT_FORMAT, b"\x32")], &[b'.'; 900]);
        assert_eq!((server.last().code, server.last().payload()), (Code::BAD_REQUEST, &b""[..]));
    }),
    ("an answer whose options are too long", |server| {
        server.take(GET);
        server.answer(Code::CREATED, &[(number::LOCATION_PATH, &[b'.'; 250])], &[]);
        assert_eq!((server.last().code, server.last().option(number::ECHO)), (Code::UNAUTHORIZED, Some(&ECHO[..])));
    }),
    ("a late answer", |server| {
        server.take(GET);
        server.wait(1);
        server.content(20);
        server.wait(400);
        assert_eq!(server.sent.len(), 2, "an acknowledgement, and the answer once");
    }),
    ("a late answer to a longer request", |server| {
        server.take(&with(1, b"\x04room\x48sensor=7"));
        server.wait(1);
        server.content(3);
        server.wait(400);
        assert_eq!(server.sent.len(), 3, "twice");
    }),
    ("a late answer that is long", |server| {
        server.take(GET);
        server.wait(1);
        server.content(5_000);
        server.wait(400);
        assert_eq!(server.last().payload().len(), 32);
    }),
    ("a registration and a notification that nobody acknowledges", |server| {
        server.take(OBSERVE);
        let observer = server.accept(4).unwrap();
        server.notify(observer, 4);
        server.wait(400);
        assert_eq!(server.stack.observers(), 0);
    }),
    ("an observation of what is long", |server| {
        server.take(OBSERVE);
        let observer = server.accept(5_000).unwrap();
        server.notify(observer, 5_000);
        server.wait(400);
    }),
    ("notifications that are acknowledged", |server| {
        server.take(OBSERVE);
        let observer = server.accept(4).unwrap();
        for _ in 0..5 {
            server.notify(observer, 500);
            let id = server.last().id.0.to_be_bytes();
            server.take(&[0x60, 0, id[0], id[1]]);
            server.wait(5);
        }
        assert_eq!(server.stack.observers(), 1);
    }),
    ("an answer to a group", |server| {
        server.came += NON.len() + AROUND;
        server.stack.receive_by_group(server.now(), PEER, NON);
        server.drain();
        server.content(5_000);
        server.wait(10);
        let answer = server.last();
        assert_eq!((answer.payload().len(), answer.option(number::ECHO)), (128, None));
    }),
    ("a body that goes on", |server| {
        let request = [&b"\x41\x02\x00\x01t\xb5hello\xd1\x03\x0a\xff"[..], &[b'.'; 64]].concat();
        server.take(&request);
        assert_eq!(server.last().code, Code::CONTINUE);
    }),
    ("a block option of a wrong length", |server| {
        server.take(&with(1, b"\xc4\x00\x00\x00\x08"));
    }),
    ("copies of a request", |server| {
        server.take(GET);
        server.content(5_000);
        (0..4).for_each(|_| server.take(GET));
        assert_eq!(server.sent.len(), 5);
    }),
    ("a reset for a ping, and for a response that nobody waits for", |server| {
        server.take(b"\x40\x00\x00\x01");
        server.take(b"\x41\x45\x00\x02t");
        assert_eq!(server.sent.len(), 2);
    }),
    ("a burst", |server| {
        server.take(BURST);
        server.content(5_000);
        server.wait(60);
        assert_eq!((server.last().code, server.sent.len()), (Code::UNAUTHORIZED, 1));
    }),
    ("more of a burst", |server| {
        server.take(b"\x51\x01\x00\x01t\xb5hello\xd1\x07\x1e\x01\x2e");
        server.content(5_000);
        server.wait(60);
        assert_eq!((server.last().code, server.sent.len()), (Code::UNAUTHORIZED, 1));
    }),
    ("a short answer to who takes bursts", |server| {
        server.take(BURST);
        server.content(20);
        assert_eq!(server.last().code, Code::CONTENT);
    }),
    ("a body in a burst that never goes on", |server| {
        // Q-Block1 0/1/64, Size1 5000, Request-Tag.
        let head = b"\x51\x02\x00\x01t\xb5hello\x81\x0a\xd2\x1c\x13\x88\xd1\xdb\x01\xff";
        server.take(&[&head[..], &[b'.'; 64]].concat());
        server.wait(400);
    }),
    ("a whole answer to a body in pieces", |server| {
        server.stack.take_pieces(Box::new(|message| message.code == Code::POST));
        // Block1 1/0/16.
        server.take(b"\x41\x02\x00\x01t\xb5hello\xd1\x03\x10\xff................");
        server.content(5_000);
        assert_eq!(server.last().option(number::BLOCK1), Some(&b"\x10"[..]));
        // Its later blocks are not asked for in pieces, and come of what is kept.
        server.take(b"\x41\x02\x00\x02t\xb5hello\xc1\x12");
        assert!(server.asked.is_empty() && server.last().payload() == &body(5_000)[64..128]);
    }),
    ("a piece that the application has cut", |server| {
        server.stack.take_pieces(Box::new(|_| true));
        server.take(&with(1, b"\xc1\x06"));
        let id = server.asked.pop_front().unwrap();
        let (now, piece) = (server.now(), body(1_024));
        server.stack.answer(now, id, &Answer::new(Code::CONTENT, &[]).with_body(&piece).as_piece()).unwrap();
        server.drain();
        assert_eq!(server.last().code, Code::UNAUTHORIZED);
    }),
];

#[test]
fn no_kind_of_answer_brings_an_unvalidated_address_more_than_three_times_what_came() {
    assert_eq!((FACTOR, ALWAYS), (3, 136));
    for (kind, make) in KINDS {
        let mut server = Server::new(false);
        make(&mut server);
        let (came, went) = (server.came, server.went());
        let factor = went as f64 / came as f64;
        println!("{factor:4.2}  {came:4} B, {went:4} B  {kind}");
        assert!(went > 0 && went <= came * FACTOR as usize, "{kind}: {went} bytes for {came}, x {factor:.2}");
    }
}

/// Over IPv4 less is around a message, so that the shortest request draws a little more than three times its bytes.
#[test]
fn a_small_block_is_always_allowed() {
    let request = Limit::of(4, 42);
    assert_eq!(request.message(), ALWAYS as usize);
}

/// A round trip of a minute, as behind a full buffer: the acknowledgement comes long after the only copy's wait.
#[test]
fn an_observation_goes_on_if_its_first_notification_is_acknowledged_after_a_minute() {
    let mut server = Server::new(false);
    server.take(OBSERVE);
    let observer = server.accept(4).unwrap();
    server.notify(observer, 40);
    let acknowledgement = server.about_last(0x60);
    server.wait(60);
    assert_eq!((server.sent.len(), server.stack.observers()), (2, 1));
    // The newest state waits for that.
    (5..9).for_each(|length| server.notify(observer, length));
    assert_eq!(server.sent.len(), 2);
    server.take(&acknowledgement);
    assert_eq!((server.sent.len(), server.last().payload().len()), (3, 8));
    // The address is validated: what is lost is sent again.
    server.wait(10);
    let lost = Answer { kind: Some(Kind::Confirmable), ..Answer::new(Code::CONTENT, &[]) };
    server.stack.notify(server.now(), observer, &lost).unwrap();
    server.wait(400);
    assert_eq!((server.sent.len(), server.stack.observers()), (3 + 5, 0));
}

#[test]
fn an_observation_that_nobody_acknowledges_ends_when_the_last_of_all_copies_would_be_given_up() {
    let mut server = Server::new(false);
    server.take(OBSERVE);
    let observer = server.accept(4).unwrap();
    server.notify(observer, 40);
    server.wait(61);
    assert_eq!((server.sent.len(), server.stack.observers()), (2, 1));
    // MAX_TRANSMIT_WAIT.
    server.wait(33);
    assert_eq!((server.sent.len(), server.stack.observers()), (2, 0));
}

#[test]
fn a_reset_ends_an_observation_after_the_only_copys_wait() {
    let mut server = Server::new(false);
    server.take(OBSERVE);
    let observer = server.accept(4).unwrap();
    server.notify(observer, 40);
    let reset = server.about_last(0x70);
    server.wait(30);
    server.take(&reset);
    assert_eq!((server.sent.len(), server.stack.observers()), (2, 0));
}

/// It may be registered by somebody else, under all its tokens.
#[test]
fn an_unvalidated_address_gets_one_notification_until_it_acknowledges_that() {
    let register = |token: u8| [&[0x41, 1, 1, token, token][..], b"\x60\x55hello"].concat();
    for acknowledges in [false, true] {
        let mut server = Server::new(false);
        let observers: Vec<_> = (0..20)
            .map(|token| {
                server.take(&register(token));
                server.accept(4).unwrap()
            })
            .collect();
        observers.iter().for_each(|observer| server.notify(*observer, 40));
        let acknowledgement = server.about_last(0x60);
        server.wait(60);
        assert_eq!(server.sent.len(), 20 + 1);
        if acknowledges {
            server.take(&acknowledgement);
            for _ in 0..60 {
                server.wait(1);
                server.take(&server.about_last(0x60));
            }
        }
        server.wait(100);
        let (sent, left) = if acknowledges { (40, 20) } else { (21, 0) };
        assert_eq!((server.sent.len(), server.stack.observers()), (sent, left));
    }
}

/// A peer that shows with the next request that it is there gets the rest in large blocks.
#[test]
fn who_sends_the_value_back_gets_large_blocks() {
    let mut server = Server::new(false);
    server.take(GET);
    server.content(5_000);
    assert_eq!(server.last().payload().len(), 128);
    server.take(&with(2, &[&b"\xc1\x06\xdc\xd8"[..], &ECHO].concat()));
    server.content(5_000);
    assert_eq!((server.last().payload().len(), server.last().option(number::ECHO)), (1_024, None));
}

/// A burst answers requests that carry Echo. Others may be forged in the name of who is validated: each draws one block.
#[test]
fn forged_requests_in_a_validated_name_draw_a_block_each() {
    let mut server = Server::new(true);
    server.take(&[BURST, b"\xdc\xd0", &ECHO].concat());
    server.content(50_000);
    server.wait(60);
    let codes: Vec<_> = server.sent.iter().map(|sent| Message::parse(sent).unwrap().code).collect();
    assert!(server.sent.len() > 5, "a set leaves: {codes:?} asked {}", server.asked.len());
    assert!(server.last().option(number::ECHO).is_some(), "the next request is to bring it");
    server.wait(120);
    for forged in [&b"\x1e\x01\x2e\x01\x3e"[..], b"\xae", b"\xbe"] {
        server.forget();
        server.take(&[b"\x51\x01\x12", &forged[..1], b"t\xb5hello\xd1\x07", forged].concat());
        for _ in 0..server.asked.len() {
            server.content(50_000);
        }
        server.wait(60);
        assert_eq!(server.sent.len(), 1, "{forged:x?}: {:?}", server.last().code);
    }
}

/// Our client sends the value back by itself, and loses one small block by it.
#[test]
fn our_client_goes_on_with_large_blocks() {
    let mut pair = Pair::serving(5_000, millpond_coap::block::BlockSize::B1024);
    pair.stacks[1].validate_by(Known { remembers: false });
    pair.ask(&ClientRequest { ..get() });
    pair.settle();
    let told = pair.take_told(0);
    assert!(matches!(&told[..], [Told::Answer { body: got, .. }] if *got == body(5_000)), "{told:?}");
    let payloads: Vec<_> = (pair.datagrams.iter().filter(|(_, from, _)| *from == SERVER))
        .map(|(_, _, bytes)| Message::parse(bytes).unwrap().payload().len())
        .collect();
    assert_eq!(payloads, [128, 1_024, 1_024, 1_024, 1_024, 904]);
}
