//! One direction of a path: what it is made of, how that is written and how it is checked.

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    Aqm, BitRate, Duration, InputError, Loss, LossAt, LossOf, QueueLimit, Size, Trace, aqm, unknown, word_or_table,
};

/// One direction of the path: a queue, a rate, a delay, losses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "DirectionKeys")]
pub struct Direction {
    /// The rate of the bottleneck; where a trace says it, what it is before the first step.
    pub rate: BitRate,
    /// Propagation delay after the last bit has left.
    pub delay: Duration,
    /// The one queue of this direction; the packet in service counts.
    pub queue: QueueLimit,
    /// How the queue keeps itself short.
    #[serde(skip_serializing_if = "Aqm::is_none")]
    pub aqm: Aqm,
    /// Whether packets that are merely being delayed count towards the queue's limit as well.
    pub queue_counts: QueueCounts,
    /// Extra delay, drawn for each packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Radio loss.
    pub loss: Loss,
    /// Whose radio it is.
    #[serde(skip_serializing_if = "LossOf::is_link")]
    pub loss_of: LossOf,
    /// Whether a lost packet has used the queue and the link.
    pub loss_at: LossAt,
    /// Bytes that the link adds to each packet, such as an Ethernet header.
    pub overhead: Size,
    /// The longest packet that it carries; none: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Size>,
    /// Rate, delay and losses over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

/// Which packets the limit of a queue counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueCounts {
    /// Those that wait, and the one in service.
    #[default]
    Waiting,
    /// Those whose delay has not passed yet as well, as netem counts.
    All,
}

/// Extra delay of a packet, uniform between two lengths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// The least.
    pub from: Duration,
    /// The most.
    pub to: Duration,
    /// Whether packets may overtake each other.
    #[serde(default)]
    pub order: Order,
}

/// Whether jitter may reorder packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// A packet never arrives before one that left earlier.
    #[default]
    Preserved,
    /// Packets may overtake.
    Free,
}

/// The longest delay that a link can tell.
pub(crate) const LONGEST: Duration = Duration(u32::MAX as u64);
/// More than any link layer adds to a packet.
const MOST_OVERHEAD: Size = Size(10_000);
/// RFC 791 §3.2: every link carries so many bytes in one piece.
const LEAST_MTU: Size = Size(68);

impl Direction {
    /// A direction without jitter, loss and overhead.
    #[must_use]
    pub fn plain(rate: BitRate, delay: Duration, queue: QueueLimit) -> Self {
        Self {
            rate,
            delay,
            queue,
            aqm: Aqm::default(),
            queue_counts: QueueCounts::default(),
            jitter: None,
            loss: Loss::default(),
            loss_of: LossOf::default(),
            loss_at: LossAt::default(),
            overhead: Size(0),
            mtu: None,
            trace: None,
        }
    }

    /// The highest rate that it ever has.
    #[must_use]
    pub fn highest_rate(&self) -> BitRate {
        let traced = self.trace.as_ref().and_then(|trace| trace.built()?.highest_rate());
        traced.map_or(self.rate, |rate| BitRate(rate.max(1)))
    }

    /// Whether a link can be built from it.
    ///
    /// # Errors
    /// One line with the place and the fix.
    pub fn check(&self, key: &str, origin: &str) -> Result<(), InputError> {
        let refuse = |name: &str, problem: String| Err(InputError::at_key(origin, &format!("{key}.{name}"), problem));
        if let Err(error) = self.config().check() {
            return refuse(error.field(), error.to_string());
        }
        if self.delay > LONGEST {
            return refuse("delay", format!("{} is longer than can be told (at most {LONGEST})", self.delay));
        }
        if let Some(jitter) = self.jitter.as_ref().filter(|jitter| jitter.to > LONGEST) {
            return refuse("jitter.to", format!("{} is longer than can be told (at most {LONGEST})", jitter.to));
        }
        if self.overhead > MOST_OVERHEAD {
            return refuse("overhead", format!("{} a packet is too much (at most {MOST_OVERHEAD})", self.overhead));
        }
        if let Some(mtu) = self.mtu.filter(|mtu| *mtu < LEAST_MTU) {
            return refuse("mtu", format!("{mtu} is less than IPv4 asks of any link (at least {LEAST_MTU})"));
        }
        self.aqm.check(&format!("{key}.aqm"), origin)?;
        self.loss.check(&format!("{key}.loss"), origin)
    }
}

