//! Private keys, parsed once for all sessions.
//!
//! `dimpl` takes the bytes of a key for each session, keeps a copy and parses it, a tenth of a millisecond on the task that
//! carries all sessions. What it gets here in place of the bytes is a number, by which it finds the key that was parsed.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use dimpl::{
    CryptoError,
    crypto::{Buf, HashAlgorithm, KeyProvider, SignatureAlgorithm, SigningKey, rust_crypto},
};

/// What stands before the number of a key that was parsed; no key begins so.
const MARK: &[u8; 8] = b"parsed \0";

static PARSED: Mutex<BTreeMap<u64, Shared>> = Mutex::new(BTreeMap::new());
static LAST: AtomicU64 = AtomicU64::new(0);

fn parsed() -> MutexGuard<'static, BTreeMap<u64, Shared>> {
    PARSED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A key that was parsed. As long as it is kept, state machines can be made with its [handle](Self::handle).
#[derive(Debug)]
pub(super) struct Key(u64);

impl Key {
    /// Parses a key.
    ///
    /// # Errors
    /// It is none of ECDSA with P-256 or P-384.
    pub(super) fn parse(der: &[u8]) -> Result<Self, CryptoError> {
        let key = rust_crypto::default_provider().key_provider.load_private_key(der)?;
        let shared = Shared {
            algorithm: key.algorithm(),
            hash: key.hash_algorithm(),
            hashes: key.supported_hash_algorithms().into(),
            key: Arc::new(Mutex::new(key)),
        };
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        parsed().insert(number, shared);
        Ok(Self(number))
    }

    /// What state machines get in place of the key.
    pub(super) fn handle(&self) -> Vec<u8> {
        [&MARK[..], &self.0.to_be_bytes()].concat()
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        parsed().remove(&self.0);
    }
}

/// Gives state machines the keys that were parsed.
#[derive(Debug)]
pub(super) struct Parsed;

impl KeyProvider for Parsed {
    fn load_private_key(&self, handle: &[u8]) -> Result<Box<dyn SigningKey>, CryptoError> {
        let number = handle.strip_prefix(MARK).and_then(|number| number.try_into().ok()).map(u64::from_be_bytes);
        match number.and_then(|number| parsed().get(&number).cloned()) {
            Some(key) => Ok(Box::new(key)),
            None => rust_crypto::default_provider().key_provider.load_private_key(handle),
        }
    }
}

/// One key in many hands.
#[derive(Clone)]
struct Shared {
    key: Arc<Mutex<Box<dyn SigningKey>>>,
    algorithm: SignatureAlgorithm,
    hash: HashAlgorithm,
    hashes: Arc<[HashAlgorithm]>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl SigningKey for Shared {
    fn sign(&mut self, data: &[u8], hash: HashAlgorithm, out: &mut Buf) -> Result<(), CryptoError> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).sign(data, hash, out)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        self.hash
    }

    fn supported_hash_algorithms(&self) -> &[HashAlgorithm] {
        &self.hashes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_its_handle_as_long_as_it_is_kept() {
        let der = rcgen::KeyPair::generate().unwrap().serialize_der();
        let key = Key::parse(&der).unwrap();
        let handle = key.handle();
        assert!(!der.windows(handle.len()).any(|part| part == handle));
        let found = Parsed.load_private_key(&handle).unwrap();
        assert_eq!(
            found.supported_hash_algorithms(),
            Parsed.load_private_key(&der).unwrap().supported_hash_algorithms()
        );
        drop(key);
        assert!(Parsed.load_private_key(&handle).is_err());
        assert!(Key::parse(b"no key").is_err());
        let mut out = Buf::new();
        let mut found = found;
        found.sign(b"what was begun is ended", HashAlgorithm::SHA256, &mut out).unwrap();
        assert!(!out.is_empty());
    }
}
