//! Bodies in bursts (RFC 9177) between two stacks.

use millpond_coap::Output;
use millpond_coap::block::BlockSize;
use millpond_coap::block::robust::BurstParameters;
use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer, number};
use millpond_coap::transfer::{Answer, ClientRequest, CoapStack, Config, RequestFailure};
use millpond_coap::{Endpoint, IdGenerator};
use millpond_control::{ChanceSeed, Instant, Preset};
use proptest::prelude::*;

use crate::pair::{CLIENT, DELAY, Pair, SECOND, SERVER, Told, body, get, put};

/// Two stacks that both take bursts, in blocks of 64 bytes.
fn both(length: usize) -> Pair {
    let mut pair = Pair::new(|node, _, config| {
        config.q_block = (node == SERVER).then_some(BurstParameters::RFC9177);
        config.block = BlockSize::B64;
    });
    pair.application.body = body(length);
    pair
}

fn down() -> ClientRequest<'static> {
    ClientRequest { early: Some(BlockSize::B64), ..get().in_bursts() }
}

fn up(body: &[u8]) -> ClientRequest<'_> {
    ClientRequest { upload: BlockSize::B64, ..put(body).in_bursts() }
}

/// How many datagrams one side sent have an option.
fn with(pair: &Pair, side: u8, option: u16) -> usize {
    let has = |bytes: &[u8]| Message::parse(bytes).unwrap().option(option).is_some();
    pair.datagrams.iter().filter(|(_, from, bytes)| *from == side && has(bytes)).count()
}

#[test]
fn a_download_travels_in_sets() {
    let mut pair = both(64 * 40);
    pair.ask(&down());
    pair.settle();
    assert_eq!(pair.answers(), [(body(64 * 40), false)]);
    assert_eq!((with(&pair, SERVER, number::Q_BLOCK2), with(&pair, SERVER, number::BLOCK2)), (40, 0));
    // The first block, the rest, and a word after each set.
    assert_eq!(with(&pair, CLIENT, number::Q_BLOCK2), 5);
    assert_eq!(pair.stacks[0].requests(), 0);
    assert!(pair.now < SECOND, "{}", pair.now);
}

/// The end of it was told of an ask that was over.
#[test]
fn an_ask_that_is_cancelled_once_its_last_block_has_come_ends_once() {
    let mut pair = both(64).losing([1]);
    let ask = pair.ask(&down());
    pair.run_for(DELAY);
    let (now, (.., answer)) = (pair.now(), pair.datagrams[1].clone());
    pair.stacks[0].receive(now, SERVER, &answer);
    while !matches!(pair.stacks[0].poll(now), Output::Trace(_)) {}
    assert!(pair.cancel(ask));
    assert_eq!(pair.take_told(CLIENT), [Told::Failed { request: ask, why: RequestFailure::Cancelled }]);
}

#[test]
fn an_upload_travels_in_sets_and_arrives_once() {
    let mut pair = both(0);
    let bytes = body(64 * 35 + 7);
    pair.ask(&up(&bytes));
    pair.settle();
    let told = pair.take_told(SERVER);
    // The root, to learn whether bursts are known; then the body.
    let bodies: Vec<_> =
        told.iter().filter_map(|told| if let Told::Asked { body, .. } = told { Some(body) } else { None }).collect();
    assert_eq!(bodies, [&Vec::new(), &bytes]);
    assert!(matches!(&pair.take_told(CLIENT)[..], [Told::Answer { code: Code::CHANGED, .. }]));
    assert_eq!((with(&pair, CLIENT, number::Q_BLOCK1), with(&pair, CLIENT, number::BLOCK1)), (36, 0));
}

