//! What is asked of a client of bursts, and what it tells.

use alloc::vec::Vec;

use millpond_control::Instant;

use super::super::super::BlockSize;
use crate::{
    Failure, Refused,
    message::{Code, OptionList},
};

/// Names a transfer until its end has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BurstId(pub(super) u64);

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BurstAsk<'a> {
    /// A method.
    pub(crate) code: Code,
    /// Options in ascending order, without those of the transfer itself.
    pub(crate) options: &'a [(u16, &'a [u8])],
    /// The body; empty for none. One that fits a block goes in one confirmable request.
    pub(crate) body: &'a [u8],
    /// The size of blocks to send, and the largest to ask for.
    pub(crate) size: BlockSize,
}

/// Why nothing was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskRefused {
    /// Not a method.
    Code(Code),
    /// As many transfers are under way as may be.
    TooManyTransfers { limit: usize },
    /// The body is longer than allowed.
    TooLarge { length: usize, limit: usize },
}

/// What the client wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientAct {
    /// It put something into the endpoint: drain that, then ask again.
    Again,
    /// The application learns something.
    Told(ClientTold),
    /// Nothing until then, unless the endpoint tells something.
    Sleep(Instant),
    /// Nothing, unless the endpoint tells something.
    Idle,
}

/// The end of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientTold {
    /// The server answered.
    Done {
        /// Which transfer.
        id: BurstId,
        /// The code of the answer, which may be an error.
        code: Code,
        /// Its options, of the first block if there were several.
        options: OptionList,
        /// The whole body.
        body: Vec<u8>,
    },
    /// There is no whole answer.
    Failed {
        /// Which transfer.
        id: BurstId,
        /// Why.
        why: BurstFailure,
    },
    /// The server does not know the options, or keeps no body that comes in bursts. Nothing of the request was carried out.
    Unsupported {
        /// Which transfer.
        id: BurstId,
    },
}

/// Why a transfer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BurstFailure {
    /// No answer to any of the requests.
    #[error("the server did not answer")]
    Silent,
    /// Missing blocks did not come however often they were asked for, or the server never had enough.
    #[error("blocks were missing to the end")]
    Incomplete,
    /// A confirmable request failed.
    #[error("a confirmable request failed: {0:?}")]
    Exchange(Failure),
    /// The endpoint refused a message.
    #[error("a message could not be sent: {0}")]
    Refused(Refused),
    /// The body of the answer is longer than allowed.
    #[error("the body has more than {limit} bytes")]
    TooLarge {
        /// What is allowed.
        limit: usize,
    },
    /// A block without ETag's body length (Size2), or one that does not fit the others.
    #[error("the server sent blocks that do not belong together")]
    Misfit,
    /// The body changed again and again while it was fetched, or the server lost what it had of it.
    #[error("the body had to be begun anew too often")]
    Unstable,
}
