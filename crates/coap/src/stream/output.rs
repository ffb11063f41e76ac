use crate::protection::ProtectError;
use core::convert::Infallible;

use super::{FrameError, signal::BadSignal};
use crate::{
    Event,
    message::{Code, WriteError},
    output::{Output, Transmit},
};

/// What a connection wants next: bytes that are to be written to the stream leave.
pub type ConnectionOutput<'a> = Output<Transmit<'a, ()>, Event<'a, ()>, Infallible, Closing>;

/// Why the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Closing {
    /// After a Release, of whichever side, with everything answered.
    Released,
    /// After a Release of ours, unanswered for too long.
    ReleaseTimedOut,
    /// The other side sent Abort.
    AbortedByPeer,
    /// The application wanted it.
    Aborted,
    /// The other side sent bytes that are no frame. An Abort tells it so.
    BadFrame(FrameError),
    /// The other side sent a signal that is not understood, or with a value that cannot be. An Abort tells it so.
    BadSignal(BadSignal),
    /// Its first message was not its settings (CSM). An Abort tells it so.
    NoSettings,
    /// The other side sent more pings that wait for its requests to be answered than anybody needs. An Abort tells it so.
    TooManyPings,
    /// The stream ended. Nothing more can be written.
    StreamEnded,
}

/// Why the connection does not do what it was asked for. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamRefused {
    /// A request needs a method, a response a response code.
    #[error("code {0} does not make a request or response of this")]
    Code(Code),
    /// The message cannot be written, or is longer than the other side takes.
    #[error(transparent)]
    Message(#[from] WriteError),
    /// The message cannot be protected, or is not (RFC 8613).
    #[error(transparent)]
    Protection(ProtectError),
    /// The token is in use.
    #[error("a request with this token is under way")]
    TokenInUse,
    /// The other side does not take tokens as long as ours (RFC 8974 §2.2.1).
    #[error(
        "tokens of {length} bytes are wished, but the server takes at most {limit}; use a token length of {limit} or less"
    )]
    TokenTooLong {
        /// How long they would be.
        length: u16,
        /// How long they may be.
        limit: u32,
    },
    /// The request was answered already.
    #[error("no such request: it was answered, or its connection ended")]
    UnknownRequest,
    /// As many requests are under way as may be.
    #[error("{limit} requests are under way already (options.requests)")]
    TooManyRequests {
        /// How many may be.
        limit: u32,
    },
    /// The connection is being released: nothing more can be asked.
    #[error("the connection is being released")]
    Releasing,
    /// The connection ended.
    #[error("the connection has ended")]
    Closed,
}

impl From<ProtectError> for StreamRefused {
    fn from(why: ProtectError) -> Self {
        match why {
            ProtectError::Message(why) => Self::Message(why),
            why => Self::Protection(why),
        }
    }
}
