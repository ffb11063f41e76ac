//! Robust block-wise transfer (RFC 9177, Q-Block1 and Q-Block2): bodies in bursts of non-confirmable messages, of which
//! the receiver asks again for what it misses.
//!
//! A [`CoapStack`](crate::transfer::CoapStack) speaks it where it is asked to ([`ClientRequest::q_block`](crate::transfer::ClientRequest::q_block)) and where it
//! takes it ([`Config::q_block`](crate::transfer::Config::q_block)).
//!
//! | | Q-Block1: body in the requests | Q-Block2: body in the responses |
//! |---|---|---|
//! | "go on" | 2.31 with the last number of the set | a request with the first number of the next set and M set |
//! | "these are missing" | 4.08 with the numbers as a CBOR sequence | a request with one Q-Block2 for each, M not set |
//!
//! Support must be probed with a confirmable request first: a server that does not know the options answers it with 4.02
//! and ignores a non-confirmable one (§4.1).

mod client;
pub(crate) mod draft;
mod missing;
mod paced;
mod receiver;
mod sender;
mod server;
mod settings;

use alloc::vec::Vec;

use millpond_control::{Chance, Instant, Span};

use crate::message::{Code, OptionList};

pub use client::BurstFailure;
pub(crate) use client::{BurstClient, BurstId, End};
use missing::{missing_blocks, read_missing_blocks};
use receiver::{Accepted, BurstReceiver, Receipt, ReceiverAction};
use sender::{BurstSender, Feedback, Leaving};
pub(crate) use server::{BurstServer, Requester};
pub(crate) use settings::{BurstLimits, BurstOptions};

/// Option Q-Block1.
pub const Q_BLOCK1: u16 = 19;
/// Option Q-Block2.
pub const Q_BLOCK2: u16 = 31;
/// Option Request-Tag (RFC 9175 §3), by which payloads of one body are known.
const REQUEST_TAG: u16 = 292;
/// Content-Format of a list of missing blocks.
const MISSING_BLOCKS_FORMAT: u16 = 272;

/// What a client or a server of bursts wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next<T> {
    /// It put something into the endpoint: drain that, then ask again.
    Again,
    /// Something happened.
    Event(T),
    /// Nothing until then, unless the endpoint tells something.
    Sleep(Instant),
    /// Nothing, unless the endpoint tells something.
    Idle,
}

/// A request or a response that came in bursts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) code: Code,
    /// Those of a request without what is of the transfer; of a response those of its first block.
    pub(crate) options: OptionList,
    pub(crate) body: Vec<u8>,
}

/// Parameters, which both ends must share (RFC 9177 §6.2, §7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstParameters {
    /// MAX_PAYLOADS: messages of a set, sent without a pause.
    pub set: u32,
    /// NON_TIMEOUT: the pause after a set is drawn from this to half as much again.
    pub pause: Span,
    /// NON_RECEIVE_TIMEOUT: how long a receiver waits before it asks for what is missing; doubles with every repeat.
    pub patience: Span,
    /// NON_MAX_RETRANSMIT: how often it asks without any answer before it gives up.
    pub repeats: u8,
    /// NON_PARTIAL_TIMEOUT: how long part of a body is kept.
    pub lifetime: Span,
    /// Whether bursts become a paced flow after the first set ([`BulkPace`](millpond_control::BulkPace)), and whether gaps are told,
    /// and asked for again, as soon as the round trip lets one know of them. Not in RFC 9177; the other end need not know.
    pub paced: bool,
}

impl BurstParameters {
    /// The defaults of RFC 9177 §7.2.
    pub const RFC9177: Self = Self {
        set: 10,
        pause: Span::from_secs(2),
        patience: Span::from_secs(4),
        repeats: 4,
        lifetime: Span::from_secs(247),
        paced: false,
    };

    /// The same, paced after the first set.
    pub const PACED: Self = Self { paced: true, ..Self::RFC9177 };

    /// Refuses what RFC 9177 §7.2 forbids. Who sends and takes bursts does not, and takes what is out of range as the nearest
    /// that is in it.
    pub(crate) fn check(&self) -> Result<(), BurstParametersError> {
        let (patience, least) = (self.patience, self.pause.scaled(3, 2).plus(Span::from_secs(1)));
        match self.set {
            0 => Err(BurstParametersError::EmptySet),
            _ if patience < least => Err(BurstParametersError::Patience { patience, least }),
            _ => Ok(()),
        }
    }

    /// NON_TIMEOUT_RANDOM: drawn once for each body.
    const fn drawn_pause(&self, chance: Chance) -> Span {
        chance.between(self.pause, self.pause.scaled(3, 2))
    }

    /// The set that a block belongs to.
    const fn set_of(&self, number: u32) -> u32 {
        match number.checked_div(self.set) {
            Some(set) => set,
            None => number,
        }
    }
}

/// Why bursts cannot be like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum BurstParametersError {
    /// MAX_PAYLOADS of zero.
    #[error("set is 0, so that nothing could ever leave; use 1 or more")]
    EmptySet,
    /// NON_RECEIVE_TIMEOUT must exceed the longest pause by a second (RFC 9177 §7.2).
    #[error("patience is {patience}; use {least} or more: half as much again as pause, and 1 s")]
    Patience {
        /// What was asked for.
        patience: Span,
        /// The shortest that can be.
        least: Span,
    },
}

#[cfg(test)]
#[path = "../../../tests/robust/mod.rs"]
mod tests;
