//! Whose certificates are believed.

use std::{
    fmt,
    path::Path,
    sync::{Arc, OnceLock},
};

use rustls::RootCertStore;

use super::pem::Source;
use crate::{Cause, Error, Why};

/// Authorities whose signature on a certificate is believed.
#[derive(Clone, Default)]
pub struct TrustAnchors {
    /// Without any, those of the system.
    given: Option<Arc<RootCertStore>>,
}

impl TrustAnchors {
    /// Those of the operating system, or those that the environment variables `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
    /// They are read when the first certificate is to be checked by them.
    #[must_use]
    pub const fn system() -> Self {
        Self { given: None }
    }

    /// All certificates of a PEM file, and no others.
    ///
    /// # Errors
    /// No such file, not PEM, no certificate in it, a certificate that is malformed.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::of(&Source::of_file(path.as_ref())?)
    }

    /// All certificates in this PEM, and no others.
    ///
    /// # Errors
    /// Not PEM, no certificate in it, a certificate that is malformed.
    pub fn from_pem(certificates: &[u8]) -> Result<Self, Error> {
        Self::of(&Source::of_bytes("the trust anchors", certificates))
    }

    fn of(source: &Source) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for (place, certificate) in source.certificates()?.into_iter().enumerate() {
            roots.add(certificate).map_err(|error| {
                let reason = format!("certificate {} in it is malformed; is it X.509 version 3?", place + 1);
                source.error(Why::of(reason, error))
            })?;
        }
        Ok(Self { given: Some(Arc::new(roots)) })
    }

    /// They themselves, for a peer that checks a chain.
    pub(crate) fn roots(&self) -> Result<Arc<RootCertStore>, Error> {
        static SYSTEM: OnceLock<Result<Arc<RootCertStore>, Error>> = OnceLock::new();
        match &self.given {
            Some(given) => Ok(Arc::clone(given)),
            None => SYSTEM.get_or_init(of_system).clone(),
        }
    }
}

impl fmt::Debug for TrustAnchors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.given {
            Some(given) => write!(f, "TrustAnchors({} given)", given.len()),
            None => f.write_str("TrustAnchors(system)"),
        }
    }
}

fn of_system() -> Result<Arc<RootCertStore>, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Systems keep old certificates that nobody can read any more: the others count.
    let _ = roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let first = found.errors.into_iter().next();
        let told = first.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        let reason = format!("there are none{told}; name a file with the certificates to trust");
        let why = Why { reason, source: first.and_then(Cause::of) };
        return Err(Error::credential("the system's trust anchors", why));
    }
    Ok(Arc::new(roots))
}
