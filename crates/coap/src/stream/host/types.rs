use alloc::vec::Vec;

use millpond_control::{Instant, Span};

use super::super::{Closing, Lost, Settings, StreamRefused};
use crate::{
    block::{BlockSize, DownloadError, UploadError, robust::draft::memory_of},
    message::{Code, Token},
};

/// How a host behaves and what it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long a representation is kept for requests of its later blocks, and a request's body whose next block does
    /// not come.
    pub lifetime: Span,
    /// Asks under way.
    pub asks: usize,
    /// Bytes of one request's body, of one's own and of the other side's.
    pub body: usize,
    /// Bodies of requests being collected at a time.
    pub bodies: usize,
    /// Bytes of representations kept for later blocks, with all that tells them apart. The one that was not asked for the
    /// longest goes first. So many bytes again may be held of requests that were not answered and of observers; who asks
    /// for more is answered with 5.03.
    pub kept: usize,
    /// Observers.
    pub observers: usize,
}

impl Config {
    /// 247 s as over UDP; 256 asks, bodies of 1 MiB and 16 of them, 4 MiB kept, 64 observers: one connection of many.
    pub const DEFAULT: Self =
        Self { lifetime: Span::from_secs(247), asks: 256, body: 1 << 20, bodies: 16, kept: 4 << 20, observers: 64 };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A request with its whole body, and what is wanted for it.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Method.
    pub code: Code,
    /// Options in ascending order of their numbers, without those that are the host's own: Observe, Block1, Block2,
    /// Size1, Size2, Q-Block1, Q-Block2, Request-Tag.
    pub options: &'a [(u16, &'a [u8])],
    /// The body; empty for none.
    pub body: &'a [u8],
    /// Blocks in which the response is asked for from the first request on; with `None` the server chooses.
    pub early: Option<BlockSize>,
    /// Every new representation is wanted (RFC 7641), of GET and FETCH.
    pub observe: bool,
    /// Bytes of the longest body taken.
    pub longest: usize,
    /// A token for its first message, for all blocks of its body, and for an observation, instead of one that is made. It
    /// waits while another request has the token.
    pub token: Option<Token>,
    /// When it fails if it has got no answer by then; an observation, if it has got no first one.
    pub deadline: Option<Instant>,
}

impl<'a> Ask<'a> {
    /// Without body; the server chooses its blocks; bodies of at most 1 MiB.
    #[must_use]
    pub const fn new(code: Code, options: &'a [(u16, &'a [u8])]) -> Self {
        Self { code, options, body: &[], early: None, observe: false, longest: 1 << 20, token: None, deadline: None }
    }

    /// The same with this body.
    #[must_use]
    pub const fn with_body(self, body: &'a [u8]) -> Self {
        Self { body, ..self }
    }

    /// The same as an observation.
    #[must_use]
    pub const fn observing(self) -> Self {
        Self { observe: true, ..self }
    }
}

/// A whole response, or a representation for an observer.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Response code.
    pub code: Code,
    /// Options in ascending order of their numbers, without those that are the host's own. An ETag is added if the
    /// body needs several blocks and none is given.
    pub options: &'a [(u16, &'a [u8])],
    /// The body; empty for none.
    pub body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Without body.
    #[must_use]
    pub const fn new(code: Code, options: &'a [(u16, &'a [u8])]) -> Self {
        Self { code, options, body: &[] }
    }

    /// The same with this body.
    #[must_use]
    pub const fn with_body(self, body: &'a [u8]) -> Self {
        Self { body, ..self }
    }
}

/// Names one ask of a host until its end has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub(super) u64);

/// Names one request of the other side until it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(super) u64);

/// Names one observer until it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObserverId(pub(super) u64);

/// What the host wants next.
#[derive(Debug)]
pub enum Output<'h> {
    /// Write these bytes to the stream.
    Transmit(&'h [u8]),
    /// The application learns something.
    Event(Event),
    /// Close the stream; it is the last output. Bytes handed out before are to be written first.
    Close(Closing),
    /// Nothing until then, unless there is input.
    Sleep(Instant),
    /// Nothing until there is input.
    Idle,
}

