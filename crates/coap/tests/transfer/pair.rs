//! A client and a server with a path between them, and what each was told.

use std::collections::{BTreeMap, BTreeSet};

use millpond_coap::Output;
use millpond_coap::block::BlockSize;
use millpond_coap::message::{Code, Kind, Message, number};
use millpond_coap::transfer::{
    Answer, ClientRequest, ClientRequestId, CoapStack, Config, Event, Gone, ObserverId, RequestFailure, SharedBody,
};
use millpond_coap::{Endpoint, IdGenerator, RequestId};
use millpond_control::{AnyController, ChanceSeed, Instant, Preset, SettingValue, Span};

pub(crate) const SECOND: u64 = 1_000_000;

/// One way.
pub(crate) const DELAY: u64 = SECOND / 20;

pub(crate) const CLIENT: u8 = 0;
pub(crate) const SERVER: u8 = 1;

/// A controller whose first wait is always 2.5 s.
pub(crate) fn steady() -> AnyController {
    let mut controller = Preset::RFC7252.build();
    controller.set("ack-timeout", SettingValue::Time(Span::from_millis(2_500))).unwrap();
    controller.set("random-factor", SettingValue::Ratio(1_000)).unwrap();
    controller
}

pub(crate) fn stack(node: u32, endpoint: millpond_coap::Config, config: Config) -> CoapStack<Endpoint<u8>> {
    known_by(node, endpoint, config, IdGenerator::counted())
}

pub(crate) fn known_by(
    node: u32,
    endpoint: millpond_coap::Config,
    config: Config,
    id_generator: IdGenerator,
) -> CoapStack<Endpoint<u8>> {
    let endpoint = Endpoint::new(endpoint, steady(), ChanceSeed::new(1), node, id_generator).unwrap();
    // Unvalidated peers from 128 on are in a network of their own.
    let endpoint = endpoint.with_paths(|address| u64::from(address >> 7));
    CoapStack::new(endpoint, config, ChanceSeed::new(1)).unwrap()
}

/// Bytes none of whose blocks are alike.
pub(crate) fn body(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at ^ (at >> 8).wrapping_mul(31)) as u8).collect()
}

/// What one of the two was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Answer {
        request: ClientRequestId,
        code: Code,
        body: Vec<u8>,
        goes_on: bool,
    },
    Failed {
        request: ClientRequestId,
        why: RequestFailure,
    },
    Unanswered {
        request: ClientRequestId,
        is_acknowledged: bool,
    },
    Gone {
        observer: ObserverId,
        why: Gone,
    },
    /// The server's application was asked with this body.
    Asked {
        code: Code,
        body: Vec<u8>,
        observe: bool,
    },
}

/// What the server's application does.
pub(crate) struct Application {
    pub(crate) code: Code,
    pub(crate) body: Vec<u8>,
    /// In its place, if it is held by many.
    pub(crate) shared: Option<SharedBody>,
    pub(crate) options: Vec<(u16, Vec<u8>)>,
    pub(crate) block: Option<BlockSize>,
    pub(crate) kind: Option<Kind>,
    /// It answers at all.
    pub(crate) answers: bool,
    /// It accepts who wants to observe.
    pub(crate) accepts: bool,
    /// It answers with the body that came.
    pub(crate) echoes: bool,
    /// It knows that the client is where it says.
    pub(crate) knows: bool,
    pub(crate) handed: Vec<RequestId>,
    pub(crate) observers: Vec<ObserverId>,
}

pub(crate) struct Pair {
    pub(crate) now: u64,
    pub(crate) stacks: [CoapStack<Endpoint<u8>>; 2],
    /// Numbers of the datagrams that get lost, in the order of sending, both ways counted together.
    pub(crate) lose: BTreeSet<usize>,
    /// Delays of datagrams that take longer or less long than usual.
    pub(crate) delays: BTreeMap<usize, u64>,
    pub(crate) datagrams: Vec<(u64, u8, Vec<u8>)>,
    pub(crate) application: Application,
    pub(crate) told: Vec<(u64, u8, Told)>,
    wire: BTreeSet<(u64, usize, u8, Vec<u8>)>,
    sleeps: [u64; 2],
}

impl Pair {
    pub(crate) fn new(change: impl Fn(u8, &mut millpond_coap::Config, &mut Config)) -> Self {
        let make = |node: u8| {
            let (mut endpoint, mut config) = (millpond_coap::Config::default(), Config::default());
            change(node, &mut endpoint, &mut config);
            stack(node.into(), endpoint, config)
        };
        Self {
            now: 0,
            stacks: [make(CLIENT), make(SERVER)],
            lose: BTreeSet::new(),
            delays: BTreeMap::new(),
            datagrams: Vec::new(),
            application: Application {
                code: Code::CONTENT,
                body: Vec::new(),
                shared: None,
                options: Vec::new(),
                block: None,
                kind: None,
                answers: true,
                accepts: true,
                echoes: false,
                knows: false,
                handed: Vec::new(),
                observers: Vec::new(),
            },
            told: Vec::new(),
            wire: BTreeSet::new(),
            sleeps: [u64::MAX; 2],
        }
    }

