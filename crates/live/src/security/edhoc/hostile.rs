//! What must hold of any message of EDHOC, and of any authorisation data in one that is authentic: the fuzzer's target, and its replay.

#![allow(unreachable_pub, reason = "the fuzzer reaches it")]

use super::*;

/// Bytes of data, of which the sending side below has room for no more.
const MOST: usize = 60;

/// Label and value of a first item, and what follows.
fn item(label: u16, is_critical: bool, rest: &[u8]) -> EADItem {
    let value = (!rest.is_empty()).then(|| EdhocMessageBuffer::new_from_slice(rest).expect("it is short"));
    EADItem { label, is_critical, value }
}

fn key(byte: u8) -> PrivateKey {
    PrivateKey::new(Zeroizing::new([byte; 32])).expect("a private key")
}

/// The credentials of an initiator and of a responder that take each other.
fn sides() -> [EdhocCredentials; 2] {
    let [one, other] = [1, 2].map(|byte| (key(byte), EdhocCredentials::credential(&key(byte), &[byte])));
    [(&one, &other), (&other, &one)].map(|((key, own), (_, peer))| {
        EdhocCredentials::new(key.bytes(), own, [&peer[..]]).expect("credentials that can be used")
    })
}

/// A handshake in which the message of this number brings this, as what becomes of it.
fn with(number: u8, item: &EADItem) -> Result<(), Fault> {
    let at = |this| (this == number).then(|| item.clone());
    let [initiator, responder] = sides();
    let (by, [i, r]) =
        (CredentialTransfer::ByReference, [0x37, 0x27].map(|id| ConnId::from_slice(&[id]).expect("an ID")));
    let (x, y) = (key(3), key(4));
    let mut crypto = algorithms();

    let suites_i = EdhocBuffer::new_from_slice(&[SUITE]).expect("a suite");
    let start = InitiatorStart { suites_i, method: METHOD, x: *x.bytes(), g_x: x.public() };
    let (state, first) = i_prepare_message_1(&start, &mut crypto, i, &at(1))?;
    let asked = Asked { state, ours: i };

    let (second, mut answered) = if number == 2 {
        let start = ResponderStart { method: METHOD, y: *y.bytes(), g_y: y.public() };
        let (processed, theirs, _) = r_process_message_1(&start, &mut crypto, &first)?;
        let (own, key) = (responder.own, responder.key.bytes());
        let (state, second) = r_prepare_message_2(&processed, &mut crypto, own, key, r, by, &at(2))?;
        (second.as_slice().to_vec(), Answered { ours: r, theirs, state })
    } else {
        message_2(&y, first.as_slice(), &responder, |_| Ok(r))?
    };

    let (third, mut agreed) = if number == 3 {
        let (state, theirs, _, _) = i_parse_message_2(&asked.state, &mut crypto, &buffer(&second)?)?;
        let verified = i_verify_message_2(&state, &mut crypto, initiator.peers[0], initiator.key.bytes())?;
        let (unconfirmed, third, _) = i_prepare_message_3(&verified, &mut crypto, initiator.own, by, &at(3))?;
        let completed = i_complete_without_message_4(&unconfirmed)?;
        (third.as_slice().to_vec(), Agreed { theirs, ours: i, completed, unconfirmed })
    } else {
        message_3(&asked, &second, &initiator)?
    };

    let fourth = if number == 4 {
        let (mut state, _, _) = r_parse_message_3(&mut answered.state, &mut crypto, &encrypted(&third)?)?;
        let (verified, _) = r_verify_message_3(&mut state, &mut crypto, responder.peers[0])?;
        r_prepare_message_4(&verified, &mut crypto, &at(4))?.1.as_slice().to_vec()
    } else {
        message_4(&mut answered, &third, &responder)?.0
    };
    agreed.confirm(&fourth)
}

