//! A client and a server, and a path between them that does what a test says.

use alloc::{boxed::Box, string::String, vec::Vec};

use std::collections::BTreeMap;

use crate::block::BlockSize;
use crate::block::robust::{BurstClient, BurstFailure, BurstId, BurstOptions, BurstServer, End, Next, Whole};
use crate::message::{Code, Kind, Message, number};
use crate::transfer::{Answer, ClientRequest};
use crate::{Config, Endpoint, Event, IdGenerator, Outgoing, Output};
use millpond_control::{ChanceSeed, Instant, Preset, Purpose, Span};

pub(crate) const CLIENT: u8 = 0;
pub(crate) const SERVER: u8 = 1;

/// A body of so many bytes, no two blocks alike.
pub(crate) fn body(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8 ^ (index / 251) as u8).collect()
}

pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_micros(millis * 1_000)
}

/// Whether a datagram of this number is lost.
type Lost = fn(usize, &[u8]) -> bool;

/// One direction.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// Bits a second; 0 for at once. IPv4 and UDP headers count.
    pub(crate) rate: u64,
    pub(crate) delay: Span,
    /// Bytes that may wait, what is being sent included.
    pub(crate) queue: u64,
    /// Which of its datagrams are lost, by their numbers.
    pub(crate) lost: Lost,
    /// Which of its datagrams arrive so much later.
    pub(crate) late: fn(usize) -> u64,
    /// This one is lost besides.
    pub(crate) lost_one: Option<usize>,
    /// A seed, and of how many one is lost besides; 0 for none.
    pub(crate) chance: (u64, u32),
    free: Instant,
    pub(crate) sent: usize,
    pub(crate) dropped: usize,
}

impl Way {
    pub(crate) fn new(rate: u64, delay: u32) -> Self {
        let delay = Span::from_millis(delay);
        Self {
            rate,
            delay,
            queue: u64::MAX,
            lost: |_, _| false,
            late: |_| 0,
            lost_one: None,
            chance: (0, 0),
            free: Instant::ORIGIN,
            sent: 0,
            dropped: 0,
        }
    }

    /// When a datagram arrives, if it does.
    fn carry(&mut self, now: Instant, bytes: &[u8]) -> Option<Instant> {
        let number = self.sent;
        self.sent += 1;
        let length = bytes.len() as u64 + 28;
        let waiting = self.free.as_micros().saturating_sub(now.as_micros()) * self.rate / 8_000_000;
        if waiting + length > self.queue {
            self.dropped += 1;
            return None;
        }
        let micros = (length * 8_000_000).checked_div(self.rate).unwrap_or(0);
        self.free = Instant::from_micros(self.free.max(now).as_micros() + micros);
        let arrival = self.free.after(self.delay).as_micros() + (self.late)(number) * 1_000;
        let (seed, one_in) = self.chance;
        let word = ChanceSeed::new(seed).at(Purpose::Loss, [number as u32, one_in, 0, 0]);
        let is_lost = self.lost_one == Some(number) || (one_in > 0 && word.falls_below(1_000_000 / (one_in + 1)));
        if (self.lost)(number, bytes) || is_lost { None } else { Some(Instant::from_micros(arrival)) }
    }
}

/// A datagram that was sent: when, by whom, and what.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) from: u8,
    pub(crate) bytes: Vec<u8>,
}

impl Sent {
    pub(crate) fn message(&self) -> Message<'_> {
        Message::parse(&self.bytes).unwrap()
    }

    /// `NON 2.05 QB2:3/1` and the like.
    pub(crate) fn summary(&self) -> String {
        let message = self.message();
        let kind = match message.kind {
            Kind::Confirmable => "CON",
            Kind::NonConfirmable => "NON",
            Kind::Acknowledgement => "ACK",
            Kind::Reset => "RST",
        };
        let mut text = format!("{kind} {}", message.code);
        for (number, name) in [(19, "QB1"), (23, "B2"), (27, "B1"), (31, "QB2")] {
            for value in message.values(number) {
                let bits = value.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
                text += &format!(" {name}:{}/{}", bits >> 4, bits >> 3 & 1);
            }
        }
        if message.code == Code::REQUEST_ENTITY_INCOMPLETE {
            text += &format!(" {:?}", message.payload());
        }
        text
    }
}

/// What a server does with a request.
pub(crate) type Application = Box<dyn FnMut(Code, &[u8]) -> Reply>;

/// A code, options and a body.
pub(crate) type Reply = (Code, Vec<(u16, Vec<u8>)>, Vec<u8>);

/// A request in bursts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BurstAsk<'a> {
    pub(crate) code: Code,
    pub(crate) options: &'a [(u16, &'a [u8])],
    pub(crate) body: &'a [u8],
    /// The size of blocks to send, and the largest to ask for.
    pub(crate) size: BlockSize,
}

