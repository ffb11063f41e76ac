//! Servers that do not know Q-Block1 and Q-Block2 get RFC 7959.

use millpond_coap::block::robust::{BurstAsk, BurstOptions, Carried};
use millpond_coap::block::{Block, BlockSize, slice};
use millpond_coap::message::{Code, Message, number};

use crate::world::{CLIENT, Reply, SERVER, World, at, body};

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"hello")];

fn block(message: &Message<'_>, number: u16) -> Option<Block> {
    message.option(number).map(|value| Block::read(value, false).unwrap())
}

/// RFC 7959 and RFC 7252 §5.4.1: 4.02 for a critical option that is not known.
fn block_wise(message: &Message<'_>) -> Reply {
    if message.options().any(|option| matches!(option.number, 19 | 31)) {
        return (Code::BAD_OPTION, Vec::new(), Vec::new());
    }
    if let Some(sent) = block(message, number::BLOCK1) {
        let code = if sent.more { Code::CONTINUE } else { Code::CHANGED };
        return (code, vec![(number::BLOCK1, sent.value().to_vec())], Vec::new());
    }
    let whole = body(300);
    let piece = slice(&whole, block(message, number::BLOCK2), BlockSize::B64).unwrap();
    let options = piece.block.map(|block| (number::BLOCK2, block.value().to_vec()));
    (Code::CONTENT, options.into_iter().collect(), piece.payload.to_vec())
}

/// Ignores what it does not know although it must not.
fn careless(message: &Message<'_>) -> Reply {
    let whole = body(300);
    let piece = slice(&whole, block(message, number::BLOCK2), BlockSize::B64).unwrap();
    let options = piece.block.map(|block| (number::BLOCK2, block.value().to_vec()));
    (Code::CONTENT, options.into_iter().collect(), piece.payload.to_vec())
}

#[test]
fn a_server_that_answers_bad_option_gets_block_wise_requests() {
    let mut world = World::new(BurstOptions::default());
    world.otherwise = Some(block_wise);
    for begins in [&["CON 0.01 QB2:0/0", "CON 0.01 B2:0/0"][..], &["CON 0.01 B2:0/0"]] {
        world.ask(&BurstAsk { size: BlockSize::B128, ..BurstAsk::get(&PATH) });
        world.run(world.now.after(millpond_control::Span::from_secs(10)));
        let (_, code, bytes, carried) = world.answer();
        assert_eq!((code, bytes, carried), (Code::CONTENT, body(300), Carried::Blocks));
        let said = world.said(CLIENT);
        assert_eq!(said[..begins.len()], *begins, "the second time it is known");
        assert_eq!(world.client.is_supported_by(SERVER), Some(false));
        world.forget();
    }
}

#[test]
fn a_server_that_answers_with_blocks_goes_on_with_blocks() {
    let mut world = World::new(BurstOptions::default());
    world.otherwise = Some(careless);
    world.ask(&BurstAsk { size: BlockSize::B128, ..BurstAsk::get(&PATH) });
    world.run(at(10_000));
    let (_, code, bytes, carried) = world.answer();
    assert_eq!((code, bytes, carried), (Code::CONTENT, body(300), Carried::Blocks));
    assert_eq!(
        world.said(CLIENT)[..2],
        ["CON 0.01 QB2:0/0", "CON 0.01 B2:1/0"],
        "the first block is not asked for twice"
    );
}

#[test]
fn a_body_for_such_a_server_leaves_block_by_block() {
    let mut world = World::new(BurstOptions::default());
    world.otherwise = Some(block_wise);
    let bytes = body(300);
    world.ask(&BurstAsk { code: Code::PUT, options: &PATH, body: &bytes, size: BlockSize::B128 });
    world.run(at(10_000));
    assert_eq!(world.answer().1, Code::CHANGED);
    let said = world.said(CLIENT);
    assert_eq!(said[..4], ["CON 0.01 QB2:0/0", "CON 0.03 B1:0/1", "CON 0.03 B1:1/1", "CON 0.03 B2:0/0 B1:2/0"]);
    // Some servers put a body together by the token.
    let tokens: Vec<_> =
        world.sent.iter().filter(|sent| sent.from == CLIENT).map(|sent| sent.message().token).collect();
    assert!(tokens[1] == tokens[2] && tokens[2] == tokens[3], "{tokens:?}");
}

/// It knew bursts once and does not any more: the non-confirmable request is answered, or drew a reset.
#[test]
fn a_server_that_forgets_bursts_is_asked_again() {
    let mut world = World::new(BurstOptions::default()).serving(body(20));
    world.ask(&BurstAsk { size: BlockSize::B64, ..BurstAsk::get(&PATH) });
    world.run(at(1_000));
    assert_eq!(world.client.is_supported_by(SERVER), Some(true));
    world.forget();
    world.otherwise = Some(block_wise);
    world.ask(&BurstAsk { size: BlockSize::B64, ..BurstAsk::get(&PATH) });
    world.run(at(20_000));
    let (_, code, bytes, carried) = world.answer();
    assert_eq!((code, bytes, carried), (Code::CONTENT, body(300), Carried::Blocks));
}
