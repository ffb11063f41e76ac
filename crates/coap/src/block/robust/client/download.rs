use alloc::vec::Vec;

use millpond_control::{Instant, Span};

use super::{
    super::{
        super::{Block, BlockSize},
        Accepted, BurstOptions, BurstParameters, BurstReceiver, Q_BLOCK2, REQUEST_TAG, Receipt, ReceiverAction, Whole,
        draft::{Draft, block_of, options_of, uint_of},
    },
    BurstFailure, End,
    transfer::{Body, Step, Verdict},
};
use crate::message::{Code, Kind, Message, OptionList, number};

/// A body that comes in bursts (Q-Block2, RFC 9177 §4.4).
#[derive(Debug)]
pub(super) struct Download {
    parameters: BurstParameters,
    /// The largest blocks that may come.
    size: BlockSize,
    /// What was asked for first, and whether that has left.
    first: Block,
    requested: bool,
    /// When it left, and how often.
    since: Instant,
    repeats: u8,
    /// The round trip of the question before it.
    pub(super) round_trip: Option<Span>,
    /// What comes next answers what was asked for first, which left once.
    is_first: bool,
    part: Option<Part>,
    /// Tags of representations that are no longer the server's.
    stale: Vec<Option<Vec<u8>>>,
}

/// What is there of one representation.
#[derive(Debug)]
struct Part {
    receiver: BurstReceiver,
    etag: Option<Vec<u8>>,
    code: Code,
    options: OptionList,
}

/// A changed body is fetched anew so often at most.
const RESTARTS: usize = 4;

impl Download {
    /// The whole body, of which nothing is there.
    pub(super) fn of_whole(body: &Body, options: &BurstOptions) -> Self {
        Self::new(body, options, Block { number: 0, more: true, size: body.size })
    }

    /// The whole body, which flows already: this is what came of it.
    pub(super) fn of_flowing(body: &Body, options: &BurstOptions, now: Instant) -> Self {
        Self { requested: true, since: now, ..Self::of_whole(body, options) }
    }

    /// The body of which the first block is there already.
    pub(super) fn of_rest(body: &Body, options: &BurstOptions) -> Self {
        Self::new(body, options, Block { number: 1, more: true, size: body.size })
    }

    fn new(body: &Body, options: &BurstOptions, first: Block) -> Self {
        Self {
            parameters: options.parameters,
            size: body.size,
            first,
            requested: false,
            since: Instant::ORIGIN,
            repeats: 0,
            round_trip: None,
            is_first: false,
            part: None,
            stale: Vec::new(),
        }
    }

    /// Whether a block came in answer to a non-confirmable request.
    pub(super) fn has_begun(&self) -> bool {
        self.requested && self.part.is_some()
    }

    /// Bytes that are there without a gap, and bytes of the whole.
    pub(super) fn progress(&self) -> (usize, Option<u32>) {
        let of = |part: &Part| {
            let bytes = (part.receiver.complete() as usize).saturating_mul(part.receiver.size().bytes() as usize);
            (bytes.min(part.receiver.total()), u32::try_from(part.receiver.total()).ok())
        };
        self.part.as_ref().map_or((0, None), of)
    }

    pub(super) fn memory(&self) -> usize {
        self.part.as_ref().map_or(0, |part| part.receiver.memory())
    }

    pub(super) fn step(&mut self, now: Instant, body: &Body) -> Step {
        if !self.requested {
            (self.requested, self.since, self.repeats, self.is_first) = (true, now, 0, true);
            return Step::NonConfirmable(request(body, &[self.first]));
        }
        let Some(part) = &mut self.part else {
            let wait = 1_u32.checked_shl(self.repeats.into()).unwrap_or(u32::MAX);
            let due = self.since.after(self.parameters.patience.times(wait));
            if now < due {
                return Step::Wait(due);
            }
            if self.repeats >= self.parameters.repeats {
                return Step::fail(BurstFailure::Silent);
            }
            (self.since, self.repeats, self.is_first) = (now, self.repeats.saturating_add(1), false);
            return Step::NonConfirmable(request(body, &[self.first]));
        };
        let size = part.receiver.size();
        match part.receiver.poll(now) {
            ReceiverAction::GoOn(number) => Step::NonConfirmable(request(body, &[Block { number, more: true, size }])),
            ReceiverAction::Missing(numbers) => {
                self.is_first = false;
                // A set of them at a time (§7.2).
                let most = self.parameters.set.max(1) as usize;
                let block = |number: &u32| Block { number: *number, more: false, size };
                let missing: Vec<Block> = numbers.iter().take(most).map(block).collect();
                Step::NonConfirmable(request(body, &missing))
            }
            ReceiverAction::Wait(until) => Step::Wait(until),
            ReceiverAction::GiveUp => Step::fail(BurstFailure::Incomplete),
        }
    }

