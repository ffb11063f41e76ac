//! Bodies of which the application takes, or sends, a message at a time.

use millpond_coap::{
    block::{Block, BlockSize},
    message::{Code, number},
    stream::Options,
    transfer::{ClientRequest, Piece},
};

use crate::{
    owned::Event,
    stacks::{Stacks, body, taking},
};

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"hello")];
const FIRST: Block = Block { number: 0, more: false, size: BlockSize::BERT };

fn asking(block2: Block) -> ClientRequest<'static> {
    let piece = Piece { block1: None, block2: Some(block2), tag: None, total: None };
    ClientRequest { piece: Some(piece), ..ClientRequest::new(Code::GET, &PATH) }
}

/// What is asked for follows from what both take, which is awaited.
#[test]
fn several_blocks_are_asked_for_in_a_message_where_both_sides_allow_it() {
    let no_blocks = Options { block_wise: false, ..taking(100_000) };
    for (server, asked, came, length) in [
        (Options::default(), "0.01 B2:0/0/7", "2.05 B2:0/1/7", 9 << 10),
        (taking(1_152), "0.01 B2:0/0/6", "2.05 B2:0/1/6", 1 << 10),
        (no_blocks, "0.01", "2.05 B2:0/1/6", 1 << 10),
    ] {
        let mut stacks = Stacks::new(taking(10_000), server).serving(body(100_000));
        assert_eq!(stacks.client.blocks(0), None);
        stacks.ask(&asking(FIRST));
        let settings = stacks.drain_client();
        assert_eq!(stacks.up.len(), 1, "nothing but the settings");
        stacks.drain_client_into(settings);
        stacks.run();
        assert_eq!((&*stacks.up[1].summary(), &*stacks.down[1].summary()), (asked, came));
        assert_eq!(stacks.down[1].payload, length);
        assert!(
            stacks.told.iter().any(|event| matches!(event, Event::Answer { goes_on: false, .. })),
            "it is told as it came"
        );
    }
}

#[test]
fn a_single_block_does_not_wait_and_another_message_goes_on_behind_several() {
    let mut stacks = Stacks::new(taking(10_000), Options::default()).serving(body(100_000));
    stacks.ask(&asking(Block { size: BlockSize::B64, ..FIRST }));
    stacks.ask(&asking(Block { number: 9, ..FIRST }));
    stacks.run();
    assert_eq!(
        stacks.up.iter().map(|sent| sent.summary()).collect::<Vec<_>>()[1..],
        ["0.01 B2:0/0/2", "0.01 B2:9/0/7"]
    );
    let mut answers = stacks.answers();
    answers.sort_by_key(|(_, part, _)| part.len());
    assert!(answers[0].1 == body(100_000)[..64] && answers[1].1 == body(100_000)[9 << 10..18 << 10]);
}

#[test]
fn how_much_fits_a_message_is_told_once_it_is_known() {
    for (server, expected) in [
        (Options::default(), (BlockSize::BERT, 63)),
        (taking(1_152), (BlockSize::B1024, 1)),
        (taking(200), (BlockSize::B128, 1)),
    ] {
        let mut stacks = Stacks::new(Options::default(), server);
        stacks.run();
        assert_eq!(stacks.client.blocks(10), Some(expected));
    }
}

/// Two bodies to one resource at a time are distinguished, and so is what is kept of the answers to them.
#[test]
fn the_rest_of_an_answer_is_asked_for_as_the_body_that_it_answers_was_sent() {
    let mut stacks = Stacks::new(taking(1_152), taking(1_152));
    let bodies = [body(5_000), body(9_000)];
    for body in &bodies {
        stacks.ask(&ClientRequest::new(Code::PUT, &PATH).with_body(body));
    }
    stacks.run();
    let mut answers = stacks.answers();
    answers.sort_by_key(|(_, answer, _)| answer.len());
    let lengths: Vec<_> = answers.iter().map(|(_, answer, _)| answer.len()).collect();
    assert!(answers.iter().map(|(_, answer, _)| answer).eq(&bodies), "{lengths:?}");
}