/// MAX_PAYLOADS of one peer is not that of all: after five blocks its server waits for a word, or for a pause.
#[test]
fn a_peer_may_have_parameters_of_its_own() {
    let five = BurstParameters { set: 5, ..BurstParameters::RFC9177 };
    let most_at_once = |agreed: Option<BurstParameters>| {
        let mut pair = both(64 * 40);
        if let Some(parameters) = agreed {
            pair.stacks[1].set_q_block(CLIENT, parameters).unwrap();
        }
        pair.ask(&down());
        pair.settle();
        assert_eq!(pair.answers(), [(body(64 * 40), false)]);
        let at = |when: u64| pair.datagrams.iter().filter(|(at, from, _)| (*at, *from) == (when, SERVER)).count();
        pair.datagrams.iter().map(|(when, ..)| at(*when)).max()
    };
    assert_eq!([most_at_once(None), most_at_once(Some(five))], [Some(10), Some(5)]);
    let nothing = BurstParameters { set: 0, ..five };
    assert!(both(0).stacks[1].set_q_block(CLIENT, nothing).is_err());
}

/// Each datagram in turn is lost: the body arrives all the same.
#[test]
fn whichever_datagram_is_lost_bodies_arrive() {
    let bytes = body(64 * 25);
    for lost in 0..45 {
        let mut pair = both(64 * 25).losing([lost]);
        pair.ask(&down());
        pair.ask(&up(&bytes));
        pair.settle();
        let answers = pair.answers();
        assert_eq!(answers.len(), 2, "{lost}");
        assert!(answers.contains(&(body(64 * 25), false)), "{lost}");
    }
}

/// The question whether bursts are known is a request for the first 16 bytes of the root, which may be what is being fetched.
#[test]
fn a_question_for_support_leaves_a_download_of_the_same_resource_alone() {
    let mut pair = both(64 * 100);
    pair.ask(&ClientRequest { options: &[], ..down() });
    let bytes = body(64 * 25);
    pair.ask(&up(&bytes));
    pair.settle();
    let told = pair.take_told(CLIENT);
    let is_download =
        |told: &Told| matches!(told, Told::Answer { code: Code::CONTENT, body, .. } if *body == self::body(64 * 100));
    let is_upload = |told: &Told| matches!(told, Told::Answer { code: Code::CHANGED, .. });
    assert!(told.len() == 2 && told.iter().any(is_download) && told.iter().any(is_upload));
}

/// RFC 9177 §4.1: 4.02, then as RFC 7959 has it; and the next time at once.
#[test]
fn a_server_without_bursts_is_asked_block_by_block() {
    let mut pair = Pair::serving(1_000, BlockSize::B64);
    for probes in [1, 0] {
        pair.datagrams.clear();
        pair.ask(&down());
        pair.settle();
        assert_eq!(pair.answers(), [(body(1_000), false)]);
        assert_eq!(with(&pair, CLIENT, number::Q_BLOCK2), probes);
        assert_eq!(with(&pair, SERVER, number::BLOCK2), 16);
    }
    let bytes = body(500);
    pair.ask(&up(&bytes));
    pair.settle();
    let told = pair.take_told(SERVER);
    assert!(matches!(told.last(), Some(Told::Asked { body, .. }) if *body == bytes), "{told:?}");
}

#[test]
fn what_fits_one_message_is_one() {
    let mut pair = both(20);
    pair.ask(&up(b"short"));
    pair.settle();
    assert!(matches!(&pair.take_told(SERVER)[..], [Told::Asked { body, .. }] if body == b"short"));
    pair.take_told(CLIENT);
    pair.ask(&down());
    pair.settle();
    assert_eq!(pair.answers(), [(body(20), false)]);
}

/// CoCoA lets one non-confirmable message go in a round trip, and as long as it knows none in 2 s.
#[test]
fn a_set_leaves_at_once_where_the_controller_is_not_asked() {
    let took = |admits_pieces| {
        let mut pair = both(64 * 40);
        pair.stacks = [CLIENT, SERVER].map(|node| {
            let endpoint = millpond_coap::Config { admits_pieces, ..Default::default() };
            let (controller, chance) = (Preset::COCOA_03.build(), ChanceSeed::new(1));
            let endpoint = Endpoint::new(endpoint, controller, chance, node.into(), IdGenerator::counted()).unwrap();
            let config = Config { q_block: Some(BurstParameters::RFC9177), block: BlockSize::B64, ..Config::DEFAULT };
            CoapStack::new(endpoint, config, chance).unwrap()
        });
        pair.ask(&down());
        pair.settle();
        assert_eq!(pair.answers(), [(body(64 * 40), false)]);
        pair.now
    };
    assert!(took(true) > 2 * SECOND, "{}", took(true));
    assert!(took(false) < 2 * SECOND, "{}", took(false));
}

