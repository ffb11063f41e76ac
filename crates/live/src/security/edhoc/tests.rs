//! The trace of RFC 9529 §3, and what is hostile.

use lakers::{CBORDecoder, ConnId};
use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer, number};
use millpond_coap::quota::Source;
use zeroize::Zeroizing;

use super::super::keys::PrivateKey;
use super::super::steps::{Asked, Fault, SUITE, message_1, message_2, message_3, message_4};
use super::{Acceptor, Begun, SHARES, TRUE, since_start};
use crate::EdhocCredentials;

fn bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn key(digits: &str) -> PrivateKey {
    PrivateKey::new(Zeroizing::new(bytes(digits).try_into().unwrap())).unwrap()
}

fn id(byte: u8) -> ConnId {
    ConnId::from_slice(&[byte]).unwrap()
}

const I: &str = "fb13adeb6518cee5f88417660841142e830a81fe334380a953406a1305e8706b";
const CRED_I: &str = "a2027734322d35302d33312d46462d45462d33372d33322d333908a101a5010202412b2001215820ac75e9ece3e50bfc8ed60399889522405c\
                      47bf16df96660a41298cb4307f7eb62258206e5de611388a4b8a8211334ac7d37ecb52a387d257e6db3c2a93df21ff3affc8";
const R: &str = "72cc4761dbd4c78f758931aa589d348d1ef874a7e303ede2f140dcf3e6aa4aac";
const CRED_R: &str = "a2026b6578616d706c652e65647508a101a501020241322001215820bbc34960526ea4d32e940cad2a234148ddc21791a12afbcbac9362204\
                      6dd44f02258204519e257236b2a0ce2023f0931f1f386ca7afda64fcde0108c224c51eabf6072";

fn initiator() -> EdhocCredentials {
    EdhocCredentials::new(&bytes(I), &bytes(CRED_I), [&*bytes(CRED_R)]).unwrap()
}

fn responder() -> EdhocCredentials {
    EdhocCredentials::new(&bytes(R), &bytes(CRED_R), [&*bytes(CRED_I)]).unwrap()
}

/// The second message_1 of the trace, after suite 6 was refused.
fn begun() -> (Vec<u8>, Asked) {
    let x = key("368ec1f69aeb659ba37d5a8d45b21bdc0299dceaa8ef235f3ca42ce3530f9525");
    message_1(x, id(0x37), &[6, SUITE]).unwrap()
}

fn y() -> PrivateKey {
    key("e2f4126777205e853b437d6eaca1e1f753cdcc3e2c69fa884b0a1a640977e418")
}

const MESSAGE_1: &str = "0382060258208af6f430ebe18d34184017a9a11bf511c8dff8f834730b96c1b7c8dbca2fc3b637";
const MESSAGE_2: &str = "582b419701d7f00a26c2dc587a36dd752549f33763c893422c8ea0f955a13a4ff5d59862a1eef9e0e7e1886fcd";
const MESSAGE_3: &str = "52e562097bc417dd5919485ac7891ffd90a9fc";
const MESSAGE_4: &str = "4828c966b7ca304f83";

#[test]
fn rfc_9529_section_3_method_3_with_suite_2() {
    let (first, _) =
        message_1(key("5c4172aca8b82b5a62e66f722216f5a10f72aa69f42c1d1cd3ccd7bfd29ca4e9"), id(0x0e), &[6]).unwrap();
    assert_eq!(first, bytes("03065820741a13d7ba048fbb615e94386aa3b61bea5b3d8f65f32620b749bee8d278efa90e"));
    let refused = message_2(&y(), &first, &responder(), |_| Ok(id(0x27))).err();
    assert_eq!(refused.map(Fault::message), Some(bytes("0202")));

    let (first, asked) = begun();
    assert_eq!(first, bytes(MESSAGE_1));
    let (second, mut answered) = message_2(&y(), &first, &responder(), |_| Ok(id(0x27))).unwrap();
    assert_eq!(second, bytes(MESSAGE_2));
    let (third, mut initiator) = message_3(&asked, &second, &initiator()).unwrap();
    assert_eq!(third, bytes(MESSAGE_3));
    let (fourth, responder, place) = message_4(&mut answered, &third, &responder()).unwrap();
    assert_eq!((&*fourth, place), (&*bytes(MESSAGE_4), 0));
    initiator.confirm(&fourth).unwrap();
    for (agreed, ours, theirs) in [(initiator, 0x37, 0x27), (responder, 0x27, 0x37)] {
        let (secret, salt) = agreed.exported();
        assert_eq!(*secret, *bytes("f9868f6a3aca78a05d1485b35030b162"));
        assert_eq!(*salt, *bytes("ada24c7dbfc85eeb"));
        assert_eq!((agreed.ours.as_slice(), agreed.theirs.as_slice()), (&[ours][..], &[theirs][..]));
    }
}

