//! What sessions are made with: the security settings of a client or server as `dimpl` wants them.

use std::sync::{Arc, Mutex};

use dimpl::{
    Config, Dtls, DtlsCertificate, PskResolver,
    crypto::{CryptoProvider, rust_crypto},
};
use rustls::{
    client::danger::ServerCertVerifier,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::danger::ClientCertVerifier,
};
use zeroize::Zeroizing;

use super::{
    cookie::{Cookies, Hmac},
    signing::{Key, Parsed},
};
use crate::{
    ClientSecurity, Error, ServerSecurity,
    security::{KeyedCertificate, PreSharedKey, PreSharedKeys},
};

/// Bytes of the longest datagram of a handshake: what passes every link of IPv6 (RFC 8200 §5) with its headers.
const LONGEST_DATAGRAM: usize = 1_232;

/// What a client's sessions are made with.
#[derive(Clone)]
pub(crate) struct ClientKeys {
    config: Arc<Config>,
    proof: Proof,
}

/// How client and server prove who they are.
#[derive(Clone)]
enum Proof {
    /// Both have this key.
    PreShared,
    /// The server by a certificate, and the client if it is asked for one.
    Certificates { own: Own, has_own: bool, verifier: Arc<dyn ServerCertVerifier> },
}

/// A certificate, and the key that was parsed for it.
#[derive(Clone)]
struct Own {
    certificate: Arc<[u8]>,
    key: Arc<Key>,
}

impl Own {
    /// As state machines take it: without the key's own bytes.
    fn shown(&self) -> DtlsCertificate {
        DtlsCertificate { certificate: self.certificate.to_vec(), private_key: self.key.handle() }
    }
}

impl ClientKeys {
    /// From a client's settings. A pre-shared key is preferred to certificates.
    ///
    /// # Errors
    /// A certificate whose key DTLS cannot use, trust anchors that cannot be read.
    pub(crate) fn new(security: &ClientSecurity) -> Result<Self, Error> {
        if let Some(key) = security.own_pre_shared_key() {
            let identity = key.identity().to_vec();
            let resolver = Arc::new(OneKey(key.clone()));
            let config = configured(|builder| builder.with_psk_client(identity, resolver))?;
            return Ok(Self { config, proof: Proof::PreShared });
        }
        let config = configured(|builder| builder)?;
        let (own, has_own) = match security.own_certificate() {
            Some(certificate) => (usable(certificate)?, true),
            None => (throwaway()?, false),
        };
        let verifier = security.verifier()?;
        Ok(Self { config, proof: Proof::Certificates { own, has_own, verifier } })
    }

    /// A state machine that begins a handshake.
    pub(super) fn engine(&self, now: std::time::Instant) -> Dtls {
        let config = Arc::clone(&self.config);
        let mut engine = match &self.proof {
            Proof::PreShared => Dtls::new_12_psk(config, now),
            Proof::Certificates { own, .. } => Dtls::new_auto(config, own.shown(), now),
        };
        engine.set_active(true);
        engine
    }

    /// Client and server prove by a key that both have who they are.
    pub(super) const fn is_pre_shared(&self) -> bool {
        matches!(self.proof, Proof::PreShared)
    }

    /// Whether a server's certificate is good for a name.
    pub(super) fn check(&self, certificate: &[u8], name: &ServerName<'_>) -> Result<(), rustls::Error> {
        match &self.proof {
            Proof::PreShared => Err(rustls::Error::General("a certificate beside a pre-shared key".into())),
            Proof::Certificates { verifier, .. } => {
                let certificate = CertificateDer::from(certificate);
                verifier.verify_server_cert(&certificate, &[], name, &[], UnixTime::now()).map(drop)
            }
        }
    }
}

/// Datagrams of a client's that came before what they follow: twice those of its longest flight.
const MOST_OUT_OF_ORDER: usize = 16;

/// What a server's sessions are made with.
#[derive(Clone)]
pub(crate) struct ServerKeys {
    config: Arc<Config>,
    /// None if clients have pre-shared keys alone.
    own: Option<Own>,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    knows_pre_shared: bool,
    cookies: Cookies,
    /// The identity that a client named last.
    named: Named,
}

