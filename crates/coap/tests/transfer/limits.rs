//! Memory: bounded, and given back when its time is over.

use millpond_coap::block::{BlockSize, robust::BurstParameters};
use millpond_coap::message::{Code, Message};
use millpond_coap::transfer::{Answer, ClientRequest, CoapStack, Config, ConfigError, Refused};
use millpond_coap::{Endpoint, IdGenerator};
use millpond_control::{ChanceSeed, Span};

use crate::pair::{CLIENT, Pair, SECOND, SERVER, body, get, put, steady};

/// A block of a body that will not go on: number 0, more to follow, 16 bytes.
fn beginning(path: &[u8; 2]) -> Vec<u8> {
    [b"\x40\x03\x00\x00\xb2", &path[..], b"\xd1\x03\x08\xff", &[1; 16]].concat()
}

#[test]
fn bodies_that_do_not_go_on_are_dropped_after_their_lifetime() {
    let mut pair = Pair::serving(0, BlockSize::B256);
    let before = pair.stacks[1].memory();
    for path in 0..100_u16 {
        pair.inject_from(path as u8 + 2, SERVER, &beginning(&path.to_be_bytes()));
    }
    assert!(pair.stacks[1].memory() > before + 100 * 16);
    pair.run();
    assert!(pair.now >= 247 * SECOND);
    pair.inject(SERVER, b"\x40\x00\x00\x01");
    // Nothing of theirs but what the endpoint remembers of their messages.
    let endpoint = pair.stacks[1].endpoint().memory();
    assert!(pair.stacks[1].memory() - endpoint < 20 << 10, "{} bytes", pair.stacks[1].memory() - endpoint);
}

#[test]
fn beginnings_from_everywhere_do_not_fill_the_memory() {
    let mut pair = Pair::new(|_, endpoint, config| {
        config.limits.bodies = 64 << 10;
        endpoint.limits.duplicate_bytes = 64 << 10;
    });
    let mut most = 0;
    for round in 0..20_000_u32 {
        pair.now += 1_000;
        let path = (round as u16).to_be_bytes();
        pair.inject_from((round >> 4) as u8, SERVER, &beginning(&path));
        pair.datagrams.clear();
        most = most.max(pair.stacks[1].memory());
    }
    assert!(most < 512 << 10, "{most} bytes");
}

#[test]
fn what_is_kept_is_bounded_and_dropped_after_its_lifetime() {
    let mut pair = Pair::new(|_, _, config| {
        config.block = BlockSize::B16;
        config.limits.cached = 100_000;
    });
    pair.application.body = body(10_000);
    for from in 2..=255 {
        // Each gets one of its own: equal ones would be kept once.
        pair.application.body[5_000] = from;
        pair.inject_from(from, SERVER, b"\x40\x01\x00\x01\xb5large");
        assert!(pair.stacks[1].cached() <= 9);
    }
    assert_eq!(pair.stacks[1].cached(), 9);
    // The last ones are still there, the first are not.
    pair.take_told(SERVER);
    pair.inject_from(255, SERVER, b"\x40\x01\x00\x02\xb5large\xc1\x10");
    assert_eq!(pair.asked(), 0);
    pair.inject_from(2, SERVER, b"\x40\x01\x00\x02\xb5large\xc1\x10");
    assert_eq!(pair.asked(), 1);
    pair.run();
    assert_eq!((pair.stacks[1].cached(), pair.now), (0, 247 * SECOND));
}

#[test]
fn a_representation_that_is_asked_for_stays() {
    let mut pair = Pair::serving(1_000, BlockSize::B256);
    pair.inject(SERVER, b"\x40\x01\x00\x00\xb5large");
    for id in 1..10_u8 {
        pair.run_until(u64::from(id) * 200 * SECOND);
        pair.inject(SERVER, &[&[0x40, 1, 0, id], &b"\xb5large\xc1\x14"[..]].concat());
    }
    assert_eq!(pair.asked(), 1);
    pair.run();
    assert_eq!(pair.stacks[1].cached(), 0);
}

/// A client that asks for more of it need not be who proved where it is: after an hour the application is asked, and may want to know.
#[test]
fn what_is_kept_is_the_applications_to_give_again_after_an_hour_however_often_it_is_asked_for() {
    // Block 1 of 1024 bytes, block by block and in bursts.
    for (method, block, bursts) in [(1, &b"\xc1\x16"[..], false), (1, b"\xd1\x07\x16", true)] {
        let mut pair = Pair::new(|_, _, config| config.q_block = bursts.then_some(BurstParameters::RFC9177));
        (pair.application.body, pair.application.knows) = (body(100_000), true);
        let first = if bursts { &b"\xd1\x07\x06"[..] } else { b"" };
        pair.inject_from(2, SERVER, &[&[0x40, method, 0, 0], &b"\xb5large"[..], first].concat());
        assert_eq!(pair.asked(), 1);
        for id in 1..=40_u8 {
            pair.run_until(u64::from(id) * 100 * SECOND);
            pair.datagrams.clear();
            pair.inject_from(2, SERVER, &[&[0x50, method, 0, id], &b"\xb5large"[..], block].concat());
            let given = pair.datagrams.iter().map(|(.., bytes)| bytes.len()).sum::<usize>();
            assert!(given > 1_024, "{given}");
            assert_eq!(pair.asked(), usize::from(id == 36), "bursts: {bursts}, after {id}00 s");
        }
    }
}

