use crate::protection::ProtectError;
use core::convert::Infallible;

use super::{Frame, FrameError, Settings, signal::BadSignal};
use crate::{
    ExchangeId, Failure, RequestId,
    message::{Code, WriteError},
    output::Output,
};

/// What a connection wants next: bytes that are to be written to the stream leave.
pub type ConnectionOutput<'a> = Output<&'a [u8], Event<'a>, Infallible, Closing>;

/// What the application should know.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The other side asks.
    Request {
        /// To answer by.
        id: RequestId,
        /// What it asks.
        frame: Frame<'a>,
    },
    /// The other side answers, or notifies an observer.
    Response {
        /// The request.
        id: ExchangeId,
        /// The answer.
        frame: Frame<'a>,
        /// No further answer will come: always, unless the request observes.
        last: bool,
    },
    /// A request of ours will not be answered.
    Failed {
        /// The request.
        id: ExchangeId,
        /// Why.
        why: Failure,
    },
    /// A request of ours that wants no response (RFC 7967) is among the bytes handed out before, and is over with that.
    Left {
        /// The request.
        id: ExchangeId,
    },
    /// A request that was refused because its token was that of one which wanted no response (RFC 7967) may have it now.
    TokenFree,
    /// The other side no longer observes: it asked so, or the connection ends.
    Unobserved {
        /// Its request.
        id: RequestId,
    },
    /// The other side said what it can do.
    Settings(Settings),
    /// The answer to a [`ping`](super::Connection::ping).
    Pong {
        /// All that left before the ping was processed.
        custody: bool,
    },
    /// A ping was not answered in time: the connection may be dead. Nothing else follows from it.
    PongMissing,
    /// The other side wants an orderly end: nothing more can be asked, and what it asked should be answered.
    Released {
        /// Where to connect instead.
        alternative: Option<&'a [u8]>,
        /// Seconds during which not to connect again.
        hold_off: Option<u32>,
    },
    /// The other side ends the connection at once ([`Closing::AbortedByPeer`] follows).
    Aborted {
        /// Why, for people (RFC 8323 §5.6); may be empty, and need not be text.
        diagnostic: &'a [u8],
    },
    /// A response to nothing that is under way; ignored.
    Unasked {
        /// Its code.
        code: Code,
    },
}

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
