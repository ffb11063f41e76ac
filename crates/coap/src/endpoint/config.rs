use millpond_control::Span;

use crate::message::MAX_DATAGRAM;
use crate::parts;

/// How an endpoint behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// The transmission parameters of RFC 7252 §4.8 that are the endpoint's and not the controller's.
    pub transmission: Transmission,
    /// What a retransmission of a request meets.
    pub duplicates: Duplicates,
    /// Bytes in the tokens that the endpoint makes. With 0 one request per peer can be under way at a time, and
    /// the next waits. Tokens of 2 bytes and more are not used again for as long as message IDs are not; tokens of 1
    /// byte are merely distinct among the requests under way. Once copies are distinguished by their tokens, there are at
    /// most 7 bytes, and one more in each copy after the first. With more than 8 requests have zeros behind 8 bytes that tell them
    /// apart (RFC 8974), to see what a server makes of that; copies are not distinguished by these.
    pub token_length: u16,
    /// Bytes of the longest token that is taken with a request. Up to 8, longer ones are a message format error (RFC 7252 §3). ExtraState,
    /// those that are too long are answered with 4.00, and with 5.03 for want of room (RFC 8974 §2.2.2). Requests to groups have at most
    /// 8 in any case.
    pub longest_token: u16,
    /// How long the application may take to answer a confirmable request before it is acknowledged without the
    /// response (RFC 7252 §5.2.2). Zero acknowledges at once, so that no response is ever piggybacked.
    pub ack_delay: Span,
    /// Over how long the answers to a request that came to a group are spread: [`DEFAULT_LEISURE`](super::DEFAULT_LEISURE),
    /// or what [`leisure`](super::leisure) gives (RFC 7252 §8.2).
    pub leisure: Span,
    /// The options that tell copies of a request apart.
    pub naming: NamingOptions,
    /// Whether a non-confirmable message leaves as a confirmable one where the peer's controller wishes that
    /// ([`Wishes::confirmable_every`](millpond_control::Wishes)). Without it draft-ietf-core-cocoa-03 §5 is not kept.
    pub may_confirm: bool,
    /// Whether a non-confirmable message of a body in bursts ([`send_of_body`](super::Endpoint::send_of_body)) waits until the
    /// peer's controller admits it, beside the pauses after each set that its sender keeps (RFC 9177 §7.2). Controllers that let
    /// one such message go in a round trip take what sets are for away; those that pace are better than sets.
    pub admits_pieces: bool,
    /// Whether what nothing waits for is told, as [`Event::Late`](super::Event::Late). It is counted either way
    /// ([`Counters::late`](super::Counters)); without being told nobody can reject it
    /// ([`reject_late`](super::Endpoint::reject_late)).
    pub tells_late: bool,
    /// Whether responses that nothing was asked for are taken: told as [`Event::Unasked`](super::Event::Unasked), and
    /// acknowledged instead of rejected (RFC 7252 §4.2). For devices that report so.
    pub takes_unasked: bool,
    /// What the endpoint may hold.
    pub limits: Limits,
}

impl Config {
    /// Parameters of RFC 7252 §4.8, stored replies, tokens of 4 bytes, and an ACK delay of 500 ms: a quarter of
    /// ACK_TIMEOUT, so that an acknowledgement on any path faster than 1.5 s comes before the peer's first timer. All
    /// wishes of controllers are granted, those of a peer's controller included.
    pub const DEFAULT: Self = Self {
        transmission: Transmission::RFC7252,
        duplicates: Duplicates::Stored,
        token_length: 4,
        longest_token: 8,
        ack_delay: Span::from_millis(500),
        leisure: super::DEFAULT_LEISURE,
        naming: NamingOptions::DEFAULT,
        may_confirm: true,
        admits_pieces: true,
        tells_late: true,
        takes_unasked: false,
        limits: Limits::DEFAULT,
    };

    /// For a device that talks to a server or two: as [`DEFAULT`](Self::DEFAULT) within [`Limits::SMALL`].
    pub const SMALL: Self = Self { limits: Limits::SMALL, ..Self::DEFAULT };

    /// Tokens that are longer leave no room for anything else in a datagram.
    const MOST_TOKEN: u16 = 65_000;

