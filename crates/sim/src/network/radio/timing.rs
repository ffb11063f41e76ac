//! How long things take on the air at 250 kbit/s: IEEE 802.15.4, the O-QPSK PHY at 2.4 GHz, with symbols of 16 µs.

use millpond_control::Span;

/// A byte takes two symbols.
const BYTE: u32 = 32;
/// Preamble, start of frame and length, in front of every frame.
const FRONT: u32 = 6;

/// Bytes of an acknowledgement, without what is in front of every frame.
pub(crate) const ACK_BYTES: u16 = 5;
/// Clear channel assessment: eight symbols.
pub(crate) const ASSESSMENT: Span = Span::from_micros(128);
/// From receiving to sending or back: twelve symbols.
pub(crate) const TURNAROUND: Span = Span::from_micros(192);
/// The unit of random waiting: twenty symbols.
pub(crate) const BACKOFF_UNIT: u32 = 320;
/// macAckWaitDuration: 54 symbols.
pub(crate) const ACK_WAIT: Span = Span::from_micros(864);
/// Contiki 2.7, nullrdc: until something must be heard after a frame.
pub(crate) const ACK_DETECTION: Span = Span::from_micros(400);
/// Contiki 2.7, nullrdc: from there until the acknowledgement is read.
pub(crate) const ACK_READING: Span = Span::from_micros(670);

/// How long a frame of so many bytes is on the air.
pub(crate) const fn airtime(bytes: u16) -> Span {
    Span::from_micros((FRONT + bytes as u32) * BYTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_take_what_the_standard_says() {
        assert_eq!(airtime(96), Span::from_micros(3_264));
        assert_eq!(airtime(103), Span::from_micros(3_488));
        assert_eq!(airtime(84), Span::from_micros(2_880));
        assert_eq!(airtime(ACK_BYTES), Span::from_micros(352));
    }
}