/// What the application learns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A whole request came. Answer it with [`answer`](super::Host::answer).
    Request {
        /// By which to answer it.
        id: RequestId,
        /// Its method.
        code: Code,
        /// Its options, without those of the transfer.
        options: Vec<(u16, Vec<u8>)>,
        /// Its body.
        body: Vec<u8>,
        /// It asks for every new representation. Answer it with
        /// [`accept_observer`](super::Host::accept_observer) to grant that.
        wants_to_observe: bool,
    },
    /// A whole response, or a representation of what is observed.
    Answer {
        /// Of which ask.
        ask: AskId,
        /// Its code.
        code: Code,
        /// Its options, without those of the transfer.
        options: Vec<(u16, Vec<u8>)>,
        /// Its body.
        body: Vec<u8>,
        /// Further ones may follow. Otherwise the ask is over.
        goes_on: bool,
    },
    /// An ask is over without a further answer. Every ask ends with this or with an answer that does not go on.
    Failed {
        /// Which one.
        ask: AskId,
        /// Why.
        why: AskFailure,
    },
    /// An observer is no more: it asked so, or the connection ends.
    ObserverGone {
        /// Which one.
        observer: ObserverId,
    },
    /// The other side said what it can do.
    Settings(Settings),
    /// The answer to a [`ping`](super::Host::ping).
    Pong {
        /// All that left before the ping was processed.
        custody: bool,
    },
    /// A ping was not answered in time: the connection may be dead. Nothing else follows from it.
    PongMissing,
    /// The other side wants an orderly end: nothing more can be asked, and what it asked should be answered.
    Released {
        /// Where to connect instead.
        alternative: Option<Vec<u8>>,
        /// Seconds during which not to connect again.
        hold_off: Option<u32>,
    },
}

impl Event {
    /// Bytes held beside this value.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Request { options, body, .. } | Self::Answer { options, body, .. } => {
                memory_of(options).saturating_add(body.capacity())
            }
            Self::Released { alternative: Some(address), .. } => address.capacity(),
            _ => 0,
        }
    }
}

/// Why an ask ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskFailure {
    /// The connection ended, or the request was lost with it.
    #[error("the connection ended before the answer")]
    Lost(Lost),
    /// The application no longer wanted it.
    #[error("it was cancelled")]
    Cancelled,
    /// It had got no answer by its deadline.
    #[error("there was no answer by its deadline")]
    Deadline,
    /// The response's body did not become whole.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The request's body did not arrive.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// One of its messages could not be sent.
    #[error(transparent)]
    Refused(#[from] StreamRefused),
    /// The response has a critical option that is not understood, or may not stand there (RFC 7252 §5.4.1).
    #[error("the response has option {number}, which is critical and not understood there")]
    BadOption {
        /// Its number.
        number: u16,
    },
    /// The server sent something as Block1 or Block2 that is no block.
    #[error("the server sent a block option that is none")]
    BadBlock,
}

/// Why the host does not do what it was asked for. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The connection refused.
    #[error(transparent)]
    Connection(#[from] StreamRefused),
    /// An option that the host sets by itself.
    #[error("option {number} is the host's own: it follows from the other fields")]
    OwnOption {
        /// Its number.
        number: u16,
    },
    /// Only GET and FETCH can observe.
    #[error("{0} cannot observe: only GET and FETCH")]
    NotObservable(Code),
    /// As many asks are under way as may.
    #[error("{limit} asks are under way already (config.asks)")]
    TooManyAsks {
        /// How many may.
        limit: usize,
    },
    /// The body is longer than allowed.
    #[error("a body of {length} bytes, but at most {limit} are allowed (config.body)")]
    TooLarge {
        /// Its length.
        length: usize,
        /// What is allowed.
        limit: usize,
    },
    /// The other side takes neither messages so long nor blocks. The request can still be answered.
    #[error("the other side takes messages of {limit} bytes and no blocks")]
    TooLongForPeer {
        /// Its Max-Message-Size.
        limit: u32,
    },
    /// The request was answered, or its connection ended.
    #[error("no such request: it was answered, or the connection ended")]
    UnknownRequest,
    /// The observer is gone.
    #[error("no such observer: it is gone")]
    UnknownObserver,
}
