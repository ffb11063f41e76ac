use alloc::vec::Vec;

use millpond_control::{Instant, Span};

use super::{
    super::{
        super::{Block, BlockSize, GIVEN_FOR},
        BurstParameters, BurstSender, Feedback, Leaving, Q_BLOCK2,
        draft::{Draft, Recent},
        receiver::waits,
    },
    selection::BlockSelection,
};
use crate::{
    body::HeldBody,
    message::{Code, OptionList, Token, number},
    quota::Source,
    transfer::{Answer, ECHO_LENGTH},
};

/// A body that leaves in bursts (Q-Block2), and is kept for what must be sent again.
#[derive(Debug)]
pub(super) struct Outbound<A> {
    pub(super) to: A,
    pub(super) source: Source,
    /// What of the request distinguishes one representation from another.
    pub(super) key: Vec<u8>,
    /// Request-Tag of the body that was answered, if that came in bursts.
    pub(super) request_tag: Option<Vec<u8>>,
    pub(super) etag: Vec<u8>,
    pub(super) recent: Recent,
    /// What its receiver is to send back with its next request, so that more than a block may leave for that.
    pub(super) echo: Option<[u8; ECHO_LENGTH]>,
    code: Code,
    options: OptionList,
    body: HeldBody,
    size: BlockSize,
    sender: BurstSender,
    /// The token of what flows: that of the request that it answers, unless that was for the first block alone.
    token: Option<Token>,
    /// The token of what was asked for by number.
    requested_by: Token,
    lifetime: Span,
    /// When it was asked for last, and how long it flows without being asked for: a peer that is not there takes no more.
    requested: Instant,
    patience: Span,
    /// When the application gave it last.
    given: Instant,
    touched: Instant,
}

/// A representation.
#[derive(Debug)]
pub(super) struct Representation {
    pub(super) code: Code,
    /// Without ETag.
    pub(super) options: OptionList,
    pub(super) etag: Vec<u8>,
    pub(super) body: HeldBody,
    pub(super) size: BlockSize,
}

impl Representation {
    fn blocks(&self) -> u32 {
        u32::try_from(self.body.len()).unwrap_or(u32::MAX).div_ceil(self.size.bytes())
    }
}

/// What a request for more of a body led to.
#[derive(Debug)]
pub(super) enum Served {
    /// Blocks leave by and by.
    Flowing,
    /// Nothing of the kind is there: 4.00.
    PastEnd,
}

impl<A> Outbound<A> {
    /// A representation of which nothing leaves yet but what [`serve`](Self::serve) lets go.
    pub(super) fn new(
        (to, source): (A, Source),
        key: Vec<u8>,
        representation: Representation,
        parameters: BurstParameters,
        pause: Span,
        now: Instant,
    ) -> Self {
        let sender = BurstSender::resting(parameters, representation.blocks(), pause, now);
        let Representation { code, options, etag, body, size } = representation;
        let (lifetime, recent) = (parameters.lifetime, Recent::default());
        Self {
            to,
            source,
            key,
            request_tag: None,
            etag,
            recent,
            echo: None,
            code,
            options,
            body,
            size,
            sender,
            token: None,
            requested_by: Token::EMPTY,
            lifetime,
            requested: now,
            patience: waits(parameters.patience, parameters.repeats),
            given: now,
            touched: now,
        }
    }

    /// The application gave it once more.
    pub(super) const fn given_again(&mut self, now: Instant) {
        self.given = now;
    }

    /// Whether the application is to be asked anew: see [`GIVEN_FOR`].
    pub(super) fn is_old(&self, now: Instant) -> bool {
        now >= self.given.after(GIVEN_FOR)
    }

    /// Whether this is the same representation, so that what was sent of it can stay.
    pub(super) fn is(&self, answer: &Answer<'_>, etag: Option<&[u8]>, size: BlockSize) -> bool {
        let is_tagged = etag.is_none_or(|etag| etag == self.etag);
        let has_body = match (self.body.shared(), answer.shared) {
            (Some(own), Some(other)) => own.is(other),
            (None, None) => *self.body == *answer.body,
            _ => false,
        };
        is_tagged && self.code == answer.code && self.size == size && has_body
    }

