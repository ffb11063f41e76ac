//! What must hold of two stacks whatever they are asked to do and whatever their path does. Also the body of the fuzz
//! target `transfers`.
//!
//! A session is read from bytes: first the configuration, then one operation after the other. Datagrams may be lost,
//! doubled, reordered, damaged and invented.

use std::collections::BTreeSet;

use millpond_coap::Output;
use millpond_coap::block::BlockSize;
use millpond_coap::block::robust::BurstParameters;
use millpond_coap::message::{Code, Kind, number};
use millpond_coap::transfer::{Answer, ClientRequest, ClientRequestId, CoapStack, Config, Event, ObserverId};
use millpond_coap::{Duplicates, Endpoint, IdGenerator, RequestId};
use millpond_control::{ChanceSeed, Instant, Preset};

/// Plays the session that these bytes describe.
pub(crate) fn check(bytes: &[u8]) {
    let mut source = Source { bytes };
    let Some(mut session) = Session::new(&mut source) else { return };
    while let Some(operation) = source.byte() {
        session.step(operation, &mut source);
    }
    session.come_to_rest();
}

/// Where the operations come from.
struct Source<'b> {
    bytes: &'b [u8],
}

impl<'b> Source<'b> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn some(&mut self) -> usize {
        usize::from(self.byte().unwrap_or(0))
    }

    fn take(&mut self, length: usize) -> &'b [u8] {
        let (taken, rest) = self.bytes.split_at(length.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }
}

struct Actor {
    stack: CoapStack<Endpoint<u8>>,
    open: BTreeSet<ClientRequestId>,
    asked: Vec<(RequestId, bool, usize)>,
    observers: Vec<ObserverId>,
    sleep: Option<Instant>,
}

struct Session {
    now: Instant,
    actors: [Actor; 2],
    wire: Vec<(u8, u8, Vec<u8>)>,
    /// How many states the resource has had.
    state: u8,
    /// A datagram was damaged or invented: bodies may be anything.
    is_spoilt: bool,
    most: usize,
}

/// The representation of a state: its bytes are all alike, so that a mixture shows.
fn representation(state: u8) -> Vec<u8> {
    vec![state; usize::from(state).wrapping_mul(37) % 400]
}

impl Session {
    fn new(source: &mut Source<'_>) -> Option<Self> {
        let (shape, sizes) = (source.byte()?, source.byte()?);
        let mut settings = millpond_coap::Config::default();
        settings.transmission.nstart = 1 + u16::from(shape & 3);
        settings.transmission.max_retransmit = shape >> 2 & 3;
        settings.duplicates = if shape & 16 == 0 { Duplicates::Stored } else { Duplicates::Afresh };
        settings.limits.duplicate_bytes = 8_192;
        settings.limits.bytes = 64 << 10;
        settings.limits.datagram = 200;
        let mut config = Config::DEFAULT;
        config.block = [BlockSize::B16, BlockSize::B32, BlockSize::B64, BlockSize::B128][usize::from(sizes & 3)];
        config.q_block = (shape & 32 != 0).then_some(BurstParameters { set: 3, ..BurstParameters::RFC9177 });
        config.limits.client_requests = 6;
        config.limits.bytes = 4_096;
        config.limits.body = 300;
        config.limits.bodies = 1_024;
        config.limits.cached = [0, 600, 2_000, 20_000][usize::from(sizes >> 2 & 3)];
        config.limits.observers = 4;
        config.limits.observers_per_peer = 3;
        let presets: Vec<_> = Preset::all().collect();
        let controller = presets[usize::from(sizes >> 4) % presets.len()].build();
        let actor = |node| {
            let endpoint =
                Endpoint::new(settings, controller, ChanceSeed::new(3), node, IdGenerator::counted()).unwrap();
            Actor {
                stack: CoapStack::new(endpoint, config, ChanceSeed::new(4)).unwrap(),
                open: BTreeSet::new(),
                asked: Vec::new(),
                observers: Vec::new(),
                sleep: None,
            }
        };
        let actors = [actor(0), actor(1)];
        let limits = config.limits;
        let most = settings.limits.bytes + limits.bytes + 2 * limits.bodies + limits.cached + (48 << 10);
        Some(Self { now: Instant::from_micros(1), actors, wire: Vec::new(), state: 1, is_spoilt: false, most })
    }

