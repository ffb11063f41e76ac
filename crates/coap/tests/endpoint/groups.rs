//! Requests to groups and their answers (RFC 7252 §8).

use std::collections::BTreeSet;

use millpond_coap::message::{Code, Kind, Message};
use millpond_coap::{
    Config, DEFAULT_LEISURE, Endpoint, Event, ExchangeId, Ignored, Outgoing, Output, Refused, leisure,
};
use millpond_control::{Instant, Span};

use crate::pair::{HELLO, SECOND, endpoint};

/// The address of the group; members are 1 and up, the client is 0.
const GROUP: u8 = 255;
/// One way.
const DELAY: u64 = SECOND / 100;
const ASK: Outgoing<'static> = Outgoing::non_confirmable(Code::GET, HELLO);

/// A client and the members of a group on one link.
struct Link {
    now: u64,
    all: Vec<Endpoint<u8>>,
    /// What every member answers.
    answer: Outgoing<'static>,
    /// When, from whom, to whom (a member, and whether by the group), what.
    wire: BTreeSet<(u64, u8, u8, bool, Vec<u8>)>,
    sleeps: Vec<u64>,
    /// When, from whom and what left.
    sent: Vec<(u64, u8, Vec<u8>)>,
    /// When, whose and of which request answers came.
    answers: Vec<(u64, u8, ExchangeId)>,
    late: usize,
}

impl Link {
    fn new(members: u8, change: impl Fn(&mut Config)) -> Self {
        let all: Vec<_> = (0..=members).map(|node| endpoint(u32::from(node), &change)).collect();
        Self {
            now: 0,
            sleeps: vec![u64::MAX; all.len()],
            all,
            answer: Outgoing::non_confirmable(Code::CONTENT, &[]).with_payload(b"here"),
            wire: BTreeSet::new(),
            sent: Vec::new(),
            answers: Vec::new(),
            late: 0,
        }
    }