/// The first byte says which message of a handshake brings the others as data; each message is these as well. Nothing panics, none is
/// taken that was not made with the keys, and an authentic one is refused for data that is critical, is none or is too long.
pub fn check(bytes: &[u8]) {
    let Some((how, bytes)) = bytes.split_first() else { return };
    let (number, is_critical, data) = (1 + (how & 3), how & 0x80 != 0, &bytes[..bytes.len().min(MOST)]);
    match with(number, &item(u16::from(how >> 2) % 24, is_critical, data)) {
        Ok(()) => assert!(!is_critical, "it is critical"),
        Err(fault) => assert!(matches!(fault, Fault::Critical | Fault::Malformed), "{fault}"),
    }
    let [initiator, responder] = sides();
    let [i, r] = [0x37, 0x27].map(|id| ConnId::from_slice(&[id]).expect("an ID"));
    let (first, asked) = message_1(key(3), i, &[SUITE]).expect("it fits");
    // Anybody can send a message_1: what is taken as one is answered.
    if let Ok((second, answered)) = message_2(&key(4), bytes, &responder, |_| Ok(r)) {
        assert!(second.len() < 100 && answered.ours == r);
    }
    let (second, mut answered) = message_2(&key(4), &first, &responder, |_| Ok(r)).expect("it is authentic");
    assert!(second == bytes || message_3(&asked, bytes, &initiator).is_err());
    let (third, mut agreed) = message_3(&asked, &second, &initiator).expect("it is authentic");
    assert!(third == bytes || message_4(&mut answered, bytes, &responder).is_err());
    let (_, mut answered) = message_2(&key(4), &first, &responder, |_| Ok(r)).expect("it is authentic");
    let (fourth, ..) = message_4(&mut answered, &third, &responder).expect("it is authentic");
    assert!(fourth == bytes || agreed.confirm(bytes).is_err());
    if let Some(told) = Fault::told(bytes) {
        assert!(!told.contains(char::is_control));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_fuzz_corpus_keeps_every_promise() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/edhoc");
        let mut seeds = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            check(&std::fs::read(entry.unwrap().path()).unwrap());
            seeds += 1;
        }
        assert!(seeds >= 8, "only {seeds} seeds are there");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn whatever_comes_nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            check(&bytes);
        }

        /// Few other bytes are items.
        #[test]
        fn whatever_items_come_nothing_panics(
            how in any::<u8>(),
            items in prop::collection::vec((0..48_u8, prop::collection::vec(any::<u8>(), 0..12)), 0..6)
        ) {
            let item = |(label, value): &(u8, Vec<u8>)| [&[0x40 | value.len() as u8][..], value, &[*label]].concat();
            check(&[&[how][..], &items.iter().map(item).collect::<Vec<_>>().concat()].concat());
        }
    }

    #[test]
    fn in_each_message_unknown_data_is_ignored_unless_it_is_critical() {
        // A value, padding, and a label of two bytes with a value.
        let many = [0x42, 1, 2, 0x00, 0x41, 0, 0x18, 0x20, 0x43, 1, 2, 3];
        for number in 1..=4 {
            assert_eq!(with(number, &item(5, false, &[])), Ok(()), "message_{number}");
            assert_eq!(with(number, &item(5, false, &many)), Ok(()), "message_{number}");
            assert_eq!(with(number, &item(5, true, &[0x41, 1])), Err(Fault::Critical), "message_{number}");
            // Behind one that is not.
            assert_eq!(with(number, &item(5, false, &[0x41, 1, 0x25])), Err(Fault::Critical), "message_{number}");
        }
    }

    /// Else lakers would write past what it has room for.
    #[test]
    fn data_is_as_long_as_there_is_room_for() {
        let long = |length: u8| item(5, false, &[&[0x58, length][..], &vec![0; length.into()]].concat());
        for number in [2, 3] {
            assert_eq!(with(number, &long(37)), Ok(()), "message_{number}");
            assert_eq!(with(number, &long(38)), Err(Fault::Malformed), "message_{number}");
        }
        assert_eq!(with(1, &long(100)), Ok(()));
    }

    #[test]
    fn data_that_is_none_is_refused() {
        let of = |rest: &[u8]| ignore(Some(&item(5, false, rest)), usize::MAX);
        for rest in [&[0x41][..], &[0x41, 1, 0x41, 1], &[0x61, b'a'], &[0xff], &[0x5f], &[0x18], &[0x5b, 0xff], &[0xf5]]
        {
            assert_eq!(of(rest), Err(Fault::Malformed), "{rest:02x?}");
        }
        assert_eq!(of(&[0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0]), Err(Fault::Malformed));
        for critical in [&[0x20][..], &[0x38, 0x18], &[0x39, 1, 0], &[0x40, 0x20], &[0x17, 0x20]] {
            assert_eq!(of(critical), Err(Fault::Critical), "{critical:02x?}");
        }
        for taken in [&[][..], &[0x40], &[0x40, 0x17, 0x40], &[1, 2, 3]] {
            assert_eq!(of(taken), Ok(()), "{taken:02x?}");
        }
        assert_eq!(Fault::Critical.message(), b"\x01\x78\x2bcritical authorisation data is unknown here");
    }
}
