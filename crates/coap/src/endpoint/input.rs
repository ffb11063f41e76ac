use core::{fmt, num::NonZeroU32};

use millpond_control::{Instant, Span};

use super::Transmission;
use crate::message::{Code, HEADER, Kind, OptionHeader, Token, WriteError};
use crate::protection::ProtectError;

/// A request or response to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// [`Kind::Confirmable`] or [`Kind::NonConfirmable`]. A response that can still be piggybacked is sent in the
    /// acknowledgement, whichever is asked for.
    pub kind: Kind,
    /// Method or response code.
    pub code: Code,
    /// Options in ascending order of their numbers.
    pub options: &'a [(u16, &'a [u8])],
    /// Payload; empty for none.
    pub payload: &'a [u8],
    /// A token to use instead of one that the endpoint makes. A request waits while another one with the same token is
    /// under way to its peer. Not looked at in responses, which carry their request's.
    pub token: Option<Token>,
    /// How long copies of it are sent, if it leaves as a confirmable message.
    pub retransmit: RetransmitOptions,
}

/// What one message wants otherwise than its endpoint's [`Transmission`] and its peer's controller have it.
///
/// Timers belong to the controller: it learns from every exchange with the peer, and every exchange's timer is backed
/// off for the same reason. One message may be repeated more often or less, and wait longer; it never waits shorter than
/// the controller says, because how fast is safe is not a matter of one message (RFC 8085 §3.1.1). NSTART and
/// PROBING_RATE are the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct RetransmitOptions {
    /// MAX_RETRANSMIT (RFC 7252 §4.8): copies after the first, at most 250; `None` for the endpoint's. A response with fewer than
    /// that counts as delivered if it is acknowledged before one with all of them would have been given up.
    pub max_retransmit: Option<u8>,
    /// The first wait is no shorter than this (ACK_TIMEOUT of RFC 7252 §4.8, without ACK_RANDOM_FACTOR), and a wait
    /// that had to be lengthened doubles (§4.2) until the controller's own is longer. Zero leaves all to the controller.
    pub ack_timeout: Span,
}

impl RetransmitOptions {
    /// As endpoint and controller have it.
    pub const DEFAULT: Self = Self { max_retransmit: None, ack_timeout: Span::ZERO };
}

impl<'a> Outgoing<'a> {
    /// A confirmable message without payload.
    #[must_use]
    pub const fn confirmable(code: Code, options: &'a [(u16, &'a [u8])]) -> Self {
        Self {
            kind: Kind::Confirmable,
            code,
            options,
            payload: &[],
            token: None,
            retransmit: RetransmitOptions::DEFAULT,
        }
    }

    /// A non-confirmable message without payload.
    #[must_use]
    pub const fn non_confirmable(code: Code, options: &'a [(u16, &'a [u8])]) -> Self {
        Self { kind: Kind::NonConfirmable, ..Self::confirmable(code, options) }
    }

    /// The same message with this payload.
    #[must_use]
    pub const fn with_payload(self, payload: &'a [u8]) -> Self {
        Self { payload, ..self }
    }

    /// Bytes that it takes with this token.
    #[must_use]
    pub fn length_with(&self, token: Token) -> usize {
        let mut after = 0;
        let each = |(number, value): &(u16, &[u8])| {
            let header = OptionHeader::new(after, *number, value).map_or(0, OptionHeader::size);
            after = *number;
            header.saturating_add(value.len())
        };
        let options = self.options.iter().map(each).fold(0_usize, usize::saturating_add);
        let payload = if self.payload.is_empty() { 0 } else { self.payload.len().saturating_add(1) };
        HEADER.saturating_add(token.encoded_len()).saturating_add(options).saturating_add(payload)
    }

    /// The same message, retransmitted so.
    #[must_use]
    pub const fn with_retransmit(self, retransmit: RetransmitOptions) -> Self {
        Self { retransmit, ..self }
    }
}

/// Names one message that the endpoint was asked to send, until its end has been told. Never names another one of the
/// same endpoint within 2³¹ uses of its slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId {
    pub(crate) slot: u32,
    pub(crate) generation: NonZeroU32,
}

