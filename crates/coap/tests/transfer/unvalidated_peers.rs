//! What unvalidated peers begin keeps nobody from going on.

use millpond_coap::IdGenerator;
use millpond_coap::block::BlockSize;
use millpond_coap::block::robust::BurstParameters;
use millpond_coap::message::{Code, Message};
use millpond_coap::transfer::SharedBody;

use crate::pair::{CLIENT, Pair, SECOND, SERVER, Told, body, known_by};

/// A block of a body of 100 blocks of 16 bytes, with a path of its sender's.
fn block(id: u16, number: u16) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    let value = (u32::from(number) << 4 | u32::from(number < 99) << 3).to_be_bytes();
    [&[0x40, 3, high, low][..], b"\xb4body\xd3\x03", &value[1..], b"\xff", &[number as u8; 16]].concat()
}

fn code_of_last(pair: &Pair) -> Code {
    Message::parse(&pair.datagrams.last().unwrap().2).unwrap().code
}

/// Addresses of one byte are too few for unvalidated peers: each comes with paths of its own.
fn start(round: u16) -> Vec<u8> {
    let path = round.to_be_bytes();
    [b"\x40\x03", &path[..], b"\xb2", &path, b"\xd1\x03\x08\xff", &[1; 16]].concat()
}

#[test]
fn an_upload_that_is_under_way_is_not_dropped_for_any_number_that_are_begun() {
    let mut pair = Pair::new(|_, _, config| config.limits.bodies_per_peer = 100_000);
    for number in 0..100 {
        pair.inject(SERVER, &block(number, number));
        assert_eq!(code_of_last(&pair), Code::CONTINUE, "block {number}");
        if number < 2 {
            continue;
        }
        for round in 0..1_100_u16 {
            pair.inject_from(round as u8 | 2, SERVER, &start(round));
        }
        pair.datagrams.clear();
        if number == 4 {
            break;
        }
    }
    for number in 5..100 {
        pair.inject(SERVER, &block(number, number));
        assert_eq!(code_of_last(&pair), if number < 99 { Code::CONTINUE } else { Code::CHANGED }, "block {number}");
    }
}

#[test]
fn one_peer_has_room_for_so_many_bodies_and_drops_its_own_oldest() {
    let mut pair = Pair::new(|_, _, config| config.limits.bodies_per_peer = 4);
    pair.inject(SERVER, &block(1, 0));
    for round in 0..2_000_u16 {
        pair.inject_from(7, SERVER, &start(round));
    }
    // Its own, however young, stay; those of the other peer make room for each other.
    pair.inject(SERVER, &block(2, 1));
    assert_eq!(code_of_last(&pair), Code::CONTINUE);
    let next = |round: u16| {
        let path = round.to_be_bytes();
        [b"\x40\x03\xff", &path[1..], b"\xb2", &path, b"\xd1\x03\x18\xff", &[1; 16]].concat()
    };
    pair.inject_from(7, SERVER, &next(1_999));
    assert_eq!(code_of_last(&pair), Code::CONTINUE);
    pair.inject_from(7, SERVER, &next(1_000));
    assert_eq!(code_of_last(&pair), Code::REQUEST_ENTITY_INCOMPLETE);
}

/// Many clients fetch one image: it is kept once, however many they are.
#[test]
fn one_body_that_many_fetch_is_kept_once() {
    let mut pair = Pair::new(|_, _, config| {
        config.block = BlockSize::B16;
        config.limits.cached = 150_000;
    });
    pair.application.shared = Some(SharedBody::new(body(100_000)));
    for from in 2..=201 {
        pair.inject_from(from, SERVER, b"\x40\x01\x00\x01\xb5large");
    }
    assert_eq!(pair.stacks[1].cached(), 200);
    pair.take_told(SERVER);
    for from in 2..=201 {
        pair.inject_from(from, SERVER, b"\x40\x01\x00\x02\xb5large\xc1\x10");
    }
    assert_eq!(pair.asked(), 0, "no block asks the application again");
    // Another one makes room for itself, and what nobody has any more is gone.
    pair.application.shared = Some(SharedBody::new(body(100_001)));
    for from in 2..=201 {
        pair.inject_from(from, SERVER, b"\x40\x01\x00\x03\xb5large");
        let endpoint = pair.stacks[1].endpoint().memory();
        assert!(pair.stacks[1].memory() - endpoint < 260_000, "{}", pair.stacks[1].memory() - endpoint);
    }
    assert!(pair.stacks[1].cached() > 100);
}

/// For the first of many blocks of 16 bytes, or a later one, of what has a path of its sender's.
fn wanting(id: u16, path: u16, number: u8) -> Vec<u8> {
    [&b"\x40\x01"[..], &id.to_be_bytes(), b"\xb2", &path.to_be_bytes(), b"\xc1", &[number << 4]].concat()
}

