//! What must hold of two endpoints whatever they are asked to do and whatever their path does. Also the body of the
//! fuzz target `endpoint`.
//!
//! A session is read from bytes: first the configuration, then one operation after the other. Datagrams may be lost,
//! doubled, reordered, damaged and invented.

#[path = "session/actor.rs"]
mod actor;
#[path = "session/wishing.rs"]
mod wishing;

use std::collections::{BTreeMap, BTreeSet};

use millpond_coap::message::{Code, Kind, Message, Token, number};
use millpond_coap::{
    Cause, Config, Duplicates, Endpoint, Event, ExchangeId, IdGenerator, Lifetimes, Outgoing, Output, Refused, Transmit,
};
use millpond_control::{ChanceSeed, Instant, Named, Naming, PeerController, Preset, Span, Wishes};

use actor::{Actor, Address, Asked};
pub(crate) use wishing::Wishing;

/// All ways of telling copies apart.
pub(crate) const NAMINGS: [Naming; 5] = [Naming::None, Naming::Token, Naming::Count, Naming::Flag, Naming::Timestamp];

/// Plays the session that these bytes describe.
pub(crate) fn check(bytes: &[u8]) {
    let mut source = Source { bytes };
    let Some(mut session) = Session::new(&mut source) else { return };
    while let Some(operation) = source.byte() {
        session.step(operation, &mut source);
    }
    session.come_to_rest();
}

