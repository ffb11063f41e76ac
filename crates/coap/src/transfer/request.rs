use core::{fmt, num::NonZeroU32};

use millpond_control::Instant;

use crate::block::{Block, BlockSize, DownloadError, UploadError, robust::BurstFailure};
use crate::endpoint::{self, Failure, RetransmitOptions};
use crate::layer::Room;
use crate::message::{Code, Kind, Token};
use crate::protection::ResponseFault;
use crate::stream::StreamRefused;

/// A request with its whole body, and what is wanted for it.
#[derive(Clone, Copy, Debug)]
pub struct ClientRequest<'a> {
    /// [`Kind::Confirmable`] or [`Kind::NonConfirmable`]: all messages of it.
    pub kind: Kind,
    /// Method.
    pub code: Code,
    /// Options in ascending order of their numbers, without those that are the stack's own: Observe, Block1, Block2,
    /// Size1, Size2, Q-Block1, Q-Block2, Request-Tag. With No-Response (RFC 7967) its body is one message, and it may end
    /// [unanswered](super::Event::Unanswered).
    pub options: &'a [(u16, &'a [u8])],
    /// The body; empty for none.
    pub body: &'a [u8],
    /// Blocks in which a body leaves that is longer than one of them.
    pub upload: BlockSize,
    /// Blocks in which the response is asked for from the first request on; with `None` the server chooses.
    pub early: Option<BlockSize>,
    /// The length of the response's body is wanted before its end (Size2, RFC 7959 §4), for [`Progress::total`].
    pub wants_total: bool,
    /// Every new representation is wanted (RFC 7641), of GET and FETCH.
    pub observe: bool,
    /// Bytes of the longest body taken.
    pub longest: usize,
    /// A token for its first message, and for an observation, instead of one that the endpoint makes.
    pub token: Option<Token>,
    /// When it fails if it has got no answer by then; an observation, if it has got no first one. One that does not want all
    /// responses and of which nothing else is awaited is unanswered then, and does not fail.
    pub deadline: Option<Instant>,
    /// How long copies of each of its messages are sent.
    pub retransmit: RetransmitOptions,
    /// Bodies of more than one block travel in bursts, by Q-Block1 and Q-Block2 (RFC 9177), to and from a peer that knows
    /// these; from any other block by block. Whether it does is asked once, by a confirmable request. `kind`, `token` and
    /// `retransmit` are for what goes block by block, and so are all observations.
    pub q_block: bool,
    /// All blocks of its response are asked for with the token of the first, for servers that know a transfer by its token.
    /// RFC 7959 leaves the choice; one token each is what keeps an answer that is late from being taken for the next one's.
    pub one_token: bool,
    /// It is about one block, and its answer is told as it came.
    pub piece: Option<Piece>,
}

/// One block of a body that the application takes, or sends, block by block, so that it is never held whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Block1 of the request, whose body is this block, or over a stream these [blocks](super::CoapStack::blocks).
    pub block1: Option<Block>,
    /// Block2: the block that is asked for. Over a stream it may be several (BERT, RFC 8323 §6): the other side's settings are
    /// awaited then, and where they allow one it is one.
    pub block2: Option<Block>,
    /// Request-Tag (RFC 9175 §3): which blocks are of one body.
    pub tag: Option<u32>,
    /// Size1: the bytes of the body that begins with this block, if they are known.
    pub total: Option<u32>,
}

impl Piece {
    /// Over a stream: fewer blocks are asked for in a message where the other side does not allow several. Of one that knows
    /// none a body that is a block is asked for, or sent, as what it is: whole.
    pub(super) fn keep_to(&mut self, room: &Room) {
        let may_name = |block: &Block| room.block_wise || !room.is_settled || block.number > 0 || block.more;
        let asked =
            |block: Block| if room.bert { block } else { Block { size: block.size.min(BlockSize::B1024), ..block } };
        (self.block1, self.block2) = (self.block1.filter(may_name), self.block2.filter(may_name).map(asked));
    }
}

impl<'a> ClientRequest<'a> {
    /// Confirmable, without body; blocks of 1024 bytes, the server chooses its own; bodies of at most 1 MiB.
    #[must_use]
    pub const fn new(code: Code, options: &'a [(u16, &'a [u8])]) -> Self {
        Self {
            kind: Kind::Confirmable,
            code,
            options,
            body: &[],
            upload: BlockSize::B1024,
            early: None,
            wants_total: false,
            observe: false,
            longest: 1 << 20,
            token: None,
            deadline: None,
            retransmit: RetransmitOptions::DEFAULT,
            one_token: false,
            piece: None,
            q_block: false,
        }
    }

    /// The same with this body.
    #[must_use]
    pub const fn with_body(self, body: &'a [u8]) -> Self {
        Self { body, ..self }
    }

    /// The same in bursts, if the peer knows them.
    #[must_use]
    pub const fn in_bursts(self) -> Self {
        Self { q_block: true, ..self }
    }

    /// The same as an observation.
    #[must_use]
    pub const fn observing(self) -> Self {
        Self { observe: true, ..self }
    }
}

/// Names one request until its end has been told. Never names another one of the same stack within 2³¹ uses of its slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientRequestId {
    pub(super) slot: u32,
    pub(super) generation: NonZeroU32,
}

impl fmt::Debug for ClientRequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientRequestId({}.{})", self.slot, self.generation)
    }
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of its body that the server has acknowledged.
    pub sent: usize,
    /// Bytes of the response's body so far.
    pub received: usize,
    /// Bytes of that body in all, if the server said so.
    pub total: Option<u32>,
}

/// Why a request ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestFailure {
    /// One of its message exchanges failed.
    #[error("an exchange of it failed: {0:?}")]
    Exchange(Failure),
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
    /// The endpoint refused one of its later messages.
    #[error(transparent)]
    Refused(#[from] endpoint::Refused),
    /// The server sent something as Block1 or Block2 that is no block.
    #[error("the server sent a block option that is none")]
    BadBlock,
    /// The stack holds as many bytes as it may.
    #[error("the stack may not hold more (limits.bytes)")]
    OutOfBytes,
    /// Over a stream: one of its messages could not be sent.
    #[error(transparent)]
    Connection(#[from] StreamRefused),
    /// Over a stream: the response has a critical option that is not understood, or may not stand there (RFC 7252 §5.4.1).
    /// An endpoint takes no such response.
    #[error("the response has option {number}, which is critical and not understood there")]
    BadOption {
        /// Its number.
        number: u16,
    },
    /// A body in bursts did not become whole, or did not arrive.
    #[error(transparent)]
    Burst(BurstFailure),
    /// The response is not protected as it has to be (RFC 8613).
    #[error(transparent)]
    Protection(ResponseFault),
}
