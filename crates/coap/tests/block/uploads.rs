//! Block1 from the client's side.

use millpond_coap::block::{Answer, Block, BlockSize, Upload, UploadError, UploadNext};
use millpond_coap::message::Code;

use crate::body;

fn answer(code: Code, block: Option<Block>) -> Answer {
    Answer { code, block, most: None }
}

#[test]
fn a_short_body_goes_in_one_request() {
    let mut upload = Upload::new(5, BlockSize::B64);
    let piece = upload.piece(b"short").unwrap();
    assert_eq!((piece.block, piece.payload), (None, &b"short"[..]));
    assert_eq!(upload.take(&answer(Code::CHANGED, None)), Ok(UploadNext::Done));
}

/// The server wants 64 after the first 256: the next number is 4.
#[test]
fn the_server_may_shrink_on_the_way() {
    let body = body(600);
    let mut upload = Upload::new(600, BlockSize::B256);
    let piece = upload.piece(&body).unwrap();
    let first = piece.block.unwrap();
    assert_eq!((first.number, first.more, piece.payload.len()), (0, true, 256));
    let shrunk = Block { size: BlockSize::B64, ..first };
    assert_eq!(upload.take(&answer(Code::CONTINUE, Some(shrunk))), Ok(UploadNext::Send));
    let piece = upload.piece(&body).unwrap();
    assert_eq!(piece.block, Some(Block { number: 4, more: true, size: BlockSize::B64 }));
    assert_eq!(piece.payload, &body[256..320]);
    assert_eq!(piece.total, 600);
}

/// 4.13 with a smaller block: from the beginning, in blocks of that size. With a smaller limit: never.
#[test]
fn too_large_a_block_and_too_large_a_body() {
    let body = body(600);
    let mut upload = Upload::new(600, BlockSize::B1024);
    assert_eq!(upload.piece(&body).unwrap().block, None);
    let smaller = Block { number: 0, more: false, size: BlockSize::B128 };
    assert_eq!(upload.take(&answer(Code::REQUEST_ENTITY_TOO_LARGE, Some(smaller))), Ok(UploadNext::Send));
    let piece = upload.piece(&body).unwrap();
    assert_eq!(piece.block, Some(Block { number: 0, more: true, size: BlockSize::B128 }));
    let never = Answer { most: Some(500), ..answer(Code::REQUEST_ENTITY_TOO_LARGE, Some(smaller)) };
    assert_eq!(upload.take(&never), Err(UploadError::TooLarge { most: Some(500) }));
}

#[test]
fn a_server_that_lost_the_beginning_gets_it_again_but_not_for_ever() {
    let body = body(64);
    let mut upload = Upload::new(64, BlockSize::B32);
    let first = upload.piece(&body).unwrap().block;
    upload.take(&answer(Code::CONTINUE, first)).unwrap();
    assert_eq!(upload.piece(&body).unwrap().block.unwrap().number, 1);
    let lost = answer(Code::REQUEST_ENTITY_INCOMPLETE, None);
    for _ in 0..3 {
        assert_eq!(upload.take(&lost), Ok(UploadNext::Send));
        assert_eq!(upload.piece(&body).unwrap().block.unwrap().number, 0);
    }
    assert_eq!(upload.take(&lost), Err(UploadError::Lost(3)));
}

#[test]
fn answers_that_do_not_fit() {
    let body = body(64);
    let start = || {
        let mut upload = Upload::new(64, BlockSize::B32);
        upload.piece(&body).unwrap();
        upload
    };
    let other = Block { number: 1, more: true, size: BlockSize::B32 };
    assert_eq!(start().take(&answer(Code::CONTINUE, None)), Err(UploadError::WrongBlock));
    assert_eq!(start().take(&answer(Code::CONTINUE, Some(other))), Err(UploadError::WrongBlock));
    assert_eq!(start().take(&answer(Code::NOT_FOUND, None)), Err(UploadError::Refused(Code::NOT_FOUND)));
    // Of the last block every answer is the request's, but 2.31 is none.
    let mut upload = start();
    upload.take(&answer(Code::CONTINUE, Some(Block { number: 0, ..other }))).unwrap();
    upload.piece(&body).unwrap();
    assert_eq!(upload.clone().take(&answer(Code::NOT_FOUND, None)), Ok(UploadNext::Done));
    assert_eq!(upload.take(&answer(Code::CONTINUE, Some(other))), Err(UploadError::WrongBlock));
}

/// A server may act on each block by itself: then every answer is a success of its own.
#[test]
fn each_block_may_be_acted_on_at_once() {
    let body = body(64);
    let mut upload = Upload::new(64, BlockSize::B32);
    let first = upload.piece(&body).unwrap().block.unwrap();
    let acted = Block { more: false, ..first };
    assert_eq!(upload.take(&answer(Code::CHANGED, Some(acted))), Ok(UploadNext::Send));
    upload.piece(&body).unwrap();
    assert_eq!(upload.take(&answer(Code::CHANGED, None)), Ok(UploadNext::Done));
}
