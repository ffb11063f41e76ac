//! Answers to requests that came to a group wait for their time, and there is room for so many of them: who asks a lot takes
//! from itself.

use std::collections::HashMap;

use millpond_coap::message::{Kind, Token};
use millpond_coap::{Endpoint, Event, Output, RequestId};
use millpond_control::Instant;

use crate::pair::{SECOND, content, endpoint, get};

const FLOODER: u32 = 7;
const CLIENT: u32 = 1_000_001;
/// More than may wait.
const MANY: u32 = 3_000;

/// A thousand addresses make a network.
fn member() -> Endpoint<u32> {
    endpoint(0, |config| config.limits.peers = 10_000).with_paths(|address| u64::from(address / 1_000))
}

/// Who was sent something at this time.
fn drain(member: &mut Endpoint<u32>, now: Instant) -> (Vec<u32>, Vec<RequestId>) {
    let (mut sent, mut asked) = (Vec::new(), Vec::new());
    loop {
        match member.poll(now) {
            Output::Transmit(transmit) => sent.push(transmit.to),
            Output::Event(Event::Request { id, .. }) => asked.push(id),
            Output::Event(_) => {}
            Output::Sleep(..) | Output::Idle => return (sent, asked),
        }
    }
}

/// They ask in this order, all at once, and are told something.
fn ask(member: &mut Endpoint<u32>, askers: impl Iterator<Item = u32>) {
    for (turn, from) in (0_u16..).zip(askers) {
        let [high, low] = turn.to_be_bytes();
        member.receive_by_group(Instant::ORIGIN, from, &[0x50, 1, high, low]);
        for id in drain(member, Instant::ORIGIN).1 {
            member.respond(Instant::ORIGIN, id, &content(Kind::NonConfirmable)).unwrap();
        }
    }
}

/// How many answers each of them gets.
fn answers(member: &mut Endpoint<u32>) -> HashMap<u32, usize> {
    let mut answers = HashMap::new();
    // Who never answers is sent no more than PROBING_RATE allows: what waits for that leaves later.
    for second in 0..10_000 {
        for to in drain(member, Instant::from_micros(second * SECOND)).0 {
            *answers.entry(to).or_default() += 1;
        }
    }
    answers
}

fn flood(by: impl Fn(u32) -> u32) -> impl Iterator<Item = u32> {
    (0..MANY).map(by)
}

#[test]
fn a_host_that_asks_a_group_without_end_leaves_the_others_their_answers() {
    let mut member = member();
    ask(&mut member, flood(|_| FLOODER).chain([CLIENT, FLOODER + 1]).chain(flood(|_| FLOODER)));
    let answers = answers(&mut member);
    assert_eq!((answers.get(&CLIENT), answers.get(&(FLOODER + 1))), (Some(&1), Some(&1)), "of its network, too");
    assert!(member.memory() < 4 << 20, "{} bytes", member.memory());
}

#[test]
fn all_addresses_of_a_network_leave_those_of_another_their_answers() {
    let mut member = member();
    let clients = || (0..300).map(|host| CLIENT + host);
    ask(&mut member, flood(|turn| turn % 1_000).chain(clients()).chain(flood(|turn| turn % 1_000)));
    let answers = answers(&mut member);
    assert!(clients().all(|client| answers.get(&client) == Some(&1)));
    assert!(answers.values().sum::<usize>() <= 1_024);
}

#[test]
fn some_networks_with_as_many_addresses_leave_another_its_share() {
    let mut member = member();
    let by = |turn: u32| turn % 9 * 1_000 + turn / 9;
    ask(&mut member, flood(by).chain([CLIENT; 40]).chain(flood(by)));
    assert_eq!(answers(&mut member).len(), 1_024 - 40 + 1);
}

#[test]
fn addresses_forged_in_any_number_of_networks_leave_who_has_answered_something_its_answer() {
    for is_first in [true, false] {
        let mut member = member();
        member.request(Instant::ORIGIN, CLIENT, &get()).unwrap();
        let Output::Transmit(sent) = member.poll(Instant::ORIGIN) else { panic!("a request leaves") };
        let reset = [0x70, 0, sent.bytes[2], sent.bytes[3]];
        drain(&mut member, Instant::ORIGIN);
        member.receive(Instant::ORIGIN, CLIENT, &reset);
        drain(&mut member, Instant::ORIGIN);
        let forged = flood(|turn| 1_000 * turn);
        match is_first {
            true => ask(&mut member, [CLIENT].into_iter().chain(forged)),
            false => ask(&mut member, forged.chain([CLIENT])),
        }
        assert_eq!(answers(&mut member).get(&CLIENT), Some(&1));
    }
}

/// An answer needs no place among the peers, and takes none that an observer needs.
#[test]
fn who_asks_a_group_is_answered_when_every_place_of_a_peer_is_taken_and_leaves_some_to_observers() {
    let mut member = endpoint(0, |config| config.limits.peers = 100).with_paths(|address| u64::from(address / 1_000));
    ask(&mut member, (0..1_000).map(|turn| 1_000 * turn));
    let answers = answers(&mut member);
    assert_eq!((answers.len(), answers.values().sum::<usize>()), (1_000, 1_000));
    assert_eq!(member.peers(), 50);
    let now = Instant::from_micros(10_000 * SECOND);
    for observer in 0..50 {
        let sent = member.send_additional(now, CLIENT + observer, Token::EMPTY, &content(Kind::NonConfirmable));
        assert!(sent.is_ok(), "{sent:?}");
        drain(&mut member, now);
    }
}
