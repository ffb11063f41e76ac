use alloc::vec::Vec;

use super::PartialIv;

/// Flag bits of the first byte (RFC 8613 §6.1).
const KID_CONTEXT: u8 = 0b1_0000;
const KID: u8 = 0b1000;
const LENGTH: u8 = 0b111;

/// Bytes of the longest value (RFC 8613 §2).
const LONGEST: usize = 255;

/// The value of an OSCORE option: the header of a COSE object, compressed (RFC 8613 §6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OscoreOption<'a> {
    /// The sequence number that the sender of the message gave it.
    pub partial_iv: Option<PartialIv>,
    /// Which of the contexts that have the same [`kid`](Self::kid).
    pub kid_context: Option<&'a [u8]>,
    /// Sender ID of the sender of the message.
    pub kid: Option<&'a [u8]>,
}

impl<'a> OscoreOption<'a> {
    /// Reads a value.
    ///
    /// # Errors
    /// Whatever [`encode`](Self::encode) would not have written.
    pub fn decode(value: &'a [u8]) -> Result<Self, OptionFault> {
        if value.len() > LONGEST {
            return Err(OptionFault::TooLong);
        }
        let Some((&flags, rest)) = value.split_first() else { return Ok(Self::default()) };
        if flags & !(KID_CONTEXT | KID | LENGTH) != 0 {
            return Err(OptionFault::ReservedFlags);
        }
        if flags == 0 {
            return Err(OptionFault::NotMinimal);
        }
        let (partial_iv, rest) = match flags & LENGTH {
            0 => (None, rest),
            length => {
                if usize::from(length) > PartialIv::LONGEST {
                    return Err(OptionFault::ReservedLength(length));
                }
                let (bytes, rest) =
                    rest.split_at_checked(usize::from(length)).ok_or(OptionFault::PartialIvTruncated)?;
                (Some(PartialIv::read(bytes).ok_or(OptionFault::NotMinimal)?), rest)
            }
        };
        let (kid_context, rest) = match flags & KID_CONTEXT {
            0 => (None, rest),
            _ => {
                let (&length, rest) = rest.split_first().ok_or(OptionFault::KidContextTruncated)?;
                let (kid_context, rest) =
                    rest.split_at_checked(usize::from(length)).ok_or(OptionFault::KidContextTruncated)?;
                (Some(kid_context), rest)
            }
        };
        let kid = (flags & KID != 0).then_some(rest);
        if kid.is_none() && !rest.is_empty() {
            return Err(OptionFault::Trailing);
        }
        Ok(Self { partial_iv, kid_context, kid })
    }

    /// The value; `None` if it would be longer than 255 bytes.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        let partial_iv = self.partial_iv.as_ref().map_or(&[][..], PartialIv::as_bytes);
        let flags = partial_iv.len() as u8
            | if self.kid_context.is_some() { KID_CONTEXT } else { 0 }
            | if self.kid.is_some() { KID } else { 0 };
        if flags == 0 {
            return Some(value);
        }
        value.push(flags);
        value.extend_from_slice(partial_iv);
        if let Some(kid_context) = self.kid_context {
            value.push(u8::try_from(kid_context.len()).ok()?);
            value.extend_from_slice(kid_context);
        }
        value.extend_from_slice(self.kid.unwrap_or_default());
        Some(value).filter(|value| value.len() <= LONGEST)
    }
}

/// Why a value of an OSCORE option cannot be read (RFC 8613 §6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum OptionFault {
    /// More than 255 bytes (§2).
    #[error("longer than 255 bytes")]
    TooLong,
    /// One of the three highest bits of the first byte is set. Messages of groups (Group OSCORE) have one.
    #[error("a reserved flag is set")]
    ReservedFlags,
    /// A Partial IV of 6 or 7 bytes.
    #[error("a Partial IV of {0} bytes")]
    ReservedLength(u8),
    /// The Partial IV is longer than what is left.
    #[error("the Partial IV is cut short")]
    PartialIvTruncated,
    /// The 'kid context' or its length is longer than what is left.
    #[error("the kid context is cut short")]
    KidContextTruncated,
    /// A first byte of 0 instead of no byte, or a Partial IV with leading zeros (§5).
    #[error("not in the shortest form")]
    NotMinimal,
    /// More bytes, and no flag says that they are a 'kid'.
    #[error("bytes behind the last field")]
    Trailing,
}
