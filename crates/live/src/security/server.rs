//! What a server holds.

use std::sync::Arc;

use rustls::server::{WebPkiClientVerifier, danger::ClientCertVerifier};

use super::{KeyedCertificate, PreSharedKeys, TrustAnchors, algorithms};
use crate::Error;

/// What a server has to speak securely: its certificate, the pre-shared keys that it knows, and whose clients it serves.
#[derive(Clone, Debug, Default)]
pub struct ServerSecurity {
    certificate: Option<KeyedCertificate>,
    pre_shared_keys: Option<PreSharedKeys>,
    clients: Option<TrustAnchors>,
}

impl ServerSecurity {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows this certificate: to all clients over `coaps+tcp`, and over `coaps` to those that speak by certificates.
    #[must_use]
    pub fn certificate(mut self, certificate: KeyedCertificate) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// Serves clients over `coaps` that have one of these keys.
    #[must_use]
    pub fn pre_shared_keys(mut self, keys: PreSharedKeys) -> Self {
        self.pre_shared_keys = Some(keys);
        self
    }

    /// Of clients that speak by certificates serves those alone that show one of these authorities.
    #[must_use]
    pub fn demand_client_certificates(mut self, of: TrustAnchors) -> Self {
        self.clients = Some(of);
        self
    }

    /// Whether clients over `coaps` can be served with it: by a pre-shared key, or by a certificate whose key is one of
    /// ECDSA. Others serve `coaps+tcp` alone.
    #[must_use]
    pub fn serves_dtls(&self) -> bool {
        self.pre_shared_keys.is_some() || self.certificate.as_ref().is_some_and(KeyedCertificate::serves_dtls)
    }

    /// What checks the certificate of a client; none if no client needs any.
    pub(crate) fn client_verifier(&self) -> Result<Option<Arc<dyn ClientCertVerifier>>, Error> {
        let Some(anchors) = &self.clients else { return Ok(None) };
        let verifier = WebPkiClientVerifier::builder_with_provider(anchors.roots()?, Arc::clone(algorithms())).build();
        let verifier = verifier.map_err(|error| Error::Setting { name: "security", reason: error.to_string() })?;
        Ok(Some(verifier))
    }

    /// What is shown to clients.
    pub(crate) const fn own_certificate(&self) -> Option<&KeyedCertificate> {
        self.certificate.as_ref()
    }

    /// The keys for `coaps`.
    pub(crate) const fn known_keys(&self) -> Option<&PreSharedKeys> {
        self.pre_shared_keys.as_ref()
    }
}