/// Names one request that the application has been handed, until it answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    pub(crate) slot: u32,
    pub(crate) generation: NonZeroU32,
}

impl fmt::Debug for ExchangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExchangeId({}.{})", self.slot, self.generation)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({}.{})", self.slot, self.generation)
    }
}

/// Why the endpoint does not do what it was asked for. Nothing was sent, and nothing waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Only confirmable and non-confirmable messages can be asked for.
    #[error("{0} cannot be asked for: only CON and NON")]
    Kind(Kind),
    /// A request needs a method, a response a response code.
    #[error("code {0} does not make a request or response of this")]
    Code(Code),
    /// More retransmissions than can be counted.
    #[error("retransmit.max_retransmit is {asked}; use at most {}", Transmission::MOST_RETRANSMISSIONS)]
    TooManyCopies {
        /// What was asked for.
        asked: u8,
    },
    /// The message cannot be written.
    #[error(transparent)]
    Message(#[from] WriteError),
    /// The message cannot be protected, or is not (RFC 8613).
    #[error(transparent)]
    Protection(ProtectError),
    /// The request was answered already, or dropped.
    #[error("no such request: it was answered, or dropped unanswered after EXCHANGE_LIFETIME")]
    UnknownRequest,
    /// The token of this peer, of more than 8 bytes (RFC 8974), made room for those of others.
    #[error("the long token was forgotten for want of room")]
    TokenForgotten,
    /// As many messages are held back for this peer as may be.
    #[error("{limit} messages wait for this peer already (limits.waiting_per_peer)")]
    TooManyWaiting {
        /// How many may wait.
        limit: u16,
    },
    /// As many tokens stay in use towards this peer as may.
    #[error("{limit} subscriptions to this peer are open already (limits.subscriptions_per_peer)")]
    TooManySubscriptions {
        /// How many may be open.
        limit: u16,
    },
    /// All beginnings of tokens are claimed already.
    #[error("no token of {length} bytes is free to be claimed; use a longer token_length, of which 4 bytes count")]
    Claim {
        /// How long they are.
        length: u8,
    },
    /// As many requests to groups are remembered as may be, or their tokens are used up.
    #[error("{limit} requests to groups are remembered already; the tokens of such requests stay in use for minutes")]
    TooManyGroupRequests {
        /// How many may be.
        limit: u16,
    },
    /// The token that was given is one on which a group answers.
    #[error("this token is that of a request to a group; use another, or leave the choice to the endpoint")]
    TokenOfGroup,
    /// Nothing may wait, and the message cannot leave at once because all message IDs of this peer were used within
    /// their lifetime (RFC 7252 §4.4).
    #[error("all message IDs to this peer are in use, the next is free at {until:?}")]
    NoMessageId {
        /// When the next ID is free.
        until: Instant,
    },
    /// As many peers are known as may be, and none can be forgotten.
    #[error("{limit} peers are known already and none can be forgotten yet (limits.peers)")]
    TooManyPeers {
        /// How many may be known.
        limit: u32,
        /// When the one idle for longest can be forgotten; none is idle if there is no such time.
        until: Option<Instant>,
    },
    /// A part of the stack that this build was made without.
    #[error("millpond-coap was built without the feature `{feature}`")]
    LeftOut {
        /// The cargo feature of that part.
        feature: &'static str,
    },
    /// The endpoint holds as many bytes as it may.
    #[error("the endpoint may not hold more than {limit} bytes (limits.bytes)")]
    OutOfBytes {
        /// How many it may hold.
        limit: usize,
    },
}

impl Refused {
    /// Whether another message could have been taken in place of this one.
    pub(crate) const fn is_of_message(&self) -> bool {
        match self {
            Self::Kind(_) | Self::Code(_) | Self::TooManyCopies { .. } | Self::Message(_) | Self::LeftOut { .. } => {
                true
            }
            Self::Protection(why) => !matches!(why, ProtectError::NotStored),
            _ => false,
        }
    }
}

impl From<ProtectError> for Refused {
    fn from(why: ProtectError) -> Self {
        match why {
            ProtectError::Message(why) => Self::Message(why),
            why => Self::Protection(why),
        }
    }
}
