use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use super::{
    Algorithm, Hash, OscoreOption, PartialIv,
    algorithm::{AnyNonce, Key, LONGEST_NONCE},
    anew::Anew,
    numbers::Numbers,
    window::Window,
};

/// What both sides were given beforehand (RFC 8613 §3.2).
///
/// The same secret, salt, [ID context](Self::id_context) and sender ID must never serve two contexts.
#[derive(Clone, Copy)]
pub struct Parameters<'a> {
    /// Master Secret: at least 16 random bytes.
    pub secret: &'a [u8],
    /// Master Salt; empty for none.
    pub salt: &'a [u8],
    /// ID Context, which sets contexts with the same secret apart, and which requests name.
    pub id_context: Option<&'a [u8]>,
    /// By which the other side knows this one; may be empty.
    pub sender_id: &'a [u8],
    /// By which this side knows the other one.
    pub recipient_id: &'a [u8],
    /// How messages are encrypted.
    pub algorithm: Algorithm,
    /// How keys are derived.
    pub hash: Hash,
}

impl<'a> Parameters<'a> {
    /// Bytes of the shortest secret: the keys of the mandatory algorithm have as many.
    pub const SHORTEST_SECRET: usize = 16;

    /// The defaults of RFC 8613 §3.2 with this secret. The IDs are empty and have to be set.
    #[must_use]
    pub const fn of(secret: &'a [u8]) -> Self {
        Self {
            secret,
            salt: &[],
            id_context: None,
            sender_id: &[],
            recipient_id: &[],
            algorithm: Algorithm::AesCcm16_64_128,
            hash: Hash::Sha256,
        }
    }

    /// Those of the other side.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        Self { sender_id: self.recipient_id, recipient_id: self.sender_id, ..self }
    }

    fn check(&self) -> Result<(), ContextError> {
        if self.secret.len() < Self::SHORTEST_SECRET {
            return Err(ContextError::SecretTooShort(self.secret.len()));
        }
        if self.sender_id == self.recipient_id {
            return Err(ContextError::EqualIds);
        }
        let most = self.algorithm.longest_id();
        if let Some(id) = [self.sender_id, self.recipient_id].into_iter().find(|id| id.len() > most) {
            return Err(ContextError::IdTooLong { length: id.len(), most, algorithm: self.algorithm.name() });
        }
        let option = OscoreOption {
            partial_iv: PartialIv::new(PartialIv::LIMIT.saturating_sub(1)),
            kid_context: self.id_context,
            kid: Some(self.sender_id),
        };
        option.encode().map(|_| ()).ok_or(ContextError::IdContextTooLong)
    }

    /// HKDF for an ID and what is to be derived of it, "Key" or "IV" (RFC 8613 §3.2.1).
    fn derive(&self, id: &[u8], what: &str, into: &mut [u8]) {
        let mut info = Vec::new();
        info.push(ARRAY_OF_5);
        put_bytes(&mut info, id);
        match self.id_context {
            Some(id_context) => put_bytes(&mut info, id_context),
            None => info.push(NIL),
        }
        put_head(&mut info, UNSIGNED, self.algorithm.number().into());
        put_head(&mut info, TEXT, what.len());
        info.extend_from_slice(what.as_bytes());
        put_head(&mut info, UNSIGNED, into.len());
        self.hash.derive(self.salt, self.secret, &info, into);
    }
}

/// Without secret and salt.
impl fmt::Debug for Parameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameters")
            .field("id_context", &self.id_context)
            .field("sender_id", &self.sender_id)
            .field("recipient_id", &self.recipient_id)
            .field("algorithm", &self.algorithm)
            .field("hash", &self.hash)
            .finish_non_exhaustive()
    }
}

/// Why there can be no context of these parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// Fewer than 16 bytes.
    #[error("a secret of {0} bytes: give at least 16, random ones")]
    SecretTooShort(usize),
    /// Both sides would use the same key and the same nonces (RFC 8613 §3.3).
    #[error("sender ID and recipient ID are equal: give each side its own")]
    EqualIds,
    /// It does not fit a nonce (RFC 8613 §3.3).
    #[error("an ID of {length} bytes: {algorithm} takes at most {most}")]
    IdTooLong {
        /// Its bytes.
        length: usize,
        /// As many as may be.
        most: usize,
        /// With this algorithm.
        algorithm: &'static str,
    },
    /// It does not fit the option that names it.
    #[error("an ID context that does not fit the 255 bytes of an option: give a shorter one")]
    IdContextTooLong,
}

