//! Block2: negotiation, changes on the way, and servers that do not keep to it.

use millpond_coap::block::{Block, BlockSize, Download, DownloadError, Next, Part, PastEnd, slice, slice_of_blocks};
use millpond_coap::message::Code;

use crate::body;

/// Fetches a body; gives the blocks that were asked for.
fn fetch(download: &mut Download, body: &[u8], server: BlockSize) -> Vec<Option<Block>> {
    let mut asked = vec![download.first()];
    loop {
        let piece = slice(body, asked[asked.len() - 1], server).unwrap();
        match download.take(&part(piece.block, piece.payload)).unwrap() {
            Next::Request(block) => asked.push(Some(block)),
            Next::Done => return asked,
        }
    }
}

fn part(block: Option<Block>, payload: &[u8]) -> Part<'_> {
    Part { code: Code::CONTENT, format: None, block, etag: None, total: None, payload }
}

fn ask(number: u32, size: BlockSize) -> Block {
    Block { number, more: false, size }
}

/// Late negotiation: 400 exchanges for 102,400 bytes, the last with number 399.
#[test]
fn the_server_chooses_the_size() {
    let body = body(102_400);
    let mut download = Download::new(None, 200_000);
    let asked = fetch(&mut download, &body, BlockSize::B256);
    assert_eq!(asked.len(), 400);
    assert_eq!(
        (asked[0], asked[1], asked[399]),
        (None, Some(ask(1, BlockSize::B256)), Some(ask(399, BlockSize::B256)))
    );
    assert!(download.into_body() == body);
}

/// Early negotiation: the client's size is an upper bound.
#[test]
fn the_client_chooses_the_size_and_the_server_may_go_below() {
    let body = body(1_000);
    let mut download = Download::new(Some(BlockSize::B512), 2_000);
    let asked = fetch(&mut download, &body, BlockSize::B1024);
    assert_eq!(asked, [Some(ask(0, BlockSize::B512)), Some(ask(1, BlockSize::B512))]);
    let mut download = Download::new(Some(BlockSize::B512), 2_000);
    let asked = fetch(&mut download, &body, BlockSize::B256);
    assert_eq!(asked[1], Some(ask(1, BlockSize::B256)));
    assert!(download.into_body() == body);
}

#[test]
fn a_body_of_one_message_needs_no_blocks() {
    let mut download = Download::new(None, 100);
    assert_eq!(fetch(&mut download, b"short", BlockSize::B64), [None]);
    assert_eq!(download.into_body(), b"short");
    // Asked for in blocks it comes as a block.
    let mut download = Download::new(Some(BlockSize::B64), 100);
    assert_eq!(slice(b"short", download.first(), BlockSize::B64).unwrap().block, Some(ask(0, BlockSize::B64)));
    assert_eq!(fetch(&mut download, b"", BlockSize::B64).len(), 1);
}

/// After 2 blocks of 256, blocks of 64 go on with number 8.
#[test]
fn the_client_may_shrink_on_the_way() {
    let body = body(1_000);
    let mut download = Download::new(None, 2_000);
    download.take(&part(Some(Block { more: true, ..ask(0, BlockSize::B256) }), &body[..256])).unwrap();
    // The answer under way still has the larger size.
    download.shrink_to(BlockSize::B64);
    let next = download.take(&part(Some(Block { more: true, ..ask(1, BlockSize::B256) }), &body[256..512]));
    assert_eq!(next, Ok(Next::Request(ask(8, BlockSize::B64))));
    let next = download.take(&part(Some(Block { more: true, ..ask(8, BlockSize::B64) }), &body[512..576]));
    assert_eq!(next, Ok(Next::Request(ask(9, BlockSize::B64))));
}

/// Another ETag is another body: what was received is dropped.
#[test]
fn a_changed_body_is_fetched_anew() {
    let (old, new) = (body(600), vec![9; 600]);
    let mut download = Download::new(None, 2_000);
    let tagged = |number: u32, etag, body: &'static [u8]| Part {
        etag: Some(etag),
        ..part(Some(Block { number, more: number < 2, size: BlockSize::B256 }), body)
    };
    let leak = |bytes: &[u8]| -> &'static [u8] { Box::leak(bytes.to_vec().into_boxed_slice()) };
    download.take(&tagged(0, b"old", leak(&old[..256]))).unwrap();
    let next = download.take(&tagged(1, b"new", leak(&new[256..512]))).unwrap();
    assert_eq!(next, Next::Request(ask(0, BlockSize::B256)));
    for (number, range) in [(0, 0..256), (1, 256..512), (2, 512..600)] {
        download.take(&tagged(number, b"new", leak(&new[range]))).unwrap();
    }
    assert_eq!(download.into_body(), new);
}

#[test]
fn a_body_that_never_stays_the_same_is_given_up() {
    let mut download = Download::new(None, 2_000);
    let block = |number| Some(Block { number, more: true, size: BlockSize::B16 });
    let mut last = Ok(Next::Done);
    for etag in 0_u8..12 {
        let tag = [etag];
        let part = |number| Part { etag: Some(&tag), ..part(block(number), &[0; 16]) };
        last = download.take(&part(u32::from(download.received() > 0)));
        if last.is_err() {
            break;
        }
    }
    assert_eq!(last, Err(DownloadError::Unstable(4)));
}

