//! A client and a server with a path between them, and a log of all that happens.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use millpond_coap::message::{Code, Kind, Message, number};
use millpond_coap::{
    Cause, Config, Endpoint, Event, ExchangeId, IdGenerator, Outgoing, Output, Refused, RequestId, Transmit,
};
use millpond_control::{
    AnyController, ChanceSeed, Evidence, Instant, Named, Naming, PeerController, Preset, Sample, SettingValue, Span,
    Wishes,
};

use crate::session::Wishing;

/// Where an endpoint is; also its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
    fn other(self) -> Self {
        if self == Self::Client { Self::Server } else { Self::Client }
    }

    fn letter(self) -> char {
        if self == Self::Client { 'C' } else { 'S' }
    }
}

pub(crate) const SECOND: u64 = 1_000_000;

/// One way.
const DELAY: u64 = SECOND / 20;

/// The two, and what is under way between them.
pub(crate) struct Pair {
    /// Microseconds.
    pub(crate) now: u64,
    pub(crate) client: Endpoint<Side>,
    pub(crate) server: Endpoint<Side>,
    /// Numbers of the datagrams that get lost, in the order of sending, both ways counted together.
    pub(crate) lose: BTreeSet<usize>,
    /// Datagrams that take longer or less long than usual, by number, in microseconds.
    pub(crate) delays: BTreeMap<usize, u64>,
    /// All datagrams that were sent.
    pub(crate) datagrams: Vec<Vec<u8>>,
    /// How long the server's application takes to answer; `None` if it never does.
    pub(crate) think: Option<u64>,
    /// What it answers with, should the response not be piggybacked.
    pub(crate) answer: Kind,
    /// The last request that an application was handed.
    pub(crate) handed: Option<RequestId>,
    /// When, where and what arrives; the number keeps the order of sending.
    wire: BTreeSet<(u64, usize, Side, Vec<u8>)>,
    owed: BTreeSet<(u64, RequestId)>,
    sleeps: [u64; 2],
    log: Vec<String>,
}

/// A controller whose first wait is always 2.5 s, the middle of what RFC 7252 draws from.
pub(crate) fn steady() -> AnyController {
    let mut controller = Preset::RFC7252.build();
    controller.set("ack-timeout", SettingValue::Time(Span::from_millis(2_500))).unwrap();
    controller.set("random-factor", SettingValue::Ratio(1_000)).unwrap();
    controller
}

pub(crate) fn endpoint<A: Copy + Eq + std::hash::Hash + std::fmt::Debug>(
    node: u32,
    change: impl FnOnce(&mut Config),
) -> Endpoint<A> {
    let mut config = Config::default();
    change(&mut config);
    Endpoint::new(config, steady(), ChanceSeed::new(1), node, IdGenerator::counted()).unwrap()
}

/// PROBING_RATE holds nothing back.
pub(crate) fn at_any_rate(config: &mut Config) {
    config.transmission.probing_rate = u32::MAX;
}

pub(crate) const HELLO: &[(u16, &[u8])] = &[(number::URI_PATH, b"hello")];

pub(crate) fn get() -> Outgoing<'static> {
    Outgoing::confirmable(Code::GET, HELLO)
}

pub(crate) fn content(kind: Kind) -> Outgoing<'static> {
    Outgoing { kind, ..Outgoing::confirmable(Code::CONTENT, &[]) }.with_payload(b"world")
}

/// A response with the option Observe.
pub(crate) fn notification(kind: Kind) -> Outgoing<'static> {
    Outgoing { kind, ..Outgoing::confirmable(Code::CONTENT, &[(number::OBSERVE, b"\x01")]) }.with_payload(b"more")
}

impl Pair {
    pub(crate) fn new(change: impl Fn(Side, &mut Config)) -> Self {
        Self {
            now: 0,
            client: endpoint(0, |config| change(Side::Client, config)),
            server: endpoint(1, |config| change(Side::Server, config)),
            lose: BTreeSet::new(),
            delays: BTreeMap::new(),
            datagrams: Vec::new(),
            think: Some(0),
            answer: Kind::Confirmable,
            handed: None,
            wire: BTreeSet::new(),
            owed: BTreeSet::new(),
            sleeps: [u64::MAX; 2],
            log: Vec::new(),
        }
    }

    /// With the defaults of the configuration.
    pub(crate) fn usual() -> Self {
        Self::new(|_, _| {})
    }

    pub(crate) fn losing(mut self, lose: impl IntoIterator<Item = usize>) -> Self {
        self.lose = lose.into_iter().collect();
        self
    }

