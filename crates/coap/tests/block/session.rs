//! What must hold of any blocks at all. Also the body of the fuzz target `blocks`.

use millpond_coap::block::{
    Answer, Assemblies, AssemblyLimits, Block, BlockSize, Download, Next, Part, Upload, Verdict, slice,
};
use millpond_coap::message::Code;
use millpond_control::{Instant, Span};

const LIMIT: usize = 4_096;

/// Four bytes say what happens next, to all engines at once.
pub(crate) fn check(bytes: &[u8]) {
    let mut now = Instant::ORIGIN;
    let mut download = Download::new(None, LIMIT);
    let mut upload = Upload::new(1_000, BlockSize::B64);
    let body = [7; 1_000];
    let limits = AssemblyLimits { body: LIMIT, bodies: 3, ..AssemblyLimits::default() };
    let mut assemblies = Assemblies::new(limits);
    for step in bytes.chunks_exact(4) {
        let [value @ .., what] = step else { return };
        now = now.after(Span::from_millis(u32::from(*what) * 16));
        let Ok(block) = Block::read(value, true) else { panic!("three bytes always make a block") };
        assert_eq!(Block::read(&block.value(), true), Ok(block));
        let full = block.size.bytes() as usize;
        let payload = vec![*what; if what & 1 == 0 { full } else { usize::from(*what) }];
        let etag = [what >> 6];
        let part = Part {
            code: if what & 32 == 0 { Code::CONTENT } else { Code::VALID },
            format: (what & 16 != 0).then_some(u32::from(*what >> 7)),
            block: (what & 2 == 0).then_some(block),
            etag: (what & 4 == 0).then_some(&etag),
            total: (what & 8 == 0).then_some(u32::from(*what) * 20),
            payload: &payload,
        };
        match download.take(&part) {
            Ok(Next::Request(asked)) => assert_eq!(asked.offset(), download.received() as u64),
            Ok(Next::Done) | Err(_) => download = Download::new(None, LIMIT),
        }
        assert!(download.received() <= LIMIT);

        if let Ok(piece) = upload.piece(&body) {
            assert!(piece.payload.len() <= 1_024 && !piece.payload.is_empty());
            assert!(piece.block.map_or(0, Block::offset) as usize + piece.payload.len() <= 1_000);
        }
        let answer = Answer { code: Code::from_byte(what | 0x40), block: part.block, most: part.total };
        if upload.take(&answer).is_err() {
            upload = Upload::new(1_000, BlockSize::B64);
        }

        if let Verdict::Whole(whole, _) = assemblies.take(now, what >> 5, block, part.total, &payload) {
            assert!(whole.len() <= LIMIT);
        }
        assert!(assemblies.memory() <= 8 * LIMIT, "{} bytes", assemblies.memory());

        match slice(&body, Some(block), BlockSize::B256) {
            Ok(piece) => assert!(piece.payload.len() <= 256),
            Err(past) => assert!(past.offset >= 1_000),
        }
    }
}