impl<'a> BurstAsk<'a> {
    /// A GET in blocks of at most 1024 bytes.
    pub(crate) const fn get(options: &'a [(u16, &'a [u8])]) -> Self {
        Self { code: Code::GET, options, body: &[], size: BlockSize::B1024 }
    }
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) client: BurstClient<u8>,
    pub(crate) server: BurstServer<u8>,
    pub(crate) ends: [Endpoint<u8>; 2],
    pub(crate) up: Way,
    pub(crate) down: Way,
    wire: BTreeMap<(Instant, u64), (u8, Vec<u8>)>,
    count: u64,
    pub(crate) sent: Vec<Sent>,
    pub(crate) told: Vec<(Instant, End)>,
    pub(crate) asked: usize,
    pub(crate) application: Application,
    /// The server answers requests itself, in some other way than bursts.
    pub(crate) otherwise: Option<fn(&Message<'_>) -> Reply>,
    sleeps: [Option<Instant>; 2],
}

impl World {
    /// Both ends alike, over a path of 50 ms each way that loses nothing.
    pub(crate) fn new(options: BurstOptions) -> Self {
        Self::under(options, Preset::RFC7252)
    }

    /// The same with this controller at both ends.
    pub(crate) fn under(options: BurstOptions, preset: Preset) -> Self {
        Self::of(options, preset, Config::default())
    }

    /// The same with endpoints like this.
    pub(crate) fn of(options: BurstOptions, preset: Preset, config: Config) -> Self {
        let chance = ChanceSeed::new(5);
        let make = |node| Endpoint::new(config, preset.build(), chance, node, IdGenerator::counted()).unwrap();
        Self {
            now: Instant::ORIGIN,
            client: BurstClient::new(options, chance, 0),
            server: BurstServer::new(options, chance, 1),
            ends: [make(0), make(1)],
            up: Way::new(0, 50),
            down: Way::new(0, 50),
            wire: BTreeMap::new(),
            count: 0,
            sent: Vec::new(),
            told: Vec::new(),
            asked: 0,
            application: Box::new(|_, _| (Code::CONTENT, Vec::new(), body(1_000))),
            otherwise: None,
            sleeps: [None; 2],
        }
    }

    pub(crate) fn serving(mut self, bytes: Vec<u8>) -> Self {
        self.application =
            Box::new(move |_, _| (Code::CONTENT, vec![(number::CONTENT_FORMAT, Vec::new())], bytes.clone()));
        self
    }

    /// Forgets what was sent and told so far.
    pub(crate) fn forget(&mut self) {
        self.sent.clear();
        self.told.clear();
    }

    /// The server loses all that it holds.
    pub(crate) fn restart_server(&mut self) {
        self.server_options(BurstOptions::RFC9177);
    }

    pub(crate) fn server_options(&mut self, options: BurstOptions) {
        self.server = BurstServer::new(options, ChanceSeed::new(self.count), 1);
        self.sleeps[1] = None;
    }

    pub(crate) fn ask(&mut self, ask: &BurstAsk<'_>) -> BurstId {
        let BurstAsk { code, options, body, size } = *ask;
        let ask = ClientRequest { body, upload: size, longest: usize::MAX, ..ClientRequest::new(code, options) };
        self.client.request(self.now, SERVER, &ask, 0).unwrap()
    }

