use alloc::vec::Vec;

use super::ReceivedRequest;
use crate::message::{Code, Kind, MessageId, Token, WriteError, Writer, number};

/// Why a request must not be processed (RFC 8613 §8.2).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It has no OSCORE option.
    #[error("the request is not protected")]
    NotProtected,
    /// The option, or what was encrypted, cannot be read, or there is no payload.
    #[error("the protected request is malformed")]
    Malformed,
    /// It is for no context that is known.
    #[error("the request is for another security context")]
    UnknownContext,
    /// It was received before, or is too old to tell.
    #[error("the request was received before, or is too old to tell")]
    Replay,
    /// It was changed on its way, or protected with another key.
    #[error("the request is not authentic")]
    DecryptionFailed,
    /// Nothing may be taken before a [bound](super::Context::bound_to_store) is stored.
    #[error("the sequence numbers of the context are used up to the stored bound: store the next one")]
    NotStored,
    /// It is authentic, and what was received before the restart is not known. Answer it with a
    /// [challenge](super::Context::challenge).
    #[error("the request may be a replay from before the restart: challenge its sender")]
    Unsure(ReceivedRequest),
}

impl Refusal {
    /// The code of the answer, which is not protected.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Malformed => Code::BAD_OPTION,
            Self::DecryptionFailed => Code::BAD_REQUEST,
            Self::NotStored => Code::SERVICE_UNAVAILABLE,
            Self::NotProtected | Self::UnknownContext | Self::Replay | Self::Unsure(_) => Code::UNAUTHORIZED,
        }
    }

    /// The payload of the answer, by the words of RFC 8613 §7.4 and §8.2.
    #[must_use]
    pub const fn diagnostic(&self) -> &'static str {
        match self {
            Self::NotProtected => "OSCORE required",
            Self::Malformed => "Failed to decode COSE",
            Self::UnknownContext => "Security context not found",
            Self::Replay => "Replay detected",
            Self::DecryptionFailed => "Decryption failed",
            Self::NotStored | Self::Unsure(_) => "",
        }
    }

    /// Appends the answer, which no proxy keeps: its Max-Age is 0.
    ///
    /// # Errors
    /// A kind that carries no response.
    pub fn write(&self, kind: Kind, id: MessageId, token: Token, into: &mut Vec<u8>) -> Result<usize, WriteError> {
        let mut writer = Writer::start(into, kind, self.code(), id, token);
        writer.uint_option(number::MAX_AGE, 0)?;
        writer.payload(self.diagnostic().as_bytes())?;
        writer.finish()
    }
}
