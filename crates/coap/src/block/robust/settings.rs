use millpond_control::Span;

use super::{super::BlockSize, BurstParameters};

/// How a [`BurstClient`](super::BurstClient) or [`BurstServer`](super::BurstServer) behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstOptions {
    /// Parameters that both ends must share.
    pub parameters: BurstParameters,
    /// The largest blocks that a server sends. With the options of an answer they must fit the endpoint's datagrams.
    pub size: BlockSize,
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
    /// tags (§4.3 and §4.4 suggest 4 or 8).
    pub const RFC9177: Self = Self {
        parameters: BurstParameters::RFC9177,
        size: BlockSize::B1024,
        tag_length: 4,
        probing_rate: 1,
        probing_wait: Span::from_secs(247),
        limits: BurstLimits::DEFAULT,
    };

    /// Refuses what RFC 9177 forbids or what cannot work. Who makes clients and servers of values that a person chose calls
    /// it first; they do not, and take what is out of range as the nearest that is in it.
    ///
    /// # Errors
    /// What cannot be, with its place and its mend.
    pub fn check(&self) -> Result<(), BurstOptionsError> {
        let BurstParameters { set, pause, patience, .. } = self.parameters;
        if set == 0 {
            return Err(BurstOptionsError::EmptySet);
        }
        let least = pause.scaled(3, 2).plus(Span::from_secs(1));
        if patience < least {
            return Err(BurstOptionsError::Patience { patience, least });
        }
        if self.size.is_bert() {
            return Err(BurstOptionsError::Bert);
        }
        if !(1..=8).contains(&self.tag_length) {
            return Err(BurstOptionsError::TagLength { asked: self.tag_length });
        }
        Ok(())
    }

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

/// Why bursts cannot be like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum BurstOptionsError {
    /// MAX_PAYLOADS of zero.
    #[error("parameters.set is 0, so that nothing could ever leave; use 1 or more")]
    EmptySet,
    /// NON_RECEIVE_TIMEOUT must exceed the longest pause by a second (RFC 9177 §7.2).
    #[error("parameters.patience is {patience}; use {least} or more: half as much again as parameters.pause, and 1 s")]
    Patience {
        /// What was asked for.
        patience: Span,
        /// The shortest that can be.
        least: Span,
    },
    /// Several blocks in a message, which only streams have.
    #[error("size is BERT, which only streams have; use 1024 bytes or less")]
    Bert,
    /// No tag, or one that is too long for an ETag.
    #[error("tag_length is {asked}; use 1 to 8")]
    TagLength {
        /// What was asked for.
        asked: u8,
    },
}

/// What a client or server of bursts may hold at most. What would exceed it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstLimits {
    /// Bytes of one body, sent or received.
    pub body: usize,
    /// Bodies at a time; a client's transfers. On a server those make room of which the fewest blocks came, and those of peers
    /// that are known to be there for nobody else.
    pub bodies: usize,
    /// Bodies of one peer at a time on a server; the one idle for longest makes room.
    pub bodies_per_peer: usize,
    /// Requests that a server's application has not answered.
    pub requests: usize,
    /// Bytes of all bodies together.
    pub bytes: usize,
    /// Peers of which a client remembers whether they know the options.
    pub peers: usize,
}

impl BurstLimits {
    /// 1 MiB a body, 64 bodies, 4 of one peer, 64 requests, 16 MiB together, 256 peers.
    pub const DEFAULT: Self =
        Self { body: 1 << 20, bodies: 64, bodies_per_peer: 4, requests: 64, bytes: 16 << 20, peers: 256 };
}

impl Default for BurstLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn what_cannot_work_is_refused_with_its_place_and_its_mend() {
        assert_eq!(BurstOptions::default().check(), Ok(()));
        type Change = fn(&mut BurstOptions);
        let cases: [(Change, &str); 5] = [
            (|o| o.parameters.set = 0, "parameters.set is 0"),
            (|o| o.parameters.patience = Span::from_millis(3_999), "parameters.patience is 3.999 s; use 4 s or more"),
            (|o| o.parameters.pause = Span::from_secs(3), "use 5.5 s or more"),
            (|o| o.size = BlockSize::BERT, "use 1024 bytes or less"),
            (|o| o.tag_length = 0, "tag_length is 0; use 1 to 8"),
        ];
        for (change, expected) in cases {
            let mut options = BurstOptions::default();
            change(&mut options);
            let message = options.check().err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(expected), "{message:?} lacks {expected:?}");
        }
    }
}