#[test]
fn an_observation_goes_block_by_block() {
    let mut pair = both(200);
    pair.ask(&down().observing());
    pair.run_for(SECOND);
    assert_eq!(pair.answers(), [(body(200), true)]);
    assert_eq!(with(&pair, SERVER, number::Q_BLOCK2), 0);
}

#[test]
fn a_body_that_is_cancelled_or_late_leaves_nothing_behind() {
    let mut pair = both(64 * 40);
    let empty = pair.stacks[0].memory();
    let ask = pair.ask(&down());
    assert!(pair.cancel(ask) && !pair.cancel(ask));
    assert!(matches!(&pair.take_told(CLIENT)[..], [Told::Failed { why: RequestFailure::Cancelled, .. }]));
    let bytes = body(64 * 40);
    let deadline = Some(Instant::from_micros(pair.now + SECOND / 4));
    pair.ask(&ClientRequest { deadline, ..up(&bytes) });
    pair.settle();
    assert!(matches!(&pair.take_told(CLIENT)[..], [Told::Failed { why: RequestFailure::Deadline, .. }]));
    pair.run();
    assert_eq!(pair.stacks[0].endpoint().exchanges(), 0);
    assert!(pair.stacks[0].memory() < empty + 8_192, "{}", pair.stacks[0].memory() - empty);
}

#[test]
fn a_body_longer_than_is_taken_is_refused() {
    let mut pair = both(64 * 40);
    pair.ask(&ClientRequest { longest: 1_000, ..down() });
    pair.settle();
    assert!(matches!(&pair.take_told(CLIENT)[..], [Told::Failed { why: RequestFailure::Burst(_), .. }]));
    let mut pair = both(0);
    let bytes = body((1 << 20) + 1);
    pair.ask(&up(&bytes));
    pair.settle();
    assert!(matches!(&pair.take_told(CLIENT)[..], [Told::Answer { code: Code::REQUEST_ENTITY_TOO_LARGE, .. }]));
}

#[test]
fn progress_is_told() {
    let mut pair = both(64 * 40);
    let ask = pair.ask(&down());
    pair.run_for(SECOND / 4);
    let progress = pair.stacks[0].progress(ask).unwrap();
    assert!(progress.received > 0 && progress.total == Some(64 * 40), "{progress:?}");
    pair.settle();
    assert_eq!(pair.stacks[0].progress(ask), None);
}

/// A payload of a body of 1 MiB in blocks of 16 bytes, of which only this one ever comes.
fn claim(id: u16, tag: u16, number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::start(
        &mut bytes,
        Kind::NonConfirmable,
        Code::PUT,
        MessageId(id),
        Token::new(&id.to_be_bytes()).unwrap(),
    );
    writer.option(number::URI_PATH, b"x").unwrap();
    writer.option(number::Q_BLOCK1, &(number << 4 | 8).to_be_bytes()[1..]).unwrap();
    writer.option(number::SIZE1, &[0x10, 0, 0]).unwrap();
    writer.option(number::REQUEST_TAG, &tag.to_be_bytes()).unwrap();
    writer.payload(&[7; 16]).unwrap();
    writer.finish().unwrap();
    bytes
}

fn code_of_last(pair: &Pair) -> Option<Code> {
    pair.datagrams.last().map(|sent| Message::parse(&sent.2).unwrap().code)
}

