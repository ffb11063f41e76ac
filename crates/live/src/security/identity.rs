//! Who the other side has proved to be.

use bytes::Bytes;

/// Who the other side of a secure session has proved to be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PeerIdentity {
    /// It has the pre-shared key of this identity.
    PreSharedKey(Bytes),
    /// It has the key of the first of these certificates (X.509 in DER), which was accepted.
    Certificate(Vec<Bytes>),
}

/// Who the other side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    /// This side asks.
    Server,
    /// This side serves.
    Client,
}

impl Other {
    #[cfg(feature = "_secure")]
    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}
