//! What a client or server may be sent instead of what it expects.

use alloc::{boxed::Box, vec::Vec};

use crate::block::BlockSize;
use crate::block::robust::{BurstFailure, BurstLimits, BurstOptions, End, Whole};
use crate::message::{Code, Kind, MessageId, Token, Writer, number};
use proptest::prelude::*;

use super::world::{BurstAsk, CLIENT, SERVER, World, at, body};

/// Bytes of a message, with options in ascending order.
fn message(kind: Kind, code: Code, id: u16, token: &[u8], options: &[(u16, &[u8])], payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, kind, code, MessageId(id), Token::new(token).unwrap());
    for (number, value) in options {
        writer.option(*number, value).unwrap();
    }
    writer.payload(payload).unwrap();
    writer.finish().unwrap();
    bytes
}

/// Options as they stand in a message.
type Options<'o> = &'o [(u16, &'o [u8])];

fn serving() -> World {
    World::new(BurstOptions::RFC9177).serving(body(25 * 16))
}

/// The code that a server answers a request with, if it answers at once.
fn answer(world: &mut World, kind: Kind, code: Code, options: &[(u16, &[u8])], payload: &[u8]) -> Option<Code> {
    let before = world.sent.len();
    let id = world.next_id();
    world.inject(SERVER, &message(kind, code, id, &[7, id as u8], options, payload));
    world.sent.get(before).map(|sent| sent.message().code)
}

#[test]
fn requests_that_cannot_be_are_answered_as_the_rfc_asks() {
    const TAG: (u16, &[u8]) = (number::REQUEST_TAG, &[1]);
    const SIZE: (u16, &[u8]) = (number::SIZE1, &[32]);
    // 0/1/16 and 1/0/16.
    const FIRST: (u16, &[u8]) = (19, &[8]);
    const SECOND: (u16, &[u8]) = (19, &[16]);
    let cases: [(&str, Options<'_>, usize, Code); 14] = [
        ("no Request-Tag", &[FIRST, SIZE], 16, Code::BAD_REQUEST),
        ("no Size1", &[FIRST, TAG], 16, Code::BAD_REQUEST),
        ("a size that is reserved", &[(19, &[15]), SIZE, TAG], 16, Code::BAD_REQUEST),
        ("an option of four bytes", &[(19, &[0, 0, 0, 8]), SIZE, TAG], 16, Code::BAD_REQUEST),
        ("the option twice", &[FIRST, SECOND, SIZE, TAG], 16, Code::BAD_OPTION),
        ("both kinds of options", &[FIRST, (number::BLOCK1, &[8]), SIZE, TAG], 16, Code::BAD_OPTION),
        ("both kinds, the other way", &[(number::BLOCK2, &[8]), (31, &[8])], 0, Code::BAD_OPTION),
        ("a block past the end", &[(19, &[0x20]), SIZE, TAG], 16, Code::BAD_REQUEST),
        ("a block that is not full", &[FIRST, SIZE, TAG], 15, Code::BAD_REQUEST),
        ("a last block that says more follows", &[(19, &[0x18]), SIZE, TAG], 16, Code::BAD_REQUEST),
        (
            "a body that is too long",
            &[FIRST, (number::SIZE1, &[0xff, 0xff, 0xff]), TAG],
            16,
            Code::REQUEST_ENTITY_TOO_LARGE,
        ),
        ("blocks that do not ascend", &[(31, &[0x20]), (31, &[0x10])], 0, Code::BAD_REQUEST),
        ("a block twice", &[(31, &[0x10]), (31, &[0x10])], 0, Code::BAD_REQUEST),
        ("blocks of two sizes", &[(31, &[0x10]), (31, &[0x21])], 0, Code::BAD_REQUEST),
    ];
    for (what, options, payload, code) in cases {
        for kind in [Kind::Confirmable, Kind::NonConfirmable] {
            let mut world = serving();
            assert_eq!(answer(&mut world, kind, Code::PUT, options, &body(payload)), Some(code), "{what}, {kind:?}");
            assert_eq!((world.server.bodies(), world.asked), (0, 0), "{what}: nothing is kept");
        }
    }
}

/// Another total under the same tag does not harm what is there.
#[test]
fn a_payload_that_belongs_elsewhere_leaves_the_body_alone() {
    let mut world = serving();
    let part = |block: &'static [u8], size: &'static [u8]| {
        [(19, block), (number::SIZE1, size), (number::REQUEST_TAG, &[1][..])]
    };
    let put = |world: &mut World, options: &[(u16, &[u8])]| {
        answer(world, Kind::NonConfirmable, Code::PUT, options, &body(16))
    };
    assert_eq!(put(&mut world, &part(&[8], &[32])), None);
    assert_eq!(put(&mut world, &part(&[16], &[48])), Some(Code::BAD_REQUEST));
    assert_eq!(world.asked, 0);
    assert_eq!(put(&mut world, &part(&[16], &[32])), Some(Code::CONTENT));
    assert_eq!(world.asked, 1);
}

/// One request draws each block once, and no more than a few sets, whatever it lists (§4.4).
#[test]
fn a_request_draws_no_block_twice() {
    let mut world = serving();
    let whole: [(u16, &[u8]); 1] = [(31, &[8])];
    answer(&mut world, Kind::NonConfirmable, Code::GET, &whole, &[]);
    world.run(at(20_000));
    let before = world.down.sent;
    // 3/1 (3 to 9), 5/0, 8/1, 20/1.
    let overlapping: [(u16, &[u8]); 4] = [(31, &[0x38]), (31, &[0x50]), (31, &[0x88]), (31, &[0x01, 0x48])];
    answer(&mut world, Kind::NonConfirmable, Code::GET, &overlapping, &[]);
    world.run(at(60_000));
    let said = world.said(SERVER)[before..].to_vec();
    let numbers: Vec<u32> = (3..10).chain(20..25).collect();
    let expected = |number: &u32| format!("NON 2.05 QB2:{number}/{}", u8::from(*number < 24));
    assert_eq!(said, numbers.iter().map(expected).collect::<Vec<_>>());
    let past: [(u16, &[u8]); 1] = [(31, &[0x19, 0x00])];
    assert_eq!(answer(&mut world, Kind::NonConfirmable, Code::GET, &past, &[]), Some(Code::BAD_REQUEST));
}

/// Confirmable payloads are acknowledged with what is there (2.31), or with what is not (4.08).
#[test]
fn confirmable_payloads_are_answered_in_their_acknowledgements() {
    let mut world = serving();
    let part = |block: &'static [u8]| [(19, block), (number::SIZE1, &[48][..]), (number::REQUEST_TAG, &[1][..])];
    let mut put = |block| answer(&mut world, Kind::Confirmable, Code::PUT, &part(block), &body(16));
    assert_eq!(put(&[0x18]), Some(Code::REQUEST_ENTITY_INCOMPLETE));
    assert_eq!(put(&[0x08]), Some(Code::CONTINUE));
    assert_eq!(put(&[0x20]), Some(Code::CONTENT));
    world.run(at(1_000));
    assert_eq!(world.said(SERVER)[2], "ACK 2.05 QB2:0/1");
}

/// Whatever a peer begins, what is held stays within the limits, and it is all given back.
#[test]
fn what_is_begun_and_not_ended_stays_within_the_limits() {
    let limits = BurstLimits { body: 4_096, bodies: 8, bodies_per_peer: 4, requests: 8, bytes: 20_000, peers: 4 };
    let options = BurstOptions { limits, ..BurstOptions::RFC9177 };
    let mut world = World::new(options).serving(body(4_000));
    for count in 0..200_u8 {
        let tag: [(u16, &[u8]); 3] = [(19, &[8]), (number::SIZE1, &[0x10, 0x00]), (number::REQUEST_TAG, &[count])];
        answer(&mut world, Kind::NonConfirmable, Code::PUT, &tag, &body(16));
        let path: [(u16, &[u8]); 2] = [(number::URI_PATH, &[b'a' + count % 26]), (31, &[8])];
        answer(&mut world, Kind::NonConfirmable, Code::GET, &path, &[]);
        assert!(world.server.bodies() <= 8);
        assert!(world.server.memory() <= 20_000 + 8_192, "{}", world.server.memory());
    }
    world.run(at(1_000_000));
    assert_eq!(world.server.bodies(), 0);
}

/// Responses that do not belong together, or say what cannot be.
/// A datagram may claim any length; what it takes is what it brought.
#[test]
fn a_claimed_length_takes_no_memory() {
    let limits =
        BurstLimits { body: 1 << 20, bytes: 16 << 20, bodies: 64, bodies_per_peer: 64, ..BurstLimits::DEFAULT };
    let mut world = World::new(BurstOptions { limits, ..BurstOptions::RFC9177 }).serving(body(16));
    let before = world.server.memory();
    for count in 0..16 {
        // The first 1024 bytes of a body of 1 MiB.
        let options: [(u16, &[u8]); 3] =
            [(19, &[0x0e]), (number::SIZE1, &[0x10, 0, 0]), (number::REQUEST_TAG, &[count])];
        answer(&mut world, Kind::NonConfirmable, Code::PUT, &options, &body(1_024));
    }
    assert_eq!(world.server.bodies(), 16, "they are taken");
    let held = world.server.memory() - before;
    assert!(held < 64 * 1_024, "16 KiB came, and {held} bytes are held");
}

#[test]
fn a_client_gives_up_on_blocks_that_do_not_fit() {
    const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"hello")];
    let etag: (u16, &[u8]) = (number::ETAG, &[1]);
    let cases: [(&str, Options<'_>); 4] = [
        ("no length of the body", &[etag, (31, &[8])]),
        ("blocks larger than asked for", &[etag, (number::SIZE2, &[100]), (31, &[9])]),
        ("a block past the end", &[etag, (number::SIZE2, &[100]), (31, &[0x70])]),
        ("a body without end", &[etag, (number::SIZE2, &[0xff, 0xff, 0xff, 0xff]), (31, &[8])]),
    ];
    for (what, options) in cases {
        let mut world = serving();
        world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&PATH) });
        world.run(at(0));
        let request = world.sent[0].clone();
        let token = request.message().token;
        let reply =
            message(Kind::Acknowledgement, Code::CONTENT, request.message().id.0, token.as_bytes(), options, &body(16));
        world.inject(CLIENT, &reply);
        let (_, why) = world.failure();
        println!("{what}: {why}");
        assert_eq!(world.client.transfers(), 0, "{what}");
    }
}

