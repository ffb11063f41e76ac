//! What clients and servers hold to speak securely: certificates, trust anchors, pre-shared keys.
//!
//! All of it is made from files or bytes and checked at once, so that whatever is wrong is told before anything is sent,
//! in one line that names the file. Keys are wiped from what is held here when it is dropped, and never shown.

#[cfg(feature = "_secure")]
mod anchors;
#[cfg(feature = "_secure")]
mod certificate;
#[cfg(feature = "_secure")]
mod client;
#[cfg(feature = "edhoc")]
mod edhoc;
mod identity;
#[cfg(feature = "oscore")]
mod oscore;
#[cfg(feature = "_secure")]
mod pem;
#[cfg(feature = "_secure")]
mod pre_shared;
mod protecting;
#[cfg(feature = "_secure")]
mod server;
#[cfg(feature = "_secure")]
mod verify;

#[cfg(feature = "edhoc")]
pub use edhoc::EdhocCredentials;
#[cfg(all(fuzzing, feature = "edhoc"))]
pub use edhoc::hostile::check as check_edhoc;
pub use identity::PeerIdentity;
#[cfg(feature = "oscore")]
pub use oscore::OscoreContexts;

pub(crate) use identity::Other;
#[cfg(feature = "server")]
pub(crate) use identity::digits;
pub(crate) use protecting::Protecting;

#[cfg(feature = "_secure")]
pub use {
    anchors::TrustAnchors,
    certificate::KeyedCertificate,
    client::ClientSecurity,
    pre_shared::{PreSharedKey, PreSharedKeys},
    server::ServerSecurity,
};

#[cfg(feature = "_secure")]
pub(crate) use verify::{name_of, words};

/// The name that the certificate of a server must have.
#[cfg(feature = "_secure")]
pub(crate) type ServerName = rustls::pki_types::ServerName<'static>;

/// There is nothing to hold.
#[cfg(not(feature = "_secure"))]
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientSecurity;

/// There is nothing to hold.
#[cfg(not(feature = "_secure"))]
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerSecurity;

/// There are no certificates.
#[cfg(not(feature = "_secure"))]
pub(crate) type ServerName = std::convert::Infallible;

/// The algorithms of all secure sessions.
#[cfg(feature = "_secure")]
pub(crate) fn algorithms() -> &'static std::sync::Arc<rustls::crypto::CryptoProvider> {
    use std::sync::{Arc, OnceLock};

    static ALGORITHMS: OnceLock<Arc<rustls::crypto::CryptoProvider>> = OnceLock::new();
    ALGORITHMS.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider()))
}
