use alloc::vec::Vec;

use millpond_control::{Instant, Span};

use super::super::{Closing, Settings, StreamRefused};
use crate::{block::robust::draft::memory_of, message::Code, transfer::AskFailure};

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