/// What that section gives for suite 2, done to the messages of §3. Errors in what is encrypted are those of hostile.rs.
#[test]
fn rfc_9529_section_4_invalid_messages() {
    let first = bytes(MESSAGE_1);
    let (key, named) = (&first[6..38], &first[38..]);
    assert!(message_2(&y(), &first, &responder(), |_| Ok(id(0x27))).is_ok());
    for (what, message) in [
        ("an array around the message", [&[0x84][..], &first].concat()),
        ("a byte string around the connection identifier", [&first[..38], &[0x41], named].concat()),
        ("an array around the one suite", [&[3, 0x81, 2, 0x58, 0x20][..], key, named].concat()),
        ("a key that is text", [&first[..4], &[0x78, 0x20], key, named].concat()),
        ("a key that is too short", [&first[..4], &[0x58, 0x1f], &key[1..], named].concat()),
        ("a key that is no number below the prime", [&first[..6], &[0xff; 32], named].concat()),
        ("a length in more bytes than it takes", [&first[..4], &[0x59, 0, 0x20], key, named].concat()),
        ("a method in more bytes than it takes", [&[0x18], &first[..]].concat()),
        ("suites whose number is in more bytes than it takes", [&[3, 0x98, 2], &first[2..]].concat()),
    ] {
        assert!(message_2(&y(), &message, &responder(), |_| Ok(id(0x27))).is_err(), "{what}");
    }
    let second = bytes(MESSAGE_2);
    let (_, asked) = begun();
    let split = [&[0x58, 0x20], &second[2..34], &[0x4b], &second[34..]].concat();
    let long = [&[0x59, 0], &second[1..]].concat();
    for message in [split, long] {
        assert!(message_3(&asked, &message, &initiator()).is_err());
    }
    // The other side's identifier with a byte string around it, and one that is ours then.
    for theirs in [0x27, 0x37] {
        let around = ConnId::from_decoder(&mut CBORDecoder::new(&[0x41, theirs])).unwrap();
        let (second, _) = message_2(&y(), &first, &responder(), |_| Ok(around)).unwrap();
        assert_eq!(message_3(&asked, &second, &initiator()).err(), Some(Fault::Malformed), "{theirs:02x}");
    }
}

#[test]
fn nothing_that_is_cut_short_or_changed_is_taken_and_nothing_panics() {
    let (ours, theirs) = (responder(), initiator());
    let second = |message: &[u8]| message_2(&y(), message, &ours, |_| Ok(id(0x27))).map(|_| ()).err();
    let first = bytes(MESSAGE_1);
    for length in 0..first.len() {
        assert!(second(&first[..length]).is_some(), "{length}");
    }
    // No suites; one that is named in two bytes; data that nobody here understands; a text; no point; one byte too many for any.
    let point = &first[4..];
    for message in [
        [&[3, 0x98, 0][..], point].concat(),
        [&[3, 0x80][..], point].concat(),
        [&[3, 0x18, 24][..], point].concat(),
        [&first[..], &[0x20]].concat(),
        [&first[..38], &[0x61, 0x61]].concat(),
        [&first[..6], &[0xff; 32], &[0x37]].concat(),
        [&first[..6], &[0; 32], &[0x5f]].concat(),
        vec![3; 193],
    ] {
        assert!(second(&message).is_some(), "{message:02x?}");
    }

    let (_, asked) = begun();
    let second = bytes(MESSAGE_2);
    for length in 0..second.len() {
        assert!(message_3(&asked, &second[..length], &theirs).is_err(), "{length}");
    }
    for place in [0, 1, 2, 33, 34, 35, 36, 40, 44] {
        let mut changed = second.clone();
        changed[place] ^= 0x41;
        assert!(message_3(&asked, &changed, &theirs).is_err(), "{place}");
    }

    let (_, mut answered) = message_2(&y(), &first, &ours, |_| Ok(id(0x27))).unwrap();
    let third = bytes(MESSAGE_3);
    for length in 0..third.len() {
        assert!(message_4(&mut answered, &third[..length], &ours).is_err(), "{length}");
    }
    for place in 0..third.len() {
        let mut changed = third.clone();
        changed[place] ^= 0x41;
        assert!(message_4(&mut answered, &changed, &ours).is_err(), "{place}");
    }
    for message in [&[0x58, 0xff][..], &[0x58, 0x07, 1, 2, 3, 4, 5, 6, 7], &[0x40], &[0x47; 8], &[0x58; 200]] {
        assert_eq!(message_4(&mut answered, message, &ours).err(), Some(Fault::Malformed));
    }
    let (_, mut agreed) = message_3(&asked, &second, &theirs).unwrap();
    let fourth = bytes(MESSAGE_4);
    for length in 0..fourth.len() {
        assert!(agreed.confirm(&fourth[..length]).is_err(), "{length}");
    }
}

