//! Two stacks that talk, and an application on each side.

use crate::owned::{CoapStack, Event, Output, poll, stack};
use millpond_coap::RequestId;
use millpond_coap::message::Code;
use millpond_coap::stream::{Closing, Frame, FrameReader, Options};
use millpond_coap::transfer::{Answer, ClientRequest, ClientRequestId, Config, ObserverId};
use millpond_control::{Instant, Span};

/// A body of so many bytes, no two blocks alike.
pub(crate) fn body(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8 ^ (index / 251) as u8).collect()
}

/// Options with this Max-Message-Size.
pub(crate) fn taking(max_message_size: u32) -> Options {
    Options { max_message_size, ..Options::default() }
}

/// What the server does with a request.
pub(crate) type Application = Box<dyn FnMut(Code, &[u8]) -> (Code, Vec<(u16, Vec<u8>)>, Vec<u8>)>;

/// A frame that one side sent, as far as tests look at it.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) code: Code,
    pub(crate) token: Vec<u8>,
    pub(crate) options: Vec<(u16, Vec<u8>)>,
    pub(crate) payload: usize,
    pub(crate) length: usize,
}

impl Sent {
    fn of(frame: &Frame<'_>, length: usize) -> Self {
        let options = frame.options().map(|option| (option.number, option.value.to_vec())).collect();
        Self { code: frame.code, token: frame.token_bytes().to_vec(), options, payload: frame.payload().len(), length }
    }

    pub(crate) fn option(&self, number: u16) -> Option<&[u8]> {
        self.options.iter().find(|(other, _)| *other == number).map(|(_, value)| &value[..])
    }

    /// `0.01 B2:3/0/7` and the like.
    pub(crate) fn summary(&self) -> String {
        let mut text = format!("{}", self.code);
        for (number, name) in [(6, "O"), (23, "B2"), (27, "B1")] {
            if let Some(value) = self.option(number) {
                let bits = value.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
                text += &match number {
                    6 => format!(" O:{bits}"),
                    _ => format!(" {name}:{}/{}/{}", bits >> 4, bits >> 3 & 1, bits & 7),
                };
            }
        }
        text
    }
}

pub(crate) struct Stacks {
    pub(crate) now: Instant,
    pub(crate) client: CoapStack,
    pub(crate) server: CoapStack,
    pub(crate) application: Application,
    /// Grants observations.
    pub(crate) observers: Vec<ObserverId>,
    pub(crate) told: Vec<Event>,
    pub(crate) server_told: Vec<Event>,
    pub(crate) closed: [Option<Closing>; 2],
    pub(crate) up: Vec<Sent>,
    pub(crate) down: Vec<Sent>,
    /// Bytes handed over at a time.
    pub(crate) piece: usize,
    pub(crate) sleep: Option<Instant>,
    readers: [FrameReader; 2],
}

impl Stacks {
    pub(crate) fn new(client: Options, server: Options) -> Self {
        Self::with(client, server, Config::STREAM)
    }

    pub(crate) fn with(client: Options, server: Options, config: Config) -> Self {
        Self {
            now: Instant::ORIGIN,
            client: stack(client, config),
            server: stack(server, config),
            application: Box::new(|_, body| (Code::CHANGED, Vec::new(), body.to_vec())),
            observers: Vec::new(),
            told: Vec::new(),
            server_told: Vec::new(),
            closed: [None; 2],
            up: Vec::new(),
            down: Vec::new(),
            piece: usize::MAX,
            sleep: None,
            readers: [FrameReader::new(u32::MAX).extended(), FrameReader::new(u32::MAX).extended()],
        }
    }

    pub(crate) fn serving(mut self, bytes: Vec<u8>) -> Self {
        self.application = Box::new(move |_, _| (Code::CONTENT, Vec::new(), bytes.clone()));
        self
    }

    pub(crate) fn ask(&mut self, ask: &ClientRequest<'_>) -> ClientRequestId {
        self.client.request(self.now, (), ask).unwrap()
    }

