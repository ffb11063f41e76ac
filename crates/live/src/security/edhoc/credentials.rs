//! Who a side is, and whom it takes.

use std::fmt;

use lakers::{BytesP256ElemLen, Credential};
use zeroize::Zeroizing;

use super::keys::{KEY, PrivateKey, is_public};
use super::setting;
use crate::Error;

/// Bytes of the longest credential, so that all that is computed of it fits what lakers has room for.
const LONGEST: usize = 150;

/// What one side of EDHOC holds: its private key, the credential of its public one, and the credentials of those that it agrees upon
/// contexts with. Shown without the private key, which is wiped when this is dropped.
pub struct EdhocCredentials {
    pub(super) key: PrivateKey,
    pub(super) own: Credential,
    pub(super) peers: Vec<Credential>,
}

impl EdhocCredentials {
    /// Credentials are CWT claims sets (CCS, RFC 8392) with a COSE key of P-256 that has a kid, as RFC 9528 §3.5.2 has them.
    ///
    /// # Errors
    /// Which of them cannot be used, and why.
    pub fn new<'a>(private_key: &[u8], own: &[u8], peers: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, Error> {
        let key = private_key.try_into().ok().map(Zeroizing::new).and_then(PrivateKey::new);
        let key = key.ok_or_else(|| setting("private key: give the 32 bytes of a private key of P-256"))?;
        let own = credential(own).map_err(|why| setting(&format!("credential: {why}")))?;
        if own.public_key() != Some(key.public()) {
            return Err(setting("credential: its key is not that of the private key"));
        }
        let mut known: Vec<Credential> = Vec::new();
        for (number, peer) in (1..).zip(peers) {
            let peer = credential(peer).map_err(|why| setting(&format!("credential {number} of peers: {why}")))?;
            if known.iter().chain([&own]).any(|known| known.kid == peer.kid) {
                return Err(setting(&format!(
                    "credential {number} of peers: its kid is that of another; each has its own"
                )));
            }
            known.push(peer);
        }
        Ok(Self { key, own, peers: known })
    }

    /// A private key by chance, and the credential of its public one, with this kid of at most 16 bytes.
    ///
    /// # Errors
    /// A kid that is empty or too long; no random bytes.
    pub fn generate(kid: &[u8]) -> Result<(Zeroizing<[u8; 32]>, Vec<u8>), Error> {
        if kid.is_empty() || kid.len() > 16 {
            return Err(setting("a kid has 1 to 16 bytes"));
        }
        let key = PrivateKey::random()?;
        let credential = Self::credential(&key, kid);
        Ok((Zeroizing::new(*key.bytes()), credential))
    }

    /// The credential of the public one of a private key, with this kid of at most 16 bytes.
    pub(super) fn credential(key: &PrivateKey, kid: &[u8]) -> Vec<u8> {
        const MAP_OF_4: u8 = 0xa4;
        // { cnf: { COSE_Key: { kty: EC2, kid, crv: P-256, x } } }
        let mut credential = vec![0xa1, 0x08, 0xa1, 0x01, MAP_OF_4, 0x01, 0x02, 0x02, 0x40 | kid.len() as u8];
        credential.extend_from_slice(kid);
        credential.extend_from_slice(&[0x20, 0x01, 0x21, 0x58, KEY as u8]);
        credential.extend_from_slice(&key.public());
        credential
    }
}

/// Without the private key.
impl fmt::Debug for EdhocCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kid = |credential: &Credential| credential.kid.map(|kid| kid.as_slice().to_vec());
        f.debug_struct("EdhocCredentials")
            .field("own", &kid(&self.own))
            .field("peers", &self.peers.iter().map(kid).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

fn credential(bytes: &[u8]) -> Result<Credential, &'static str> {
    if bytes.len() > LONGEST {
        return Err("longer than 150 bytes");
    }
    let credential =
        Credential::parse_ccs(bytes).map_err(|_| "not a CCS with a key of P-256 alone (RFC 9528 section 3.5.2)")?;
    if credential.kid.is_none_or(|kid| kid.len() == 0) {
        return Err("its key has no kid");
    }
    let x: BytesP256ElemLen = credential.public_key().ok_or("its key is none of P-256")?;
    is_public(&x).then_some(credential).ok_or("its key is no point of P-256")
}
