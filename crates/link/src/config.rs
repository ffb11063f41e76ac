//! What a link is made of, and what it refuses to be made of.

use crate::probability::Probability;
use core::fmt;
use millpond_control::Span;

/// A link in one direction. [`Config::plain`] gives one without jitter, overhead or loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How fast bits leave the queue.
    pub rate: Rate,
    /// Fixed delay after the last bit has left the rate stage.
    pub propagation: Span,
    /// Further delay, drawn for each packet.
    pub jitter: Jitter,
    /// Room in the queue; the packet in service counts.
    pub queue: Limit,
    /// Whether the queue drops packets before it is full.
    pub aqm: Aqm,
    /// Whether it marks packets whose senders react to that ([`crate::Link::offer_capable`]) in place of dropping them (RFC 3168);
    /// PIE only while it would drop no more than a tenth (RFC 8033, section 5.1).
    pub ecn: bool,
    /// Whether packets that are merely being delayed take up room as well.
    pub queue_counts: Counted,
    /// Bytes that the rate stage charges for each packet on top of its length, for instance 14 for an Ethernet header.
    /// May be negative, as netem's; a packet is never charged less than nothing.
    pub overhead: i32,
    /// Whether a queue limited in bytes counts the overhead too.
    pub overhead_in_queue: bool,
    /// Which packets the medium loses.
    pub loss: Loss,
    /// Whether all packets share one medium or each radio has its own.
    pub loss_of: LossOf,
    /// Whether a packet that will be lost still uses the queue and the link.
    pub loss_at: LossAt,
}

/// How fast bits leave the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// No packet ever waits or takes time to send.
    Unlimited,
    /// Bits per second, from 1 to [`Rate::HIGHEST`].
    BitsPerSecond(u64),
}

impl Rate {
    /// The highest rate that can be expressed, 10^15 bit/s: above it a byte takes less than 10 femtoseconds and
    /// [`Rate::Unlimited`] says the same.
    pub const HIGHEST: u64 = 1_000_000_000_000_000;
}

/// Delay of one packet on top of the propagation delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// None.
    None,
    /// Uniform over `from..=to` in whole microseconds, independent for each packet.
    Uniform {
        /// The least.
        from: Span,
        /// The most.
        to: Span,
        /// Whether a packet may overtake another.
        order: Order,
    },
}

/// Whether jitter may change the order of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No packet arrives before one that left earlier: it waits for it. A lost packet holds nobody up.
    Preserved,
    /// Every packet takes its own delay, and may overtake. Packets due at the same instant arrive as they were offered.
    Free,
}

/// Room in the queue. What does not fit is dropped at the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Sum of packet lengths, the packet in service included. A longer packet than this never fits.
    Bytes(u64),
    /// Number of packets, the packet in service included.
    Packets(u64),
}

/// Active queue management (RFC 7567): how a queue keeps itself short. Packets are dropped, or marked ([`Config::ecn`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aqm {
    /// It does not: what does not fit is dropped at the tail.
    #[default]
    None,
    /// Controlled Delay (RFC 8289).
    CoDel(CoDelRules),
    /// FlowQueue-CoDel (RFC 8290). A full queue drops at the head of its longest flow, not at the tail.
    FqCoDel(FqCoDelRules),
    /// Proportional Integral controller Enhanced (RFC 8033).
    Pie(PieRules),
}

/// What CoDel aims at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelRules {
    /// Packets may wait so long without end.
    pub target: Span,
    /// Longer for so long is too long; the time until a sender reacts.
    pub interval: Span,
    /// Nothing is dropped while no more bytes wait than this, in flows of one queue all together as in Linux: the longest packet.
    pub max_packet: u32,
}

impl CoDelRules {
    /// Those of RFC 8289, section 4.4, with the longest packet of Ethernet.
    pub const RFC8289: Self =
        Self { target: Span::from_millis(5), interval: Span::from_millis(100), max_packet: 1_500 };
}

/// How FQ-CoDel tells flows apart and serves them. A flow is who has one number ([`crate::Link::offer_of`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelRules {
    /// Of each flow.
    pub codel: CoDelRules,
    /// Queues, over which flows are spread by a hash.
    pub flows: u16,
    /// Bytes that a flow may send in its turn.
    pub quantum: u32,
}

impl FqCoDelRules {
    /// Those of RFC 8290, section 5.2.
    pub const RFC8290: Self = Self { codel: CoDelRules::RFC8289, flows: 1_024, quantum: 1_514 };
}

/// What PIE aims at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieRules {
    /// How long packets are to wait.
    pub target: Span,
    /// The time between two updates of the probability.
    pub update: Span,
    /// For so long after a quiet time nothing is dropped.
    pub max_burst: Span,
    /// Nothing is dropped while no more bytes wait than twice this: the longest packet.
    pub max_packet: u32,
}

impl PieRules {
    /// Those of RFC 8033, sections 4 and 5, with the longest packet of Ethernet.
    pub const RFC8033: Self = Self {
        target: Span::from_millis(15),
        update: Span::from_millis(15),
        max_burst: Span::from_millis(150),
        max_packet: 1_500,
    };
}

