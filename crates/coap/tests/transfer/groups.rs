//! Whole answers of groups (RFC 7252 §8, RFC 7959 §2.8).

use std::collections::BTreeMap;

use millpond_coap::Output;
use millpond_coap::block::BlockSize;
use millpond_coap::message::{Code, Kind, Message, number};
use millpond_coap::transfer::{Answer, ClientRequest, CoapStack, Config, Event, Refused, RequestFailure};
use millpond_coap::{Endpoint, IdGenerator};
use millpond_control::{ChanceSeed, Instant, Span};

use crate::pair::{SECOND, body, steady};

const GROUP: u8 = 255;
const PERIOD: Span = Span::from_secs(7);
const HERE: &[(u16, &[u8])] = &[(number::URI_PATH, b"here")];

#[derive(Debug, PartialEq, Eq)]
enum Told {
    Answer(u8, Vec<u8>),
    Lost(u8, RequestFailure),
    Over,
}

/// From whom, to whom, whether by the group, and what.
type Datagram = (u8, u8, bool, Vec<u8>);

/// A client, 0, and members of a group that answer with a body of a length of their own.
struct Link {
    now: u64,
    stacks: Vec<CoapStack<Endpoint<u8>>>,
    lengths: Vec<usize>,
    block: Option<BlockSize>,
    /// Whose datagrams after the first are lost.
    cut_off: Option<u8>,
    /// By when they arrive and the order of sending.
    wire: BTreeMap<(u64, u64), Datagram>,
    sleeps: Vec<u64>,
    told: Vec<(u64, Told)>,
    sent: Vec<(u8, Vec<u8>)>,
}

impl Link {
    fn new(lengths: &[usize]) -> Self {
        // First message IDs as a real client has them: that of a request to a member is not that of one to its group.
        let stack = |node| {
            let secret = IdGenerator::secret(*b"sixteen of bytes");
            let endpoint = Endpoint::new(Default::default(), steady(), ChanceSeed::new(1), node, secret).unwrap();
            CoapStack::new(endpoint, Config::default(), ChanceSeed::new(1)).unwrap()
        };
        let stacks: Vec<_> = (0..=lengths.len()).map(|node| stack(node as u32)).collect();
        let mut all = vec![0];
        all.extend(lengths);
        Self {
            now: 0,
            sleeps: vec![u64::MAX; stacks.len()],
            stacks,
            lengths: all,
            block: None,
            cut_off: None,
            wire: BTreeMap::new(),
            told: Vec::new(),
            sent: Vec::new(),
        }
    }

    fn drain(&mut self, who: usize) {
        let now = Instant::from_micros(self.now);
        let mut asked = Vec::new();
        loop {
            match self.stacks[who].poll(now) {
                Output::Transmit(transmit) => {
                    let (to, bytes) = (transmit.to, transmit.bytes.to_vec());
                    let has_left = self.sent.iter().any(|(from, _)| usize::from(*from) == who);
                    self.sent.push((who as u8, bytes.clone()));
                    if self.cut_off == Some(who as u8) && has_left {
                        continue;
                    }
                    for member in if to == GROUP { 1..self.sleeps.len() as u8 } else { to..to + 1 } {
                        let key = (self.now + SECOND / 100, self.wire.len() as u64 + self.sent.len() as u64 * 1_000);
                        self.wire.insert(key, (who as u8, member, to == GROUP, bytes.clone()));
                    }
                }
                Output::Event(Event::Request { id, wants_to_observe, by_group, .. }) => {
                    assert!(!(by_group && wants_to_observe));
                    asked.push(id);
                }
                Output::Event(Event::GroupAnswer { from, body, .. }) => {
                    self.told.push((self.now, Told::Answer(from, body.into_owned())));
                }
                Output::Event(Event::GroupAnswerLost { from, why, .. }) => {
                    self.told.push((self.now, Told::Lost(from, why)));
                }
                Output::Event(Event::GroupOver { .. }) => self.told.push((self.now, Told::Over)),
                Output::Event(event) => panic!("{event:?}"),
                Output::Trace(_) => {}
                step @ (Output::Sleep(..) | Output::Idle) => {
                    self.sleeps[who] = if let Output::Sleep(until, _) = step { until.as_micros() } else { u64::MAX };
                    let Some(id) = asked.pop() else { return };
                    let whole = body(self.lengths[who]);
                    let answer = Answer { block: self.block, ..Answer::new(Code::CONTENT, &[]).with_body(&whole) };
                    self.stacks[who].answer(now, id, &answer).unwrap();
                }
            }
        }
    }

    fn run(&mut self) {
        loop {
            let arrival = self.wire.keys().next().map_or(u64::MAX, |(at, _)| *at);
            let timer = self.sleeps.iter().copied().min().unwrap();
            // What is kept for later blocks ends after minutes.
            if arrival.min(timer) > 200 * SECOND {
                return;
            }
            self.now = arrival.min(timer);
            if arrival <= timer {
                let (_, (from, to, by_group, bytes)) = self.wire.pop_first().unwrap();
                let (now, stack) = (Instant::from_micros(self.now), &mut self.stacks[usize::from(to)]);
                if by_group {
                    stack.receive_by_group(now, from, &bytes)
                } else {
                    stack.receive(now, from, &bytes)
                }
                self.drain(to.into());
            } else {
                let who = self.sleeps.iter().position(|sleep| *sleep == timer).unwrap();
                self.drain(who);
            }
        }
    }