    /// A response came; its body may have so many bytes.
    pub(super) fn take(&mut self, now: Instant, message: &Message<'_>, limit: usize) -> Verdict {
        // What a confirmable request gets for which nothing can leave yet.
        if message.code == Code::CONTINUE {
            return Verdict::Go;
        }
        if message.code.class() != 2 {
            return Verdict::done(message);
        }
        let Some(Ok(block)) = block_of(message, Q_BLOCK2) else { return Verdict::fail(BurstFailure::Misfit) };
        let etag = message.option(number::ETAG);
        if self.stale.iter().any(|stale| stale.as_deref() == etag) {
            return Verdict::Go;
        }
        if self.part.as_ref().is_some_and(|part| part.etag.as_deref() != etag) {
            // The server has another representation by now: what is there is stale (§4.4).
            if self.stale.len() >= RESTARTS {
                return Verdict::fail(BurstFailure::Unstable);
            }
            self.stale.extend(self.part.take().map(|part| part.etag));
            self.first = Block { number: 0, more: true, size: self.size };
            self.requested = false;
        }
        if self.part.is_none()
            && let Err(why) = self.begin(now, message, block, limit)
        {
            return Verdict::fail(why);
        }
        let Some(part) = &mut self.part else { return Verdict::Go };
        if core::mem::take(&mut self.is_first) {
            part.receiver.probed(now.since(self.since));
        }
        let total = uint_of(message, number::SIZE2).unwrap_or(part.receiver.total() as u32);
        match part.receiver.take(now, &Receipt { block, total, payload: message.payload() }) {
            Accepted::Kept | Accepted::Repeated => Verdict::Go,
            Accepted::Misfit => Verdict::fail(BurstFailure::Misfit),
            Accepted::Whole => {
                let Some(part) = self.part.take() else { return Verdict::Go };
                Verdict::End(End::Done(Whole {
                    body: part.receiver.into_body(),
                    code: part.code,
                    options: part.options,
                }))
            }
        }
    }

    /// The first block of a representation, which need not be its first one, says how long it is.
    fn begin(&mut self, now: Instant, message: &Message<'_>, block: Block, limit: usize) -> Result<(), BurstFailure> {
        if block.size > self.size {
            return Err(BurstFailure::Misfit);
        }
        // Every block must say it (§4.6); of the only one it is plain.
        let only = (block.number == 0 && !block.more).then_some(message.payload().len() as u32);
        let total = uint_of(message, number::SIZE2).or(only).ok_or(BurstFailure::Misfit)?;
        let fresh = Span::from_secs(uint_of(message, number::MAX_AGE).unwrap_or(60));
        let lifetime = self.parameters.lifetime.min(fresh);
        let parameters = BurstParameters { lifetime, ..self.parameters };
        let mut receiver =
            BurstReceiver::new(parameters, block.size, total, limit, now).ok_or(BurstFailure::TooLarge { limit })?;
        if let Some(round_trip) = self.round_trip {
            receiver.probed(round_trip);
        }
        if !self.requested {
            self.first.size = block.size;
        }
        let options = options_of(message, |number| number != Q_BLOCK2);
        let etag = message.option(number::ETAG).map(<[u8]>::to_vec);
        self.part = Some(Part { receiver, etag, code: message.code, options });
        Ok(())
    }
}

/// A request for blocks: without body, and with the tag of the one that was sent.
fn request(body: &Body, blocks: &[Block]) -> Draft {
    let draft = blocks.iter().fold(body.bare(Kind::NonConfirmable), |draft, block| draft.with_block(Q_BLOCK2, *block));
    if body.is_long() { draft.with(REQUEST_TAG, &body.tag) } else { draft }
}