/// The keys of a direction as they are written: all of them, or some that are laid over a profile's.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DirectionKeys {
    rate: Option<BitRate>,
    delay: Option<Duration>,
    queue: Option<QueueLimit>,
    #[serde(deserialize_with = "aqm::aqm")]
    aqm: Option<Aqm>,
    queue_counts: Option<QueueCounts>,
    #[serde(deserialize_with = "jitter_or_none")]
    jitter: Option<Option<Jitter>>,
    loss: Option<Loss>,
    loss_of: Option<LossOf>,
    loss_at: Option<LossAt>,
    overhead: Option<Size>,
    mtu: Option<Size>,
    trace: Option<Trace>,
}

impl DirectionKeys {
    /// The direction that they describe by themselves.
    fn alone(self) -> Result<Direction, String> {
        let (mut rate, mut delay) = (self.rate, self.delay);
        if let Some(trace) = self.trace.as_ref().filter(|_| rate.is_none() || delay.is_none()) {
            let traced = trace.usual().map_err(|problem| format!("trace: {problem}"))?;
            (rate, delay) = (rate.or(traced.0), delay.or(traced.1));
        }
        let (Some(rate), Some(delay), Some(queue)) = (rate, delay, self.queue) else {
            let missing = [("rate", rate.is_none()), ("delay", delay.is_none()), ("queue", true)];
            let missing = missing.into_iter().find(|(_, missing)| *missing);
            return Err(format!("missing key `{}`", missing.map_or("queue", |(key, _)| key)));
        };
        self.over(Direction::plain(rate, delay, queue))
    }

    /// Lays them over another direction: what is not written stays as it is there.
    fn over(self, other: Direction) -> Result<Direction, String> {
        let mut direction = Direction {
            rate: self.rate.unwrap_or(other.rate),
            delay: self.delay.unwrap_or(other.delay),
            queue: self.queue.unwrap_or(other.queue),
            aqm: self.aqm.unwrap_or(other.aqm),
            queue_counts: self.queue_counts.unwrap_or(other.queue_counts),
            jitter: self.jitter.unwrap_or(other.jitter),
            loss: self.loss.unwrap_or(other.loss),
            loss_of: self.loss_of.unwrap_or(other.loss_of),
            loss_at: self.loss_at.unwrap_or(other.loss_at),
            overhead: self.overhead.unwrap_or(other.overhead),
            mtu: self.mtu.or(other.mtu),
            trace: self.trace.or(other.trace),
        };
        if let Some(trace) = &mut direction.trace {
            trace.build(direction.rate, direction.delay).map_err(|problem| format!("trace: {problem}"))?;
            if trace.has_losses() && direction.loss != Loss::None {
                return Err("loss: the trace says how many packets are lost: leave one of the two out".to_owned());
            }
        }
        Ok(direction)
    }

    /// The direction `name` of a path, whose profile has `other` there if the path has a profile.
    pub(crate) fn complete(keys: Option<Self>, other: Option<Direction>, name: &str) -> Result<Direction, String> {
        match (keys, other) {
            (Some(keys), Some(other)) => keys.over(other).map_err(|problem| format!("{name}: {problem}")),
            (Some(keys), None) => keys.alone().map_err(|problem| format!("{name}: {problem}")),
            (None, Some(other)) => Ok(other),
            (None, None) => Err(format!("missing key `{name}`")),
        }
    }
}

impl TryFrom<DirectionKeys> for Direction {
    type Error = String;

    fn try_from(keys: DirectionKeys) -> Result<Self, String> {
        keys.alone()
    }
}

/// Reads jitter, or the word that takes a profile's away.
fn jitter_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Jitter>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(from = "Jitter")]
    struct Written(Option<Jitter>);
    impl From<Jitter> for Written {
        fn from(jitter: Jitter) -> Self {
            Self(Some(jitter))
        }
    }
    let word = |word: &str| match word {
        "none" => Ok(Written(None)),
        _ => Err(unknown("jitter", word, &["none"])),
    };
    word_or_table(deserializer, "`none`, or a table with the keys `from` and `to`", word)
        .map(|Written(jitter)| Some(jitter))
}
