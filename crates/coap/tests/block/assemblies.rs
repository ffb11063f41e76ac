//! Block1 from the server's side.

use millpond_coap::block::{Assemblies, AssemblyLimits, Block, BlockSize, Verdict};
use millpond_control::{Instant, Span};

use crate::body;

fn at(seconds: u32) -> Instant {
    Instant::ORIGIN.after(Span::from_secs(seconds))
}

fn block(number: u32, more: bool) -> Block {
    Block { number, more, size: BlockSize::B32 }
}

fn server() -> Assemblies<&'static str> {
    let limits = AssemblyLimits { body: 100, bodies: 2, size: BlockSize::B32, ..AssemblyLimits::default() };
    Assemblies::new(limits)
}

#[test]
fn blocks_in_order_make_a_body() {
    let (mut server, body) = (server(), body(80));
    assert_eq!(server.take(at(0), "a", block(0, true), Some(80), &body[..32]), Verdict::Continue(block(0, true)));
    assert_eq!(server.take(at(1), "a", block(1, true), None, &body[32..64]), Verdict::Continue(block(1, true)));
    let last = server.take(at(2), "a", block(2, false), None, &body[64..]);
    assert_eq!(last, Verdict::Whole(body, block(2, false)));
}

/// A client that did not get an answer asks again: the answer is the same, and nothing is appended twice.
#[test]
fn a_repeated_block_is_answered_as_before() {
    let (mut server, body) = (server(), body(80));
    for _ in 0..2 {
        server.take(at(0), "a", block(0, true), None, &body[..32]);
    }
    for _ in 0..2 {
        assert_eq!(server.take(at(1), "a", block(1, true), None, &body[32..64]), Verdict::Continue(block(1, true)));
    }
    // One of the past, but with other bytes: not the same body.
    assert_eq!(server.take(at(1), "a", block(1, true), None, &[1; 32]), Verdict::Incomplete);
    assert!(matches!(server.take(at(2), "a", block(2, false), None, &body[64..]), Verdict::Whole(..)));
    assert_eq!(server.take(at(3), "a", block(2, false), None, &body[64..]), Verdict::Repeated(block(2, false)));
    // As long, and not the one that came.
    assert_eq!(server.take(at(3), "a", block(2, false), None, &[1; 16]), Verdict::Incomplete);
}

#[test]
fn gaps_are_told() {
    let (mut server, body) = (server(), body(80));
    assert_eq!(server.take(at(0), "a", block(1, true), None, &body[32..64]), Verdict::Incomplete);
    server.take(at(0), "a", block(0, true), None, &body[..32]);
    assert_eq!(server.take(at(0), "a", block(2, false), None, &body[64..]), Verdict::Incomplete);
    assert_eq!(server.take(at(0), "b", block(1, true), None, &body[32..64]), Verdict::Incomplete, "another body");
}

#[test]
fn limits_are_told_before_anything_is_kept() {
    let mut server = server();
    assert_eq!(server.take(at(0), "a", block(0, true), Some(101), &[0; 32]), Verdict::TooLarge(100));
    assert_eq!(server.take(at(0), "a", block(Block::MOST, true), None, &[0; 32]), Verdict::TooLarge(100));
    assert_eq!(server.take(at(0), "a", block(0, true), None, &[0; 31]), Verdict::WrongLength);
    let large = Block { number: 0, more: true, size: BlockSize::B64 };
    assert_eq!(
        server.take(at(0), "a", large, None, &[0; 64]),
        Verdict::Continue(Block { size: BlockSize::B32, ..large })
    );
}

/// Bodies that stop half way are dropped after a while, and the oldest makes room for others.
#[test]
fn memory_is_bounded() {
    let mut server = server();
    for key in ["a", "b", "c"] {
        server.take(at(0), key, block(0, true), None, &[0; 32]);
    }
    assert_eq!(server.take(at(1), "a", block(1, true), None, &[0; 32]), Verdict::Incomplete);
    assert!(matches!(server.take(at(1), "c", block(1, true), None, &[0; 32]), Verdict::Continue(_)));
    assert_eq!(server.next_expiry(), Some(at(247)));
    server.expire(at(247));
    assert_eq!(server.take(at(247), "b", block(1, true), None, &[0; 32]), Verdict::Incomplete);
    server.expire(at(248));
    assert_eq!(server.next_expiry(), None);
    assert!(server.memory() < 512);
}
