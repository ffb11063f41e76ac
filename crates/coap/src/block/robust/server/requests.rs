//! Requests with Q-Block1 or Q-Block2: what they ask for, and who is to answer.

use alloc::vec::Vec;
use core::{fmt::Debug, hash::Hash};

use millpond_control::Instant;

use super::{
    super::{
        Q_BLOCK1, REQUEST_TAG, Whole,
        draft::{self, Draft},
    },
    BurstServer, PendingRequest, Reply, Requester, Step,
    outbound::Served,
    selection::BlockSelection,
};
use crate::{
    RequestId,
    message::{Code, Kind, Message, is_of_transfer, number},
    quota::Source,
    transfer::AddressValidation,
};

impl<A: Copy + Eq + Hash + Debug> BurstServer<A> {
    /// A request came that has one of the options or both.
    ///
    /// # Errors
    /// The code to answer what cannot be.
    pub(super) fn requested(
        &mut self,
        now: Instant,
        (from, source, address_validation): (A, Source, AddressValidation),
        id: RequestId,
        message: &Message<'_>,
    ) -> Result<(), Code> {
        let reply = Self::reply_to(id, message);
        if let Reply::Plain(_) = reply {
            self.steps.push_back(Step::Pass(id));
        }
        // Never both kinds in one message (§4.1); a critical option too many is one that is not known (RFC 7252 §5.4.5).
        if draft::is_block_wise(message) || message.values(Q_BLOCK1).count() > 1 {
            return Err(Code::BAD_OPTION);
        }
        let selection = BlockSelection::read(message, self.parameters_of(from).set)?;
        // A request without Echo may be forged in the name of a peer that has shown that it is there: it draws one block.
        let alone = |selection: BlockSelection| {
            if address_validation == AddressValidation::Validated { selection } else { selection.alone() }
        };
        let selection = selection.map(alone);
        let key = key_of(message);
        match (draft::block_of(message, Q_BLOCK1), selection) {
            (Some(block), selection) => {
                let block = block.map_err(|_| Code::BAD_REQUEST)?;
                let selection =
                    selection.filter(BlockSelection::begins).unwrap_or_else(|| alone(BlockSelection::All(block.size)));
                self.payload_came(now, (from, source), reply, message, key, block, selection)
            }
            (None, Some(selection)) => {
                self.more_asked(now, (from, source, address_validation), reply, message, key, selection)
            }
            (None, None) => Err(Code::BAD_REQUEST),
        }
    }

    /// Blocks of a representation are asked for.
    fn more_asked(
        &mut self,
        now: Instant,
        (from, source, address_validation): (A, Source, AddressValidation),
        reply: Reply,
        message: &Message<'_>,
        key: Vec<u8>,
        selection: BlockSelection,
    ) -> Result<(), Code> {
        let is_confirmable = message.kind == Kind::Confirmable;
        let begins = match selection {
            BlockSelection::All(_) => true,
            // By a non-confirmable message it is more likely asked for because it was lost.
            BlockSelection::First(_) => is_confirmable,
            _ => false,
        };
        let tag = message.option(REQUEST_TAG);
        // Of what is kept no block fits whom nothing was shown of: the answer to it says so.
        if !begins
            && !matches!(address_validation, AddressValidation::Unvalidated(_))
            && let Some(place) = self.kept(from, &key, tag, selection.size())
            && let Some(body) = self.outbound.get_mut(place).filter(|body| !body.is_old(now))
        {
            return match body.serve(now, &selection, message.token, false) {
                Served::Flowing => {
                    if let Reply::To(request, _) = reply {
                        self.first_in_acknowledgement(now, place, request);
                    }
                    Ok(())
                }
                Served::PastEnd => Err(Code::BAD_REQUEST),
            };
        }
        let options = draft::options_of(message, |number| !is_of_transfer(number));
        let id = self.add_pending(now, (from, source), key, selection, reply, None)?;
        self.events.push_back((id, from, Whole { code: message.code, options, body: message.payload().to_vec() }));
        Ok(())
    }

    /// The next block that leaves is the answer to a confirmable request.
    pub(super) fn first_in_acknowledgement(&mut self, now: Instant, place: usize, request: RequestId) {
        let leaving = self.outbound.get_mut(place).map(|body| body.poll(now));
        self.steps.push_back(match leaving {
            Some(Ok((_, draft))) => Step::Respond(request, draft),
            // Nothing leaves at once, or never for this request's token: it needs an answer all the same.
            _ => Step::Respond(request, Draft::bare(Code::CONTINUE)),
        });
    }

    pub(super) fn add_pending(
        &mut self,
        now: Instant,
        (from, source): (A, Source),
        key: Vec<u8>,
        selection: BlockSelection,
        reply: Reply,
        tag: Option<Vec<u8>>,
    ) -> Result<RequestId, Code> {
        if self.pending.len() >= self.options.limits.requests {
            return Err(Code::SERVICE_UNAVAILABLE);
        }
        self.made = self.made.wrapping_add(1);
        let id = RequestId::of_burst(self.made);
        let until = now.after(self.parameters_of(from).lifetime);
        let requester = Requester::default();
        self.pending.push(PendingRequest { id, from, source, requester, key, selection, reply, tag, until });
        Ok(id)
    }
}

/// What of a request distinguishes one representation from another: its method and all options that are part of a cache key
/// (RFC 7252 §5.4.6), but for those of the transfer and the format of the request's own body.
fn key_of(message: &Message<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    key.push(message.code.to_byte());
    for option in message.options() {
        if option.is_cache_key() && !matches!(option.number, number::CONTENT_FORMAT | number::REQUEST_TAG) {
            key.extend_from_slice(&option.number.to_be_bytes());
            key.extend_from_slice(&(option.value.len() as u16).to_be_bytes());
            key.extend_from_slice(option.value);
        }
    }
    key
}