type Named = Arc<Mutex<Option<Vec<u8>>>>;

impl ServerKeys {
    /// From a server's settings. What a client named is kept in between, so that each worker needs its own.
    ///
    /// # Errors
    /// Neither a certificate nor pre-shared keys; a certificate whose key DTLS cannot use; trust anchors that cannot be
    /// read; no random bytes from the operating system.
    pub(crate) fn new(security: &ServerSecurity) -> Result<Self, Error> {
        Self::made(security, Named::default(), None)
    }

    /// With another certificate, other keys or trust anchors from now on. Cookies stay good, and with them handshakes that have
    /// begun; sessions that stand are not concerned.
    ///
    /// # Errors
    /// As of [`new`](Self::new); then nothing has changed.
    pub(super) fn renew(&mut self, security: &ServerSecurity) -> Result<(), Error> {
        // Clients that are in a handshake name themselves where the resolver before puts it.
        *self = Self::made(security, Arc::clone(&self.named), Some(&self.cookies))?;
        Ok(())
    }

    fn made(security: &ServerSecurity, named: Named, before: Option<&Cookies>) -> Result<Self, Error> {
        let (certificate, keys) = (security.own_certificate(), security.known_keys());
        if certificate.is_none() && keys.is_none() {
            let reason = "coaps needs a certificate or pre-shared keys; give one of them".into();
            return Err(Error::Setting { name: "security", reason });
        }
        let verifier = security.client_verifier()?;
        let config = configured(|builder| {
            let builder = builder.max_queue_rx(MOST_OUT_OF_ORDER);
            let builder = builder.require_client_certificate(verifier.is_some());
            match keys {
                Some(keys) => {
                    let resolver = Arc::new(ManyKeys { keys: keys.clone(), named: Arc::clone(&named) });
                    builder.with_psk_server(None, resolver)
                }
                None => builder,
            }
        })?;
        let own = certificate.map(usable).transpose()?;
        let mut cookies = Cookies::new(&config, own.is_some())?;
        if let Some(before) = before {
            cookies.go_on_from(before);
        }
        Ok(Self { config, own, verifier, knows_pre_shared: keys.is_some(), cookies, named })
    }

    /// A state machine that awaits a handshake.
    pub(super) fn engine(&self, now: std::time::Instant) -> Dtls {
        let config = Arc::clone(&self.config);
        match &self.own {
            Some(own) => Dtls::new_auto(config, own.shown(), now),
            None => Dtls::new_12_psk(config, now),
        }
    }

    /// The identity that was named since this was asked last.
    pub(super) fn take_named(&self) -> Option<Vec<u8>> {
        self.named.lock().map_or(None, |mut named| named.take())
    }

    /// Clients must show a certificate.
    pub(super) const fn demands_certificate(&self) -> bool {
        self.verifier.is_some()
    }

    /// Whether a client's certificate is good.
    pub(super) fn check(&self, certificate: &[u8]) -> Result<(), rustls::Error> {
        let Some(verifier) = &self.verifier else { return Ok(()) };
        verifier.verify_client_cert(&CertificateDer::from(certificate), &[], UnixTime::now()).map(drop)
    }
}

impl std::fmt::Debug for ClientKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientKeys")
    }
}

impl std::fmt::Debug for ServerKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerKeys")
    }
}

/// A client's only key.
struct OneKey(PreSharedKey);

impl PskResolver for OneKey {
    fn resolve(&self, _identity: &[u8]) -> Option<Vec<u8>> {
        Some(self.0.key().to_vec())
    }
}

/// A server's keys.
struct ManyKeys {
    keys: PreSharedKeys,
    named: Named,
}

// What they hold is whole at any time: a lookup that panics leaves nothing half done.
impl std::panic::UnwindSafe for ManyKeys {}
impl std::panic::RefUnwindSafe for ManyKeys {}

