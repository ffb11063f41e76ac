use millpond_control::{Instant, Span};

use super::{
    super::{
        super::Block,
        BurstOptions, BurstParameters, BurstSender, Feedback, Leaving, MISSING_BLOCKS_FORMAT, Q_BLOCK1, Q_BLOCK2,
        REQUEST_TAG,
        draft::{Draft, block_of, uint_of},
        read_missing_blocks,
        receiver::waits,
    },
    BurstFailure, End,
    transfer::{Body, Step, Verdict},
};
use crate::message::{Code, Message, number};

/// A body that leaves in bursts (Q-Block1, RFC 9177 §4.3).
#[derive(Debug)]
pub(super) struct Upload {
    parameters: BurstParameters,
    sender: BurstSender,
    /// When something left or came last, and how often the last payload was repeated since.
    touched: Instant,
    repeats: u8,
    /// When something came last, or if nothing has, when the first payload left.
    quiet: Option<Instant>,
    /// The round trip of the question before it.
    round_trip: Option<Span>,
    /// Something came back.
    heard: bool,
    restarts: u8,
    /// Payloads that were sent again.
    again: u32,
}

/// The body is begun anew so often at most.
const RESTARTS: u8 = 3;

impl Upload {
    pub(super) fn new(body: &Body, options: &BurstOptions, round_trip: Option<Span>) -> Self {
        let parameters = options.parameters;
        let blocks = u32::try_from(body.bytes.len()).unwrap_or(u32::MAX).div_ceil(body.size.bytes());
        let mut sender = BurstSender::new(parameters, blocks, body.pause);
        if let Some(round_trip) = round_trip {
            sender.probed(round_trip);
        }
        let touched = Instant::ORIGIN;
        Self { parameters, sender, touched, repeats: 0, quiet: None, round_trip, heard: false, restarts: 0, again: 0 }
    }

    /// Bytes that have left at least once.
    pub(super) fn sent(&self, body: &Body) -> usize {
        (self.sender.next() as usize).saturating_mul(body.size.bytes() as usize).min(body.bytes.len())
    }

    pub(super) fn step(&mut self, now: Instant, body: &Body) -> Step {
        let BurstParameters { patience, repeats, paced, .. } = self.parameters;
        // A paced one sends and repeats by times of its own, for as long as RFC 9177 would wait for an answer to the last payload.
        let end = self.quiet.get_or_insert(now).after(waits(patience, repeats));
        let end = if paced { end } else { Instant::NEVER };
        if now >= end {
            return self.falls_silent();
        }
        match self.sender.poll(now) {
            Leaving::Block { number, requested, .. } => {
                self.touched = now;
                self.once_more(body, number, u32::from(requested))
            }
            Leaving::Wait(until) => Step::Wait(until.min(end)),
            Leaving::Nothing => {
                // The answer may have been lost: a repeated block draws it again.
                let wait = 1_u32.checked_shl(self.repeats.into()).unwrap_or(u32::MAX);
                let due = self.touched.after(self.sender.timeout().unwrap_or(patience).times(wait)).min(end);
                if now < due {
                    return Step::Wait(due);
                }
                if !paced && self.repeats >= repeats {
                    return self.falls_silent();
                }
                self.repeats = self.repeats.saturating_add(1);
                self.touched = now;
                // Also if it is told to go on each time.
                let blocks = self.sender.blocks();
                self.once_more(body, blocks.saturating_sub(1), (blocks >> 3).saturating_add(1))
            }
        }
    }

    /// A payload leaves, which counts for so many that were sent before: a server that never has enough would have us send for
    /// ever.
    fn once_more(&mut self, body: &Body, number: u32, again: u32) -> Step {
        self.again = self.again.saturating_add(again);
        if self.again > self.sender.blocks().saturating_mul(8).saturating_add(64) {
            return Step::fail(BurstFailure::Incomplete);
        }
        payload(body, number).map_or(Step::fail(BurstFailure::Misfit), Step::NonConfirmable)
    }

    /// Nothing has come for too long.
    fn falls_silent(&self) -> Step {
        Step::fail(if self.heard { BurstFailure::Incomplete } else { BurstFailure::Silent })
    }

    /// A payload could not leave.
    pub(super) fn held_back(&mut self, now: Instant, number: u32) {
        self.sender.held_back(now, number);
    }

    /// Something came back. `None`: it is the answer to the whole request.
    pub(super) fn take(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        body: &mut Body,
        options: &BurstOptions,
    ) -> Option<Verdict> {
        (self.heard, self.touched, self.quiet, self.repeats) = (true, now, Some(now), 0);
        let block = block_of(message, Q_BLOCK1).and_then(Result::ok);
        match message.code {
            Code::CONTINUE => {
                if let Some(block) = block.filter(|block| block.size == body.size) {
                    self.sender.feedback(now, Feedback::GoOn(block.number.saturating_add(1)));
                }
                Some(Verdict::Go)
            }
            Code::REQUEST_ENTITY_INCOMPLETE => {
                if uint_of(message, number::CONTENT_FORMAT) != Some(MISSING_BLOCKS_FORMAT.into()) {
                    // It has dropped the body. Some note few gaps at a time, and do it again.
                    let is_first = self.restarts == 0;
                    return Some(if is_first { self.restart(body, options) } else { Verdict::End(End::Unsupported) });
                }
                // What is no such list is dropped in silence (§5).
                if let Ok(missing) = read_missing_blocks(message.payload()) {
                    self.sender.feedback(now, Feedback::Missing(&missing));
                }
                Some(Verdict::Go)
            }
            Code::REQUEST_ENTITY_TOO_LARGE => {
                let most = uint_of(message, number::SIZE1);
                let fits = most.is_none_or(|most| most as usize >= body.bytes.len());
                let block = block.filter(|block| fits && block.size < body.size)?;
                body.size = block.size;
                Some(self.restart(body, options))
            }
            _ => None,
        }
    }

    /// From the beginning, under another tag: what the server has is of no use.
    fn restart(&mut self, body: &mut Body, options: &BurstOptions) -> Verdict {
        let restarts = self.restarts.saturating_add(1);
        if restarts > RESTARTS {
            return Verdict::fail(BurstFailure::Unstable);
        }
        // The high bytes, which counting up would reach last.
        if let Some(byte) = body.tag.first_mut() {
            *byte = byte.wrapping_add(1);
        }
        *self = Self { restarts, heard: true, ..Self::new(body, options, self.round_trip) };
        Verdict::Go
    }
}

/// The request that carries a block; `None` if the body has none of this number.
fn payload(body: &Body, number: u32) -> Option<Draft> {
    let start = usize::try_from(Block { number, more: false, size: body.size }.offset()).ok()?;
    let rest = body.bytes.get(start..)?;
    let payload = rest.get(..body.size.bytes() as usize).unwrap_or(rest);
    let block = Block { number, more: payload.len() < rest.len(), size: body.size };
    let answer = Block { number: 0, more: true, size: body.size };
    Some(
        Draft::plain(body.code, &body.options)
            .with_block(Q_BLOCK1, block)
            .with_block(Q_BLOCK2, answer)
            .with_uint(number::SIZE1, u32::try_from(body.bytes.len()).ok()?)
            .with(REQUEST_TAG, &body.tag)
            .with_payload(payload),
    )
}