#[test]
fn who_has_other_credentials_agrees_upon_nothing() {
    let (first, asked) = begun();
    let (own_key, own) = EdhocCredentials::generate(&[0x2b]).unwrap();
    let (_, other) = EdhocCredentials::generate(b"gateway").unwrap();
    // A server whose kid is not known, and one that is known by this kid with another key.
    let unknown = EdhocCredentials::new(&*own_key, &own, [&*other]).unwrap();
    assert_eq!(message_3(&asked, &bytes(MESSAGE_2), &unknown).err(), Some(Fault::Unknown));
    let (_, same_kid) = EdhocCredentials::generate(&[0x32]).unwrap();
    let wrong = EdhocCredentials::new(&*own_key, &own, [&*same_kid]).unwrap();
    assert_eq!(message_3(&asked, &bytes(MESSAGE_2), &wrong).err(), Some(Fault::NotAuthentic));
    // A client that knows the server, and says that it is another.
    let false_one = EdhocCredentials::new(&*own_key, &own, [&*bytes(CRED_R)]).unwrap();
    let (_, mut answered) = message_2(&y(), &first, &responder(), |_| Ok(id(0x27))).unwrap();
    let (third, _) = message_3(&asked, &bytes(MESSAGE_2), &false_one).unwrap();
    assert_eq!(message_4(&mut answered, &third, &responder()).err(), Some(Fault::NotAuthentic));
    // Identifiers are never equal.
    assert!(message_3(&begun_as(0x27), &bytes(MESSAGE_2), &initiator()).is_err());
}

fn begun_as(ours: u8) -> Asked {
    message_1(y(), id(ours), &[SUITE]).unwrap().1
}

fn post(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, Kind::Confirmable, Code::POST, MessageId(1), Token::EMPTY);
    writer.option(number::URI_PATH, b".well-known").unwrap().option(number::URI_PATH, b"edhoc").unwrap();
    writer.payload(payload).unwrap();
    writer.finish().unwrap();
    bytes
}

/// The code and the payload of the answer, and how many contexts were agreed upon.
fn answered(acceptor: &mut Acceptor, request: &[u8]) -> Option<(Code, Vec<u8>, usize)> {
    answered_to(acceptor, Source::validated(0), request)
}

/// The same to one there.
fn answered_to(acceptor: &mut Acceptor, from: Source, request: &[u8]) -> Option<(Code, Vec<u8>, usize)> {
    let (mut into, mut contexts) = (Vec::new(), 0);
    acceptor.answer((&Message::parse(request).unwrap(), from), |_| false, |_, _| contexts += 1, &mut into)?;
    let answer = Message::parse(&into).unwrap();
    Some((answer.code, answer.payload().to_vec(), contexts))
}

/// Somebody there has begun, and does not go on.
fn begin(acceptor: &mut Acceptor, from: Source) {
    acceptor.usage.add(from, 1);
    acceptor.begun.push_back(Begun { at: since_start(acceptor.clock.now()), from, answered: None });
}