/// Who claims a length has sent nothing yet.
#[test]
fn claimed_lengths_are_not_held() {
    let mut pair = both(0);
    let empty = pair.stacks[1].memory();
    for from in 2..=255 {
        pair.inject_from(from, SERVER, &claim(1, 1, 0));
    }
    let held = pair.stacks[1].memory() - empty;
    assert!(held < 600_000, "{held} bytes for 254 claims of 1 MiB");
}

/// The last block of a body may be short, and brings the question for all others.
#[test]
fn questions_to_who_may_be_elsewhere_have_three_times_the_bytes_that_came() {
    for parameters in [BurstParameters::RFC9177, BurstParameters::PACED] {
        let mut pair = Pair::new(|_, _, config| config.q_block = Some(parameters));
        // Q-Block1 10/0/16, Size1 161, an empty Request-Tag, one byte.
        let short = b"\x50\x03\x00\x01\xd1\x06\xa0\xd1\x1c\xa1\xd0\xdb\xff\x07";
        pair.inject_from(2, SERVER, short);
        pair.run();
        let asked = pair.datagrams.iter().map(|(.., bytes)| bytes.len()).sum::<usize>();
        assert!((18..=3 * short.len()).contains(&asked), "{asked} bytes for {}", short.len());
    }
}

/// However many begin a body and never go on, a peer that does go on is not refused, and all that is held is bounded.
#[test]
fn a_flood_of_beginnings_keeps_no_upload_from_its_end() {
    let mut pair = Pair::new(|node, endpoint, config| {
        config.q_block = (node == SERVER).then_some(BurstParameters::RFC9177);
        config.block = BlockSize::B64;
        config.limits.bodies = 300_000;
        endpoint.limits.bytes = 8 << 20;
    });
    let bytes = body(64 * 60);
    pair.ask(&up(&bytes));
    let mut round = 0_u16;
    while pair.stacks[0].requests() > 0 {
        for _ in 0..300 {
            round = round.wrapping_add(1);
            pair.inject_from(2 | round as u8, SERVER, &claim(round, round, u32::from(round % 50)));
            let endpoint = pair.stacks[1].endpoint().memory();
            let held = pair.stacks[1].memory() - endpoint;
            assert!(held < 400_000, "{held}");
        }
        pair.take_told(SERVER);
        pair.run_for(SECOND / 20);
        pair.datagrams.clear();
        assert!(pair.now < 60 * SECOND, "it never ends");
    }
    assert!(matches!(&pair.take_told(CLIENT)[..], [Told::Answer { code: Code::CHANGED, .. }]));
}

/// Nor a peer that fetches one, and its application is asked once.
#[test]
fn a_flood_of_beginnings_keeps_no_download_from_its_end() {
    let mut pair = Pair::new(|node, endpoint, config| {
        config.q_block = (node == SERVER).then_some(BurstParameters::RFC9177);
        config.block = BlockSize::B64;
        endpoint.limits.bytes = 8 << 20;
    });
    (pair.application.body, pair.application.knows) = (body(64 * 60), true);
    pair.ask(&down());
    let (mut round, mut asked) = (0_u16, 0);
    while pair.stacks[0].requests() > 0 {
        for _ in 0..600 {
            round = round.wrapping_add(1);
            pair.inject_from(2 | round as u8, SERVER, &claim(round, round, u32::from(round % 50)));
        }
        asked += pair.asked();
        pair.run_for(SECOND / 20);
        pair.datagrams.clear();
        assert!(pair.now < 60 * SECOND, "it never ends");
    }
    assert_eq!(pair.answers(), [(body(64 * 60), false)]);
    assert!(asked + pair.asked() <= 2, "once for the question for support, once for the body");
}