/// Which packets a [`Limit`] counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// Those that wait or are being sent.
    #[default]
    Waiting,
    /// Those on their way to the far end as well, until they are due there. So counts netem, whose limit is on every
    /// packet inside, whether it waits for the rate or for its delay to pass. A packet that the medium loses after the
    /// rate stage counts until its last bit is out.
    All,
}

/// Which packets the medium loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// None.
    None,
    /// Each packet independently.
    Bernoulli {
        /// Probability of losing a packet.
        rate: Probability,
    },
    /// A process in time that alternates between a good and a bad state. Times in a state are exponential; the process
    /// starts in its stationary distribution. Its path depends on seed and link only, not on the traffic.
    ///
    /// The state that counts is that of the moment at which the packet leaves the rate stage, or is offered with
    /// [`LossAt::BeforeRate`]. Mean loss is `(good_loss·good_dwell + bad_loss·bad_dwell) / (good_dwell + bad_dwell)`.
    Markov {
        /// Probability of losing a packet in the good state.
        good_loss: Probability,
        /// Probability of losing a packet in the bad state.
        bad_loss: Probability,
        /// Mean time in the good state, at least [`Loss::SHORTEST_DWELL`].
        good_dwell: Span,
        /// Mean time in the bad state, at least [`Loss::SHORTEST_DWELL`].
        bad_dwell: Span,
    },
    /// A chain that steps once per packet: E. N. Gilbert, "Capacity of a Burst-Noise Channel", 1960, and E. O. Elliott,
    /// "Estimates of Error Rates for Codes on Burst-Noise Channels", 1963, with the parameters, their order and the
    /// sequence of netem's `loss gemodel`: the loss is drawn from the state *before* the step, and the chain starts good.
    ///
    /// With `p + r = 1` the chain has no memory. Mean loss is
    /// `(one_minus_h·p + one_minus_k·r) / (p + r)`, the mean stay in the bad state `1/r` packets.
    GilbertElliott {
        /// Probability of a step from good to bad.
        p: Probability,
        /// Probability of a step from bad to good.
        r: Probability,
        /// Probability of losing a packet in the bad state.
        one_minus_h: Probability,
        /// Probability of losing a packet in the good state.
        one_minus_k: Probability,
    },
}

impl Loss {
    /// The shortest mean dwell of [`Loss::Markov`]. Shorter ones could not be told from independent losses, but every
    /// dwell of a silent hour would still have to be drawn.
    pub const SHORTEST_DWELL: Span = Span::from_millis(1);

    /// netem's `loss gemodel P` with nothing after it: r = 100 %, 1-h = 100 %, 1-k = 0 %.
    #[must_use]
    pub const fn gilbert_elliott(p: Probability) -> Self {
        Self::GilbertElliott { p, r: Probability::ONE, one_minus_h: Probability::ONE, one_minus_k: Probability::ZERO }
    }
}

/// Whose random numbers a packet has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossOf {
    /// The link's: one loss process strikes everybody, so that all fade together.
    #[default]
    Link,
    /// That of the radio which sends or hears it: each has a process of its own, independent of all others. Who offers a
    /// packet says which radio that is, see [`crate::Link::offer_of`].
    Radio,
}

/// Where in the link losses are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossAt {
    /// After the rate stage: a lost packet has used its room in the queue and its time on the link.
    AfterRate,
    /// Before the queue, as netem does when one instance has both loss and rate: a lost packet uses neither.
    BeforeRate,
}

/// What becomes of packets that have left the queue when a link stops ([`crate::Link::pause`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InFlight {
    /// They stay where they are: what is due meanwhile arrives when the link goes on.
    #[default]
    Delayed,
    /// They arrive as if nothing had happened.
    Kept,
    /// The medium loses them.
    Lost,
}

/// Why a link cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The rate is 0 bit/s.
    ZeroRate,
    /// The rate is above [`Rate::HIGHEST`].
    RateTooHigh(u64),
    /// The queue has no room for any packet, not even for the one in service.
    ZeroQueue,
    /// The jitter's lower end is above its upper end.
    EmptyJitter(Span, Span),
    /// A time by which a queue manages itself is 0.
    NoTime(&'static str),
    /// FQ-CoDel has no queues, or its flows may send nothing in their turns.
    NoFlows,
    /// A mean dwell is shorter than [`Loss::SHORTEST_DWELL`].
    ShortDwell(Span),
}

