use millpond_control::Instant;

/// The newest notification of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    /// Its option Observe.
    pub sequence: u32,
    /// When it came.
    pub at: Instant,
}

impl Newest {
    /// Whether a notification that comes now with this Observe is newer (RFC 7641 §3.4).
    #[must_use]
    pub const fn is_before(&self, sequence: u32, now: Instant) -> bool {
        const HALF: u32 = 1 << 23;
        const LIFETIME: u64 = 128_000_000;
        let newest = self.sequence;
        (newest < sequence && sequence.saturating_sub(newest) < HALF)
            || (newest > sequence && newest.saturating_sub(sequence) > HALF)
            || now.as_micros() > self.at.as_micros().saturating_add(LIFETIME)
    }
}