/// Each is asked for what it did not send, which takes no place that somebody needs who was proved.
#[test]
fn a_flood_of_gaps_from_forged_addresses_keeps_no_newcomer_from_its_body() {
    let mut pair = Pair::new(|node, endpoint, config| {
        config.q_block = (node == SERVER).then_some(BurstParameters::RFC9177);
        config.block = BlockSize::B64;
        endpoint.limits.peers = 32;
    });
    (pair.application.body, pair.application.knows) = (body(64 * 60), true);
    let mut round = 0_u16;
    let mut flood = |pair: &mut Pair| {
        for _ in 0..20 {
            round = round.wrapping_add(1);
            pair.inject_from(2 + (round % 250) as u8, SERVER, &claim(round, round, 20));
        }
        pair.take_told(SERVER);
        pair.datagrams.clear();
    };
    for _ in 0..10 {
        flood(&mut pair);
        pair.run_for(SECOND / 20);
    }
    let bytes = body(64 * 60);
    for (ask, answer) in [(down(), &bytes[..]), (up(&bytes), &[])] {
        pair.ask(&ask);
        let latest = pair.now + 60 * SECOND;
        while pair.stacks[0].requests() > 0 {
            flood(&mut pair);
            pair.run_for(SECOND / 20);
            assert!(pair.now < latest, "it never ends");
        }
        assert_eq!(pair.answers(), [(answer.to_vec(), false)]);
    }
}

/// The same by somebody who is where it says, and fetches one long body after the other from many ports.
#[test]
fn downloads_of_one_network_leave_those_of_another() {
    let mut pair = both(64 * 60);
    pair.application.knows = true;
    pair.ask(&down());
    let (mut round, mut asked) = (0_u16, 0);
    let mut flood = |pair: &mut Pair| {
        for _ in 0..600 {
            round = round.wrapping_add(1);
            let path = round.to_be_bytes();
            let whole = [&b"\x50\x01"[..], &path, b"\xb2", &path, b"\xd1\x07\x0a"].concat();
            pair.inject_from(128 | round as u8, SERVER, &whole);
        }
    };
    while pair.stacks[0].requests() > 0 {
        flood(&mut pair);
        let told = pair.take_told(SERVER);
        asked += told.len();
        pair.run_for(SECOND / 20);
        pair.datagrams.clear();
        assert!(pair.now < 60 * SECOND, "it never ends");
    }
    assert_eq!(pair.answers(), [(body(64 * 60), false)]);
    assert!(asked > 600);
    // Nor do they refuse who begins a body and was never seen.
    flood(&mut pair);
    pair.datagrams.clear();
    pair.inject_from(5, SERVER, &claim(1, 1, 0));
    assert_eq!(code_of_last(&pair), None);
}

/// It may have gone, and somebody asks in its name.
#[test]
fn of_a_long_body_no_more_leaves_for_who_says_nothing_than_two_minutes_take() {
    for (parameters, most) in [(BurstParameters::RFC9177, 700_000), (BurstParameters::PACED, 200_000)] {
        let mut pair = Pair::new(|_, _, config| {
            (config.q_block, config.limits.body) = (Some(parameters), 4 << 20);
        });
        (pair.application.body, pair.application.knows) = (body(4 << 20), true);
        pair.inject_from(2, SERVER, b"\x50\x01\x00\x01\xb1x\xd1\x07\x0e");
        pair.run();
        let given = pair.datagrams.iter().map(|(.., bytes)| bytes.len()).sum::<usize>();
        assert!((40_000..most).contains(&given), "{given} bytes");
        assert!(pair.now < 700 * SECOND);
    }
}

/// Two bodies under one tag are one to a peer that collects them: what does not fit is refused, and nothing is handed up of two.
#[test]
fn tags_mixed_and_sizes_that_are_wrong_are_refused() {
    let mut pair = both(0);
    pair.inject(SERVER, &claim(1, 9, 0));
    let mut other = claim(2, 9, 1);
    // Another Size1.
    let place = other.windows(3).position(|bytes| bytes == [0x10, 0, 0]).unwrap();
    other[place] = 0x08;
    pair.inject(SERVER, &other);
    assert_eq!(code_of_last(&pair), Some(Code::BAD_REQUEST));
    assert_eq!(pair.asked(), 0);
}