impl ConfigError {
    /// The field of [`Config`] that is at fault.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::ZeroRate | Self::RateTooHigh(_) => "rate",
            Self::ZeroQueue => "queue",
            Self::NoTime(_) | Self::NoFlows => "aqm",
            Self::EmptyJitter(..) => "jitter",
            Self::ShortDwell(_) => "loss",
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroRate => f.write_str("a rate of 0 bit/s carries nothing: give at least 1 bit/s, or unlimited"),
            Self::RateTooHigh(rate) => {
                write!(f, "{rate} bit/s is above the highest rate, {} bit/s: use unlimited", Rate::HIGHEST)
            }
            Self::ZeroQueue => f.write_str("a queue of 0 drops every packet: the packet being sent counts too"),
            Self::EmptyJitter(from, to) => {
                write!(f, "the jitter goes from {from} down to {to}: put the smaller first")
            }
            Self::NoTime(name) => write!(f, "{name} of 0 s: write a time, or leave it out"),
            Self::NoFlows => f.write_str("flows and quantum are at least 1"),
            Self::ShortDwell(dwell) => {
                let shortest = Loss::SHORTEST_DWELL;
                write!(f, "a mean dwell of {dwell} is below {shortest}: use bernoulli for losses without memory")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// A link without jitter, overhead or loss.
    #[must_use]
    pub const fn plain(rate: Rate, propagation: Span, queue: Limit) -> Self {
        Self {
            rate,
            propagation,
            jitter: Jitter::None,
            queue,
            aqm: Aqm::None,
            ecn: false,
            queue_counts: Counted::Waiting,
            overhead: 0,
            overhead_in_queue: false,
            loss: Loss::None,
            loss_of: LossOf::Link,
            loss_at: LossAt::AfterRate,
        }
    }

    /// Whether a link can be built from this.
    ///
    /// # Errors
    /// The first thing that is wrong, in the order of the fields.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.rate.check()?;
        if let Jitter::Uniform { from, to, .. } = self.jitter
            && from > to
        {
            return Err(ConfigError::EmptyJitter(from, to));
        }
        if matches!(self.queue, Limit::Bytes(0) | Limit::Packets(0)) {
            return Err(ConfigError::ZeroQueue);
        }
        self.aqm.check()?;
        self.loss.check()
    }
}

impl Aqm {
    fn check(self) -> Result<(), ConfigError> {
        let times = match self {
            Self::None => [("target", Span::MAX), ("interval", Span::MAX)],
            Self::CoDel(codel) | Self::FqCoDel(FqCoDelRules { codel, .. }) => {
                [("target", codel.target), ("interval", codel.interval)]
            }
            Self::Pie(pie) => [("target", pie.target), ("update", pie.update)],
        };
        if let Some((name, _)) = times.iter().find(|(_, time)| *time == Span::ZERO) {
            return Err(ConfigError::NoTime(name));
        }
        match self {
            Self::FqCoDel(FqCoDelRules { flows: 0, .. } | FqCoDelRules { quantum: 0, .. }) => Err(ConfigError::NoFlows),
            _ => Ok(()),
        }
    }
}

impl Loss {
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        match self {
            Self::Markov { good_dwell, bad_dwell, .. } if good_dwell.min(bad_dwell) < Self::SHORTEST_DWELL => {
                Err(ConfigError::ShortDwell(good_dwell.min(bad_dwell)))
            }
            Self::None | Self::Bernoulli { .. } | Self::Markov { .. } | Self::GilbertElliott { .. } => Ok(()),
        }
    }
}

impl Rate {
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        match self {
            Self::BitsPerSecond(0) => Err(ConfigError::ZeroRate),
            Self::BitsPerSecond(rate) if rate > Self::HIGHEST => Err(ConfigError::RateTooHigh(rate)),
            Self::BitsPerSecond(_) | Self::Unlimited => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Config {
        Config::plain(Rate::BitsPerSecond(30_000), Span::from_millis(400), Limit::Bytes(2_500))
    }

    #[test]
    fn a_link_that_could_carry_nothing_is_refused() {
        assert_eq!(plain().check(), Ok(()));
        assert_eq!(Config { rate: Rate::Unlimited, ..plain() }.check(), Ok(()));
        let cases = [
            (Config { rate: Rate::BitsPerSecond(0), ..plain() }, ConfigError::ZeroRate, "rate"),
            (Config { rate: Rate::BitsPerSecond(u64::MAX), ..plain() }, ConfigError::RateTooHigh(u64::MAX), "rate"),
            (Config { queue: Limit::Bytes(0), ..plain() }, ConfigError::ZeroQueue, "queue"),
            (Config { queue: Limit::Packets(0), ..plain() }, ConfigError::ZeroQueue, "queue"),
        ];
        for (config, error, field) in cases {
            assert_eq!(config.check(), Err(error));
            assert_eq!(error.field(), field);
        }
    }

    #[test]
    fn intervals_and_dwells_are_checked() {
        let (from, to) = (Span::from_millis(20), Span::from_millis(10));
        let jitter = Jitter::Uniform { from, to, order: Order::Free };
        let error = Config { jitter, ..plain() }.check().unwrap_err();
        assert_eq!(error, ConfigError::EmptyJitter(from, to));
        assert_eq!(error.to_string(), "the jitter goes from 0.02 s down to 0.01 s: put the smaller first");

        let loss = Loss::Markov {
            good_loss: Probability::ZERO,
            bad_loss: Probability::ONE,
            good_dwell: Span::from_secs(1),
            bad_dwell: Span::from_micros(999),
        };
        let error = Config { loss, ..plain() }.check().unwrap_err();
        assert_eq!(error.field(), "loss");
        assert!(error.to_string().contains("0.000999 s"), "{error}");
    }
}