/// So does libcoap: what it answers the question for support with says neither how long the body is nor which one.
#[test]
fn a_first_block_of_nothing_in_particular_is_fetched_again_with_the_others() {
    let mut world = serving();
    world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&[(number::URI_PATH, b"hello")]) });
    world.run(at(0));
    let request = world.sent[0].clone();
    let (id, token) = (request.message().id.0, request.message().token);
    let first: Options<'_> = &[(31, &[8])];
    world.inject(CLIENT, &message(Kind::Acknowledgement, Code::CONTENT, id, token.as_bytes(), first, &body(16)));
    world.run(at(10_000));
    let (_, code, bytes) = world.answer();
    assert_eq!((code, bytes), (Code::CONTENT, body(25 * 16)));
    assert_eq!(world.said(CLIENT)[1], "NON 0.01 QB2:0/1");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is lost, doubled by nobody, late or dropped by a queue: a body arrives whole or its failure is told, once,
    /// and nothing is left behind.
    #[test]
    fn every_transfer_ends_once(
        upload in any::<bool>(),
        blocks in 1_usize..60,
        last in 1_usize..=16,
        loss in 0_u32..6,
        set in 1_u32..12,
        paced in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut options = BurstOptions::RFC9177;
        (options.parameters.set, options.parameters.paced) = (set, paced);
        let bytes = body((blocks - 1) * 16 + last);
        let mut world = World::new(options).serving(bytes.clone());
        for way in [&mut world.up, &mut world.down] {
            way.chance = (seed, loss);
        }
        if upload {
            let whole = bytes.clone();
            world.application = Box::new(move |_, bytes| (Code::CHANGED, Vec::new(), vec![u8::from(bytes == whole)]));
            world.ask(&BurstAsk { code: Code::PUT, options: &[], body: &bytes, size: BlockSize::B16 });
        } else {
            world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&[]) });
        }
        world.run(at(10_000_000));
        prop_assert_eq!(world.told.len(), 1);
        match &world.told[0].1 {
            End::Done(Whole { body: answer, .. }) => prop_assert_eq!(answer, &if upload { vec![1] } else { bytes }),
            End::Failed(why) => prop_assert!(loss > 0, "{why}"),
            End::Unsupported => prop_assert!(false, "it is known"),
        }
        prop_assert_eq!((world.client.transfers(), world.server.bodies()), (0, 0));
        prop_assert!(world.client.memory() < 4_096);
    }

    /// Any bytes at all, at a server and at a client in the middle of a transfer.
    #[test]
    fn any_bytes_are_survived(
        datagrams in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..60)), 0..60),
        steps in prop::collection::vec(0_u64..5_000, 60),
    ) {
        let mut world = serving();
        world.ask(&BurstAsk { size: BlockSize::B16, ..BurstAsk::get(&[]) });
        let mut now = 0;
        for ((to_server, bytes), step) in datagrams.iter().zip(steps) {
            let mut bytes = bytes.clone();
            // Most are to be messages with one of the two options.
            if let [first, code, ..] = &mut bytes[..] {
                *first = 0x50 | (*first & 0x20);
                *code &= 0x5f;
            }
            world.inject(if *to_server { SERVER } else { CLIENT }, &bytes);
            now += step;
            world.run(at(now));
        }
        world.run(at(10_000_000));
        prop_assert_eq!((world.client.transfers(), world.server.bodies()), (0, 0));
    }
}