    /// Refuses what cannot work.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let without = |is_there, feature| if is_there { Ok(()) } else { Err(ConfigError::LeftOut { feature }) };
        let is_small =
            self.limits.peers <= Limits::FEW_PEERS && self.limits.exchanges_per_peer <= Limits::FEW_EXCHANGES;
        without(parts::MANY_PEERS || is_small, "many-peers")?;
        without(parts::LONG_TOKENS || self.token_length.max(self.longest_token) <= 8, "long-tokens")?;
        let Limits { peers, exchanges_per_peer, requests, datagram, received, duplicate_bytes, .. } = self.limits;
        if self.transmission.nstart == 0 {
            return Err(ConfigError::NothingMayStart);
        }
        if self.transmission.max_retransmit > Transmission::MOST_RETRANSMISSIONS {
            return Err(ConfigError::TooManyCopies { asked: self.transmission.max_retransmit });
        }
        if self.token_length > Self::MOST_TOKEN {
            return Err(ConfigError::TokenLength { asked: self.token_length });
        }
        if self.token_length == 1 && exchanges_per_peer > 256 {
            return Err(ConfigError::TokensTooFew { exchanges_per_peer });
        }
        for (name, value) in [
            ("peers", u64::from(peers)),
            ("exchanges_per_peer", u64::from(exchanges_per_peer)),
            ("requests", u64::from(requests)),
        ] {
            if value == 0 {
                return Err(ConfigError::ZeroLimit { name });
            }
        }
        if peers > Limits::MOST_ENTRIES || requests > Limits::MOST_ENTRIES {
            return Err(ConfigError::LimitTooLarge { most: Limits::MOST_ENTRIES });
        }
        for (name, asked) in [("datagram", datagram), ("received", received)] {
            if !(Limits::LEAST_DATAGRAM..=MAX_DATAGRAM).contains(&usize::from(asked)) {
                return Err(ConfigError::Datagram { name, asked });
            }
        }
        self.naming.check()?;
        if self.duplicates.stores() && duplicate_bytes < Limits::LEAST_DUPLICATE_BYTES {
            return Err(ConfigError::DuplicateBytes { asked: duplicate_bytes });
        }
        if self.limits.bytes < Limits::LEAST_BYTES {
            return Err(ConfigError::Bytes { asked: self.limits.bytes });
        }
        Ok(())
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Transmission parameters of RFC 7252 §4.8 and §4.8.2. ACK_TIMEOUT and ACK_RANDOM_FACTOR are the controller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transmission {
    /// MAX_RETRANSMIT: copies of a confirmable message after the first, at most 250.
    pub max_retransmit: u8,
    /// NSTART: interactions outstanding with one peer, or with all that share its path, at least 1 (RFC 7252 §4.7). A
    /// controller that wishes another number ([`Wishes::nstart`](millpond_control::Wishes)) has it.
    pub nstart: u16,
    /// MAX_LATENCY: the longest that a datagram is assumed to be under way.
    pub max_latency: Span,
    /// PROCESSING_DELAY: the longest that a peer is assumed to take to acknowledge.
    pub processing_delay: Span,
    /// PROBING_RATE: bytes a second that may go to a peer that does not answer; zero counts as one.
    pub probing_rate: u32,
}

impl Transmission {
    /// The defaults of RFC 7252 §4.8: 4 retransmissions, 1 outstanding interaction, 100 s, 2 s, 1 byte/s.
    pub const RFC7252: Self = Self {
        max_retransmit: 4,
        nstart: 1,
        max_latency: Span::from_secs(100),
        processing_delay: Span::from_secs(2),
        probing_rate: 1,
    };

    /// The most retransmissions that can be asked for.
    pub const MOST_RETRANSMISSIONS: u8 = 250;
}

impl Default for Transmission {
    fn default() -> Self {
        Self::RFC7252
    }
}

/// What a retransmission of a request meets (RFC 7252 §4.5). Copies of a *response* are never delivered twice, whichever
/// is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// The reply that the first copy got is sent again, for EXCHANGE_LIFETIME after it; the application does not notice. A separate
    /// response that is not under way any more is repeated in an acknowledgement, for who used a message ID twice.
    /// Copies of a non-confirmable request are dropped for NON_LIFETIME.
    Stored,
    /// Every copy is handed up as a request of its own and answered by itself, which RFC 7252 §4.5 allows for
    /// idempotent requests. Nothing is remembered, so nothing distinguishes a copy from a first request.
    Afresh,
    /// As `Stored`, but a copy of a confirmable request is not answered while the answer before is still on its way
    /// through a queue ([`CalmPath`](millpond_control::CalmPath)). That ends the collapse of clients whose timers
    /// are too short for the queue. [`Endpoint::with_paths`](super::Endpoint::with_paths) says which peers share a path.
    /// How long answers take is measured by pings, which every device rejects (RFC 7252 §4.3).
    #[cfg(feature = "calm-server")]
    Calm,
}

