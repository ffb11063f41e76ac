//! Keys of P-256, and what else is by chance.

use lakers::ConnId;
use p256::elliptic_curve::point::{AffineCoordinates, DecompressPoint};
use rand_core::{CryptoRng, RngCore};
use zeroize::Zeroizing;

use super::setting;
use crate::{Error, secrets};

/// The algorithms of cipher suite 2. Asks its source for nothing, as keys are arguments of all that is called here.
pub(super) type Algorithms = lakers_crypto_rustcrypto::Crypto<FromSystem>;

pub(super) const fn algorithms() -> Algorithms {
    Algorithms::new(FromSystem)
}

/// The operating system's source.
pub(super) struct FromSystem;

impl CryptoRng for FromSystem {}

impl RngCore for FromSystem {
    fn next_u32(&mut self) -> u32 {
        rand_core::impls::next_u32_via_fill(self)
    }

    fn next_u64(&mut self) -> u64 {
        rand_core::impls::next_u64_via_fill(self)
    }

    fn fill_bytes(&mut self, into: &mut [u8]) {
        self.try_fill_bytes(into).expect("the operating system gives random bytes");
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), rand_core::Error> {
        getrandom::fill(into).map_err(|_| {
            rand_core::Error::from(
                core::num::NonZeroU32::new(rand_core::Error::CUSTOM_START).unwrap_or(core::num::NonZeroU32::MIN),
            )
        })
    }
}

/// Bytes of a private key, and of the x-coordinate that is its public one.
pub(super) const KEY: usize = 32;

/// A private key, wiped when dropped.
pub(super) struct PrivateKey(Zeroizing<[u8; KEY]>);

impl PrivateKey {
    pub(super) fn new(bytes: Zeroizing<[u8; KEY]>) -> Option<Self> {
        p256::SecretKey::from_slice(&*bytes).is_ok().then_some(Self(bytes))
    }

    pub(super) fn random() -> Result<Self, Error> {
        // One in 2^32 is none.
        for _ in 0..4 {
            if let Some(key) = Self::new(Zeroizing::new(secrets::bytes()?)) {
                return Ok(key);
            }
        }
        Err(setting("the operating system gives no random bytes"))
    }

    pub(super) fn bytes(&self) -> &[u8; KEY] {
        &self.0
    }

    pub(super) fn public(&self) -> [u8; KEY] {
        p256::SecretKey::from_slice(self.bytes()).map(|key| key.public_key().as_affine().x().into()).unwrap_or_default()
    }
}

/// Whether there is a point with this x-coordinate; lakers panics where there is none.
pub(super) fn is_public(x: &[u8; KEY]) -> bool {
    // With either of the two that there are, the secret is the same.
    p256::AffinePoint::decompress(x.into(), 1.into()).is_some().into()
}

/// A connection identifier by chance, of as many bytes as a context names in each request.
pub(super) fn identifier() -> Result<ConnId, Error> {
    ConnId::from_slice(&secrets::bytes::<2>()?).ok_or_else(|| setting("no identifier"))
}
