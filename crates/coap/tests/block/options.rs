//! The option's value (RFC 7959 §2.2), and the lengths of whole messages.

use millpond_coap::block::{BadBlock, Block, BlockSize};
use millpond_coap::message::{Code, Kind, MessageId, Token, Writer, number};

fn block(number: u32, more: bool, size: BlockSize) -> Block {
    Block { number, more, size }
}

#[test]
fn values_byte_by_byte() {
    for (block, bytes) in [
        (block(0, true, BlockSize::B256), &[0x0c][..]),
        (block(1, false, BlockSize::B256), &[0x14]),
        (block(15, true, BlockSize::B256), &[0xfc]),
        (block(16, false, BlockSize::B256), &[0x01, 0x04]),
        (block(398, true, BlockSize::B256), &[0x18, 0xec]),
        (block(399, false, BlockSize::B256), &[0x18, 0xf4]),
        (block(0, false, BlockSize::B1024), &[0x06]),
        (block(0, false, BlockSize::B16), &[]),
        (block(Block::MOST, true, BlockSize::BERT), &[0xff, 0xff, 0xff]),
    ] {
        assert_eq!(block.value().as_bytes(), bytes, "{block:?}");
        assert_eq!(Block::read(bytes, true), Ok(block));
    }
}

#[test]
fn what_is_no_block() {
    assert_eq!(Block::read(&[0, 0, 0, 1], true), Err(BadBlock::TooLong));
    assert_eq!(Block::read(&[0x07], false), Err(BadBlock::ReservedSize));
    assert_eq!(Block::read(&[0x07], true).unwrap().size, BlockSize::BERT);
}

#[test]
fn sizes() {
    let all = [16, 32, 64, 128, 256, 512, 1_024, 1_024];
    for (exponent, bytes) in all.into_iter().enumerate() {
        assert_eq!(BlockSize::from_exponent(exponent as u8).unwrap().bytes(), bytes);
    }
    assert_eq!(BlockSize::from_exponent(8), None);
    assert_eq!(BlockSize::at_most(1_152), BlockSize::B1024);
    assert_eq!(BlockSize::at_most(255), BlockSize::B128);
    assert_eq!(BlockSize::at_most(3), BlockSize::B16);
    assert_eq!(block(3, false, BlockSize::B256).offset(), 768);
    assert_eq!(block(3, false, BlockSize::BERT).offset(), 3_072);
}

/// Bytes of CoAP of the messages of a download of 102,400 bytes in blocks of 256: 28 less than with IPv4 and UDP.
#[test]
fn lengths_of_the_messages_of_a_download() {
    let length = |code, options: &[(u16, &[u8])], payload: usize| {
        let mut bytes = Vec::new();
        let mut writer = Writer::start(&mut bytes, Kind::Confirmable, code, MessageId(1), Token::EMPTY);
        for (number, value) in options {
            writer.option(*number, value).unwrap();
        }
        writer.payload(&vec![0; payload]).unwrap();
        writer.finish().unwrap() + 28
    };
    assert_eq!(length(Code::GET, &[(number::URI_PATH, b"hello")], 0), 38);
    for (number, request, response) in [(1, 40, 292), (15, 40, 292), (16, 41, 293), (398, 41, 293)] {
        let asked = block(number, false, BlockSize::B256).value();
        let sent = block(number, true, BlockSize::B256).value();
        assert_eq!(length(Code::GET, &[(number::URI_PATH, b"hello"), (number::BLOCK2, &asked)], 0), request);
        assert_eq!(length(Code::CONTENT, &[(number::CONTENT_FORMAT, &[]), (number::BLOCK2, &sent)], 256), response);
    }
}