    fn step(&mut self, operation: u8, source: &mut Source<'_>) {
        let who = usize::from(operation >> 7);
        match operation & 15 {
            0..=2 => self.ask(who, source),
            3..=6 => {
                if let Some(datagram) = self.pick(source) {
                    self.deliver(&datagram);
                }
            }
            7 => drop(self.pick(source)),
            8 => {
                if let Some(datagram) = self.pick(source) {
                    self.deliver(&datagram);
                    self.wire.push(datagram);
                }
            }
            9 => {
                if let Some(mut datagram) = self.pick(source) {
                    let at = source.some() % datagram.2.len().max(1);
                    if let Some(byte) = datagram.2.get_mut(at) {
                        *byte ^= source.byte().unwrap_or(1);
                    }
                    self.is_spoilt = true;
                    self.deliver(&datagram);
                }
            }
            10 => {
                let length = source.some();
                let bytes = source.take(length).to_vec();
                let from = [1 - who as u8, 5, 6, 1 - who as u8][source.some() & 3];
                self.is_spoilt = true;
                self.deliver(&(from, who as u8, bytes));
            }
            11 => self.answer(who, source),
            12 => self.notify(who, source),
            13 => {
                let actor = &mut self.actors[who];
                let some = source.some();
                if let Some(ask) = actor.open.iter().nth(some % actor.open.len().max(1)).copied() {
                    let over = match some & 128 {
                        0 => actor.stack.cancel(self.now, ask),
                        _ => actor.stack.forget(self.now, ask),
                    };
                    assert!(over);
                    self.drain(who);
                    assert!(!self.actors[who].open.contains(&ask));
                } else if let Some(observer) = actor.observers.pop() {
                    // Gone already, if it was told the last that there is to tell.
                    let _ = actor.stack.remove_observer(self.now, observer);
                    self.drain(who);
                }
            }
            14 => self.state = self.state.wrapping_add(1).max(1),
            _ => self.pass(source),
        }
    }

    fn ask(&mut self, who: usize, source: &mut Source<'_>) {
        let shape = source.some();
        let code = [Code::GET, Code::PUT, Code::FETCH, Code::POST][shape & 3];
        let body = vec![self.state; if code == Code::GET { 0 } else { source.some() * 2 }];
        let ask = ClientRequest {
            kind: if shape & 4 == 0 { Kind::Confirmable } else { Kind::NonConfirmable },
            upload: BlockSize::from_exponent(shape as u8 >> 3 & 3).unwrap(),
            early: if shape & 32 == 0 { None } else { Some(BlockSize::B32) },
            q_block: shape & 32 != 0,
            observe: shape & 64 != 0,
            longest: if shape & 128 == 0 { 1_000 } else { 100 },
            ..ClientRequest::new(code, &[(number::URI_PATH, b"state")]).with_body(&body)
        };
        let to = if shape & 24 == 24 { 5 } else { 1 - who as u8 };
        if let Ok(id) = self.actors[who].stack.request(self.now, to, &ask) {
            assert!(self.actors[who].open.insert(id), "a name is given once");
        }
        self.drain(who);
    }

    fn answer(&mut self, who: usize, source: &mut Source<'_>) {
        let some = source.some();
        let actor = &mut self.actors[who];
        if actor.asked.is_empty() {
            return;
        }
        let (id, wants_to_observe, _) = actor.asked.swap_remove(some % actor.asked.len());
        let body = representation(self.state);
        let code = if some & 64 == 0 { Code::CONTENT } else { Code::NOT_FOUND };
        let answer = Answer::new(code, &[]).with_body(if some & 64 == 0 { &body } else { b"no" });
        let refused = if wants_to_observe && some & 128 == 0 {
            match actor.stack.accept_observer(self.now, id, &answer) {
                Ok(observer) => {
                    actor.observers.extend(observer);
                    None
                }
                Err(refused) => Some(refused),
            }
        } else {
            actor.stack.answer(self.now, id, &answer).err()
        };
        self.drain(who);
        if refused.is_some() {
            // For want of room, or it lay for too long: nothing more is said.
            let _ = self.actors[who].stack.reject(self.now, id);
            self.drain(who);
        }
    }