/// Where 100,000 bytes are kept, of bodies of 10,000 bytes none of which are alike. Asked for once each by these.
fn wanted_by(pair: &mut Pair, paths: std::ops::Range<u16>, from: impl Fn(u16) -> u8) {
    for path in paths {
        pair.application.body[..2].copy_from_slice(&path.to_be_bytes());
        pair.inject_from(from(path), SERVER, &wanting(path, path, 0));
        pair.datagrams.clear();
    }
    pair.take_told(SERVER);
}

/// The next block of each of these is had, and no application is asked for it.
fn read_on(pair: &mut Pair, paths: std::ops::Range<u16>, from: impl Fn(u16) -> u8) {
    for path in paths {
        pair.inject_from(from(path), SERVER, &wanting(3_000 + path, path, 1));
        assert_eq!((code_of_last(pair), pair.asked()), (Code::CONTENT, 0), "the next block of {path} is kept");
    }
}

fn keeping() -> Pair {
    let mut pair = Pair::new(|_, _, config| config.limits.cached = 100_000);
    pair.application.body = body(10_000);
    pair
}

#[test]
fn what_proved_peers_are_reading_stays_whatever_unvalidated_peers_ask_for() {
    let mut pair = keeping();
    pair.application.knows = true;
    wanted_by(&mut pair, 0..6, |path| 2 + path as u8);
    pair.application.knows = false;
    // From one network and from the other, until unvalidated peers have all that is left.
    wanted_by(&mut pair, 100..1_100, |path| path as u8 | 64);
    read_on(&mut pair, 0..6, |path| 2 + path as u8);
    // Theirs make room for those who are known, and these for one another.
    pair.application.knows = true;
    wanted_by(&mut pair, 10..19, |path| 20 + path as u8);
    pair.application.knows = false;
    wanted_by(&mut pair, 1_100..1_200, |path| path as u8 | 64);
    read_on(&mut pair, 10..19, |path| 20 + path as u8);
    // When their time is over, nothing is left.
    pair.run();
    assert_eq!(pair.stacks[1].cached(), 0);
}

#[test]
fn what_one_network_asks_for_leaves_what_unvalidated_peers_of_another_are_reading() {
    let mut pair = keeping();
    wanted_by(&mut pair, 0..2, |path| 2 + path as u8);
    wanted_by(&mut pair, 100..1_100, |path| path as u8 | 128);
    read_on(&mut pair, 0..2, |path| 2 + path as u8);
}

/// NSTART is 1: a request is acknowledged, the application fills the queue, the response has a block, and the next is
/// asked for behind all others.
#[test]
fn a_transfer_goes_on_behind_a_full_queue() {
    let mut pair = Pair::serving(1_000, BlockSize::B256);
    pair.application.answers = false;
    pair.get();
    pair.run_for(SECOND);
    let mut others = 0;
    let now = pair.now();
    // One is under way, 64 wait.
    while pair.stacks[0].request(now, SERVER, &crate::pair::get()).is_ok() {
        pair.drain(CLIENT);
        others += 1;
    }
    assert_eq!(others, 65);
    pair.application.answers = true;
    let whole = body(1_000);
    let answer = millpond_coap::transfer::Answer::new(Code::CONTENT, &[]).with_body(&whole);
    let first = pair.application.handed[0];
    pair.stacks[1].answer(now, first, &answer).unwrap();
    pair.drain(SERVER);
    pair.run();
    let told = pair.take_told(CLIENT);
    assert_eq!(told.len(), 66);
    let is_answer = |told: &Told| matches!(told, Told::Answer { body, .. } if *body == whole);
    assert!(told.iter().all(is_answer), "{told:?}");
}

/// Nobody of these is known, and one block of each came: unvalidated peers of one network make room for each other.
#[test]
fn unvalidated_peers_of_one_network_leave_room_for_those_of_another() {
    let mut pair = Pair::new(|_, _, config| config.limits.bodies_per_peer = 100_000);
    pair.inject(SERVER, &block(1, 0));
    for round in 0..3_000_u16 {
        pair.inject_from(round as u8 | 128, SERVER, &start(round));
        pair.datagrams.clear();
    }
    pair.inject(SERVER, &block(2, 1));
    assert_eq!(code_of_last(&pair), Code::CONTINUE);
}

/// Sixteen bodies that lack their ends fill all the room there is, and of each of them more blocks came than of any other.
#[test]
fn long_bodies_that_one_network_does_not_finish_leave_room_for_those_of_another() {
    let mut pair = Pair::new(|_, _, config| config.limits.bodies = 100_000);
    for number in 0..600_u32 {
        for path in 0..12 {
            let value = (number << 4 | 8).to_be_bytes();
            let long = [b"\x40\x03", &(number as u16 * 12 + path).to_be_bytes()[..], b"\xb1", &[path as u8]].concat();
            pair.inject_from(200, SERVER, &[&long[..], b"\xd3\x03", &value[1..], b"\xff", &[1; 16]].concat());
        }
        pair.datagrams.clear();
    }
    for number in 0..100 {
        pair.inject(SERVER, &block(number, number));
        assert_eq!(code_of_last(&pair), if number < 99 { Code::CONTINUE } else { Code::CHANGED }, "block {number}");
    }
    assert!(pair.stacks[1].memory() < 2_000_000);
}

