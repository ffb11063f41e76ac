use alloc::vec::Vec;

/// Why a list of missing blocks cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadMissingBlocks {
    /// Where it goes wrong.
    pub(crate) at: usize,
}

/// Writes block numbers, which must ascend, as a CBOR sequence of unsigned integers (RFC 8742; RFC 9177 §5), as many as
/// fit `limit` bytes.
#[must_use]
pub(crate) fn missing_blocks(numbers: &[u32], limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &number in numbers {
        let before = bytes.len();
        match number {
            0..=23 => bytes.push(number as u8),
            24..=0xff => bytes.extend_from_slice(&[0x18, number as u8]),
            0x100..=0xffff => {
                bytes.push(0x19);
                bytes.extend_from_slice(&(number as u16).to_be_bytes());
            }
            _ => {
                bytes.push(0x1a);
                bytes.extend_from_slice(&number.to_be_bytes());
            }
        }
        if bytes.len() > limit {
            bytes.truncate(before);
            break;
        }
    }
    bytes
}

/// Reads such a list. Numbers that do not ascend are refused (RFC 9177 §5).
///
/// # Errors
/// Where it is not such a list.
pub(crate) fn read_missing_blocks(bytes: &[u8]) -> Result<Vec<u32>, BadMissingBlocks> {
    let mut numbers: Vec<u32> = Vec::new();
    let mut rest = bytes;
    while let Some((&head, after)) = rest.split_first() {
        let bad = BadMissingBlocks { at: bytes.len().saturating_sub(rest.len()) };
        let (number, after) = match (head, after) {
            (0..=23, after) => (u32::from(head), after),
            (0x18, &[a, ref after @ ..]) => (u32::from(a), after),
            (0x19, &[a, b, ref after @ ..]) => (u32::from(u16::from_be_bytes([a, b])), after),
            (0x1a, &[a, b, c, d, ref after @ ..]) => (u32::from_be_bytes([a, b, c, d]), after),
            _ => return Err(bad),
        };
        if numbers.last().is_some_and(|last| *last >= number) {
            return Err(bad);
        }
        numbers.push(number);
        rest = after;
    }
    Ok(numbers)
}