/// Who asks for many bodies that nobody answers takes no more than so many places, and gets none twice.
#[test]
fn requests_that_are_never_answered_are_forgotten() {
    let mut pair = both(64 * 40);
    pair.application.answers = false;
    for id in 0..5_000_u16 {
        let mut bytes = Vec::new();
        let token = Token::new(&id.to_be_bytes()).unwrap();
        let mut writer = Writer::start(&mut bytes, Kind::NonConfirmable, Code::GET, MessageId(id), token);
        writer.option(number::Q_BLOCK2, &[8]).unwrap();
        writer.finish().unwrap();
        pair.inject_from(2 | id as u8, SERVER, &bytes);
    }
    assert_eq!(pair.asked(), 4_096);
    let now = pair.now();
    let answer = Answer::new(Code::CONTENT, &[]).with_body(b"late");
    for id in pair.application.handed.clone() {
        let _ = pair.stacks[1].reject(now, id);
        pair.drain(SERVER);
        assert!(pair.stacks[1].answer(now, id, &answer).is_err());
    }
}

/// Thousands of them, forged, would else have every place of those that wait for their answers until their time is over.
#[test]
fn who_wishes_no_response_to_a_body_in_bursts_takes_no_place() {
    for (first, code_of_empty) in [(0x51, None), (0x41, Some(Code::EMPTY))] {
        let mut pair = both(64 * 40);
        pair.application.answers = false;
        let empty = pair.stacks[1].memory();
        for id in 0..5_000_u16 {
            let [high, low] = id.to_be_bytes();
            let options = [&b"\xd1\x12\x0a\xd1\xd6\x1a"[..]].concat();
            pair.inject_from(2 | low, SERVER, &[&[first, 1, high, low, low][..], &options].concat());
            let now = pair.now();
            for id in std::mem::take(&mut pair.application.handed) {
                pair.stacks[1].suppress_response(now, id).unwrap();
                pair.drain(SERVER);
                assert!(pair.stacks[1].suppress_response(now, id).is_err());
            }
            assert_eq!(code_of_last(&pair), code_of_empty, "{id}");
            pair.now += SECOND / 20;
        }
        assert_eq!(pair.asked(), 5_000, "none is refused");
        let held = pair.stacks[1].memory() - empty;
        assert!(held < 400_000, "{held} bytes");
    }
}

#[test]
fn of_a_peer_that_is_no_more_no_body_in_bursts_is_kept() {
    let mut pair = both(64 * 40);
    let kept = pair.stacks[1].memory();
    pair.inject(SERVER, &claim(1, 1, 0));
    pair.ask(&down());
    pair.run_for(SECOND / 2);
    assert!(pair.stacks[1].memory() > kept + 64 * 40);
    let sent = pair.datagrams.len();
    let now = pair.now();
    pair.stacks[1].forget_peer(now, CLIENT);
    pair.drain(SERVER);
    pair.lose = (0..10_000).collect();
    pair.run_for(10 * SECOND);
    let later = &pair.datagrams[sent..];
    assert!(later.iter().all(|(_, from, _)| *from == CLIENT), "{later:x?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    /// Whatever is lost, each ask ends once, with the whole body or with a word why not, and nothing is left of it.
    #[test]
    fn every_ask_ends_once(
        blocks in 1_usize..50,
        last in 1_usize..=64,
        lost in prop::collection::btree_set(0_usize..150, 0..40),
        upload in any::<bool>(),
    ) {
        let bytes = body((blocks - 1) * 64 + last);
        let mut pair = both(bytes.len()).losing(lost.iter().copied());
        pair.ask(&if upload { up(&bytes) } else { down() });
        pair.settle();
        let told = pair.take_told(CLIENT);
        prop_assert_eq!(told.len(), 1);
        match &told[0] {
            Told::Answer { body, .. } if !upload => prop_assert_eq!(body, &bytes),
            Told::Answer { code, .. } => prop_assert_eq!(*code, Code::CHANGED),
            Told::Failed { why, .. } => prop_assert!(lost.len() > 3, "{why}"),
            other => prop_assert!(false, "{other:?}"),
        }
        pair.run();
        prop_assert_eq!(pair.stacks[0].endpoint().exchanges(), 0);
    }
}