    /// Lets time pass until nothing happens any more, or until then.
    pub(crate) fn run(&mut self, until: Instant) {
        loop {
            self.drain(CLIENT);
            self.drain(SERVER);
            let arrival = self.wire.first_key_value().map(|(&(at, _), _)| at);
            let next = arrival.into_iter().chain(self.sleeps.into_iter().flatten()).min();
            let Some(next) = next.filter(|next| *next <= until) else { return };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, (to, bytes)) = self.wire.pop_first().unwrap();
                self.ends[usize::from(to)].receive(self.now, 1 - to, &bytes);
            }
        }
    }

    /// A message ID that no datagram had.
    pub(crate) fn next_id(&mut self) -> u16 {
        self.count += 1;
        self.count as u16 | 0x8000
    }

    /// A datagram that nobody of the two sent.
    pub(crate) fn inject(&mut self, to: u8, bytes: &[u8]) {
        self.ends[usize::from(to)].receive(self.now, 1 - to, bytes);
        self.drain(to);
    }

    fn drain(&mut self, node: u8) {
        let mut own: Vec<(crate::RequestId, Vec<u8>)> = Vec::new();
        loop {
            let now = self.now;
            let sleep = match self.ends[usize::from(node)].poll(now) {
                Output::Transmit(transmit) => {
                    let bytes = transmit.bytes.to_vec();
                    let way = if node == CLIENT { &mut self.up } else { &mut self.down };
                    let arrival = way.carry(now, &bytes);
                    self.count += 1;
                    self.sent.push(Sent { at: now, from: node, bytes: bytes.clone() });
                    if let Some(arrival) = arrival {
                        self.wire.insert((arrival, self.count), (1 - node, bytes));
                    }
                    continue;
                }
                Output::Event(event) => {
                    if let (Event::Request { id, message, .. }, Some(_)) = (&event, self.otherwise) {
                        own.push((*id, rewritten(message)));
                    } else if node == CLIENT {
                        self.client.take(now, &event);
                    } else if let Event::Request { from, id, message } = event {
                        if message
                            .options()
                            .any(|option| matches!(option.number, super::super::Q_BLOCK1 | super::super::Q_BLOCK2))
                        {
                            let _ = self.server.request_came(
                                now,
                                (from, Default::default(), Default::default()),
                                id,
                                &message,
                            );
                        }
                    } else {
                        self.server.take(&event);
                    }
                    continue;
                }
                Output::Sleep(until, _) => Some(until),
                Output::Idle => None,
            };
            if let (Some((id, request)), Some(otherwise)) = (own.pop(), self.otherwise) {
                let (code, options, payload) = otherwise(&Message::parse(&request).unwrap());
                let options: Vec<(u16, &[u8])> = options.iter().map(|(number, value)| (*number, &value[..])).collect();
                let answer = Outgoing::confirmable(code, &options).with_payload(&payload);
                self.ends[usize::from(node)].respond(now, id, &answer).unwrap();
                continue;
            }
            let further = if node == CLIENT {
                match self.client.act(now, &mut self.ends[0]) {
                    Next::Again => continue,
                    Next::Event((_, end)) => {
                        self.told.push((now, end));
                        continue;
                    }
                    Next::Sleep(until) => Some(until),
                    Next::Idle => None,
                }
            } else {
                match self.server.act(now, &mut self.ends[1]) {
                    Next::Again => continue,
                    Next::Event((id, _, Whole { code, body, .. })) => {
                        self.asked += 1;
                        let (code, options, body) = (self.application)(code, &body);
                        let options: Vec<(u16, &[u8])> = options.iter().map(|(n, value)| (*n, &value[..])).collect();
                        self.server.answer(now, id, &Answer::new(code, &options).with_body(&body)).unwrap();
                        continue;
                    }
                    Next::Sleep(until) => Some(until),
                    Next::Idle => None,
                }
            };
            assert!(further.is_none_or(|until| until > now), "a sleep lies ahead: {further:?} at {now:?}");
            self.sleeps[usize::from(node)] = sleep.into_iter().chain(further).min();
            return;
        }
    }

    /// The only transfer's answer, and when it was whole.
    pub(crate) fn answer(&self) -> (Instant, Code, Vec<u8>) {
        match &self.told[..] {
            [(at, End::Done(Whole { code, body, .. }))] => (*at, *code, body.clone()),
            other => panic!("{other:?}"),
        }
    }

    /// Why the only transfer failed, and when.
    pub(crate) fn failure(&self) -> (Instant, BurstFailure) {
        match &self.told[..] {
            [(at, End::Failed(why))] => (*at, *why),
            other => panic!("{other:?}"),
        }
    }

    /// What one end sent, in short.
    pub(crate) fn said(&self, by: u8) -> Vec<String> {
        self.sent.iter().filter(|sent| sent.from == by).map(Sent::summary).collect()
    }

    /// What one end sent and when, from the start on.
    pub(crate) fn when(&self, by: u8, what: &str) -> Vec<u64> {
        let matching = self.sent.iter().filter(|sent| sent.from == by && sent.summary().contains(what));
        matching.map(|sent| sent.at.as_micros() / 1_000).collect()
    }
}

/// Runs a transfer once for each message that it takes without loss, and loses that one. Every run must end well.
pub(crate) fn lost_in_turn(make: impl Fn() -> World) {
    let mut smooth = make();
    let begun = (smooth.up.sent, smooth.down.sent);
    smooth.run(at(1_000_000));
    let (_, code, bytes) = smooth.answer();
    let bodies = |world: &World| world.asked;
    for (from, first, count) in [(CLIENT, begun.0, smooth.up.sent), (SERVER, begun.1, smooth.down.sent)] {
        for lost_one in first..count {
            let mut world = make();
            let way = if from == CLIENT { &mut world.up } else { &mut world.down };
            way.lost_one = Some(lost_one);
            world.run(at(1_000_000));
            let (_, got, whole) = world.answer();
            assert_eq!((got, &whole), (code, &bytes), "message {lost_one} of {from} lost");
            let more = (world.up.sent + world.down.sent).saturating_sub(smooth.up.sent + smooth.down.sent);
            assert!(more <= 25, "message {lost_one} of {from} lost: {more} messages more");
            assert_eq!(bodies(&world), bodies(&smooth), "message {lost_one} of {from} lost: {:#?}", world.said(CLIENT));
        }
    }
}

/// A message as bytes again.
fn rewritten(message: &Message<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = crate::message::Writer::start(&mut bytes, message.kind, message.code, message.id, message.token);
    for option in message.options() {
        writer.option(option.number, option.value).unwrap();
    }
    writer.payload(message.payload()).unwrap();
    writer.finish().unwrap();
    bytes
}