    fn ask(&mut self, ask: &ClientRequest<'_>) -> millpond_coap::transfer::GroupId {
        let asked = self.stacks[0].request_group(Instant::from_micros(self.now), GROUP, ask, PERIOD).unwrap();
        self.drain(0);
        asked
    }
}

fn get() -> ClientRequest<'static> {
    ClientRequest::new(Code::GET, HERE)
}

#[test]
fn what_does_not_fit_a_message_is_fetched_from_the_member_that_sent_it() {
    let mut link = Link::new(&[10, 5_000, 700]);
    link.ask(&get());
    link.run();
    let mut answers: Vec<_> = link
        .told
        .iter()
        .filter_map(|(_, told)| match told {
            Told::Answer(from, body) => Some((*from, body.clone())),
            _ => None,
        })
        .collect();
    answers.sort();
    assert!(answers == [(1, body(10)), (2, body(5_000)), (3, body(700))]);
    assert_eq!(link.told.last(), Some(&(7 * SECOND, Told::Over)));
    assert_eq!(link.told.len(), 4);
    let mut fetched: Vec<_> = Vec::new();
    for (_, bytes) in link.sent.iter().filter(|(from, _)| *from == 0).skip(1) {
        let message = Message::parse(bytes).unwrap();
        assert_eq!((message.kind, message.option(number::URI_PATH)), (Kind::Confirmable, Some(&b"here"[..])));
        fetched.push(message.option(number::BLOCK2).unwrap()[0] >> 4);
    }
    assert_eq!(fetched, [1, 2, 3, 4], "the first block came by the group");
}

#[test]
fn a_group_can_be_asked_for_small_blocks() {
    let mut link = Link::new(&[300]);
    link.ask(&ClientRequest { early: Some(BlockSize::B64), ..get() });
    link.run();
    assert!(link.sent.iter().all(|(_, bytes)| bytes.len() < 100));
    assert!(matches!(&link.told[0], (_, Told::Answer(1, whole)) if *whole == body(300)));
    let mut link = Link::new(&[300]);
    link.block = Some(BlockSize::B128);
    link.ask(&get());
    link.run();
    assert!(link.sent.iter().all(|(_, bytes)| bytes.len() < 160));
    assert!(matches!(&link.told[0], (_, Told::Answer(1, whole)) if *whole == body(300)));
}

#[test]
fn the_end_waits_for_what_is_still_being_fetched_and_not_for_ever() {
    let mut link = Link::new(&[5_000]);
    link.cut_off = Some(1);
    link.ask(&get());
    link.run();
    let end = 27 * SECOND;
    assert_eq!(link.told, [(end, Told::Lost(1, RequestFailure::Deadline)), (end, Told::Over)]);
}

/// They would be asked for the rest five times each, until 77 s had gone by.
#[test]
fn thousands_of_forged_answers_are_not_fetched_for_ever_and_not_all_at_once() {
    let mut client = {
        let secret = IdGenerator::secret(*b"sixteen of bytes");
        let endpoint = Endpoint::new(Default::default(), steady(), ChanceSeed::new(1), 0, secret).unwrap();
        CoapStack::new(endpoint, Config::default(), ChanceSeed::new(1)).unwrap()
    };
    client.request_group(Instant::ORIGIN, 0_u16, &get(), PERIOD).unwrap();
    let (mut request, mut now, mut lost, mut fetched) = (None, 0, 0, 0);
    let end = 'all: loop {
        loop {
            match client.poll(Instant::from_micros(now)) {
                Output::Transmit(transmit) if transmit.to == 0 => request = Some(transmit.bytes.to_vec()),
                Output::Transmit(_) => fetched += 1,
                Output::Event(Event::GroupAnswerLost { .. }) => lost += 1,
                Output::Event(Event::GroupOver { .. }) => break 'all now,
                Output::Event(_) | Output::Trace(_) => {}
                Output::Sleep(until, _) => {
                    let Some(request) = request.take() else {
                        now = until.as_micros();
                        break;
                    };
                    let token = Message::parse(&request).unwrap().token;
                    for from in 1..=5_000_u16 {
                        let [high, low] = from.to_be_bytes();
                        let head = [0x50 | token.len() as u8, 0x45, high, low];
                        let block = &b"\xd1\x0a\x08\xff................"[..];
                        client.receive(Instant::from_micros(now), from, &[&head, token.as_bytes(), block].concat());
                        while let Output::Transmit(_) | Output::Event(_) | Output::Trace(_) =
                            client.poll(Instant::from_micros(now))
                        {}
                    }
                    break;
                }
                Output::Idle => panic!("it has ended without a word"),
            }
        }
    };
    assert_eq!((end, client.requests()), (27 * SECOND, 0));
    assert!(fetched <= 3 * 1_024 && lost >= 1_024, "{fetched} {lost}");
}

