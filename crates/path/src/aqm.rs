//! How a queue keeps itself short.

use millpond_link::{CoDelRules, FqCoDelRules, PieRules};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Duration, InputError, Size, direction::LONGEST, unknown, word_or_table};

/// Active queue management (RFC 7567).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum Aqm {
    /// None: what does not fit is dropped at the tail.
    #[default]
    #[serde(rename = "none")]
    None,
    /// Controlled Delay (RFC 8289).
    #[serde(rename = "codel")]
    CoDel {
        /// Packets may wait so long without end.
        #[serde(default = "five_ms")]
        target: Duration,
        /// Longer for so long is too long.
        #[serde(default = "hundred_ms")]
        interval: Duration,
        /// Nothing is dropped while no more waits; none: the longest packet of the direction.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_packet: Option<Size>,
        /// Packets whose senders react to marks are marked in place of dropped.
        #[serde(default, skip_serializing_if = "is_off")]
        ecn: bool,
    },
    /// FlowQueue-CoDel (RFC 8290); each client is a flow.
    #[serde(rename = "fq-codel")]
    FqCoDel {
        /// As of CoDel.
        #[serde(default = "five_ms")]
        target: Duration,
        /// As of CoDel.
        #[serde(default = "hundred_ms")]
        interval: Duration,
        /// As of CoDel, of all flows together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_packet: Option<Size>,
        /// Queues for flows.
        #[serde(default = "flows")]
        flows: u16,
        /// What a flow may send in its turn.
        #[serde(default = "quantum")]
        quantum: Size,
        /// Packets whose senders react to marks are marked in place of dropped.
        #[serde(default, skip_serializing_if = "is_off")]
        ecn: bool,
    },
    /// Proportional Integral controller Enhanced (RFC 8033).
    #[serde(rename = "pie")]
    Pie {
        /// How long packets are to wait.
        #[serde(default = "fifteen_ms")]
        target: Duration,
        /// The time between two updates of the probability.
        #[serde(default = "fifteen_ms")]
        update: Duration,
        /// For so long after a quiet time nothing is dropped.
        #[serde(default = "burst")]
        max_burst: Duration,
        /// Nothing is dropped while no more than two of these wait; none: the longest packet of the direction.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_packet: Option<Size>,
        /// Packets whose senders react to marks are marked in place of dropped.
        #[serde(default, skip_serializing_if = "is_off")]
        ecn: bool,
    },
}

const fn five_ms() -> Duration {
    Duration(5_000)
}
const fn hundred_ms() -> Duration {
    Duration(100_000)
}
const fn fifteen_ms() -> Duration {
    Duration(15_000)
}
const fn burst() -> Duration {
    Duration(150_000)
}
const fn flows() -> u16 {
    FqCoDelRules::RFC8290.flows
}
const fn quantum() -> Size {
    Size(FqCoDelRules::RFC8290.quantum as u64)
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
const fn is_off(ecn: &bool) -> bool {
    !*ecn
}

/// The longest packet where a direction names none: Ethernet's.
const LONGEST_PACKET: Size = Size(1_500);
/// A turn of a flow, and a packet, are at most so long.
const MOST_BYTES: Size = Size(1_000_000);

impl Aqm {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// Whether packets of one client may leave before older ones of others.
    #[must_use]
    pub const fn reorders(&self) -> bool {
        matches!(self, Self::FqCoDel { .. })
    }

    /// Whether it marks packets in place of dropping them (ECN, RFC 3168).
    #[must_use]
    pub const fn marks(&self) -> bool {
        matches!(self, Self::CoDel { ecn: true, .. } | Self::FqCoDel { ecn: true, .. } | Self::Pie { ecn: true, .. })
    }

    /// What a link does, where packets are at most so long.
    pub(crate) fn model(self, mtu: Option<Size>) -> millpond_link::Aqm {
        let longest = |own: Option<Size>| own.or(mtu).unwrap_or(LONGEST_PACKET).0.min(MOST_BYTES.0) as u32;
        let codel = |target: Duration, interval: Duration, max_packet| CoDelRules {
            target: target.span(),
            interval: interval.span(),
            max_packet: longest(max_packet),
        };
        match self {
            Self::None => millpond_link::Aqm::None,
            Self::CoDel { target, interval, max_packet, .. } => {
                millpond_link::Aqm::CoDel(codel(target, interval, max_packet))
            }
            Self::FqCoDel { target, interval, max_packet, flows, quantum, .. } => {
                let quantum = quantum.0.min(MOST_BYTES.0) as u32;
                millpond_link::Aqm::FqCoDel(FqCoDelRules { codel: codel(target, interval, max_packet), flows, quantum })
            }
            Self::Pie { target, update, max_burst, max_packet, .. } => millpond_link::Aqm::Pie(PieRules {
                target: target.span(),
                update: update.span(),
                max_burst: max_burst.span(),
                max_packet: longest(max_packet),
            }),
        }
    }

    /// Whether a queue can be managed so. `key` is its place inside `origin`, as errors tell it.
    ///
    /// # Errors
    /// One line with the place and the fix.
    pub(crate) fn check(self, key: &str, origin: &str) -> Result<(), InputError> {
        let refuse = |name: &str, problem: String| Err(InputError::at_key(origin, &format!("{key}.{name}"), problem));
        let (times, sizes) = match self {
            Self::None => return Ok(()),
            Self::CoDel { target, interval, max_packet, .. } => {
                ([("target", target), ("interval", interval), ("interval", interval)], [max_packet, None])
            }
            Self::FqCoDel { target, interval, max_packet, quantum, .. } => {
                ([("target", target), ("interval", interval), ("interval", interval)], [max_packet, Some(quantum)])
            }
            Self::Pie { target, update, max_burst, max_packet, .. } => {
                ([("target", target), ("update", update), ("max_burst", max_burst)], [max_packet, None])
            }
        };
        if let Some((name, time)) = times.into_iter().find(|(_, time)| *time > LONGEST) {
            return refuse(name, format!("{time} is longer than can be told (at most {LONGEST})"));
        }
        if let Some(size) = sizes.into_iter().flatten().find(|size| *size > MOST_BYTES) {
            let name = if sizes[1] == Some(size) { "quantum" } else { "max_packet" };
            return refuse(name, format!("{size} is more than any packet (at most {MOST_BYTES})"));
        }
        Ok(())
    }
}

/// Reads a word or a table.
pub(crate) fn aqm<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Aqm>, D::Error> {
    let (target, interval, max_packet, ecn) = (five_ms(), hundred_ms(), None, false);
    let word = |word: &str| match word {
        "none" => Ok(Aqm::None),
        "codel" => Ok(Aqm::CoDel { target, interval, max_packet, ecn }),
        "fq-codel" => Ok(Aqm::FqCoDel { target, interval, max_packet, flows: flows(), quantum: quantum(), ecn }),
        "pie" => Ok(Aqm::Pie { target: fifteen_ms(), update: fifteen_ms(), max_burst: burst(), max_packet, ecn }),
        _ => Err(unknown("aqm", word, &["none", "codel", "fq-codel", "pie"])),
    };
    word_or_table(deserializer, "`codel`, `fq-codel`, `pie` or `none`, or a table with the key `kind`", word).map(Some)
}