impl Duplicates {
    /// Whether replies are stored.
    #[must_use]
    pub const fn stores(self) -> bool {
        !matches!(self, Self::Afresh)
    }
}

/// The options by which the copies of a request are distinguished, if the peer's controller wishes it
/// ([`Naming`](millpond_control::Naming)), and which of them a server echoes. docs/naming-copies.md has their bytes.
///
/// None of them is registered, so their numbers come from those for experiments (RFC 7252 §12.2). Their low five bits
/// are 11100: elective, safe to forward, no part of a cache key (RFC 7252 §5.4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NamingOptions {
    /// Rexmit-Cnt of draft-ietf-core-fasor-02 §4.5: the number of the copy, 0 or 1 byte.
    pub count: NamingOption,
    /// Whether it is a copy after the first: no byte, or one byte of 1.
    pub flag: NamingOption,
    /// When the copy left, 4 bytes.
    pub timestamp: NamingOption,
}

/// One of the [`NamingOptions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NamingOption {
    /// Its number, in requests sent and received.
    pub number: u16,
    /// Whether it is echoed in piggybacked responses to requests that carry it. Otherwise it is ignored, as by any
    /// server that does not know it.
    pub echoed: bool,
}

impl NamingOptions {
    /// 65020, 65052 and 65084, all of them echoed: a request without them is answered as ever, and one with them asks
    /// for it.
    pub const DEFAULT: Self = Self {
        count: NamingOption { number: 65_020, echoed: true },
        flag: NamingOption { number: 65_052, echoed: true },
        timestamp: NamingOption { number: 65_084, echoed: true },
    };

    /// The lowest number for experiments.
    pub(super) const LOWEST: u16 = 65_000;

    /// All of them with their names.
    fn named(&self) -> [(&'static str, NamingOption); 3] {
        [("count", self.count), ("flag", self.flag), ("timestamp", self.timestamp)]
    }

    fn check(&self) -> Result<(), ConfigError> {
        let options = self.named();
        for (place, (name, option)) in options.iter().enumerate() {
            let asked = option.number;
            if asked < Self::LOWEST || asked & 0b1_1111 != 0b1_1100 {
                return Err(ConfigError::NamingOption { name, asked });
            }
            if let Some((other, _)) = options.iter().take(place).find(|(_, other)| other.number == asked) {
                return Err(ConfigError::NamingOptionTwice { name, other, asked });
            }
        }
        Ok(())
    }
}

impl Default for NamingOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What an endpoint may hold at most. Whatever would exceed it is refused or ignored, and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Peers whose congestion state and message IDs are kept. Beyond that the one idle for longest is dropped, but
    /// never within EXCHANGE_LIFETIME of its last message ID. Who merely asks and gets piggybacked answers is no peer.
    /// Who merely asks and gets other answers is one as long as there is a place for it; a peer that is asked, or has
    /// answered, takes that place if it needs one.
    pub peers: u32,
    /// Requests and separate responses under way to one peer, those included whose response is still awaited after
    /// an acknowledgement.
    pub exchanges_per_peer: u16,
    /// Subscriptions and claims of one peer's tokens, beside its exchanges.
    pub subscriptions_per_peer: u16,
    /// Messages held back for one peer.
    pub waiting_per_peer: u16,
    /// Non-confirmable additional responses, to all peers together, that are recognised when a reset comes for them.
    /// Oldest go first.
    pub rejectable: u16,
    /// Requests received that the application has not answered yet.
    pub requests: u32,
    /// Bytes that the endpoint may hold in all.
    pub bytes: usize,
    /// Bytes of it for what must be known of messages already handled, of which the oldest go first; and as many again for those of
    /// requests that may change something (neither GET nor FETCH), which nothing else displaces: of these the oldest of a network
    /// go that has more than others, where it is said which peers are in one ([`Endpoint::with_paths`](super::Endpoint::with_paths)).
    pub duplicate_bytes: usize,
    /// Bytes of the longest datagram that is sent.
    pub datagram: u16,
    /// Bytes of the longest datagram that is taken, if that is more: what RFC 7252 §4.6 says of 1152 bytes is advice to senders.
    pub received: u16,
}

