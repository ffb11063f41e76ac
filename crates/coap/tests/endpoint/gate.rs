//! A gateway that keeps copies from a server that knows nothing of it: what goes on, and what unvalidated peers can do.

use millpond_coap::{CalmGate, IdGenerator, Repeats};
use millpond_control::Instant;

use crate::pair::SECOND;

/// The network of a peer: all below a thousand are in the first one.
fn network(peer: &u32) -> u64 {
    u64::from(peer / 1000)
}

fn gate() -> CalmGate<u32> {
    CalmGate::new(network, IdGenerator::counted(), 1 << 20)
}

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

/// A confirmable GET with this message ID and token.
fn request(id: u16, token: u8) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    [0x41, 1, high, low, token, 0xb5, b'h', b'e', b'l', b'l', b'o'].to_vec()
}

/// The answer to it in its acknowledgement.
fn response(id: u16, token: u8) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    [0x61, 0x45, high, low, token, 0xff, b'x'].to_vec()
}

/// A request that is forwarded and answered at once.
fn exchange(gate: &mut CalmGate<u32>, now: u64, peer: u32, id: u16) {
    assert!(gate.request(at(now), peer, &request(id, 7)));
    gate.answer(at(now), peer, &response(id, 7));
}

/// The rejection of the ping that leaves now.
fn rejection(gate: &mut CalmGate<u32>, of: u32) -> Vec<u8> {
    let (to, [0x40, 0, high, low]) = gate.ping().expect("a ping") else { panic!("no ping") };
    assert_eq!(to, of);
    vec![0x70, 0, high, low]
}

/// A peer and two neighbours reject their pings after ten seconds, and it asks something. Now, and the ID of that.
fn in_a_queue(gate: &mut CalmGate<u32>, peer: u32) -> (u64, u16) {
    let peers = [peer + 51, peer + 52, peer];
    let rejections = peers.map(|peer| {
        exchange(gate, 0, peer, 0);
        rejection(gate, peer)
    });
    let now = 10 * SECOND;
    for (peer, rejection) in peers.into_iter().zip(rejections) {
        assert!(!gate.request(at(now), peer, &rejection), "the server never asked");
    }
    exchange(gate, now, peer, 1);
    assert_eq!(gate.ping(), None);
    (now, 1)
}

#[test]
fn a_copy_goes_no_further_while_its_answer_is_in_the_queue() {
    let mut gate = gate();
    let (now, id) = in_a_queue(&mut gate, 1);
    assert!(!gate.request(at(now + SECOND / 2), 1, &request(id, 7)));
    assert!(gate.request(at(now + 12 * SECOND), 1, &request(id, 7)), "overdue");
    let Repeats { due, withheld, .. } = gate.repeats();
    assert_eq!((due, withheld), (1, 1));
}

#[test]
fn a_copy_goes_on_once_a_later_ping_came_back() {
    let mut gate = gate();
    let (now, id) = in_a_queue(&mut gate, 1);
    assert!(!gate.request(at(now + 2 * SECOND), 1, &request(id, 7)));
    let rejection = rejection(&mut gate, 1);
    assert!(!gate.request(at(now + 3 * SECOND), 1, &rejection), "the server never asked");
    assert!(gate.request(at(now + 6 * SECOND), 1, &request(id, 7)));
    assert_eq!(gate.repeats().lost, 1);
}

#[test]
fn rejections_and_acknowledgements_that_are_the_servers_are_handed_on() {
    let mut gate = gate();
    in_a_queue(&mut gate, 1);
    for datagram in [[0x70, 0, 1, 2], [0x60, 0, 1, 2]] {
        assert!(gate.request(at(1), 1, &datagram));
        assert!(gate.request(at(1), 2, &datagram));
    }
}

#[test]
fn copies_that_are_named_in_their_tokens_are_copies() {
    let mut gate = gate();
    let (now, id) = in_a_queue(&mut gate, 1);
    assert!(!gate.request(at(now + SECOND / 2), 1, &request(id, 8)));
}

