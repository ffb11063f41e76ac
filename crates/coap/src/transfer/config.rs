use millpond_control::Span;

use crate::block::{
    BlockSize,
    robust::{BurstParameters, BurstParametersError},
};

/// How a stack behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest blocks sent and asked for, at most 1024 bytes.
    pub block: BlockSize,
    /// A confirmable notification to an observer at least this often, microseconds, whatever the application wishes for;
    /// RFC 7641 §4.5 asks for one in 24 hours. An observer that does not acknowledge it is forgotten. The first one is confirmable in any case, so that nobody is sent notifications for whom another one has
    /// registered.
    pub confirm_every: u64,
    /// Between two non-confirmable notifications to a client whose round-trip time is not known (RFC 7641 §4.5.1: 3 s);
    /// else it is that time.
    pub notify_every: Span,
    /// How long a representation is kept for requests of its later blocks, and a request's body whose next block does
    /// not come: EXCHANGE_LIFETIME of RFC 7252 §4.8.2 at the least (RFC 7959 §2.5).
    pub lifetime: Span,
    /// A registration is renewed so long after its representation is no longer fresh: drawn from this interval
    /// (RFC 7641 §3.3.1: 5 to 15 s).
    pub renew_after: (Span, Span),
    /// Requests whose bodies, or whose answers', travel in bursts (RFC 9177) are taken, with these parameters; both ends must
    /// have the same. With `None` they are answered as RFC 7252 §5.4.1 has it. RFC 9177 §11 recommends against them where
    /// peers are not authenticated: an unvalidated peer can have a whole body sent to an address that is not his, unless a peer that answers
    /// sees to that.
    pub q_block: Option<BurstParameters>,
    /// Bytes of an ETag that is made for an answer of several messages that has none, at most 8; with 0 there is none, so that a
    /// client cannot report that the representation has changed meanwhile (RFC 7959 §2.4). Bodies in bursts have a byte at least.
    pub etag_length: u8,
    /// What the stack may hold.
    pub limits: Limits,
}

impl Config {
    /// Blocks of 1024 bytes, one hour, 3 s, 247 s, 5 to 15 s, no bursts for who asks, ETags of 4 bytes.
    pub const DEFAULT: Self = Self {
        block: BlockSize::B1024,
        confirm_every: 3_600 * 1_000_000,
        notify_every: Span::from_secs(3),
        lifetime: Span::from_secs(247),
        renew_after: (Span::from_secs(5), Span::from_secs(15)),
        q_block: None,
        etag_length: 4,
        limits: Limits::DEFAULT,
    };

    /// For a device that talks to a server or two, over an endpoint of [`Config::SMALL`](crate::Config::SMALL): as
    /// [`DEFAULT`](Self::DEFAULT) in blocks of 512 bytes, within [`Limits::SMALL`].
    pub const SMALL: Self = Self { block: BlockSize::B512, limits: Limits::SMALL, ..Self::DEFAULT };
}

impl Config {
    /// For one connection of many: 256 requests, bodies of 1 MiB and 16 of them, 4 MiB kept, 64 observers.
    pub const STREAM: Self = Self {
        limits: Limits { client_requests: 256, cached: 4 << 20, observers: 64, ..Limits::DEFAULT },
        ..Self::DEFAULT
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a stack may hold at most, beside its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests of ours under way.
    pub client_requests: u32,
    /// Bytes of the bodies of requests, sent and received, and of notifications that wait. Answers of groups whose rest is fetched take a
    /// quarter of them at most.
    pub bytes: usize,
    /// Bytes of one request's body that comes in blocks.
    pub body: usize,
    /// Bytes of all of them together; as many again of bodies in bursts, those that are kept for what was lost of them
    /// included. Those go first of which the fewest blocks came, and of these those that nothing came
    /// for the longest; before them those of networks, where it is said which peers are in one
    /// ([`Endpoint::with_paths`](crate::Endpoint::with_paths)), that have more than a quarter of all that came in blocks; bodies of
    /// peers that were asked for something, or have answered something, go last.
    pub bodies: usize,
    /// Bodies of one peer's requests that come in blocks. Beyond that its own oldest one goes.
    pub bodies_per_peer: u32,
    /// Bodies in bursts that are collected, and kept for what was lost of them, however short they are: each of them is looked at
    /// when one moves.
    pub bursts: u32,
    /// Bytes of representations kept for later blocks. Those of unvalidated peers go first, then those of peers that have answered something,
    /// or that the application [knows](super::Answer::is_proved); of either those of networks that have more than a quarter, and of
    /// these the one that was not asked for the longest.
    pub cached: usize,
    /// Observers.
    pub observers: u32,
    /// Observers that are one peer.
    pub observers_per_peer: u32,
}

impl Limits {
    /// 16 384 requests, 64 MiB; bodies of 1 MiB, 16 MiB of them and of what is kept, 16 bodies of one peer,
    /// 256 in bursts; 16 384 observers, 64 for each peer. A judgement, like those of the endpoint.
    pub const DEFAULT: Self = Self {
        client_requests: 16_384,
        bytes: 64 << 20,
        body: 1 << 20,
        bodies: 16 << 20,
        bodies_per_peer: 16,
        bursts: 256,
        cached: 16 << 20,
        observers: 16_384,
        observers_per_peer: 64,
    };

    /// 4 requests, 8 KiB; bodies of 2 KiB, 4 KiB of them and of what is kept, one body of a peer, 2 in bursts; 4 observers, 2 for each
    /// peer. A judgement, like those of the endpoint.
    pub const SMALL: Self = Self {
        client_requests: 4,
        bytes: 8 << 10,
        body: 2 << 10,
        bodies: 4 << 10,
        bodies_per_peer: 1,
        bursts: 2,
        cached: 4 << 10,
        observers: 4,
        observers_per_peer: 2,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a stack cannot be configured like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// BERT is for streams.
    #[error("block is BERT, which only streams have; use 1024 bytes or less")]
    Bert,
    /// Blocks that no datagram of the endpoint can hold.
    #[error("block is {block} bytes, but a datagram may have {datagram}; use smaller blocks or longer datagrams")]
    Block {
        /// Bytes of a block.
        block: u32,
        /// Bytes of a datagram.
        datagram: usize,
    },
    /// Parameters of bursts that RFC 9177 forbids.
    #[error("q_block: {0}")]
    QBlock(#[from] BurstParametersError),
    /// An ETag that no message has room for.
    #[error("etag_length is {asked}; use 0 to 8")]
    EtagLength {
        /// What was asked for.
        asked: u8,
    },
    /// A part of the stack that this build was made without.
    #[error("millpond-coap was built without the feature `{feature}`")]
    LeftOut {
        /// The cargo feature of that part.
        feature: &'static str,
    },
    /// An interval that ends before it begins.
    #[error("renew_after ends before it begins")]
    RenewAfter,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoint, IdGenerator, transfer::CoapStack};
    use millpond_control::{ChanceSeed, Preset};

    #[test]
    fn a_small_stack_fits_a_small_endpoint() {
        let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(1));
        let endpoint =
            Endpoint::<u8>::new(crate::Config::SMALL, controller, chance, 0, IdGenerator::counted()).unwrap();
        assert!(CoapStack::new(endpoint, Config::SMALL, chance).is_ok());
    }
}
