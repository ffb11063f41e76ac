//! Servers that do not know Q-Block1 and Q-Block2 are distinguished, so that they can be asked as RFC 7959 has it.

use alloc::vec::Vec;

use crate::block::robust::{BurstOptions, End};
use crate::block::{Block, BlockSize, slice};
use crate::message::{Code, Message, number};

use super::world::{BurstAsk, CLIENT, Reply, SERVER, World, at, body};

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"hello")];

/// RFC 7252 §5.4.1: 4.02 for a critical option that is not known.
fn block_wise(message: &Message<'_>) -> Reply {
    assert!(message.options().any(|option| matches!(option.number, 19 | 31)));
    (Code::BAD_OPTION, Vec::new(), Vec::new())
}

/// Ignores what it does not know although it must not.
fn careless(_: &Message<'_>) -> Reply {
    let whole = body(300);
    let piece = slice(&whole, None, BlockSize::B64).unwrap();
    let options = piece.block.map(|block: Block| (number::BLOCK2, block.value().to_vec()));
    (Code::CONTENT, options.into_iter().collect(), piece.payload.to_vec())
}

fn is_unsupported(world: &World) -> bool {
    matches!(world.told[..], [(_, End::Unsupported)])
}

#[test]
fn a_server_that_answers_bad_option_is_asked_once() {
    let bytes = body(300);
    for (begins, code, body) in
        [(&["CON 0.01 QB2:0/0"][..], Code::GET, &[][..]), (&["CON 0.01 QB2:0/0"], Code::PUT, &bytes)]
    {
        let mut world = World::new(BurstOptions::RFC9177);
        world.otherwise = Some(block_wise);
        for begins in [begins, &[]] {
            world.ask(&BurstAsk { code, options: &PATH, body, size: BlockSize::B128 });
            world.run(world.now.after(millpond_control::Span::from_secs(10)));
            assert!(is_unsupported(&world), "{:?}", world.told);
            assert_eq!(world.said(CLIENT), *begins, "the second time it is known");
            assert_eq!(world.client.is_supported_by(SERVER), Some(false));
            world.forget();
        }
    }
}

#[test]
fn a_server_that_answers_with_blocks_does_not_know_bursts() {
    let mut world = World::new(BurstOptions::RFC9177);
    world.otherwise = Some(careless);
    world.ask(&BurstAsk { size: BlockSize::B128, ..BurstAsk::get(&PATH) });
    world.run(at(10_000));
    assert!(is_unsupported(&world), "{:?}", world.told);
}

/// It knew bursts once and does not any more: the non-confirmable request is answered, or drew a reset.
#[test]
fn a_server_that_forgets_bursts_is_asked_again() {
    let mut world = World::new(BurstOptions::RFC9177).serving(body(20));
    world.ask(&BurstAsk { size: BlockSize::B64, ..BurstAsk::get(&PATH) });
    world.run(at(1_000));
    assert_eq!(world.client.is_supported_by(SERVER), Some(true));
    world.forget();
    world.otherwise = Some(block_wise);
    world.ask(&BurstAsk { size: BlockSize::B64, ..BurstAsk::get(&PATH) });
    world.run(at(20_000));
    assert!(is_unsupported(&world), "{:?}", world.told);
}
