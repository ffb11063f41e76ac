//! Messages in the name of others beside observations that go on, and registrations that are none.

use millpond_coap::message::{Code, Message};

use crate::pair::{CLIENT, Pair, SECOND, SERVER, Told, body, get};

const FORGER: u8 = 9;

/// A server that is observed by the client.
fn observed() -> Pair {
    let mut pair = Pair::new(|_, _, _| {});
    pair.application.body = body(10);
    pair.ask(&get().observing());
    pair.run_for(SECOND);
    pair.take_told(CLIENT);
    pair.take_told(SERVER);
    pair
}

/// The client hears of a new state.
fn goes_on(pair: &mut Pair, state: &[u8]) {
    pair.notify(state);
    pair.run_for(SECOND);
    assert_eq!(pair.answers(), [(state.to_vec(), true)]);
}

/// All message IDs there are, while a notification is on its way: none of them is of a message to the unvalidated peer.
#[test]
fn whatever_an_unvalidated_peer_rejects_or_acknowledges_observations_of_others_go_on() {
    for kind in [0x60, 0x70] {
        let mut pair = observed();
        pair.notify(b"first");
        for id in 0..=u16::MAX {
            let [high, low] = id.to_be_bytes();
            pair.inject_from(FORGER, SERVER, &[kind, 0, high, low]);
            pair.inject_from(FORGER, CLIENT, &[kind, 0, high, low]);
        }
        pair.run_for(SECOND);
        assert_eq!(pair.answers(), [(b"first".to_vec(), true)]);
        goes_on(&mut pair, b"second");
        assert_eq!(pair.stacks[1].observers(), 1);
    }
}

/// A response piggybacked on the acknowledgement of a notification answers nothing, nor does one with a token that was guessed.
#[test]
fn answers_to_notifications_and_to_guessed_tokens_change_nothing() {
    let mut pair = observed();
    let token = Message::parse(&pair.datagrams[0].2).unwrap().token;
    pair.notify(b"first");
    let sent = pair.datagrams.iter().rev().find(|sent| sent.1 == SERVER).unwrap().2.clone();
    let forged =
        [&[0x60 | token.len() as u8, 0x45, sent[2], sent[3]], token.as_bytes(), b"\x61\x07\xffforged"].concat();
    pair.inject_from(CLIENT, SERVER, &forged);
    for guess in 0..=u16::MAX {
        let [high, low] = guess.to_be_bytes();
        pair.inject_from(FORGER, CLIENT, &[&[0x52, 0x45, high, low, high, low][..], b"\x61\x07\xffforged"].concat());
    }
    pair.inject_from(
        FORGER,
        CLIENT,
        &[&[0x50 | token.len() as u8, 0x45, 0, 1], token.as_bytes(), b"\x61\x07\xffx"].concat(),
    );
    pair.run_for(SECOND);
    assert_eq!(pair.answers(), [(b"first".to_vec(), true)]);
    goes_on(&mut pair, b"second");
}

#[test]
fn what_is_no_registration_observes_nothing_and_ends_nothing() {
    let mut pair = observed();
    let token = Message::parse(&pair.datagrams[0].2).unwrap().token;
    let own = token.as_bytes();
    let cases: [(u8, &[u8], &[u8]); 10] = [
        // Observe of another value, or of four bytes.
        (1, own, b"\x61\x02\x55large"),
        (1, own, b"\x63\xff\xff\xff\x55large"),
        (1, own, b"\x64\0\0\0\0\x55large"),
        // With methods that observe nothing.
        (2, own, b"\x60\x55large"),
        (3, own, b"\x61\x01\x55large"),
        // For a later block (of 16 bytes, which there is not).
        (1, own, b"\x60\x55large\xc1\x10"),
        // An end that was not begun, an end by another method.
        (1, b"other", b"\x61\x01\x55large"),
        (4, own, b"\x61\x01\x55large"),
        // Repeated: the second one is as if it were not there (RFC 7252 §5.4.5), and so is the end.
        (1, b"twice", b"\x61\x02\x01\x01\x54larg"),
        (1, b"nores", b"\x61\x02\x55large\xd1\xea\x02"),
    ];
    for (number, (method, token, options)) in (0x7000_u16..).zip(cases) {
        let [high, low] = number.to_be_bytes();
        let request = [&[0x40 | token.len() as u8, method, high, low], token, options].concat();
        pair.inject(SERVER, &request);
        let observes = pair.take_told(SERVER).iter().any(|told| matches!(told, Told::Asked { observe: true, .. }));
        assert!(!observes, "{method} {options:x?}");
        pair.run_for(SECOND);
        pair.take_told(CLIENT);
    }
    assert_eq!(pair.stacks[1].observers(), 1);
    goes_on(&mut pair, b"still");
}

/// Each is the first block of a new state, of which the server gives no more: what is held does not grow, and the client asks no
/// more often than it is told.
#[test]
fn states_whose_rest_is_never_told_take_no_more_than_one() {
    let mut pair = observed();
    let token = Message::parse(&pair.datagrams[0].2).unwrap().token;
    pair.lose = (0..1_000_000).collect();
    let before = pair.stacks[0].memory();
    let asked = |pair: &Pair| pair.datagrams.iter().filter(|(_, from, _)| *from == CLIENT).count();
    let begun = asked(&pair);
    for state in 1..20_000_u16 {
        let [high, low] = state.to_be_bytes();
        let head = [&[0x50 | token.len() as u8, 0x45, high, low], token.as_bytes()].concat();
        // Observe, Block2 of 16 bytes with more to come.
        pair.inject(CLIENT, &[&head, &b"\x62"[..], &[high, low], b"\xd1\x04\x08\xff................"].concat());
        pair.run_for(SECOND / 100);
    }
    assert_eq!(pair.take_told(CLIENT), []);
    let (held, asked) = (pair.stacks[0].memory() - before, asked(&pair) - begun);
    // What tells copies of 20,000 messages apart is the endpoint's, and bounded there.
    let endpoint = pair.stacks[0].endpoint().memory();
    assert!(held < endpoint + 16_384 && asked <= 2 * 20_000, "{held} bytes, {asked} messages");
    assert!(pair.stacks[0].endpoint().exchanges() <= 2 && endpoint < 4 << 20, "{endpoint}");
    let fetched = Code::GET;
    let last = pair.datagrams.iter().rev().find(|(_, from, _)| *from == CLIENT).unwrap();
    assert_eq!(Message::parse(&last.2).unwrap().code, fetched);
}