/// Where half is lost timeouts are doubled again and again. Those of a sender once grew to an hour, because complaints that reported nothing new
/// were no end of silence.
#[test]
fn a_sender_waits_for_no_hour() {
    let mut options = BurstOptions::RFC9177;
    (options.parameters.set, options.parameters.paced) = (1, true);
    let bytes = body(37 * 16 + 1);
    let mut world = World::new(options).serving(bytes.clone());
    for way in [&mut world.up, &mut world.down] {
        way.chance = (3_126_551_827_522_766_594, 1);
    }
    world.ask(&BurstAsk { code: Code::PUT, options: &[], body: &bytes, size: BlockSize::B16 });
    world.run(at(600_000));
    assert_eq!(world.told.len(), 1);
}

/// It says that it knows bursts, and resets the first block of each.
#[test]
fn a_server_that_resets_every_burst_is_left() {
    for (code, bytes) in [(Code::PUT, body(400)), (Code::GET, Vec::new())] {
        let mut world = serving();
        let ask = BurstAsk { code, options: &[], body: &bytes, size: BlockSize::B16 };
        world.ask(&ask);
        let mut rounds = 0;
        for step in 0..1_000 {
            world.run(at(step * 100));
            let last = world.sent.iter().rev().find(|sent| sent.from == CLIENT);
            let Some(id) = last.filter(|sent| sent.message().kind == Kind::NonConfirmable).map(|it| it.message().id)
            else {
                continue;
            };
            rounds += 1;
            world.inject(CLIENT, &[0x70, 0, (id.0 >> 8) as u8, id.0 as u8]);
            world.run(at(step * 100));
            if !world.told.is_empty() {
                break;
            }
        }
        assert!(rounds <= 4, "{code}: {rounds} bursts were reset");
        assert!(matches!(world.failure().1, BurstFailure::Exchange(_)), "{:?}", world.told);
    }
}
