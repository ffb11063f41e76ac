use alloc::vec::Vec;

use super::{Context, OscoreOption, ProtectError, ReceivedRequest, Refusal, ResponseFault, SentRequest};
use crate::message::{Kind, Message, MessageId, Token, number};
use crate::parts;
use crate::quota::Source;

/// Which context is meant.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// That of requests that are sent.
    Sends,
    /// That of requests that were sent: it only takes an answer.
    Sent,
    /// That which a request names.
    Named(&'a OscoreOption<'a>),
    /// That with this recipient ID, which a request has named.
    Of(&'a [u8]),
}

impl Which<'_> {
    /// Whether it may be this one, of those that somebody has. Who sends takes the first.
    #[must_use]
    pub fn may_be(&self, context: &Context) -> bool {
        match self {
            Self::Sends | Self::Sent => true,
            Self::Named(option) => context.is_for(option),
            Self::Of(recipient_id) => context.recipient_id() == *recipient_id,
        }
    }
}

/// Who has the [contexts](super::Context) by which an [endpoint](crate::Endpoint::protected_by) protects all its messages. Endpoints that are
/// alike share one, so it is for it to keep sequence numbers of one context from being taken twice, and to store
/// their [bounds](super::Context::bound_to_store).
pub trait Protector: Send + Sync {
    /// Calls this with the context that is meant, once, if there is one. Its bound has been stored before if it may be about to send.
    fn with_context(&mut self, which: Which<'_>, act: &mut dyn FnMut(&mut Context));

    /// Whether messages that none of the contexts is for go on as they are, in both directions, as at a proxy that others' protected
    /// messages pass. Else requests are refused then, and nothing is sent in the clear.
    fn passes_others(&self) -> bool {
        false
    }

    /// Whether a request names one of the contexts, or asks to [establish](Self::establish) one. Asked where others
    /// [pass](Self::passes_others).
    fn is_for(&self, _request: &Message<'_>) -> bool {
        true
    }

    /// As [`Context::protect_request`](super::Context::protect_request). Who has several contexts may choose by an OSCORE option of the request,
    /// which is not sent, and [notes](SentRequest::set_by) for the responses which it was.
    ///
    /// # Errors
    /// As there.
    fn protect_request(&mut self, request: &Message<'_>, into: &mut Vec<u8>) -> Result<SentRequest, ProtectError> {
        done(self, Which::Sends, |context| context.protect_request(request, into)).unwrap_or(Err(ProtectError::Plain))
    }

    /// As [`Context::unprotect_response`](super::Context::unprotect_response).
    ///
    /// # Errors
    /// As there.
    fn unprotect_response(
        &mut self,
        request: &mut SentRequest,
        response: &Message<'_>,
        into: &mut Vec<u8>,
    ) -> Result<(), ResponseFault> {
        let taken = done(self, Which::Sent, |context| context.unprotect_response(request, response, into));
        taken.unwrap_or(Err(ResponseFault::OtherContext))
    }

    /// Answers a request that is not protected, if it asks for a context (EDHOC, RFC 9528): appends a message, whose kind, message ID and
    /// token do not count. Others are [refused](Refusal::NotProtected). Who gets 5.03 although its address is not validated is asked to show that
    /// it is there, and comes again (RFC 9175).
    fn establish(&mut self, _request: &Message<'_>, _from: Source, _into: &mut Vec<u8>) -> Option<()> {
        None
    }

    /// As [`Context::unprotect_request`](super::Context::unprotect_request), of the context that the request names.
    ///
    /// # Errors
    /// As there.
    fn unprotect_request(&mut self, request: &Message<'_>, into: &mut Vec<u8>) -> Result<ReceivedRequest, Refusal> {
        if !parts::SERVER {
            return Err(Refusal::UnknownContext);
        }
        let option = request.option(number::OSCORE).ok_or(Refusal::NotProtected)?;
        let option = OscoreOption::decode(option).map_err(|_| Refusal::Malformed)?;
        let taken = done(self, Which::Named(&option), |context| context.unprotect_request(request, into));
        taken.unwrap_or(Err(Refusal::UnknownContext))
    }

    /// As [`Context::protect_response`](super::Context::protect_response), of the context that the request named.
    ///
    /// # Errors
    /// As there.
    fn protect_response(
        &mut self,
        request: &mut ReceivedRequest,
        response: &Message<'_>,
        into: &mut Vec<u8>,
    ) -> Result<(), ProtectError> {
        if !parts::SERVER {
            return Err(ProtectError::Plain);
        }
        let kid = request.kid;
        let protected =
            done(self, Which::Of(kid.as_bytes()), |context| context.protect_response(request, response, into));
        protected.unwrap_or(Err(ProtectError::Plain))
    }

    /// As [`Context::challenge`](super::Context::challenge), of the context that the request named.
    ///
    /// # Errors
    /// As there.
    fn challenge(
        &mut self,
        request: &mut ReceivedRequest,
        kind: Kind,
        id: MessageId,
        token: Token,
        into: &mut Vec<u8>,
    ) -> Result<(), ProtectError> {
        if !parts::SERVER {
            return Err(ProtectError::Plain);
        }
        let kid = request.kid;
        let made = done(self, Which::Of(kid.as_bytes()), |context| context.challenge(request, kind, id, token, into));
        made.unwrap_or(Err(ProtectError::Plain))
    }
}

/// What came of it; none if there is no such context.
fn done<T>(by: &mut (impl Protector + ?Sized), which: Which<'_>, act: impl FnOnce(&mut Context) -> T) -> Option<T> {
    let (mut act, mut done) = (Some(act), None);
    by.with_context(which, &mut |context| {
        if let Some(act) = act.take() {
            done = Some(act(context));
        }
    });
    done
}
