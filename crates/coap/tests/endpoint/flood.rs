//! Unvalidated peers without number beside a few who are known: what the known ones are served with stays the same.

use millpond_coap::message::Kind;
use millpond_coap::{Endpoint, Event, Output};
use millpond_control::Instant;

use crate::pair::{content, endpoint};

/// Who is known; unvalidated peers have other numbers.
const KNOWN: u32 = 64;

/// A request of a peer, confirmable or not, with this message ID.
fn request(first: u8, id: u16) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    [&[first, 1, high, low], &b"\xb5hello"[..]].concat()
}

/// Hands a datagram over and answers what is asked. Returns how many outputs that took, and how many of them left.
fn serve(server: &mut Endpoint<u32>, now: u64, from: u32, datagram: &[u8]) -> (usize, usize) {
    let now = Instant::from_micros(now);
    let (mut outputs, mut sent, mut asked) = (0, 0, None);
    server.receive(now, from, datagram);
    loop {
        outputs += 1;
        match server.poll(now) {
            Output::Transmit(_) => sent += 1,
            Output::Event(Event::Request { id, .. }) => asked = Some(id),
            Output::Event(_) => {}
            Output::Sleep(..) | Output::Idle => match asked.take() {
                Some(id) => {
                    server.respond(now, id, &content(Kind::NonConfirmable)).unwrap();
                }
                None => return (outputs, sent),
            },
        }
    }
}

/// What the requests of all who are known take: outputs, datagrams that leave, bytes asked of the allocator.
fn known(server: &mut Endpoint<u32>, now: u64, id: u16) -> (usize, usize, u64) {
    let datagram = request(0x40, id);
    let mut sums = (0, 0);
    let info = allocation_counter::measure(|| {
        for from in 0..KNOWN {
            let (outputs, sent) = serve(server, now + u64::from(from), from, &datagram);
            sums = (sums.0 + outputs, sums.1 + sent);
        }
    });
    (sums.0, sums.1, info.bytes_total)
}

#[test]
fn who_is_known_is_served_by_the_same_work_beside_any_number_of_unvalidated_peers() {
    const FORGED: u32 = 400_000;
    let mut server = endpoint(0, |config| {
        config.limits.duplicate_bytes = 256 << 10;
        config.limits.bytes = 4 << 20;
        config.limits.peers = 1_000;
    });
    let kinds = [request(0x40, 7), request(0x50, 8), b"\x40\x01\x00\x09\xff".to_vec(), b"rubbish".to_vec()];
    let mut flood = (0..FORGED).map(|forged| (forged + KNOWN, &kinds[forged as usize % kinds.len()]));
    // Until every place that unvalidated peers can take is taken.
    for (count, (from, datagram)) in flood.by_ref().take(20_000).enumerate() {
        serve(&mut server, count as u64, from, datagram);
    }
    let before = known(&mut server, 20_000, 1);
    assert_eq!(before.1, KNOWN as usize);
    let memory = server.memory();
    for (count, (from, datagram)) in flood.enumerate() {
        serve(&mut server, 30_000 + count as u64, from, datagram);
        if count % 1_000 == 0 {
            assert!(server.memory() <= memory + 1_024, "{} bytes held, {memory} before", server.memory());
        }
    }
    assert_eq!(known(&mut server, 1_000_000, 2), before);
    assert_eq!((before.2, server.requests()), (0, 0));
    assert_eq!(server.peers(), 500, "half of the places");
}
