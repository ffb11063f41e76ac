//! One story over datagrams and over a stream: an application is told the same.

use millpond_coap::Output;
use millpond_coap::block::{Block, BlockSize};
use millpond_coap::layer::MessageLayer;
use millpond_coap::message::{Code, number};
use millpond_coap::stream::{Connection, Options};
use millpond_coap::transfer::{Answer, ClientRequest, ClientRequestId, CoapStack, Config, Event, ObserverId, Piece};
use millpond_coap::{Endpoint, RequestId};
use millpond_control::{Instant, Span};

use crate::pair::{PATH, body, stack};

/// For a day: only registrations over datagrams are renewed.
const FRESH: (u16, &[u8]) = (number::MAX_AGE, &[0x01, 0x51, 0x80]);

/// A layer that a trial can make and feed.
trait Carried: MessageLayer {
    const PEER: Self::Peer;
    fn make(node: u32) -> CoapStack<Self>
    where
        Self: Sized;
    fn hand(stack: &mut CoapStack<Self>, now: Instant, bytes: &[u8])
    where
        Self: Sized;
}

impl Carried for Endpoint<u8> {
    const PEER: u8 = 1;
    fn make(node: u32) -> CoapStack<Self> {
        stack(node, millpond_coap::Config::default(), Config::default())
    }
    fn hand(stack: &mut CoapStack<Self>, now: Instant, bytes: &[u8]) {
        stack.receive(now, 1, bytes);
    }
}

/// Which takes no more than a datagram holds, so that bodies are cut alike.
impl Carried for Connection {
    const PEER: () = ();
    fn make(_node: u32) -> CoapStack<Self> {
        CoapStack::over_stream(
            Connection::new(Options { max_message_size: 1_152, ..Options::default() }),
            Config::STREAM,
        )
    }
    fn hand(stack: &mut CoapStack<Self>, now: Instant, bytes: &[u8]) {
        stack.receive(now, bytes);
    }
}

/// A client and a server, and what their applications are told.
struct Story<L: MessageLayer> {
    now: Instant,
    stacks: [CoapStack<L>; 2],
    told: Vec<String>,
    observers: Vec<ObserverId>,
    /// The lengths of what the server answers with next, the last again and again.
    lengths: Vec<usize>,
}

impl<L: Carried> Story<L> {
    fn new() -> Self {
        let stacks = [L::make(0), L::make(1)];
        Self { now: Instant::ORIGIN, stacks, told: Vec::new(), observers: Vec::new(), lengths: vec![0] }
    }

    fn ask(&mut self, ask: &ClientRequest<'_>) -> ClientRequestId {
        let id = self.stacks[0].request(self.now, L::PEER, ask).unwrap();
        self.settle();
        id
    }

    fn notify(&mut self, length: usize) {
        let observer = *self.observers.last().unwrap();
        let state = body(length);
        self.stacks[1].notify(self.now, observer, &Answer::new(Code::CONTENT, &[FRESH]).with_body(&state)).unwrap();
        self.settle();
    }

    fn settle(&mut self) {
        // More than any acknowledgement or pause of notifications takes.
        for _ in 0..8 {
            while self.drain(0) | self.drain(1) {}
            self.now = self.now.after(Span::from_secs(4));
        }
    }

    /// Hands what one side sends to the other; false if that is nothing.
    fn drain(&mut self, side: usize) -> bool {
        let (mut sent, mut asked) = (Vec::new(), Vec::new());
        loop {
            match self.stacks[side].poll(self.now) {
                Output::Transmit(transmit) => sent.push(transmit.bytes.to_vec()),
                Output::Event(event) => {
                    self.told.push(Self::words(&event));
                    if let Event::Request { id, message, wants_to_observe, .. } = &event {
                        asked.push((*id, message.code, *wants_to_observe));
                    }
                }
                Output::Trace(_) => {}
                Output::Close(why) => panic!("{why:?}"),
                Output::Sleep(..) | Output::Idle => break,
            }
        }
        for (id, code, wants_to_observe) in asked {
            self.answer(side, id, code, wants_to_observe);
        }
        while let Output::Transmit(transmit) = self.stacks[side].poll(self.now) {
            sent.push(transmit.bytes.to_vec());
        }
        for bytes in &sent {
            L::hand(&mut self.stacks[1 - side], self.now, bytes);
            self.drain(1 - side);
        }
        !sent.is_empty()
    }

    fn answer(&mut self, side: usize, id: RequestId, code: Code, observe: bool) {
        let length = if self.lengths.len() > 1 { self.lengths.remove(0) } else { self.lengths[0] };
        let etag = (length as u32).to_be_bytes();
        let options = [(number::ETAG, &etag[..]), FRESH];
        let whole = body(length);
        let code = if code == Code::PUT { Code::CHANGED } else { Code::CONTENT };
        let answer = Answer::new(code, &options).with_body(&whole);
        if observe {
            self.observers.extend(self.stacks[side].accept_observer(self.now, id, &answer).unwrap());
        } else {
            self.stacks[side].answer(self.now, id, &answer).unwrap();
        }
    }

    fn words(event: &Event<'_, L::Peer>) -> String {
        match event {
            Event::Request { message, body, wants_to_observe, by_group: false, .. } => {
                format!("asked {} with {} observing {wants_to_observe}", message.code, body.len())
            }
            Event::Answer { message, body: whole, goes_on, .. } => {
                // A piece is told as it came.
                let piece = message.option(number::BLOCK2).map(|value| value.to_vec());
                assert!(**whole == body(whole.len())[..] || piece.is_some());
                format!("answered {} with {} going on {goes_on}", message.code, whole.len())
            }
            Event::Failed { why, .. } => format!("failed: {why}"),
            Event::ObserverGone { why, .. } => format!("gone: {why:?}"),
            other => panic!("{other:?}"),
        }
    }
}

fn story<L: Carried>() -> Vec<String> {
    let mut story = Story::<L>::new();
    let get = ClientRequest::new(Code::GET, PATH);
    // In one message, in blocks, with a body of its own in blocks.
    for length in [10, 5_000] {
        story.lengths = vec![length];
        story.ask(&get);
    }
    let bytes = body(3_000);
    story.ask(&ClientRequest::new(Code::PUT, PATH).with_body(&bytes));
    // Another state while it is fetched.
    story.lengths = vec![2_500];
    story.ask(&get.observing());
    for length in [20, 4_000, 30] {
        story.notify(length);
    }
    let observation =
        story.ask(&ClientRequest { token: millpond_coap::message::Token::new(b"mine"), ..get.observing() });
    assert!(story.stacks[0].cancel(story.now, observation));
    story.settle();
    // Single blocks that the application puts together by itself.
    for number in 0..3 {
        let block2 = Some(Block { number, more: false, size: BlockSize::B1024 });
        story.ask(&ClientRequest { piece: Some(Piece { block1: None, block2, tag: None, total: None }), ..get });
    }
    assert_eq!(story.stacks[0].requests(), 1, "the first observation");
    story.told
}

#[test]
fn whoever_asks_and_answers_is_told_the_same_over_datagrams_and_over_a_stream() {
    let told = story::<Endpoint<u8>>();
    assert_eq!(told, story::<Connection>());
    let answered = told.iter().filter(|line| line.starts_with("answered 2.05"));
    let lengths: Vec<&str> = answered.map(|line| line.split(' ').nth(3).unwrap()).collect();
    assert_eq!(lengths, ["10", "5000", "2500", "20", "4000", "30", "2500", "1024", "1024", "452"], "{told:#?}");
    assert!(told.contains(&"gone: Deregistered".into()), "{told:#?}");
}
