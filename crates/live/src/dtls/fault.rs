//! Why a session did not come about, or ended.

use dimpl::{SecurityError, UnexpectedMessageError};

use super::keys::Keys;
use crate::{
    Why,
    security::{Other, words},
};

/// Alerts (RFC 8446 §6).
pub(super) const HANDSHAKE_FAILURE: u8 = 40;
const ILLEGAL_PARAMETER: u8 = 47;
const BAD_CERTIFICATE: u8 = 42;
const CERTIFICATE_EXPIRED: u8 = 45;
const UNKNOWN_CA: u8 = 48;
const DECRYPT_ERROR: u8 = 51;
const CERTIFICATE_REQUIRED: u8 = 116;

/// Why a session did not come about, or ended.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// The other side said so by a fatal alert.
    Alert(u8),
    /// The handshake took too long. Whether anything was heard of the other side.
    TimedOut { was_heard: bool },
    /// A certificate was not accepted.
    Certificate(rustls::Error),
    /// The other side has not the key of the identity that it named, or named an unknown one.
    WrongKey,
    /// The other side showed no certificate, and one is demanded.
    NoCertificate,
    /// A client's second ClientHello does not follow from its first one.
    Unlike,
    /// The state machine gave up.
    Engine(dimpl::Error),
}

impl Fault {
    /// From what the state machine says. Some of it ends nothing.
    pub(super) fn of(error: dimpl::Error, was_heard: bool) -> Result<(), Self> {
        Err(match error {
            // Datagrams of others before the first of the server's.
            dimpl::Error::UnexpectedMessage(UnexpectedMessageError::UnrecognizedAutoServerResponse) => return Ok(()),
            dimpl::Error::SecurityError(SecurityError::FatalAlert { description }) => Self::Alert(description),
            dimpl::Error::SecurityError(SecurityError::ClientFinishedVerificationFailed) => Self::WrongKey,
            dimpl::Error::CertificateError(dimpl::CertificateError::NoClientCertificateReceived) => Self::NoCertificate,
            dimpl::Error::Timeout(_) => Self::TimedOut { was_heard },
            other => Self::Engine(other),
        })
    }

    /// The alert that tells the other side.
    pub(super) const fn alert(&self) -> Option<u8> {
        match self {
            Self::Alert(_) | Self::TimedOut { .. } => None,
            Self::Certificate(rustls::Error::InvalidCertificate(error)) => Some(match error {
                rustls::CertificateError::UnknownIssuer => UNKNOWN_CA,
                rustls::CertificateError::Expired | rustls::CertificateError::ExpiredContext { .. } => {
                    CERTIFICATE_EXPIRED
                }
                _ => BAD_CERTIFICATE,
            }),
            Self::Certificate(_) => Some(BAD_CERTIFICATE),
            Self::WrongKey => Some(DECRYPT_ERROR),
            Self::NoCertificate => Some(CERTIFICATE_REQUIRED),
            Self::Unlike => Some(ILLEGAL_PARAMETER),
            Self::Engine(_) => Some(HANDSHAKE_FAILURE),
        }
    }

    /// In words, and with the error that lies beneath.
    pub(super) fn why(&self, keys: &Keys) -> Why {
        let reason = self.words(keys);
        match self {
            Self::Certificate(error) => Why::of(reason, error.clone()),
            Self::Engine(error) => Why::of(reason, error.clone()),
            _ => reason.into(),
        }
    }

    /// One line for people: why, and what to do.
    pub(super) fn words(&self, keys: &Keys) -> String {
        let (other, who) = match keys {
            Keys::Client(_) => (Other::Server, "server"),
            Keys::Server(_) => (Other::Client, "client"),
        };
        match self {
            Self::Alert(20 | 51 | 115) if keys.knows_pre_shared() => {
                format!("the {who} does not know this identity, or has another key for it; check both")
            }
            Self::Alert(40 | 42 | 43 | 46 | 48 | 49 | 116) if keys.is_client_without_certificate() => {
                "the server demands a certificate, or shares no cipher suite with this side; give one and its key"
                    .into()
            }
            Self::Alert(0) => format!("the {who} closed it during the handshake"),
            Self::Alert(40) if keys.knows_pre_shared() => {
                format!(
                    "the {who} shares no cipher suite with this side; over a pre-shared key it is TLS_PSK_WITH_AES_128_CCM_8"
                )
            }
            Self::Alert(alert) => words(&rustls::Error::AlertReceived((*alert).into()), other),
            Self::TimedOut { was_heard: false } => {
                format!("no answer to the handshake; check address and port, and that the {who} speaks DTLS 1.2 or 1.3")
            }
            Self::TimedOut { was_heard: true } if keys.knows_pre_shared() => {
                format!("the {who} fell silent during the handshake; check that it knows this identity with this key")
            }
            Self::TimedOut { was_heard: true } => format!("the {who} fell silent during the handshake; try again"),
            Self::Certificate(error) => words(error, other),
            Self::WrongKey => {
                format!("the {who} has not the key of the identity that it named, or named an unknown one")
            }
            Self::Unlike => format!("the {who}'s second hello does not follow from its first one; try again"),
            Self::NoCertificate => format!("the {who} showed no certificate, and one is demanded"),
            // A ServerHello without any extension is incomplete because this one is missing.
            Self::Engine(
                dimpl::Error::SecurityError(SecurityError::ExtendedMasterSecretNotNegotiated)
                | dimpl::Error::IncompleteServerHello,
            ) => {
                format!(
                    "the {who} does not support the extended master secret (RFC 7627), which is required here; enable it \
                     there, or update its DTLS library"
                )
            }
            Self::Engine(error) => format!("the handshake with the {who} failed: {error}"),
        }
    }
}
