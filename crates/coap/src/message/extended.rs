//! Tokens of more than 8 bytes (RFC 8974 §2.1).

use alloc::vec::Vec;

use super::{Fault, HEADER};

/// Longest token that a message can have, in bytes.
pub const LONGEST_TOKEN: usize = 65_804;

/// A token length as a message has it: in the field of its first byte, and in as many bytes in front of the token as that says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenLength {
    pub(crate) field: u8,
    /// What stands in front of the token, in the last bytes.
    extension: [u8; 2],
}

impl TokenLength {
    /// That of a token of so many bytes, at most [`LONGEST_TOKEN`].
    pub(crate) fn of(length: usize) -> Self {
        let beyond = |least: usize| u16::try_from(length.saturating_sub(least)).unwrap_or(u16::MAX).to_be_bytes();
        match length {
            0..=12 => Self { field: length as u8, extension: [0; 2] },
            13..=268 => Self { field: 13, extension: beyond(13) },
            _ => Self { field: 14, extension: beyond(269) },
        }
    }

    /// Bytes in front of the token that extend the length in this field.
    pub(crate) const fn extension_of(field: u8) -> usize {
        match field {
            13 => 1,
            14 => 2,
            _ => 0,
        }
    }

    /// What stands in front of the token.
    pub(crate) fn extension(&self) -> &[u8] {
        self.extension.get(2_usize.saturating_sub(Self::extension_of(self.field))..).unwrap_or_default()
    }

    /// The length that this field and the bytes behind the header say, if they are enough.
    ///
    /// # Errors
    /// The reserved 15.
    pub(crate) fn read(field: u8, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        Ok(match (field, bytes) {
            (0..=12, _) => Some(usize::from(field)),
            (13, &[a, ..]) => Some(usize::from(a).saturating_add(13)),
            (14, &[a, b, ..]) => Some(usize::from(u16::from_be_bytes([a, b])).saturating_add(269)),
            (13 | 14, _) => None,
            _ => return Err(Fault::TokenLength(field)),
        })
    }
}

/// Splits what stands behind the header into the token, whose length is in this field, and the rest.
///
/// # Errors
/// The reserved 15, and a token that is cut short.
pub(crate) fn split_token(field: u8, body: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    let length = TokenLength::read(field, body)?.ok_or(Fault::TokenTruncated)?;
    let rest = body.get(TokenLength::extension_of(field)..).unwrap_or_default();
    rest.split_at_checked(length).ok_or(Fault::TokenTruncated)
}

/// Where the token of a written message ends.
pub(crate) fn behind_token(message: &[u8]) -> Option<usize> {
    let (token, _) = split_token(message.first()? & 0x0f, message.get(HEADER..)?).ok()?;
    Some(HEADER.saturating_add(TokenLength::extension_of(message.first()? & 0x0f)).saturating_add(token.len()))
}

/// Appends the token with what extends its length.
pub(crate) fn put_token(buffer: &mut Vec<u8>, token: &[u8]) {
    buffer.extend_from_slice(TokenLength::of(token.len()).extension());
    buffer.extend_from_slice(token);
}
