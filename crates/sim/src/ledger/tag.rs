//! What the laboratory knows of a packet and nobody else can see.

use millpond_control::Instant;

use super::NO_EXCHANGE;

/// Which request copy a packet is, or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Number of the flow: a client's own, or of what the server sends to one by itself.
    pub(crate) flow: u32,
    /// Number of the exchange within the flow.
    pub(crate) exchange: u32,
    /// Number of the copy, 0 being the first.
    pub(crate) copy: u8,
    /// Nobody answers it: it ends where it arrives, or is lost.
    pub(crate) is_one_way: bool,
    /// Bytes of the request copy, headers included.
    pub(crate) request_bytes: u32,
    /// When the copy left.
    pub(crate) sent: Instant,
}

impl Tag {
    /// The tag of a packet of this flow that belongs to no exchange.
    #[inline]
    pub(crate) const fn of(flow: u32, request_bytes: u32, sent: Instant) -> Self {
        Self { flow, exchange: NO_EXCHANGE, copy: 0, is_one_way: false, request_bytes, sent }
    }
}