    /// A server in blocks of this size whose resource is so long.
    pub(crate) fn serving(length: usize, block: BlockSize) -> Self {
        let mut pair = Self::new(|node, _, config| {
            if node == SERVER {
                config.block = block;
            }
        });
        pair.application.body = body(length);
        pair
    }

    pub(crate) fn losing(mut self, lose: impl IntoIterator<Item = usize>) -> Self {
        self.lose = lose.into_iter().collect();
        self
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    pub(crate) fn ask(&mut self, ask: &ClientRequest<'_>) -> ClientRequestId {
        let now = self.now();
        let id = self.stacks[0].request(now, SERVER, ask).unwrap();
        self.drain(CLIENT);
        id
    }

    pub(crate) fn get(&mut self) -> ClientRequestId {
        self.ask(&get())
    }

    pub(crate) fn cancel(&mut self, ask: ClientRequestId) -> bool {
        let now = self.now();
        let was_open = self.stacks[0].cancel(now, ask);
        self.drain(CLIENT);
        was_open
    }

    /// The server's application says what is new to all observers.
    pub(crate) fn notify(&mut self, body: &[u8]) {
        self.application.body = body.to_vec();
        self.tell_observers();
    }

    /// The same of what it has by now.
    pub(crate) fn tell_observers(&mut self) {
        let now = self.now();
        for id in self.application.observers.clone() {
            let options: Vec<(u16, &[u8])> =
                self.application.options.iter().map(|(number, value)| (*number, &value[..])).collect();
            let Application { code, body, shared, kind, block, .. } = &self.application;
            let form = match shared {
                Some(shared) => Answer::new(*code, &options).with_shared_body(shared),
                None => Answer::new(*code, &options).with_body(body),
            };
            let answer = Answer { kind: *kind, block: *block, ..form };
            self.stacks[1].notify(now, id, &answer).unwrap();
            self.drain(SERVER);
        }
    }

    /// A datagram out of the blue.
    pub(crate) fn inject(&mut self, to: u8, datagram: &[u8]) {
        self.inject_from(1 - to, to, datagram);
    }

    pub(crate) fn inject_from(&mut self, from: u8, to: u8, datagram: &[u8]) {
        let now = self.now();
        self.stacks[usize::from(to)].receive(now, from, datagram);
        self.drain(to);
    }

    /// All that was told since this was asked last, by whom.
    pub(crate) fn take_told(&mut self, side: u8) -> Vec<Told> {
        let (theirs, others) = std::mem::take(&mut self.told).into_iter().partition(|(_, who, _)| *who == side);
        self.told = others;
        theirs.into_iter().map(|(_, _, told)| told).collect()
    }

    /// The bodies that the client's application was handed, and whether more may follow.
    pub(crate) fn answers(&mut self) -> Vec<(Vec<u8>, bool)> {
        let answer = |told| match told {
            Told::Answer { body, goes_on, .. } => (body, goes_on),
            other => panic!("{other:?}"),
        };
        self.take_told(CLIENT).into_iter().map(answer).collect()
    }

    /// How often the server's application was asked.
    pub(crate) fn asked(&mut self) -> usize {
        self.take_told(SERVER).iter().filter(|told| matches!(told, Told::Asked { .. })).count()
    }

    pub(crate) fn run(&mut self) {
        self.run_until(u64::MAX);
    }

    pub(crate) fn run_for(&mut self, micros: u64) {
        self.run_until(self.now + micros);
    }

    pub(crate) fn run_until(&mut self, end: u64) {
        for _ in 0..200_000 {
            let arrival = self.wire.first().map_or(u64::MAX, |first| first.0);
            let next = arrival.min(self.sleeps[0]).min(self.sleeps[1]);
            if next == u64::MAX || next > end {
                if end != u64::MAX {
                    self.now = end;
                }
                return;
            }
            self.now = next;
            if arrival == next {
                let (_, _, to, bytes) = self.wire.pop_first().unwrap();
                self.inject(to, &bytes);
            } else if self.sleeps[0] == next {
                self.drain(CLIENT);
            } else {
                self.drain(SERVER);
            }
        }
        panic!("it never comes to rest");
    }

    /// Runs until nothing is under way and no ask is open; what is kept may still be kept.
    pub(crate) fn settle(&mut self) {
        while self.stacks[0].requests() > 0 || !self.wire.is_empty() {
            let next = self.wire.first().map_or(u64::MAX, |first| first.0).min(self.sleeps[0]).min(self.sleeps[1]);
            assert!(next < u64::MAX, "nothing will ever happen");
            self.run_until(next);
        }
    }

    pub(crate) fn drain(&mut self, side: u8) {
        let now = self.now();
        let mut asked = Vec::new();
        for step in 0.. {
            assert!(step < 2_000, "draining does not end");
            match self.stacks[usize::from(side)].poll(now) {
                Output::Transmit(transmit) => {
                    let number = self.datagrams.len();
                    if !self.lose.contains(&number) && transmit.to < 2 {
                        let delay = self.delays.get(&number).copied().unwrap_or(DELAY);
                        self.wire.insert((self.now + delay, number, transmit.to, transmit.bytes.to_vec()));
                    }
                    self.datagrams.push((self.now, side, transmit.bytes.to_vec()));
                }
                Output::Trace(_) | Output::Event(Event::Refused { .. }) => {}
                Output::Event(event) => {
                    let told = match event {
                        Event::Request { id, message, body, wants_to_observe, .. } => {
                            asked.push((id, wants_to_observe, message.code, body.to_vec()));
                            Told::Asked { code: message.code, body: body.into_owned(), observe: wants_to_observe }
                        }
                        Event::Answer { request: ask, message, body, goes_on, .. } => {
                            Told::Answer { request: ask, code: message.code, body: body.into_owned(), goes_on }
                        }
                        Event::Failed { request: ask, why, .. } => Told::Failed { request: ask, why },
                        Event::Unanswered { request: ask, is_acknowledged, .. } => {
                            Told::Unanswered { request: ask, is_acknowledged }
                        }
                        Event::ObserverGone { observer, why, .. } => {
                            self.application.observers.retain(|known| *known != observer);
                            Told::Gone { observer, why }
                        }
                        other => panic!("{other:?}"),
                    };
                    self.told.push((self.now, side, told));
                }
                Output::Sleep(until, asleep) => {
                    assert!(until > now, "asleep for {asleep:?} until {until:?} at {now:?}");
                    self.sleeps[usize::from(side)] = until.as_micros();
                    if !self.reply(&mut asked) {
                        return;
                    }
                }
                Output::Idle => {
                    self.sleeps[usize::from(side)] = u64::MAX;
                    if !self.reply(&mut asked) {
                        return;
                    }
                }
            }
        }
    }

    /// The server's application answers the next request.
    fn reply(&mut self, asked: &mut Vec<(RequestId, bool, Code, Vec<u8>)>) -> bool {
        if asked.is_empty() {
            return false;
        }
        let (id, wants_to_observe, code, came) = asked.remove(0);
        self.application.handed.push(id);
        if !self.application.answers {
            return !asked.is_empty();
        }
        let Application { code: answer_code, body, shared, options, block, kind, echoes, knows, .. } =
            &self.application;
        let options: Vec<(u16, &[u8])> = options.iter().map(|(number, value)| (*number, &value[..])).collect();
        let is_put = matches!(code, Code::PUT | Code::POST);
        let body = if *echoes { &came } else { body };
        let form = match shared {
            _ if is_put && !*echoes => Answer::new(Code::CHANGED, &options),
            Some(shared) => Answer::new(*answer_code, &options).with_shared_body(shared),
            None => Answer::new(*answer_code, &options).with_body(body),
        };
        let answer = Answer { kind: *kind, block: *block, is_proved: *knows, ..form };
        let now = Instant::from_micros(self.now);
        if wants_to_observe && self.application.accepts {
            let observer = self.stacks[1].accept_observer(now, id, &answer).unwrap();
            self.application.observers.extend(observer);
        } else {
            self.stacks[1].answer(now, id, &answer).unwrap();
        }
        true
    }
}

pub(crate) const PATH: &[(u16, &[u8])] = &[(number::URI_PATH, b"large")];

pub(crate) fn get() -> ClientRequest<'static> {
    ClientRequest::new(Code::GET, PATH)
}

pub(crate) fn put(body: &[u8]) -> ClientRequest<'_> {
    ClientRequest::new(Code::PUT, PATH).with_body(body)
}

/// What stands in a datagram as Block1 or Block2: number, more, bytes.
pub(crate) fn block_of(datagram: &[u8], number: u16) -> Option<(u32, bool, u32)> {
    let message = Message::parse(datagram).unwrap();
    let block = millpond_coap::block::Block::read(message.option(number)?, false).unwrap();
    Some((block.number, block.more, block.size.bytes()))
}
