//! What clients and servers hold to speak securely: certificates, trust anchors, pre-shared keys.
//!
//! All of it is made from files or bytes and checked at once, so that whatever is wrong is told before anything is sent,
//! in one line that names the file. Keys are wiped from what is held here when it is dropped, and never shown.

mod anchors;
mod certificate;
mod client;
mod identity;
mod pem;
mod pre_shared;
mod server;
mod verify;

use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, ring};

pub use anchors::TrustAnchors;
pub use certificate::KeyedCertificate;
pub use client::ClientSecurity;
pub use identity::PeerIdentity;
pub use pre_shared::{PreSharedKey, PreSharedKeys};
pub use server::ServerSecurity;

pub(crate) use verify::{Other, name_of, words};

/// The algorithms of all secure sessions.
pub(crate) fn algorithms() -> &'static Arc<CryptoProvider> {
    static ALGORITHMS: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    ALGORITHMS.get_or_init(|| Arc::new(ring::default_provider()))
}
