//! Any body, any sizes: what arrives is what was sent.

use millpond_coap::block::{
    Answer, Assemblies, AssemblyLimits, Block, BlockSize, Download, Next, Part, Upload, UploadNext, Verdict, slice,
};
use millpond_coap::message::Code;
use millpond_control::Instant;
use proptest::prelude::*;

use crate::body;

fn size() -> impl Strategy<Value = BlockSize> {
    (0_u8..=6).prop_map(|exponent| BlockSize::from_exponent(exponent).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn downloads(
        length in 0_usize..5_000, asked in prop::option::of(size()), server in size(), shrink in size(), when in 0_usize..20,
    ) {
        let body = body(length);
        let mut download = Download::new(asked, 5_000);
        let mut ask = download.first();
        for step in 0.. {
            let piece = slice(&body, ask, server).unwrap();
            if step == when {
                download.shrink_to(shrink);
            }
            let (code, format, total) = (Code::CONTENT, None, Some(piece.total));
            let part = Part { code, format, block: piece.block, etag: None, total, payload: piece.payload };
            match download.take(&part).unwrap() {
                Next::Request(block) => ask = Some(block),
                Next::Done => { prop_assert_eq!(download.into_body(), body); break; }
            }
        }
    }

    #[test]
    fn uploads(length in 0_usize..5_000, client in size(), server in size()) {
        let body = body(length);
        let mut upload = Upload::new(length, client);
        let mut assemblies = Assemblies::new(AssemblyLimits { size: server, ..AssemblyLimits::default() });
        loop {
            let piece = upload.piece(&body).unwrap();
            let Some(block) = piece.block else { prop_assert_eq!(piece.payload, &body[..]); break };
            let (code, block, arrived) = match assemblies.take(Instant::ORIGIN, 1, block, Some(piece.total), piece.payload) {
                Verdict::Continue(block) => (Code::CONTINUE, block, None),
                Verdict::Whole(whole, block) => (Code::CHANGED, block, Some(whole)),
                other => panic!("{other:?}"),
            };
            let next = upload.take(&Answer { code, block: Some(block), most: None }).unwrap();
            match (next, arrived) {
                (UploadNext::Send, None) => {}
                (UploadNext::Done, Some(whole)) => { prop_assert_eq!(whole, body); break; }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Any blocks in any order end in a verdict, and memory stays within its bound.
    #[test]
    fn any_blocks_are_survived(blocks in prop::collection::vec((0_u32..40, any::<bool>(), 0_u8..=7, 0_u8..4, 0_usize..300), 0..80)) {
        let mut assemblies = Assemblies::new(AssemblyLimits { body: 1_000, bodies: 3, ..AssemblyLimits::default() });
        for (number, more, exponent, key, length) in blocks {
            let size = BlockSize::from_exponent(exponent).unwrap();
            let length = if more && !size.is_bert() { size.bytes() as usize } else { length };
            let verdict = assemblies.take(Instant::ORIGIN, key, Block { number, more, size }, None, &vec![key; length]);
            if let Verdict::Whole(body, _) = verdict {
                prop_assert!(body.len() <= 1_000 && body.iter().all(|byte| *byte == key));
            }
            prop_assert!(assemblies.memory() < 8_192);
        }
    }
}
