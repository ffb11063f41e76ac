//! What samples are worth, over random paths: every datagram with its own delay, lost or doubled, to an honest server of
//! either kind. The path knows what the client can only be told: which copy called a reply forth.

use std::collections::{BTreeMap, BTreeSet};

use millpond_coap::message::{Kind, Message};
use millpond_coap::{Cause, Config, Duplicates, Endpoint, Event, IdGenerator, Output, RequestId};
use millpond_control::{ChanceSeed, Evidence, Instant, Named, Naming, PeerController, Sample, Span, Wishes};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::pair::{Side, content, get, steady};
use crate::session::{NAMINGS, Wishing};

/// What becomes of one datagram.
#[derive(Clone, Copy, Debug)]
struct Fate {
    /// Milliseconds under way.
    delay: u16,
    lost: bool,
    /// It arrives twice, the second time so many milliseconds after the first.
    again: Option<u16>,
}

#[derive(Clone, Debug)]
struct Schedule {
    naming: Naming,
    duplicates: Duplicates,
    token_length: u16,
    /// Milliseconds that the server's application takes.
    think: u16,
    /// No datagram overtakes another one on the way to the server.
    in_order: bool,
    fates: Vec<Fate>,
}

/// Where a datagram comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// Of a request: exchange and copy.
    Copy(usize, usize),
    /// Called forth by this copy.
    Reply(usize, usize),
    /// All else.
    Other,
}

/// What was made of an answer, and what is true.
#[derive(Debug)]
struct Outcome {
    sample: Sample,
    /// From the copy that called this reply forth until now.
    caller: u64,
    /// The way of the copy named there, when it came for the first time, and of this reply back.
    ways: Option<u64>,
}

const EXCHANGES: usize = 3;

/// All that goes on between the two.
struct World<'s> {
    schedule: &'s Schedule,
    now: u64,
    client: Endpoint<Side>,
    server: Endpoint<Side>,
    sent: usize,
    last_arrival: u64,
    /// When, in the order of sending, where to, what, whence, and when it was sent.
    wire: BTreeSet<(u64, usize, Side, Vec<u8>, Origin, u64)>,
    thinking: BTreeSet<(u64, RequestId)>,
    /// The copies that the server's application is handed.
    asked: BTreeMap<RequestId, (usize, usize)>,
    /// When each copy left, and when it first came to the server.
    left: BTreeMap<(usize, usize), u64>,
    came: BTreeMap<(usize, usize), u64>,
    exchange: usize,
    open: bool,
    sleeps: [u64; 2],
    outcomes: Vec<Outcome>,
}

fn play(schedule: &Schedule) -> Vec<Outcome> {
    let config = Config { duplicates: schedule.duplicates, token_length: schedule.token_length, ..Config::default() };
    let wishes = Wishes { naming: schedule.naming, ..Wishes::NONE };
    let make = |node, controller: PeerController| {
        Endpoint::new(config, controller, ChanceSeed::new(1), node, IdGenerator::counted()).unwrap()
    };
    let mut world = World {
        schedule,
        now: 0,
        client: make(0, PeerController::own(Wishing { inner: steady(), wishes })),
        server: make(1, steady().into()),
        sent: 0,
        last_arrival: 0,
        wire: BTreeSet::new(),
        thinking: BTreeSet::new(),
        asked: BTreeMap::new(),
        left: BTreeMap::new(),
        came: BTreeMap::new(),
        exchange: 0,
        open: false,
        sleeps: [u64::MAX; 2],
        outcomes: Vec::new(),
    };
    world.run();
    world.outcomes
}

