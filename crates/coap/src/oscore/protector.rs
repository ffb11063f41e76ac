use alloc::vec::Vec;
use core::fmt::Debug;

use super::{ProtectError, ReceivedRequest, Refusal, ResponseFault, SentRequest};
use crate::message::{Kind, Message, MessageId, Token};

/// Who has the [contexts](super::Context) by which an [endpoint](crate::Endpoint::protected_by) protects all its messages. Endpoints that are
/// alike share one, so it is for it to keep sequence numbers of one context from being taken twice, and to store
/// their [bounds](super::Context::bound_to_store).
pub trait Protector: Debug + Send + Sync {
    /// As [`Context::protect_request`](super::Context::protect_request).
    ///
    /// # Errors
    /// As there.
    fn protect_request(&self, request: &Message<'_>, into: &mut Vec<u8>) -> Result<SentRequest, ProtectError>;

    /// As [`Context::unprotect_response`](super::Context::unprotect_response).
    ///
    /// # Errors
    /// As there.
    fn unprotect_response(
        &self,
        request: &mut SentRequest,
        response: &Message<'_>,
        into: &mut Vec<u8>,
    ) -> Result<(), ResponseFault>;

    /// As [`Context::unprotect_request`](super::Context::unprotect_request), of the context that the request names.
    ///
    /// # Errors
    /// As there.
    fn unprotect_request(&self, request: &Message<'_>, into: &mut Vec<u8>) -> Result<ReceivedRequest, Refusal>;

    /// As [`Context::protect_response`](super::Context::protect_response), of the context that the request named.
    ///
    /// # Errors
    /// As there.
    fn protect_response(
        &self,
        request: &mut ReceivedRequest,
        response: &Message<'_>,
        into: &mut Vec<u8>,
    ) -> Result<(), ProtectError>;

    /// As [`Context::challenge`](super::Context::challenge), of the context that the request named.
    ///
    /// # Errors
    /// As there.
    fn challenge(
        &self,
        request: &mut ReceivedRequest,
        kind: Kind,
        id: MessageId,
        token: Token,
        into: &mut Vec<u8>,
    ) -> Result<(), ProtectError>;
}