impl PskResolver for ManyKeys {
    fn resolve(&self, identity: &[u8]) -> Option<Vec<u8>> {
        if let Ok(mut named) = self.named.lock() {
            *named = Some(identity.to_vec());
        }
        self.keys.key_of(identity).map(|key| key.to_vec())
    }
}

fn configured(with: impl FnOnce(dimpl::ConfigBuilder) -> dimpl::ConfigBuilder) -> Result<Arc<Config>, Error> {
    let provider = CryptoProvider { hmac_provider: &Hmac, key_provider: &Parsed, ..rust_crypto::default_provider() };
    let builder = Config::builder().with_crypto_provider(provider).mtu(LONGEST_DATAGRAM);
    let config = with(builder).build();
    config.map(Arc::new).map_err(|error| Error::Setting { name: "security", reason: error.to_string() })
}

/// A certificate whose key DTLS can use.
fn usable(certificate: &KeyedCertificate) -> Result<Own, Error> {
    let key = Key::parse(certificate.key().secret_der())
        .map_err(|_| certificate.error("its key cannot be used over DTLS; make one for ECDSA with P-256 or P-384"))?;
    let first = certificate.chain().first().map(|first| Arc::from(&first[..]));
    Ok(Own { certificate: first.unwrap_or_default(), key: Arc::new(key) })
}

/// The certificate of a client that has none. Who asks for one gets it and can make nothing of it.
fn throwaway() -> Result<Own, Error> {
    let failed = |reason: String| Error::Setting { name: "security", reason };
    let pair = rcgen::KeyPair::generate().map_err(|error| failed(error.to_string()))?;
    let certificate = rcgen::CertificateParams::default().self_signed(&pair);
    let certificate = certificate.map_err(|error| failed(error.to_string()))?;
    let der = Zeroizing::new(pair.serialize_der());
    let key = Key::parse(&der).map_err(|error| failed(error.to_string()))?;
    Ok(Own { certificate: Arc::from(&certificate.der()[..]), key: Arc::new(key) })
}

/// A client's, or a server's.
#[derive(Clone, Debug)]
pub(crate) enum Keys {
    /// A client's.
    Client(ClientKeys),
    /// A server's.
    Server(ServerKeys),
}

impl Keys {
    /// A state machine for one session.
    pub(super) fn engine(&self, now: std::time::Instant) -> Dtls {
        match self {
            Self::Client(keys) => keys.engine(now),
            Self::Server(keys) => keys.engine(now),
        }
    }

    /// Whether the other side's certificate is good; a server's also for the name that it was asked by.
    pub(super) fn check(&self, certificate: &[u8], name: Option<&ServerName<'_>>) -> Result<(), rustls::Error> {
        match (self, name) {
            (Self::Client(keys), Some(name)) => keys.check(certificate, name),
            (Self::Client(_), None) => Err(rustls::Error::General("no name to check the certificate for".into())),
            (Self::Server(keys), _) => keys.check(certificate),
        }
    }

    /// The identity that a client named since this was asked last.
    pub(super) fn take_named(&self) -> Option<Vec<u8>> {
        match self {
            Self::Client(_) => None,
            Self::Server(keys) => keys.take_named(),
        }
    }

    /// The cookies of a server.
    pub(super) const fn cookies(&self) -> Option<&Cookies> {
        match self {
            Self::Client(_) => None,
            Self::Server(keys) => Some(&keys.cookies),
        }
    }

    /// Sessions are begun, not awaited.
    pub(super) const fn is_client(&self) -> bool {
        matches!(self, Self::Client(_))
    }

    /// Keys were given to both sides beforehand, at least to some.
    pub(super) const fn knows_pre_shared(&self) -> bool {
        match self {
            Self::Client(keys) => keys.is_pre_shared(),
            Self::Server(keys) => keys.knows_pre_shared,
        }
    }

    /// A client by certificates that has none of its own.
    pub(super) const fn is_client_without_certificate(&self) -> bool {
        matches!(self, Self::Client(ClientKeys { proof: Proof::Certificates { has_own: false, .. }, .. }))
    }
}
