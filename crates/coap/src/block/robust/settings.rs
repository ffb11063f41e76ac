use millpond_control::Span;

use super::{super::BlockSize, BurstParameters};

/// How a [`BurstClient`](super::BurstClient) or [`BurstServer`](super::BurstServer) behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstOptions {
    /// Parameters that both ends must share.
    pub parameters: BurstParameters,
    /// The largest blocks that a server sends. With the options of an answer they must fit the endpoint's datagrams.
    pub size: BlockSize,
    /// Bytes of the fixed part of a transfer's tokens, 1 to 4: each of its requests has this and a count behind it, as
    /// RFC 9177 §6 advises. The first has no count.
    pub token_length: u8,
    /// Bytes at least of an ETag that a server makes, and of the Request-Tag of a client, 1 to 8.
    pub tag_length: u8,
    /// PROBING_RATE: bytes a second of whole bodies to a peer that does not answer (RFC 9177 §7.2).
    pub probing_rate: u32,
    /// NON_PROBING_WAIT: the longest wait that follows from PROBING_RATE.
    pub probing_wait: Span,
    /// What may be held.
    pub limits: BurstLimits,
}

impl BurstOptions {
    /// The defaults of RFC 9177 §7.2: blocks of 1024 bytes, 1 byte/s and at most 247 s towards the silent, and 4 bytes for
    /// tokens and tags (§4.3 and §4.4 suggest 4 or 8).
    pub const RFC9177: Self = Self {
        parameters: BurstParameters::RFC9177,
        size: BlockSize::B1024,
        token_length: 4,
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

impl Default for BurstOptions {
    fn default() -> Self {
        Self::RFC9177
    }
}

/// What a client or server of bursts may hold at most. What would exceed it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstLimits {
    /// Bytes of one body, sent or received.
    pub body: usize,
    /// Bodies at a time; a client's transfers.
    pub bodies: usize,
    /// Bodies of one peer at a time on a server; the one idle for longest makes room.
    pub bodies_per_peer: usize,
    /// Bytes of all bodies together.
    pub bytes: usize,
    /// Peers of which a client remembers whether they know the options.
    pub peers: usize,
}

impl BurstLimits {
    /// 1 MiB a body, 64 bodies, 4 of one peer, 16 MiB together, 256 peers.
    pub const DEFAULT: Self = Self { body: 1 << 20, bodies: 64, bodies_per_peer: 4, bytes: 16 << 20, peers: 256 };
}

impl Default for BurstLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