#[test]
fn a_server_that_begins_anew_with_every_block_is_left() {
    let mut download = Download::new(None, 2_000);
    for etag in 0_u8..5 {
        let tag = [etag];
        let block = Some(Block { number: 0, more: true, size: BlockSize::B16 });
        let next = download.take(&Part { etag: Some(&tag), ..part(block, &[0; 16]) });
        assert_eq!(next, Ok(Next::Request(ask(1, BlockSize::B16))));
    }
    let block = Some(Block { number: 0, more: true, size: BlockSize::B16 });
    let next = download.take(&Part { etag: Some(b"more"), ..part(block, &[0; 16]) });
    assert_eq!(next, Err(DownloadError::Unstable(4)));
}

#[test]
fn servers_that_do_not_keep_to_it() {
    let block = |number, more, size| Some(Block { number, more, size });
    let mut download = Download::new(Some(BlockSize::B64), 100);
    assert_eq!(
        download.take(&part(block(1, true, BlockSize::B64), &[0; 64])),
        Err(DownloadError::OutOfOrder { got: 64, wanted: 0 })
    );
    assert_eq!(
        download.take(&part(block(0, true, BlockSize::B64), &[0; 63])),
        Err(DownloadError::WrongLength { length: 63 })
    );
    assert_eq!(
        download.take(&part(block(0, false, BlockSize::B64), &[0; 65])),
        Err(DownloadError::WrongLength { length: 65 })
    );
    assert_eq!(download.take(&part(block(0, true, BlockSize::B128), &[0; 128])), Err(DownloadError::LargerBlocks));
    assert_eq!(
        download.take(&Part { total: Some(101), ..part(block(0, true, BlockSize::B64), &[0; 64]) }),
        Err(DownloadError::TooLarge { limit: 100 })
    );
    download.take(&part(block(0, true, BlockSize::B64), &[0; 64])).unwrap();
    assert_eq!(
        download.take(&part(block(1, true, BlockSize::B64), &[0; 64])),
        Err(DownloadError::TooLarge { limit: 100 })
    );
}

/// A server that stops block-wise sends the whole body: what was received before is not part of it.
#[test]
fn a_whole_body_in_the_middle_replaces_the_pieces() {
    let mut download = Download::new(None, 100);
    download.take(&part(Some(Block { more: true, ..ask(0, BlockSize::B16) }), &[0; 16])).unwrap();
    assert_eq!(download.take(&part(None, b"whole")), Ok(Next::Done));
    assert_eq!(download.into_body(), b"whole");
}

#[test]
fn any_block_may_be_asked_for_and_none_behind_the_end() {
    let body = body(100);
    let piece = slice(&body, Some(ask(2, BlockSize::B32)), BlockSize::B1024).unwrap();
    assert_eq!((piece.payload, piece.block.unwrap().more, piece.total), (&body[64..96], true, 100));
    assert_eq!(slice(&body, Some(ask(3, BlockSize::B32)), BlockSize::B1024).unwrap().payload, &body[96..]);
    for number in [4, 5, Block::MOST] {
        let offset = u64::from(number) * 32;
        assert_eq!(
            slice(&body, Some(ask(number, BlockSize::B32)), BlockSize::B1024),
            Err(PastEnd { offset, total: 100 })
        );
    }
    // A body that ends with a full block has no empty one behind it.
    assert!(slice(&body[..96], Some(ask(3, BlockSize::B32)), BlockSize::B1024).is_err());
}

/// BERT: 3 blocks in a message; the next number counts blocks of 1024.
#[test]
fn several_blocks_in_a_message() {
    let body = body(7_000);
    let mut download = Download::new(Some(BlockSize::BERT), 10_000);
    let (mut asked, mut numbers) = (download.first(), Vec::new());
    loop {
        numbers.push(asked.unwrap().number);
        let piece = slice_of_blocks(&body, asked, BlockSize::BERT, 3).unwrap();
        match download.take(&part(piece.block, piece.payload)).unwrap() {
            Next::Request(block) => asked = Some(block),
            Next::Done => break,
        }
    }
    assert_eq!(numbers, [0, 3, 6]);
    assert!(download.into_body() == body);
}

/// How many blocks of this size are taken of a body that does not end, and why no more.
fn endless(download: &mut Download, size: BlockSize) -> (u32, DownloadError) {
    let payload = vec![0; size.bytes() as usize];
    let mut number = 0;
    loop {
        let block = Block { number, more: true, size };
        if let Err(why) = download.take(&part(Some(block), &payload)) {
            return (number, why);
        }
        number += 1;
    }
}

/// A server could have it asked a million times for 16 MiB, which blocks of 1024 bytes bring in 16,384 answers.
#[test]
fn a_long_body_in_small_blocks_is_not_followed_to_its_end_unless_they_were_wished_for() {
    const LONGEST: usize = 16 << 20;
    for wished in [None, Some(BlockSize::B32), Some(BlockSize::B1024)] {
        let small = DownloadError::SmallBlocks { size: 16, most: 65_536 };
        assert_eq!(endless(&mut Download::new(wished, LONGEST), BlockSize::B16), (65_536, small), "{wished:?}");
    }
    let whole = DownloadError::TooLarge { limit: LONGEST - 1 };
    let wished = &mut Download::new(Some(BlockSize::B16), LONGEST - 1);
    assert_eq!(endless(wished, BlockSize::B16), ((1 << 20) - 1, whole));
    assert_eq!(endless(&mut Download::new(None, LONGEST - 1), BlockSize::B256), (65_535, whole));
    // Longer bodies may have more blocks.
    let (blocks, why) = endless(&mut Download::new(None, 100 << 20), BlockSize::B1024);
    assert_eq!((blocks, why), (102_400, DownloadError::TooLarge { limit: 100 << 20 }));
}
