//! Whose certificate it must be, and in words why a handshake failed.

use rustls::{
    AlertDescription, CertificateError, DigitallySignedStruct, Error as Failure, InvalidMessage, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};

use super::{Other, algorithms};
use crate::{Error, Host, NotSent};

/// The name that a server's certificate must have to be that of this host.
pub(crate) fn name_of(host: &Host) -> Result<ServerName<'static>, Error> {
    match host {
        Host::V4(address) => Ok(ServerName::from(*address)),
        Host::V6(address, _) => Ok(ServerName::from(*address)),
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| {
            let reason = format!("no certificate can name {name:?}; write other letters than a to z as xn--…");
            Error::refused(NotSent::Destination, reason)
        }),
    }
}

/// Any certificate will do; that a peer that showed it has its key is checked even so.
#[derive(Debug)]
pub(super) struct AcceptAny;

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Failure> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Failure> {
        verify_tls12_signature(message, certificate, signed, &algorithms().signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Failure> {
        verify_tls13_signature(message, certificate, signed, &algorithms().signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        algorithms().signature_verification_algorithms.supported_schemes()
    }
}

/// Why there is no secure session, and what to do about it.
pub(crate) fn words(failure: &Failure, other: Other) -> String {
    let who = other.noun();
    match failure {
        Failure::InvalidCertificate(error) => of_certificate(error, who),
        Failure::NoCertificatesPresented => format!("the {who} showed no certificate, and one is demanded"),
        Failure::AlertReceived(alert) => of_alert(*alert, who),
        Failure::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            format!("what the {who} sent is not TLS; does it speak without security on this port?")
        }
        Failure::InvalidMessage(_) => format!("what the {who} sent is malformed TLS"),
        Failure::NoApplicationProtocol => format!("the {who} wants another protocol than CoAP (ALPN)"),
        Failure::PeerIncompatible(why) => format!("the {who} cannot speak as this side does ({why:?})"),
        Failure::PeerMisbehaved(why) => format!("the {who} broke the protocol ({why:?})"),
        Failure::DecryptError => format!("what the {who} sent was changed on the way, or the keys differ"),
        other => other.to_string(),
    }
}

fn of_certificate(error: &CertificateError, who: &str) -> String {
    let days = |from: &UnixTime, to: &UnixTime| to.as_secs().saturating_sub(from.as_secs()) / 86_400;
    match error {
        CertificateError::UnknownIssuer => format!(
            "the {who}'s certificate has an issuer that is not trusted; make the issuer's certificate a trust anchor if it should be"
        ),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names = match presented.as_slice() {
                [] => "no name at all (subjectAltName)".to_owned(),
                names => names.join(", "),
            };
            let expected = expected.to_str();
            format!("the {who}'s certificate is not for {expected}: it has {names}; ask by a name that it has")
        }
        CertificateError::NotValidForName => format!("the {who}'s certificate is not for this name"),
        CertificateError::ExpiredContext { time, not_after } => {
            let days = days(not_after, time);
            format!("the {who}'s certificate expired {days} days ago; renew it, or check the clock of this machine")
        }
        CertificateError::Expired => format!("the {who}'s certificate has expired; renew it, or check the clock"),
        CertificateError::NotValidYetContext { time, not_before } => {
            let days = days(time, not_before);
            format!("the {who}'s certificate will be valid in {days} days; check the clock of this machine")
        }
        CertificateError::NotValidYet => format!("the {who}'s certificate is not valid yet; check the clock"),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            format!("the {who}'s certificate is not meant for a {who} (extendedKeyUsage); make it one that is")
        }
        CertificateError::BadSignature => format!("the signature on the {who}'s certificate is wrong"),
        CertificateError::BadEncoding => format!("the {who}'s certificate is malformed"),
        CertificateError::Other(why) if why.to_string().contains("CaUsedAsEndEntity") => {
            format!("the {who} shows the certificate of an authority as its own; make it one with CA:FALSE")
        }
        why => format!("the {who}'s certificate cannot be accepted: {why}"),
    }
}

fn of_alert(alert: AlertDescription, who: &str) -> String {
    use AlertDescription as Alert;
    match alert {
        Alert::CertificateRequired | Alert::NoCertificate => {
            format!("the {who} demands a certificate; give one and its key")
        }
        Alert::UnknownCA => format!("the {who} does not trust the issuer of the certificate that it was shown"),
        Alert::CertificateExpired => format!("the {who} says that the certificate that it was shown has expired"),
        Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateUnknown
        | Alert::AccessDenied => format!("the {who} does not accept the certificate that it was shown ({alert:?})"),
        Alert::HandshakeFailure | Alert::InsufficientSecurity => {
            format!("the {who} shares no cipher suite or kind of key with this side, or demands a certificate")
        }
        Alert::ProtocolVersion => format!("the {who} speaks another version of TLS; 1.2 and 1.3 are spoken here"),
        Alert::NoApplicationProtocol => format!("the {who} does not speak CoAP on this port (ALPN)"),
        Alert::UnrecognisedName => format!("the {who} does not know the name that it was asked by"),
        Alert::UnknownPSKIdentity => format!("the {who} does not know the identity of the pre-shared key"),
        Alert::DecryptError => format!("the {who} says that keys or signatures do not fit"),
        alert => format!("the {who} ended the handshake ({alert:?})"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_failure_is_one_line_that_says_whose_fault_it_is() {
        let at = |days: u64| UnixTime::since_unix_epoch(Duration::from_secs(days * 86_400));
        let expired = CertificateError::ExpiredContext { time: at(30), not_after: at(27) };
        let name = CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("here.example").unwrap(),
            presented: vec!["there.example".into()],
        };
        for (failure, part) in [
            (Failure::from(CertificateError::UnknownIssuer), "issuer that is not trusted"),
            (Failure::from(expired), "the server's certificate expired 3 days ago"),
            (Failure::from(name), "is not for here.example: it has there.example"),
            (Failure::AlertReceived(AlertDescription::CertificateRequired), "the server demands a certificate"),
            (Failure::NoApplicationProtocol, "another protocol than CoAP"),
            (Failure::InvalidMessage(InvalidMessage::InvalidContentType), "is not TLS"),
        ] {
            let line = words(&failure, Other::Server);
            assert!(line.contains(part) && !line.contains('\n'), "{line}");
        }
    }

    #[test]
    fn a_host_becomes_the_name_that_its_certificate_must_have() {
        for (host, name) in [
            (Host::Name("here.example".into()), Some("here.example")),
            (Host::V4([192, 0, 2, 1].into()), Some("192.0.2.1")),
            (Host::V6(std::net::Ipv6Addr::LOCALHOST, Some("lo".into())), Some("::1")),
            (Host::Name("café.example".into()), None),
        ] {
            assert_eq!(name_of(&host).ok().map(|name| name.to_str().into_owned()).as_deref(), name);
        }
    }
}
