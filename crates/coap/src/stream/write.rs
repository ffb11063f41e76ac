use alloc::vec::Vec;

use crate::message::{Code, LONGEST_TOKEN, MARKER, OptionHeader, Token, TokenLength, WriteError, put_token};

/// Appends one frame to a buffer (RFC 8323 §3.2), with its length in the shortest form, and returns its size in bytes.
///
/// # Errors
/// Options out of order or too long, and a frame of more than `limit` bytes. The buffer is then as it was.
pub fn write_frame(
    buffer: &mut Vec<u8>,
    code: Code,
    token: Token,
    options: &[(u16, &[u8])],
    payload: &[u8],
    limit: u32,
) -> Result<usize, WriteError> {
    write_extended(buffer, code, token.as_bytes(), options, payload, limit)
}

/// The same with a token of any length up to [`LONGEST_TOKEN`] (RFC 8974); what is longer is cut.
///
/// # Errors
/// As [`write_frame`].
pub fn write_extended(
    buffer: &mut Vec<u8>,
    code: Code,
    token: &[u8],
    options: &[(u16, &[u8])],
    payload: &[u8],
    limit: u32,
) -> Result<usize, WriteError> {
    let token = token.get(..LONGEST_TOKEN).unwrap_or(token);
    let token_length = TokenLength::of(token.len());
    let mut length = if payload.is_empty() { 0 } else { payload.len().saturating_add(1) };
    let mut after = 0;
    for &(number, value) in options {
        let header = OptionHeader::new(after, number, value)?;
        length = length.saturating_add(header.size()).saturating_add(value.len());
        after = number;
    }
    let prefix = Prefix::of(length);
    let of_token = token_length.extension().len().saturating_add(token.len());
    let total = prefix.size().saturating_add(1).saturating_add(of_token).saturating_add(length);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if total > limit {
        return Err(WriteError::OverLimit { needed: total, limit });
    }
    buffer.reserve(total);
    prefix.put(buffer, token_length.field);
    buffer.push(code.to_byte());
    put_token(buffer, token);
    after = 0;
    for &(number, value) in options {
        OptionHeader::new(after, number, value)?.put(buffer);
        buffer.extend_from_slice(value);
        after = number;
    }
    if !payload.is_empty() {
        buffer.push(MARKER);
        buffer.extend_from_slice(payload);
    }
    Ok(total)
}

/// The length nibble and the bytes that extend it.
enum Prefix {
    Nibble(u8),
    Byte(u8),
    Word(u16),
    Long(u32),
}

impl Prefix {
    fn of(length: usize) -> Self {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        match length {
            0..=12 => Self::Nibble(length as u8),
            13..=268 => Self::Byte(length.saturating_sub(13) as u8),
            269..=65_804 => Self::Word(length.saturating_sub(269) as u16),
            _ => Self::Long(length.saturating_sub(65_805)),
        }
    }

    const fn size(&self) -> usize {
        match self {
            Self::Nibble(_) => 1,
            Self::Byte(_) => 2,
            Self::Word(_) => 3,
            Self::Long(_) => 5,
        }
    }

    fn put(&self, buffer: &mut Vec<u8>, token_length: u8) {
        let first = |nibble: u8| (nibble << 4) | token_length;
        match *self {
            Self::Nibble(nibble) => buffer.push(first(nibble)),
            Self::Byte(rest) => buffer.extend_from_slice(&[first(13), rest]),
            Self::Word(rest) => {
                buffer.push(first(14));
                buffer.extend_from_slice(&rest.to_be_bytes());
            }
            Self::Long(rest) => {
                buffer.push(first(15));
                buffer.extend_from_slice(&rest.to_be_bytes());
            }
        }
    }
}