#[test]
fn what_was_not_seen_to_be_answered_is_handed_on() {
    let mut gate = gate();
    let (now, id) = in_a_queue(&mut gate, 1);
    let next = request(id + 1, 7);
    for copy in 0..10 {
        assert!(gate.request(at(now + 10 * SECOND + copy), 1, &next));
    }
    // Neither an empty acknowledgement nor the answer to another request is an answer to it.
    gate.answer(at(now + 11 * SECOND), 1, &[0x60, 0, 0, id as u8 + 1]);
    gate.answer(at(now + 11 * SECOND), 1, &response(id, 7));
    assert!(gate.request(at(now + 11 * SECOND + 1), 1, &next));
}

#[test]
fn what_it_cannot_read_is_handed_on() {
    let mut gate = gate();
    in_a_queue(&mut gate, 1);
    // A record of DTLS 1.2, nothing at all, a non-confirmable request, and one byte of each value.
    for datagram in
        [&[0x17, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 1, 0, 2, 1, 2][..], &[], &[0x50, 1, 0, 4], &[0x41, 1, 0, 4]]
    {
        assert!(gate.request(at(1), 1, datagram));
        gate.answer(at(1), 1, datagram);
    }
    for byte in 0..=u8::MAX {
        assert!(gate.request(at(1), 1, &[byte]));
        gate.answer(at(1), 1, &[byte, byte]);
    }
}

#[test]
fn datagrams_that_it_cannot_read_are_counted() {
    let mut gate = gate();
    in_a_queue(&mut gate, 1);
    assert_eq!(gate.unreadable(), 0);
    assert!(gate.request(at(1), 1, &[0x17, 0xfe, 0xfd, 0, 1]));
    assert_eq!(gate.unreadable(), 1);
}

/// The same request protected by OSCORE (RFC 8613): a POST with the option, and ciphertext for the rest.
fn protected(id: u16, sequence: u8) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    [0x41, 2, high, low, 7, 0x92, 0x01, sequence, 0xff, 0xc1, sequence].to_vec()
}

#[test]
fn copies_of_protected_messages_are_copies_and_messages_protected_anew_are_not() {
    let mut gate = gate();
    let (now, id) = in_a_queue(&mut gate, 1);
    assert!(gate.request(at(now + SECOND), 1, &protected(id + 1, 1)));
    gate.answer(at(now + SECOND), 1, &response(id + 1, 7));
    assert!(!gate.request(at(now + SECOND + 1), 1, &protected(id + 1, 1)));
    assert!(gate.request(at(now + SECOND + 3), 1, &protected(id + 1, 2)), "another sequence number");
}

#[test]
fn forged_requests_of_other_ids_make_it_hand_on_more_not_less() {
    let mut gate = gate();
    let (now, id) = in_a_queue(&mut gate, 1);
    // Somebody in the peer's name asks something new every millisecond, and is answered.
    for forged in 0..100_u16 {
        let moment = now + u64::from(forged) * 1_000;
        exchange(&mut gate, moment, 1, 1_000 + forged);
    }
    assert!(gate.request(at(now + SECOND), 1, &request(id, 7)), "it is no copy of the newest request any more");
}

#[test]
fn a_forged_request_under_the_next_id_keeps_nothing_back() {
    let mut gate = gate();
    let (now, id) = in_a_queue(&mut gate, 1);
    let [high, low] = (id + 1).to_be_bytes();
    let forged = [0x41, 1, high, low, 9, 0xb4, b'e', b'v', b'i', b'l'];
    assert!(gate.request(at(now + SECOND), 1, &forged));
    gate.answer(at(now + SECOND), 1, &response(id + 1, 9));
    assert!(gate.request(at(now + SECOND + 1), 1, &request(id + 1, 7)), "another request: it is handed on");
}

#[test]
fn a_flood_of_networks_makes_it_forget_and_hand_on_and_takes_no_more_memory() {
    let mut gate = CalmGate::new(network, IdGenerator::counted(), 16_384);
    let (now, id) = in_a_queue(&mut gate, 1);
    for peer in 0..100_000_u32 {
        assert!(gate.request(at(now + 1), 1_000 + 1_000 * peer, &request(1, 1)));
    }
    assert!(gate.request(at(now + SECOND / 2), 1, &request(id, 7)));
}
