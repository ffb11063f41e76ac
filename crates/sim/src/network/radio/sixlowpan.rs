//! How a datagram becomes frames: 6LoWPAN (RFC 4944, RFC 6282) as Contiki 2.7 does it.

/// IPv6, the RPL option in its hop-by-hop header (RFC 6553), and UDP, in front of every message.
pub(crate) const HEADER: u32 = 40 + 8 + 8;
/// The MAC header: control, number, PAN and two long addresses.
const MAC_HEADER: u32 = 21;
/// The checksum of a frame.
const CHECKSUM: u32 = 2;
/// Most that a frame carries between the two.
const MOST: u32 = 81;
/// Packets shorter than this are not compressed.
const COMPRESSED_FROM: u32 = 63;
/// What 40 bytes of IPv6 header take when compressed, both addresses written out by half.
const COMPRESSED: u32 = 20;
const IPV6: u32 = 40;
/// Headers of a first and of a further fragment.
const FIRST: u32 = 4;
const FURTHER: u32 = 5;

/// The longest packet: as many fragments as a set of 64 has room for.
pub(crate) const LONGEST_PACKET: u32 = IPV6 + 56 + 63 * 72;

/// The lengths of the frames that a packet of so many bytes becomes, each without what is in front of every frame.
pub(crate) fn frames(packet: u32, lengths: &mut Vec<u16>) {
    lengths.clear();
    let mut frame = |inside: u32| lengths.push((MAC_HEADER + inside + CHECKSUM) as u16);
    if packet < COMPRESSED_FROM {
        // A dispatch byte says that nothing is compressed.
        return frame(1 + packet);
    }
    let compressed = packet - IPV6 + COMPRESSED;
    if compressed <= MOST {
        return frame(compressed);
    }
    // Fragments end at multiples of eight bytes of the packet as it was.
    let first = (MOST - FIRST - COMPRESSED) / 8 * 8;
    frame(FIRST + COMPRESSED + first);
    let mut left = packet - IPV6 - first;
    while left > MOST - FURTHER {
        let further = (MOST - FURTHER) / 8 * 8;
        frame(FURTHER + further);
        left -= further;
    }
    frame(FURTHER + left);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(message: u32) -> Vec<u16> {
        let mut lengths = Vec::new();
        frames(HEADER + message, &mut lengths);
        lengths
    }

    #[test]
    fn a_message_of_96_bytes_takes_two_frames_and_one_of_37_a_frame_of_96() {
        assert_eq!(of(96), [103, 84]);
        assert_eq!(of(37), [96]);
    }

    #[test]
    fn an_acknowledgement_is_too_short_to_be_compressed() {
        assert_eq!(of(4), [84]);
        assert_eq!(of(6), [86]);
        // From 63 bytes of packet on it is compressed: 43 bytes inside.
        assert_eq!(of(7), [66]);
    }

    #[test]
    fn fragments_carry_the_whole_packet_in_frames_that_are_not_too_long() {
        for packet in 63..2_000 {
            let mut lengths = Vec::new();
            frames(packet, &mut lengths);
            assert!(lengths.iter().all(|length| u32::from(*length) <= MAC_HEADER + MOST + CHECKSUM));
            let inside: u32 = lengths.iter().map(|length| u32::from(*length) - MAC_HEADER - CHECKSUM).sum();
            let headers = match lengths.len() as u32 {
                1 => 0,
                more => FIRST + (more - 1) * FURTHER,
            };
            assert_eq!(inside - headers, packet - 20, "{packet}: {lengths:?}");
        }
    }
}