    /// Carries bytes to and fro until there are none.
    pub(crate) fn run(&mut self) {
        loop {
            let up = self.drain_client();
            for piece in up.chunks(self.piece) {
                self.server.receive(self.now, piece);
                let down = self.drain_server();
                self.carry_down(&down);
            }
            let down = self.drain_server();
            self.carry_down(&down);
            if up.is_empty() && down.is_empty() {
                return;
            }
        }
    }

    fn carry_down(&mut self, down: &[u8]) {
        for piece in down.chunks(self.piece) {
            self.client.receive(self.now, piece);
        }
    }

    /// Carries these bytes up, and what the client sends besides.
    pub(crate) fn drain_client_into(&mut self, before: Vec<u8>) {
        let more = self.drain_client();
        self.server.receive(self.now, &[before, more].concat());
    }

    /// What the client sends; what it tells is kept.
    pub(crate) fn drain_client(&mut self) -> Vec<u8> {
        let mut sent = Vec::new();
        loop {
            match poll(&mut self.client, self.now) {
                Output::Transmit(bytes) => sent.extend_from_slice(&bytes),
                Output::Event(event) => self.told.push(event),
                Output::Close(why) => assert!(self.closed[0].replace(why).is_none(), "the end is told once"),
                Output::Sleep(until) => {
                    self.sleep = Some(until);
                    break;
                }
                Output::Idle => {
                    self.sleep = None;
                    break;
                }
            }
        }
        record(&mut self.readers[0], &sent, &mut self.up);
        sent
    }

    pub(crate) fn drain_server(&mut self) -> Vec<u8> {
        let mut sent = Vec::new();
        loop {
            match poll(&mut self.server, self.now) {
                Output::Transmit(bytes) => sent.extend_from_slice(&bytes),
                Output::Event(Event::Request { id, code, body, wants_to_observe, .. }) => {
                    self.answer(id, code, &body, wants_to_observe);
                }
                Output::Event(event) => self.server_told.push(event),
                Output::Close(why) => assert!(self.closed[1].replace(why).is_none(), "the end is told once"),
                Output::Sleep(_) | Output::Idle => break,
            }
        }
        record(&mut self.readers[1], &sent, &mut self.down);
        sent
    }

    fn answer(&mut self, id: RequestId, code: Code, body: &[u8], wants_to_observe: bool) {
        let (code, options, body) = (self.application)(code, body);
        let options: Vec<(u16, &[u8])> = options.iter().map(|(number, value)| (*number, &value[..])).collect();
        let answer = Answer::new(code, &options).with_body(&body);
        if wants_to_observe {
            self.observers.extend(self.server.accept_observer(self.now, id, &answer).unwrap());
        } else {
            self.server.answer(self.now, id, &answer).unwrap();
        }
    }

    pub(crate) fn later(&mut self, seconds: u32) {
        self.now = self.now.after(Span::from_secs(seconds));
    }

    /// The answers that were told: code, body, and whether more may follow.
    pub(crate) fn answers(&self) -> Vec<(Code, Vec<u8>, bool)> {
        let answer = |event: &Event| match event {
            Event::Answer { code, body, goes_on, .. } => Some((*code, body.clone(), *goes_on)),
            Event::Settings(_) => None,
            other => panic!("{other:?}"),
        };
        self.told.iter().filter_map(answer).collect()
    }

    /// The only answer's code and body.
    pub(crate) fn answered(&self) -> (Code, Vec<u8>) {
        match &self.answers()[..] {
            [(code, body, false)] => (*code, body.clone()),
            other => panic!("{} answers", other.len()),
        }
    }

    pub(crate) fn failure(&self) -> millpond_coap::transfer::RequestFailure {
        let mut failures = self.told.iter().filter_map(|event| match event {
            Event::Failed { why, .. } => Some(*why),
            _ => None,
        });
        let first = failures.next().expect("a failure");
        assert_eq!(failures.next(), None);
        first
    }
}

fn record(reader: &mut FrameReader, sent: &[u8], frames: &mut Vec<Sent>) {
    // Byte by byte, to know how long each frame is.
    let mut length = 0;
    for byte in sent {
        reader.push(&[*byte]);
        length += 1;
        if let Ok(Some(frame)) = reader.next_frame() {
            frames.push(Sent::of(&frame, core::mem::take(&mut length)));
        }
    }
}
