//! What a host has to do once its endpoint is drained, and whose a message is.

use alloc::{boxed::Box, vec::Vec};
use core::num::NonZeroU32;

use super::{Refusal, asked::Asked};
use crate::block::Block;
use crate::endpoint::{ExchangeId, RequestId};
use crate::message::Token;

/// An input for the endpoint, which takes one at a time.
#[derive(Debug)]
pub(super) enum Act<A> {
    /// The ask in this slot has something to send.
    Send(u32),
    /// The ask in this slot registers again.
    Renew(u32),
    Deregister(Box<Asked<A>>, Token),
    /// No answer to a request of ours is wanted any more, or none that is still to come.
    Cancel(ExchangeId),
    ForgetGroup(ExchangeId),
    /// A block of a body is answered with 2.31, and with this as Block1.
    Continue(RequestId, Block),
    /// A request is answered with an error, without the application.
    Refuse(RequestId, Refusal),
    /// A request is answered with a block of what is kept in this slot.
    Serve {
        request: RequestId,
        slot: u32,
        generation: NonZeroU32,
    },
    /// A request is answered by what its first copy is answered with.
    Drop(RequestId),
    /// The observer in this slot has something to be told.
    Notify(u32),
    /// A request is answered with the code, options and payload of these bytes.
    Answer(RequestId, Vec<u8>),
}

/// Whose a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// That of the ask in this slot.
    Ask(u32),
    /// That of the observer in this slot.
    Observer(u32),
}
