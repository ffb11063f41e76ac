//! What a server of bursts tells, and what it is answered.

use alloc::vec::Vec;

use millpond_control::Instant;

use crate::{
    body::SharedBody,
    message::{Code, OptionList},
};

/// Names a request until it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BurstRequestId(pub(super) u64);

impl BurstRequestId {
    /// Requests are numbered one after the other.
    pub(crate) const fn number(self) -> u64 {
        self.0
    }

    pub(crate) const fn of(number: u64) -> Self {
        Self(number)
    }
}

/// An answer, with a body of any length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BurstAnswer<'a> {
    /// A response code.
    pub(crate) code: Code,
    /// Options in ascending order, without those of the transfer itself. With an ETag, that is the representation's.
    pub(crate) options: &'a [(u16, &'a [u8])],
    /// The body.
    pub(crate) body: &'a [u8],
    /// The same, if others hold it too.
    pub(crate) shared: Option<&'a SharedBody>,
    /// The client is known to be at its address.
    pub(crate) is_proved: bool,
}

/// Why an answer was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerRefused {
    /// The request was answered, or dropped because nobody answered it for too long.
    UnknownRequest,
    /// Not a response.
    Code(Code),
    /// The body is longer than allowed. The request can still be answered.
    TooLarge { length: usize, limit: usize },
}

/// What the server wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerAct<A> {
    /// It put something into the endpoint: drain that, then ask again.
    Again,
    /// The application learns something.
    Told(ServerTold<A>),
    /// Nothing until then, unless the endpoint tells something.
    Sleep(Instant),
    /// Nothing, unless the endpoint tells something.
    Idle,
}

/// What the application learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerTold<A> {
    /// A request with its whole body. Answer it.
    Request {
        /// To answer by.
        id: BurstRequestId,
        /// From whom.
        from: A,
        /// Its method.
        code: Code,
        /// Its options, without those of the transfer.
        options: OptionList,
        /// Its body.
        body: Vec<u8>,
    },
}
