//! The certificate of this side.

use std::{fmt, path::Path, sync::Arc};

use rustls::{
    InconsistentKeys, SignatureAlgorithm,
    pki_types::{CertificateDer, PrivateKeyDer},
    sign::CertifiedKey,
};
use x509_cert::{
    Certificate,
    der::Decode,
    ext::pkix::{SubjectAltName, name::GeneralName},
};
use zeroize::Zeroizing;

use super::{algorithms, pem::Source};
use crate::{Error, Why};

/// A certificate, those that lead from it to a trust anchor, and its private key.
#[derive(Clone)]
pub struct KeyedCertificate {
    certified: Arc<CertifiedKey>,
    key: Arc<Zeroizing<PrivateKeyDer<'static>>>,
    place: Arc<str>,
}

impl KeyedCertificate {
    /// From PEM files: the certificate first and behind it those that signed it, up to but without the trust anchor; and
    /// the private key (PKCS#8, SEC1 or PKCS#1, not encrypted), which may be in the same file. ECDSA keys of P-256 and
    /// P-384 serve TLS and DTLS, Ed25519 and RSA keys TLS alone.
    ///
    /// # Errors
    /// No such file, not PEM, no certificate, no private key in it, a key that cannot be used, a key of another
    /// certificate.
    pub fn from_files(certificates: impl AsRef<Path>, key: impl AsRef<Path>) -> Result<Self, Error> {
        Self::of(&Source::of_file(certificates.as_ref())?, &Source::of_file(key.as_ref())?)
    }

    /// From PEM in memory, as [`from_files`](Self::from_files) from files.
    ///
    /// # Errors
    /// As there.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, Error> {
        Self::of(&Source::of_bytes("the certificate", certificates), &Source::of_bytes("the private key", key))
    }

    fn of(certificates: &Source, key: &Source) -> Result<Self, Error> {
        let chain = certificates.certificates()?;
        let key_der = key.private_key()?;
        let certified = CertifiedKey::from_der(chain, key_der.clone_key(), algorithms());
        let certified = certified.map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                let reason = format!(
                    "does not belong to the certificate of {}; name the key that it was made with",
                    certificates.place()
                );
                key.error(Why::of(reason, error))
            }
            rustls::Error::InvalidCertificate(_) => {
                let reason = "the first certificate in it is malformed; is it X.509 version 3?";
                certificates.error(Why::of(reason, error))
            }
            _ => {
                let reason = "the key cannot be used; ECDSA with P-256 or P-384, Ed25519, and RSA from 2048 bits can";
                key.error(Why::of(reason, error))
            }
        })?;
        Ok(Self { certified: Arc::new(certified), key: Arc::new(key_der), place: certificates.place().into() })
    }

    /// When it, or one of those behind it, expires, in seconds since 1970; `None` if that cannot be read.
    #[must_use]
    pub fn expires_at(&self) -> Option<u64> {
        let expires = |certificate: &CertificateDer<'_>| {
            let certificate = Certificate::from_der(certificate).ok()?;
            Some(certificate.tbs_certificate().validity().not_after.to_unix_duration().as_secs())
        };
        self.chain().iter().filter_map(expires).min()
    }

    /// As TLS wants it.
    pub(crate) fn certified(&self) -> &Arc<CertifiedKey> {
        &self.certified
    }

    /// The certificate and those behind it.
    pub(crate) fn chain(&self) -> &[CertificateDer<'static>] {
        &self.certified.cert
    }

    /// The private key.
    pub(crate) fn key(&self) -> &PrivateKeyDer<'static> {
        &self.key
    }

    /// The kind of its key.
    pub(crate) fn key_kind(&self) -> SignatureAlgorithm {
        self.certified.key.algorithm()
    }

    /// Whether it serves `coaps`: DTLS here signs with ECDSA alone.
    pub(crate) fn serves_dtls(&self) -> bool {
        self.key_kind() == SignatureAlgorithm::ECDSA
    }

    /// One error about it.
    pub(crate) fn error(&self, why: impl Into<Why>) -> Error {
        Error::credential(&*self.place, why)
    }
}

/// The names of hosts and the URIs that a certificate (X.509 in DER) is for; without any its common name.
pub(super) fn names_in(certificate: &[u8]) -> Vec<String> {
    let Ok(certificate) = Certificate::from_der(certificate) else { return Vec::new() };
    let certificate = certificate.tbs_certificate();
    let alternative = certificate.get_extension::<SubjectAltName>().ok().flatten();
    let alternative = alternative.map(|(_, names)| names.0).unwrap_or_default();
    let names: Vec<String> = alternative
        .into_iter()
        .filter_map(|name| match name {
            GeneralName::DnsName(name) | GeneralName::UniformResourceIdentifier(name) => Some(name.as_str().to_owned()),
            _ => None,
        })
        .collect();
    if !names.is_empty() {
        return names;
    }
    let common = certificate.subject().common_name().ok().flatten();
    common.map(|name| name.value().into_owned()).into_iter().collect()
}

/// The key is not shown.
impl fmt::Debug for KeyedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("KeyedCertificate");
        shown.field("place", &self.place).field("certificates", &self.chain().len());
        shown.field("key", &self.key_kind()).finish_non_exhaustive()
    }
}
