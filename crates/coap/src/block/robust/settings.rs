use millpond_control::Span;

use super::{super::BlockSize, BurstParameters};

/// How a [`BurstClient`](super::BurstClient) or [`BurstServer`](super::BurstServer) behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BurstOptions {
    /// Parameters that both ends must share.
    pub(crate) parameters: BurstParameters,
    /// The largest blocks that a server sends. With the options of an answer they must fit the endpoint's datagrams.
    pub(crate) size: BlockSize,
    /// Bytes at least of an ETag that a server makes, and of the Request-Tag of a client, 1 to 8.
    pub(crate) tag_length: u8,
    /// PROBING_RATE: bytes a second of whole bodies to a peer that does not answer (RFC 9177 §7.2).
    pub(crate) probing_rate: u32,
    /// NON_PROBING_WAIT: the longest wait that follows from PROBING_RATE.
    pub(crate) probing_wait: Span,
    /// What may be held.
    pub(crate) limits: BurstLimits,
}

impl BurstOptions {
    /// The defaults of RFC 9177 §7.2: blocks of 1024 bytes, 1 byte/s and at most 247 s towards the silent, and 4 bytes for
    /// tags (§4.3 and §4.4 suggest 4 or 8).
    pub(crate) const RFC9177: Self = Self {
        parameters: BurstParameters::RFC9177,
        size: BlockSize::B1024,
        tag_length: 4,
        probing_rate: 1,
        probing_wait: Span::from_secs(247),
        limits: BurstLimits::DEFAULT,
    };

    /// How long the next body has to wait after so many bytes that nothing came back for.
    pub(super) fn probing_wait(&self, bytes: usize) -> Span {
        let seconds = u32::try_from(bytes).unwrap_or(u32::MAX).checked_div(self.probing_rate.max(1)).unwrap_or(0);
        Span::from_secs(seconds).min(self.probing_wait)
    }
}

/// What a client or server of bursts may hold at most. What would exceed it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BurstLimits {
    /// Bytes of one body, sent or received.
    pub(crate) body: usize,
    /// Bodies at a time; a client's transfers. On a server those make room of which the fewest blocks came, and those of peers
    /// that are known to be there for nobody else.
    pub(crate) bodies: usize,
    /// Bodies of one peer at a time on a server; the one idle for longest makes room.
    pub(crate) bodies_per_peer: usize,
    /// Requests that a server's application has not answered.
    pub(crate) requests: usize,
    /// Bytes of all bodies together.
    pub(crate) bytes: usize,
    /// Peers of which a client remembers whether they know the options.
    pub(crate) peers: usize,
}

impl BurstLimits {
    /// 1 MiB a body, 64 bodies, 4 of one peer, 64 requests, 16 MiB together, 256 peers.
    pub(crate) const DEFAULT: Self =
        Self { body: 1 << 20, bodies: 64, bodies_per_peer: 4, requests: 64, bytes: 16 << 20, peers: 256 };
}
