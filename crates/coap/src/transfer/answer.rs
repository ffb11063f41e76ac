use core::{fmt, num::NonZeroU32};

use super::SharedBody;
use crate::block::BlockSize;
use crate::message::{Code, Kind};

/// A whole response, or a representation for an observer.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// How it leaves if it can no longer be piggybacked: with `None`, as its request came. Of notifications, with
    /// `None`, the stack makes those confirmable that must be.
    pub kind: Option<Kind>,
    /// Response code.
    pub code: Code,
    /// Options in ascending order of their numbers, without those that are the stack's own: Observe, Block1, Block2,
    /// Size1 (but with 4.13), Size2, Q-Block1, Q-Block2, Request-Tag. An ETag is added if the body needs several blocks and
    /// none is given.
    pub options: &'a [(u16, &'a [u8])],
    /// The body; empty for none.
    pub body: &'a [u8],
    /// The same as the application and others hold it, if they do: then nothing costs by its length. Else what does not fit a
    /// message is hashed for its ETag each time, and copied for its later blocks.
    pub shared: Option<&'a SharedBody>,
    /// The largest blocks for this one, if smaller than the stack's.
    pub block: Option<BlockSize>,
    /// The body is one block of a longer one that the application cuts by itself, as asked for by a request in
    /// [pieces](super::CoapStack::take_pieces): it leaves as it is, and `options` may have Block1, Block2, Size1 and Size2.
    pub is_piece: bool,
    /// The application knows that who asked is where it says (RFC 9175 §2.4): what is kept of this for later blocks goes after
    /// what is kept for unvalidated peers, as what is kept for peers does that have answered something.
    pub is_proved: bool,
}

impl<'a> Answer<'a> {
    /// Without body, as the request came, in the stack's blocks.
    #[must_use]
    pub const fn new(code: Code, options: &'a [(u16, &'a [u8])]) -> Self {
        Self { kind: None, code, options, body: &[], shared: None, block: None, is_piece: false, is_proved: false }
    }

    /// The same with this body.
    #[must_use]
    pub const fn with_body(self, body: &'a [u8]) -> Self {
        Self { body, shared: None, ..self }
    }

    /// The same with this body, which others may hold too.
    #[must_use]
    pub fn with_shared_body(self, body: &'a SharedBody) -> Self {
        Self { body, shared: Some(body), ..self }
    }

    /// The same for somebody who is known to be where it says.
    #[must_use]
    pub const fn for_proved(self) -> Self {
        Self { is_proved: true, ..self }
    }

    /// The same as a piece of a longer body.
    #[must_use]
    pub const fn as_piece(self) -> Self {
        Self { is_piece: true, ..self }
    }
}

/// Names one observer until it is gone. Never names another one of the same stack within 2³¹ uses of its slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObserverId {
    pub(super) slot: u32,
    pub(super) generation: NonZeroU32,
}

impl fmt::Debug for ObserverId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObserverId({}.{})", self.slot, self.generation)
    }
}

/// Why an observer is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Gone {
    /// It answered a notification with a reset (RFC 7641 §3.6).
    Rejected,
    /// It did not acknowledge a confirmable notification (RFC 7641 §4.5).
    Unreachable,
    /// It asked with Observe 1 (RFC 7641 §3.6).
    Deregistered,
    /// The same client registered again with the same token and has a new name (RFC 7641 §4.1).
    Replaced,
    /// The layer refused a notification.
    Refused,
    /// The connection has ended.
    Closed,
}
