//! What must hold of two endpoints whatever they are asked to do and whatever their path does. Also the body of the
//! fuzz target `endpoint`.
//!
//! A session is read from bytes: first the configuration, then one operation after the other. Datagrams may be lost,
//! doubled, reordered, damaged and invented.

use std::collections::{BTreeMap, BTreeSet};

use millpond_coap::message::{Code, Kind, Message, Token, number};
use millpond_coap::{
    Cause, Config, Duplicates, Endpoint, Event, ExchangeId, Identities, Lifetimes, Outgoing, Output, Refused, RequestId,
};
use millpond_control::{AnyController, ChanceSeed, Instant, Preset, Span};

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

/// Addresses: the two endpoints, and some more where nobody is.
type Address = u8;

struct Datagram {
    from: Address,
    to: Address,
    bytes: Vec<u8>,
}

/// What is known about one endpoint from outside.
struct Actor {
    endpoint: Endpoint<Address>,
    /// Requests that the application was handed.
    asked: Vec<RequestId>,
    /// Separate responses of which the end must still be told.
    responding: BTreeSet<RequestId>,
    /// Requests of which the end must still be told, by peer and, once it is known, token.
    open: BTreeMap<ExchangeId, (Address, Option<Token>)>,
    /// When each message ID was last used to each peer.
    ids: BTreeMap<(Address, u16), Instant>,
    /// EXCHANGE_LIFETIME at least.
    lifetime: u64,
    sleep: Option<Instant>,
}

struct Session {
    now: Instant,
    actors: [Actor; 2],
    wire: Vec<Datagram>,
    limits: millpond_coap::Limits,
}

impl Session {
    fn new(source: &mut Source<'_>) -> Option<Self> {
        let mut config = Config::default();
        let (shape, sizes) = (source.byte()?, source.byte()?);
        config.transmission.nstart = 1 + u16::from(shape & 3);
        config.transmission.max_retransmit = shape >> 2 & 3;
        config.token_length = [0, 1, 4, 8][usize::from(shape >> 4 & 3)];
        config.duplicates = if shape & 64 == 0 { Duplicates::Stored } else { Duplicates::Afresh };
        config.ack_delay = Span::from_millis(if shape & 128 == 0 { 500 } else { 0 });
        config.limits.peers = 1 + u32::from(sizes & 7);
        config.limits.exchanges_per_peer = [1, 3, 16, 40][usize::from(sizes >> 3 & 3)];
        config.limits.waiting_per_peer = [0, 1, 3, 64][usize::from(sizes >> 5 & 3)];
        config.limits.requests = if sizes & 128 == 0 { 2 } else { 100 };
        config.limits.duplicate_bytes = 4_096;
        config.limits.bytes = 24 << 10;
        config.limits.datagram = 200;
        let identities = [Identities::counted(), Identities::secret([7; 16])][usize::from(shape & 1)];
        let controller = Preset::ALL[usize::from(sizes) % Preset::ALL.len()].build();
        let make = |node| Endpoint::new(config, controller, ChanceSeed::new(3), node, identities).unwrap();
        let actor = |node| Actor {
            endpoint: make(node),
            asked: Vec::new(),
            responding: BTreeSet::new(),
            open: BTreeMap::new(),
            ids: BTreeMap::new(),
            lifetime: Lifetimes::of(&controller, &config.transmission).exchange,
            sleep: None,
        };
        let actors = [actor(0), actor(1)];
        Some(Self { now: Instant::from_micros(1), actors, wire: Vec::new(), limits: config.limits })
    }

