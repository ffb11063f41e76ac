use alloc::vec::Vec;

use millpond_control::{Instant, Span};

use super::{
    super::{
        super::{Block, BlockSize},
        Accepted, BurstReceiver, MISSING_BLOCKS_FORMAT, Q_BLOCK1, Receipt, ReceiverAction,
        draft::{Draft, Recent},
        missing_blocks,
    },
    selection::BlockSelection,
};
use crate::message::{Code, OptionList, Token, number};
use crate::quota::Source;

/// A body that comes in bursts (Q-Block1, RFC 9177 §4.3), until some time after it was answered.
#[derive(Debug)]
pub(super) struct Inbound<A> {
    pub(super) from: A,
    pub(super) source: Source,
    /// Blocks that came.
    pub(super) came: u32,
    /// Bytes of the messages that brought them, and of the questions for others.
    pub(super) bytes: usize,
    pub(super) requested: usize,
    pub(super) key: Vec<u8>,
    /// Request-Tag.
    pub(super) tag: Vec<u8>,
    pub(super) code: Code,
    pub(super) options: OptionList,
    /// What is wanted of the answer.
    pub(super) selection: BlockSelection,
    /// The token of the payload that came last.
    pub(super) token: Token,
    /// It was confirmable.
    pub(super) is_confirmable: bool,
    pub(super) recent: Recent,
    pub(super) stage: Stage,
    pub(super) touched: Instant,
    /// NON_PARTIAL_TIMEOUT.
    pub(super) lifetime: Span,
}

/// How many bytes of questions there may be for each that came from an address where nobody may be; what RFC 9000 §8 allows.
const FACTOR: usize = 3;

#[derive(Debug)]
pub(super) enum Stage {
    Collecting(BurstReceiver),
    /// It is whole, and the application has it.
    HandedUp,
    /// It was answered like this.
    Answered(Draft),
}

impl<A> Inbound<A> {
    /// Takes a payload in. None: there is nothing to collect any more.
    pub(super) fn take(&mut self, now: Instant, receipt: &Receipt<'_>) -> Option<Accepted> {
        let Stage::Collecting(receiver) = &mut self.stage else { return None };
        receiver.is_from(self.source.is_validated);
        let accepted = receiver.take(now, receipt);
        self.came = receiver.came();
        if accepted == Accepted::Repeated {
            receiver.answer_again(receipt.block.number);
        }
        Some(accepted)
    }

    /// The body, if it is whole.
    pub(super) fn complete(&mut self) -> Option<Vec<u8>> {
        let Stage::Collecting(receiver) = &self.stage else { return None };
        if !receiver.is_whole() {
            return None;
        }
        match core::mem::replace(&mut self.stage, Stage::HandedUp) {
            Stage::Collecting(receiver) => Some(receiver.into_body()),
            _ => None,
        }
    }

    /// What to say at `now`: a message, or when to look again. `Err(None)`: it is to be dropped.
    pub(super) fn poll(&mut self, now: Instant) -> Result<Draft, Option<Instant>> {
        let Stage::Collecting(receiver) = &mut self.stage else {
            let expiry = self.touched.after(self.lifetime);
            return Err(Some(expiry).filter(|expiry| *expiry > now));
        };
        let (size, set) = (receiver.size(), receiver.set());
        loop {
            return match receiver.poll(now) {
                ReceiverAction::Wait(until) => Err(Some(until)),
                ReceiverAction::GiveUp => Err(None),
                // The acknowledgement of a confirmable payload has said so (§4.3).
                ReceiverAction::GoOn(_) if self.is_confirmable => continue,
                ReceiverAction::GoOn(next) => Ok(go_on(next, size)),
                ReceiverAction::Missing(numbers) => {
                    let question = incomplete(&numbers, set);
                    let requested = self.requested.saturating_add(question.len());
                    // The sender may be somewhere else.
                    if !self.source.is_validated && requested > self.bytes.saturating_mul(FACTOR) {
                        continue;
                    }
                    self.requested = requested;
                    Ok(question)
                }
            };
        }
    }

    /// The answer to a confirmable payload after which the body is not whole.
    pub(super) fn acknowledgement(&self) -> Draft {
        match &self.stage {
            Stage::Collecting(receiver) if receiver.complete() == 0 => incomplete(&[0], receiver.set()),
            Stage::Collecting(receiver) => go_on(receiver.complete(), receiver.size()),
            _ => Draft::bare(Code::CONTINUE),
        }
    }

    pub(super) fn memory(&self) -> usize {
        let stage = match &self.stage {
            Stage::Collecting(receiver) => receiver.memory(),
            Stage::HandedUp => 0,
            Stage::Answered(draft) => draft.memory(),
        };
        stage
            .saturating_add(self.key.capacity())
            .saturating_add(self.tag.capacity())
            .saturating_add(self.options.memory())
            .saturating_add(self.selection.memory())
            .saturating_add(self.recent.memory())
    }
}

/// 2.31: everything before this block is there.
fn go_on(next: u32, size: BlockSize) -> Draft {
    let last = Block { number: next.saturating_sub(1), more: true, size };
    Draft::bare(Code::CONTINUE).with_block(Q_BLOCK1, last)
}

/// 4.08 with what is missing, a set of it at most (§5, §7.2).
fn incomplete(numbers: &[u32], set: u32) -> Draft {
    let most = set.max(1) as usize;
    let list = missing_blocks(numbers.get(..most).unwrap_or(numbers), most.saturating_mul(5));
    Draft::bare(Code::REQUEST_ENTITY_INCOMPLETE)
        .with_uint(number::CONTENT_FORMAT, MISSING_BLOCKS_FORMAT.into())
        .with_payload(&list)
}
