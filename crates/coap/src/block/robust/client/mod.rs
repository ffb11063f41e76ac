//! The client's side: whole bodies asked for and sent in bursts.

mod download;
mod outcome;
mod peers;
mod transfer;
mod upload;

use alloc::{collections::VecDeque, vec::Vec};
use core::{fmt::Debug, hash::Hash};

use millpond_control::{Chance, ChanceSeed, Instant, Purpose};

use super::{
    super::BlockSize,
    BurstOptions, MISSING_BLOCKS_FORMAT, Next,
    draft::{Draft, tag_of, uint_of},
};
use crate::{
    Endpoint, Event, Failure, Refused,
    message::{Code, Kind, MessageId, OptionList, is_of_transfer, number},
    transfer::{ClientRequest, Refused as StackRefused},
};

pub use outcome::BurstFailure;
pub(crate) use outcome::{BurstId, End};

use peers::Peers;
use transfer::{Body, Step, Transfer, Verdict};

/// A client of Q-Block1 and Q-Block2 beside an [`Endpoint`], for any number of peers.
///
/// It owns neither endpoint nor clock. Whatever the endpoint tells goes to [`take`](Self::take) first; once the
/// endpoint is drained, [`act`](Self::act) puts the next message into it, until it says to sleep.
///
/// # What it does
///
/// Whether a peer knows the options is asked once, with a confirmable request (§4.1): for a body in the response it is
/// the request itself, for its first block; for a body in the request it is a GET of the server's root. Of a peer that
/// answers 4.02, or with Block2, it is told that it does not know them: the client can go on as RFC 7959 has it. Then
/// requests are non-confirmable, with tokens of their own.
///
/// * **Silence** ends a transfer after NON_MAX_RETRANSMIT repetitions, NON_RECEIVE_TIMEOUT and its doubles apart; after a
///   body in the request without any answer the next body waits as PROBING_RATE has it.
/// * The **last payload** of a body in the requests is repeated in the same way if no answer comes: RFC 9177 does not say
///   how a lost answer is made good, and a server answers a repeated block as if it were new (§4.3).
#[derive(Debug)]
pub(crate) struct BurstClient<A> {
    options: BurstOptions,
    chance: ChanceSeed,
    node: u32,
    made: u64,
    peers: Peers<A>,
    transfers: Vec<Transfer<A>>,
    closing: VecDeque<Close<A>>,
    events: VecDeque<(BurstId, End)>,
}

/// What is left to do once a transfer is over.
#[derive(Clone, Copy, Debug)]
enum Close<A> {
    Claim(crate::ExchangeId),
    Exchange(crate::ExchangeId),
    Reset(A, MessageId),
}

/// Whether the transfer itself sets the option in requests.
const fn is_ours(number: u16) -> bool {
    is_of_transfer(number) && number != number::OBSERVE
}

/// Resets to late complaints that may wait to leave.
const MOST_RESETS: usize = 64;