    fn step(&mut self, operation: u8, source: &mut Source<'_>) {
        let who = usize::from(operation >> 7);
        let now = self.now;
        match operation & 15 {
            0 | 1 => self.ask(who, Kind::Confirmable, source),
            2 => self.ask(who, Kind::NonConfirmable, source),
            3..=5 => {
                if let Some(datagram) = self.pick(source) {
                    self.deliver(&datagram);
                }
            }
            6 => drop(self.pick(source)),
            7 => {
                if let Some(datagram) = self.pick(source) {
                    self.deliver(&datagram);
                    self.wire.push(datagram);
                }
            }
            8 => {
                if let Some(mut datagram) = self.pick(source) {
                    let at = source.some() % datagram.bytes.len().max(1);
                    if let Some(byte) = datagram.bytes.get_mut(at) {
                        *byte ^= source.byte().unwrap_or(1);
                    }
                    self.deliver(&datagram);
                }
            }
            9 => {
                let length = source.some();
                let bytes = source.take(length).to_vec();
                let from = [1, 0, 5, 6][source.some() % 4];
                self.deliver(&Datagram { from, to: who as u8, bytes });
            }
            10 => self.answer(who, Kind::Confirmable, source),
            11 => self.answer(who, Kind::NonConfirmable, source),
            12 => {
                let actor = &mut self.actors[who];
                if let Some(id) = actor.asked.pop() {
                    // Refused only if it lay for too long and had to make room.
                    let before = actor.endpoint.requests();
                    let rejected = actor.endpoint.reject(now, id);
                    let removed = before - actor.endpoint.requests();
                    assert_eq!(removed, u32::from(rejected.is_ok()), "{rejected:?}");
                    self.drain(who, false);
                }
            }
            13 => {
                let actor = &mut self.actors[who];
                let index = source.some() % actor.open.len().max(1);
                if let Some(id) = actor.open.keys().nth(index).copied() {
                    assert!(actor.endpoint.cancel(now, id));
                    self.drain(who, false);
                    assert!(!self.actors[who].open.contains_key(&id), "a cancelled exchange is over");
                }
            }
            14 => self.replace(who, source),
            _ => self.pass(source),
        }
    }

    fn ask(&mut self, who: usize, kind: Kind, source: &mut Source<'_>) {
        let shape = source.some();
        let to = [1 - who as u8, 5, 6, 1 - who as u8][shape & 3];
        let token = if shape & 12 == 12 { Token::new(b"own") } else { None };
        let payload = vec![b'.'; shape >> 4 << (shape & 1)];
        let options: &[(u16, &[u8])] = &[(number::URI_PATH, b"path")];
        let request = Outgoing { kind, code: Code::GET, options, payload: &payload, token };
        let actor = &mut self.actors[who];
        if let Ok(id) = actor.endpoint.request(self.now, to, &request) {
            assert_eq!(actor.open.insert(id, (to, None)), None, "a name is given once");
        }
        self.drain(who, false);
    }

    fn answer(&mut self, who: usize, kind: Kind, source: &mut Source<'_>) {
        let actor = &mut self.actors[who];
        if actor.asked.is_empty() {
            return;
        }
        let id = actor.asked.swap_remove(source.some() % actor.asked.len());
        let payload = vec![b'.'; source.some() % 100];
        let response = Outgoing { kind, ..Outgoing::confirmable(Code::CONTENT, &[]) }.with_payload(&payload);
        let begun = actor.endpoint.counters().begun;
        if let Err(refused) = actor.endpoint.respond(self.now, id, &response) {
            // For want of room, and it can still be answered; or it lay for too long and had to make room itself.
            if refused != Refused::UnknownRequest {
                actor.asked.push(id);
            }
            self.drain(who, false);
            return;
        }
        if actor.endpoint.counters().begun > begun {
            actor.responding.insert(id);
        }
        self.drain(who, false);
        assert!(self.actors[who].endpoint.respond(self.now, id, &response).is_err(), "one answer is enough");
    }

    fn replace(&mut self, who: usize, source: &mut Source<'_>) {
        let to = [1 - who as u8, 5, 6][source.some() % 3];
        let preset = Preset::ALL[source.some() % Preset::ALL.len()];
        let actor = &mut self.actors[who];
        if source.some() & 1 == 0 {
            actor.endpoint.forget_controller(self.now, to);
        } else {
            let controller: AnyController = preset.build();
            let _ = actor.endpoint.set_controller(self.now, to, controller);
        }
        self.drain(who, false);
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
        self.drain(0, false);
        self.drain(1, false);
    }

    /// Wakes whoever sleeps until then, and sees that it was for something.
    fn wake(&mut self, until: Instant) {
        self.now = until;
        for who in 0..2 {
            if self.actors[who].sleep.is_some_and(|sleep| sleep <= until) {
                let outputs = self.drain(who, false);
                let sleep = self.actors[who].sleep;
                assert!(outputs > 0 || sleep.is_none_or(|sleep| sleep > until), "woken for nothing");
            }
        }
    }

