//! How a transfer in bursts ends.

use super::super::Whole;
use crate::{Failure, Refused};

/// Names a transfer until its outcome was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BurstId {
    pub(super) number: u64,
    /// Where the stack keeps the request.
    pub(crate) slot: u32,
}

/// The end of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The server answered, which may be by an error.
    Done(Whole),
    /// There is no whole answer.
    Failed(BurstFailure),
    /// The server does not know the options, or keeps no body that comes in bursts. Nothing of the request was carried out.
    Unsupported,
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
