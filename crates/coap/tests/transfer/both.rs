//! A body in the request and one in the response (RFC 7959 §3.3).

use millpond_coap::block::BlockSize;
use millpond_coap::message::{Code, number};
use millpond_coap::transfer::ClientRequest;

use crate::pair::{CLIENT, PATH, Pair, block_of, body};

fn post(body: &[u8]) -> ClientRequest<'_> {
    ClientRequest { upload: BlockSize::B256, ..ClientRequest::new(Code::POST, PATH).with_body(body) }
}

#[test]
fn the_request_is_whole_before_the_response_begins() {
    let mut pair = Pair::serving(0, BlockSize::B256);
    pair.application.echoes = true;
    pair.ask(&post(&body(1_000)));
    pair.settle();
    assert_eq!(pair.answers(), [(body(1_000), false)]);
    assert_eq!((pair.asked(), pair.datagrams.len()), (1, 14));
    // Both stand in the answer to the last block.
    let last = &pair.datagrams[7].2;
    assert_eq!(block_of(last, number::BLOCK1), Some((3, false, 256)));
    assert_eq!(block_of(last, number::BLOCK2), Some((0, true, 256)));
    // What follows carries no body.
    assert_eq!(block_of(&pair.datagrams[8].2, number::BLOCK1), None);
    assert_eq!(block_of(&pair.datagrams[8].2, number::BLOCK2), Some((1, false, 256)));
}

#[test]
fn the_size_of_the_response_is_asked_for_with_the_last_block() {
    let mut pair = Pair::serving(0, BlockSize::B256);
    pair.application.echoes = true;
    pair.ask(&ClientRequest { early: Some(BlockSize::B128), ..post(&body(1_000)) });
    pair.settle();
    assert_eq!(pair.answers(), [(body(1_000), false)]);
    let asked = |at: usize| block_of(&pair.datagrams[at].2, number::BLOCK2);
    assert_eq!([asked(0), asked(2), asked(4)], [None; 3]);
    assert_eq!(asked(6), Some((0, false, 128)));
}

#[test]
fn twenty_kilobytes_both_ways_with_any_message_lost() {
    for lost in (0..160).step_by(7) {
        let mut pair = Pair::serving(0, BlockSize::B1024).losing([lost, lost + 1]);
        pair.application.echoes = true;
        pair.ask(&ClientRequest { upload: BlockSize::B1024, ..post(&body(20_000)) });
        pair.settle();
        assert_eq!(pair.answers(), [(body(20_000), false)]);
        assert_eq!(pair.asked(), 1);
        assert_eq!(pair.take_told(CLIENT), []);
    }
}