    /// A request for it came with this token. `sent`: its first block is on its way already, in an acknowledgement.
    pub(super) fn serve(&mut self, now: Instant, selection: &BlockSelection, token: Token, sent: bool) -> Served {
        let blocks = self.sender.blocks();
        let (last, size) = match selection {
            BlockSelection::First(size) | BlockSelection::All(size) => (0, (*size).min(self.size)),
            BlockSelection::GoOn(block) | BlockSelection::Rest(block) => (block.number, block.size),
            // One that is there is enough.
            BlockSelection::Blocks(numbers, size) => (numbers.first().copied().unwrap_or(0), *size),
        };
        if last >= blocks || size != self.size {
            return Served::PastEnd;
        }
        (self.touched, self.requested) = (now, now);
        match selection {
            BlockSelection::First(_) if sent => {}
            BlockSelection::First(_) => {
                self.requested_by = token;
                self.sender.only(0);
            }
            BlockSelection::All(_) => {
                self.token = Some(token);
                self.sender.flow_from(u32::from(sent));
            }
            BlockSelection::GoOn(block) => {
                self.token.get_or_insert(token);
                self.sender.feedback(now, Feedback::GoOn(block.number));
            }
            BlockSelection::Rest(block) => {
                (self.token, self.requested_by) = (Some(token), token);
                self.sender.rest_of_set(now, block.number);
            }
            BlockSelection::Blocks(numbers, _) => {
                self.requested_by = token;
                self.sender.feedback(now, Feedback::Missing(numbers));
            }
        }
        Served::Flowing
    }

    /// The size of its blocks.
    pub(super) const fn size(&self) -> BlockSize {
        self.size
    }

    /// Whether messages of it have this token.
    pub(super) fn has_token(&self, token: Token) -> bool {
        self.token == Some(token) || self.requested_by == token
    }

    /// A block could not leave.
    pub(super) fn held_back(&mut self, now: Instant, number: u32) {
        self.sender.held_back(now, number);
    }

    /// What leaves at `now`, and to which token.
    pub(super) fn poll(&mut self, now: Instant) -> Result<(Token, Draft), Option<Instant>> {
        if now >= self.requested.after(self.patience) {
            return Err(None);
        }
        match self.sender.poll(now) {
            Leaving::Block { number, requested, .. } => {
                self.touched = now;
                let token = self.token.filter(|_| !requested).unwrap_or(self.requested_by);
                Ok((token, self.block(number).ok_or(None)?))
            }
            Leaving::Wait(until) => Err(Some(until)),
            Leaving::Nothing => Err(None),
        }
    }

    /// The response with this block.
    pub(super) fn block(&self, number: u32) -> Option<Draft> {
        let start = usize::try_from(Block { number, more: false, size: self.size }.offset()).ok()?;
        let rest = self.body.get(start..)?;
        let payload = rest.get(..self.size.bytes() as usize).unwrap_or(rest);
        let block = Block { number, more: payload.len() < rest.len(), size: self.size };
        let draft = Draft::plain(self.code, &self.options);
        let draft = self.echo.iter().fold(draft, |draft, value| draft.with(number::ECHO, value));
        Some(
            draft
                .with(number::ETAG, &self.etag)
                .with_uint(number::SIZE2, u32::try_from(self.body.len()).ok()?)
                .with_block(Q_BLOCK2, block)
                .with_payload(payload),
        )
    }

    /// When it is dropped.
    pub(super) fn expiry(&self) -> Instant {
        self.touched.after(self.lifetime)
    }

    /// When it was asked for, or a block of it left, last.
    pub(super) const fn touched(&self) -> Instant {
        self.touched
    }

    /// Bytes held beside this value.
    pub(super) fn memory(&self) -> usize {
        let tags = self.etag.capacity().saturating_add(self.request_tag.as_ref().map_or(0, Vec::capacity));
        self.body
            .len()
            .saturating_add(self.key.capacity())
            .saturating_add(tags)
            .saturating_add(self.options.memory())
            .saturating_add(self.recent.memory())
    }
}
