//! Servers of bursts that never have enough.

use millpond_coap::block::BlockSize;
use millpond_coap::block::robust::{BurstFailure, BurstParameters};
use millpond_coap::message::{Code, Kind, Message, MessageId, Writer, number};
use millpond_coap::transfer::{ClientRequest, RequestFailure};

use crate::pair::{CLIENT, Pair, SECOND, Told, body};

/// Answers each part of a body with this, until the ask has ended: why, after how many datagrams, and in which second.
fn endlessly(code: Code, options: &[(u16, &[u8])], payload: &[u8]) -> (RequestFailure, usize, u64) {
    let mut pair = Pair::new(|_, _, config| {
        (config.block, config.q_block) = (BlockSize::B64, Some(BurstParameters::RFC9177));
    });
    pair.lose = (0..100_000).collect();
    let whole = body(2_000);
    pair.ask(&ClientRequest {
        q_block: true,
        upload: BlockSize::B64,
        ..ClientRequest::new(Code::PUT, &[]).with_body(&whole)
    });
    let mut seen = 0;
    for second in 0..50_000 {
        while let Some((_, from, bytes)) = pair.datagrams.get(seen).cloned() {
            seen += 1;
            let request = Message::parse(&bytes).unwrap();
            if from != CLIENT || !request.code.is_request() {
                continue;
            }
            let mut response = Vec::new();
            let (kind, id) = (Kind::NonConfirmable, MessageId(seen as u16));
            let is_part = request.kind == Kind::NonConfirmable;
            let mut writer = match is_part {
                true => Writer::start(&mut response, kind, code, id, request.token),
                // The question whether bursts are known.
                false => {
                    Writer::start(&mut response, Kind::Acknowledgement, Code::NOT_FOUND, request.id, request.token)
                }
            };
            for (number, value) in options.iter().filter(|_| is_part) {
                writer.option(*number, value).unwrap();
            }
            writer.payload(if is_part { payload } else { &[] }).unwrap();
            writer.finish().unwrap();
            pair.inject(CLIENT, &response);
        }
        if let [Told::Failed { why, .. }] = pair.take_told(CLIENT)[..] {
            return (why, seen, second);
        }
        pair.run_until(second * SECOND);
    }
    panic!("it goes on for ever");
}

#[test]
fn a_server_that_never_has_enough_of_a_body_is_left() {
    // "Go on" behind the first block, and "the first block is missing" (RFC 9177 §5), each time.
    for (code, options, payload) in [
        (Code::CONTINUE, [(19, &b"\x0a"[..])], &b""[..]),
        (Code::REQUEST_ENTITY_INCOMPLETE, [(number::CONTENT_FORMAT, &b"\x01\x10"[..])], b"\x00"),
    ] {
        let (why, datagrams, second) = endlessly(code, &options, payload);
        assert_eq!(why, RequestFailure::Burst(BurstFailure::Incomplete), "{code}");
        assert!(datagrams < 400 && second < 1_000, "{code}: {datagrams} datagrams in {second} s");
    }
}