/// What is known of the use of the keys before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// They were never used, and will not be once this context is gone.
    Fresh,
    /// The bound that was stored last, 0 if none was ever. All sequence numbers below may have been used.
    Stored(u64),
}

/// An ID of either side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Id {
    bytes: [u8; Self::LONGEST],
    length: u8,
}

impl Id {
    const LONGEST: usize = LONGEST_NONCE - PartialIv::LONGEST - 1;

    pub(super) fn new(id: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::LONGEST];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self { bytes, length: id.len() as u8 })
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One direction.
pub(super) struct Direction {
    pub(super) id: Id,
    pub(super) key: Key,
}

/// A security context (RFC 8613 §3.1), of a client, a server, or what is both. Keys are wiped when it is dropped.
pub struct Context {
    pub(super) algorithm: Algorithm,
    pub(super) common_iv: AnyNonce,
    id_context: Option<Box<[u8]>>,
    pub(super) sender: Direction,
    pub(super) recipient: Direction,
    pub(super) numbers: Numbers,
    /// `None` if it was lost by a restart.
    pub(super) window: Option<Window>,
    /// How keys are replaced, if they are.
    pub(super) anew: Option<Box<Anew>>,
}

impl Context {
    /// Derives keys.
    ///
    /// # Errors
    /// What would not be safe or does not fit, with its fix.
    pub fn derive(parameters: &Parameters<'_>, start: Start) -> Result<Self, ContextError> {
        parameters.check()?;
        let algorithm = parameters.algorithm;
        let direction = |id| {
            let mut key = Key::default();
            parameters.derive(id, "Key", key.get_mut(..algorithm.key_length()).unwrap_or_default());
            Id::new(id).map(|id| Direction { id, key })
        };
        let too_long = ContextError::IdTooLong {
            length: parameters.sender_id.len().max(parameters.recipient_id.len()),
            most: Id::LONGEST,
            algorithm: algorithm.name(),
        };
        let sender = direction(parameters.sender_id).ok_or(too_long)?;
        let recipient = direction(parameters.recipient_id).ok_or(too_long)?;
        let mut common_iv = AnyNonce::default();
        parameters.derive(&[], "IV", common_iv.get_mut(..algorithm.nonce_length()).unwrap_or_default());
        let (numbers, window) = match start {
            Start::Fresh => (Numbers::ALL, Some(Window::EMPTY)),
            // No request was taken before a bound was stored.
            Start::Stored(0) => (Numbers::from(0), Some(Window::EMPTY)),
            Start::Stored(bound) => (Numbers::from(bound), None),
        };
        let id_context = parameters.id_context.map(Into::into);
        Ok(Self { algorithm, common_iv, id_context, sender, recipient, numbers, window, anew: None })
    }

    /// The ID by which the other side knows this one.
    #[must_use]
    pub fn sender_id(&self) -> &[u8] {
        self.sender.id.as_bytes()
    }

    /// The ID by which this side knows the other one.
    #[must_use]
    pub fn recipient_id(&self) -> &[u8] {
        self.recipient.id.as_bytes()
    }

    /// What sets it apart from others with the same secret.
    #[must_use]
    pub fn id_context(&self) -> Option<&[u8]> {
        self.id_context.as_deref()
    }

    /// A request with such an option is for this context (RFC 8613 §8.2). Where several contexts have the same recipient ID, one
    /// that names none of them is for each, and the first that can read it has it. Where keys are derived
    /// anew, any ID context is.
    #[must_use]
    pub fn is_for(&self, option: &OscoreOption<'_>) -> bool {
        let is_context = option.kid_context.is_none_or(|named| Some(named) == self.id_context() || self.anew.is_some());
        is_context && option.kid == Some(self.recipient_id())
    }

