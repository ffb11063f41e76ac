//! Bodies that many hold: what they cost is counted, not timed.

use std::sync::atomic::{AtomicUsize, Ordering};

use millpond_coap::block::BlockSize;
use millpond_coap::message::{Message, number};
use millpond_coap::transfer::SharedBody;

use crate::pair::{Pair, SERVER, body};

/// Bytes in memory, which change once they were looked at: only what hashes them again can tell.
struct Changing {
    looked_at: AtomicUsize,
    bytes: [Vec<u8>; 2],
}

impl AsRef<[u8]> for Changing {
    fn as_ref(&self) -> &[u8] {
        let times = self.looked_at.fetch_add(1, Ordering::Relaxed);
        &self.bytes[usize::from(times > 0)]
    }
}

/// A few datagrams a second, each for the beginning of a long body, stopped the server for everybody: each cost a hash and a
/// comparison of the whole of it.
#[test]
fn the_first_block_of_a_long_body_is_neither_hashed_nor_copied_anew_for_anybody() {
    const LENGTH: usize = 1 << 20;
    let mut pair = Pair::new(|_, _, config| config.limits.cached = 2 << 20);
    let bytes = [body(LENGTH), vec![0; LENGTH]];
    let shared = SharedBody::new(Changing { looked_at: AtomicUsize::new(0), bytes });
    assert_eq!(shared.tag(), SharedBody::new(body(LENGTH)).tag());
    pair.application.shared = Some(shared.clone());
    let allocated = allocation_counter::measure(|| {
        for from in 2..=201 {
            pair.inject_from(from, SERVER, b"\x40\x01\x00\x01\xb5large");
        }
    });
    assert!(allocated.bytes_total < 2 * LENGTH as u64, "{} bytes for 200 of them", allocated.bytes_total);
    assert_eq!(pair.stacks[1].cached(), 200);
    let tag = shared.tag().to_be_bytes();
    for (_, _, datagram) in &pair.datagrams[..] {
        let answer = Message::parse(datagram).unwrap();
        assert_eq!(answer.option(number::ETAG), Some(&tag[..4]), "made once, with the body");
        assert_eq!(answer.payload().len(), 1_024);
    }
}

/// Nor for all who observe what changes faster than they acknowledge it.
#[test]
fn states_that_wait_for_many_observers_are_held_once() {
    const LENGTH: usize = 100_000;
    let mut pair = Pair::new(|_, _, config| {
        config.block = BlockSize::B64;
        config.limits.bytes = 250_000;
    });
    for from in 2..=101 {
        pair.inject_from(from, SERVER, b"\x40\x01\x00\x01\x60\x55large");
    }
    assert_eq!(pair.application.observers.len(), 100);
    let before = pair.stacks[1].memory();
    for state in 0..3 {
        pair.application.shared = Some(SharedBody::new(vec![state; LENGTH]));
        pair.tell_observers();
    }
    let more = pair.stacks[1].memory() - before;
    assert!(more < 3 * LENGTH, "{more} bytes: one that waits, one that left, and places");
}
