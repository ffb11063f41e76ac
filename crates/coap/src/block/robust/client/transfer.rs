//! One transfer, from the question whether the server knows bursts to its end.

use alloc::{boxed::Box, vec::Vec};

use millpond_control::{Instant, Span};

use super::{
    super::{
        super::{Block, BlockSize},
        BurstOptions, Q_BLOCK1, Q_BLOCK2, Whole,
        draft::{Draft, Recent, block_of, options_of, token_of},
    },
    BurstFailure, BurstId, End,
    download::Download,
    peers::Peers,
    upload::Upload,
};
use crate::{
    ExchangeId,
    message::{Code, Kind, Message, OptionList, Token, number},
};

/// What is asked for, as long as the transfer lasts.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) code: Code,
    pub(super) options: OptionList,
    pub(super) bytes: Vec<u8>,
    pub(super) size: BlockSize,
    /// Bytes of the longest answer that is taken.
    pub(super) longest: usize,
    /// Request-Tag.
    pub(super) tag: Vec<u8>,
    /// NON_TIMEOUT_RANDOM, drawn for this body.
    pub(super) pause: Span,
}

impl Body {
    /// Whether it takes several requests to send it.
    pub(super) fn is_long(&self) -> bool {
        self.bytes.len() > self.size.bytes() as usize
    }

    /// A request without body and without format of one (RFC 7959 §2.7).
    pub(super) fn bare(&self, kind: Kind) -> Draft {
        let draft = Draft::new(kind, self.code, &self.options);
        if self.bytes.is_empty() { draft } else { draft.without(number::CONTENT_FORMAT) }
    }
}

/// What a transfer wants.
#[derive(Debug)]
pub(super) enum Step {
    Nothing,
    Wait(Instant),
    /// A claim on tokens.
    Claim,
    /// This confirmable request.
    Request(Draft),
    /// This non-confirmable request.
    NonConfirmable(Draft),
    End(Box<End>),
}

impl Step {
    pub(super) fn fail(why: BurstFailure) -> Self {
        Self::End(Box::new(End::Failed(why)))
    }
}

/// What became of a transfer.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It goes on.
    Go,
    End(End),
}

impl Verdict {
    pub(super) const fn fail(why: BurstFailure) -> Self {
        Self::End(End::Failed(why))
    }

    /// Answered by this message alone.
    pub(super) fn done(message: &Message<'_>) -> Self {
        let options = options_of(message, |_| true);
        Self::End(End::Done(Whole { code: message.code, options, body: message.payload().to_vec() }))
    }
}

#[derive(Debug)]
enum Stage {
    /// Until then nothing leaves (PROBING_RATE).
    Held(Instant),
    /// Nothing has left.
    Fresh,
    /// The question whether the server knows bursts, in a request of its own.
    Probe,
    /// The request itself, confirmable.
    Request,
    Upload(Upload),
    Download(Download),
}

#[derive(Debug)]
pub(super) struct Transfer<A> {
    pub(super) id: BurstId,
    pub(super) to: A,
    body: Body,
    stage: Stage,
    /// The confirmable request under way.
    exchange: Option<ExchangeId>,
    claim: Option<(ExchangeId, Token)>,
    /// Tokens made, and non-confirmable requests that left last.
    tokens: u32,
    recent: Recent,
    /// Bytes sent since something came back, and since when.
    unheard: usize,
    unheard_since: Instant,
    /// A reset has had it ask once more whether the server knows bursts.
    is_asked_again: bool,
}

impl<A: Copy + Eq> Transfer<A> {
    pub(super) fn new(id: BurstId, to: A, body: Body, held: Option<Instant>) -> Self {
        let stage = held.map_or(Stage::Fresh, Stage::Held);
        let recent = Recent::default();
        Self {
            id,
            to,
            body,
            stage,
            exchange: None,
            claim: None,
            tokens: 0,
            recent,
            unheard: 0,
            unheard_since: Instant::ORIGIN,
            is_asked_again: false,
        }
    }

    pub(super) fn has_exchange(&self, exchange: ExchangeId) -> bool {
        self.exchange == Some(exchange)
    }

    pub(super) fn exchange(&self) -> Option<ExchangeId> {
        self.exchange
    }

    pub(super) fn claim(&self) -> Option<ExchangeId> {
        self.claim.map(|(exchange, _)| exchange)
    }