    /// The bound to store now, so that after a restart nothing is used twice (RFC 8613 Appendix B.1.1): `None` while more than half of
    /// `gap` messages may be protected without. With it stored, [say so](Self::bound_is_stored). A gap costs as many sequence
    /// numbers at every restart, out of 2^40.
    #[must_use]
    pub fn bound_to_store(&self, gap: u32) -> Option<u64> {
        self.numbers.bound_to_store(gap)
    }

    /// A bound is stored such that a [restart](Start::Stored) finds it, whatever happens.
    pub fn bound_is_stored(&mut self, bound: u64) {
        self.numbers.raise(bound);
    }

    /// Its keys and sequence numbers go on after a restart.
    #[cfg(all(feature = "server", feature = "observe"))]
    pub(super) fn outlives(&self) -> bool {
        self.anew.is_none() && !self.numbers.end_with_process()
    }

    /// The nonce of the endpoint that gave a message this Partial IV (RFC 8613 §5.2).
    pub(super) fn nonce(&self, id: &Id, partial_iv: PartialIv) -> AnyNonce {
        let mut nonce = AnyNonce::default();
        let size = core::iter::once(id.length);
        let padding = self.algorithm.longest_id().saturating_sub(id.as_bytes().len());
        let id = core::iter::repeat_n(0, padding).chain(id.as_bytes().iter().copied());
        let plain = size.chain(id).chain(partial_iv.padded());
        for ((nonce, common), plain) in nonce.iter_mut().zip(self.common_iv).zip(plain) {
            *nonce = common ^ plain;
        }
        nonce
    }

    /// What is authenticated beside a message that belongs to this request (RFC 8613 §5.4).
    pub(super) fn aad(&self, request_kid: &Id, request_piv: PartialIv) -> Vec<u8> {
        const OSCORE_VERSION: u8 = 1;
        let mut array = Vec::with_capacity(24);
        array.extend_from_slice(&[ARRAY_OF_5, OSCORE_VERSION, ARRAY_OF_1]);
        put_head(&mut array, UNSIGNED, self.algorithm.number().into());
        put_bytes(&mut array, request_kid.as_bytes());
        put_bytes(&mut array, request_piv.as_bytes());
        // No option is of class I.
        put_bytes(&mut array, &[]);
        let mut aad = Vec::with_capacity(40);
        aad.push(ARRAY_OF_3);
        put_head(&mut aad, TEXT, ENCRYPT0.len());
        aad.extend_from_slice(ENCRYPT0.as_bytes());
        put_bytes(&mut aad, &[]);
        put_bytes(&mut aad, &array);
        aad
    }
}

/// Without keys and IV.
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("algorithm", &self.algorithm)
            .field("id_context", &self.id_context)
            .field("sender_id", &self.sender.id)
            .field("recipient_id", &self.recipient.id)
            .field("numbers", &self.numbers)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

/// COSE_Encrypt0 (RFC 9052 §5.3).
const ENCRYPT0: &str = "Encrypt0";

/// Of CBOR (RFC 8949 §3.1): major types, and heads of one byte.
const UNSIGNED: u8 = 0x00;
const BYTES: u8 = 0x40;
const TEXT: u8 = 0x60;
const ARRAY_OF_1: u8 = 0x81;
const ARRAY_OF_3: u8 = 0x83;
const ARRAY_OF_5: u8 = 0x85;
const NIL: u8 = 0xf6;

/// The head of an item of CBOR with an argument of at most 255.
fn put_head(into: &mut Vec<u8>, major: u8, argument: usize) {
    match argument as u8 {
        short @ 0..24 => into.push(major | short),
        long => into.extend_from_slice(&[major | 24, long]),
    }
}

pub(super) fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    put_head(into, BYTES, bytes.len());
    into.extend_from_slice(bytes);
}

/// What is in a byte string of at most 255 bytes, if this is one.
pub(super) fn read_bytes(item: &[u8]) -> Option<&[u8]> {
    let (&head, rest) = item.split_first()?;
    let (length, bytes) = match head.checked_sub(BYTES)? {
        short @ 0..24 => (short, rest),
        24 => rest.split_first().map(|(&length, bytes)| (length, bytes)).filter(|(length, _)| *length >= 24)?,
        _ => return None,
    };
    (bytes.len() == usize::from(length)).then_some(bytes)
}