    /// The client's controller wishes this.
    pub(crate) fn wishing(mut self, wishes: Wishes) -> Self {
        let controller = PeerController::own(Wishing { inner: steady(), wishes });
        self.client.set_controller(self.now(), Side::Server, controller).unwrap();
        self.drain(Side::Client);
        self
    }

    pub(crate) fn naming(self, naming: Naming) -> Self {
        self.wishing(Wishes { naming, ..Wishes::NONE })
    }

    pub(crate) fn thinking(mut self, think: u64) -> Self {
        self.think = Some(think);
        self
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    /// The client asks.
    pub(crate) fn get(&mut self) -> ExchangeId {
        self.ask(&get()).unwrap()
    }

    pub(crate) fn ask(&mut self, request: &Outgoing<'_>) -> Result<ExchangeId, Refused> {
        let id = self.client.request(self.now(), Side::Server, request);
        self.drain(Side::Client);
        id
    }

    /// The client asks, and goes on listening.
    pub(crate) fn subscribe(&mut self, request: &Outgoing<'_>) -> Result<ExchangeId, Refused> {
        let id = self.client.subscribe(self.now(), Side::Server, request);
        self.drain(Side::Client);
        id
    }

    /// The server says more on the token of the first datagram.
    pub(crate) fn say(&mut self, kind: Kind) -> Result<ExchangeId, Refused> {
        let token = Message::parse(&self.datagrams[0]).unwrap().token;
        let id = self.server.send_additional(self.now(), Side::Client, token, &notification(kind));
        self.drain(Side::Server);
        id
    }

    pub(crate) fn unsubscribe(&mut self, exchange: ExchangeId) -> bool {
        let was_open = self.client.unsubscribe(self.now(), exchange);
        self.drain(Side::Client);
        was_open
    }

    pub(crate) fn cancel(&mut self, exchange: ExchangeId) -> bool {
        let was_open = self.client.cancel(self.now(), exchange);
        self.drain(Side::Client);
        was_open
    }

    /// A datagram out of the blue.
    pub(crate) fn inject(&mut self, to: Side, datagram: &[u8]) {
        let now = self.now();
        self.side(to).receive(now, to.other(), datagram);
        self.drain(to);
    }

    /// Everything that has happened, and nothing any more.
    pub(crate) fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// Asserts what has happened since the last time this was asked.
    #[track_caller]
    pub(crate) fn happened(&mut self, expected: &[&str]) {
        let log = self.take_log();
        assert!(
            log.iter().eq(expected.iter()),
            "happened:\n  {}\nexpected:\n  {}",
            log.join("\n  "),
            expected.join("\n  ")
        );
        self.check();
    }

    /// Lets time pass until nothing is under way and both sides sleep for ever.
    pub(crate) fn run(&mut self) {
        self.run_until(u64::MAX);
    }

    /// Lets time pass up to this point, what happens at it included.
    pub(crate) fn run_until(&mut self, end: u64) {
        loop {
            let arrival = self.wire.first().map_or(u64::MAX, |first| first.0);
            let answer = self.owed.first().map_or(u64::MAX, |first| first.0);
            let next = arrival.min(answer).min(self.sleeps[0]).min(self.sleeps[1]);
            if next == u64::MAX || next > end {
                break;
            }
            self.now = next;
            if arrival == next {
                let (_, _, to, bytes) = self.wire.pop_first().unwrap();
                self.inject(to, &bytes);
            } else if answer == next {
                let (_, request) = self.owed.pop_first().unwrap();
                self.server.respond(self.now(), request, &content(self.answer)).unwrap();
                self.drain(Side::Server);
            } else if self.sleeps[0] == next {
                self.drain(Side::Client);
            } else {
                self.drain(Side::Server);
            }
        }
        if end != u64::MAX {
            self.now = end;
        }
    }

    /// Drains one side: puts on the wire what it sends and writes down what it says.
    pub(crate) fn drain(&mut self, side: Side) {
        let now = self.now();
        for step in 0.. {
            assert!(step < 1_000, "draining does not end");
            let endpoint = if side == Side::Client { &mut self.client } else { &mut self.server };
            let said = match endpoint.poll(now) {
                Output::Transmit(Transmit { to, bytes, cause }) => {
                    assert_eq!(to, side.other());
                    let number = self.datagrams.len();
                    let lost = self.lose.contains(&number);
                    if !lost {
                        let delay = self.delays.get(&number).copied().unwrap_or(DELAY);
                        self.wire.insert((self.now + delay, number, to, bytes.to_vec()));
                    }
                    self.datagrams.push(bytes.to_vec());
                    let (message, _) = Message::parse_extended(bytes).unwrap();
                    let copy = match cause {
                        Cause::Exchange { copy, .. } if copy > 0 => format!(" #{copy}"),
                        Cause::Reply { repeated: true, .. } => " again".to_owned(),
                        _ => String::new(),
                    };
                    format!("sends {}{copy}{}", shape(&message), if lost { " (lost)" } else { "" })
                }
                Output::Event(event) => {
                    if let Event::Request { id, .. } = event {
                        self.handed = Some(id);
                        self.owed.extend(self.think.map(|think| (self.now + think, id)));
                    }
                    line(event)
                }
                Output::Sleep(until, _) => {
                    assert!(until > now, "asleep until {until:?} at {now:?}");
                    self.sleeps[side as usize] = until.as_micros();
                    return;
                }
                Output::Idle => {
                    self.sleeps[side as usize] = u64::MAX;
                    return;
                }
            };
            self.log.push(format!("{} {} {said}", seconds(self.now), side.letter()));
        }
    }

    fn side(&mut self, side: Side) -> &mut Endpoint<Side> {
        if side == Side::Client { &mut self.client } else { &mut self.server }
    }

    /// What is begun is over or under way.
    fn check(&self) {
        for endpoint in [&self.client, &self.server] {
            let counters = endpoint.counters();
            let over = counters.answered + counters.delivered + counters.failed.total();
            assert_eq!(counters.begun, over + u64::from(endpoint.exchanges()), "{counters:?}");
        }
    }
}

fn line(event: Event<'_, Side>) -> String {
    match event {
        Event::Request { message, .. } => format!("has {}", shape(&message)),
        Event::Response { message, sample, copies, .. } => {
            let sample = sample.map_or("no sample".to_owned(), |sample| told(&sample));
            let copies = if copies == 1 { String::new() } else { format!(", {copies} copies") };
            format!("gets {}: {sample}{copies}", shape(&message))
        }
        Event::Acknowledged { sample, .. } => format!("is acknowledged: {}", told(&sample)),
        Event::Overdue { .. } => "is overdue".to_owned(),
        Event::Failed { why, .. } => format!("fails: {why:?}"),
        Event::AdditionalResponse { message, .. } => format!("gets further {}", shape(&message)),
        Event::Rejected { .. } => "is rejected".to_owned(),
        Event::Pong { sample, .. } => format!("has a pong: {}", told(&sample)),
        Event::Delivered { sample, .. } => format!("has delivered: {}", told(&sample)),
        Event::Undelivered { why, .. } => format!("has not delivered: {why:?}"),
        Event::Late { message, .. } => format!("is told late {}", shape(&message)),
        Event::Ignored { why, .. } => format!("ignores {why:?}"),
        other => panic!("unknown event {other:?}"),
    }
}

/// Kind, code and message ID: `CON GET 0`, `ACK 0`; and how long the token is if it is long.
fn shape(message: &Message<'_>) -> String {
    let long = if message.token.is_long() { format!(" token {}", message.token) } else { String::new() };
    match message.code.name() {
        Some(_) if message.code.is_empty() => format!("{} {}", message.kind, message.id.0),
        Some(name) => format!("{} {name} {}{long}", message.kind, message.id.0),
        None => format!("{} {} {}{long}", message.kind, message.code, message.id.0),
    }
}

/// Kind and time since the first copy, and if the sample names one, which, with its grade and what that gives.
fn told(sample: &Sample) -> String {
    let named = match sample.named() {
        Named::Nothing => return format!("{:?} after {}", sample.kind(), sample.since_first()),
        Named::Copy(copy) => format!("copy {copy}"),
        Named::Further => "a further copy".to_owned(),
    };
    let grade = match sample.evidence() {
        Evidence::Exact(rtt) => format!("exactly {}", rtt.span()),
        Evidence::Echoed { at_most } => format!("at most {at_most}"),
        Evidence::Ambiguous { at_most, at_least, .. } => format!("from {at_least} to {at_most}"),
        Evidence::None => "nothing".to_owned(),
    };
    format!("{:?} after {}, {named}: {grade}", sample.kind(), sample.since_first())
}

/// `2.5`
fn seconds(micros: u64) -> impl Display {
    Instant::from_micros(micros).since(Instant::ORIGIN).to_string().trim_end_matches(" s").to_owned()
}