impl<A: Copy + Eq + Hash + Debug> BurstClient<A> {
    /// The client nothing yet. `chance` and `node` address the words of chance for pauses and first tags.
    #[must_use]
    pub(crate) fn new(options: BurstOptions, chance: ChanceSeed, node: u32) -> Self {
        Self {
            options,
            chance,
            node,
            made: 0,
            peers: Peers::new(options.limits.peers),
            transfers: Vec::new(),
            closing: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Input: a transfer is wanted, in blocks of the size that is asked for early, or of the upload's. It begins with the next
    /// [`act`](Self::act). A body that fits a block goes in one confirmable request.
    ///
    /// # Errors
    /// What exceeds a limit. Nothing is begun then.
    pub(crate) fn request(
        &mut self,
        now: Instant,
        to: A,
        request: &ClientRequest<'_>,
        slot: u32,
    ) -> Result<BurstId, StackRefused> {
        let limits = self.options.limits;
        if !request.code.is_request() {
            return Err(Refused::Code(request.code).into());
        }
        if self.transfers.len() >= limits.bodies {
            let limit = u32::try_from(limits.bodies).unwrap_or(u32::MAX);
            return Err(StackRefused::TooManyRequests { limit });
        }
        if request.body.len() > limits.body.min(limits.bytes.saturating_sub(self.memory())) {
            return Err(StackRefused::OutOfBytes { limit: limits.bytes });
        }
        self.made = self.made.wrapping_add(1);
        let id = BurstId { number: self.made, slot };
        let body = Body {
            longest: request.longest,
            code: request.code,
            options: OptionList::sorted(request.options.iter().copied().filter(|(number, _)| !is_ours(*number))),
            bytes: request.body.to_vec(),
            size: request.early.unwrap_or(request.upload).min(BlockSize::B1024),
            tag: self.tag(),
            pause: self.options.parameters.drawn_pause(self.word(0)),
        };
        let held = self.peers.held_until(now, to);
        self.transfers.push(Transfer::new(id, to, body, held));
        Ok(id)
    }

    /// Input: a transfer is no longer wanted. Nothing more is reported of it, and complaints of the server draw resets, by
    /// which it learns of it (§4.3). False if it was over before.
    pub(crate) fn cancel(&mut self, id: BurstId) -> bool {
        self.events.retain(|(other, _)| *other != id);
        let Some(index) = self.transfers.iter().position(|transfer| transfer.id == id) else { return false };
        let transfer = self.transfers.remove(index);
        self.close(&transfer);
        true
    }

    /// Input: something that the endpoint told. True if it belongs to a transfer and nobody else need look at it.
    pub(crate) fn take(&mut self, now: Instant, event: &Event<'_, A>) -> bool {
        match *event {
            Event::Response { exchange, message, sample, .. } => {
                let Some(index) = self.with_exchange(exchange) else { return false };
                let round_trip = sample.and_then(|sample| sample.exact()).map(|exact| exact.span());
                self.hand(index, |transfer, options, peers| {
                    transfer.answered(now, &message, round_trip, options, peers)
                });
                true
            }
            Event::AdditionalResponse { exchange, message, .. } => {
                let Some(index) = self.transfers.iter().position(|transfer| transfer.has_claim(exchange)) else {
                    return false;
                };
                self.hand(index, |transfer, options, peers| transfer.additional_came(now, &message, options, peers));
                true
            }
            Event::Failed { exchange, why, .. } => {
                let Some(index) = self.with_exchange(exchange) else { return false };
                self.finish(index, Verdict::fail(BurstFailure::Exchange(why)));
                true
            }
            Event::Rejected { exchange, .. } => {
                let Some(index) = self.transfers.iter().position(|transfer| transfer.sent(exchange)) else {
                    return false;
                };
                self.hand(index, |transfer, _, peers| transfer.rejected(peers));
                true
            }
            Event::Undelivered { exchange, why, .. } => {
                let Some(index) = self.transfers.iter().position(|transfer| transfer.sent(exchange)) else {
                    return false;
                };
                // One that was merely lost is made good like any other.
                if why == Failure::Reset {
                    self.hand(index, |transfer, _, peers| transfer.rejected(peers));
                }
                true
            }
            Event::Delivered { exchange, .. } => self.transfers.iter().any(|transfer| transfer.sent(exchange)),
            Event::Acknowledged { exchange, .. } => self.with_exchange(exchange).is_some(),
            Event::Late { from, ref message } => {
                let complains = message.kind == Kind::NonConfirmable
                    && message.code == Code::REQUEST_ENTITY_INCOMPLETE
                    && uint_of(message, number::CONTENT_FORMAT) == Some(MISSING_BLOCKS_FORMAT.into());
                if complains && self.closing.len() < MOST_RESETS {
                    self.closing.push_back(Close::Reset(from, message.id));
                }
                complains
            }
            _ => false,
        }
    }

    /// What comes next. Call it when the endpoint is drained; it makes at most one input to it.
    pub(crate) fn act(&mut self, now: Instant, endpoint: &mut Endpoint<A>) -> Next<(BurstId, End)> {
        let mut sleep: Option<Instant> = None;
        let mut index = 0_usize;
        while let Some(transfer) = self.transfers.get_mut(index) {
            let step = transfer.step(now, &self.options, &mut self.peers);
            let to = transfer.to;
            match step {
                Step::Nothing => {}
                Step::Wait(until) => sleep = Some(sleep.map_or(until, |other| other.min(until))),
                Step::Claim => {
                    match endpoint.claim(now, to) {
                        Ok((exchange, prefix)) => transfer.claimed(exchange, prefix),
                        Err(why) => self.finish(index, Verdict::fail(BurstFailure::Refused(why))),
                    }
                    return Next::Again;
                }
                Step::Request(draft) => {
                    match draft.lend(|message| endpoint.request(now, to, message)) {
                        Ok(exchange) => transfer.requested(exchange),
                        Err(why) => self.finish(index, Verdict::fail(BurstFailure::Refused(why))),
                    }
                    return Next::Again;
                }
                Step::NonConfirmable(draft) => {
                    self.send(now, index, &draft, endpoint);
                    return Next::Again;
                }
                Step::End(end) => {
                    self.finish(index, Verdict::End(*end));
                    continue;
                }
            }
            index = index.saturating_add(1);
        }
        match self.closing.pop_front() {
            Some(Close::Claim(exchange)) => endpoint.unsubscribe(now, exchange),
            Some(Close::Exchange(exchange)) => endpoint.cancel(now, exchange),
            Some(Close::Reset(from, id)) => {
                endpoint.reject_late(now, from, id);
                true
            }
            None => {
                return match (self.events.pop_front(), sleep) {
                    (Some(event), _) => Next::Event(event),
                    (None, Some(until)) => Next::Sleep(until),
                    (None, None) => Next::Idle,
                };
            }
        };
        Next::Again
    }

    /// Transfers that are under way.
    #[cfg(test)]
    pub(crate) fn transfers(&self) -> usize {
        self.transfers.len()
    }

    /// Whether a peer is known to take bursts; `None` if it was not asked yet.
    #[must_use]
    pub(crate) fn is_supported_by(&self, peer: A) -> Option<bool> {
        self.peers.support(peer)
    }

    /// How far a transfer has come: bytes of its body that have left, of the answer's that have come, and of that in all if
    /// the server said so. `None` if it is over.
    #[must_use]
    pub(crate) fn progress(&self, id: BurstId) -> Option<(usize, usize, Option<u32>)> {
        self.transfers.iter().find(|transfer| transfer.id == id).map(Transfer::progress)
    }

    /// Bytes held, this value itself not included.
    #[must_use]
    pub(crate) fn memory(&self) -> usize {
        let entries = self.transfers.capacity().saturating_mul(size_of::<Transfer<A>>());
        self.transfers.iter().fold(entries, |sum, transfer| sum.saturating_add(transfer.memory()))
    }
}

impl<A: Copy + Eq + Hash + Debug> BurstClient<A> {
    fn with_exchange(&self, exchange: crate::ExchangeId) -> Option<usize> {
        self.transfers.iter().position(|transfer| transfer.has_exchange(exchange))
    }

    /// Lets a transfer take something in, and acts on what it makes of it.
    fn hand(&mut self, index: usize, take: impl FnOnce(&mut Transfer<A>, &BurstOptions, &mut Peers<A>) -> Verdict) {
        let mut options = self.options;
        let room = options.limits.bytes.saturating_sub(self.memory());
        let Some(transfer) = self.transfers.get_mut(index) else { return };
        options.limits.body = options.limits.body.min(room).min(transfer.longest());
        let verdict = take(transfer, &options, &mut self.peers);
        self.finish(index, verdict);
    }

    /// A non-confirmable request leaves. For one that the endpoint has no room for: a payload waits for a pause, and
    /// anything else counts as lost on the way.
    fn send(&mut self, now: Instant, index: usize, draft: &Draft, endpoint: &mut Endpoint<A>) {
        let Some(transfer) = self.transfers.get_mut(index) else { return };
        let (to, token) = (transfer.to, transfer.next_token());
        match draft.lend(|message| endpoint.send_of_body(now, to, token, message)) {
            Ok(exchange) => transfer.left(now, exchange, draft.len()),
            Err(why @ (Refused::Message(_) | Refused::Code(_) | Refused::Kind(_))) => {
                self.finish(index, Verdict::fail(BurstFailure::Refused(why)));
            }
            Err(_) => transfer.held_back(now, draft),
        }
    }

    /// Ends a transfer if its time has come.
    fn finish(&mut self, index: usize, verdict: Verdict) {
        let Verdict::End(end) = verdict else { return };
        if index < self.transfers.len() {
            let transfer = self.transfers.remove(index);
            self.close(&transfer);
            self.events.push_back((transfer.id, end));
        }
    }

    fn close(&mut self, transfer: &Transfer<A>) {
        self.closing.extend(transfer.claim().map(Close::Claim));
        self.closing.extend(transfer.exchange().map(Close::Exchange));
    }

    fn word(&self, which: u32) -> Chance {
        self.chance.part(9_177).at(Purpose::Dither, [self.node, self.made as u32, which, 0])
    }

    /// A Request-Tag: begins anywhere and counts up (§4.3).
    fn tag(&self) -> Vec<u8> {
        let first = self.chance.part(9_177).wide(Purpose::Start, [self.node, 0, 0, 0]);
        tag_of(first, self.made, self.options.tag_length)
    }
}