/// One host with many ports sends the first 1023 blocks of as many long answers, and never the last one. Member 1 has three blocks.
#[test]
fn long_answers_of_a_group_without_their_ends_leave_room_for_other_asks() {
    const OTHER: u16 = 9_999;
    let mut client = {
        let secret = IdGenerator::secret(*b"sixteen of bytes");
        let endpoint = Endpoint::new(Default::default(), steady(), ChanceSeed::new(1), 0, secret).unwrap();
        CoapStack::new(endpoint, Config::default(), ChanceSeed::new(1)).unwrap()
    };
    let now = Instant::ORIGIN;
    client.request_group(now, 0_u16, &get(), PERIOD).unwrap();
    let (mut answers, mut whole) = (Vec::<(u16, Vec<u8>)>::new(), Vec::new());
    let answer = |to: &Message<'_>, head: u8, [high, low]: [u8; 2], block: u32| {
        let [_, first, middle, last] = block.to_be_bytes();
        let options = [&[0xd3, 0x0a, first, middle, last, 0xff], &[b'.'; 1_024][..]].concat();
        [&[head | to.token.len() as u8, 0x45, high, low], to.token.as_bytes(), &options].concat()
    };
    loop {
        match client.poll(now) {
            Output::Transmit(transmit) => {
                let request = Message::parse(transmit.bytes).unwrap();
                let wanted = request.option(number::BLOCK2).unwrap_or_default();
                let wanted = wanted.iter().fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
                if transmit.to == 0 {
                    answers.extend((1..=200).map(|from: u16| (from, answer(&request, 0x50, from.to_be_bytes(), 14))));
                } else if wanted >> 4 < 1_023 {
                    let more = if transmit.to == 1 && wanted >> 4 == 2 { 0 } else { 8 };
                    answers.push((transmit.to, answer(&request, 0x60, request.id.0.to_be_bytes(), wanted | more)));
                }
            }
            Output::Event(Event::GroupAnswerLost { why, .. }) => assert_eq!(why, RequestFailure::OutOfBytes),
            Output::Event(Event::GroupAnswer { from, body, .. }) => whole.push((from, body.len())),
            Output::Event(_) | Output::Trace(_) => {}
            Output::Sleep(..) | Output::Idle => match answers.pop() {
                Some((from, bytes)) => client.receive(now, from, &bytes),
                None => break,
            },
        }
    }
    assert_eq!(whole, [(1, 3 * 1_024)], "the longest ones give way");
    assert!(client.memory() < 20 << 20, "{} bytes", client.memory());
    assert!(client.request(now, OTHER, &get().with_body(&body(1_000_000))).is_ok());
}

#[test]
fn nothing_is_told_of_a_group_that_is_forgotten() {
    let mut link = Link::new(&[10, 5_000]);
    let asked = link.ask(&get());
    assert!(link.stacks[0].cancel_group(Instant::from_micros(link.now), asked));
    link.drain(0);
    assert!(!link.stacks[0].cancel_group(Instant::from_micros(link.now), asked));
    link.drain(0);
    link.run();
    assert_eq!(link.told, []);
}

#[test]
fn what_no_group_can_be_asked_is_refused() {
    let mut link = Link::new(&[]);
    let long = body(1_025);
    let ask = ClientRequest::new(Code::FETCH, HERE).with_body(&long);
    let refused = link.stacks[0].request_group(Instant::ORIGIN, GROUP, &ask, PERIOD);
    assert_eq!(refused, Err(Refused::LongGroupRequest { length: 1_025 }));
    let own = [(number::BLOCK2, &b"\x06"[..])];
    let refused = link.stacks[0].request_group(Instant::ORIGIN, GROUP, &ClientRequest::new(Code::GET, &own), PERIOD);
    assert_eq!(refused, Err(Refused::OwnOption { number: number::BLOCK2 }));
}

/// A body in blocks would have to be put together from messages that each come once and in any order.
#[test]
fn neither_blocks_nor_observers_come_by_a_group() {
    let mut link = Link::new(&[10]);
    for (id, option) in [(1, number::BLOCK1), (2, number::OBSERVE)] {
        // Observe 0, or Block1 0 of 16 bytes with more to come.
        let request: &[u8] =
            if option == number::OBSERVE { &[0x51, 1, 0, id, 7, 0x60] } else { &[0x51, 1, 0, id, 7, 0xd1, 14, 8] };
        link.stacks[1].receive_by_group(Instant::ORIGIN, 0, request);
        link.drain(1);
    }
    link.run();
    let sent: Vec<_> = link.sent.iter().filter(|(from, _)| *from == 1).collect();
    assert_eq!(sent.len(), 1);
    assert_eq!(Message::parse(&sent[0].1).unwrap().option(number::OBSERVE), None);
    assert_eq!(link.stacks[1].observers(), 0);
}