impl Limits {
    /// 16 384 peers with 16 exchanges, 64 subscriptions and 64 waiting messages each, 16 384 unanswered requests, 1024
    /// messages that may be rejected, 64 MiB of which twice 16 MiB for duplicates, datagrams of 1152 bytes
    /// (RFC 7252 §4.6), and of 1452 bytes received: what a packet of IPv6 of 1500 bytes holds. A judgement: enough for a busy server, little beside
    /// the memory of a machine that runs one.
    pub const DEFAULT: Self = Self {
        peers: 16_384,
        exchanges_per_peer: 16,
        subscriptions_per_peer: 64,
        waiting_per_peer: 64,
        rejectable: 1_024,
        requests: 16_384,
        bytes: 64 << 20,
        duplicate_bytes: 16 << 20,
        datagram: 1_152,
        received: 1_452,
    };

    /// 8 peers with 4 exchanges, 4 subscriptions and 4 waiting messages each, 4 unanswered requests, 4 messages that may be rejected,
    /// 24 KiB of which twice 4 KiB for duplicates, datagrams of 576 bytes. A judgement: a client with a few servers holds some
    /// hundred bytes of it, and nobody who sends to it makes it hold more than the rest.
    pub const SMALL: Self = Self {
        peers: 8,
        exchanges_per_peer: 4,
        subscriptions_per_peer: 4,
        waiting_per_peer: 4,
        rejectable: 4,
        requests: 4,
        bytes: 24 << 10,
        duplicate_bytes: 4 << 10,
        datagram: 576,
        received: 576,
    };

    /// So many peers, and exchanges with each of them, there may be without the feature `many-peers`: they are looked through.
    const FEW_PEERS: u32 = 64;
    const FEW_EXCHANGES: u16 = 16;
    /// The smallest datagram that can be asked for: header, token and a little more.
    const LEAST_DATAGRAM: usize = 32;
    /// The smallest budget in which replies can be stored at all.
    const LEAST_DUPLICATE_BYTES: usize = 4_096;
    /// The smallest total in which an endpoint can do anything.
    const LEAST_BYTES: usize = 4_096;
    /// Slots are numbered with 31 bits.
    const MOST_ENTRIES: u32 = i32::MAX as u32;

    /// Bytes of the longest datagram that is taken.
    #[must_use]
    pub const fn longest_received(&self) -> u16 {
        if self.received > self.datagram { self.received } else { self.datagram }
    }