/// What is whole is kept for copies of its blocks, and is worth no more than what is on its way.
#[test]
fn a_body_in_bursts_is_not_dropped_for_whole_ones_of_another_network() {
    let mut pair = Pair::new(|_, _, config| config.q_block = Some(BurstParameters::RFC9177));
    // Uri-Path, Q-Block1 with this value, Size1, Request-Tag.
    let payload = |id: u16, path: u8, block: u8, size: u8| {
        let [high, low] = id.to_be_bytes();
        [b"\x40\x03", &[high, low, 0xb1, path, 0x81, block, 0xd1, 28, size][..], b"\xd1\xdbt\xff", &[1; 16]].concat()
    };
    for number in 0..4_u8 {
        pair.inject(SERVER, &payload(number.into(), b'v', number << 4 | u8::from(number < 3) << 3, 64));
        for round in 0..600_u16 {
            pair.inject_from(
                200 + (round % 50) as u8,
                SERVER,
                &payload(round | u16::from(number) << 12, round as u8, 0, 16),
            );
            pair.datagrams.clear();
        }
    }
    let is_whole = |told: &Told| matches!(told, Told::Asked { body, .. } if body.len() == 64);
    assert!(pair.take_told(SERVER).iter().any(is_whole));
}

/// Who observes has what it asked kept for as long as it likes: a body of many blocks would be its sender's to have kept.
#[test]
fn who_asks_in_several_blocks_is_answered_and_does_not_observe() {
    for (blocks, observes) in [(1_u8, true), (2, false)] {
        let mut pair = Pair::new(|_, _, _| {});
        for number in 0..blocks {
            let value = number << 4 | u8::from(number + 1 < blocks) << 3;
            let asked = [b"\x40\x05\x00", &[number][..], b"\x60\x51o\xd1\x03", &[value], b"\xff", &[7; 16]].concat();
            pair.inject(SERVER, &asked);
        }
        assert_eq!(code_of_last(&pair), Code::CONTENT);
        let told = pair.take_told(SERVER);
        assert!(
            matches!(&told[..], [Told::Asked { observe, body, .. }]
            if *observe == observes && body.len() == 16 * usize::from(blocks)),
            "{told:?}"
        );
        assert_eq!(pair.stacks[1].observers(), u32::from(observes));
    }
}

/// Behind a proxy requests of different clients are of one peer. With a hash that has no secret (that of rustc-hash: all
/// strings of 16 bytes that begin with its first seed have the same) one client could have another's body end in its own.
#[test]
fn bodies_whose_names_were_made_to_collide_do_not_mix() {
    const SEED: [u8; 8] = 0x243f_6a88_85a3_08d3_u64.to_le_bytes();
    let named = |id: u8, client: u8, number: u8| {
        let path = [&SEED[..], &[client; 8]].concat();
        let value = number << 4 | u8::from(number == 0) << 3;
        [&[0x40, 3, 0, id][..], b"\xbd\x03", &path, b"\xd1\x03", &[value], b"\xff", &[client; 16]].concat()
    };
    let bodies = |id_generator| {
        let mut pair = Pair::new(|_, _, _| {});
        pair.stacks[1] = known_by(1, Default::default(), Default::default(), id_generator);
        for (id, client, number) in [(1, 1, 0), (2, 2, 0), (3, 1, 1), (4, 2, 1)] {
            pair.inject(SERVER, &named(id, client, number));
        }
        let body = |told| if let Told::Asked { body, .. } = told { body } else { vec![] };
        pair.take_told(SERVER).into_iter().map(body).collect::<Vec<_>>()
    };
    assert_eq!(bodies(IdGenerator::secret([7; 16])), [vec![1; 32], vec![2; 32]]);
    let mixed = [vec![2; 16], vec![1; 16]].concat();
    assert_eq!(bodies(IdGenerator::counted()), [mixed], "without a secret they do, else this shows nothing");
}

/// As a client that begins another session in the middle of its upload: the old body, of which more came, would outlive the new.
#[test]
fn of_a_peer_that_is_no_more_no_body_and_no_representation_is_kept() {
    let mut pair = Pair::new(|_, _, config| config.block = BlockSize::B16);
    pair.application.body = body(10_000);
    (0..50).for_each(|number| pair.inject_from(7, SERVER, &block(number, number)));
    pair.inject_from(7, SERVER, b"\x40\x01\x01\x01\xb5large");
    pair.inject_from(8, SERVER, &block(0, 0));
    let now = pair.now();
    let server = &mut pair.stacks[usize::from(SERVER)];
    let before = server.memory();
    server.forget_peer(now, 7);
    assert!(before - server.memory() > 10_000);
    pair.inject_from(7, SERVER, &block(60, 50));
    assert_eq!(code_of_last(&pair), Code::REQUEST_ENTITY_INCOMPLETE);
    pair.inject_from(8, SERVER, &block(1, 1));
    assert_eq!(code_of_last(&pair), Code::CONTINUE);
}