    pub(super) fn has_claim(&self, exchange: ExchangeId) -> bool {
        self.claim() == Some(exchange)
    }

    /// Whether this non-confirmable request was one of its own.
    pub(super) fn sent(&self, exchange: ExchangeId) -> bool {
        self.recent.contains(exchange)
    }

    pub(super) fn claimed(&mut self, exchange: ExchangeId, prefix: Token) {
        self.claim = Some((exchange, prefix));
    }

    pub(super) fn requested(&mut self, exchange: ExchangeId) {
        self.exchange = Some(exchange);
    }

    /// A non-confirmable request left.
    pub(super) fn left(&mut self, now: Instant, exchange: ExchangeId, length: usize) {
        if self.unheard == 0 {
            self.unheard_since = now;
        }
        self.recent.push(exchange);
        self.unheard = self.unheard.saturating_add(length);
    }

    /// The endpoint has no room for a request now.
    pub(super) fn held_back(&mut self, now: Instant, draft: &Draft) {
        if let (Stage::Upload(upload), Some(block)) = (&mut self.stage, draft.block(Q_BLOCK1)) {
            upload.held_back(now, block.number);
        }
    }

    pub(super) fn next_token(&mut self) -> Token {
        let prefix = self.claim.map(|(_, prefix)| prefix).unwrap_or_default();
        let token = token_of(prefix, self.tokens);
        self.tokens = self.tokens.saturating_add(1);
        token
    }

    pub(super) fn memory(&self) -> usize {
        let stage = match &self.stage {
            Stage::Download(download) => download.memory(),
            _ => 0,
        };
        self.body.bytes.capacity().saturating_add(stage).saturating_add(self.recent.memory())
    }

    /// What it wants at `now`.
    pub(super) fn step(&mut self, now: Instant, options: &BurstOptions, peers: &mut Peers<A>) -> Step {
        match &mut self.stage {
            Stage::Held(until) if now < *until => return Step::Wait(*until),
            Stage::Held(_) | Stage::Fresh if peers.support(self.to) == Some(false) => {
                return Step::End(Box::new(End::Unsupported));
            }
            Stage::Held(_) | Stage::Fresh => self.begin(options, peers.support(self.to).is_some()),
            _ => {}
        }
        if self.exchange.is_some() {
            return Step::Nothing;
        }
        let (has_claim, body) = (self.claim.is_some(), &self.body);
        let step = match &mut self.stage {
            Stage::Probe => Step::Request(probe(body)),
            Stage::Request => Step::Request(request(body)),
            Stage::Upload(upload) if has_claim => upload.step(now, body),
            Stage::Download(download) if has_claim => download.step(now, body),
            Stage::Upload(_) | Stage::Download(_) => Step::Claim,
            Stage::Held(_) | Stage::Fresh => Step::Nothing,
        };
        if let Step::End(end) = &step
            && matches!(**end, End::Failed(BurstFailure::Silent))
        {
            peers.hold(self.to, self.unheard_since.after(options.probing_wait(self.unheard)));
        }
        step
    }

    fn begin(&mut self, options: &BurstOptions, is_supported: bool) {
        let is_long = self.body.is_long();
        self.stage = match is_supported {
            false if is_long => Stage::Probe,
            true if is_long => Stage::Upload(Upload::new(&self.body, options, None)),
            true if self.body.bytes.is_empty() => Stage::Download(Download::of_whole(&self.body, options)),
            _ => Stage::Request,
        };
    }

    /// Bytes of its body that have left, of the answer's that have come, and of that in all.
    pub(super) fn progress(&self) -> (usize, usize, Option<u32>) {
        match &self.stage {
            Stage::Upload(upload) => (upload.sent(&self.body), 0, None),
            Stage::Download(download) => {
                let (received, total) = download.progress();
                (self.body.bytes.len(), received, total)
            }
            _ => (0, 0, None),
        }
    }

    /// Bytes of the longest answer that is taken.
    pub(super) const fn longest(&self) -> usize {
        self.body.longest
    }

