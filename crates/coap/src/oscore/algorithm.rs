use alloc::vec::Vec;

use aes::Aes128;
#[cfg(feature = "oscore-algorithms")]
use aes::{Aes192, Aes256};
use ccm::aead::{AeadInOut, KeyInit, Nonce, Tag, array::typenum::Unsigned};
#[cfg(feature = "oscore-algorithms")]
use ccm::consts::{U7, U12, U16};
use ccm::consts::{U8, U13};
use ccm::{AeadCore, Ccm, KeySizeUser};
use hkdf::Hkdf;
use zeroize::Zeroizing;

use super::PartialIv;

/// Bytes of the longest key.
const LONGEST_KEY: usize = 32;

/// Bytes of the longest nonce.
pub(super) const LONGEST_NONCE: usize = 13;

/// A key of any of the algorithms; wiped when dropped.
pub(super) type Key = Zeroizing<[u8; LONGEST_KEY]>;

/// A nonce of any of the algorithms.
pub(super) type AnyNonce = [u8; LONGEST_NONCE];

macro_rules! algorithms {
    (
        $first:ident = $first_number:literal, $first_cipher:ty, $first_title:literal;
        $($name:ident = $number:literal, $cipher:ty, $title:literal;)*
    ) => {
        /// An AEAD algorithm of COSE (RFC 9053 §4), by which messages are encrypted and authenticated.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Algorithm {
            #[doc = concat!($first_title, ", ", stringify!($first_number), " in COSE. Every implementation has it.")]
            #[default]
            $first,
            $(
                #[doc = concat!($title, ", ", stringify!($number), " in COSE.")]
                #[cfg(feature = "oscore-algorithms")]
                $name,
            )*
        }

        impl Algorithm {
            /// All that were built.
            #[cfg(feature = "oscore-algorithms")]
            pub const ALL: &'static [Self] = &[Self::$first, $(Self::$name),*];

            /// All that were built.
            #[cfg(not(feature = "oscore-algorithms"))]
            pub const ALL: &'static [Self] = &[Self::$first];

            /// Its number in COSE.
            #[must_use]
            pub const fn number(self) -> u8 {
                match self {
                    Self::$first => $first_number,
                    $(#[cfg(feature = "oscore-algorithms")] Self::$name => $number,)*
                }
            }

            /// Its name in COSE.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    Self::$first => $first_title,
                    $(#[cfg(feature = "oscore-algorithms")] Self::$name => $title,)*
                }
            }

            /// Bytes of a key.
            pub(super) const fn key_length(self) -> usize {
                match self {
                    Self::$first => <$first_cipher as KeySizeUser>::KeySize::USIZE,
                    $(#[cfg(feature = "oscore-algorithms")] Self::$name => <$cipher as KeySizeUser>::KeySize::USIZE,)*
                }
            }

            /// Bytes of a nonce, 7 to 13.
            pub(super) const fn nonce_length(self) -> usize {
                match self {
                    Self::$first => <$first_cipher as AeadCore>::NonceSize::USIZE,
                    $(#[cfg(feature = "oscore-algorithms")] Self::$name => <$cipher as AeadCore>::NonceSize::USIZE,)*
                }
            }

            /// Bytes by which a message grows.
            #[must_use]
            pub const fn tag_length(self) -> usize {
                match self {
                    Self::$first => <$first_cipher as AeadCore>::TagSize::USIZE,
                    $(#[cfg(feature = "oscore-algorithms")] Self::$name => <$cipher as AeadCore>::TagSize::USIZE,)*
                }
            }

            /// Encrypts what the buffer holds, and appends the tag. `None` if it is longer than the algorithm takes.
            pub(super) fn encrypt(self, key: &Key, nonce: &AnyNonce, aad: &[u8], buffer: &mut Vec<u8>) -> Option<()> {
                match self {
                    Self::$first => encrypt::<$first_cipher>(key, nonce, aad, buffer),
                    $(#[cfg(feature = "oscore-algorithms")] Self::$name => encrypt::<$cipher>(key, nonce, aad, buffer),)*
                }
            }

            /// Takes the tag off what the buffer holds, and decrypts the rest. `None` if it is not authentic.
            pub(super) fn decrypt(self, key: &Key, nonce: &AnyNonce, aad: &[u8], buffer: &mut Vec<u8>) -> Option<()> {
                match self {
                    Self::$first => decrypt::<$first_cipher>(key, nonce, aad, buffer),
                    $(#[cfg(feature = "oscore-algorithms")] Self::$name => decrypt::<$cipher>(key, nonce, aad, buffer),)*
                }
            }
        }
    };
}

algorithms! {
    AesCcm16_64_128 = 10, Ccm<Aes128, U8, U13>, "AES-CCM-16-64-128";
    AesCcm16_64_256 = 11, Ccm<Aes256, U8, U13>, "AES-CCM-16-64-256";
    AesCcm64_64_128 = 12, Ccm<Aes128, U8, U7>, "AES-CCM-64-64-128";
    AesCcm64_64_256 = 13, Ccm<Aes256, U8, U7>, "AES-CCM-64-64-256";
    AesCcm16_128_128 = 30, Ccm<Aes128, U16, U13>, "AES-CCM-16-128-128";
    AesCcm16_128_256 = 31, Ccm<Aes256, U16, U13>, "AES-CCM-16-128-256";
    AesCcm64_128_128 = 32, Ccm<Aes128, U16, U7>, "AES-CCM-64-128-128";
    AesCcm64_128_256 = 33, Ccm<Aes256, U16, U7>, "AES-CCM-64-128-256";
    A128Gcm = 1, aes_gcm::Aes128Gcm, "A128GCM";
    A192Gcm = 2, aes_gcm::AesGcm<Aes192, U12>, "A192GCM";
    A256Gcm = 3, aes_gcm::Aes256Gcm, "A256GCM";
    ChaCha20Poly1305 = 24, chacha20poly1305::ChaCha20Poly1305, "ChaCha20/Poly1305";
}

impl Algorithm {
    /// Bytes of the longest ID of either side (RFC 8613 §3.3), 1 to 7.
    #[must_use]
    pub const fn longest_id(self) -> usize {
        self.nonce_length().saturating_sub(PartialIv::LONGEST.saturating_add(1))
    }
}

/// Key and nonce as the algorithm wants them: the first bytes of what holds any.
fn ready<C: AeadInOut + KeyInit>(key: &Key, nonce: &AnyNonce) -> Option<(C, Nonce<C>)> {
    let cipher = C::new_from_slice(key.get(..C::KeySize::USIZE)?).ok()?;
    Some((cipher, Nonce::<C>::try_from(nonce.get(..C::NonceSize::USIZE)?).ok()?))
}

fn encrypt<C: AeadInOut + KeyInit>(key: &Key, nonce: &AnyNonce, aad: &[u8], buffer: &mut Vec<u8>) -> Option<()> {
    let (cipher, nonce) = ready::<C>(key, nonce)?;
    let tag = cipher.encrypt_inout_detached(&nonce, aad, buffer.as_mut_slice().into()).ok()?;
    buffer.extend_from_slice(&tag);
    Some(())
}

fn decrypt<C: AeadInOut + KeyInit>(key: &Key, nonce: &AnyNonce, aad: &[u8], buffer: &mut Vec<u8>) -> Option<()> {
    let (cipher, nonce) = ready::<C>(key, nonce)?;
    let length = buffer.len().checked_sub(C::TagSize::USIZE)?;
    let tag = Tag::<C>::try_from(buffer.get(length..)?).ok()?;
    buffer.truncate(length);
    cipher.decrypt_inout_detached(&nonce, aad, buffer.as_mut_slice().into(), &tag).ok()
}

/// The hash of HKDF (RFC 5869), by which keys are derived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hash {
    /// SHA-256.
    #[default]
    Sha256,
    /// SHA-512.
    #[cfg(feature = "oscore-algorithms")]
    Sha512,
}

impl Hash {
    /// HKDF: as many bytes as `into` has, at most 32.
    pub(super) fn derive(self, salt: &[u8], secret: &[u8], info: &[u8], into: &mut [u8]) {
        let derived = match self {
            Self::Sha256 => Hkdf::<sha2::Sha256>::new(Some(salt), secret).expand(info, into),
            #[cfg(feature = "oscore-algorithms")]
            Self::Sha512 => Hkdf::<sha2::Sha512>::new(Some(salt), secret).expand(info, into),
        };
        debug_assert!(derived.is_ok(), "HKDF gives 255 times its hash");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9053 tables 5, 6 and 7.
    #[test]
    fn lengths_are_those_of_the_names() {
        for algorithm in Algorithm::ALL {
            let lengths = (algorithm.key_length(), algorithm.nonce_length(), algorithm.tag_length());
            let expected = match algorithm.number() {
                10 => (16, 13, 8),
                11 => (32, 13, 8),
                12 => (16, 7, 8),
                13 => (32, 7, 8),
                30 => (16, 13, 16),
                31 => (32, 13, 16),
                32 => (16, 7, 16),
                33 => (32, 7, 16),
                1 => (16, 12, 16),
                2 => (24, 12, 16),
                3 | 24 => (32, 12, 16),
                other => panic!("{other}"),
            };
            assert_eq!(lengths, expected, "{}", algorithm.name());
        }
        assert_eq!(Algorithm::default().name(), "AES-CCM-16-64-128");
    }
}