impl World<'_> {
    fn now(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    fn run(&mut self) {
        loop {
            if !self.open {
                if self.exchange == EXCHANGES {
                    return;
                }
                self.exchange += 1;
                self.open = true;
                self.client.request(self.now(), Side::Server, &get()).unwrap();
                self.drain_client(Origin::Other, 0);
                continue;
            }
            let arrival = self.wire.first().map_or(u64::MAX, |first| first.0);
            let thought = self.thinking.first().map_or(u64::MAX, |first| first.0);
            self.now = arrival.min(thought).min(self.sleeps[0]).min(self.sleeps[1]);
            if arrival == self.now {
                let (_, _, to, bytes, origin, sent) = self.wire.pop_first().unwrap();
                self.deliver(to, &bytes, origin, sent);
            } else if thought == self.now {
                let (_, id) = self.thinking.pop_first().unwrap();
                self.server.respond(self.now(), id, &content(Kind::NonConfirmable)).unwrap();
                self.drain_server(Origin::Other);
            } else if self.sleeps[0] == self.now {
                self.drain_client(Origin::Other, 0);
            } else {
                self.drain_server(Origin::Other);
            }
        }
    }

    fn deliver(&mut self, to: Side, bytes: &[u8], origin: Origin, sent: u64) {
        let now = self.now();
        if to == Side::Client {
            self.client.receive(now, Side::Server, bytes);
            return self.drain_client(origin, sent);
        }
        if let Origin::Copy(exchange, copy) = origin {
            self.came.entry((exchange, copy)).or_insert(self.now);
        }
        self.server.receive(now, Side::Client, bytes);
        self.drain_server(origin);
    }

    fn send(&mut self, to: Side, bytes: &[u8], origin: Origin) {
        let fates = &self.schedule.fates;
        let fate = fates[self.sent % fates.len()];
        let mut arrival = self.now + u64::from(fate.delay) * 1_000 + 1;
        if self.schedule.in_order && to == Side::Server {
            arrival = arrival.max(self.last_arrival);
            self.last_arrival = arrival;
        }
        if !fate.lost {
            self.wire.insert((arrival, self.sent, to, bytes.to_vec(), origin, self.now));
        }
        self.sent += 1;
        if let Some(more) = fate.again.filter(|_| !self.schedule.in_order || to == Side::Client) {
            let again = (arrival + u64::from(more) * 1_000, self.sent, to, bytes.to_vec(), origin, self.now);
            self.wire.insert(again);
            self.sent += 1;
        }
    }

    fn drain_client(&mut self, arrived: Origin, arrived_sent: u64) {
        let mut outgoing = Vec::new();
        let now = self.now();
        loop {
            match self.client.poll(now) {
                Output::Transmit(transmit) => {
                    let origin = match transmit.cause {
                        Cause::Exchange { copy, .. } => {
                            self.left.insert((self.exchange, usize::from(copy)), self.now);
                            Origin::Copy(self.exchange, usize::from(copy))
                        }
                        _ => Origin::Other,
                    };
                    outgoing.push((transmit.bytes.to_vec(), origin));
                }
                Output::Event(Event::Response { sample, message, .. }) => {
                    self.open = false;
                    if let (Some(sample), Kind::Acknowledgement) = (sample, message.kind) {
                        let Origin::Reply(exchange, copy) = arrived else { panic!("{arrived:?}") };
                        assert_eq!(exchange, self.exchange, "an answer to another request");
                        let back = self.now - arrived_sent;
                        let ways = match sample.named() {
                            Named::Copy(named) => {
                                let named = (exchange, usize::from(named));
                                Some(self.came[&named] - self.left[&named] + back)
                            }
                            _ => None,
                        };
                        self.outcomes.push(Outcome { sample, caller: self.now - self.left[&(exchange, copy)], ways });
                    }
                }
                Output::Event(Event::Failed { .. }) => self.open = false,
                Output::Event(_) => {}
                Output::Sleep(until, _) => break self.sleeps[0] = until.as_micros(),
                Output::Idle => break self.sleeps[0] = u64::MAX,
            }
        }
        for (bytes, origin) in outgoing {
            self.send(Side::Server, &bytes, origin);
        }
    }

    fn drain_server(&mut self, arrived: Origin) {
        let mut outgoing = Vec::new();
        let now = self.now();
        loop {
            match self.server.poll(now) {
                Output::Transmit(transmit) => {
                    let origin = match (transmit.cause, arrived) {
                        // A stored reply is called forth by the copy that just came.
                        (Cause::Reply { repeated: true, .. }, Origin::Copy(exchange, copy)) => {
                            Origin::Reply(exchange, copy)
                        }
                        (Cause::Reply { request, .. }, _) => {
                            let (exchange, copy) = self.asked[&request];
                            Origin::Reply(exchange, copy)
                        }
                        _ => Origin::Other,
                    };
                    assert!(Message::parse(transmit.bytes).is_ok());
                    outgoing.push((transmit.bytes.to_vec(), origin));
                }
                Output::Event(Event::Request { id, .. }) => {
                    let Origin::Copy(exchange, copy) = arrived else { panic!("{arrived:?}") };
                    self.asked.insert(id, (exchange, copy));
                    self.thinking.insert((self.now + u64::from(self.schedule.think) * 1_000, id));
                }
                Output::Event(_) => {}
                Output::Sleep(until, _) => break self.sleeps[1] = until.as_micros(),
                Output::Idle => break self.sleeps[1] = u64::MAX,
            }
        }
        for (bytes, origin) in outgoing {
            self.send(Side::Client, &bytes, origin);
        }
    }
}

fn micros(span: Span) -> u64 {
    u64::from(span.as_micros())
}

