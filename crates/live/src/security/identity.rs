//! Who the other side has proved to be.

use bytes::Bytes;

/// Who the other side of a secure session, or the sender of a protected request, has proved to be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PeerIdentity {
    /// It has the pre-shared key of this identity.
    PreSharedKey(Bytes),
    /// It has the key of the first of these certificates (X.509 in DER), which was accepted.
    Certificate(Vec<Bytes>),
    /// It has the security context of OSCORE (RFC 8613) that this side knows by this ID: its sender ID there, or where the context was agreed
    /// upon (EDHOC) the kid of its credential.
    Oscore(Bytes),
}

impl PeerIdentity {
    /// What it is called: the identity of the key; of a context the digits of its ID; of a certificate the names of hosts and the URIs in
    /// its subjectAltName, or without any its common name (RFC 7252 §9.1.3.3).
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::PreSharedKey(identity) => vec![String::from_utf8_lossy(identity).into_owned()],
            Self::Certificate(chain) => chain.first().map(|first| names_in(first)).unwrap_or_default(),
            Self::Oscore(id) => vec![digits(id)],
        }
    }
}

/// In hexadecimal notation.
pub(crate) fn digits(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Without security nobody has shown any.
#[cfg(not(feature = "_secure"))]
fn names_in(_certificate: &[u8]) -> Vec<String> {
    Vec::new()
}

#[cfg(feature = "_secure")]
use super::certificate::names_in;

#[cfg(all(feature = "server", feature = "tcp"))]
impl PeerIdentity {
    /// Bytes of it.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::PreSharedKey(identity) | Self::Oscore(identity) => identity.len(),
            Self::Certificate(chain) => chain.iter().map(Bytes::len).sum(),
        }
    }
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
