//! Bytes as hexadecimal digits beside the characters that they may be.

use std::fmt::Write;

/// Sixteen bytes a line, with their position before them.
#[must_use]
pub fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (line, bytes) in bytes.chunks(16).enumerate() {
        let mut digits = String::new();
        for (column, byte) in bytes.iter().enumerate() {
            let gap = if column == 8 { "  " } else { " " };
            let _ = write!(digits, "{gap}{byte:02x}");
        }
        let readable = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
        let characters: String = bytes.iter().map(readable).collect();
        let _ = writeln!(text, "{:08x} {digits:<49}  {characters}", line * 16);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_sixteen_bytes_and_a_gap_in_the_middle() {
        let bytes: Vec<u8> = (0x41..0x53).collect();
        assert_eq!(
            dump(&bytes),
            "00000000  41 42 43 44 45 46 47 48  49 4a 4b 4c 4d 4e 4f 50  ABCDEFGHIJKLMNOP\n\
             00000010  51 52                                             QR\n"
        );
    }
}