/// What must hold of an answer.
fn judge(schedule: &Schedule, outcome: &Outcome) {
    let Outcome { sample, caller, ways } = outcome;
    let told = match sample.evidence() {
        Evidence::Exact(rtt) => micros(rtt.span()),
        Evidence::Echoed { at_most } => micros(at_most),
        Evidence::Ambiguous { at_most, at_least, .. } => {
            assert!(micros(at_least) <= *caller && *caller <= micros(at_most));
            return;
        }
        Evidence::None => panic!("a piggybacked response gives a sample"),
    };
    // Never less than the way of the copy named there and of the reply back.
    assert!(ways.is_none_or(|ways| told >= ways), "{schedule:?} {outcome:?}");
    // A server that stores can learn a copy's number by one that overtook it.
    let knows = schedule.in_order || schedule.duplicates == Duplicates::Afresh;
    match sample.evidence() {
        Evidence::Exact(_) if knows => assert_eq!(told, *caller, "{schedule:?} {outcome:?}"),
        Evidence::Echoed { .. } if knows => assert!(told >= *caller, "{schedule:?} {outcome:?}"),
        _ => {}
    }
    if schedule.duplicates == Duplicates::Afresh && ways.is_some() {
        assert_eq!(told, *caller, "a server that answers each copy by itself names it");
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    // Waits are 2.5, 5, 10, 20 and 40 s.
    let delay = prop_oneof![4 => 0_u16..300, 2 => 0_u16..4_000, 1 => 0_u16..30_000];
    let again = prop_oneof![4 => Just(None), 1 => (0_u16..9_000).prop_map(Some)];
    (delay, prop::bool::weighted(0.35), again).prop_map(|(delay, lost, again)| Fate { delay, lost, again })
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let shape = (0..NAMINGS.len(), any::<bool>(), prop_oneof![Just(0_u8), Just(4), Just(8)], any::<bool>());
    // Some answers take longer than an acknowledgement may.
    let think = prop_oneof![3 => Just(0_u16), 2 => 1_u16..500, 1 => 500_u16..6_000];
    (shape, think, vec(fate(), 1..40)).prop_map(|((naming, stored, token_length, in_order), think, fates)| Schedule {
        naming: NAMINGS[naming],
        duplicates: if stored { Duplicates::Stored } else { Duplicates::Afresh },
        token_length: token_length.into(),
        think,
        in_order,
        fates,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// An exact round-trip time is that of the copy answered and an echoed one never below it.
    #[test]
    fn samples_are_facts(schedule in schedule()) {
        for outcome in play(&schedule) {
            judge(&schedule, &outcome);
        }
    }
}

/// The property above would hold of schedules in which nothing happens. In these all happens: the same generator, with
/// numbers counted up.
#[test]
fn every_grade_comes_up_with_every_naming() {
    let mut word = 7_u64;
    let mut below = |limit: u64| {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (word >> 33) % limit
    };
    let mut seen: BTreeMap<(usize, bool), [u32; 4]> = BTreeMap::new();
    for round in 0..4_000_usize {
        let fates = (0..24).map(|_| Fate {
            delay: if below(3) == 0 { below(6_000) } else { below(300) } as u16,
            lost: below(3) == 0,
            again: None,
        });
        let schedule = Schedule {
            naming: NAMINGS[round % 5],
            duplicates: if round / 5 % 2 == 0 { Duplicates::Stored } else { Duplicates::Afresh },
            token_length: 0,
            think: 0,
            in_order: round / 10 % 2 == 0,
            fates: fates.collect(),
        };
        for outcome in play(&schedule) {
            judge(&schedule, &outcome);
            if outcome.sample.retransmissions() > 0 {
                let counts = seen.entry((round % 5, schedule.duplicates == Duplicates::Stored)).or_default();
                match outcome.sample.evidence() {
                    Evidence::Exact(_) => counts[0] += 1,
                    // Just the round trip of the copy answered, or longer.
                    Evidence::Echoed { at_most } if micros(at_most) == outcome.caller => counts[1] += 1,
                    Evidence::Echoed { .. } => counts[2] += 1,
                    _ => counts[3] += 1,
                }
            }
        }
    }
    for ((naming, stored), [exact, echoed_true, echoed_long, ambiguous]) in seen {
        let what = format!("{:?}, stored: {stored}", NAMINGS[naming]);
        match NAMINGS[naming] {
            Naming::None => assert_eq!((exact, echoed_true, echoed_long), (0, 0, 0), "{what}"),
            Naming::Flag => assert!(exact > 20 && echoed_true > 20 && ambiguous > 20, "{what}"),
            _ => assert!(exact > 20 && echoed_true > 20 && ambiguous == 0, "{what}"),
        }
        if NAMINGS[naming] != Naming::None {
            assert_eq!(echoed_long > 20, stored, "{what}: {echoed_long} longer than true");
        }
    }
}