/// A preset for every number.
fn preset(number: usize) -> Preset {
    let all: Vec<_> = Preset::all().collect();
    all[number % all.len()]
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

struct Datagram {
    from: Address,
    to: Address,
    bytes: Vec<u8>,
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
        config.longest_token = [8, 20][usize::from(shape >> 1 & 1)];
        let id_generator = [IdGenerator::counted(), IdGenerator::secret([7; 16])][usize::from(shape & 1)];
        let controller = preset(usize::from(sizes)).build();
        let make = |node| Endpoint::new(config, controller, ChanceSeed::new(3), node, id_generator).unwrap();
        let actor = |node| Actor {
            endpoint: make(node),
            asked: Vec::new(),
            responding: BTreeSet::new(),
            plain: BTreeSet::new(),
            begun: 0,
            confirmed: 0,
            further: BTreeSet::new(),
            further_ended: 0,
            confirmable: BTreeSet::new(),
            pings: BTreeSet::new(),
            kept: Vec::new(),
            open: BTreeMap::new(),
            ids: BTreeMap::new(),
            tokens: BTreeMap::new(),
            lifetime: Lifetimes::of(&controller, &config.transmission).exchange,
            sleep: None,
            held: 0,
        };
        let actors = [actor(0), actor(1)];
        Some(Self { now: Instant::from_micros(1), actors, wire: Vec::new(), limits: config.limits })
    }

    fn step(&mut self, operation: u8, source: &mut Source<'_>) {
        let who = usize::from(operation >> 7);
        let now = self.now;
        if operation & 0x70 == 0x70 {
            return self.beyond(who, operation & 15, source);
        }
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
        // Sometimes with an option of its own where copies may be distinguished.
        let options: &[(u16, &[u8])] = &[(number::URI_PATH, b"path"), (65_020, b"app"), (65_500, b"")];
        let options = &options[..if shape & 12 == 8 { 3 } else { 1 }];
        let request = Outgoing { kind, token, ..Outgoing::confirmable(Code::GET, options) }.with_payload(&payload);
        let actor = &mut self.actors[who];
        if let Ok(id) = actor.endpoint.request(self.now, to, &request) {
            let asked = Asked { to, tokens: Vec::new(), left: Vec::new(), renews: false };
            assert!(actor.open.insert(id, asked).is_none(), "a name is given once");
            actor.begun += 1;
        }
        self.drain(who, false);
    }

    /// Subscriptions, claims, further responses and pings.
    fn beyond(&mut self, who: usize, operation: u8, source: &mut Source<'_>) {
        let now = self.now;
        let shape = source.some();
        let to = [1 - who as u8, 5, 6, 1 - who as u8][shape & 3];
        let kind = if shape & 4 == 0 { Kind::Confirmable } else { Kind::NonConfirmable };
        let actor = &mut self.actors[who];
        // Tokens that are in use somewhere.
        let known: Vec<Token> = actor.kept.iter().filter_map(|(_, token)| *token).collect();
        let token = known.get(shape >> 3 & 3).copied();
        let payload = vec![b'.'; shape >> 4];
        let asked = |actor: &mut Actor, id: ExchangeId, renews: bool| {
            let asked = Asked { to, tokens: Vec::new(), left: Vec::new(), renews };
            assert!(actor.open.insert(id, asked).is_none(), "a name is given once");
            actor.begun += 1;
        };
        match operation {
            0..=3 => {
                let request = Outgoing { kind, token, ..Outgoing::confirmable(Code::GET, &[(number::OBSERVE, b"")]) };
                if let Ok(id) = actor.endpoint.subscribe(now, to, &request) {
                    asked(actor, id, token.is_some());
                    actor.kept.push((id, None));
                }
            }
            4..=6 if !actor.kept.is_empty() => {
                let (id, _) = actor.kept.swap_remove(shape % actor.kept.len());
                actor.endpoint.unsubscribe(now, id);
            }
            7..=11 => {
                // On a token of the other one, most often.
                let theirs = &self.actors[1 - who].kept;
                let token = theirs.get(shape >> 3 & 3).and_then(|kept| kept.1).unwrap_or_default();
                let code = if operation == 11 && kind == Kind::NonConfirmable { Code::PUT } else { Code::CONTENT };
                let further = Outgoing { kind, ..Outgoing::confirmable(code, &[]) }.with_payload(&payload);
                let actor = &mut self.actors[who];
                let sent = match operation {
                    7..=9 => actor.endpoint.send_additional(now, to, token, &further),
                    _ => actor.endpoint.send_of_body(now, to, token, &further),
                };
                if let Ok(id) = sent {
                    assert!(actor.further.insert(id), "a name is given once");
                    if kind == Kind::Confirmable {
                        actor.confirmable.insert(id);
                    }
                }
            }
            12 | 13 => {
                if let Ok(id) = actor.endpoint.ping(now, to) {
                    asked(actor, id, false);
                    actor.pings.insert(id);
                }
            }
            _ => {
                if let Ok((id, token)) = actor.endpoint.claim(now, to) {
                    actor.kept.push((id, Some(token)));
                }
            }
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
            // For want of room, and then it is dropped; or it lay for too long and had to make room itself.
            assert!(!matches!(refused, Refused::Message(_)), "{refused}");
            let now = self.now;
            self.drain(who, false);
            let again = self.actors[who].endpoint.respond(now, id, &response);
            assert_eq!(again, Err(Refused::UnknownRequest));
            return;
        }
        if actor.endpoint.counters().begun > begun {
            actor.responding.insert(id);
            actor.begun += 1;
        } else {
            actor.plain.insert(id);
        }
        self.drain(who, false);
        assert!(self.actors[who].endpoint.respond(self.now, id, &response).is_err(), "one answer is enough");
    }

    fn replace(&mut self, who: usize, source: &mut Source<'_>) {
        let to = [1 - who as u8, 5, 6][source.some() % 3];
        let preset = preset(source.some());
        let actor = &mut self.actors[who];
        let how = source.some();
        let naming = NAMINGS.get(how >> 1 & 7).copied().unwrap_or_default();
        let last_wait = if how & 0x80 == 0 { Span::ZERO } else { Span::from_secs(32) };
        let wishes = Wishes { naming, confirmable_every: (how >> 4) as u8, last_wait, ..Wishes::NONE };
        if how & 1 == 0 {
            actor.endpoint.forget_controller(self.now, to);
        } else if wishes == Wishes::NONE {
            let _ = actor.endpoint.set_controller(self.now, to, preset.build());
        } else {
            let controller = PeerController::own(Wishing { inner: preset.build(), wishes });
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

    /// Wakes a peer that sleeps until then, and sees that it was for something.
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
                Output::Transmit(Transmit { to, bytes, cause }) => {
                    let bytes = bytes.to_vec();
                    let (message, token) = Message::parse_extended(&bytes).expect("what is sent is well-formed");
                    let beyond = if message.token.is_long() { token.len() - 7 } else { 0 };
                    assert!(bytes.len() <= usize::from(limits.datagram) + beyond);
                    assert!(!after_reset || message.kind != Kind::Reset, "a reset was answered with a reset");
                    let is_first = match cause {
                        Cause::Exchange { id, copy, .. } => {
                            actor.confirmable.insert(id);
                            if actor.pings.contains(&id) || (message.code.is_request() && !actor.further.contains(&id))
                            {
                                actor.copy_left(id, usize::from(copy), to, message.token, now);
                            }
                            copy == 0
                        }
                        Cause::NonConfirmableRequest => true,
                        Cause::Reply { .. } => message.kind == Kind::NonConfirmable,
                        _ => false,
                    };
                    // Of unvalidated peers that had to make room for others nothing is known any more, nor of those that are answered
                    // when half of the places are taken.
                    let all_kept = actor.endpoint.peers() < limits.peers.div_ceil(2)
                        && actor.endpoint.counters().forgotten_peers == 0;
                    if is_first
                        && let Some(last) = actor.ids.insert((to, message.id.0), now)
                        && all_kept
                    {
                        assert!(now.as_micros() - last.as_micros() >= actor.lifetime, "{} came too early", message.id);
                    }
                    wire.push(Datagram { from: who as u8, to, bytes });
                }
                Output::Event(event) => match event {
                    Event::Request { id, .. } => {
                        assert!(!actor.asked.contains(&id));
                        actor.asked.push(id);
                    }
                    Event::Response { exchange, from, sample, message, .. } => {
                        if let Some(kept) = actor.kept.iter_mut().find(|(id, _)| *id == exchange) {
                            kept.1 = Some(message.token);
                        }
                        let asked = actor.open.remove(&exchange).expect("a response to what was asked");
                        assert_eq!(from, asked.to);
                        if let Some(sample) = sample {
                            asked.judge(&sample, now);
                        }
                    }
                    Event::AdditionalResponse { exchange, .. } => {
                        assert!(actor.kept.iter().any(|(id, _)| *id == exchange), "nobody listens to that");
                    }
                    Event::Rejected { exchange, .. } => {
                        assert!(actor.further.contains(&exchange), "it was sent");
                    }
                    Event::Pong { exchange, from, sample } => {
                        assert!(actor.pings.remove(&exchange));
                        let asked = actor.open.remove(&exchange).expect("a ping");
                        assert_eq!(from, asked.to);
                        asked.judge(&sample, now);
                    }
                    Event::Failed { exchange, to, .. } => {
                        actor.kept.retain(|(id, _)| *id != exchange);
                        let asked = actor.open.remove(&exchange).expect("the failure of what was asked");
                        assert_eq!(asked.to, to);
                    }
                    Event::Overdue { exchange, to } => {
                        assert_eq!(actor.open[&exchange].to, to);
                        assert!(actor.endpoint.overdue(to) > 0, "it makes way");
                    }
                    Event::Acknowledged { exchange, sample, .. } => {
                        assert_eq!(sample.named(), Named::Nothing, "an empty acknowledgement says nothing");
                        actor.open[&exchange].judge(&sample, now);
                    }
                    Event::Delivered { exchange, request: Some(request), .. }
                    | Event::Undelivered { exchange, request: Some(request), .. } => {
                        let was_plain = !actor.responding.remove(&request);
                        assert!(!was_plain || actor.plain.remove(&request), "the end of a response that was sent");
                        actor.confirmed += u64::from(was_plain && actor.confirmable.contains(&exchange));
                    }
                    Event::Delivered { exchange, request: None, .. }
                    | Event::Undelivered { exchange, request: None, .. } => {
                        assert!(actor.further.contains(&exchange), "it was sent");
                        actor.further_ended += u64::from(actor.confirmable.contains(&exchange));
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
        actor.held = actor.held.max(outputs);
        actor.check(limits);
        outputs
    }

    /// Nothing more comes in: everything must end, in bounded time.
    fn come_to_rest(&mut self) {
        self.wire.clear();
        for who in 0..2 {
            // As long as a token is in use, what has the same one waits.
            for (id, _) in std::mem::take(&mut self.actors[who].kept) {
                self.actors[who].endpoint.unsubscribe(self.now, id);
                self.drain(who, false);
            }
        }
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