    fn at(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    fn ask(&mut self) -> ExchangeId {
        let now = self.at();
        let asked = self.all[0].request_group(now, GROUP, &ASK).unwrap();
        self.drain(0);
        asked
    }

    /// Drains an endpoint; members answer what they are asked.
    fn drain(&mut self, who: u8) {
        let now = self.at();
        let mut asked = Vec::new();
        loop {
            match self.all[usize::from(who)].poll(now) {
                Output::Transmit(transmit) => {
                    self.sent.push((self.now, who, transmit.bytes.to_vec()));
                    let to =
                        if transmit.to == GROUP { 1..self.sleeps.len() as u8 } else { transmit.to..transmit.to + 1 };
                    for to in to {
                        let by_group = transmit.to == GROUP;
                        self.wire.insert((self.now + DELAY, who, to, by_group, transmit.bytes.to_vec()));
                    }
                }
                Output::Event(Event::Request { id, .. }) => asked.push(id),
                Output::Event(Event::AdditionalResponse { exchange, from, .. }) => {
                    self.answers.push((self.now, from, exchange));
                }
                Output::Event(Event::Late { .. }) => self.late += 1,
                Output::Event(_) => {}
                Output::Sleep(until, _) => {
                    self.sleeps[usize::from(who)] = until.as_micros();
                    match asked.pop() {
                        Some(id) => self.all[usize::from(who)].respond(now, id, &self.answer).unwrap(),
                        None => return,
                    }
                }
                Output::Idle => {
                    self.sleeps[usize::from(who)] = u64::MAX;
                    match asked.pop() {
                        Some(id) => self.all[usize::from(who)].respond(now, id, &self.answer).unwrap(),
                        None => return,
                    }
                }
            }
        }
    }

    fn run_until(&mut self, end: u64) {
        loop {
            let arrival = self.wire.first().map_or(u64::MAX, |(at, ..)| *at);
            let timer = self.sleeps.iter().copied().min().unwrap_or(u64::MAX);
            let next = arrival.min(timer);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            if arrival <= timer {
                let (_, from, to, by_group, bytes) = self.wire.pop_first().unwrap();
                let now = self.at();
                let to_it = &mut self.all[usize::from(to)];
                if by_group {
                    to_it.receive_by_group(now, from, &bytes)
                } else {
                    to_it.receive(now, from, &bytes)
                }
                self.drain(to);
            } else {
                let who = self.sleeps.iter().position(|sleep| *sleep == timer).unwrap();
                self.drain(who as u8);
            }
        }
    }

    fn messages(&self, of: u8) -> Vec<(u64, Message<'_>)> {
        let of_it = self.sent.iter().filter(|(_, who, _)| *who == of);
        of_it.map(|(at, _, bytes)| (*at, Message::parse(bytes).unwrap())).collect()
    }
}

#[test]
fn every_member_answers_once_and_within_its_leisure() {
    let mut link = Link::new(40, |_| {});
    let asked = link.ask();
    link.run_until(60 * SECOND);
    assert_eq!(link.messages(0).len(), 1, "no retransmission, no acknowledgement");
    assert_eq!(link.messages(0)[0].1.kind, Kind::NonConfirmable);
    assert!(link.answers.iter().all(|(_, _, exchange)| *exchange == asked));
    let who: BTreeSet<_> = link.answers.iter().map(|(_, from, _)| *from).collect();
    assert_eq!((link.answers.len(), who.len()), (40, 40));
    let (first, last) = (link.answers[0].0, link.answers[39].0);
    assert!(last <= 2 * DELAY + 5 * SECOND, "{last}");
    assert!(first < SECOND && last > 4 * SECOND, "spread from {first} to {last} µs");
    for member in 1..=40 {
        let answers = link.messages(member);
        assert_eq!((answers.len(), answers[0].1.kind), (1, Kind::NonConfirmable));
    }
}

#[test]
fn leisure_is_what_size_and_rate_of_the_answers_make_of_it() {
    // The example of RFC 7252 §8.2: 100 members, 100 bytes each, 8 kbit/s.
    assert_eq!(leisure(100, 100, 1_000), Span::from_secs(10));
    assert_eq!(leisure(100, 100, 0), leisure(100, 100, 1));
    assert_eq!(leisure(u32::MAX, u32::MAX, 1), Span::MAX);
    assert_eq!(DEFAULT_LEISURE, Span::from_secs(5));
    let mut link = Link::new(1, |config| config.leisure = Span::ZERO);
    link.ask();
    link.run_until(SECOND);
    assert_eq!(link.answers[0].0, 2 * DELAY);
}

#[test]
fn who_has_nothing_to_say_says_nothing() {
    for (code, payload, is_sent) in [
        (Code::NOT_FOUND, &b"no"[..], false),
        (Code::INTERNAL_SERVER_ERROR, b"", false),
        (Code::CONTENT, b"", false),
        (Code::CHANGED, b"", true),
    ] {
        let mut link = Link::new(1, |_| {});
        link.answer = Outgoing::confirmable(code, &[]).with_payload(payload);
        link.all[0].request_group(Instant::ORIGIN, GROUP, &ASK).unwrap();
        let now = link.at();
        let Output::Transmit(transmit) = link.all[0].poll(now) else { panic!() };
        let request = transmit.bytes.to_vec();
        link.all[1].receive_by_group(now, 0, &request);
        link.drain(1);
        link.run_until(10 * SECOND);
        let sent = link.messages(1);
        assert_eq!(sent.len(), usize::from(is_sent), "{code}");
        assert!(sent.iter().all(|(_, message)| message.kind == Kind::NonConfirmable), "even if asked for otherwise");
        assert_eq!(link.all[1].requests(), 0);
    }
}

/// RFC 7252 §8.1: neither acknowledgement nor reset, whatever came.
#[test]
fn a_group_is_deaf_to_all_but_non_confirmable_requests() {
    let datagrams: [(&[u8], bool); 6] = [
        (&[0x40, 1, 0, 1], false),      // CON GET
        (&[0x40, 0, 0, 2], false),      // ping
        (&[0x50, 0x45, 0, 3], false),   // NON response
        (&[0x60, 0, 0, 4], false),      // ACK
        (&[0x40, 1, 0, 5, 0xf0], true), // malformed CON
        (&[0x50, 1, 0, 6, 0xff], true), // marker without payload
    ];
    let mut member = endpoint::<u8>(1, |_| {});
    for (datagram, is_malformed) in datagrams {
        member.receive_by_group(Instant::ORIGIN, 0, datagram);
        match member.poll(Instant::ORIGIN) {
            Output::Event(Event::Ignored { why: Ignored::NotForGroups, .. }) if !is_malformed => {}
            Output::Event(Event::Ignored { why: Ignored::Malformed(_), .. }) if is_malformed => {}
            other => panic!("{datagram:?} gave {other:?}"),
        }
        assert!(matches!(member.poll(Instant::ORIGIN), Output::Idle));
    }
    assert_eq!(member.counters().sent.total(), 0);
    assert_eq!(member.counters().ignored.unmatched, 4);
}

#[test]
fn a_request_that_comes_again_is_answered_once() {
    let mut link = Link::new(1, |_| {});
    link.ask();
    let copy = link.wire.first().unwrap().clone();
    for later in [1, SECOND, 100 * SECOND] {
        link.wire.insert((copy.0 + later, copy.1, copy.2, copy.3, copy.4.clone()));
    }
    link.run_until(200 * SECOND);
    assert_eq!(link.messages(1).len(), 1);
    assert_eq!(link.all[1].counters().duplicates, 3);
    let by_unicast = link_request(&mut link);
    assert!(!link.all[1].came_by_group(by_unicast));
}

/// The name of a request that came by unicast.
fn link_request(link: &mut Link) -> millpond_coap::RequestId {
    let now = link.at();
    link.all[1].receive(now, 0, &[0x50, 1, 9, 9]);
    loop {
        match link.all[1].poll(now) {
            Output::Event(Event::Request { id, .. }) => return id,
            Output::Transmit(_) | Output::Event(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_answer_that_comes_again_or_differently_is_told_once() {
    let mut client = endpoint::<u8>(0, |_| {});
    let asked = client.request_group(Instant::ORIGIN, GROUP, &ASK).unwrap();
    let Output::Transmit(transmit) = client.poll(Instant::ORIGIN) else { panic!() };
    let token = Message::parse(transmit.bytes).unwrap().token;
    assert!(matches!(client.poll(Instant::ORIGIN), Output::Idle));
    let answer = |id: u8, first: u8| [&[first, 0x45, 0, id][..], token.as_bytes(), b"\xffhere"].concat();
    let mut told = Vec::new();
    let mut acknowledged = 0;
    let token_length = token.len() as u8;
    let (plain, confirmable) = (0x50 | token_length, 0x40 | token_length);
    for (from, id, first) in [(1, 1, plain), (1, 1, plain), (1, 2, plain), (2, 1, confirmable), (2, 1, confirmable)] {
        client.receive(Instant::from_micros(SECOND), from, &answer(id, first));
        loop {
            match client.poll(Instant::from_micros(SECOND)) {
                Output::Event(Event::AdditionalResponse { exchange, from, .. }) => {
                    assert_eq!(exchange, asked);
                    told.push(from);
                }
                Output::Transmit(transmit) => {
                    assert_eq!(Message::parse(transmit.bytes).unwrap().kind, Kind::Acknowledgement);
                    acknowledged += 1;
                }
                Output::Event(event) => panic!("{event:?}"),
                Output::Sleep(..) | Output::Idle => break,
            }
        }
    }
    assert_eq!((told, acknowledged), (vec![1, 2], 2));
    assert!(client.cancel_group(Instant::from_micros(SECOND), asked));
    assert!(!client.cancel_group(Instant::from_micros(SECOND), asked));
    client.receive(Instant::from_micros(SECOND), 3, &answer(1, plain));
    assert!(matches!(client.poll(Instant::from_micros(SECOND)), Output::Event(Event::Late { from: 3, .. })));
    assert!(matches!(client.poll(Instant::from_micros(SECOND)), Output::Idle), "no reset");
}

/// With counted tokens the next request would get the same one.
#[test]
fn no_request_to_a_member_has_the_token_of_the_group_until_nobody_can_answer() {
    for token_length in [2, 4] {
        let mut link = Link::new(1, |config| config.token_length = token_length);
        link.ask();
        let token = |link: &Link| link.messages(0).last().unwrap().1.token;
        let groups = token(&link);
        let own = Outgoing { token: Some(groups), ..Outgoing::confirmable(Code::GET, HELLO) };
        for at in [0, 400] {
            link.now = link.now.max(at * SECOND);
            let now = link.at();
            link.all[0].request(now, 1, &Outgoing::confirmable(Code::GET, HELLO)).unwrap();
            link.drain(0);
            assert_ne!(token(&link), groups);
            assert_eq!(link.all[0].request(now, 1, &own), Err(Refused::TokenOfGroup));
            link.run_until((at + 30) * SECOND);
        }
        // NON_LIFETIME of 137.5 s, 100 s and 250 s; what is over is forgotten with the next request to a group.
        let asked = link.ask();
        let now = link.at();
        link.all[0].cancel_group(now, asked);
        link.drain(0);
        let again = token(&link);
        assert_ne!(again, groups);
        link.run_until(1_000 * SECOND);
        link.ask();
        let own = Outgoing { token: Some(again), ..Outgoing::confirmable(Code::GET, HELLO) };
        let now = link.at();
        assert!(link.all[0].request(now, 1, &own).is_ok());
    }
}

#[test]
fn a_group_is_asked_again_when_its_answers_have_come_or_probing_rate_allows_it() {
    let lengths = |link: &Link| link.messages(0).iter().map(|(at, _)| *at).collect::<Vec<_>>();
    let mut silent = Link::new(0, |_| {});
    silent.ask();
    silent.ask();
    silent.run_until(60 * SECOND);
    // 4 bytes of header, 4 of token, 6 of option.
    assert_eq!(lengths(&silent), [0, 14 * SECOND]);
    let mut answering = Link::new(3, |_| {});
    answering.ask();
    answering.ask();
    answering.run_until(60 * SECOND);
    assert_eq!(lengths(&answering), [0, 5 * SECOND]);
    assert_eq!(answering.answers.len(), 6);
}

#[test]
fn a_request_that_waits_can_be_taken_back() {
    let mut link = Link::new(0, |_| {});
    let (first, second) = (link.ask(), link.ask());
    assert_ne!(first, second);
    let now = link.at();
    assert!(link.all[0].cancel_group(now, second));
    link.drain(0);
    link.run_until(60 * SECOND);
    assert_eq!(link.messages(0).len(), 1);
    assert_eq!(link.all[0].exchanges(), 0);
}

#[test]
fn tokens_and_answers_take_bounded_memory() {
    let mut link = Link::new(0, |config| config.transmission.probing_rate = u32::MAX);
    let mut refused = None;
    for _ in 0..300 {
        let now = link.at();
        match link.all[0].request_group(now, GROUP, &ASK) {
            Ok(_) => {}
            Err(error) => refused = Some(error),
        }
        link.drain(0);
    }
    assert!(matches!(refused, Some(Refused::TooManyWaiting { .. } | Refused::TooManyGroupRequests { .. })));
    let mut member = endpoint::<u32>(1, |_| {});
    for number in 0..5_000_u32 {
        let id = number.to_be_bytes();
        member.receive_by_group(Instant::ORIGIN, number >> 16, &[0x50, 1, id[2], id[3]]);
        let mut asked = None;
        loop {
            match member.poll(Instant::ORIGIN) {
                Output::Event(Event::Request { id, .. }) => asked = Some(id),
                Output::Sleep(..) | Output::Idle => match asked.take() {
                    Some(id) => {
                        assert!(member.came_by_group(id));
                        let answer = Outgoing::non_confirmable(Code::CONTENT, &[]).with_payload(&[0; 100]);
                        member.respond(Instant::ORIGIN, id, &answer).unwrap();
                    }
                    None => break,
                },
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(member.memory() < 2 << 20, "{} bytes", member.memory());
    let mut sent = 0;
    let end = Instant::from_micros(10 * SECOND);
    while let Output::Transmit(_) | Output::Event(_) = member.poll(end) {
        sent += 1;
    }
    assert!(sent <= 1_024, "{sent}");
}
