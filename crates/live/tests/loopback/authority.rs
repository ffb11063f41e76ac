//! An authority of our own, and certificates that it makes.

use std::sync::atomic::{AtomicU32, Ordering};

use millpond_live::{ClientSecurity, KeyedCertificate, ServerSecurity, TrustAnchors};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// How many authorities were made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Signs certificates.
pub(crate) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Authorities of one name would be taken for each other.
        let name = format!("authority {}", MADE.fetch_add(1, Ordering::Relaxed));
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A peer that trusts it.
    pub(crate) fn anchors(&self) -> TrustAnchors {
        TrustAnchors::from_pem(self.pem.as_bytes()).unwrap()
    }

    /// A certificate for these names and addresses, with something changed before it is signed.
    pub(crate) fn issue(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Issued { certificate, key: key.serialize_pem() }
    }

    /// A certificate at the end of so many authorities, each made by the one before, and all of these.
    pub(crate) fn deep(&self, authorities: usize) -> Issued {
        let mut chain = Vec::new();
        let mut issuer: Option<Issuer<'static, KeyPair>> = None;
        for depth in 0..=authorities {
            let mut params = CertificateParams::new(vec!["me".to_owned()]).unwrap();
            params.distinguished_name.push(DnType::CommonName, format!("authority at {depth}"));
            if depth < authorities {
                params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            }
            let key = KeyPair::generate().unwrap();
            chain.push(params.signed_by(&key, issuer.as_ref().unwrap_or(&self.issuer)).unwrap().pem());
            if depth == authorities {
                chain.reverse();
                return Issued { certificate: chain.concat(), key: key.serialize_pem() };
            }
            issuer = Some(Issuer::new(params, key));
        }
        unreachable!("the last one is returned")
    }

    /// A server for these names.
    pub(crate) fn server(&self, names: &[&str]) -> ServerSecurity {
        ServerSecurity::new().certificate(self.issue(names, |_| {}).keyed())
    }

    /// A client that trusts this authority alone.
    pub(crate) fn client(&self) -> ClientSecurity {
        ClientSecurity::new().trust(self.anchors())
    }
}

impl Issued {
    pub(crate) fn keyed(&self) -> KeyedCertificate {
        KeyedCertificate::from_pem(self.certificate.as_bytes(), self.key.as_bytes()).unwrap()
    }
}