/// Neither forged addresses nor one network keep others out.
#[test]
fn handshakes_are_shared_among_networks() {
    let mut acceptor = Acceptor::new(responder());
    let (first, _) = begun();
    let first = post(&[&[TRUE], &*first].concat());
    let mut code = |from| answered_to(&mut acceptor, from, &first).unwrap().0;
    let let_in = |code: &mut dyn FnMut(Source) -> Code, from| {
        (0..SHARES.all).take_while(|_| code(from) == Code::CHANGED).count()
    };
    assert_eq!(let_in(&mut code, Source::unvalidated(1)), SHARES.unvalidated_of_network);
    let forged = (2..300).filter(|network| code(Source::unvalidated(*network)) == Code::CHANGED).count();
    assert_eq!(forged, SHARES.unvalidated - SHARES.unvalidated_of_network);
    assert_eq!(code(Source::unvalidated(300)), Code::SERVICE_UNAVAILABLE);
    // Who shows that it is at its address has a place, next to the flood and in its network.
    assert_eq!(code(Source::validated(1)), Code::CHANGED);
    let mut acceptor = Acceptor::new(responder());
    let mut code = |from| answered_to(&mut acceptor, from, &first).unwrap().0;
    assert_eq!(let_in(&mut code, Source::validated(1)), SHARES.network);
    assert_eq!(code(Source::validated(2)), Code::CHANGED);
}

#[test]
fn a_flood_of_first_messages_is_bounded_and_a_replayed_last_one_is_nothing() {
    let mut acceptor = Acceptor::new(responder());
    let (first, asked) = begun();
    let first = post(&[&[TRUE], &*first].concat());
    for network in 1..SHARES.all {
        begin(&mut acceptor, Source::validated(network as u64));
    }
    let (code, second, _) = answered(&mut acceptor, &first).unwrap();
    assert_eq!(code, Code::CHANGED);
    for _ in 0..3 {
        // Of what is refused nothing is computed and nothing kept.
        assert_eq!(answered(&mut acceptor, &first).map(|answer| answer.0), Some(Code::SERVICE_UNAVAILABLE));
        assert_eq!(acceptor.begun.len(), SHARES.all);
    }
    let (third, agreed) = message_3(&asked, &second, &initiator()).unwrap();
    let third = post(&[agreed.theirs.as_cbor(), &*third].concat());
    assert_eq!(answered(&mut acceptor, &third).map(|answer| (answer.0, answer.2)), Some((Code::CHANGED, 1)));
    // A replay begins nothing and ends nothing.
    let (code, told, contexts) = answered(&mut acceptor, &third).unwrap();
    assert_eq!((code, contexts), (Code::BAD_REQUEST, 0));
    assert_eq!(Fault::told(&told).as_deref(), Some("no message_3 of this session is awaited"));
    for payload in [&[][..], &[TRUE], &[0x47], &[0x41, 1, 0xff], &[0xff; 300]] {
        assert_eq!(
            answered(&mut Acceptor::new(responder()), &post(payload)).map(|answer| answer.0),
            Some(Code::BAD_REQUEST)
        );
    }
}

#[test]
fn credentials_that_cannot_be_used_are_told_in_a_line() {
    let (key, own) = EdhocCredentials::generate(b"device").unwrap();
    let (_, peer) = EdhocCredentials::generate(b"server").unwrap();
    let told = |key: &[u8], own: &[u8], peers: &[&[u8]]| {
        EdhocCredentials::new(key, own, peers.iter().copied()).map(|_| ()).unwrap_err().to_string()
    };
    EdhocCredentials::new(&*key, &own, [&*peer]).unwrap();
    assert_eq!(told(&[0; 32], &own, &[]), "edhoc: private key: give the 32 bytes of a private key of P-256");
    assert_eq!(told(&*key, &peer, &[]), "edhoc: credential: its key is not that of the private key");
    assert_eq!(
        told(&*key, &own, &[&own]),
        "edhoc: credential 1 of peers: its kid is that of another; each has its own"
    );
    let mut no_point = peer.clone();
    let end = no_point.len() - 32;
    no_point[end..].fill(0xff);
    assert_eq!(
        told(&*key, &own, &[&peer, &peer]),
        "edhoc: credential 2 of peers: its kid is that of another; each has its own"
    );
    assert_eq!(told(&*key, &own, &[&no_point]), "edhoc: credential 1 of peers: its key is no point of P-256");
    for length in 0..own.len() {
        assert!(told(&*key, &own[..length], &[]).starts_with("edhoc: credential: not a CCS"), "{length}");
    }
    assert!(!format!("{:?}", EdhocCredentials::new(&*key, &own, [&*peer]).unwrap()).contains("key"));
}
