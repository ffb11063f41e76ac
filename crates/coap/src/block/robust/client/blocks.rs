//! RFC 7959, for servers that do not know bursts.

use alloc::vec::Vec;

use super::{
    super::{
        super::{Answer, Block, Download, Next, Part, Upload, UploadNext},
        BurstOptions, REQUEST_TAG,
        draft::{Draft, OwnedOptions, block_of, options_of, own_options, uint_of},
    },
    BurstFailure, Carried, done,
    transfer::{Body, Step, Verdict},
};
use crate::message::{Code, Kind, Message, Token, number};

/// One block after the other, each in a confirmable exchange.
#[derive(Debug)]
pub(super) struct Blocks {
    /// As long as the body is on its way.
    upload: Option<Upload>,
    download: Download,
    /// The block to ask for; none in the request that carries the (last piece of the) body.
    asked: Option<Block>,
    options: OwnedOptions,
    /// The token of the first block of the body: some servers put a body together by it.
    token: Option<Token>,
}

impl Blocks {
    /// The whole request from its beginning.
    pub(super) fn new(body: &Body, options: &BurstOptions) -> Self {
        let upload = Some(Upload::new(body.bytes.len(), body.size));
        Self { upload, ..Self::of_answer(body, options) }
    }

    /// Only the answer, of which the first part came.
    pub(super) fn of_answer(body: &Body, options: &BurstOptions) -> Self {
        let download = Download::new(Some(body.size), options.limits.body);
        Self { upload: None, asked: download.first(), download, options: Vec::new(), token: None }
    }

    pub(super) fn memory(&self) -> usize {
        self.download.received()
    }

    pub(super) fn step(&mut self, body: &Body) -> Step {
        let Some(upload) = &mut self.upload else {
            let Some(asked) = self.asked else { return Step::Nothing };
            return Step::Request(body.bare(Kind::Confirmable).with_block(number::BLOCK2, asked));
        };
        let piece = match upload.piece(&body.bytes) {
            Ok(piece) => piece,
            Err(why) => return Step::fail(BurstFailure::Upload(why)),
        };
        let mut draft = Draft::new(Kind::Confirmable, body.code, &body.options).with_payload(piece.payload);
        if let Some(block) = piece.block {
            draft = draft.with_block(number::BLOCK1, block).with(REQUEST_TAG, &body.tag);
            if block.number == 0 {
                draft = draft.with_uint(number::SIZE1, piece.total);
            }
        }
        if let Some(first) = self.asked.filter(|_| piece.block.is_none_or(|block| !block.more)) {
            draft = draft.with_block(number::BLOCK2, first);
        }
        Step::Request(draft.with_token(self.token))
    }

    pub(super) fn take(&mut self, message: &Message<'_>) -> Verdict {
        if let Some(upload) = &mut self.upload {
            let block = block_of(message, number::BLOCK1).and_then(Result::ok);
            match upload.take(&Answer { code: message.code, block, most: uint_of(message, number::SIZE1) }) {
                Ok(UploadNext::Send) => {
                    self.token = self.token.or(Some(message.token));
                    return Verdict::Go;
                }
                Ok(UploadNext::Done) => self.upload = None,
                Err(why) => return Verdict::Fail(BurstFailure::Upload(why)),
            }
        }
        if message.code.class() != 2 || message.code == Code::CONTINUE {
            let own = own_options(options_of(message), |number| number == number::BLOCK1);
            return done(message.code, own, message.payload().to_vec(), Carried::Whole);
        }
        let block = match block_of(message, number::BLOCK2) {
            Some(Err(_)) => return Verdict::Fail(BurstFailure::Misfit),
            Some(Ok(block)) => Some(block),
            None => None,
        };
        let total = uint_of(message, number::SIZE2);
        let part = Part { block, etag: message.option(number::ETAG), total, payload: message.payload() };
        if self.download.received() == 0 {
            self.options = own_options(options_of(message), |number| matches!(number, number::BLOCK1 | number::BLOCK2));
        }
        match self.download.take(&part) {
            Ok(Next::Ask(block)) => {
                self.asked = Some(block);
                Verdict::Go
            }
            Ok(Next::Done) => {
                let download = core::mem::replace(&mut self.download, Download::new(None, 0));
                done(message.code, core::mem::take(&mut self.options), download.into_body(), Carried::Blocks)
            }
            Err(why) => Verdict::Fail(BurstFailure::Download(why)),
        }
    }
}
