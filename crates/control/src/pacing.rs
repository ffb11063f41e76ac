//! Pacing of messages that nobody acknowledges: at most one in each timeout.

use crate::{
    backoff::shorter,
    controller::{Admit, Class, Cx},
    layout::laid_out,
    time::{Instant, PackedInstant, Span},
};

/// From when on the next such message may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pacing(PackedInstant);

laid_out!(Pacing { 0 });

impl Pacing {
    /// None has left.
    pub const UNUSED: Self = Self(PackedInstant::new(Instant::ORIGIN));

    /// Every eighth of these messages is made confirmable, so that any 16 in a row hold two
    /// (draft-ietf-core-cocoa-03 §5).
    pub const CONFIRMABLE_EVERY: u8 = 8;

    /// Whether a message may leave.
    #[must_use]
    pub fn admit(self, class: Class, cx: Cx) -> Admit {
        let next = self.0.at();
        if class == Class::Plain && cx.now < next { Admit::At(next) } else { Admit::Now }
    }

    /// One left: the next waits for this timeout.
    pub fn sent(&mut self, timeout: Span, now: Instant) {
        self.0 = PackedInstant::new(now.after(timeout));
    }

    /// The same for one of `len` bytes; a byte a second is always allowed (draft-ietf-core-cocoa-03 §5).
    pub fn sent_bytes(&mut self, len: u16, timeout: Span, now: Instant) {
        self.sent(shorter(timeout, Span::from_secs(u32::from(len.max(1)))), now);
    }
}
