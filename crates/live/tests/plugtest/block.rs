//! TD_COAP_BLOCK: bodies in several messages (RFC 7959).

use millpond_coap::block::{Block, BlockSize};
use millpond_live::{Code, number};

use crate::{
    Bed,
    relay::{Passed, Way},
    resources::{TEXT, large},
};

fn block(passed: &Passed, number: u16) -> Option<Block> {
    passed.message().option(number).map(|value| Block::read(value, false).unwrap())
}

/// Every response holds the block that was asked for, full but for the last, and the numbers go up by one.
fn check_download(bed: &Bed, size: BlockSize, first_asks: bool) {
    let (asked, told) = (bed.relay.of(Way::Up), bed.relay.of(Way::Down));
    let blocks = large().len().div_ceil(size.bytes() as usize);
    assert_eq!((asked.len(), told.len()), (blocks, blocks));
    for (index, (asked, told)) in asked.iter().zip(&told).enumerate() {
        let wanted = block(asked, number::BLOCK2);
        match (index, first_asks) {
            (0, false) => assert_eq!(wanted, None),
            _ => assert_eq!(wanted, Some(Block { number: index as u32, more: false, size })),
        }
        let more = index + 1 < blocks;
        assert_eq!(block(told, number::BLOCK2), Some(Block { number: index as u32, more, size }));
        assert!(told.message().payload().len() == size.bytes() as usize || !more);
    }
}

#[tokio::test]
async fn td_coap_block_01_get_with_early_negotiation() {
    let bed = Bed::new().await;
    let response = bed.client.get(bed.uri("/large")).block_size(256).send().await.unwrap();
    assert_eq!(response.payload()[..], large()[..]);
    check_download(&bed, BlockSize::B256, true);
}

#[tokio::test]
async fn td_coap_block_02_get_with_late_negotiation() {
    let bed = Bed::new().await;
    let response = bed.client.get(bed.uri("/large")).send().await.unwrap();
    assert_eq!(response.payload()[..], large()[..]);
    check_download(&bed, BlockSize::B1024, false);
}

/// Blocks of a request go up by one, each answered with 2.31 but the last, which is answered with `last`.
fn check_upload(bed: &Bed, method: Code, last: Code) {
    let sent: Vec<_> = bed.relay.of(Way::Up).into_iter().filter(|sent| block(sent, number::BLOCK1).is_some()).collect();
    let told: Vec<_> = bed.relay.of(Way::Down).into_iter().take(sent.len()).collect();
    assert_eq!(sent.len(), large().len().div_ceil(1_024));
    for (index, (sent, told)) in sent.iter().zip(&told).enumerate() {
        let (sent_block, told_block) = (block(sent, number::BLOCK1).unwrap(), block(told, number::BLOCK1).unwrap());
        assert_eq!(sent.code(), method);
        assert_eq!((sent_block.number, told_block.number), (index as u32, index as u32));
        assert_eq!(told.code(), if sent_block.more { Code::CONTINUE } else { last });
        assert_eq!(told_block.more, sent_block.more);
    }
}

#[tokio::test]
async fn td_coap_block_03_put_of_a_large_body() {
    let bed = Bed::new().await;
    let put = bed.client.put(bed.uri("/large-update")).content_format(TEXT).payload(large());
    assert_eq!(put.send().await.unwrap().code(), Code::CHANGED);
    check_upload(&bed, Code::PUT, Code::CHANGED);
    let kept = bed.client.get(bed.uri("/large-update")).send().await.unwrap();
    assert_eq!(kept.payload()[..], large()[..]);
}

#[tokio::test]
async fn td_coap_block_04_post_that_creates_a_large_resource() {
    let bed = Bed::new().await;
    let post = bed.client.post(bed.uri("/large-create")).content_format(TEXT).payload(large());
    let response = post.send().await.unwrap();
    check_upload(&bed, Code::POST, Code::CREATED);
    let location: Vec<_> = response.options().all(number::LOCATION_PATH).map(|value| value.to_vec()).collect();
    assert_eq!(location, [&b"large-create"[..], b"1"].map(<[u8]>::to_vec));
}

#[tokio::test]
async fn td_coap_block_05_post_with_blocks_both_ways() {
    let bed = Bed::new().await;
    let post = bed.client.post(bed.uri("/large-post")).content_format(TEXT).payload(large());
    let response = post.send().await.unwrap();
    assert_eq!(response.payload()[..], large().to_ascii_uppercase()[..]);
    check_upload(&bed, Code::POST, Code::CHANGED);
    // What follows asks for the rest of the response, without Block1 and without payload.
    let rest: Vec<_> = bed.relay.of(Way::Up).into_iter().filter(|sent| block(sent, number::BLOCK1).is_none()).collect();
    assert!(!rest.is_empty());
    for (index, sent) in rest.iter().enumerate() {
        assert_eq!((sent.code(), sent.message().payload().len()), (Code::POST, 0));
        assert_eq!(block(sent, number::BLOCK2).unwrap().number, index as u32 + 1);
    }
}

#[tokio::test]
async fn td_coap_block_06_get_with_blocks_of_16_bytes() {
    let bed = Bed::new().await;
    let response = bed.client.get(bed.uri("/large")).block_size(16).send().await.unwrap();
    assert_eq!(response.payload()[..], large()[..]);
    check_download(&bed, BlockSize::B16, true);
}
