//! What a client holds.

use std::sync::Arc;

use rustls::client::{WebPkiServerVerifier, danger::ServerCertVerifier};

use super::{KeyedCertificate, PreSharedKey, TrustAnchors, algorithms, verify::AcceptAny};
use crate::Error;

/// What a client has to speak securely: whom it trusts, and how it proves who it is.
///
/// Without anything set it trusts the system's authorities and shows no certificate. `coaps+tcp` always has certificates;
/// `coaps` has the pre-shared key if there is one, and certificates otherwise.
#[derive(Clone, Debug, Default)]
pub struct ClientSecurity {
    anchors: Option<TrustAnchors>,
    certificate: Option<KeyedCertificate>,
    pre_shared_key: Option<PreSharedKey>,
    accepts_any: bool,
}

impl ClientSecurity {
    /// The system's authorities are trusted, and nothing is shown.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Servers must have a certificate of these authorities, instead of those of the system.
    #[must_use]
    pub fn trust(mut self, anchors: TrustAnchors) -> Self {
        self.anchors = Some(anchors);
        self
    }

    /// Shows this certificate to servers that ask for one.
    #[must_use]
    pub fn certificate(mut self, certificate: KeyedCertificate) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// Speaks with this key over `coaps`.
    #[must_use]
    pub fn pre_shared_key(mut self, key: PreSharedKey) -> Self {
        self.pre_shared_key = Some(key);
        self
    }

    /// Accepts any certificate, whichever peer made it and for whatever name. Anybody on the path can read and change
    /// everything then: for trials alone.
    #[must_use]
    pub const fn dangerously_accept_any_certificate(mut self) -> Self {
        self.accepts_any = true;
        self
    }

    /// What checks the certificate of a server.
    pub(crate) fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, Error> {
        if self.accepts_any {
            return Ok(Arc::new(AcceptAny));
        }
        let roots = self.anchors.clone().unwrap_or_default().roots()?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(algorithms())).build();
        Ok(verifier.map_err(|error| Error::Setting { name: "security", reason: error.to_string() })?)
    }

    /// What is shown to servers.
    pub(crate) const fn own_certificate(&self) -> Option<&KeyedCertificate> {
        self.certificate.as_ref()
    }

    /// The key for `coaps`.
    pub(crate) const fn own_pre_shared_key(&self) -> Option<&PreSharedKey> {
        self.pre_shared_key.as_ref()
    }

    /// There is a pre-shared key and nothing else.
    pub(crate) const fn has_pre_shared_key_alone(&self) -> bool {
        self.pre_shared_key.is_some() && self.certificate.is_none() && self.anchors.is_none() && !self.accepts_any
    }
}