    fn pick(&mut self, source: &mut Source<'_>) -> Option<Datagram> {
        let some = source.some();
        (!self.wire.is_empty()).then(|| self.wire.swap_remove(some % self.wire.len()))
    }

    fn deliver(&mut self, datagram: &Datagram) {
        let Some(actor) = self.actors.get_mut(usize::from(datagram.to)) else { return };
        actor.endpoint.receive(self.now, datagram.from, &datagram.bytes);
        let is_reset = Message::parse(&datagram.bytes).is_ok_and(|message| message.kind == Kind::Reset);
        self.drain(usize::from(datagram.to), is_reset);
    }

    /// Drains one endpoint, checks all that it says, and returns how much it said.
    fn drain(&mut self, who: usize, after_reset: bool) -> usize {
        let Self { now, actors, wire, limits } = self;
        let (now, actor) = (*now, &mut actors[who]);
        let mut outputs = 0;
        loop {
            match actor.endpoint.poll(now) {
                Output::Transmit(transmit) => {
                    assert!(transmit.bytes.len() <= usize::from(limits.datagram));
                    let message = Message::parse(transmit.bytes).expect("what is sent is well-formed");
                    assert!(!after_reset || message.kind != Kind::Reset, "a reset was answered with a reset");
                    let is_first = match transmit.cause {
                        Cause::Exchange { id, copy, .. } => {
                            if message.code.is_request() {
                                let token = (transmit.to, Some(message.token));
                                let others = actor.open.iter().filter(|(other, _)| **other != id);
                                assert!(others.clone().all(|(_, taken)| *taken != token), "a token under way was used");
                                assert!(actor.open.insert(id, token).is_some(), "a copy of something that is over");
                            }
                            copy == 0
                        }
                        Cause::Plain => true,
                        Cause::Reply { .. } => message.kind == Kind::NonConfirmable,
                        _ => false,
                    };
                    if is_first && let Some(last) = actor.ids.insert((transmit.to, message.id.0), now) {
                        assert!(now.as_micros() - last.as_micros() >= actor.lifetime, "{} came too early", message.id);
                    }
                    wire.push(Datagram { from: who as u8, to: transmit.to, bytes: transmit.bytes.to_vec() });
                }
                Output::Event(event) => match event {
                    Event::Request { id, .. } => {
                        assert!(!actor.asked.contains(&id));
                        actor.asked.push(id);
                    }
                    Event::Response { exchange, from, .. } => {
                        let (to, _) = actor.open.remove(&exchange).expect("a response to what was asked");
                        assert_eq!(from, to);
                    }
                    Event::Failed { exchange, to, .. } => {
                        let (asked, _) = actor.open.remove(&exchange).expect("the failure of what was asked");
                        assert_eq!(asked, to);
                    }
                    Event::Acknowledged { exchange, .. } => assert!(actor.open.contains_key(&exchange)),
                    Event::Delivered { request, .. } | Event::Undelivered { request, .. } => {
                        assert!(actor.responding.remove(&request), "the end of a response that was begun");
                    }
                    _ => {}
                },
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
        actor.check(limits);
        outputs
    }

    /// Nothing more comes in: everything must end, in bounded time.
    fn come_to_rest(&mut self) {
        self.wire.clear();
        self.drain(0, false);
        self.drain(1, false);
        let mut steps = 0;
        while let Some(next) = self.actors.iter().filter_map(|actor| actor.sleep).min() {
            self.wake(next);
            steps += 1;
            assert!(steps < 20_000, "it never comes to rest");
        }
        for actor in &self.actors {
            assert!(actor.open.is_empty() && actor.responding.is_empty());
            assert_eq!(actor.endpoint.exchanges(), 0);
        }
    }
}

impl Actor {
    fn check(&self, limits: &millpond_coap::Limits) {
        let counters = self.endpoint.counters();
        let over = counters.answered + counters.delivered + counters.failed.total();
        assert_eq!(counters.begun, over + u64::from(self.endpoint.exchanges()), "{counters:?}");
        assert_eq!(self.endpoint.exchanges() as usize, self.open.len() + self.responding.len());
        assert!(self.endpoint.peers() <= limits.peers && self.endpoint.requests() <= limits.requests);
        // Outputs are held until they are drained, whatever the limit.
        assert!(self.endpoint.memory() <= limits.bytes + 2_048, "{} bytes", self.endpoint.memory());
    }
}
