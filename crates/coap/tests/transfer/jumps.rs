//! Clocks that jump, for whole bodies and observations.

use millpond_coap::block::BlockSize;

use crate::pair::{CLIENT, Pair, SECOND, SERVER, body, get, put};

const HOUR: u64 = 3_600 * SECOND;

/// The clock jumps for both sides. How many datagrams leave at that point.
fn jump(pair: &mut Pair, to: u64) -> usize {
    let before = pair.datagrams.len();
    pair.now = to;
    pair.drain(CLIENT);
    pair.drain(SERVER);
    pair.datagrams.len() - before
}

#[test]
fn after_an_hour_a_body_goes_on_with_one_copy() {
    let mut pair = Pair::serving(1_000, BlockSize::B64).losing([10]);
    pair.get();
    pair.run_for(SECOND);
    assert_eq!(pair.datagrams.len(), 11);
    assert_eq!(jump(&mut pair, HOUR), 1);
    pair.settle();
    // What was kept for later blocks has expired; the server's application is asked again.
    assert_eq!(pair.answers(), [(body(1_000), false)]);
}

#[test]
fn after_an_hour_an_upload_that_went_stale_is_one_answer() {
    let mut pair = Pair::serving(0, BlockSize::B64).losing([10]);
    pair.ask(&millpond_coap::transfer::ClientRequest { upload: BlockSize::B64, ..put(&body(1_000)) });
    pair.run_for(SECOND);
    assert_eq!(jump(&mut pair, HOUR), 1);
    pair.settle();
    let answers = pair.take_told(CLIENT);
    assert_eq!(answers.len(), 1, "{answers:?}");
}

#[test]
fn after_an_hour_an_observation_is_renewed_once() {
    let mut pair = Pair::serving(10, BlockSize::B64);
    pair.ask(&get().observing());
    pair.run_for(SECOND);
    assert_eq!(jump(&mut pair, HOUR), 1);
    pair.run_for(SECOND);
    assert_eq!(pair.stacks[1].observers(), 1);
    assert_eq!(pair.answers(), [(body(10), true), (body(10), true)]);
    // And the next time as late as ever.
    assert_eq!(jump(&mut pair, HOUR + 60 * SECOND), 0);
}

#[test]
fn time_that_goes_back_stands_still() {
    let mut pair = Pair::serving(1_000, BlockSize::B64);
    pair.now = HOUR;
    pair.get();
    pair.now = 0;
    pair.drain(CLIENT);
    pair.ask(&get().observing());
    pair.now = HOUR;
    pair.run_for(40 * SECOND);
    let answers = pair.answers();
    assert_eq!(answers, [(body(1_000), false), (body(1_000), true)]);
}