    fn notify(&mut self, who: usize, source: &mut Source<'_>) {
        let some = source.some();
        let actor = &mut self.actors[who];
        let Some(observer) = actor.observers.get(some % actor.observers.len().max(1)).copied() else { return };
        self.state = self.state.wrapping_add(1).max(1);
        let body = representation(self.state);
        let is_last = some & 64 != 0;
        let code = if is_last { Code::NOT_FOUND } else { Code::CONTENT };
        let kind = [None, None, Some(Kind::Confirmable), Some(Kind::NonConfirmable)][some >> 4 & 3];
        let answer = Answer { kind, ..Answer::new(code, &[]).with_body(if is_last { b"no" } else { &body }) };
        // Once it has left the observer is gone; until then it may yet be told to be.
        let _ = actor.stack.notify(self.now, observer, &answer);
        self.drain(who);
    }

    /// Time passes: a little, up to the next that wants it, or very much.
    fn pass(&mut self, source: &mut Source<'_>) {
        let next = self.actors.iter().filter_map(|actor| actor.sleep).min();
        let micros = match source.some() {
            0 => 400_000_000,
            some if some & 1 == 0 => some as u64 * 20_000,
            _ => match next {
                Some(next) => return self.wake(next),
                None => 1,
            },
        };
        self.now = Instant::from_micros(self.now.as_micros() + micros);
        self.drain(0);
        self.drain(1);
    }

    fn wake(&mut self, until: Instant) {
        self.now = until;
        for who in 0..2 {
            if self.actors[who].sleep.is_some_and(|sleep| sleep <= until) {
                self.drain(who);
                assert!(self.actors[who].sleep.is_none_or(|sleep| sleep > until), "woken for nothing");
            }
        }
    }

    fn pick(&mut self, source: &mut Source<'_>) -> Option<(u8, u8, Vec<u8>)> {
        let some = source.some();
        (!self.wire.is_empty()).then(|| self.wire.swap_remove(some % self.wire.len()))
    }

    fn deliver(&mut self, (from, to, bytes): &(u8, u8, Vec<u8>)) {
        let Some(actor) = self.actors.get_mut(usize::from(*to)) else { return };
        actor.stack.receive(self.now, *from, bytes);
        self.drain(usize::from(*to));
    }

    fn drain(&mut self, who: usize) {
        let Self { now, actors, wire, is_spoilt, .. } = self;
        let (now, actor) = (*now, &mut actors[who]);
        let mut outputs = 0;
        loop {
            match actor.stack.poll(now) {
                Output::Transmit(transmit) => wire.push((who as u8, transmit.to, transmit.bytes.to_vec())),
                Output::Trace(_) | Output::Event(Event::Refused { .. }) => {}
                Output::Event(Event::Request { id, body, wants_to_observe, .. }) => {
                    assert!(body.len() <= 300, "longer than limits.body");
                    actor.asked.push((id, wants_to_observe, body.len()));
                }
                Output::Event(Event::Answer { request: ask, body, goes_on, message, .. }) => {
                    assert!(actor.open.contains(&ask), "an answer to what is open");
                    if message.code == Code::CONTENT && !*is_spoilt {
                        let state = body.first().copied();
                        assert!(state.is_none_or(|state| *body == representation(state)), "a mixture: {body:?}");
                    }
                    if !goes_on {
                        actor.open.remove(&ask);
                    }
                }
                Output::Event(Event::Failed { request: ask, .. }) => {
                    assert!(actor.open.remove(&ask), "an end is told once")
                }
                Output::Event(Event::ObserverGone { observer, .. }) => {
                    actor.observers.retain(|known| *known != observer);
                }
                Output::Event(other) => panic!("{other:?}"),
                Output::Sleep(until, _) => {
                    assert!(until > now);
                    actor.sleep = Some(until);
                    break;
                }
                Output::Idle => {
                    actor.sleep = None;
                    break;
                }
            }
            outputs += 1;
            assert!(outputs < 10_000, "draining does not end");
        }
        assert_eq!(actor.stack.requests() as usize, actor.open.len());
        assert!(actor.stack.observers() <= 4 && actor.stack.requests() <= 6);
        assert!(actor.stack.memory() <= self.most, "{} bytes of {}", actor.stack.memory(), self.most);
    }

    /// Nothing more comes in: everything must end, in bounded time.
    fn come_to_rest(&mut self) {
        self.wire.clear();
        let mut steps = 0;
        while let Some(next) = self.actors.iter().filter_map(|actor| actor.sleep).min() {
            self.wake(next);
            self.wire.clear();
            steps += 1;
            assert!(steps < 20_000, "it never comes to rest");
        }
        for actor in &self.actors {
            assert!(actor.open.is_empty(), "an ask has no end");
            assert_eq!((actor.stack.cached(), actor.stack.endpoint().exchanges()), (0, 0));
        }
    }
}
