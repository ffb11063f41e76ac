//! Robust block-wise transfer (RFC 9177, Q-Block1 and Q-Block2): bodies in bursts of non-confirmable messages, of which
//! the receiver asks again for what it misses.
//!
//! [`BurstClient`] and [`BurstServer`] speak it beside an [`Endpoint`](crate::Endpoint): whole bodies in, whole bodies out.
//! Below them a [`BurstSender`] has the body and a [`BurstReceiver`] collects it, whichever of client and server they are. All
//! have timers and no clock: tell them what happens, then ask what to do.
//!
//! | | Q-Block1: body in the requests | Q-Block2: body in the responses |
//! |---|---|---|
//! | "go on" | 2.31 with the last number of the set | a request with the first number of the next set and M set |
//! | "these are missing" | 4.08 with the numbers as [`missing_blocks`] | a request with one Q-Block2 for each, M not set |
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

use millpond_control::{Chance, Span};

pub(crate) use draft::{OwnedOptions, is_robust};

pub use client::{AskRefused, BurstAsk, BurstClient, BurstFailure, BurstId, Carried, ClientAct, ClientTold};
pub use missing::{BadMissingBlocks, missing_blocks, read_missing_blocks};
pub use receiver::{Accepted, BurstReceiver, Receipt, Wanted};
pub use sender::{Asked, BurstSender, Leaving};
pub use server::{AnswerRefused, BurstAnswer, BurstRequestId, BurstServer, ServerAct, ServerTold};
pub use settings::{BurstLimits, BurstOptions, BurstOptionsError};

/// Option Q-Block1.
pub const Q_BLOCK1: u16 = 19;
/// Option Q-Block2.
pub const Q_BLOCK2: u16 = 31;
/// Option Request-Tag (RFC 9175 §3), by which payloads of one body are known.
pub const REQUEST_TAG: u16 = 292;
/// Content-Format of a list of missing blocks.
pub const MISSING_BLOCKS_FORMAT: u16 = 272;

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
    /// Whether bursts become a paced flow at the first complaint, silence or rise of delay
    /// ([`BulkPace`](millpond_control::BulkPace)), and whether gaps are told, and asked for again, as soon as the round trip
    /// lets one know of them. Not in RFC 9177; the other end need not know.
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

    /// The same, paced where there is a reason.
    pub const PACED: Self = Self { paced: true, ..Self::RFC9177 };

    /// NON_TIMEOUT_RANDOM: drawn once for each body.
    #[must_use]
    pub const fn drawn_pause(&self, chance: Chance) -> Span {
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