    /// The confirmable request was answered.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        round_trip: Option<Span>,
        options: &BurstOptions,
        peers: &mut Peers<A>,
    ) -> Verdict {
        self.exchange = None;
        match &mut self.stage {
            _ if message.code == Code::BAD_OPTION => self.is_unsupported(peers),
            Stage::Probe => {
                peers.set_support(self.to, Some(true));
                self.stage = Stage::Upload(Upload::new(&self.body, options, round_trip));
                Verdict::Go
            }
            _ => self.first_answer(now, message, round_trip, options, peers),
        }
    }

    /// The answer to a request that carried the whole body, or the answer to a body that was sent in bursts.
    fn first_answer(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        round_trip: Option<Span>,
        options: &BurstOptions,
        peers: &mut Peers<A>,
    ) -> Verdict {
        if message.code.class() == 2 {
            match block_of(message, Q_BLOCK2) {
                Some(Err(_)) => return Verdict::fail(BurstFailure::Misfit),
                Some(Ok(block)) => {
                    peers.set_support(self.to, Some(true));
                    // Some servers (libcoap 4.3.5) give the first block alone without saying of what: it is asked for again
                    // with all others.
                    let is_nameless = [number::ETAG, number::SIZE2].iter().all(|it| message.option(*it).is_none());
                    let is_asked = matches!(self.stage, Stage::Request) && self.body.bytes.is_empty();
                    if is_asked && is_nameless && block.more {
                        let mut download = Download::of_whole(&self.body, options);
                        download.round_trip = round_trip;
                        self.stage = Stage::Download(download);
                        return Verdict::Go;
                    }
                    // In an acknowledgement it is the only one; in a message of its own the others follow.
                    let mut download = match message.kind {
                        Kind::Acknowledgement => Download::of_rest(&self.body, options),
                        _ if matches!(self.stage, Stage::Request) => Download::of_rest(&self.body, options),
                        _ => Download::of_flowing(&self.body, options, now),
                    };
                    download.round_trip = round_trip;
                    let verdict = download.take(now, message, options.limits.body);
                    self.stage = Stage::Download(download);
                    return verdict;
                }
                None if message.option(number::BLOCK2).is_some() => return self.is_unsupported(peers),
                None => {}
            }
        }
        Verdict::done(message)
    }

    /// An answer to a non-confirmable request came.
    pub(super) fn additional_came(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        options: &BurstOptions,
        peers: &mut Peers<A>,
    ) -> Verdict {
        self.unheard = 0;
        if message.code == Code::BAD_OPTION {
            return self.is_unsupported(peers);
        }
        match &mut self.stage {
            Stage::Upload(upload) => {
                if let Some(verdict) = upload.take(now, message, &mut self.body, options) {
                    return verdict;
                }
                self.first_answer(now, message, None, options, peers)
            }
            Stage::Download(download) => {
                if message.code.class() == 2 && message.code != Code::CONTINUE && block_of(message, Q_BLOCK2).is_none()
                {
                    return self.first_answer(now, message, None, options, peers);
                }
                download.take(now, message, options.limits.body)
            }
            _ => Verdict::Go,
        }
    }

    /// A non-confirmable request drew a reset: an option that is not known, or a server that began anew. Ask whether it
    /// knows bursts, once: one that says so and resets them all the same would be asked for ever.
    pub(super) fn rejected(&mut self, peers: &mut Peers<A>) -> Verdict {
        let is_begun = matches!(&self.stage, Stage::Download(download) if download.has_begun());
        if is_begun || peers.support(self.to) != Some(true) || core::mem::replace(&mut self.is_asked_again, true) {
            return Verdict::fail(BurstFailure::Exchange(crate::Failure::Reset));
        }
        peers.set_support(self.to, None);
        self.recent.clear();
        self.stage = if self.body.is_long() { Stage::Probe } else { Stage::Request };
        Verdict::Go
    }

    /// The server does not know bursts.
    fn is_unsupported(&self, peers: &mut Peers<A>) -> Verdict {
        peers.set_support(self.to, Some(false));
        Verdict::End(End::Unsupported)
    }
}

/// Asks whether a server knows bursts, of its root, for as little as can be asked for.
fn probe(body: &Body) -> Draft {
    let host = body.options.only(|number| matches!(number, number::URI_HOST | number::URI_PORT));
    let least = Block { number: 0, more: false, size: BlockSize::B16 };
    Draft::new(Kind::Confirmable, Code::GET, &host).with_block(Q_BLOCK2, least)
}

/// The request itself for the first block of its answer, which also asks whether the server knows bursts.
fn request(body: &Body) -> Draft {
    let first = Block { number: 0, more: false, size: body.size };
    Draft::new(Kind::Confirmable, body.code, &body.options).with_block(Q_BLOCK2, first).with_payload(&body.bytes)
}