    /// The same limits, widened where they would be too narrow for `peers` peers that are all active at once, 16 KiB
    /// of duplicate state and 16 KiB of the rest each.
    #[must_use]
    pub fn for_peers(self, peers: u32) -> Self {
        let bytes = usize::try_from(peers).unwrap_or(usize::MAX).saturating_mul(16 << 10);
        let duplicate_bytes = self.duplicate_bytes.max(bytes);
        Self {
            peers: self.peers.max(peers),
            requests: self.requests.max(peers),
            bytes: self.bytes.max(duplicate_bytes.saturating_mul(2).saturating_add(bytes)),
            duplicate_bytes,
            ..self
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why an endpoint cannot be configured like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Something for which this build of the stack was made without a part: `many-peers` for more than 64 peers or 16 exchanges
    /// with each, `long-tokens` for tokens of more than 8 bytes, `copy-options` for a controller that wishes such options.
    #[error("millpond-coap was built without the feature `{feature}`, which this configuration needs")]
    LeftOut {
        /// The cargo feature of that part.
        feature: &'static str,
    },
    /// NSTART of zero.
    #[error("transmission.nstart is 0, so that nothing could ever leave; use 1 or more")]
    NothingMayStart,
    /// More retransmissions than can be counted.
    #[error("transmission.max_retransmit is {asked}; use at most {}", Transmission::MOST_RETRANSMISSIONS)]
    TooManyCopies {
        /// What was asked for.
        asked: u8,
    },
    /// A token longer than RFC 7252 allows.
    #[error("token_length is {asked}; use 0 to 65000")]
    TokenLength {
        /// What was asked for.
        asked: u16,
    },
    /// More exchanges than there are tokens.
    #[error("token_length 1 gives 256 tokens for limits.exchanges_per_peer {exchanges_per_peer}; use 2 or more")]
    TokensTooFew {
        /// The limit that has no use.
        exchanges_per_peer: u16,
    },
    /// A limit of zero.
    #[error("limits.{name} is 0; use 1 or more")]
    ZeroLimit {
        /// Which one.
        name: &'static str,
    },
    /// A limit that slots cannot be numbered for.
    #[error("limits.peers and limits.requests are at most {most}")]
    LimitTooLarge {
        /// The largest that can be asked for.
        most: u32,
    },
    /// A datagram that is too short for a message, or too long for UDP.
    #[error("limits.{name} is {asked}; use {} to {MAX_DATAGRAM}", Limits::LEAST_DATAGRAM)]
    Datagram {
        /// Which limit.
        name: &'static str,
        /// What was asked for.
        asked: u16,
    },
    /// A number that makes the option something else than what it must be.
    #[error(
        "naming.{name}.number is {asked}; use one from {} on whose low five bits are 11100: 65020, 65052, 65084, ...",
        NamingOptions::LOWEST
    )]
    NamingOption {
        /// Which option.
        name: &'static str,
        /// What was asked for.
        asked: u16,
    },
    /// Two options with one number.
    #[error("naming.{name}.number and naming.{other}.number are both {asked}; use different ones")]
    NamingOptionTwice {
        /// Which option.
        name: &'static str,
        /// The one with the same number.
        other: &'static str,
        /// The number of both.
        asked: u16,
    },
    /// Replies are to be stored, but there is no room for them.
    #[error(
        "limits.duplicate_bytes is {asked}, but replies are to be stored; use {} or more, or answer duplicates afresh",
        Limits::LEAST_DUPLICATE_BYTES
    )]
    DuplicateBytes {
        /// What was asked for.
        asked: usize,
    },
    /// A total in which nothing fits.
    #[error("limits.bytes is {asked}; use {} or more", Limits::LEAST_BYTES)]
    Bytes {
        /// What was asked for.
        asked: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn with(change: impl FnOnce(&mut Config)) -> Result<(), ConfigError> {
        let mut config = Config::default();
        change(&mut config);
        config.check()
    }

    #[test]
    fn the_defaults_can_be_used() {
        assert_eq!(Config::default().check(), Ok(()));
        assert_eq!(Config::SMALL.check(), Ok(()));
        assert_eq!(with(|config| config.limits = config.limits.for_peers(1_000_000)), Ok(()));
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_place_and_its_fix() {
        type Change = fn(&mut Config);
        let cases: [(Change, &str); 13] = [
            (|c| c.transmission.nstart = 0, "transmission.nstart is 0"),
            (|c| c.transmission.max_retransmit = 251, "use at most 250"),
            (|c| c.token_length = 65_001, "token_length is 65001; use 0 to 65000"),
            (|c| (c.token_length, c.limits.exchanges_per_peer) = (1, 257), "use 2 or more"),
            (|c| c.limits.requests = 0, "limits.requests is 0"),
            (|c| c.limits.peers = u32::MAX, "at most 2147483647"),
            (|c| c.limits.datagram = 31, "limits.datagram is 31; use 32 to 65527"),
            (|c| c.limits.received = 31, "limits.received is 31; use 32 to 65527"),
            (|c| c.limits.duplicate_bytes = 0, "or answer duplicates afresh"),
            (|c| c.limits.bytes = 1, "limits.bytes is 1"),
            (|c| c.naming.flag.number = 65_021, "naming.flag.number is 65021; use one from 65000 on"),
            (|c| c.naming.count.number = 64_988, "naming.count.number is 64988; use one from 65000 on"),
            (|c| c.naming.timestamp.number = 65_020, "naming.timestamp.number and naming.count.number are both 65020"),
        ];
        for (change, expected) in cases {
            let message = with(change).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(expected), "{message:?} lacks {expected:?}");
        }
    }

    #[test]
    fn answering_afresh_needs_no_room_for_replies() {
        let afresh = |config: &mut Config| {
            config.duplicates = Duplicates::Afresh;
            config.limits.duplicate_bytes = 0;
        };
        assert_eq!(with(afresh), Ok(()));
    }
}