/// To carry it out once more for the rest of its answer would be wrong.
#[test]
fn the_answer_to_what_changes_something_is_gone_after_an_hour() {
    let mut pair = Pair::serving(0, BlockSize::B256);
    pair.application.echoes = true;
    pair.inject(SERVER, &[b"\x40\x02\x00\x00\xb5large\xff", &body(900)[..]].concat());
    for id in 1..=40_u8 {
        pair.run_until(u64::from(id) * 100 * SECOND);
        pair.datagrams.clear();
        pair.inject(SERVER, &[&[0x40, 2, 0, id], &b"\xb5large\xc1\x14"[..]].concat());
        let code = Message::parse(&pair.datagrams[0].2).unwrap().code;
        assert_eq!(code, if id < 36 { Code::CONTENT } else { Code::REQUEST_ENTITY_INCOMPLETE }, "after {id}00 s");
    }
    assert_eq!(pair.asked(), 1);
}

#[test]
fn asks_are_bounded_in_number_and_in_bytes() {
    let mut pair = Pair::new(|_, _, config| {
        config.limits.client_requests = 3;
        config.limits.bytes = 10_000;
    });
    let now = pair.now();
    let long = body(6_000);
    pair.ask(&put(&long));
    assert_eq!(pair.stacks[0].request(now, SERVER, &put(&long)), Err(Refused::OutOfBytes { limit: 10_000 }));
    pair.get();
    pair.get();
    assert_eq!(pair.stacks[0].request(now, SERVER, &get()), Err(Refused::TooManyRequests { limit: 3 }));
    pair.settle();
    pair.take_told(CLIENT);
    // A response that grows beyond it fails.
    pair.application.body = body(20_000);
    pair.get();
    pair.settle();
    assert!(format!("{:?}", pair.take_told(CLIENT)).contains("OutOfBytes"));
    assert_eq!(pair.stacks[0].requests(), 0);
}

#[test]
fn notifications_that_wait_are_bounded() {
    let mut pair = Pair::new(|node, _, config| {
        if node == SERVER {
            config.limits.bytes = 1_000;
        }
    });
    pair.ask(&get().observing());
    pair.run_for(SECOND);
    pair.notify(b"under way");
    let id = pair.application.observers[0];
    let (now, long) = (pair.now(), body(2_000));
    let answer = Answer::new(Code::CONTENT, &[]).with_body(&long);
    assert_eq!(pair.stacks[1].notify(now, id, &answer), Err(Refused::OutOfBytes { limit: 1_000 }));
    pair.notify(&long[..500]);
    pair.notify(&long[..600]);
}

/// A thousand requests, uploads and observations later nothing is left of them.
#[test]
fn what_is_over_leaves_nothing() {
    let mut pair = Pair::serving(3_000, BlockSize::B256);
    let mut memory = Vec::new();
    for round in 0..60 {
        let observation = pair.ask(&get().observing());
        pair.ask(&ClientRequest { upload: BlockSize::B256, ..put(&body(2_000)) });
        pair.run_for(20 * SECOND);
        pair.notify(&body(1_000 + round));
        pair.run_for(5 * SECOND);
        pair.cancel(observation);
        pair.run_for(300 * SECOND);
        pair.datagrams.clear();
        pair.told.clear();
        pair.application.handed.clear();
        memory.push(pair.stacks[0].memory() + pair.stacks[1].memory());
        assert_eq!((pair.stacks[0].requests(), pair.stacks[1].observers(), pair.stacks[1].cached()), (0, 0, 0));
    }
    assert!(memory[59] <= memory[9] + 512, "{memory:?}");
}

#[test]
fn what_cannot_work_is_refused() {
    let make = |datagram, change: fn(&mut Config)| {
        let mut settings = millpond_coap::Config::default();
        settings.limits.datagram = datagram;
        let endpoint = Endpoint::<u8>::new(settings, steady(), ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap();
        let mut config = Config::default();
        change(&mut config);
        CoapStack::new(endpoint, config, ChanceSeed::new(1)).err()
    };
    assert_eq!(make(1_152, |_| {}), None);
    assert_eq!(make(500, |_| {}), Some(ConfigError::Block { block: 1_024, datagram: 500 }));
    assert_eq!(make(1_152, |config| config.block = BlockSize::BERT), Some(ConfigError::Bert));
    let backwards: fn(&mut Config) = |config| config.renew_after = (Span::from_secs(2), Span::from_secs(1));
    assert_eq!(make(1_152, |config| config.etag_length = 9), Some(ConfigError::EtagLength { asked: 9 }));
    assert_eq!(make(1_152, backwards), Some(ConfigError::RenewAfter));
}

#[test]
fn a_sibling_knows_nobody() {
    let mut pair = Pair::serving(600, BlockSize::B256);
    pair.get();
    pair.settle();
    let sibling = pair.stacks[1].sibling(9);
    assert_eq!((sibling.cached(), sibling.endpoint().peers(), sibling.counters()), (0, 0, Default::default()));
    assert_eq!(Message::parse(&pair.datagrams[1].2).unwrap().payload().len(), 256);
}
